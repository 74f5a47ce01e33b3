//! The paths that are kept, and how one is worked out.

use std::net::IpAddr;

use rustc_hash::FxHashMap;
use wire::IpNet;

use super::{
    AddressOwner, Effect, Engine, Reason,
    load::{LinkLoad, Tally},
    path::{Action, End, Hop, Path},
};
use crate::{
    LinkId, Nanos, NodeId,
    link::LinkState,
    network::Owner,
    route::{FLOW_CLASSES, LONGEST_PATH},
    settings::LinkSettings,
};

/// A path through the network, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedPath {
    /// The links in order.
    pub links: Vec<LinkId>,
    /// What is at their end.
    pub end: End,
    /// Whether other flows may take another path.
    pub forks: bool,
}

/// What a path is kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    node: u32,
    /// The class of the flow, from 1; 0 stands for all.
    flow: u32,
    /// IPv4 addresses as IPv4-mapped.
    high: u64,
    low: u64,
}

impl Key {
    fn new(node: NodeId, address: IpAddr, flow: u32) -> Self {
        let bits = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
            IpAddr::V6(address) => address.to_bits(),
        };
        Self { node: node.0, flow, high: (bits >> 64) as u64, low: bits as u64 }
    }
}

/// What is kept for a key.
#[derive(Clone, Copy, Debug)]
enum Kept {
    /// The path of all flows, or of the key's class.
    Path(u32),
    /// There are several paths: look the class up.
    ByFlow,
}

/// A index for a path.
#[derive(Debug)]
struct Slot {
    path: Path,
    tally: Tally,
    key: Key,
    /// Packets in flight on it.
    users: u32,
    /// Looked up since it was last passed over.
    recent: bool,
    /// No longer to be found by its key; free when nothing is in flight.
    stale: bool,
}

/// Paths by where they begin and where they go, in bounded space.
#[derive(Debug)]
pub(super) struct PathCache {
    by_key: FxHashMap<Key, Kept>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// What went over paths that are no more.
    loads: FxHashMap<LinkId, LinkLoad>,
    capacity: usize,
    hand: usize,
}

impl PathCache {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            by_key: FxHashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            loads: FxHashMap::default(),
            capacity,
            hand: 0,
        }
    }

    /// A path that was found or put in and is in use.
    pub(super) fn get(&self, number: u32) -> &Path {
        &self.slots[number as usize].path
    }

    /// One packet more is in flight on a path.
    pub(super) fn hold(&mut self, number: u32) {
        self.slots[number as usize].users += 1;
    }

    /// One packet fewer is in flight on a path.
    pub(super) fn release(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.users -= 1;
        if slot.stale && slot.users == 0 {
            slot.tally.settle(&slot.path.hops, &mut self.loads);
            self.free.push(number);
        }
    }

    /// A packet passes the links of a path from one index to another.
    pub(super) fn count(&mut self, number: u32, from: u16, to: u16, bytes: u32) {
        self.slots[number as usize].tally.count(from, to, bytes);
    }

    /// Adds what went over paths to the loads of their links.
    pub(super) fn settle(&mut self, loads: &mut FxHashMap<LinkId, LinkLoad>) {
        for slot in &mut self.slots {
            slot.tally.settle(&slot.path.hops, loads);
        }
        for (link, load) in self.loads.drain() {
            let sum = loads.entry(link).or_default();
            sum.packets += load.packets;
            sum.bytes += load.bytes;
        }
    }

    /// Finds a path.
    fn find(&mut self, node: NodeId, address: IpAddr, flow: u32) -> Option<u32> {
        let mut kept = self.by_key.get(&Key::new(node, address, 0))?;
        if let Kept::ByFlow = kept {
            kept = self.by_key.get(&Key::new(node, address, 1 + flow % FLOW_CLASSES))?;
        }
        let Kept::Path(number) = *kept else { return None };
        self.slots[number as usize].recent = true;
        Some(number)
    }

    /// Keeps a path; `forks` says that it is that of a flow's class only.
    fn put(&mut self, address: IpAddr, path: Path, forks: Option<u32>) -> u32 {
        if self.by_key.len() >= 2 * self.capacity.max(1) {
            // Marks of destinations with several paths stay when those were forgotten.
            self.clear();
        } else if self.slots.len() - self.free.len() >= self.capacity {
            self.make_room();
        }
        let any = Key::new(path.from, address, 0);
        let key = Key { flow: forks.map_or(0, |flow| 1 + flow % FLOW_CLASSES), ..any };
        if forks.is_some() {
            self.by_key.insert(any, Kept::ByFlow);
        }
        let tally = Tally::new(path.hops.len());
        let slot = Slot { path, tally, key, users: 0, recent: true, stale: false };
        let number = match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = slot;
                number
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        self.by_key.insert(key, Kept::Path(number));
        number
    }

    /// Forgets the path that nobody looked up for the longest time, nearly: the hand of a clock
    /// passes over those that were looked up since it passed last.
    fn make_room(&mut self) {
        for _ in 0..2 * self.slots.len() {
            self.hand = (self.hand + 1) % self.slots.len();
            let number = self.hand as u32;
            let slot = &mut self.slots[self.hand];
            if slot.stale {
                continue;
            }
            if !std::mem::take(&mut slot.recent) {
                let key = slot.key;
                self.forget(number);
                self.by_key.remove(&key);
                return;
            }
        }
    }

    fn forget(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.stale = true;
        if slot.users == 0 {
            slot.tally.settle(&slot.path.hops, &mut self.loads);
            self.free.push(number);
        }
    }

    /// Forgets all; packets that are in flight keep theirs.
    pub(super) fn clear(&mut self) {
        self.by_key.clear();
        for number in 0..self.slots.len() as u32 {
            if !self.slots[number as usize].stale {
                self.forget(number);
            }
        }
    }
}

