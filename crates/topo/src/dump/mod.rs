//! Writes what is known as files that load back to the same network: TOML, and the seed's formats.
//!
//! What is written is what counts, whoever said it: several feeds become one file, and measurements
//! become the links' own properties. Each writer says in sentences what its format cannot express.

mod seed;
mod toml;

pub use seed::{SeedFiles, seed};
pub use toml::toml;

use crate::{
    builder::Topology,
    path::{LinkKey, LinkProperties},
    value::RouterId,
};
use std::collections::BTreeSet;

/// What of a network can stand in a file: nothing that waits for a router or a link.
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
        left_out(notes, all.len() - links.len(), "links");
        let keys: BTreeSet<_> = links.iter().map(|(key, _)| *key).collect();
        let all: Vec<_> = topology.next_hops().collect();
        let next_hops: Vec<_> =
            all.iter().filter(|(_, to, via)| known(to) && keys.contains(via)).copied().collect();
        left_out(notes, all.len() - next_hops.len(), "next hops");
        Self { routers, links, next_hops }
    }
}

fn left_out(notes: &mut Vec<String>, count: usize, what: &str) {
    if count > 0 {
        notes.push(format!("{count} {what} wait for routers or links and are left out"));
    }
}
