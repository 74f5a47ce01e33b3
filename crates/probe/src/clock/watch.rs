//! Maximum errors that were true once, and what has become of them: a pure core.
//!
//! An error grows by a part of the time that has passed, suspended or not (CLOCK_BOOTTIME): by 500 parts per
//! million of what the kernel reported, whose own rule that is, by less of what chrony reported. The distance of
//! CLOCK_REALTIME from CLOCK_BOOTTIME changes only when somebody steps the clock (settimeofday,
//! ADJ_SETOFFSET, a leap second): slewing moves both alike. So by as much as that distance may have changed
//! the error may have grown, too. The distance from CLOCK_MONOTONIC_RAW, which nobody steers, is handed on
//! for what depends on the clock's pace alone. Clocks cannot be read at one moment; one is read before and
//! after the others, and the true distance is between.
//!
//! A timestamp is older than the moment at which its error is asked for, and the clock may have been set in
//! between: what was known before it was taken counts as well as what was learnt since. So some readings are
//! kept. A reading that has not been renewed for a minute means nothing any more.

use super::Reading;
use crate::interval::{MaximumError, Steered, drift_ns};
use nix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;

/// After so long without another reading nothing is promised.
const STALE_NS: u64 = 60_000_000_000;

/// Readings that are kept: at one a second, longer than any timestamp lies about.
const KEPT: usize = 16;

/// Readings that are tried for one that nothing interrupted, and how narrow one has to be for that.
const TRIES: u32 = 3;
const NARROW_NS: i64 = 1_000;

/// What is known of a clock.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// The latest first.
    readings: VecDeque<Held>,
}

/// A maximum error and when it was true.
#[derive(Clone, Copy, Debug)]
struct Held {
    error: MaximumError,
    rate_ppm: u64,
    then: Clocks,
}

impl Watch {
    /// Takes what was true when the clocks were read, or a little later.
    pub fn take(&mut self, reading: &Reading, then: Clocks) {
        let error = MaximumError::of(reading.clock.maximum_error_ns);
        self.readings.truncate(KEPT - 1);
        self.readings.push_front(Held { error, rate_ppm: reading.rate_ppm, then });
    }

    /// The most that the clock was off when it read `at_ns` since 1970, and from then until now; of a time to
    /// come, from now until then. The clocks must be read after the timestamp was taken.
    pub fn error_of(&self, at_ns: i64, now: &Clocks) -> MaximumError {
        let unknown = MaximumError { nanoseconds: None, steered: Some(now.steered) };
        let until_ns = at_ns.saturating_sub(now.distance_ns.0).max(now.boot_ns);
        let Some(newest) = self.readings.front() else { return unknown };
        let mut most_ns = newest.at(now, until_ns).nanoseconds;
        let (mut counted_ns, mut next) = (most_ns, &newest.then);
        // How it was steered at the timestamp: as it is now, but for what its frequency's correction may have
        // made meanwhile, and what was seen of more.
        let age_ns = now.boot_ns.saturating_sub(at_ns.saturating_sub(now.distance_ns.1));
        let slack_ns = drift_ns(age_ns.max(0).unsigned_abs());
        let (mut steered, mut seen) = (now.steered, now.steered);
        // Each reading counts in whose time the timestamp may have been taken, and all since. A clock that
        // was set back reads the same twice, so it may have been taken at several.
        for held in self.readings.iter().skip(1) {
            let error_ns = held.at(now, until_ns).nanoseconds;
            most_ns = most_ns.zip(error_ns).map(|(most_ns, error_ns)| most_ns.max(error_ns));
            let lies = |clocks: &Clocks| {
                let (low, high) = clocks.distance_ns;
                at_ns.saturating_sub(high) <= next.boot_ns
                    && at_ns.saturating_sub(low) >= held.then.boot_ns
            };
            seen = seen.or(next.steered);
            if lies(&held.then) || lies(next) {
                (counted_ns, steered) = (most_ns, seen);
            }
            next = &held.then;
        }
        // Or before all that is known.
        if at_ns.saturating_sub(next.distance_ns.0) < next.boot_ns {
            return unknown;
        }
        MaximumError { nanoseconds: counted_ns, steered: Some(steered.within(slack_ns)) }
    }
}

