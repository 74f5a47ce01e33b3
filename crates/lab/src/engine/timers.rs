//! What happens when: a radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, "Faster algorithms for the
//! shortest path problem", 1990).
//!
//! Time only goes forward, so a timer need not be sorted in when it is set. It goes to the bucket of the
//! highest bit in which its time differs from the time of the last timer that went off, and moves to
//! lower buckets as that comes nearer, a whole bucket at a time. With 100,000 timers this took 34 to 79
//! ns for setting and taking one, a binary heap 115 to 480, a wheel of microseconds 28 to 380 (decision
//! 128).
//!
//! At equal times packets keep the order in which they came in, and what was made of one packet the
//! order in which it was made, however often each was stopped before.

use crate::Nanos;

/// Buckets: one for each bit of a time, and one for timers of the last time.
const BUCKETS: usize = 65;

/// A timer: its time, its order among those of the same time, how many were set before it, and what it
/// is for.
type Timer = (Nanos, u64, u64, u32);

/// Numbers of things that are due at some time.
#[derive(Debug)]
pub(crate) struct Timers {
    /// In the first, timers that are due now, the next one last; in the others, in no order.
    buckets: [Vec<Timer>; BUCKETS],
    /// The earliest time in each bucket but the first.
    earliest: [Nanos; BUCKETS],
    /// A bit for each bucket but the first: whether there is something in it.
    used: u64,
    last: Nanos,
    made: u64,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            buckets: [const { Vec::new() }; BUCKETS],
            earliest: [Nanos(u64::MAX); BUCKETS],
            used: 0,
            last: Nanos::ZERO,
            made: 0,
        }
    }
}

impl Timers {
    /// Notes that `what` is due `at` some time; at that time it goes by its `order`.
    pub(crate) fn add(&mut self, at: Nanos, order: u64, what: u32) {
        let timer = (at, order, self.made, what);
        self.made += 1;
        match self.bucket(at) {
            0 => {
                let index = self.buckets[0].partition_point(|other| *other > timer);
                self.buckets[0].insert(index, timer);
            }
            bucket => self.put(bucket, timer),
        }
    }

    /// When the next thing is due.
    pub(crate) fn due(&self) -> Option<Nanos> {
        match self.buckets[0].last() {
            Some(&(at, ..)) => Some(at),
            None => self.first_used().map(|bucket| self.earliest[bucket]),
        }
    }

    /// Takes the next thing out that is due at `now`, with the time for which it was noted.
    pub(crate) fn take(&mut self, now: Nanos) -> Option<(Nanos, u32)> {
        self.due().filter(|&at| at <= now)?;
        if self.buckets[0].is_empty() {
            self.deal_out();
        }
        self.buckets[0].pop().map(|(at, _, _, what)| (at, what))
    }

    /// The bucket of a time; one that has gone by already is due now.
    fn bucket(&self, at: Nanos) -> usize {
        let different = at.max(self.last).0 ^ self.last.0;
        (u64::BITS - different.leading_zeros()) as usize
    }

    fn put(&mut self, bucket: usize, timer: Timer) {
        self.buckets[bucket].push(timer);
        if bucket > 0 {
            self.earliest[bucket] = self.earliest[bucket].min(timer.0);
            self.used |= 1 << (bucket - 1);
        }
    }

    fn first_used(&self) -> Option<usize> {
        (self.used != 0).then(|| self.used.trailing_zeros() as usize + 1)
    }

    /// Goes on to the next time there is, and deals its bucket out to those below.
    fn deal_out(&mut self) {
        let Some(bucket) = self.first_used() else { return };
        self.last = std::mem::replace(&mut self.earliest[bucket], Nanos(u64::MAX));
        self.used &= !(1 << (bucket - 1));
        let mut timers = std::mem::take(&mut self.buckets[bucket]);
        for timer in timers.drain(..) {
            self.put(self.bucket(timer.0), timer);
        }
        // Empty, but with its room: the next one needs none from the system.
        self.buckets[bucket] = timers;
        self.buckets[0].sort_unstable_by(|one, other| other.cmp(one));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against a sorted set: timers of near and far, equal and past times, taken as time goes by.
        #[test]
        fn timers_go_off_in_the_order_of_their_times(
            steps in proptest::collection::vec(
                (proptest::collection::vec((0u32..40, 0u64..8, 0u64..4), 0..8), 0u32..40), 1..60
            ),
        ) {
            let (mut timers, mut right, mut now, mut made) =
                (Timers::default(), BTreeSet::new(), 1u64 << 20, 0);
            for (added, wait) in steps {
                for (scale, more, order) in added {
                    let at = Nanos(now - 100 + (more << scale.min(30)));
                    timers.add(at, order, made as u32);
                    right.insert((at, order, made, made as u32));
                    made += 1;
                }
                now += 1 << wait.min(33);
                loop {
                    prop_assert_eq!(timers.due(), right.first().map(|&(at, ..)| at));
                    let next = right.first().filter(|&&(at, ..)| at.0 <= now).copied();
                    let next = next.inspect(|next| { right.remove(next); });
                    prop_assert_eq!(timers.take(Nanos(now)), next.map(|(at, _, _, what)| (at, what)));
                    if next.is_none() {
                        break;
                    }
                }
            }
        }
    }
}
