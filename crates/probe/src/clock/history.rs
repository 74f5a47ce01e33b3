//! Since when a clock runs on by itself.
//!
//! chrony says when it last set the clock. The kernel does not: but its maximum error grows by its own rule,
//! and whenever it is less than that rule makes it, a daemon has set the clock in between.

use crate::{
    interval::{MaximumError, RATE_PPM},
    record,
};

/// The kernel's figures have steps of a microsecond, and those of this rule of half of one.
const ROUNDING_NS: u64 = 2_000;

/// The kernel's clock is left to itself when no daemon has set it for two of the longest intervals that
/// they leave between two polls (2^10 s, RFC 5905, section 7.3).
const HOLDOVER_S: f64 = 2048.0;

/// What is remembered of this station's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    /// The last maximum error and when it was read, by CLOCK_BOOTTIME.
    last: Option<(i64, MaximumError)>,
    /// When the clock was last seen set.
    updated_ns: Option<i64>,
}

impl History {
    /// Takes what was read, `said_ns` being the figure that grows by the rule, and adds what only the past
    /// shows.
    pub(super) fn take(
        &mut self,
        boot_ns: i64,
        reported_ns: Option<u64>,
        clock: &mut record::Clock,
    ) {
        let error = MaximumError::of(reported_ns);
        if let Some(since_s) = clock.since_update_seconds {
            self.updated_ns = Some(boot_ns.saturating_sub((since_s * 1e9) as i64));
        } else if let Some(error_ns) = error.nanoseconds
            && let Some((then_ns, last)) = self.last
        {
            let elapsed_ns = boot_ns.saturating_sub(then_ns).max(0).unsigned_abs();
            let grown_ns = elapsed_ns / (1_000_000 / RATE_PPM);
            let left_alone = last.plus(MaximumError::known(grown_ns)).nanoseconds;
            if left_alone.is_none_or(|left_alone| error_ns.saturating_add(ROUNDING_NS) < left_alone)
            {
                self.updated_ns = Some(boot_ns);
            }
        }
        self.last = Some((boot_ns, error));
        if clock.since_update_seconds.is_none() {
            let since = self.updated_ns.map(|at_ns| boot_ns.saturating_sub(at_ns) as f64 / 1e9);
            clock.since_update_seconds = since;
            // A clock of which nothing is promised does not hold anything over.
            clock.holdover = error.nanoseconds.is_some() && since.is_some_and(|s| s > HOLDOVER_S);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn kernel(error: Option<u64>) -> record::Clock {
        record::Clock { maximum_error_ns: error, ..record::Clock::default() }
    }

    fn take(history: &mut History, at_s: i64, mut clock: record::Clock) -> (Option<f64>, bool) {
        history.take(at_s * S, clock.maximum_error_ns, &mut clock);
        (clock.since_update_seconds, clock.holdover)
    }

    #[test]
    fn an_error_that_only_grows_by_the_rule_was_not_set() {
        let mut history = History::default();
        assert_eq!(take(&mut history, 0, kernel(Some(100_000))), (None, false));
        assert_eq!(take(&mut history, 1, kernel(Some(600_000))), (None, false));
        assert_eq!(take(&mut history, 3, kernel(Some(1_600_000))), (None, false));
        // Grown less than by the rule: set.
        assert_eq!(take(&mut history, 4, kernel(Some(1_700_000))), (Some(0.0), false));
        assert_eq!(take(&mut history, 5, kernel(Some(2_200_000))), (Some(1.0), false));
        assert_eq!(take(&mut history, 6, kernel(Some(50_000))), (Some(0.0), false));
        let later = 6 + 2049;
        let error = Some(50_000 + 2049 * 500_000);
        assert_eq!(take(&mut history, later, kernel(error)), (Some(2049.0), true));
        // The kernel has given up: how long ago is still known.
        assert_eq!(take(&mut history, later + 1, kernel(None)), (Some(2050.0), false));
        assert_eq!(take(&mut history, later + 2, kernel(Some(1_000))), (Some(0.0), false));
    }

    #[test]
    fn what_the_daemon_says_counts_and_is_remembered() {
        let mut history = History::default();
        let chrony = record::Clock {
            since_update_seconds: Some(7.0),
            holdover: true,
            ..kernel(Some(1_000))
        };
        assert_eq!(take(&mut history, 100, chrony), (Some(7.0), true));
        assert_eq!(take(&mut history, 103, kernel(None)), (Some(10.0), false));
    }
}
