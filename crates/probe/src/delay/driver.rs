//! The reflector in the driver, as the shell tends it.

use super::Config;
use crate::{
    interval::MaximumError,
    stamp::{
        ErrorEstimate,
        reflector::{Agreement, SessionKey},
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
/// For how long what it is told of the clock holds: for a thread that is held up.
const HOLDS: Duration = Duration::from_secs(1);

/// The program, and when it was last told about its clock.
pub(super) struct Driver {
    program: Arc<StampProgram>,
    told: Option<Instant>,
    agreements: FxHashSet<SessionKey>,
}

impl Driver {
    pub(super) fn new(program: Arc<StampProgram>) -> Self {
        Self { program, told: None, agreements: FxHashSet::default() }
    }

    /// Tells the program about the clock, if it is time to: by how much it will be off at the most while that
    /// holds. That it was stepped, or that nothing more was told, the program sees by itself.
    pub(super) fn keep_clock(&mut self, error_of: &impl Fn(u64) -> MaximumError) {
        if self.told.is_some_and(|told| told.elapsed().as_nanos() < u128::from(CLOCK_NS)) {
            return;
        }
        self.told = Some(Instant::now());
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

    /// Gives it an agreement that it can keep; whether it has it.
    pub(super) fn agree(&mut self, agreement: &Agreement) -> bool {
        if !Config::driver_keeps(agreement) {
            return false;
        }
        let limit =
            Limit { rate: agreement.rate.per_second.into(), burst: agreement.rate.burst.into() };
        let ssid = agreement.ssid.unwrap_or(0);
        match self.program.agree(agreement.address.to_canonical(), ssid, limit) {
            Ok(()) => {
                self.agreements.insert(agreement.session());
                true
            }
            Err(error) => {
                tracing::warn!("reflecting at the socket instead of in the driver: {error}");
                false
            }
        }
    }

    pub(super) fn disagree(&mut self, session: &SessionKey) {
        if let (true, Some(ssid)) = (self.agreements.remove(session), session.ssid()) {
            self.program.disagree(session.address(), ssid);
        }
    }

    /// How many it has.
    pub(super) fn agreements(&self) -> usize {
        self.agreements.len()
    }
}
