//! When counters are read.

use datapath::gate::Walk;
use std::time::{Duration, Instant};

/// Where the rounds are.
#[derive(Debug)]
pub(super) struct Rounds {
    pub(super) walk: Walk,
    /// When the last one began, and the next one does.
    pub(super) last: Instant,
    pub(super) next: Instant,
    /// The round that is not at its end: the time since the one before, and what it took until now.
    pub(super) now: Option<(Duration, Duration)>,
}

impl Rounds {
    pub(super) fn new(walk: Walk) -> Self {
        let now = Instant::now();
        Self { walk, last: now, next: now, now: None }
    }

    /// Whether there is more to do at once.
    pub(super) fn are_due(&self) -> bool {
        self.now.is_some() || Instant::now() >= self.next
    }
}
