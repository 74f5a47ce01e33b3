//! What all files of an import say together, before it becomes a network.

use crate::network::Relation;
use crate::{Nanos, SettingsChange};
use rustc_hash::{FxHashMap, FxHashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use topo::IpNet;

/// Private addresses mean other routers elsewhere: they are distinguished by their neighbours. This is
/// where those are that mean the same everywhere.
pub(super) const EVERYWHERE: u32 = u32::MAX;
/// Most nodes.
pub(super) const MOST_NODES: usize = 200_000_000;
/// Most links of both directions.
pub(super) const MOST_EDGES: usize = 400_000_000;
/// Most delays of a link that are kept; their median counts.
const SAMPLES: usize = 31;

/// A node's index.
pub(super) type Node = u32;

/// A link in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DirectedLink(pub(super) u32);

impl DirectedLink {
    /// The other direction.
    pub(super) fn back(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// Two nodes that are joined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) ends: [Node; 2],
    /// The next one between the two; after the last one comes the first.
    next: u32,
}

/// What is known of one direction of a link.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    pub(super) settings: SettingsChange,
    pub(super) weight: Option<u32>,
    /// There is no link in this direction.
    pub(super) missing: bool,
}

/// More than is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the files have more than {limit} {what}")]
pub struct TooMany {
    /// What there is too much of.
    pub what: &'static str,
    /// How many there may be.
    pub limit: usize,
}

/// Nodes, links, and what is known of them.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// The names of nodes, as far as they have any.
    pub(super) names: Vec<Option<Box<str>>>,
    /// The ASes of nodes that come with them.
    pub(super) ases: FxHashMap<Node, u32>,
    by_address: FxHashMap<(u32, IpAddr), Node>,
    by_name: FxHashMap<Box<str>, Node>,
    /// Nodes' addresses in the order in which they were added.
    pub(super) addresses: Vec<(Node, IpAddr)>,
    silent: FxHashMap<(Node, Node, u16), Node>,
    silent_nodes: FxHashSet<Node>,
    pub(super) edges: Vec<Edge>,
    /// The last edge between two nodes.
    last: FxHashMap<(Node, Node), u32>,
    /// The address of the interface where a directed link begins.
    pub(super) interfaces4: FxHashMap<DirectedLink, Ipv4Addr>,
    /// As `interfaces4`.
    pub(super) interfaces6: FxHashMap<DirectedLink, Ipv6Addr>,
    pub(super) known: FxHashMap<DirectedLink, Known>,
    samples: FxHashMap<u32, Vec<u32>>,
    /// Forwarding entries in files: at the link's beginning packets to that prefix take it.
    pub(super) entries: Vec<(IpNet, DirectedLink)>,
    /// The links of all traces whose destination is known, one after the other.
    pub(super) traced_links: Vec<DirectedLink>,
    /// Destinations of traces, and where in `traced_links` their links end.
    pub(super) traces: Vec<(IpAddr, usize)>,
    /// Prefixes behind nodes.
    pub(super) prefixes: FxHashMap<IpNet, Node>,
    /// Prefixes whose first address is that of a node which has no other; whether it is IPv4.
    pub(super) own: FxHashMap<(Node, bool), IpNet>,
    /// Prefixes and the ASes in which they originate.
    pub(super) origins: Vec<(IpNet, u32)>,
    /// What the second AS is to the first, which has the lower number.
    pub(super) relations: FxHashMap<(u32, u32), Relation>,
    /// Whether files show which addresses are those of one router.
    pub(super) aliases: bool,
    /// Whether any file names routers, and not only ASes.
    pub(super) routers: bool,
}

impl Graph {
    fn add(&mut self) -> Result<Node, TooMany> {
        if self.names.len() >= MOST_NODES {
            return Err(TooMany { what: "nodes", limit: MOST_NODES });
        }
        self.names.push(None);
        Ok((self.names.len() - 1) as Node)
    }

    /// The node that has that address in a scope: [`EVERYWHERE`], or traces from one node. It is made if
    /// there is none.
    pub(super) fn at(&mut self, scope: u32, address: IpAddr) -> Result<Node, TooMany> {
        if let Some(&node) = self.by_address.get(&(scope, address)) {
            return Ok(node);
        }
        let node = self.add()?;
        self.claim(node, scope, address);
        Ok(node)
    }

