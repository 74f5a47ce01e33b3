//! The part of a network that is drawn as a map.
//!
//! A small network is drawn whole. Of a large one these nodes are, until there are enough: those that
//! hosts are joined to, those that were asked for, the ends of the busiest links, and then what is
//! around the hosts, ring by ring. So the answer and its cost do not grow with the network.

use super::{
    Context, Map, MapNode, ReplyError, Sort,
    inspect::{states, totals},
};
use crate::{LinkId, Network, NodeId};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// Most nodes of a map.
pub const MOST_DRAWN: usize = 400;
/// Most directed links of a map.
const MOST_LINKS: usize = 4_000;
/// Most neighbours that a node brings along: a hub would fill the map alone.
const NEIGHBOURS: usize = 12;
/// Most links of a node that are looked through for other nodes of the map.
const INSPECTED: usize = 10_000;

impl Context {
    /// What is to be drawn, with at most `limit` nodes. `with` are nodes that are to be on it.
    ///
    /// # Errors
    /// When the lab ends.
    pub fn map(&self, limit: usize, with: &[String]) -> Result<Map, ReplyError> {
        let limit = limit.min(MOST_DRAWN);
        let network = self.network();
        let chosen = if network.nodes() as usize <= limit {
            (0..network.nodes()).map(NodeId).collect()
        } else {
            let busy = self.links(Sort::Bytes, limit, false)?.links;
            let busy = busy.iter().filter(|link| link.packets > 0).map(|link| LinkId(link.number));
            let busy = busy.flat_map(|link| [network.from(link), network.to(link)]);
            let asked = with.iter().filter_map(|name| network.find(name));
            choose(network, &self.host_nodes(), asked.chain(busy), limit)
        };
        let mut links = inner_links(network, &chosen);
        let links_total = links.len();
        links.truncate(MOST_LINKS);
        let (ledger, runs, down, states) = self.handle().call(move |engine, now| {
            (engine.ledger().clone(), now, engine.nodes_down(), states(engine, links))
        })?;
        let node = |id: NodeId| MapNode {
            name: self.name(id),
            addresses: self.addresses(id),
            links: network.links_of(id).len(),
            up: down.binary_search(&id).is_err(),
        };
        Ok(Map {
            scene: self.scene().to_owned(),
            runs,
            nodes_total: network.nodes(),
            links_total: network.links(),
            nodes: chosen.into_iter().map(node).collect(),
            links_skipped: links_total - states.len(),
            links: states.into_iter().map(|state| self.link_view(state)).collect(),
            hosts: self.host_views(),
            packets: totals(&ledger),
        })
    }
}

/// The nodes that are drawn: those of hosts, then others that matter in their order, then neighbours of
/// the hosts'. A third of the room is kept for neighbours.
fn choose(
    network: &Network,
    hosts: &[NodeId],
    others: impl Iterator<Item = NodeId>,
    limit: usize,
) -> Vec<NodeId> {
    let mut chosen = Vec::new();
    let mut seen = FxHashSet::default();
    for node in hosts.iter().copied().chain(others) {
        if chosen.len() >= limit * 2 / 3 {
            break;
        }
        if seen.insert(node) {
            chosen.push(node);
        }
    }
    let mut ring: VecDeque<_> = hosts.iter().copied().filter(|node| seen.contains(node)).collect();
    let mut walked: FxHashSet<_> = ring.iter().copied().collect();
    while let Some(node) = ring.pop_front() {
        for link in network.links_of(node).take(NEIGHBOURS) {
            let next = network.to(link);
            if chosen.len() >= limit {
                return chosen;
            }
            if seen.insert(next) {
                chosen.push(next);
            }
            if walked.insert(next) {
                ring.push_back(next);
            }
        }
    }
    chosen
}

/// The links of which both ends are drawn.
fn inner_links(network: &Network, nodes: &[NodeId]) -> Vec<LinkId> {
    let drawn: FxHashSet<_> = nodes.iter().copied().collect();
    let of = |node: &NodeId| network.links_of(*node).take(INSPECTED);
    nodes.iter().flat_map(of).filter(|link| drawn.contains(&network.to(*link))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkSettings, Relation, network::Builder};

    /// A hub with a thousand leaves, and a chain of ten behind its first leaf.
    fn network() -> Network {
        let mut builder = Builder::new();
        let hub = builder.node("hub").expect("a node");
        let mut join = |from: NodeId, name: String| {
            let node = builder.node(&name).expect("a node");
            builder.link(from, node, &LinkSettings::default(), 1, Relation::None).expect("a link");
            node
        };
        let leaves: Vec<_> = (0..1000).map(|n| join(hub, format!("leaf{n}"))).collect();
        let mut end = leaves[0];
        for n in 0..10 {
            end = join(end, format!("chain{n}"));
        }
        builder.finish().expect("a network")
    }

    fn names(network: &Network, nodes: &[NodeId]) -> Vec<String> {
        nodes.iter().map(|node| network.name(*node).into_owned()).collect()
    }

    #[test]
    fn hosts_come_first_and_a_hub_does_not_fill_the_map() {
        let network = network();
        let node = |name: &str| network.find(name).expect("a node");
        let hosts = [node("leaf0"), node("leaf999"), node("leaf0")];
        let busy = [node("leaf500"), node("hub"), node("leaf500")];
        let chosen = choose(&network, &hosts, busy.into_iter(), 60);
        let names = names(&network, &chosen);
        assert_eq!(names[..4], ["leaf0", "leaf999", "leaf500", "hub"]);
        // All around leaf0: the chain with its ten nodes. Of the hub's thousand neighbours few.
        assert!(names.contains(&"chain9".to_owned()), "{names:?}");
        assert!(names.len() <= 4 + 10 + NEIGHBOURS, "{names:?}");
        let links = inner_links(&network, &chosen);
        // The part is one tree, and each link is there in both directions.
        assert_eq!(links.len(), 2 * (chosen.len() - 1));
    }

    #[test]
    fn there_are_never_more_nodes_than_asked_for() {
        let network = network();
        let all = || (0..network.nodes()).map(NodeId);
        for limit in [0, 1, 2, 7, 50] {
            let hosts: Vec<_> = all().take(3).collect();
            let chosen = choose(&network, &hosts, all(), limit);
            assert!(chosen.len() <= limit);
            let different: FxHashSet<_> = chosen.iter().collect();
            assert_eq!(different.len(), chosen.len());
        }
    }
}
