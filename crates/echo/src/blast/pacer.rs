//! When each packet is due.
//!
//! Packet `n` of a run is due `n / rate` seconds after its start, so the rate is exact over the run
//! however unevenly a thread wakes up: what is overdue goes out at once. Packets are distributed over
//! the threads in turn.

use std::time::Duration;

/// The timetable of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    rate: Option<u64>,
    threads: u64,
    thread: u64,
    total: u64,
}

impl Pacer {
    /// The timetable of thread `thread` of `threads`, which together send `total` packets at `rate`
    /// packets a second; without a rate all are due at once.
    pub fn new(rate: Option<u64>, total: u64, thread: u32, threads: u32) -> Self {
        let (thread, threads) = (u64::from(thread), u64::from(threads));
        let mine = (total + threads - 1 - thread.min(total + threads - 1)) / threads;
        Self { rate, threads, thread, total: mine }
    }

    /// Packets of this thread.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many packets of this thread are due when this time has gone by.
    pub fn due(&self, elapsed: Duration) -> u64 {
        let Some(rate) = self.rate else { return self.total };
        let last = elapsed.as_nanos() * u128::from(rate) / 1_000_000_000;
        let Some(mine) = last.checked_sub(u128::from(self.thread)) else { return 0 };
        let due = mine / u128::from(self.threads) + 1;
        u64::try_from(due).map_or(self.total, |due| due.min(self.total))
    }

    /// When packet `number` of this thread is due.
    pub fn when(&self, number: u64) -> Duration {
        let Some(rate) = self.rate else { return Duration::ZERO };
        let index = u128::from(number) * u128::from(self.threads) + u128::from(self.thread);
        let nanoseconds = (index * 1_000_000_000).div_ceil(u128::from(rate));
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_thousand_a_second() {
        let pacer = Pacer::new(Some(1000), 5, 0, 1);
        assert_eq!(pacer.due(Duration::ZERO), 1);
        assert_eq!(pacer.due(Duration::from_nanos(999_999)), 1);
        assert_eq!(pacer.due(Duration::from_millis(1)), 2);
        assert_eq!(pacer.due(Duration::from_secs(9)), 5);
        assert_eq!(pacer.when(4), Duration::from_millis(4));
    }

    #[test]
    fn without_a_rate_all_are_due() {
        assert_eq!(Pacer::new(None, 7, 0, 1).due(Duration::ZERO), 7);
    }

    proptest! {
        /// Over any time, all threads together have sent exactly what the rate allows.
        #[test]
        fn threads_add_up(rate in 1u64..5_000_000, total in 1u64..1 << 40, threads in 1u32..64,
                          nanoseconds in 0u64..1 << 50) {
            let pacers: Vec<_> =
                (0..threads).map(|thread| Pacer::new(Some(rate), total, thread, threads)).collect();
            prop_assert_eq!(pacers.iter().map(Pacer::total).sum::<u64>(), total);
            let elapsed = Duration::from_nanos(nanoseconds);
            let due: u64 = pacers.iter().map(|pacer| pacer.due(elapsed)).sum();
            let right = u128::from(nanoseconds) * u128::from(rate) / 1_000_000_000 + 1;
            prop_assert_eq!(u128::from(due), right.min(u128::from(total)));
        }

        /// A packet is due from the time on that `when` gives, and not before.
        #[test]
        fn when_and_due_agree(rate in 1u64..1_000_000_000, number in 0u64..1 << 30,
                              threads in 1u32..8) {
            let pacer = Pacer::new(Some(rate), u64::MAX / 2, threads - 1, threads);
            let when = pacer.when(number);
            prop_assert!(pacer.due(when) > number);
            if !when.is_zero() {
                prop_assert!(pacer.due(when - Duration::from_nanos(1)) <= number);
            }
        }
    }
}
