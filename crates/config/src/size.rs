//! Bytes: `64KB` and `100M` by thousands, `64KiB` by 1024, `1500` as it is.

use crate::decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::{fmt, ops::RangeInclusive, str::FromStr};

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A text is not a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected bytes such as `1500`, `64KB`, `64KiB` or `100M`")]
pub struct BadSize;

/// The units as written, from large to small.
const UNITS: [(&str, u64); 9] = [
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("KB", 1_000),
    ("KiB", 1 << 10),
    ("B", 1),
];
/// Other units that are read. Case matters: a lower-case b is a bit.
const SHORT: [(&str, u64); 7] = [
    ("kB", 1_000),
    ("K", 1_000),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("", 1),
];

impl FromStr for Size {
    type Err = BadSize;

    fn from_str(text: &str) -> Result<Self, BadSize> {
        let (number, unit) = decimal::split(text.trim()).ok_or(BadSize)?;
        let found = UNITS.iter().chain(&SHORT).find(|(name, _)| *name == unit);
        let (_, factor) = found.ok_or(BadSize)?;
        decimal::times(number, *factor).map(Self).ok_or(BadSize)
    }
}

/// The exact size in the largest unit of which it is a whole number: `64KB`.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&decimal::whole(self.0, &UNITS))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|error| D::Error::custom(format_args!("{text:?} is not a size: {error}")))
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The parser of a flag for bytes: reads a [`Size`] in a range.
pub fn bytes<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let Size(bytes) = text.parse().map_err(|error: BadSize| error.to_string())?;
        let bytes = Some(bytes).filter(|bytes| range.contains(bytes));
        let bytes = bytes.and_then(|bytes| T::try_from(bytes).ok());
        bytes.ok_or_else(|| format!("{text} is not in {}..={}", range.start(), range.end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        for (text, bytes) in [
            ("1", 1),
            ("20K", 20_000),
            ("64KB", 64_000),
            ("64kB", 64_000),
            ("64KiB", 65_536),
            ("1.5 MiB", 1_572_864),
            ("100M", 100_000_000),
            ("3G", 3_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "K", "10X", "64kb", "-1", "1e3", "0.5B", "99999999999999G", "1.", "é"] {
            assert_eq!(text.parse::<Size>(), Err(BadSize), "{text}");
        }
    }

    #[test]
    fn a_flag_for_bytes_has_a_range() {
        let read = bytes::<u32>(64..=65_535);
        assert_eq!(["64", "64KB", "1KiB"].map(&read), [64, 64_000, 1024].map(Ok));
        let error = |text| read(text).expect_err(text);
        assert_eq!(error("64KiB"), "64KiB is not in 64..=65535");
        assert!(error("much").starts_with("expected bytes"));
    }

    proptest! {
        #[test]
        fn a_size_reads_back(bytes in any::<u64>(), shift in 0_u32..40) {
            let size = Size(bytes >> shift << shift);
            prop_assert_eq!(size.to_string().parse(), Ok(size));
        }
    }
}
