//! Rotation: each period has a key of its own, which is derived from the data set's. So packets of
//! different periods cannot be linked, and who has the data set's key can make them all again.

use super::{Key, derive};
use std::fmt;

/// How long a key is used; periods begin at full ones of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Rotation {
    /// From each full hour.
    Hour,
    /// From midnight.
    Day,
    /// From Monday, midnight.
    Week,
}

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;

impl fmt::Display for Rotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
        })
    }
}

impl Rotation {
    fn seconds(self) -> u64 {
        match self {
            Self::Hour => HOUR,
            Self::Day => DAY,
            Self::Week => WEEK,
        }
    }

    /// When the period of a time began, in seconds since 1970; the time is in nanoseconds since then.
    pub fn start(self, time_ns: u64) -> u64 {
        // 1970 began on a Thursday.
        let since_monday = if self == Self::Week { 3 * DAY } else { 0 };
        let seconds = time_ns / 1_000_000_000 + since_monday;
        (seconds - seconds % self.seconds()).saturating_sub(since_monday)
    }

    /// When the period after the one that began at `start` begins, both in seconds since 1970.
    pub fn next(self, start: u64) -> u64 {
        // The first Monday of 1970 was its fifth day.
        let next = start + self.seconds();
        if self == Self::Week && start < 4 * DAY { 4 * DAY } else { next }
    }

    /// The key of the period that began at `start`: HMAC-SHA256 under the data set's key over a label, the
    /// period's length and its start, both in seconds as 64 bits in network order.
    pub fn key(self, key: &Key, start: u64) -> Key {
        let numbers = [self.seconds().to_be_bytes(), start.to_be_bytes()].concat();
        derive(key, &[b"nigh mask: period, 1".as_slice(), &numbers].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zeroize::Zeroizing;

    const NS: u64 = 1_000_000_000;

    #[test]
    fn periods_begin_at_full_hours_at_midnight_and_on_mondays() {
        // Thursday, 2 July 2026, 13:37:42.5 UTC.
        let time = 1_782_999_462 * NS + NS / 2;
        let hour = Rotation::Hour.start(time);
        assert_eq!(hour, 1_782_997_200);
        let midnight = hour - 13 * HOUR;
        assert_eq!(Rotation::Day.start(time), midnight);
        assert_eq!(Rotation::Week.start(time), midnight - 3 * DAY);
        for rotation in [Rotation::Hour, Rotation::Day, Rotation::Week] {
            let start = rotation.start(time);
            let next = rotation.next(start);
            assert_eq!(next, start + rotation.seconds());
            assert_eq!(rotation.start(start * NS), start);
            assert_eq!(rotation.start(next * NS - 1), start);
            assert_eq!(rotation.start(next * NS), next);
            // The first and the last there are.
            assert_eq!(rotation.start(0), 0);
            assert!(u64::MAX / NS - rotation.start(u64::MAX) < rotation.seconds());
        }
        // The first Monday.
        assert_eq!(Rotation::Week.start(4 * DAY * NS - 1), 0);
        assert_eq!(Rotation::Week.start(4 * DAY * NS), 4 * DAY);
        assert_eq!(Rotation::Week.next(0), 4 * DAY);
    }

    #[test]
    fn keys_of_periods_are_what_is_written_of_them() {
        let key = Zeroizing::new(std::array::from_fn(|n| n as u8));
        let derived = Rotation::Hour.key(&key, 1_699_999_200);
        let digits = config::hex::encode(&*derived);
        // By Python: hmac.new(bytes(range(32)), b"nigh mask: period, 1" + (3600).to_bytes(8, "big")
        // + (1699999200).to_bytes(8, "big"), "sha256").hexdigest()
        assert_eq!(digits, "545b93cb1355dcbdc21f9d3f19cce5415b16abaec87f4568aabb682229db009e");
    }

    #[test]
    fn each_period_has_a_key_of_its_own_also_where_an_hour_a_day_and_a_week_begin_together() {
        let key = Zeroizing::new([1; 32]);
        let rotations = [Rotation::Hour, Rotation::Day, Rotation::Week];
        let mut keys: Vec<_> = rotations.map(|it| *it.key(&key, 4 * DAY)).into();
        keys.push(*Rotation::Hour.key(&key, 4 * DAY + HOUR));
        keys.push(*Rotation::Hour.key(&Zeroizing::new([2; 32]), 4 * DAY));
        keys.push(*key);
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 6);
    }
}
