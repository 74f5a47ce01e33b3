//! Numbers with units: shares, and the times, rates and sizes of [`config`] within a lab's limits.
//! Nothing is rounded except a share.

use crate::Nanos;
use config::{Rate, Size};
use std::{fmt, str::FromStr};

/// What is allowed as a time.
pub(super) const TIME: &str = config::DURATION;
/// What is allowed as a share.
pub(super) const SHARE: &str =
    "a share is a percentage from 0% to 100%, as 0.1%, or a number below 1 with a point, as 0.001";
/// What is allowed as a rate.
pub(super) const RATE: &str = "a rate is a number with bit, kbit, Mbit, Gbit or Tbit (a second), from 1bit to 1000Tbit, or none: write 100Mbit";

/// Highest rate, bits a second: the sums of the transmitter's clock fit with it into 64 bits.
const MAX_RATE: u64 = 1_000_000_000_000_000;
/// Largest size, bytes.
const MAX_SIZE: u64 = 4_000_000_000;
/// A time.
pub(super) fn time(text: &str) -> Option<Nanos> {
    let time = config::duration(text).ok()?;
    u64::try_from(time.as_nanos()).ok().map(Nanos)
}

/// A rate in bits a second.
pub(super) fn rate(text: &str) -> Option<u64> {
    text.parse().ok().map(|Rate(bits)| bits).filter(|bits| (1..=MAX_RATE).contains(bits))
}

/// A rate as words.
pub(super) fn rate_text(rate: u64) -> String {
    Rate(rate).to_string()
}

/// A size in bytes. Without a unit it could be packets as well, so it is none.
pub(super) fn size(text: &str) -> Option<u32> {
    let Size(bytes) =
        text.parse().ok().filter(|_| !text.ends_with(|c: char| c.is_ascii_digit()))?;
    u32::try_from(bytes).ok().filter(|bytes| (1..=MAX_SIZE).contains(&u64::from(*bytes)))
}

/// A size as words.
pub(super) fn size_text(size: u32) -> String {
    Size(size.into()).to_string()
}

/// A part of all packets, in 1 / 2^32; the greatest value stands for all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(pub u32);

impl Share {
    /// No packet.
    pub const NEVER: Self = Self(0);
    /// Every packet.
    pub const ALWAYS: Self = Self(u32::MAX);
    /// 2^32.
    const WHOLE: f64 = 4_294_967_296.0;

    /// Whether a random number, each of which is as likely, is within the share.
    pub fn takes(self, random: u32) -> bool {
        random < self.0 || self == Self::ALWAYS
    }

    /// From 0 to 1.
    pub fn as_f64(self) -> f64 {
        if self == Self::ALWAYS { 1.0 } else { f64::from(self.0) / Self::WHOLE }
    }
}

impl FromStr for Share {
    type Err = &'static str;

    /// The nearest share; one that is above 0 does not become 0, nor one below 100% all.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        let is_percentage = text.ends_with('%');
        // "1" alone may be meant as one percent or as all, so the unit is required.
        if !is_percentage && !text.contains('.') {
            return Err(SHARE);
        }
        match config::share(text) {
            Ok(1.0) if is_percentage => Ok(Self::ALWAYS),
            Ok(0.0) => Ok(Self::NEVER),
            Ok(share) if 0.0 < share && share < 1.0 => {
                Ok(Self(((share * Self::WHOLE).round() as u32).clamp(1, u32::MAX - 1)))
            }
            _ => Err(SHARE),
        }
    }
}

impl fmt::Display for Share {
    /// The shortest percentage that is this share again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for places in 0..=12 {
            let text = format!("{:.places$}%", self.as_f64() * 100.0);
            if text.parse() == Ok(*self) {
                return f.write_str(&text);
            }
        }
        // Twelve decimal places distinguish multiples of 2^-32; nothing comes here.
        write!(f, "{}%", self.as_f64() * 100.0)
    }
}
