//! A maximum error that was true once, and what it has become since.
//!
//! The error grows by a part of the time that has passed, suspended or not (CLOCK_BOOTTIME): by 500 parts per
//! million of what the kernel said, whose own rule that is, by less of what chrony said. The distance of CLOCK_REALTIME from CLOCK_BOOTTIME changes only when somebody steps
//! the clock (settimeofday, ADJ_SETOFFSET, a leap second): slewing moves both alike. So by as much as
//! that distance may have changed the error may have grown, too. The two clocks cannot be read at one
//! moment; one is read before and after the other, and the true distance is between.
//!
//! A reading that has not been renewed for a minute means nothing any more.

use crate::interval::MaximumError;
use nix::time::{ClockId, clock_gettime};

/// After so long without another reading nothing is promised.
const STALE_NS: u64 = 60_000_000_000;

/// Readings that are tried for one that nothing interrupted, and how narrow one has to be for that.
const TRIES: u32 = 3;
const NARROW_NS: i64 = 1_000;

/// A maximum error and when it was true.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    error: MaximumError,
    rate_ppm: u64,
    then: Clocks,
}

impl Held {
    /// This was true when the clocks were read, or a little later.
    pub(super) fn new(error: MaximumError, rate_ppm: u64, then: Clocks) -> Self {
        Self { error, rate_ppm, then }
    }

    /// When it was true.
    pub(super) fn then(&self) -> &Clocks {
        &self.then
    }

    /// What has become of it.
    pub(super) fn at(&self, now: &Clocks) -> MaximumError {
        let elapsed_ns = now.boot_ns.saturating_sub(self.then.boot_ns).max(0).unsigned_abs();
        if elapsed_ns > STALE_NS {
            return MaximumError::UNKNOWN;
        }
        let grown_ns = u128::from(elapsed_ns) * u128::from(self.rate_ppm) / 1_000_000 + 1;
        let grown_ns = u64::try_from(grown_ns).unwrap_or(u64::MAX);
        self.error
            .plus(MaximumError::known(grown_ns))
            .plus(MaximumError::known(now.step_since(&self.then)))
    }
}

/// A reading of both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocks {
    boot_ns: i64,
    /// CLOCK_REALTIME less CLOCK_BOOTTIME: between these two.
    distance_ns: (i64, i64),
}

impl Clocks {
    /// Now.
    pub(super) fn read() -> Self {
        let mut best = Self::read_once();
        for _ in 1..TRIES {
            if best.width_ns() <= NARROW_NS {
                break;
            }
            let next = Self::read_once();
            if next.width_ns() < best.width_ns() {
                best = next;
            }
        }
        best
    }

    /// CLOCK_BOOTTIME.
    pub(super) fn boot_ns(&self) -> i64 {
        self.boot_ns
    }

    fn read_once() -> Self {
        let before = nanoseconds(ClockId::CLOCK_REALTIME);
        let boot_ns = nanoseconds(ClockId::CLOCK_BOOTTIME);
        let after = nanoseconds(ClockId::CLOCK_REALTIME);
        let (low, high) = (before.min(after), before.max(after));
        Self { boot_ns, distance_ns: (low.saturating_sub(boot_ns), high.saturating_sub(boot_ns)) }
    }

    /// Whether the clock was certainly stepped.
    pub(super) fn was_stepped_since(&self, then: &Self) -> bool {
        self.distance_ns.1 < then.distance_ns.0 || then.distance_ns.1 < self.distance_ns.0
    }

    fn width_ns(&self) -> i64 {
        self.distance_ns.1.saturating_sub(self.distance_ns.0)
    }

    /// The farthest that the clock may have been stepped.
    fn step_since(&self, then: &Self) -> u64 {
        let forward = self.distance_ns.1.saturating_sub(then.distance_ns.0);
        let back = then.distance_ns.1.saturating_sub(self.distance_ns.0);
        forward.max(back).max(0).unsigned_abs()
    }
}

/// A clock's reading; these clocks cannot fail to be read.
fn nanoseconds(clock: ClockId) -> i64 {
    clock_gettime(clock)
        .map_or(0, |at| at.tv_sec().saturating_mul(1_000_000_000).saturating_add(at.tv_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks(boot_ns: i64, low: i64, high: i64) -> Clocks {
        Clocks { boot_ns, distance_ns: (low, high) }
    }

    fn held(error: u64) -> Held {
        Held::new(MaximumError::known(error), 500, clocks(1_000, 500, 520))
    }

    #[test]
    fn the_error_grows_with_time() {
        let at = |boot_ns| held(7_000).at(&clocks(boot_ns, 500, 520)).nanoseconds;
        // 20 ns are what the clocks may have been stepped between the readings.
        assert_eq!(at(1_000), Some(7_021));
        assert_eq!(at(1_000 + 2_000_000_000), Some(7_021 + 1_000_000));
        assert_eq!(at(1_000 + STALE_NS as i64 + 1), None, "the reading is stale");
    }

    #[test]
    fn a_step_counts_at_once_and_in_both_directions() {
        let at = |low, high| held(7_000).at(&clocks(1_000, low, high)).nanoseconds;
        assert_eq!(at(10_500, 10_520), Some(7_001 + 10_020));
        assert_eq!(at(-9_500, -9_480), Some(7_001 + 10_020));
        assert_eq!(at(510, 515), Some(7_016));
        let stepped = |low, high| clocks(1_000, low, high).was_stepped_since(held(1).then());
        assert!(stepped(521, 530) && stepped(480, 499) && !stepped(520, 530) && !stepped(490, 500));
    }

    #[test]
    fn nothing_known_stays_so() {
        assert_eq!(
            Held::new(MaximumError::UNKNOWN, 0, Clocks::read()).at(&Clocks::read()),
            MaximumError::UNKNOWN
        );
    }

    #[test]
    fn the_clocks_of_the_kernel_can_be_read_together() {
        let (first, second) = (Clocks::read(), Clocks::read());
        assert!(first.boot_ns > 0 && second.boot_ns >= first.boot_ns);
        assert!(first.width_ns() >= 0);
    }
}