impl Held {
    /// What has become of it now, and will have until a time if the clock is not stepped any more.
    fn at(&self, now: &Clocks, until_ns: i64) -> MaximumError {
        let elapsed_ns = until_ns.saturating_sub(self.then.boot_ns).max(0).unsigned_abs();
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

/// A reading of the machine's clocks.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    boot_ns: i64,
    raw_ns: i64,
    /// CLOCK_REALTIME less CLOCK_BOOTTIME: between these two.
    distance_ns: (i64, i64),
    /// CLOCK_REALTIME less CLOCK_MONOTONIC_RAW.
    steered: Steered,
}

impl Clocks {
    /// Now.
    pub fn read() -> Self {
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

    /// What was read in this order: CLOCK_REALTIME, CLOCK_BOOTTIME and CLOCK_MONOTONIC_RAW,
    /// CLOCK_REALTIME again.
    pub fn of(before_ns: i64, [boot_ns, raw_ns]: [i64; 2], after_ns: i64) -> Self {
        let (low, high) = (before_ns.min(after_ns), before_ns.max(after_ns));
        let [distance_ns, (low_ns, high_ns)] =
            [boot_ns, raw_ns].map(|ns| (low.saturating_sub(ns), high.saturating_sub(ns)));
        Self { boot_ns, raw_ns, distance_ns, steered: Steered { low_ns, high_ns } }
    }

    /// CLOCK_MONOTONIC_RAW, which nobody steers.
    pub fn raw_ns(&self) -> i64 {
        self.raw_ns
    }

    /// How far the clock is from that one.
    pub fn steered(&self) -> Steered {
        self.steered
    }

    /// CLOCK_BOOTTIME.
    pub(super) fn boot_ns(&self) -> i64 {
        self.boot_ns
    }

    fn read_once() -> Self {
        let before_ns = nanoseconds(ClockId::CLOCK_REALTIME);
        let steady = [ClockId::CLOCK_BOOTTIME, ClockId::CLOCK_MONOTONIC_RAW].map(nanoseconds);
        Self::of(before_ns, steady, nanoseconds(ClockId::CLOCK_REALTIME))
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
    use crate::record;

    const S: i64 = 1_000_000_000;

    /// The clock reads so much more than CLOCK_BOOTTIME, of which 20 ns are not known.
    fn clocks(boot_ns: i64, ahead_ns: i64) -> Clocks {
        Clocks::of(boot_ns + ahead_ns, [boot_ns, boot_ns], boot_ns + ahead_ns + 20)
    }

    fn reading(error_ns: Option<u64>) -> Reading {
        let clock = record::Clock { maximum_error_ns: error_ns, ..record::Clock::default() };
        Reading { clock, reported_ns: error_ns, rate_ppm: 500 }
    }

    fn watch(readings: &[(u64, i64, i64)]) -> Watch {
        let mut watch = Watch::default();
        for (error_ns, boot_ns, ahead_ns) in readings {
            watch.take(&reading(Some(*error_ns)), clocks(*boot_ns, *ahead_ns));
        }
        watch
    }

    #[test]
    fn the_error_grows_with_time() {
        let watch = watch(&[(7_000, 1_000, 500)]);
        let at = |boot_ns| watch.error_of(boot_ns + 520, &clocks(boot_ns, 500)).nanoseconds;
        // 20 ns are what the clocks may have been stepped between the readings.
        assert_eq!(at(1_000), Some(7_021));
        assert_eq!(at(1_000 + 2 * S), Some(7_021 + 1_000_000));
        assert_eq!(at(1_000 + STALE_NS as i64 + 1), None, "the reading is stale");
        // It is asked now for what will be.
        let later = watch.error_of(1_000 + 2 * S + 500, &clocks(1_000, 500)).nanoseconds;
        assert_eq!(later, Some(7_021 + 1_000_000));
    }

    #[test]
    fn a_step_counts_at_once_and_in_both_directions() {
        let watch = watch(&[(7_000, -S, 500), (7_000, 1_000, 500)]);
        let at = |ahead_ns| watch.error_of(1_020 + ahead_ns, &clocks(1_000, ahead_ns)).nanoseconds;
        assert_eq!(at(10_500), Some(7_001 + 10_020));
        // What it reads now it has read before, when the error may have been as large as it was then.
        assert_eq!(at(-9_500), Some(7_001 + 500_000 + 10_020));
        assert_eq!(at(-2 * S), None, "it never read that before, as far as is known");
        assert_eq!(at(521), Some(7_001 + 41));
    }

    /// Timestamps wait in buffers, and the clock may be set better while they do.
    #[test]
    fn a_timestamp_from_before_a_reading_has_the_error_of_before() {
        let watch = watch(&[(9_000_000, 0, 0), (1_000_000, S, 0), (1_000, 2 * S, 0)]);
        let now = clocks(2 * S + 10, 0);
        let at = |at_ns| watch.error_of(at_ns, &now).nanoseconds.map(|ns| ns / 1_000);
        assert_eq!(at(2 * S + 30), Some(1));
        assert_eq!(at(2 * S - 30), Some(1_000 + 500));
        assert_eq!(at(S - 30), Some(9_000 + 1_000));
        assert_eq!(at(-30), None, "nothing was known then");
    }

    /// Of what a clock read before it was stepped nobody knows when it was.
    #[test]
    fn a_timestamp_from_before_a_step_has_all_of_it() {
        let watch = watch(&[(9_000_000, 0, 0), (1_000, S, 0), (2_000, 2 * S, -S)]);
        let now = clocks(2 * S + 10, -S);
        // It has read this twice.
        let error_ns = watch.error_of(S + 5, &now).nanoseconds.unwrap();
        assert!(error_ns >= 9_000_000 + S as u64, "{error_ns}");
    }

    #[test]
    fn what_nobody_steers_shows_how_the_clock_was_slewed() {
        let watch = watch(&[(1_000, 0, 0)]);
        // By a tenth: CLOCK_BOOTTIME goes with it.
        let (then, now) =
            (Clocks::of(0, [0, 0], 0), Clocks::of(1_100_000, [1_100_000, 1_000_000], 1_100_000));
        let steered = |at_ns, clocks: &Clocks| watch.error_of(at_ns, clocks).steered.unwrap();
        assert_eq!(steered(1_100_000, &now).moved_since(steered(0, &then)), 100_000);
        // Of a timestamp of a while ago, whose pace may have been another.
        let ago = steered(100_000, &now);
        assert_eq!((ago.low_ns, ago.high_ns), (100_000 - 501, 100_000 + 501));
        assert_eq!(now.step_since(&then), 0);
    }

    #[test]
    fn nothing_known_stays_so() {
        let mut watch = Watch::default();
        assert_eq!(watch.error_of(0, &Clocks::read()).nanoseconds, None);
        watch.take(&reading(None), Clocks::read());
        let now = Clocks::read();
        assert_eq!(watch.error_of(i64::MAX / 2, &now).nanoseconds, None);
    }

    #[test]
    fn the_clocks_of_the_kernel_can_be_read_together() {
        let (first, second) = (Clocks::read(), Clocks::read());
        assert!(first.boot_ns > 0 && second.boot_ns >= first.boot_ns);
        assert!(first.width_ns() >= 0);
    }
}
