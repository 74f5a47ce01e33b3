//! Values of configuration and command line, below all jobs.
//!
//! One syntax for each kind of value, in files, flags and answers alike:
//!
//! | value | read with | written as |
//! |---|---|---|
//! | rate | [`Rate`]: `text.parse()`, serde, or as the type of a flag | `20mbit`, `1.5Gbit`, `20 Mbit/s`, `1G` |
//! | bandwidth, latency and loss | [`Bandwidth`], [`mbit`], [`milliseconds`], [`share`] | `100Mbit`, `5ms`, `1%`; old files have `100`, `5`, `0.01` |
//! | size | [`Size`]: `text.parse()`, serde, or as the type of a flag; [`bytes`] as a `value_parser` | `64KB`, `64KiB`, `100M`, `1500` |
//! | duration | [`duration`] as a `value_parser`; `humantime_serde` in structs | `100ms`, `1.5s`, `1h 30m` |
//! | prefix | [`ipnet::IpNet`]; [`host_bits`] says whether bits are set after its length | `192.0.2.0/24` |
//!
//! [`Problem`] and [`Report`] describe what is wrong with a value that parsed, by its dotted key; the
//! rules that several sections share are beside them. [`target`] decides at whom a load test may be
//! aimed, [`file`](mod@file) replaces files as a whole and reads private ones (mode 0600), and [`schema`] has
//! the schemas of these values. [`alike()`] finds the known names that a wrong one may have meant,
//! [`printable()`] makes text from outside safe to show, [`hex`] writes and reads bytes as digits.
#![forbid(unsafe_code)]

mod alike;
mod bare;
mod decimal;
pub mod file;
pub mod hex;
mod printable;
mod problem;
mod rate;
mod rules;
pub mod schema;
mod size;
pub mod target;
pub mod token;

pub use alike::alike;
pub use bare::{
    BadShare, Bandwidth, mbit, milliseconds, read_mbit, read_milliseconds, read_share, share,
};
pub use printable::printable;
pub use problem::{Problem, Report};
pub use rate::{BadRate, Rate};
pub use rules::{
    MAX_RATE, bad_interface, bucket, host_bits, interfaces, prefixes, source_prefixes,
};
pub use size::{BadSize, Size, bytes};

use std::time::Duration;

/// The parser of a renamed flag: refuses any value and names the new flag.
pub fn renamed_flag(new: &'static str) -> impl Fn(&str) -> Result<String, String> + Clone {
    move |_| Err(format!("this option is now `{new}`"))
}

/// The error for a text that is not a duration.
pub const DURATION: &str = "expected a duration: write 10s, 100ms or 1h 30m";

/// A text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{DURATION}")]
pub struct BadDuration;

/// Reads a duration: numbers with their units (`ns`, `us`, `ms`, `s`, `m`, `h`, `d` and longer ones),
/// which are added up; `0` needs no unit. This is the syntax of the crate `humantime`, so
/// `humantime_serde` reads the same and [`exact_duration`] writes what is read again.
///
/// # Errors
/// When the text is something else, or not a whole number of nanoseconds.
pub fn duration(text: &str) -> Result<Duration, BadDuration> {
    humantime::parse_duration(text).map_err(|_| BadDuration)
}

/// A day in nanoseconds.
const DAY: u64 = 86_400_000_000_000;
/// The units of [`exact_duration`], from large to small.
const UNITS: [(&str, u64); 7] = [
    ("days", DAY),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// A duration in the largest unit of which it is a whole number: `180days`, where
/// [`humantime::format_duration`] writes `5months 27days 19h 12m`. [`duration`] reads it.
pub fn exact_duration(duration: Duration) -> String {
    match u64::try_from(duration.as_nanos()) {
        Ok(0) => "0s".into(),
        Ok(DAY) => "1day".into(),
        Ok(nanos) => decimal::whole(nanos, &UNITS),
        // Longer than 584 years.
        Err(_) => humantime::format_duration(duration).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_in_their_largest_exact_unit() {
        for text in ["0s", "1day", "180days", "25h", "90m", "61s", "1500ms", "1us", "999ns"] {
            assert_eq!(exact_duration(duration(text).unwrap()), text);
        }
        assert_eq!(exact_duration(Duration::from_secs(3_600)), "1h");
    }

    #[test]
    fn durations_have_units() {
        for (text, nanos) in [
            ("100ms", 100_000_000),
            ("1.5ms", 1_500_000),
            ("1h 30m", 5_400_000_000_000),
            ("250us", 250_000),
            ("10s", 10_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
        for text in ["", "5", "-1s", "1e3ms", ".5ms", "5.ms", "0.5ns", "99999999999999999999s"] {
            assert_eq!(duration(text), Err(BadDuration), "{text}");
        }
    }
}
