//! A rate as it is written: `800 kbit/s`, `20Mbit`, `1.5 gbit`.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::{fmt, str::FromStr};

/// Bits a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rate(pub u64);

/// A text is not a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a rate such as `800kbit`, `20 Mbit/s` or `1.5gbit`")]
pub struct BadRate;

/// The units, by their first letters in lower case.
const UNITS: [(&str, f64); 4] = [("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9), ("bit", 1.0)];

impl FromStr for Rate {
    type Err = BadRate;

    fn from_str(text: &str) -> Result<Self, BadRate> {
        let lower = text.trim().to_ascii_lowercase();
        let text = lower.strip_suffix("/s").unwrap_or(&lower);
        let (number, unit) = UNITS
            .iter()
            .find_map(|(word, unit)| Some((text.strip_suffix(word)?, unit)))
            .ok_or(BadRate)?;
        let number = number.trim_end();
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(BadRate);
        }
        let bits = number.parse::<f64>().map_err(|_| BadRate)? * unit;
        // Up to here every whole number of bits is exact.
        if bits <= (1_u64 << 53) as f64 { Ok(Self(bits.round() as u64)) } else { Err(BadRate) }
    }
}

/// `20 Mbit/s`
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0 as f64;
        let (unit, word) = match self.0 {
            1_000_000_000.. => (1e9, "Gbit/s"),
            1_000_000.. => (1e6, "Mbit/s"),
            1000.. => (1e3, "kbit/s"),
            _ => (1.0, "bit/s"),
        };
        // Three decimals, without zeros at the end.
        let number = (bits / unit * 1000.0).round() / 1000.0;
        write!(f, "{number} {word}")
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| D::Error::custom(format_args!("{text:?} is no rate: {error}")))
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        for (text, bits) in [
            ("800kbit", 800_000),
            ("20 Mbit/s", 20_000_000),
            ("1.5gbit", 1_500_000_000),
            ("64000 bit/s", 64_000),
        ] {
            assert_eq!(text.parse(), Ok(Rate(bits)), "{text}");
        }
        for text in ["", "20", "mbit", "-1mbit", "1e3mbit", "20 MB/s", "99999999999gbit", "."] {
            assert_eq!(text.parse::<Rate>(), Err(BadRate), "{text}");
        }
    }

    #[test]
    fn a_rate_reads_back() {
        for bits in [1, 999, 1000, 64_000, 1_500_000, 20_000_000, 2_500_000_000] {
            assert_eq!(Rate(bits).to_string().parse(), Ok(Rate(bits)));
        }
    }
}
