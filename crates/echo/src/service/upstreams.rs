//! The announcers, and for each the decision what it announces.

use super::kernel::Kernel;
use crate::{
    announce::Announce,
    config::AnycastConfig,
    drain::Phase,
    health::Health,
    status::{BfdStatus, UpstreamStatus, WithdrawalStatus},
};
use bgp::{Advertised, Announcer, Desired, announcer::StartError, bfd::Listener, config::Upstream};
use std::{
    net::IpAddr,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// A moment, on the monotonic clock and on the clock of the day.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) instant: Instant,
    system: SystemTime,
}

impl Moment {
    pub(super) fn now() -> Self {
        Self { instant: Instant::now(), system: SystemTime::now() }
    }

    /// Seconds since 1970 of an instant near this moment.
    pub(super) fn unix(self, of: Instant) -> f64 {
        let at = match of.checked_duration_since(self.instant) {
            Some(after) => self.system + after,
            None => self.system - self.instant.duration_since(of),
        };
        at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }
}

/// A withdrawal that a fault caused.
#[derive(Clone, Debug)]
struct Withdrawal {
    fault: String,
    detected: Instant,
    requested: Instant,
    written: Option<Instant>,
}

/// One upstream.
#[derive(Debug)]
pub(super) struct Slot {
    announcer: Announcer,
    announce: Announce,
    /// Name of the interface by which it is reached, if that is one of ours.
    through: Option<String>,
    held_by: Option<String>,
    withdrawal: Option<Withdrawal>,
}

impl Slot {
    /// Starts to work for an upstream; nothing is announced yet.
    pub(super) fn start(
        upstream: &Upstream,
        config: &AnycastConfig,
        bfd: &Listener,
    ) -> Result<Self, StartError> {
        Ok(Self {
            announcer: Announcer::start(upstream, config.prefixes.clone(), bfd)?,
            announce: Announce::default(),
            through: None,
            held_by: None,
            withdrawal: None,
        })
    }

    pub(super) fn upstream(&self) -> &Upstream {
        self.announcer.upstream()
    }

    /// Changes to new settings of the upstream, if that needs no new session; returns whether it did.
    pub(super) fn adopt(&mut self, upstream: &Upstream) -> bool {
        self.announcer.adopt(upstream)
    }

    pub(super) fn set_prefixes(&self, config: &AnycastConfig) {
        self.announcer.set_prefixes(config.prefixes.clone());
    }

    /// Address of the neighbour of an embedded session.
    pub(super) fn peer(&self) -> Option<IpAddr> {
        match self.upstream() {
            Upstream::Bgp(bgp) => Some(bgp.peer),
            Upstream::Bird(_) => None,
        }
    }

    /// Finds the interface and the next hop by which the neighbour is reached.
    pub(super) async fn locate(
        &mut self,
        kernel: &Kernel,
        name_of: impl Fn(u32) -> Option<String>,
    ) -> Option<(u32, IpAddr)> {
        let route = match self.peer() {
            Some(peer) => kernel.route_to(peer).await,
            None => None,
        };
        let direct = route.is_some_and(|route| Some(route.next_hop) == self.peer());
        // When a link goes down, the route to a neighbour on it may lead elsewhere for a while; that is
        // no reason to depend on another interface.
        if let Some(route) = route
            && (direct || self.through.is_none())
        {
            self.through = name_of(route.interface).or(self.through.take());
        }
        route.map(|route| (route.interface, route.next_hop))
    }

    /// Decides what to advertise, and advertises it. `detected` is when the cause was seen.
    pub(super) fn decide(
        &mut self,
        now: Duration,
        hold: Duration,
        phase: Phase,
        health: &Health,
        detected: Instant,
    ) {
        let obstacle = health.obstacle(self.through.as_deref());
        let fault = obstacle.map(|(check, record)| match record.last {
            Some(_) => format!("check {check}: {}", record.detail),
            None => format!("check {check}: no result yet"),
        });
        let change = self.announce.decide(now, hold, phase, fault.is_none());
        self.held_by = match (&fault, self.announce.desired(), phase) {
            (Some(fault), ..) => Some(fault.clone()),
            (None, Desired::Withdrawn, Phase::Serving) => {
                Some("held back after the last change (anycast.health.hold)".into())
            }
            (None, Desired::Withdrawn, phase) => Some(phase.word().into()),
            _ => None,
        };
        if let Some(desired) = change {
            self.announcer.set(desired);
            let requested = Instant::now();
            let upstream = self.announcer.name();
            match (desired, fault) {
                (Desired::Withdrawn, Some(fault)) => {
                    tracing::warn!(upstream, fault, "withdrawing");
                    let written = None;
                    self.withdrawal = Some(Withdrawal { fault, detected, requested, written });
                }
                _ => tracing::info!(upstream, ?desired, "announcement changes"),
            }
        }
        if let Some(withdrawal) = &mut self.withdrawal
            && withdrawal.written.is_none()
        {
            let written = self.announcer.observed().written;
            withdrawal.written = written.filter(|written| *written >= withdrawal.requested);
        }
    }

    /// Whether the neighbour has, or may have, a route to here.
    pub(super) fn may_be_announced(&self) -> bool {
        self.announce.desired() != Desired::Withdrawn
            || self.announcer.observed().advertised != Advertised::Nothing
    }

    /// Why the advertisement is not what it should be, in one sentence.
    pub(super) fn problem(&self) -> Option<String> {
        let observed = self.announcer.observed();
        if observed.advertised.is(self.announce.desired()) {
            return None;
        }
        let why = observed.problem.unwrap_or_else(|| format!("session {}", observed.state));
        Some(format!("upstream {}: {why}", self.announcer.name()))
    }

    pub(super) fn status(&self, moment: Moment) -> UpstreamStatus {
        let observed = self.announcer.observed();
        let mut prefixes: Vec<_> = observed.routes.iter().map(|route| route.prefix).collect();
        prefixes.sort();
        UpstreamStatus {
            name: self.announcer.name().to_owned(),
            session: observed.state.to_string(),
            bfd: observed.bfd.map(|bfd| BfdStatus {
                state: bfd.state.to_string(),
                diagnostic: bfd.diagnostic.to_string(),
                detection_seconds: bfd.detection_time.map(|time| time.as_secs_f64()),
                failures: bfd.failures,
            }),
            desired: match self.announce.desired() {
                Desired::Withdrawn => "nothing",
                Desired::Announced { graceful_shutdown: false } => "all",
                Desired::Announced { graceful_shutdown: true } => "all, GRACEFUL_SHUTDOWN",
            }
            .into(),
            advertised: match observed.advertised {
                Advertised::Nothing => "nothing",
                Advertised::Partly => "some",
                Advertised::All { graceful_shutdown: false } => "all",
                Advertised::All { graceful_shutdown: true } => "all, GRACEFUL_SHUTDOWN",
                Advertised::Unknown => "unknown",
            }
            .into(),
            since: observed.written.map(|written| moment.unix(written)),
            prefixes,
            problem: observed.problem,
            held_by: self.held_by.clone(),
            withdrawal: self.withdrawal.as_ref().map(|withdrawal| WithdrawalStatus {
                fault: withdrawal.fault.clone(),
                detected: moment.unix(withdrawal.detected),
                requested: moment.unix(withdrawal.requested),
                written: withdrawal.written.map(|written| moment.unix(written)),
            }),
        }
    }

    /// Withdraws and ends the session.
    pub(super) async fn stop(self) {
        self.announcer.stop().await;
    }
}
