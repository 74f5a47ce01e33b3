//! The link-state database of one speaker, and the network of routers that it describes.
//!
//! Objects come and go one by one (RFC 9552); the network that they describe is calculated when its
//! changes are asked for. Then nodes get the address by which a router is known, networks between
//! routers become links from each router on them to each other, and a prefix is attached to those
//! routers that have it best.
//!
//! A router's address is the first of these that is advertised (RFC 9552 sections 5.3.1.4 and 5.2.1.4):
//! IPv4 Router-ID of the node, IPv6 Router-ID of the node, OSPF's router identifier, BGP's, the Router-IDs
//! of its links. An IS-IS system that advertises none of them gets a link-local address with its system
//! identifier.

use super::object::{Attributes, Class, Node, Object, Properties, object};
use crate::message::{
    learned::Unreadable,
    link_state::{Content, Nlris, content},
};
use ipnet::IpNet;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    time::{Duration, Instant},
};

/// How long a session has for its End-of-RIB marker before what it has not advertised again is removed.
const SETTLE: Duration = Duration::from_secs(60);

/// A change of the network.
#[derive(Clone, Debug, PartialEq)]
pub enum GraphChange {
    /// There is a router, or its name has changed.
    Router {
        /// Its address.
        id: IpAddr,
        /// Its name.
        name: Option<String>,
    },
    /// A router is gone.
    RemoveRouter(IpAddr),
    /// There is a link in one direction, or its properties have changed.
    Link(LinkId, Properties),
    /// A link is gone.
    RemoveLink(LinkId),
    /// A prefix is attached to a router.
    Prefix(IpNet, IpAddr),
    /// It is not any more.
    RemovePrefix(IpNet, IpAddr),
}

/// What identifies a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId {
    /// Where it begins.
    pub from: IpAddr,
    /// Where it ends.
    pub to: IpAddr,
    /// Which of several links between the two.
    pub id: u32,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// UPDATEs read.
    pub updates: u64,
    /// NLRIs that were skipped: of unknown types, or malformed.
    pub unknown: u64,
    /// Malformed TLVs, skipped.
    pub malformed: u64,
    /// Objects refused because the limit is reached.
    pub refused: u64,
}

#[derive(Clone, Debug)]
struct Item {
    session: u32,
    object: Object,
    attributes: Attributes,
}

/// The network that the objects describe.
#[derive(Clone, Debug, Default, PartialEq)]
struct Network {
    routers: BTreeMap<IpAddr, Option<String>>,
    links: BTreeMap<LinkId, Properties>,
    prefixes: BTreeSet<(IpNet, IpAddr)>,
}

/// The database of one speaker.
#[derive(Clone, Debug)]
pub struct Graph {
    /// By NLRI as it came; in order, so that the same objects always mean the same network.
    items: BTreeMap<Box<[u8]>, Item>,
    limit: usize,
    /// The number of the running session.
    session: u32,
    settle_at: Option<Instant>,
    changed: bool,
    network: Network,
    counters: Counters,
}

impl Graph {
    /// Nothing yet; at most `limit` objects are held.
    pub fn new(limit: usize) -> Self {
        Self {
            items: BTreeMap::new(),
            limit,
            session: 0,
            settle_at: None,
            changed: false,
            network: Network::default(),
            counters: Counters::default(),
        }
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// A new session begins: what it does not advertise again is removed at its End-of-RIB, or after a time.
    pub fn begin(&mut self, now: Instant) {
        self.session = self.session.wrapping_add(1);
        self.settle_at = Some(now + SETTLE);
    }

    /// When [`Graph::settle`] wants to be called.
    pub fn settle_at(&self) -> Option<Instant> {
        self.settle_at
    }

    /// Removes what the running session has not advertised, if its End-of-RIB is overdue.
    pub fn settle(&mut self, now: Instant) {
        if self.settle_at.is_some_and(|at| at <= now) {
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        self.settle_at = None;
        let (session, before) = (self.session, self.items.len());
        self.items.retain(|_, item| item.session == session);
        self.changed |= self.items.len() != before;
    }

    /// Takes the body of an UPDATE.
    ///
    /// # Errors
    /// The lengths do not fit, so nothing in it can be located.
    pub fn update(&mut self, body: &[u8]) -> Result<(), Unreadable> {
        let Content { reached, unreached, about } = content(body)?;
        self.counters.updates += 1;
        let (about, wrong) = Attributes::read(about);
        self.counters.malformed += wrong;
        if unreached == Some(&[]) && reached.is_none() {
            self.sweep();
        }
        for nlri in Nlris(unreached.unwrap_or_default()) {
            let Some((_, _, whole)) = nlri else { break };
            self.changed |= self.items.remove(whole).is_some();
        }
        for nlri in Nlris(reached.unwrap_or_default()) {
            let Some((kind, value, whole)) = nlri else { break };
            let Some(object) = object(kind, value) else {
                self.counters.unknown += 1;
                continue;
            };
            let item = Item { session: self.session, object, attributes: about.clone() };
            if let Some(old) = self.items.get_mut(whole) {
                self.changed |= old.attributes != item.attributes;
                *old = item;
            } else if self.items.len() < self.limit {
                self.items.insert(whole.into(), item);
                self.changed = true;
            } else {
                self.counters.refused += 1;
            }
        }
        Ok(())
    }

    /// What has changed since the last call: first what there is, then what there is no more.
    pub fn take_changes(&mut self) -> Vec<GraphChange> {
        if !std::mem::take(&mut self.changed) {
            return Vec::new();
        }
        let now = Network::of(self.items.values());
        let old = std::mem::replace(&mut self.network, now);
        let now = &self.network;
        let mut changes = Vec::new();
        for (id, name) in &now.routers {
            if old.routers.get(id) != Some(name) {
                changes.push(GraphChange::Router { id: *id, name: name.clone() });
            }
        }
        for (id, properties) in &now.links {
            if old.links.get(id) != Some(properties) {
                changes.push(GraphChange::Link(*id, *properties));
            }
        }
        let new = now.prefixes.difference(&old.prefixes);
        changes.extend(new.map(|(prefix, router)| GraphChange::Prefix(*prefix, *router)));
        let gone = old.prefixes.difference(&now.prefixes);
        changes.extend(gone.map(|(prefix, router)| GraphChange::RemovePrefix(*prefix, *router)));
        let gone = old.links.keys().filter(|id| !now.links.contains_key(id));
        changes.extend(gone.map(|id| GraphChange::RemoveLink(*id)));
        let gone = old.routers.keys().filter(|id| !now.routers.contains_key(id));
        changes.extend(gone.map(|id| GraphChange::RemoveRouter(*id)));
        changes
    }
}

/// The addresses of the nodes that are routers.
struct Names<'a> {
    advertised: HashMap<&'a Node, IpAddr>,
    beside: HashMap<&'a Node, IpAddr>,
}

impl<'a> Names<'a> {
    fn of(items: impl Iterator<Item = &'a Item>) -> Self {
        let mut names = Self { advertised: HashMap::new(), beside: HashMap::new() };
        // Several levels or areas may advertise one router; the least of its addresses is taken, so that
        // the order of arrival does not matter.
        let mut note = |map: fn(&mut Self) -> &mut HashMap<&'a Node, IpAddr>, node, address| {
            let Some(address) = address else { return };
            let entry = map(&mut names).entry(node).or_insert(address);
            *entry = address.min(*entry);
        };
        for item in items {
            match &item.object {
                Object::Node(node) => {
                    note(|names| &mut names.advertised, node, item.attributes.local)
                }
                Object::Link { from, to, .. } => {
                    note(|names| &mut names.beside, from, item.attributes.local);
                    note(|names| &mut names.beside, to, item.attributes.remote);
                }
                Object::Prefix { .. } => {}
            }
        }
        names
    }

