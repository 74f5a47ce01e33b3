//! Bits a second, as tc(8) reads them: `800kbit`, `20Mbit`, `1.5 Gbit/s`; the short forms of iperf3
//! (`64k`, `100M`, `1.5G`) are read as well. Only 0 needs no unit.

use crate::decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::{fmt, str::FromStr};

/// Bits a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rate(pub u64);

/// A text is not a rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRate {
    /// It is something else.
    #[error("expected bits a second such as `800kbit`, `20Mbit` or `1.5Gbit`")]
    Syntax,
    /// It is a plain number.
    #[error("a rate has a unit: write `{0}bit` or `{0}Mbit`")]
    NoUnit(String),
}

/// The units as written. They are read in upper and lower case: nobody means millibits.
const UNITS: [(&str, u64); 5] = [
    ("Tbit", 1_000_000_000_000),
    ("Gbit", 1_000_000_000),
    ("Mbit", 1_000_000),
    ("kbit", 1_000),
    ("bit", 1),
];

impl Rate {
    /// The rate for people, to three decimals: `20 Mbit/s`, `1.235 Gbit/s`. It can be read again.
    pub fn rounded(self) -> String {
        let unit = UNITS.iter().find(|(_, factor)| self.0 >= *factor);
        let (name, factor) = unit.copied().unwrap_or(("bit", 1));
        let number = (self.0 as f64 / factor as f64 * 1000.0).round() / 1000.0;
        format!("{number} {name}/s")
    }
}

impl FromStr for Rate {
    type Err = BadRate;

    fn from_str(text: &str) -> Result<Self, BadRate> {
        let (number, unit) = decimal::split(text.trim()).ok_or(BadRate::Syntax)?;
        if unit.is_empty() {
            let digits = decimal::Decimal::parse(number).ok_or(BadRate::Syntax)?.digits;
            return if digits == 0 { Ok(Self(0)) } else { Err(BadRate::NoUnit(number.to_owned())) };
        }
        let unit = unit.strip_suffix("/s").unwrap_or(unit);
        // A prefix alone is enough, as for iperf3.
        let is = |name: &str| {
            let short = name.strip_suffix("bit").unwrap_or_default();
            unit.eq_ignore_ascii_case(name) || unit.eq_ignore_ascii_case(short)
        };
        let found = UNITS.iter().find(|(name, _)| !unit.is_empty() && is(name));
        let (_, factor) = found.ok_or(BadRate::Syntax)?;
        decimal::times(number, *factor).map(Self).ok_or(BadRate::Syntax)
    }
}

/// The exact rate as tc(8) writes it: `20Mbit`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&decimal::whole(self.0, &UNITS))
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|error| D::Error::custom(format_args!("{text:?} is not a rate: {error}")))
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
    use proptest::prelude::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        for (text, bits) in [
            ("800kbit", 800_000),
            ("20 Mbit/s", 20_000_000),
            ("20mbit", 20_000_000),
            ("1.5gbit", 1_500_000_000),
            ("64000 bit/s", 64_000),
            ("1000Tbit", 1_000_000_000_000_000),
            ("64k", 64_000),
            ("100M", 100_000_000),
            ("1.5G", 1_500_000_000),
            ("9600bit", 9600),
            ("0", 0),
        ] {
            assert_eq!(text.parse(), Ok(Rate(bits)), "{text}");
        }
        for text in [
            "",
            "mbit",
            "-1mbit",
            "1e3mbit",
            "20 MB/s",
            "100Mbps",
            "99999999999999gbit",
            ".",
            ".5k",
            "5.k",
            "0.5bit",
            "M",
            "1e9",
            "NaN",
            "inf",
            "é",
            "1 /s",
            "20/s",
        ] {
            assert_eq!(text.parse::<Rate>(), Err(BadRate::Syntax), "{text}");
        }
        for number in ["100", "1.5"] {
            let error = number.parse::<Rate>().expect_err(number).to_string();
            let right = format!("a rate has a unit: write `{number}bit` or `{number}Mbit`");
            assert_eq!(error, right);
        }
    }

    #[test]
    fn a_rate_is_rounded_for_people() {
        for (bits, text) in [
            (0, "0 bit/s"),
            (999, "999 bit/s"),
            (20_000_000, "20 Mbit/s"),
            (1_234_567_890, "1.235 Gbit/s"),
            (2_500_000_000_000, "2.5 Tbit/s"),
        ] {
            assert_eq!(Rate(bits).rounded(), text);
            assert!(text.parse::<Rate>().is_ok());
        }
        assert_eq!(Rate(1_500_000_000).to_string(), "1500Mbit");
    }

    proptest! {
        #[test]
        fn a_rate_reads_back(bits in any::<u64>(), zeros in 0_u32..15) {
            let rate = Rate(bits / 10_u64.pow(zeros) * 10_u64.pow(zeros));
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }
    }
}
