//! Rounds of counters: everything that the kernel has counted is read about once a second, a part at a
//! time, so that packets and the operator never wait for a large table.

use super::{
    kernel,
    worker::{TICK, Worker, has_limits},
};
use datapath::{clock::monotonic_ns, gate::CacheKey};
use std::time::{Duration, Instant};

/// Counters that are older are read again for who asks.
const REFRESH: Duration = Duration::from_millis(500);
/// Rounds take at most one part in so many of the time.
const SHARE: u32 = 20;

impl Worker {
    /// Reads a part of the counters; at the end of a round, forgets what is silent or gone. Whether that
    /// was the last part.
    pub(super) fn part(&mut self) -> bool {
        let began = Instant::now();
        let (interval, spent) = self.rounds.now.unwrap_or_else(|| {
            self.core.begin_round();
            let interval = began.duration_since(self.rounds.last);
            self.rounds.last = began;
            (interval, Duration::ZERO)
        });
        let now_ns = monotonic_ns();
        self.core.set_now(now_ns);
        let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        let core = &mut self.core;
        let more = self.rounds.walk.part(|key, flow| {
            core.count(&kernel::counted(key, flow, now_ns), interval_ns);
        });
        self.adopt();
        self.carry_out(Vec::new());
        match more {
            Ok(true) => {
                self.rounds.now = Some((interval, spent + began.elapsed()));
                return false;
            }
            Ok(false) => {
                self.core.end_round();
                self.managers_retain();
                self.carry_out(Vec::new());
            }
            Err(error) => self.problems.report("the table of flows cannot be read", &error),
        }
        self.rounds.now = None;
        self.rounds.next = Instant::now() + TICK.max((spent + began.elapsed()) * SHARE);
        self.news();
        if self.attempts.are_due() {
            let count = |key: &CacheKey| self.table.refused(key).ok().flatten();
            self.attempts.write(count, self.config.gate.refuse_for, &self.log);
        }
        if self.shapers.is_open()
            && !has_limits(&self.config.gate, &self.runtime_rules)
            && self.core.classes().list().next().is_none()
        {
            // No packet is sent to queue where no queue is any more.
            self.configure(None);
            self.shapers.close();
        }
        let classes = self.core.classes();
        if self.internal.look(&self.gate, &mut self.shapers, classes, &mut self.problems)
            && !self.shapers.is_open()
            && has_limits(&self.config.gate, &self.runtime_rules)
            && let Err(error) = self.open_shapers()
        {
            self.problems.report("a limit is not in force", &error);
        }
        true
    }

    /// Reads all counters, or what is missing of a round that has begun.
    pub(super) fn round(&mut self) {
        while !self.part() {
            self.beat.give(&self.gate, &mut self.problems);
        }
    }

    /// Counters for who asks, unless they are those of a moment ago.
    pub(super) fn refresh(&mut self) {
        if self.rounds.now.is_some() || self.rounds.last.elapsed() > REFRESH {
            self.round();
        }
    }
}
