//! Some settings and not others: what a command or an event changes, and how settings are read.

use super::{
    Jitter, LinkSettings, Loss, Queue, Reorder, SettingsError, Share, units,
    words::{Given, Parts},
};
use crate::Nanos;
use std::{fmt, str::FromStr};

/// The names of all settings.
pub const KEYS: [&str; 10] =
    ["delay", "jitter", "loss", "duplicate", "reorder", "corrupt", "rate", "queue", "mtu", "up"];

/// Lowest MTU, bytes (RFC 791, section 3.2), and the longest packet.
const MTUS: std::ops::RangeInclusive<u32> = 68..=65_535;

/// New values for those settings that are there; the others stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SettingsChange {
    /// See [`LinkSettings::delay`].
    pub delay: Option<Nanos>,
    /// See [`LinkSettings::jitter`].
    pub jitter: Option<Option<Jitter>>,
    /// See [`LinkSettings::loss`].
    pub loss: Option<Loss>,
    /// See [`LinkSettings::duplicate`].
    pub duplicate: Option<Share>,
    /// See [`LinkSettings::reorder`].
    pub reorder: Option<Option<Reorder>>,
    /// See [`LinkSettings::corrupt`].
    pub corrupt: Option<Share>,
    /// See [`LinkSettings::rate`].
    pub rate: Option<Option<u64>>,
    /// See [`LinkSettings::queue`].
    pub queue: Option<Queue>,
    /// See [`LinkSettings::mtu`].
    pub mtu: Option<u32>,
    /// See [`LinkSettings::up`].
    pub up: Option<bool>,
}

impl SettingsChange {
    /// What makes `new` of `old`.
    pub fn between(old: &LinkSettings, new: &LinkSettings) -> Self {
        fn changed<T: PartialEq>(old: T, new: T) -> Option<T> {
            (old != new).then_some(new)
        }
        Self {
            delay: changed(old.delay, new.delay),
            jitter: changed(old.jitter, new.jitter),
            loss: changed(old.loss, new.loss),
            duplicate: changed(old.duplicate, new.duplicate),
            reorder: changed(old.reorder, new.reorder),
            corrupt: changed(old.corrupt, new.corrupt),
            rate: changed(old.rate, new.rate),
            queue: changed(old.queue, new.queue),
            mtu: changed(old.mtu, new.mtu),
            up: changed(old.up, new.up),
        }
    }

    /// Changes what is named.
    pub fn apply(&self, settings: &mut LinkSettings) {
        fn put<T>(value: &mut T, new: Option<T>) {
            if let Some(new) = new {
                *value = new;
            }
        }
        put(&mut settings.delay, self.delay);
        put(&mut settings.jitter, self.jitter);
        put(&mut settings.loss, self.loss);
        put(&mut settings.duplicate, self.duplicate);
        put(&mut settings.reorder, self.reorder);
        put(&mut settings.corrupt, self.corrupt);
        put(&mut settings.rate, self.rate);
        put(&mut settings.queue, self.queue);
        put(&mut settings.mtu, self.mtu);
        put(&mut settings.up, self.up);
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a setting has its new value already.
    fn has(&self, key: &str) -> bool {
        match key {
            "delay" => self.delay.is_some(),
            "jitter" => self.jitter.is_some(),
            "loss" => self.loss.is_some(),
            "duplicate" => self.duplicate.is_some(),
            "reorder" => self.reorder.is_some(),
            "corrupt" => self.corrupt.is_some(),
            "rate" => self.rate.is_some(),
            "queue" => self.queue.is_some(),
            "mtu" => self.mtu.is_some(),
            "up" => self.up.is_some(),
            _ => false,
        }
    }

    /// Sets one of [`KEYS`].
    pub(super) fn set(&mut self, key: &str, given: &Given) -> Result<(), SettingsError> {
        let error =
            |allowed: String| SettingsError { key: key.to_owned(), value: given.text(), allowed };
        if self.has(key) {
            return Err(error(format!("`{key}` is given twice")));
        }
        let share = |key| Parts::word(key, given, |text| text.parse().ok(), units::SHARE);
        match key {
            "delay" => self.delay = Some(Parts::word("delay", given, units::time, units::TIME)?),
            "jitter" => self.jitter = Some(Jitter::parse(given)?),
            "loss" => self.loss = Some(Loss::parse(given)?),
            "duplicate" => self.duplicate = Some(share("duplicate")?),
            "reorder" => self.reorder = Some(Reorder::parse(given)?),
            "corrupt" => self.corrupt = Some(share("corrupt")?),
            "rate" => {
                let rate = |text: &str| match text {
                    "none" => Some(None),
                    text => units::rate(text).map(Some),
                };
                self.rate = Some(Parts::word("rate", given, rate, units::RATE)?);
            }
            "queue" => self.queue = Some(Queue::parse(given)?),
            "mtu" => {
                let mtu = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
                    true => text.parse().ok().filter(|mtu| MTUS.contains(mtu)),
                    false => None,
                };
                let allowed = "an MTU is a number of bytes from 68 to 65535";
                self.mtu = Some(Parts::word("mtu", given, mtu, allowed)?);
            }
            "up" => {
                let parse = |text: &str| text.parse().ok();
                self.up = Some(Parts::word("up", given, parse, "true or false")?);
            }
            _ => return Err(error(format!("no setting `{key}`; there are {}", KEYS.join(", ")))),
        }
        Ok(())
    }

    /// The settings that are there, as words.
    pub(super) fn words(&self) -> Vec<(&'static str, String)> {
        fn word<T: ToString>(value: Option<T>) -> Option<String> {
            value.map(|value| value.to_string())
        }
        fn or_none<T: ToString>(value: Option<Option<T>>) -> Option<String> {
            value.map(|value| value.map_or_else(|| "none".to_owned(), |value| value.to_string()))
        }
        let rate = self.rate.map(|rate| rate.map(units::rate_text));
        let words = [
            word(self.delay),
            or_none(self.jitter),
            word(self.loss),
            word(self.duplicate),
            or_none(self.reorder),
            word(self.corrupt),
            or_none(rate),
            word(self.queue),
            word(self.mtu),
            word(self.up),
        ];
        KEYS.into_iter().zip(words).filter_map(|(key, word)| Some((key, word?))).collect()
    }
}

impl FromStr for SettingsChange {
    type Err = SettingsError;

    /// `key=value` with blanks between: `delay=50ms loss=1%`.
    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let mut change = Self::default();
        for word in text.split_ascii_whitespace() {
            let Some((key, value)) = word.split_once('=') else {
                return Err(SettingsError {
                    key: word.to_owned(),
                    value: String::new(),
                    allowed: format!("a value is missing; there are {}", KEYS.join(", ")),
                });
            };
            change.set(key, &Given::Text(value.to_owned()))?;
        }
        Ok(change)
    }
}

impl fmt::Display for SettingsChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, word)) in self.words().into_iter().enumerate() {
            let blank = if i == 0 { "" } else { " " };
            write!(f, "{blank}{key}={word}")?;
        }
        Ok(())
    }
}