    /// The node that has that address everywhere, if there is one.
    pub(super) fn find(&self, address: IpAddr) -> Option<Node> {
        self.by_address.get(&(EVERYWHERE, address)).copied()
    }

    /// Gives an address to a node. Whether it has it then: another node may have it.
    pub(super) fn claim(&mut self, node: Node, scope: u32, address: IpAddr) -> bool {
        let owner = *self.by_address.entry((scope, address)).or_insert_with(|| {
            self.addresses.push((node, address));
            node
        });
        owner == node
    }

    /// A node that nothing is known of yet.
    pub(super) fn unnamed(&mut self) -> Result<Node, TooMany> {
        self.add()
    }

    /// The node with that name. It is made if there is none.
    pub(super) fn named(&mut self, name: &str) -> Result<Node, TooMany> {
        if let Some(&node) = self.by_name.get(name) {
            return Ok(node);
        }
        let node = self.add()?;
        self.name(node, name);
        Ok(node)
    }

    /// The node with that name, if there is one.
    pub(super) fn known_name(&self, name: &str) -> Option<Node> {
        self.by_name.get(name).copied()
    }

    /// Names a node, unless it has a name or another one has this name.
    pub(super) fn name(&mut self, node: Node, name: &str) {
        if let Some(slot @ None) = self.names.get_mut(node as usize)
            && !self.by_name.contains_key(name)
        {
            *slot = Some(name.into());
            self.by_name.insert(name.into(), node);
        }
    }

    /// The router of that index among those that did not answer between two others.
    pub(super) fn silent(
        &mut self,
        before: Node,
        after: Node,
        index: u16,
    ) -> Result<Node, TooMany> {
        if let Some(&node) = self.silent.get(&(before, after, index)) {
            return Ok(node);
        }
        let node = self.add()?;
        self.silent.insert((before, after, index), node);
        self.silent_nodes.insert(node);
        let number = self.silent.len();
        self.name(node, &format!("silent{number}"));
        Ok(node)
    }

    /// Whether a node never answered.
    pub(super) fn is_silent(&self, node: Node) -> bool {
        self.silent_nodes.contains(&node)
    }

    /// The address of the interface of that family where a directed link begins.
    fn interface(&self, direction: DirectedLink, like: IpAddr) -> Option<IpAddr> {
        match like {
            IpAddr::V4(_) => self.interfaces4.get(&direction).copied().map(IpAddr::V4),
            IpAddr::V6(_) => self.interfaces6.get(&direction).copied().map(IpAddr::V6),
        }
    }

    fn set_interface(&mut self, direction: DirectedLink, address: IpAddr) {
        match address {
            IpAddr::V4(address) => drop(self.interfaces4.insert(direction, address)),
            IpAddr::V6(address) => drop(self.interfaces6.insert(direction, address)),
        }
    }

    /// The link direction from one node to another between interfaces with these addresses, as far as they are
    /// known. It is made if there is none that can be it.
    pub(super) fn direction(
        &mut self,
        from: (Node, Option<IpAddr>),
        to: (Node, Option<IpAddr>),
    ) -> Result<DirectedLink, TooMany> {
        let (direction, known) = self.find_direction(from, to);
        let direction = match direction {
            Some(direction) => direction,
            None => self.join(from.0, to.0)?,
        };
        if !known {
            for (direction, address) in [(direction, from.1), (direction.back(), to.1)] {
                if let Some(address) = address {
                    self.set_interface(direction, address);
                }
            }
        }
        Ok(direction)
    }

    /// The direction that has these addresses, or else the first one that has no others; and whether it has
    /// them.
    fn find_direction(
        &self,
        from: (Node, Option<IpAddr>),
        to: (Node, Option<IpAddr>),
    ) -> (Option<DirectedLink>, bool) {
        let key = (from.0.min(to.0), from.0.max(to.0));
        let mut fitting = None;
        let Some(&last) = self.last.get(&key) else { return (None, false) };
        let mut before = last;
        while let Some(number) = self.edges.get(before as usize).map(|edge| edge.next)
            && let Some(edge) = self.edges.get(number as usize)
        {
            let direction = DirectedLink(number << 1 | u32::from(edge.ends[0] != from.0));
            let fits = |direction: DirectedLink, address: Option<IpAddr>| match address {
                None => (true, true),
                Some(address) => match self.interface(direction, address) {
                    None => (true, false),
                    Some(known) => (known == address, known == address),
                },
            };
            let (one, two) = (fits(direction, from.1), fits(direction.back(), to.1));
            if one.1 && two.1 {
                return (Some(direction), true);
            }
            if one.0 && two.0 && fitting.is_none() {
                fitting = Some(direction);
            }
            if number == last {
                break;
            }
            before = number;
        }
        (fitting, false)
    }

