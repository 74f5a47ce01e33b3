//! What happens when: a heap of times, first in, first out among equal times.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::Nanos;

/// Numbers of things that are due at some time.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    made: u64,
}

impl Timers {
    /// Notes that `what` is due `at` some time.
    pub(crate) fn add(&mut self, at: Nanos, what: u32) {
        self.heap.push(Reverse((at, self.made, what)));
        self.made += 1;
    }

    /// When the next thing is due.
    pub(crate) fn due(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the next thing out that is due at `now`, with the time for which it was noted.
    pub(crate) fn take(&mut self, now: Nanos) -> Option<(Nanos, u32)> {
        self.due().filter(|&at| at <= now)?;
        self.heap.pop().map(|Reverse((at, _, what))| (at, what))
    }
}
