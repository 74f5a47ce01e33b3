//! By which time records become old, where the clock may be wrong.

use std::time::Duration;

/// No clock that is right shows an earlier time: 2020-01-01T00:00:00Z, since 1970.
const EARLIEST: Duration = Duration::from_secs(1_577_836_800);

/// The time by which age is counted, given the one `before`, `elapsed` after it; times since 1970.
///
/// It is the clock's, but goes at most twice as fast as time passes: what a clock that is ahead takes for old
/// goes only when the days that it is ahead are over. After a time in which nobody counted it is late and
/// catches up. A clock that cannot be right is not heard.
pub fn now(clock: Duration, before: Option<Duration>, elapsed: Duration) -> Duration {
    match before.filter(|before| is_plausible(*before)) {
        Some(before) if !is_plausible(clock) => before,
        Some(before) => clock.min(before.saturating_add(elapsed.saturating_mul(2))),
        None => clock,
    }
}

/// Whether a clock that is right can show this time, since 1970.
pub fn is_plausible(time: Duration) -> bool {
    time >= EARLIEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_become_old_at_most_twice_as_fast_as_time_passes() {
        const DAY: Duration = Duration::from_secs(86_400);
        let today = EARLIEST + 300 * DAY;
        let rows = [
            // Clock, time before, elapsed, time now.
            (today, None, DAY, today),
            (today, Some(today - DAY), DAY, today),
            (today, Some(today - 5 * DAY), DAY, today - 3 * DAY),
            (today + 31 * DAY, Some(today), DAY, today + 2 * DAY),
            (today + 31 * DAY, Some(today), Duration::ZERO, today),
            // A clock that was ahead is right again.
            (today, Some(today + 31 * DAY), DAY, today),
            (Duration::ZERO, Some(today), DAY, today),
            (Duration::ZERO, None, DAY, Duration::ZERO),
            // One that was counted by such a clock is none.
            (today, Some(DAY), DAY, today),
        ];
        for (clock, before, elapsed, expected) in rows {
            assert_eq!(now(clock, before, elapsed), expected, "{clock:?} {before:?}");
        }
    }
}