    fn address(&self, node: &Node) -> Option<IpAddr> {
        if node.is_network() {
            return None;
        }
        self.advertised
            .get(node)
            .copied()
            .or_else(|| node.address())
            .or_else(|| self.beside.get(node).copied())
            .or_else(|| node.stand_in())
    }
}

impl Network {
    fn of<'a>(items: impl Iterator<Item = &'a Item> + Clone) -> Self {
        let names = Names::of(items.clone());
        let mut network = Self::default();
        // Networks between routers: who leads to them and how, and whom they lead to.
        let mut onto: HashMap<&Node, Vec<(IpAddr, u32, Properties)>> = HashMap::new();
        let mut off: HashMap<&Node, Vec<IpAddr>> = HashMap::new();
        let mut attached: BTreeMap<IpNet, Vec<(Class, u32, &Node)>> = BTreeMap::new();
        for item in items {
            match &item.object {
                Object::Node(node) => {
                    if let Some(id) = names.address(node) {
                        let name = network.routers.entry(id).or_default();
                        *name = name.take().max(item.attributes.name.clone());
                    }
                }
                Object::Link { other_topology: true, .. } => {}
                Object::Link { from, to, id, .. } => {
                    let properties = item.attributes.properties;
                    match (names.address(from), names.address(to)) {
                        (Some(from), Some(to)) => {
                            network.link(LinkId { from, to, id: *id }, properties);
                        }
                        (Some(from), None) => {
                            onto.entry(to).or_default().push((from, *id, properties));
                        }
                        (None, Some(to)) => off.entry(from).or_default().push(to),
                        (None, None) => {}
                    }
                }
                Object::Prefix { at, prefix, class } => {
                    let leaked = item.attributes.down && *class == Class::Own;
                    let class = if leaked { Class::Area } else { *class };
                    let entry = (class, item.attributes.prefix_metric, at);
                    attached.entry(*prefix).or_default().push(entry);
                }
            }
        }
        for (network_node, routers) in &onto {
            for (from, id, properties) in routers {
                for to in off.get(network_node).into_iter().flatten() {
                    network.link(LinkId { from: *from, to: *to, id: *id }, *properties);
                }
            }
        }
        for (prefix, attached) in attached {
            // A default route leads to everything that is not here: it is no destination.
            if prefix.prefix_len() == 0 {
                continue;
            }
            let best = attached.iter().map(|(class, metric, _)| (*class, *metric)).min();
            for (class, metric, at) in attached {
                if Some((class, metric)) != best {
                    continue;
                }
                match names.address(at) {
                    Some(router) => {
                        network.prefixes.insert((prefix, router));
                    }
                    None => {
                        let on = onto.get(at).into_iter().flatten();
                        network.prefixes.extend(on.map(|(router, ..)| (prefix, *router)));
                    }
                }
            }
        }
        network
    }

    /// Adds a link. Two levels of a protocol may advertise the same one: the lower metric counts.
    fn link(&mut self, id: LinkId, properties: Properties) {
        if id.from == id.to {
            return;
        }
        let metric = |properties: &Properties| properties.igp_metric.or(properties.te_metric);
        match self.links.get_mut(&id) {
            Some(old)
                if metric(&properties)
                    .is_some_and(|new| metric(old).is_none_or(|old| new < old)) =>
            {
                *old = properties;
            }
            Some(_) => {}
            None => {
                self.links.insert(id, properties);
            }
        }
    }
}
