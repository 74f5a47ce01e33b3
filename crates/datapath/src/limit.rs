//! The token buckets of bpf/include/limit.h, as user space sets them.

/// The limiter counts in 1/64 ns (bpf/include/limit.h).
pub(crate) const UNITS_PER_NS: u64 = 64;

/// A token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Requests a second; 0 switches the limit off.
    pub rate: u64,
    /// Requests at once; at least what arrives within one tick of the clock at this rate.
    pub burst: u64,
}

impl Limit {
    /// No limit.
    pub const NONE: Self = Self { rate: 0, burst: 0 };

    /// Whether this can be kept where the limits' clock steps `tick_ns`.
    ///
    /// # Errors
    /// When a burst is too small for the rate, or either out of range.
    pub fn check(self, tick_ns: u64) -> Result<(), LimitError> {
        let Self { rate, burst } = self;
        if rate == 0 {
            return Ok(());
        }
        let least = (u128::from(rate) * u128::from(tick_ns)).div_ceil(1_000_000_000).max(1) as u64;
        if burst < least {
            return Err(LimitError::Burst { rate, burst, least, tick_ms: tick_ns / 1_000_000 });
        }
        let year = 365 * 86_400;
        if rate > 1_000_000_000 || burst / rate > year {
            return Err(LimitError::Rate { rate, burst });
        }
        Ok(())
    }
}

/// A token bucket for each source prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLimit {
    /// The bucket of each prefix.
    pub limit: Limit,
    /// Bits of an IPv4 source that make a prefix.
    pub prefix4: u8,
    /// Bits of an IPv6 source that make a prefix.
    pub prefix6: u8,
}

impl SourceLimit {
    /// Whether this can be kept where the limits' clock steps `tick_ns`.
    ///
    /// # Errors
    /// When a prefix length is none of its family, or the limit cannot be kept.
    pub fn check(&self, tick_ns: u64) -> Result<(), LimitError> {
        for (family, given, most) in [("IPv4", self.prefix4, 32), ("IPv6", self.prefix6, 128)] {
            if given == 0 || given > most {
                return Err(LimitError::PrefixLength { family, given, most });
            }
        }
        self.limit.check(tick_ns)
    }
}

/// A limit that cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    /// A prefix length that its family does not have.
    #[error("prefix length {given} for {family} sources; it must be 1 to {most}")]
    PrefixLength {
        /// `IPv4` or `IPv6`.
        family: &'static str,
        /// What was given.
        given: u8,
        /// The longest one.
        most: u8,
    },
    /// A burst that would keep the rate from being reached.
    #[error(
        "a burst of {burst} is too small for {rate} requests a second: the clock of the limits steps {tick_ms} ms, so give at least {least}"
    )]
    Burst {
        /// Requests a second.
        rate: u64,
        /// Requests at once.
        burst: u64,
        /// The least that works.
        least: u64,
        /// Milliseconds of a step.
        tick_ms: u64,
    },
    /// A rate or burst that the arithmetic cannot hold.
    #[error(
        "rate {rate} and burst {burst} are out of range: at most 1,000,000,000 a second, and at most a year to refill the burst"
    )]
    Rate {
        /// Requests a second.
        rate: u64,
        /// Requests at once.
        burst: u64,
    },
}

/// One bucket's parameters, `struct limit_rate` of bpf/abi/limit.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) interval: u64,
    pub(crate) tolerance: u64,
}

/// One bucket's parameters: an interval, and the time that the burst's intervals take.
pub(crate) fn rate(rate: u64, burst: u64) -> Rate {
    let interval = (1_000_000_000 * UNITS_PER_NS).checked_div(rate).unwrap_or(0);
    Rate { interval, tolerance: interval * burst }
}

/// The two buckets that a source has: half of the rate and half of the burst each. One request at a
/// time cannot be halved: then the second bucket is shut and the first has all.
pub(crate) fn source_rates(limit: Limit) -> [Rate; 2] {
    let Limit { rate: whole, burst } = limit;
    if burst <= 1 {
        let all = rate(whole, burst);
        return [all, Rate { tolerance: 0, ..all }];
    }
    let half = 2 * (1_000_000_000 * UNITS_PER_NS).checked_div(whole).unwrap_or(0);
    [burst.div_ceil(2), burst / 2].map(|burst| Rate { interval: half, tolerance: half * burst })
}

/// The mask of an IPv4 prefix, as it lies in memory on the wire.
pub(crate) fn mask4(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0).to_be()
}

/// The mask of an IPv6 prefix, as it lies in memory on the wire.
pub(crate) fn mask6(length: u8) -> [u64; 2] {
    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
    [((mask >> 64) as u64).to_be(), (mask as u64).to_be()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_a_limit_without_losing_any_of_it() {
        for burst in 2..100 {
            let [first, second] = source_rates(Limit { rate: 100, burst });
            assert_eq!(first.interval, 2 * 640_000_000);
            assert_eq!((first.tolerance + second.tolerance) / first.interval, burst);
        }
        let [first, second] = source_rates(Limit { rate: 100, burst: 1 });
        assert_eq!((first.interval, first.tolerance), (640_000_000, 640_000_000));
        // No interval fits into no tolerance.
        assert_eq!((second.interval, second.tolerance), (640_000_000, 0));
    }

    #[test]
    fn masks_are_those_of_the_wire() {
        assert_eq!(mask4(24).to_ne_bytes(), [255, 255, 255, 0]);
        assert_eq!(mask4(32), u32::MAX);
        assert_eq!(mask6(56)[0].to_ne_bytes(), [255, 255, 255, 255, 255, 255, 255, 0]);
        assert_eq!(mask6(56)[1], 0);
        assert_eq!(mask6(72)[1].to_ne_bytes(), [255, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(mask6(128), [u64::MAX; 2]);
    }
}
