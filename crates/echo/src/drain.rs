//! Takes a node out of service without losing a packet: a pure state machine.
//!
//! ```text
//!            drain()            quiet, or half of         quiet, or
//!                               the time is over          the time is over
//!   Serving ---------> Warning ------------------> Withdrawn -----------> Drained
//!      ^                  |                            |                     |
//!      +------------------+-------- undrain() ---------+---------------------+
//! ```
//!
//! While `Warning`, the routes carry GRACEFUL_SHUTDOWN, so that routers move to other paths while
//! this one still works (RFC 8326 section 4.1). Then they are withdrawn, and the node keeps answering
//! packets in flight until nothing has arrived for the time `quiet`. The whole drain is bounded in time:
//! traffic that does not end (from a host on the same link that does not route by BGP) must not keep an
//! operator from stopping a node.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The phase of a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// In service.
    #[default]
    Serving,
    /// Announced with GRACEFUL_SHUTDOWN, so that other paths are preferred.
    Warning,
    /// Withdrawn; what still arrives is answered.
    Withdrawn,
    /// Withdrawn and quiet: the node can be stopped.
    Drained,
}

impl Phase {
    /// The phase as one word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Warning => "draining: GRACEFUL_SHUTDOWN",
            Self::Withdrawn => "draining: withdrawn",
            Self::Drained => "drained",
        }
    }
}

/// How long the steps of a drain may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// It is quiet when nothing has arrived for this long.
    pub quiet: Duration,
    /// Bound for the whole drain.
    pub timeout: Duration,
}

/// The drain of a node. All times are since the start of the service.
#[derive(Clone, Debug)]
pub struct Drain {
    times: Times,
    phase: Phase,
    began: Duration,
    last_arrival: Duration,
    arrivals: u64,
}

impl Drain {
    /// Begins in service, or drained already.
    pub fn new(times: Times, drained: bool) -> Self {
        let phase = if drained { Phase::Drained } else { Phase::Serving };
        Self { times, phase, began: Duration::ZERO, last_arrival: Duration::ZERO, arrivals: 0 }
    }

    /// Replaces the times, also of a running drain.
    pub fn set_times(&mut self, times: Times) {
        self.times = times;
    }

    /// The current phase.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Begins a drain; one that has begun goes on. `announced` is whether a neighbour has a route to
    /// here; if not, there is nobody to warn.
    pub fn drain(&mut self, now: Duration, announced: bool) {
        if self.phase == Phase::Serving {
            self.phase = if announced { Phase::Warning } else { Phase::Withdrawn };
            (self.began, self.last_arrival) = (now, now);
        }
    }

    /// Returns to service from any phase.
    pub fn undrain(&mut self) {
        self.phase = Phase::Serving;
    }

    /// Takes the count of all arrivals so far; `withdrawn` is whether no upstream has a route to
    /// here any more. Returns whether the phase changed.
    pub fn tick(&mut self, now: Duration, arrivals: u64, withdrawn: bool) -> bool {
        if arrivals != self.arrivals {
            (self.arrivals, self.last_arrival) = (arrivals, now);
        }
        let quiet = now.saturating_sub(self.last_arrival) >= self.times.quiet;
        let spent = now.saturating_sub(self.began);
        let next = match self.phase {
            Phase::Warning if quiet || spent >= self.times.timeout / 2 => Phase::Withdrawn,
            Phase::Withdrawn if withdrawn && quiet || spent >= self.times.timeout => Phase::Drained,
            phase => phase,
        };
        if next == Phase::Withdrawn && self.phase == Phase::Warning {
            // The quiet that counts now is the one after the withdrawal.
            self.last_arrival = now;
        }
        let changed = next != self.phase;
        self.phase = next;
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { quiet: Duration::from_secs(1), timeout: Duration::from_secs(30) };

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Runs a drain from time 10 s in steps of 100 ms; a packet arrives in each step before `until`
    /// (ms after the drain began). Returns when each phase was reached, in ms after it began.
    fn run(announced: bool, until: u64, withdrawn_at: u64) -> Vec<(Phase, u64)> {
        let mut drain = Drain::new(TIMES, false);
        let mut arrivals = 0;
        for now in (0..10_000).step_by(100) {
            arrivals += 1;
            assert!(!drain.tick(at(now), arrivals, false), "not asked to drain");
        }
        drain.drain(at(10_000), announced);
        let mut phases = vec![(drain.phase(), 0)];
        for ms in (0..60_000).step_by(100) {
            arrivals += u64::from(ms < until);
            if drain.tick(at(10_000 + ms), arrivals, ms >= withdrawn_at) {
                phases.push((drain.phase(), ms));
            }
        }
        phases
    }

    #[test]
    fn each_phase_ends_when_it_is_quiet() {
        use Phase::*;
        assert_eq!(run(true, 300, 0), [(Warning, 0), (Withdrawn, 1200), (Drained, 2200)]);
    }

    #[test]
    fn half_of_the_time_is_for_the_warning() {
        use Phase::*;
        assert_eq!(run(true, 16_000, 0), [(Warning, 0), (Withdrawn, 15_000), (Drained, 16_900)]);
    }

    #[test]
    fn arrivals_that_do_not_end_do_not_stop_it() {
        use Phase::*;
        assert_eq!(run(true, 60_000, 0), [(Warning, 0), (Withdrawn, 15_000), (Drained, 30_000)]);
    }

    #[test]
    fn without_a_route_nobody_is_warned() {
        use Phase::*;
        assert_eq!(run(false, 0, 0), [(Withdrawn, 0), (Drained, 1000)]);
    }

    #[test]
    fn it_is_not_over_before_the_withdrawal_is_out() {
        use Phase::*;
        assert_eq!(run(true, 0, 5000), [(Warning, 0), (Withdrawn, 1000), (Drained, 5000)]);
        // An upstream that cannot be reached at all: the time bounds it.
        assert_eq!(run(true, 0, 90_000), [(Warning, 0), (Withdrawn, 1000), (Drained, 30_000)]);
    }

    #[test]
    fn undrain_goes_back_from_anywhere() {
        for steps in [0, 5, 15, 25] {
            let mut drain = Drain::new(TIMES, false);
            drain.drain(at(0), true);
            for step in 0..steps {
                drain.tick(at(step * 100), 0, true);
            }
            drain.undrain();
            assert!(!drain.tick(at(60_000), 7, true), "after {steps} steps");
            assert_eq!(drain.phase(), Phase::Serving);
            // And a second drain starts from the beginning.
            drain.drain(at(60_000), true);
            assert!(!drain.tick(at(60_500), 7, true));
            assert_eq!(drain.phase(), Phase::Warning);
        }
    }

    #[test]
    fn a_second_drain_does_not_prolong_the_first() {
        let mut drain = Drain::new(TIMES, false);
        drain.drain(at(0), true);
        drain.drain(at(900), true);
        assert!(drain.tick(at(1000), 0, false));
    }

    #[test]
    fn a_node_can_start_drained() {
        let mut drain = Drain::new(TIMES, true);
        assert!(!drain.tick(at(0), 100, true));
        assert_eq!(drain.phase(), Phase::Drained);
        drain.undrain();
        assert_eq!(drain.phase(), Phase::Serving);
    }
}
