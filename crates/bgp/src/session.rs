//! The session that announces: an order is turned into routes, and what the machine has told is
//! published.
//!
//! One task owns everything. Each turn it does what the machine wants done, publishes what can be seen,
//! and waits for an order, or for whatever the [`Driver`] waits for.

use crate::{
    announcer::{Advertised, Desired, Observed, Order, Told},
    config::{BgpUpstream, PORT, Password},
    driver::{Driver, GOOD_BYE, now},
    fsm::{Event, Purpose},
    route::Routes,
    value::Community,
};
use std::sync::Arc;
use tokio::sync::{oneshot, watch};

/// One session and what it runs on.
pub(crate) struct Session {
    name: String,
    driver: Driver,
}

impl Session {
    pub(crate) fn new(config: &BgpUpstream, password: Option<Password>) -> Self {
        let driver = Driver::new(config, password, PORT, Purpose::Announce);
        Self { name: config.name.clone(), driver }
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
            self.driver.act().await;
            self.show(&orders.borrow(), &publish);
            tokio::select! {
                biased;
                _ = &mut stop => break,
                Ok(()) = orders.changed() => self.want(&orders.borrow_and_update()),
                () = self.driver.step() => {}
            }
        }
        self.driver.fsm.handle(Event::Stop(GOOD_BYE), now());
        self.driver.act().await;
        self.show(&orders.borrow(), &publish);
    }

    /// Puts an order into routes.
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

    /// Publishes what can be seen, and logs a change of state.
    fn show(&self, order: &Order, publish: &watch::Sender<Observed>) {
        let told: Vec<Told> = self
            .driver
            .fsm
            .told()
            .iter()
            .filter_map(|(prefix, told)| {
                let graceful_shutdown =
                    told.attributes.communities.contains(&Community::GRACEFUL_SHUTDOWN);
                Some(Told { prefix: *prefix, graceful_shutdown, at: told.written? })
            })
            .collect();
        let mut seen = Observed {
            state: self.driver.fsm.state(),
            advertised: Observed::summary(&told, &order.prefixes),
            told,
            written: self.driver.fsm.updated(),
            problem: self.driver.fsm.problem(),
            counters: self.driver.fsm.counters(),
        };
        publish.send_if_modified(|shown| {
            // A withdrawal that is on its way has not been told yet.
            if self.driver.is_writing() && seen.advertised == Advertised::Nothing {
                seen.advertised = shown.advertised;
                seen.told.clone_from(&shown.told);
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
