//! The reflector in the driver, as the shell tends it.

use super::Config;
use crate::{
    interval::MaximumError,
    stamp::{
        ErrorEstimate,
        reflector::{Agreement, SessionKey},
    },
};
use datapath::stamp::{Limit, StampProgram};
use rustc_hash::FxHashSet;
use std::{sync::Arc, time::Instant};

/// How often its clock is looked after, in nanoseconds.
pub(super) const CLOCK_NS: u64 = 1_000_000_000;

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

    /// Tells the program about the clock, if it is time to.
    pub(super) fn keep_clock(&mut self, error: MaximumError) {
        if self.told.is_some_and(|told| told.elapsed().as_nanos() < u128::from(CLOCK_NS)) {
            return;
        }
        self.told = Some(Instant::now());
        if let Err(error) = self.program.set_clock(ErrorEstimate::from_ns(error.nanoseconds).0) {
            tracing::error!("the clock of the STAMP reflector in the driver: {error}");
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
