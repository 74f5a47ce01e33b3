//! What happens when: a heap of times. At equal times packets keep the order in which they came in, and
//! what was made of one packet the order in which it was made, however often each was stopped before.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::Nanos;

/// Numbers of things that are due at some time.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Nanos, u64, u64, u32)>>,
    made: u64,
}

impl Timers {
    /// Notes that `what` is due `at` some time; at that time it goes by its `order`.
    pub(crate) fn add(&mut self, at: Nanos, order: u64, what: u32) {
        self.heap.push(Reverse((at, order, self.made, what)));
        self.made += 1;
    }

    /// When the next thing is due.
    pub(crate) fn due(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the next thing out that is due at `now`, with the time for which it was noted.
    pub(crate) fn take(&mut self, now: Nanos) -> Option<(Nanos, u32)> {
        self.due().filter(|&at| at <= now)?;
        self.heap.pop().map(|Reverse((at, _, _, what))| (at, what))
    }
}