impl Engine {
    /// The path from a node to an address, for a flow.
    pub(super) fn cached_path(&mut self, from: NodeId, address: IpAddr, flow: u32) -> u32 {
        if let Some(number) = self.paths.find(from, address, flow) {
            return number;
        }
        let class = flow % FLOW_CLASSES;
        let (path, forks) = self.work_out(from, address, class);
        self.paths.put(address, path, forks.then_some(class))
    }

    /// The path of a packet from a node to an address, as it would be sent now. `flow` stands for the
    /// hash that chooses among equal-cost paths.
    pub fn path(&mut self, from: NodeId, to: IpAddr, flow: u32) -> TracedPath {
        let (path, forks) = self.work_out(from, to, flow % FLOW_CLASSES);
        let links = path.hops.iter().map(|hop| hop.link).collect();
        TracedPath { links, end: path.end, forks }
    }

    /// Works a path out, and returns whether the flow decided something.
    fn work_out(&mut self, from: NodeId, address: IpAddr, class: u32) -> (Path, bool) {
        let Some((to, mut end)) = self.destination(address) else {
            let prohibited = self.changes.prohibits(from, address);
            let end = if prohibited { End::Prohibited } else { End::NoRoute };
            return (Path::new(from, Vec::new(), end, |_| Nanos::ZERO), false);
        };
        let mut links = std::mem::take(&mut self.links);
        links.clear();
        let forks = match self.router.path(&self.network, from, to, address, class, &mut links) {
            Ok(forks) => forks,
            Err(no_path) => {
                end = if links.len() < LONGEST_PATH { End::NoRoute } else { End::TooFar };
                no_path.forks
            }
        };
        links.truncate(usize::from(u16::MAX));
        let nodes = std::iter::once(from).chain(links.iter().map(|&link| self.network.to(link)));
        // The last node delivers to itself, whatever it lets pass.
        let passes = links.len() + usize::from(end != End::Node);
        let stops = |node| self.changes.prohibits(node, address);
        if let Some(index) = nodes.take(passes).position(stops) {
            links.truncate(index);
            end = End::Prohibited;
        }
        let hops = links.iter().map(|&link| self.hop(link)).collect();
        self.links = links;
        (Path::new(from, hops, end, |link| self.settings(link).delay), forks)
    }

    /// Where an address lives.
    fn destination(&self, address: IpAddr) -> Option<(NodeId, End)> {
        match self.owners.get(&address) {
            Some(&AddressOwner::Node(node)) => return Some((node, End::Node)),
            Some(&AddressOwner::Host(port)) => {
                return Some((self.ports.get(usize::from(port.0))?.node, End::Port(port)));
            }
            None => {}
        }
        match self.network.owner(address) {
            Some(Owner::Node(node)) => Some((node, End::Node)),
            Some(Owner::Prefix(node, net)) => Some((node, nobody(&net, address))),
            None => self.ports.iter().find_map(|port| {
                let net = port.addresses.iter().find(|net| net.contains(&address))?;
                Some((port.node, nobody(net, address)))
            }),
        }
    }

    /// A link as a hop, without what the others make of it.
    fn hop(&mut self, link: LinkId) -> Hop {
        let (action, to, mtu) = (self.action(link), self.network.to(link), self.settings(link).mtu);
        Hop { link, to, before: Nanos::ZERO, mtu, run_mtu: mtu, stop: 0, action }
    }

    /// What a link does to the packets that are put on it now.
    pub(super) fn action(&mut self, link: LinkId) -> Action {
        let settings = self.settings(link);
        if self.changes.end_is_down(&self.network, link) {
            Action::Drop(Reason::NodeDown)
        } else if !settings.up {
            Action::Drop(Reason::LinkDown)
        } else if !settings.only_delays() {
            Action::More(self.effect(link))
        } else if self.is_captured(link) {
            Action::Captured
        } else {
            Action::Delay
        }
    }

    /// What a link does now.
    pub fn settings(&self, link: LinkId) -> &LinkSettings {
        match self.effect_of.get(&link) {
            Some(&index) => &self.effects[index as usize].settings,
            None => self.network.settings(link),
        }
    }

    /// The index of a link among those that do more than delay.
    pub(super) fn effect(&mut self, link: LinkId) -> u32 {
        if let Some(&index) = self.effect_of.get(&link) {
            return index;
        }
        let index = self.effects.len() as u32;
        let settings = *self.network.settings(link);
        let state = LinkState::new(self.options.seed, link);
        self.effects.push(Effect { settings, state });
        self.effect_of.insert(link, index);
        index
    }
}

/// What is in a network at an address that no host has.
fn nobody(net: &IpNet, address: IpAddr) -> End {
    match net {
        // RFC 3021: with two addresses, none is a broadcast.
        IpNet::V4(net) if net.prefix_len() < 31 && net.broadcast() == address => End::Broadcast,
        _ => End::NoHost,
    }
}
