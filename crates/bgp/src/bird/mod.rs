//! The announcer that steers BIRD 2.
//!
//! Static protocols of BIRD hold the prefixes; enabling one announces them, disabling it withdraws them.
//! What BIRD's BGP protocols then export is read back, and only that counts as announced. bird.conf
//! needs this (docs/decisions/031-bird.md has it with both families):
//!
//! ```text
//! protocol static nigh { disabled; ipv4; route 50.0.0.0/8 blackhole; }
//! protocol static nigh_gshut { disabled; ipv4 { preference 250; }; route 50.0.0.0/8 blackhole; }
//! filter to_isp_a {
//!   if proto = "nigh_gshut" then bgp_community.add((65535, 0));
//!   if proto ~ "nigh*" then accept;
//!   reject;
//! }
//! ```
//!
//! `disabled` matters: a BIRD that restarts must not announce a node before a probe has seen it answer.

mod client;
pub mod reply;

use crate::{
    config::BirdUpstream,
    observed::{Advertised, AdvertisedRoute, Counters, Desired, Observed, Order, State},
};
use client::{BirdError, Client};
use ipnet::IpNet;
use reply::Reply;
use std::time::{Duration, Instant};
use tokio::{
    sync::{oneshot, watch},
    time::sleep,
};

/// The interval of checks while BIRD exports what is desired.
const STEADY: Duration = Duration::from_secs(1);
/// The interval while it does not.
const FAST: Duration = Duration::from_millis(20);
/// For how long after a change the shorter interval is used.
const FAST_FOR: Duration = Duration::from_secs(5);
/// The pause before the control socket is opened again.
const PAUSE: Duration = Duration::from_millis(250);

/// The announcer's task.
pub(crate) struct Announcer {
    config: BirdUpstream,
    seen: Observed,
    /// The last order that was carried out, and when.
    done: Option<(Desired, Instant)>,
}

impl Announcer {
    pub(crate) fn new(config: &BirdUpstream) -> Self {
        Self { config: config.clone(), seen: Observed::default(), done: None }
    }

    /// Runs until `stop` is sent or dropped, or it panics, then withdraws.
    pub(crate) async fn run(
        mut self,
        mut orders: watch::Receiver<Order>,
        publish: watch::Sender<Observed>,
        stop: oneshot::Receiver<()>,
    ) {
        let mut client = None;
        let follow = self.follow(&mut client, &mut orders, &publish, stop);
        if panics::caught_here(follow).await.is_none() {
            // The connection may be in the middle of a reply.
            (self, client) = (Self::new(&self.config), None);
        }
        let order = Order { desired: Desired::Withdrawn, ..orders.borrow().clone() };
        if let Err(error) = self.turn(&mut client, &order).await {
            tracing::warn!(upstream = %self.config.name, %error, "BIRD may still announce");
            self.lost(&error);
        }
        self.show(&publish);
    }

