//! Decides what is advertised to one upstream: a pure function of health, drain and time.
//!
//! | drain phase | healthy | advertised |
//! |---|---|---|
//! | serving | yes | announced, but not sooner after the last time than `hold` allows |
//! | warning | yes | announced with GRACEFUL_SHUTDOWN if it was announced, else nothing |
//! | serving or warning | no | nothing, at once |
//! | withdrawn, drained | any | nothing |
//!
//! `hold` is the least time between two changes upwards. A withdrawal never waits, so a check that
//! flaps costs the neighbours at most one announcement and one withdrawal in that time.

use crate::drain::Phase;
use bgp::Desired;
use std::time::Duration;

/// The decision for one upstream. All times are since the start of the service.
#[derive(Clone, Debug, Default)]
pub struct Announce {
    desired: Desired,
    last_up: Option<Duration>,
}

impl Announce {
    /// What to advertise now.
    pub fn desired(&self) -> Desired {
        self.desired
    }

    /// Decides again. Returns the new state when it changed.
    pub fn decide(
        &mut self,
        now: Duration,
        hold: Duration,
        phase: Phase,
        healthy: bool,
    ) -> Option<Desired> {
        let announced = self.desired != Desired::Withdrawn;
        let held = self.held_until(hold).is_some_and(|until| now < until);
        let next = match phase {
            _ if !healthy => Desired::Withdrawn,
            Phase::Serving if announced || !held => Desired::Announced { graceful_shutdown: false },
            Phase::Warning if announced => Desired::Announced { graceful_shutdown: true },
            _ => Desired::Withdrawn,
        };
        if next == self.desired {
            return None;
        }
        if !announced {
            self.last_up = Some(now);
        }
        self.desired = next;
        Some(next)
    }

    /// No change upwards before this time.
    pub fn held_until(&self, hold: Duration) -> Option<Duration> {
        self.last_up.map(|up| up + hold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Duration = Duration::from_secs(1);
    const PLAIN: Desired = Desired::Announced { graceful_shutdown: false };
    const LEAVING: Desired = Desired::Announced { graceful_shutdown: true };

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Time in ms, phase, health, and what must follow (`None`: no change).
    type Step = (u64, Phase, bool, Option<Desired>);

    fn check(steps: &[Step]) {
        let mut announce = Announce::default();
        for (i, (ms, phase, healthy, expected)) in steps.iter().enumerate() {
            let change = announce.decide(at(*ms), HOLD, *phase, *healthy);
            assert_eq!(change, *expected, "step {i} of {steps:?}");
        }
    }

    #[test]
    fn it_is_announced_only_while_healthy() {
        use Phase::Serving;
        check(&[
            (0, Serving, false, None),
            (100, Serving, true, Some(PLAIN)),
            (200, Serving, true, None),
            (5000, Serving, false, Some(Desired::Withdrawn)),
            (5100, Serving, true, Some(PLAIN)),
        ]);
    }

    #[test]
    fn a_flapping_check_is_held_but_a_withdrawal_never_waits() {
        use Phase::Serving;
        check(&[
            (0, Serving, true, Some(PLAIN)),
            (300, Serving, false, Some(Desired::Withdrawn)),
            (600, Serving, true, None),
            (700, Serving, false, None),
            (900, Serving, true, None),
            (1000, Serving, true, Some(PLAIN)),
            (1001, Serving, false, Some(Desired::Withdrawn)),
            (1999, Serving, true, None),
            (2000, Serving, true, Some(PLAIN)),
        ]);
    }

    #[test]
    fn flapping_for_a_minute_announces_once_a_second_at_the_most() {
        let mut announce = Announce::default();
        let ups = (0..60_000u64)
            .filter(|ms| {
                announce.decide(at(*ms), HOLD, Phase::Serving, (ms / 50) % 2 == 0) == Some(PLAIN)
            })
            .count();
        assert_eq!(ups, 60);
    }

    #[test]
    fn a_drain_warns_then_withdraws_and_can_be_reversed() {
        use Phase::*;
        check(&[
            (0, Serving, true, Some(PLAIN)),
            (2000, Warning, true, Some(LEAVING)),
            (3000, Withdrawn, true, Some(Desired::Withdrawn)),
            (4000, Drained, true, None),
            (5000, Serving, true, Some(PLAIN)),
        ]);
        check(&[
            (0, Serving, true, Some(PLAIN)),
            (100, Warning, true, Some(LEAVING)),
            (200, Serving, true, Some(PLAIN)),
            (300, Warning, true, Some(LEAVING)),
            (400, Warning, false, Some(Desired::Withdrawn)),
            (500, Warning, true, None),
        ]);
    }

    #[test]
    fn a_drained_node_announces_nothing_however_healthy() {
        use Phase::*;
        check(&[(0, Drained, true, None), (1, Withdrawn, true, None), (2, Warning, true, None)]);
    }
}
