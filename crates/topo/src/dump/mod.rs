//! Writes what is known as files that load back to the same network: TOML, and the format `oracle.conf`.
//!
//! What is in force is written, whichever feed reported it: several feeds become one file, and
//! measurements become the links' own properties. Each writer returns notes of what its format cannot
//! express.

mod oracle_conf;
mod toml;

pub use oracle_conf::{OracleConf, oracle_conf};
pub use toml::toml;

use crate::{
    builder::Topology,
    path::{LinkKey, LinkProperties},
    value::RouterId,
};
use std::collections::BTreeSet;

/// The part of a network that can be written: nothing that waits for a router or a link.
struct Known {
    routers: BTreeSet<RouterId>,
    links: Vec<(LinkKey, LinkProperties)>,
    next_hops: Vec<(RouterId, RouterId, LinkKey)>,
}

impl Known {
    fn new(topology: Topology<'_>, notes: &mut Vec<String>) -> Self {
        let routers: BTreeSet<_> = topology.routers().map(|(id, _)| id).collect();
        let known = |id: &RouterId| routers.contains(id);
        let all: Vec<_> = topology.links().collect();
        let links: Vec<_> =
            all.iter().filter(|(key, _)| known(&key.from) && known(&key.to)).copied().collect();
        omitted(notes, all.len() - links.len(), "links");
        let keys: BTreeSet<_> = links.iter().map(|(key, _)| *key).collect();
        let all: Vec<_> = topology.next_hops().collect();
        let next_hops: Vec<_> =
            all.iter().filter(|(_, to, via)| known(to) && keys.contains(via)).copied().collect();
        omitted(notes, all.len() - next_hops.len(), "next hops");
        Self { routers, links, next_hops }
    }
}

fn omitted(notes: &mut Vec<String>, count: usize, what: &str) {
    if count > 0 {
        notes.push(format!("{count} {what} wait for routers or links and are omitted"));
    }
}