    /// A new link between two nodes: the direction from the first.
    pub(super) fn join(&mut self, from: Node, to: Node) -> Result<DirectedLink, TooMany> {
        if self.edges.len() >= MOST_EDGES {
            return Err(TooMany { what: "links", limit: MOST_EDGES });
        }
        let number = self.edges.len() as u32;
        let key = (from.min(to), from.max(to));
        let before = self.last.insert(key, number);
        let next = match before.and_then(|before| self.edges.get_mut(before as usize)) {
            Some(before) => std::mem::replace(&mut before.next, number),
            None => number,
        };
        self.edges.push(Edge { ends: [from, to], next });
        Ok(DirectedLink(number << 1))
    }

    /// The nodes at the start and at the end of a direction.
    pub(super) fn ends(&self, direction: DirectedLink) -> Option<(Node, Node)> {
        let [a, b] = self.edges.get(direction.0 as usize >> 1)?.ends;
        Some(if direction.0 & 1 == 0 { (a, b) } else { (b, a) })
    }

    /// A delay of a link was measured, in either direction.
    pub(super) fn measured(&mut self, direction: DirectedLink, delay: Nanos) {
        let samples = self.samples.entry(direction.0 >> 1).or_default();
        if samples.len() < SAMPLES {
            samples.push(u32::try_from(delay.0 / 1_000).unwrap_or(u32::MAX));
        }
    }

    /// The median of the delays that were measured of an edge.
    pub(super) fn delay(&mut self, edge: u32) -> Option<Nanos> {
        let samples = self.samples.get_mut(&edge)?;
        let middle = (samples.len() - 1) / 2;
        let (_, median, _) = samples.select_nth_unstable(middle);
        Some(Nanos(u64::from(*median) * 1_000))
    }

    /// Packets to that address were seen on these links.
    pub(super) fn follow(&mut self, to: IpAddr, directions: &[DirectedLink]) {
        self.traced_links.extend(directions);
        self.traces.push((to, self.traced_links.len()));
    }

    /// Sets what the second AS is to the first. Whether it agrees with the relation so far.
    pub(super) fn relate(&mut self, one: u32, two: u32, relation: Relation) -> bool {
        let (key, relation) =
            if one <= two { ((one, two), relation) } else { ((two, one), relation.mirrored()) };
        *self.relations.entry(key).or_insert(relation) == relation
    }

    /// What the second AS is to the first.
    pub(super) fn relation(&self, one: u32, two: u32) -> Option<Relation> {
        if one <= two {
            self.relations.get(&(one, two)).copied()
        } else {
            self.relations.get(&(two, one)).map(|relation| relation.mirrored())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_links_between_two_nodes_are_joined_at_once_and_found_in_their_order() {
        let mut graph = Graph::default();
        let (a, b) = (graph.named("a").expect("a node"), graph.named("b").expect("a node"));
        let addresses = [1, 2, 3].map(|last| IpAddr::from([10, 0, 0, last]));
        let directions = addresses.map(|address| {
            let direction = graph.join(a, b).expect("a direction");
            graph.set_interface(direction, address);
            direction
        });
        for (address, direction) in addresses.into_iter().zip(directions) {
            assert_eq!(
                graph.find_direction((a, Some(address)), (b, None)),
                (Some(direction), true)
            );
            assert_eq!(
                graph.find_direction((b, None), (a, Some(address))),
                (Some(direction.back()), true)
            );
        }
        assert_eq!(graph.find_direction((a, None), (b, None)), (Some(directions[0]), true));
        let other = Some(IpAddr::from([10, 0, 0, 9]));
        assert_eq!(graph.find_direction((a, other), (b, None)), (None, false));
        for _ in 0..1_000_000 {
            graph.join(b, a).expect("a direction");
        }
        assert_eq!(
            graph.find_direction((a, other), (b, None)),
            (Some(DirectedLink(3 << 1 | 1)), false)
        );
        assert_eq!(graph.edges.len(), 1_000_003);
    }
}
