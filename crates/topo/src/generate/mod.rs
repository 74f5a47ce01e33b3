//! Networks and routes made by rule: for tests, benchmarks and demonstrations.
//!
//! Everything here is the same each time: what is random comes from a seed.

mod hubs;
mod mesh;
mod routes;
mod table;
mod ten;

pub use hubs::hubs;
pub use mesh::mesh;
pub use routes::{learned_routes, random_routes};
pub use table::realistic_table;
pub use ten::ten;

use crate::{
    builder::Builder,
    change::Change,
    options::Options,
    path::{LinkKey, LinkProperties},
    value::{Feed, RouterId},
};
use ipnet::{IpNet, Ipv4Net};
use splitmix::Random;
use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr},
};

/// The test networks of *The P2P-Oracle Server* have this many external routes (section 5.2).
pub const SEED_ROUTES: usize = 67_000;

/// The clients' networks of these test networks: 130.149.x.0/24, x from 1 (section 5.2).
const SEED_CLIENTS: u8 = 108;

/// A network that was made up.
#[derive(Clone, Debug)]
pub struct Network {
    /// Routers, links, internal prefixes and external routes, in this order.
    pub changes: Vec<Change>,
    /// Routers with external routes.
    pub exits: Vec<RouterId>,
    /// The prefixes of clients, each attached to one router.
    pub clients: Vec<IpNet>,
    /// The prefix that requests come from in the tests of *The P2P-Oracle Server*.
    pub source: IpNet,
}

impl Network {
    /// A builder that knows the network from [`Feed::CONFIGURATION`].
    pub fn builder(&self, options: Options) -> Builder {
        let mut builder = Builder::new(options);
        for change in &self.changes {
            builder
                .apply(Feed::CONFIGURATION, change.clone())
                .expect("a network that is made up is a sound one");
        }
        builder
    }
}

/// What a kind of line is like.
#[derive(Clone, Copy, Debug)]
struct Line {
    bandwidth: f64,
    latency: f64,
    weight: u32,
}

fn router_at(address: [u8; 4]) -> RouterId {
    RouterId(IpAddr::V4(Ipv4Addr::from(address)))
}

/// 130.149.x.0/24.
fn seed_client(x: u8) -> IpNet {
    Ipv4Net::new_assert(Ipv4Addr::new(130, 149, x, 0), 24).into()
}

/// Collects changes.
#[derive(Debug, Default)]
struct Maker {
    changes: Vec<Change>,
    /// Network cards so far.
    cards: HashMap<RouterId, u32>,
}

impl Maker {
    fn router(&mut self, id: RouterId, name: String) {
        self.changes.push(Change::Router { id, name: Some(name) });
    }

    /// A link that is the same in both directions, from the next network card of each router.
    fn link(&mut self, a: RouterId, b: RouterId, line: Line) {
        let properties = LinkProperties {
            bandwidth: line.bandwidth,
            latency: line.latency,
            weight: line.weight,
            congestion: 0.0,
            loss: 0.0,
        };
        for (from, to) in [(a, b), (b, a)] {
            let next = self.cards.entry(from).or_default();
            let id = *next;
            *next += 1;
            self.changes.push(Change::Link { key: LinkKey { from, to, id }, properties });
        }
    }

    fn internal(&mut self, prefix: IpNet, router: RouterId) {
        self.changes.push(Change::Internal { prefix, router });
    }
}
