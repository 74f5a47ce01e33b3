//! The session that announces: an order is turned into routes, and what the state machine has
//! advertised is published.
//!
//! One task owns everything. Each turn it carries out the machine's effects, publishes the observed
//! state, and waits for an order, or for whatever the [`Driver`] waits for.

use crate::{
    bfd,
    clock::now,
    config::{BgpUpstream, PORT, Password},
    driver::{Driver, SHUTDOWN_TEXT},
    fsm::{Event, Purpose},
    observed::{Advertised, AdvertisedRoute, Desired, Observed, Order},
    route::Routes,
    value::Community,
};
use std::{future::pending, sync::Arc};
use tokio::sync::{oneshot, watch};

/// One session and what it runs on.
pub(crate) struct Session {
    name: String,
    driver: Driver,
    bfd: Option<bfd::Session>,
}

impl Session {
    pub(crate) fn new(
        config: &BgpUpstream,
        password: Option<Password>,
        bfd: Option<bfd::Session>,
    ) -> Self {
        let driver = Driver::new(config, password, PORT, Purpose::Announce);
        Self { name: config.name.clone(), driver, bfd }
    }

    /// Runs until `stop` is sent or dropped.
    pub(crate) async fn run(
        mut self,
        mut orders: watch::Receiver<Order>,
        publish: watch::Sender<Observed>,
        mut stop: oneshot::Receiver<()>,
    ) {
        self.want(&orders.borrow_and_update());
        self.driver.fsm.handle(Event::Start, now());
        loop {
            panics::point("echo-bgp");
            self.act().await;
            self.show(&orders.borrow(), &publish);
            tokio::select! {
                biased;
                _ = &mut stop => break,
                Ok(()) = orders.changed() => self.want(&orders.borrow_and_update()),
                lost = changed(&mut self.bfd) => {
                    if lost {
                        self.driver.fsm.handle(Event::BfdDown, now());
                    }
                }
                () = self.driver.step() => {}
            }
        }
        self.driver.fsm.handle(Event::Stop(SHUTDOWN_TEXT), now());
        self.driver.act().await;
        if let Some(bfd) = &mut self.bfd {
            bfd.stop();
        }
        self.show(&orders.borrow(), &publish);
    }

    /// Does what the state machine wants, while BFD goes on: the last words to a neighbour may take a while.
    async fn act(&mut self) {
        let mut lost = false;
        {
            let mut act = std::pin::pin!(self.driver.act());
            loop {
                tokio::select! {
                    biased;
                    () = &mut act => break,
                    now_lost = changed(&mut self.bfd) => lost |= now_lost,
                }
            }
        }
        if lost {
            self.driver.fsm.handle(Event::BfdDown, now());
        }
    }

    /// Turns an order into routes.
    fn want(&mut self, order: &Order) {
        let attributes = match order.desired {
            Desired::Withdrawn => None,
            Desired::Announced { graceful_shutdown: false } => Some(order.attributes.clone()),
            Desired::Announced { graceful_shutdown: true } => {
                Some(order.attributes.clone().with(Community::GRACEFUL_SHUTDOWN))
            }
        };
        let routes: Routes = match attributes.map(Arc::new) {
            Some(attributes) => {
                order.prefixes.iter().map(|prefix| (*prefix, Arc::clone(&attributes))).collect()
            }
            None => Routes::new(),
        };
        self.driver.fsm.want(routes);
    }

    /// Publishes the observed state, and logs a change of the session's state.
    fn show(&self, order: &Order, publish: &watch::Sender<Observed>) {
        let routes: Vec<AdvertisedRoute> = self
            .driver
            .fsm
            .advertised()
            .iter()
            .filter_map(|(prefix, entry)| {
                let graceful_shutdown =
                    entry.attributes.communities.contains(&Community::GRACEFUL_SHUTDOWN);
                Some(AdvertisedRoute { prefix: *prefix, graceful_shutdown, at: entry.written? })
            })
            .collect();
        let mut seen = Observed {
            state: self.driver.fsm.state(),
            advertised: Observed::summary(&routes, &order.prefixes),
            routes,
            written: self.driver.fsm.updated(),
            problem: self.driver.fsm.problem(),
            bfd: self.bfd.as_ref().map(bfd::Session::observed),
            counters: self.driver.fsm.counters(),
        };
        publish.send_if_modified(|shown| {
            // A withdrawal that is still being written has not been advertised yet.
            if self.driver.is_writing() && seen.advertised == Advertised::Nothing {
                seen.advertised = shown.advertised;
                seen.routes.clone_from(&shown.routes);
            }
            if seen.state != shown.state {
                let (from, to) = (shown.state, seen.state);
                let problem = seen.problem.as_deref().unwrap_or("");
                tracing::info!(upstream = %self.name, %from, %to, problem, "session");
            }
            let changed = *shown != seen;
            *shown = seen;
            changed
        });
    }
}

/// Runs the BFD session until it changes, and returns whether it has lost the neighbour; for ever without one.
async fn changed(bfd: &mut Option<bfd::Session>) -> bool {
    match bfd {
        Some(bfd) => bfd.changed().await,
        None => pending().await,
    }
}
