//! The Error Estimate field: how far a clock may be off (RFC 4656, section 4.1.2; RFC 8186, section 2.3).
//!
//! ```text
//!  0                   1
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5
//! +-+-+-----------+---------------+
//! |S|Z|   Scale   |   Multiplier  |   error = Multiplier * 2^(Scale - 32) seconds
//! +-+-+-----------+---------------+
//! ```
//!
//! S says that the clock follows UTC. Without it the error says nothing about true time, so it bounds
//! nothing here.

use super::time::Format;

const SYNCHRONISED: u16 = 1 << 15;
const PTP: u16 = 1 << 14;

/// The field's sixteen bits; every value of them is one, see [`ErrorEstimate::is_corrupt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorEstimate(pub u16);

impl ErrorEstimate {
    /// What a clock of unknown error says: not synchronised, and the largest error there is.
    pub const UNKNOWN: Self = Self(0x3fff);

    /// For a clock that is off by at most so much, rounded up to what the field can say; `None`: nobody
    /// knows.
    pub fn from_ns(bound: Option<u64>) -> Self {
        let Some(ns) = bound else { return Self::UNKNOWN };
        // In steps of 2^-32 s, rounded up; at most 2^66, so at most 59 bits too many.
        let mut multiplier = (u128::from(ns) << 32).div_ceil(1_000_000_000).max(1);
        let mut scale = 0;
        while multiplier > 0xff {
            multiplier = multiplier.div_ceil(2);
            scale += 1;
        }
        Self(SYNCHRONISED | scale << 8 | multiplier as u16)
    }

    /// The bound in nanoseconds, rounded up; `None` where the clock is not synchronised.
    pub fn bound_ns(self) -> Option<u64> {
        let steps = u128::from(self.0 & 0xff) << (self.0 >> 8 & 0x3f);
        let ns = (steps * 1_000_000_000).div_ceil(1 << 32);
        (self.0 & SYNCHRONISED != 0 && !self.is_corrupt())
            .then(|| u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Whether the multiplier is zero, which it must not be.
    pub fn is_corrupt(self) -> bool {
        self.0 & 0xff == 0
    }

    /// The format of the timestamps that this belongs to.
    pub fn format(self) -> Format {
        if self.0 & PTP == 0 { Format::Ntp } else { Format::Ptp }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_by_hand() {
        // 2^-32 s is 0.23 ns: one nanosecond is five of these, rounded up.
        assert_eq!(ErrorEstimate::from_ns(Some(1)).0, 0x8005);
        // No error at all is still the smallest one.
        assert_eq!(ErrorEstimate::from_ns(Some(0)).0, 0x8001);
        // A second is 128 * 2^25 * 2^-32.
        assert_eq!(ErrorEstimate::from_ns(Some(1_000_000_000)).0, 0x8000 | 25 << 8 | 128);
        assert_eq!(ErrorEstimate(0x8000 | 25 << 8 | 128).bound_ns(), Some(1_000_000_000));
        // The Z bit changes nothing about it.
        assert_eq!(ErrorEstimate(0xc000 | 25 << 8 | 128).bound_ns(), Some(1_000_000_000));
        assert_eq!(ErrorEstimate(0xc001).format(), Format::Ptp);
        // Not synchronised, and corrupt.
        assert_eq!(ErrorEstimate(0x0001).bound_ns(), None);
        assert_eq!(ErrorEstimate(0x8000).bound_ns(), None);
        assert!(ErrorEstimate(0x8000).is_corrupt());
        assert_eq!(ErrorEstimate::from_ns(None), ErrorEstimate::UNKNOWN);
        assert_eq!(
            (ErrorEstimate::UNKNOWN.bound_ns(), ErrorEstimate::UNKNOWN.is_corrupt()),
            (None, false)
        );
    }

    proptest! {
        #[test]
        fn the_field_never_says_less_and_at_most_a_hundredth_more(ns in 1_u64.., shift in 0..64_u32) {
            let ns: u64 = (ns >> shift).max(1);
            let reported = ErrorEstimate::from_ns(Some(ns)).bound_ns().unwrap();
            prop_assert!(reported >= ns);
            prop_assert!(reported - ns <= ns / 100 + 1);
        }

        #[test]
        fn any_field_can_be_read_and_written_again(bits: u16) {
            if let Some(bound) = ErrorEstimate(bits).bound_ns() {
                prop_assert!(ErrorEstimate::from_ns(Some(bound)).bound_ns() >= Some(bound));
            }
        }
    }
}
