//! A setting that is made of named parts, from a table (`{ limit = "64KB", discipline = "codel" }`) or
//! from words with commas between them (`64KB,codel`), in which a part may go without its name where
//! the word says which it is.

use super::{SettingsError, Share, units};
use crate::Nanos;

/// What was given for a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// Words, or a number.
    Text(String),
    /// A table's keys and values.
    Table(Vec<(String, String)>),
}

impl Given {
    /// What was given, for a message.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Table(pairs) => {
                let pairs: Vec<_> =
                    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
                pairs.join(",")
            }
        }
    }
}

/// The parts of one setting, taken out one by one.
pub(super) struct Parts {
    key: &'static str,
    whole: String,
    pairs: Vec<(String, String)>,
}

impl Parts {
    /// `name` says which part a word without a name is, and the value that it stands for.
    pub(super) fn new(
        key: &'static str,
        given: &Given,
        name: impl Fn(&str) -> (&'static str, String),
    ) -> Result<Self, SettingsError> {
        let pairs = match given {
            Given::Table(pairs) => pairs.clone(),
            Given::Text(text) => text
                .split(',')
                .map(|word| match word.split_once('=') {
                    Some((name, value)) => (name.to_owned(), value.to_owned()),
                    None => {
                        let (name, value) = name(word);
                        (name.to_owned(), value)
                    }
                })
                .collect(),
        };
        let parts = Self { key, whole: given.text(), pairs };
        for (i, (name, _)) in parts.pairs.iter().enumerate() {
            if parts.pairs.iter().skip(i + 1).any(|(other, _)| other == name) {
                return Err(parts.error(format!("`{name}` is given twice")));
            }
        }
        Ok(parts)
    }

    /// A setting of one word.
    pub(super) fn word<T>(
        key: &'static str,
        given: &Given,
        parse: impl Fn(&str) -> Option<T>,
        allowed: &str,
    ) -> Result<T, SettingsError> {
        match given {
            Given::Text(text) => parse(text),
            Given::Table(_) => None,
        }
        .ok_or_else(|| SettingsError {
            key: key.to_owned(),
            value: given.text(),
            allowed: allowed.to_owned(),
        })
    }

    /// What is wrong with the setting.
    pub(super) fn error(&self, allowed: impl Into<String>) -> SettingsError {
        let (key, value) = (self.key.to_owned(), self.whole.clone());
        SettingsError { key, value, allowed: allowed.into() }
    }

    /// Takes a part out, if it is there.
    pub(super) fn take<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&str) -> Option<T>,
        allowed: &str,
    ) -> Result<Option<T>, SettingsError> {
        let Some(at) = self.pairs.iter().position(|(other, _)| other == name) else {
            return Ok(None);
        };
        let (_, value) = self.pairs.remove(at);
        match parse(&value) {
            Some(value) => Ok(Some(value)),
            None => Err(self.error(format!("`{name}={value}`: {allowed}"))),
        }
    }

    /// Takes a part out that must be there.
    pub(super) fn need<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&str) -> Option<T>,
        allowed: &str,
    ) -> Result<T, SettingsError> {
        let missing = self.error(format!("`{name}` is missing: {allowed}"));
        self.take(name, parse, allowed)?.ok_or(missing)
    }

    /// Takes a share out.
    pub(super) fn share(&mut self, name: &str) -> Result<Option<Share>, SettingsError> {
        self.take(name, |text| text.parse().ok(), units::SHARE)
    }

    /// Takes a time out.
    pub(super) fn time(&mut self, name: &str) -> Result<Option<Nanos>, SettingsError> {
        self.take(name, units::time, units::TIME)
    }

    /// Takes a yes or no out; no if it is not there.
    pub(super) fn flag(&mut self, name: &str) -> Result<bool, SettingsError> {
        Ok(self.take(name, |text| text.parse().ok(), "true or false")?.unwrap_or(false))
    }

    /// Nothing may be left.
    pub(super) fn finish(self, allowed: &str) -> Result<(), SettingsError> {
        match self.pairs.first() {
            None => Ok(()),
            Some((name, _)) => {
                Err(self.error(format!("there is no `{name}` here; allowed are {allowed}")))
            }
        }
    }
}
