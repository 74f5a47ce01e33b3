//! A moment as 64 bits: seconds and fraction since 1900 as NTP has it (RFC 5905, section 6), or seconds
//! and nanoseconds as the truncated format of PTP has it (RFC 8186, section 2.3).
//!
//! Here only NTP's is ever sent (RFC 8762 makes it the default). PTP's counts International Atomic Time
//! by its standard, while several implementations put UTC there; so of a peer that uses it only
//! differences between two of its own moments are believed.

/// From 1900-01-01 to 1970-01-01, in seconds.
const UNIX_ZERO: u64 = 2_208_988_800;
const SECOND_NS: u64 = 1_000_000_000;

/// Sixty-four bits of a timestamp field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// NTP's form of a time in nanoseconds since 1970, rounded to the nearest 2^-32 s.
    pub fn from_unix_ns(ns: u64) -> Self {
        let seconds = (ns / SECOND_NS).wrapping_add(UNIX_ZERO) as u32;
        let fraction = (((ns % SECOND_NS) << 32) + SECOND_NS / 2) / SECOND_NS;
        // The last nanoseconds of a second never round up to the next: half a step is 0.12 ns.
        Self(u64::from(seconds) << 32 | fraction)
    }

    /// Nanoseconds since 1970, rounded to the nearest; of the many moments that NTP writes alike, 136
    /// years apart, the one next to `near_ns`.
    pub fn to_unix_ns(self, near_ns: u64) -> u64 {
        near_ns.wrapping_add_signed(self.since(Self::from_unix_ns(near_ns), Format::Ntp))
    }

    /// From another moment to this one in nanoseconds; both in the same format.
    pub fn since(self, earlier: Self, format: Format) -> i64 {
        match format {
            Format::Ntp => {
                let steps = i128::from(self.0.wrapping_sub(earlier.0) as i64);
                ((steps * i128::from(SECOND_NS) + (1 << 31)) >> 32) as i64
            }
            Format::Ptp => {
                let seconds = ((self.0 >> 32) as u32).wrapping_sub((earlier.0 >> 32) as u32) as i32;
                let rest = i64::from(self.0 as u32) - i64::from(earlier.0 as u32);
                i64::from(seconds) * SECOND_NS as i64 + rest
            }
        }
    }
}

/// Which of the two formats; the Z bit of the Error Estimate beside the timestamp says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// NTP's 64 bits.
    #[default]
    Ntp,
    /// PTP version 2, truncated to 64 bits.
    Ptp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_moments() {
        // 2026-01-01T00:00:00.5Z
        let half = Timestamp::from_unix_ns(1_767_225_600_500_000_000);
        assert_eq!(half.0, (1_767_225_600 + 2_208_988_800) << 32 | 0x8000_0000);
        assert_eq!(Timestamp::from_unix_ns(0).0, 2_208_988_800 << 32);
        // The end of NTP's first era, 2036-02-07T06:28:16Z.
        assert_eq!(Timestamp::from_unix_ns(2_085_978_496_000_000_000).0, 0);
    }

    #[test]
    fn differences_of_ptp() {
        let (a, b) = (Timestamp(7 << 32 | 999_999_999), Timestamp(8 << 32 | 1));
        assert_eq!((b.since(a, Format::Ptp), a.since(b, Format::Ptp)), (2, -2));
        assert_eq!(Timestamp(0).since(Timestamp(0xffff_ffff << 32), Format::Ptp), 1_000_000_000);
    }

    proptest! {
        #[test]
        fn nanoseconds_survive(ns in 0..u64::MAX / 2, away in -1_000_000_000_000_i64..1_000_000_000_000) {
            let near = ns.saturating_add_signed(away);
            prop_assert_eq!(Timestamp::from_unix_ns(ns).to_unix_ns(near), ns);
        }

        #[test]
        fn any_bits_are_a_moment(bits: u64, other: u64) {
            for format in [Format::Ntp, Format::Ptp] {
                let _ = Timestamp(bits).since(Timestamp(other), format);
            }
            let _ = Timestamp(bits).to_unix_ns(other);
        }
    }
}
