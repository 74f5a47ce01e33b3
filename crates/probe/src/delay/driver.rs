//! The reflector in the driver, as the shell tends it.

use super::Config;
use crate::{
    interval::MaximumError,
    stamp::{
        ErrorEstimate,
        reflector::{SessionConfig, SessionKey},
    },
};
use datapath::stamp::{Clocks, Limit, SLACK, StampProgram};
use rustc_hash::FxHashSet;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// How often its clock is looked after, in nanoseconds.
pub(super) const CLOCK_NS: u64 = 250_000_000;
/// How long an update of the clock holds: for a thread that is held up.
const HOLDS: Duration = Duration::from_secs(1);

/// The program, and when its clock was last updated.
pub(super) struct Driver {
    program: Arc<StampProgram>,
    reported: Option<Instant>,
    sessions: FxHashSet<SessionKey>,
}

impl Driver {
    pub(super) fn new(program: Arc<StampProgram>) -> Self {
        Self { program, reported: None, sessions: FxHashSet::default() }
    }

    /// Updates the program's clock, if it is time to: by how much it will be off at most while the update
    /// holds. The program notices by itself that the clock was stepped or that updates ceased.
    pub(super) fn keep_clock(&mut self, error_of: &impl Fn(u64) -> MaximumError) {
        if self
            .reported
            .is_some_and(|reported| reported.elapsed().as_nanos() < u128::from(CLOCK_NS))
        {
            return;
        }
        self.reported = Some(Instant::now());
        match Clocks::read() {
            Ok(now) => {
                let until_ns = (now.system + HOLDS).as_nanos() as u64;
                let slack = MaximumError::known(SLACK.as_nanos() as u64);
                let error = error_of(until_ns).plus(slack);
                let estimate = ErrorEstimate::from_ns(error.nanoseconds);
                self.program.set_clock(&now, estimate.0, HOLDS);
            }
            Err(error) => {
                tracing::error!("the clock of the STAMP reflector in the driver: {error}")
            }
        }
    }

    /// Gives it a session that it can keep; whether it has it.
    pub(super) fn admit(&mut self, config: &SessionConfig) -> bool {
        if !Config::driver_keeps(config) {
            return false;
        }
        let limit = Limit { rate: config.rate.per_second.into(), burst: config.rate.burst.into() };
        let ssid = config.ssid.unwrap_or(0);
        match self.program.admit(config.address.to_canonical(), ssid, limit) {
            Ok(()) => {
                self.sessions.insert(config.session());
                true
            }
            Err(error) => {
                tracing::warn!("reflecting at the socket instead of in the driver: {error}");
                false
            }
        }
    }

    pub(super) fn remove(&mut self, session: &SessionKey) {
        if let (true, Some(ssid)) = (self.sessions.remove(session), session.ssid()) {
            self.program.remove(session.address(), ssid);
        }
    }

    /// How many it has.
    pub(super) fn sessions(&self) -> usize {
        self.sessions.len()
    }
}
