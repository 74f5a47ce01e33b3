//! When the next bytes may leave, for a rate that is not exceeded.

use std::time::Duration;

/// What was missed for longer than this is not made up for, so that no burst follows a pause.
const LONGEST_DEBT: Duration = Duration::from_millis(20);

/// Lets so many bytes a second pass. Moments are times since any beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacer {
    bytes_per_second: f64,
    /// When what has passed so far was due to have passed.
    due: Duration,
}

impl Pacer {
    pub(super) fn new(bytes_per_second: f64) -> Self {
        Self { bytes_per_second, due: Duration::ZERO }
    }

    /// How long to wait before the next bytes.
    pub(super) fn wait(&mut self, now: Duration) -> Duration {
        self.due = self.due.max(now.saturating_sub(LONGEST_DEBT));
        self.due.saturating_sub(now)
    }

    /// How many bytes may pass at once, so that they are less than `time` of the rate.
    pub(super) fn bytes_in(&self, time: Duration) -> f64 {
        self.bytes_per_second * time.as_secs_f64()
    }

    /// So many bytes that are due by now, and not yet passed.
    pub(super) fn owed(&mut self, now: Duration) -> f64 {
        self.wait(now);
        self.bytes_in(now.saturating_sub(self.due))
    }

    /// Bytes have passed.
    pub(super) fn passed(&mut self, bytes: usize) {
        // The rate is at least 125 bytes a second: no overflow.
        self.due += Duration::from_secs_f64(bytes as f64 / self.bytes_per_second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_held_and_a_pause_gives_no_burst() {
        let mut pacer = Pacer::new(1000.0);
        let (mut now, mut passed) = (Duration::ZERO, 0);
        while now < Duration::from_secs(10) {
            now += pacer.wait(now);
            pacer.passed(100);
            passed += 100;
        }
        assert!((10_000..=10_200).contains(&passed), "{passed}");
        // An hour later one may send 20 ms' worth at once, which is less than the next hundred bytes.
        now += Duration::from_secs(3600);
        assert_eq!(pacer.wait(now), Duration::ZERO);
        assert!((19.0..21.0).contains(&pacer.owed(now)), "{}", pacer.owed(now));
        pacer.passed(100);
        assert!(pacer.wait(now) >= Duration::from_millis(79));
    }
}