    /// Carries out orders until it is stopped.
    async fn follow(
        &mut self,
        client: &mut Option<Client>,
        orders: &mut watch::Receiver<Order>,
        publish: &watch::Sender<Observed>,
        mut stop: oneshot::Receiver<()>,
    ) {
        loop {
            panics::point("echo-bird");
            let order = orders.borrow_and_update().clone();
            let pause = match self.turn(client, &order).await {
                Ok(()) => self.settled(&order),
                Err(error) => {
                    *client = None;
                    self.lost(&error);
                    PAUSE
                }
            };
            self.show(publish);
            tokio::select! {
                biased;
                _ = &mut stop => return,
                Ok(()) = orders.changed() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Carries an order out and reads back the result.
    async fn turn(&mut self, client: &mut Option<Client>, order: &Order) -> Result<(), BirdError> {
        let client = match client {
            Some(client) => client,
            None => client.insert(Client::open(&self.config.socket).await?),
        };
        let changed = self.steer(client, order.desired).await?;
        if changed || self.done.is_none_or(|(desired, _)| desired != order.desired) {
            self.done = Some((order.desired, Instant::now()));
        }
        if changed {
            self.seen.written = Some(Instant::now());
            self.seen.counters.updates_out += 1;
        }
        let state = self.state(client).await?;
        self.count(state);
        self.seen.routes = self.exported(client, &order.prefixes).await?;
        self.seen.advertised = Observed::summary(&self.seen.routes, &order.prefixes);
        Ok(())
    }

    /// Enables first and disables then, so that a change never leaves a moment without a route.
    async fn steer(&self, client: &mut Client, desired: Desired) -> Result<bool, BirdError> {
        let plain = &self.config.protocol.0;
        let graceful = &self.config.graceful_shutdown.0;
        let none: &Vec<String> = &Vec::new();
        let (enable, disable) = match desired {
            Desired::Withdrawn => (none, [plain, graceful]),
            Desired::Announced { graceful_shutdown: true } if !graceful.is_empty() => {
                (graceful, [plain, none])
            }
            Desired::Announced { .. } => (plain, [graceful, none]),
        };
        let mut changed = false;
        for name in enable {
            // 0011: enabled; 0010: already enabled.
            let reply = client.command(&format!("enable {name}")).await?;
            changed |= reply.texts(11).count() > 0;
        }
        for name in disable.into_iter().flatten() {
            // 0009: disabled; 0008: already disabled.
            let reply = client.command(&format!("disable {name}")).await?;
            changed |= reply.texts(9).count() > 0;
        }
        Ok(changed)
    }

    /// The state of the BGP protocols: of several the least.
    async fn state(&self, client: &mut Client) -> Result<State, BirdError> {
        let mut least = State::Established;
        for name in &self.config.export.0 {
            let reply = client.command(&format!("show protocols {name}")).await?;
            least = least.min(session_state(&reply));
        }
        Ok(least)
    }

    /// What is exported of the prefixes.
    async fn exported(
        &self,
        client: &mut Client,
        prefixes: &[IpNet],
    ) -> Result<Vec<AdvertisedRoute>, BirdError> {
        let mut routes = Vec::new();
        for prefix in prefixes {
            for name in &self.config.export.0 {
                // A protocol that is down, or does not carry the family, is answered with an error.
                let command = format!("show route {prefix} export {name} all");
                let reply = client.ask(&command).await?;
                if let Some(graceful_shutdown) = exported(&reply, prefix) {
                    let before = self.seen.routes.iter().find(|route| {
                        route.prefix == *prefix && route.graceful_shutdown == graceful_shutdown
                    });
                    let at = before.map_or_else(Instant::now, |route| route.at);
                    routes.push(AdvertisedRoute { prefix: *prefix, graceful_shutdown, at });
                    break;
                }
            }
        }
        Ok(routes)
    }

    /// Notes what differs from the order, and returns the pause before the next check.
    fn settled(&mut self, order: &Order) -> Duration {
        let graceful = order.desired == Desired::Announced { graceful_shutdown: true };
        let effective = if graceful && self.config.graceful_shutdown.0.is_empty() {
            Desired::Announced { graceful_shutdown: false }
        } else {
            order.desired
        };
        if self.seen.advertised.is(effective) {
            self.seen.problem = (effective != order.desired).then(|| {
                "GRACEFUL_SHUTDOWN is not sent; set graceful_shutdown to static protocols whose routes BIRD's export filter marks".into()
            });
            return STEADY;
        }
        self.seen.problem = Some(if self.seen.state == State::Established {
            let exports = match self.seen.advertised {
                Advertised::Nothing => "exports none of the prefixes",
                _ => "does not export all prefixes in the desired state",
            };
            let protocols = self.config.export.0.join(", ");
            format!("BIRD {exports} to {protocols}; check its filters and tables")
        } else {
            format!("BIRD's session is {}, not Established", self.seen.state)
        });
        if self.done.is_some_and(|(_, at)| at.elapsed() < FAST_FOR) { FAST } else { STEADY }
    }

    /// BIRD does not answer: nothing is known.
    fn lost(&mut self, error: &BirdError) {
        self.count(State::Idle);
        self.seen.advertised = Advertised::Unknown;
        self.seen.routes.clear();
        self.seen.problem = Some(error.to_string());
        self.done = None;
    }

    /// Counts changes of the session's state.
    fn count(&mut self, state: State) {
        let counters: &mut Counters = &mut self.seen.counters;
        match (self.seen.state == State::Established, state == State::Established) {
            (false, true) => counters.established += 1,
            (true, false) => counters.lost += 1,
            _ => {}
        }
        self.seen.state = state;
    }

    fn show(&self, publish: &watch::Sender<Observed>) {
        publish.send_if_modified(|shown| {
            if shown.state != self.seen.state {
                let problem = self.seen.problem.as_deref().unwrap_or("");
                tracing::info!(upstream = %self.config.name, from = %shown.state, to = %self.seen.state, problem, "session of BIRD");
            }
            let changed = *shown != self.seen;
            shown.clone_from(&self.seen);
            changed
        });
    }
}

/// The state of the session in a reply to `show protocols NAME`: the last column names it.
fn session_state(reply: &Reply) -> State {
    let words = reply.texts(1002).flat_map(str::split_whitespace);
    words
        .filter_map(|word| match word {
            "Connect" => Some(State::Connect),
            "Active" => Some(State::Active),
            "OpenSent" => Some(State::OpenSent),
            "OpenConfirm" => Some(State::OpenConfirm),
            "Established" => Some(State::Established),
            _ => None,
        })
        .last()
        .unwrap_or_default()
}

/// Whether a reply to `show route PREFIX export NAME all` has the prefix, and whether it goes out with
/// GRACEFUL_SHUTDOWN.
fn exported(reply: &Reply, prefix: &IpNet) -> Option<bool> {
    let prefix = prefix.to_string();
    let found =
        reply.texts(1007).any(|text| text.split_whitespace().next() == Some(prefix.as_str()));
    let graceful = |text: &str| {
        text.trim_start()
            .strip_prefix("BGP.community:")
            .is_some_and(|list| list.contains("(65535,0)"))
    };
    // 1012: attributes.
    found.then(|| reply.texts(1012).any(graceful))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(lines: &[(u16, &str)]) -> Reply {
        Reply { lines: lines.iter().map(|(code, text)| (*code, (*text).to_owned())).collect() }
    }

    #[test]
    fn the_sessions_state_is_read() {
        for (info, state) in [
            ("isp_a BGP --- up 22:13:19.932 Established   ", State::Established),
            (
                "isp_a BGP --- start 2026-11-21 22:13:19 Active  Socket: Connection refused",
                State::Active,
            ),
            ("isp_a BGP --- down 22:13:19.932", State::Idle),
            ("isp_a BGP --- start 22:13:19.932 Idle  BGP Error: Hold timer expired", State::Idle),
        ] {
            assert_eq!(session_state(&reply(&[(2002, "Name"), (1002, info), (0, "")])), state);
        }
        assert_eq!(session_state(&reply(&[(8003, "No protocols match")])), State::Idle);
    }

    #[test]
    fn an_export_is_read() {
        let prefix: IpNet = "50.0.0.0/8".parse().unwrap();
        let table = (1007, "Table master4:");
        let route = (1007, "50.0.0.0/8           blackhole [nigh 22:13:22.092] * (200)");
        let graceful = (1012, "\tBGP.community: (12,100) (65535,0)");
        let other = (1012, "\tBGP.large_community: (65535,0,1)");
        assert_eq!(exported(&reply(&[table, route, other, (0, "")]), &prefix), Some(false));
        assert_eq!(exported(&reply(&[table, route, graceful, (0, "")]), &prefix), Some(true));
        assert_eq!(exported(&reply(&[table, (0, "")]), &prefix), None);
        assert_eq!(exported(&reply(&[(9001, "No valid tables")]), &prefix), None);
    }
}
