//! The engine: frames and readings of a clock go in, frames and the time of the next timer come out.
//!
//! ```text
//! ingress -> path (one look-up) -> run of links that only delay: one timer -+-> a link that does
//!                                       ^                                        |   more: its outcome
//!                                       +------------------------<---------------+---------+
//! out <- MAC addresses <- host at the end, or the node there answers <-----------+
//! ```
//!
//! A packet is read once, when it comes in. In flight only its TTL changes. Time is virtual: a packet
//! goes on from the time for which its timer was set, however late the engine was asked, so lateness
//! does not add up over hops. Frames of ports that are joined by a wire go round all this (`cross`).

mod answer;
mod capture;
mod change;
mod cross;
mod enter;
mod events;
mod in_flight;
mod ledger;
mod load;
mod parts;
mod path;
mod paths;
mod port;
mod replies;
mod timers;
mod transmit;
mod travel;

#[cfg(test)]
mod tests;

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use rustc_hash::FxHashMap;
use wire::{IpNet, Mac};

use crate::{
    LinkId, Nanos, NodeId, PortId,
    link::LinkState,
    network::Network,
    pool::{Frame, Pool},
    route::{RoutePolicy, Router},
    settings::LinkSettings,
};
pub use answer::limit::IcmpLimits;
use answer::limit::Limiter;
use capture::Watches;
pub use capture::{CapturePoint, CapturedPacket, Room, Watch, Watched};
pub use change::ChangeError;
use change::Changes;
use events::EventLog;
pub use events::{Change, Event, EventKind};
use in_flight::InFlight;
pub use ledger::{Ledger, Made, Reason};
pub use load::{LinkLoad, NodeLoad};
pub use path::End;
use paths::PathCache;
pub use paths::TracedPath;
pub(crate) use port::Port;
use timers::Timers;

/// How an engine is to work.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// What all chance comes from.
    pub seed: u64,
    /// Whether super-packets pass whole where links only delay; if not they are split when they come in.
    pub gso: bool,
    /// Frames that there may be at a time.
    pub frames: usize,
    /// Frames of more than 2,048 bytes that there may be at a time.
    pub spills: usize,
    /// Paths that are kept.
    pub paths: usize,
    /// How next hops are chosen.
    pub policy: RoutePolicy,
    /// How long routing takes to hear of a link that went down or came up.
    pub convergence: Nanos,
    /// How many ICMP errors nodes send.
    pub icmp: IcmpLimits,
    /// Bytes that next hops may take which were worked out.
    pub routes: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            gso: true,
            frames: 262_144,
            spills: 4096,
            paths: 65_536,
            policy: RoutePolicy::default(),
            convergence: Nanos(1_000_000_000),
            icmp: IcmpLimits::default(),
            routes: 64 << 20,
        }
    }
}

/// A simulated network with packets in it.
pub struct Engine {
    network: Arc<Network>,
    router: Router,
    options: EngineOptions,
    pool: Pool,
    ports: Vec<Port>,
    /// The links that are directions of wires, in order.
    wires: Vec<LinkId>,
    owners: FxHashMap<IpAddr, AddressOwner>,
    paths: PathCache,
    effects: Vec<Effect>,
    effect_of: FxHashMap<LinkId, u32>,
    timers: Timers,
    order: u64,
    /// What waits for its time.
    in_flight: Vec<Option<InFlight>>,
    free_in_flight: Vec<u32>,
    ready: Vec<(PortId, Frame)>,
    changes: Changes,
    events: EventLog,
    watches: Watches,
    limiter: Limiter,
    identification: u16,
    generation: u32,
    ledger: Ledger,
    link_loads: FxHashMap<LinkId, LinkLoad>,
    node_loads: FxHashMap<NodeId, NodeLoad>,
    links: Vec<LinkId>,
}

/// Whose an address is that was given to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressOwner {
    /// The host's behind this port.
    Host(PortId),
    /// That of this node towards a port.
    Node(NodeId),
}

/// A link that does more than delay.
struct Effect {
    settings: LinkSettings,
    state: LinkState,
}

impl Engine {
    /// An engine without ports.
    pub fn new(network: Arc<Network>, options: EngineOptions) -> Self {
        let mut engine = Self {
            router: Router::new(options.policy, options.routes),
            network,
            pool: Pool::new(options.frames, options.spills),
            ports: Vec::new(),
            wires: Vec::new(),
            owners: FxHashMap::default(),
            paths: PathCache::new(options.paths),
            effects: Vec::new(),
            effect_of: FxHashMap::default(),
            timers: Timers::default(),
            order: 0,
            in_flight: Vec::new(),
            free_in_flight: Vec::new(),
            ready: Vec::new(),
            changes: Changes::default(),
            events: EventLog::default(),
            watches: Watches::default(),
            limiter: Limiter::new(options.icmp),
            identification: 0,
            generation: 0,
            ledger: Ledger::default(),
            link_loads: FxHashMap::default(),
            node_loads: FxHashMap::default(),
            links: Vec::new(),
            options,
        };
        engine.begin_routing();
        engine
    }

    /// Joins a host to a node: `mac` is the node's on the link between them, `addresses` are the
    /// host's, each with the prefix that the host takes for its link.
    ///
    /// Frames leave by the port with a virtio header, so super-packets and unfinished checksums may;
    /// see [`Engine::set_plain`].
    pub fn add_port(&mut self, node: NodeId, mac: Mac, addresses: Vec<IpNet>) -> PortId {
        let id = PortId(self.ports.len() as u16);
        let (four, six): (Vec<_>, Vec<_>) =
            addresses.iter().copied().partition(|net| net.addr().is_ipv4());
        let own4 = self.network.address4(node).map(IpAddr::from);
        let own6 = self.network.address6(node).map(IpAddr::from);
        let gateway4 = match port::gateway(&four, own4) {
            Some(IpAddr::V4(address)) => Some(address),
            _ => None,
        };
        let gateway6 = match port::gateway(&six, own6) {
            Some(IpAddr::V6(address)) => Some(address),
            _ => None,
        };
        for address in gateway4.map(IpAddr::from).into_iter().chain(gateway6.map(IpAddr::from)) {
            self.owners.entry(address).or_insert(AddressOwner::Node(node));
        }
        self.owners.extend(addresses.iter().map(|net| (net.addr(), AddressOwner::Host(id))));
        let (host, asked, plain, wire) = (None, None, false, None);
        let port = Port { node, mac, host, asked, addresses, plain, wire, gateway4, gateway6 };
        self.ports.push(port);
        self.forget_paths();
        id
    }

    /// Says that a port has no virtio header: frames leave by it in their final form.
    pub fn set_plain(&mut self, port: PortId) {
        if let Some(port) = self.ports.get_mut(usize::from(port.0)) {
            port.plain = true;
        }
    }

    /// Sets the MAC address of a port's host. Without it it is learned from the host's frames.
    pub fn learn(&mut self, port: PortId, mac: Mac) {
        if let Some(port) = self.ports.get_mut(usize::from(port.0)) {
            port.host = Some(mac);
        }
    }

    /// The node's own IPv4 address on a port, for the host's default route.
    pub fn gateway4(&self, port: PortId) -> Option<Ipv4Addr> {
        self.ports.get(usize::from(port.0))?.gateway4
    }

    /// The node's own IPv6 address on a port, for the host's default route.
    pub fn gateway6(&self, port: PortId) -> Option<Ipv6Addr> {
        self.ports.get(usize::from(port.0))?.gateway6
    }

    /// The buffers, to read frames into and write them from.
    pub fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// The network as it was loaded.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The outcome of every packet, in counters.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// When [`Engine::advance`] has something to do next.
    pub fn due(&self) -> Option<Nanos> {
        if !self.ready.is_empty() {
            return Some(Nanos::ZERO);
        }
        self.timers.due().into_iter().chain(self.changes.due()).min()
    }

    /// Takes a frame from a port's host. Call [`Engine::advance`] after a batch of them.
    pub fn ingress(&mut self, now: Nanos, port: PortId, frame: Frame) {
        self.ledger.received += 1;
        self.enter(now, port, frame);
    }

    /// Does everything that is due, and gives the frames that leave. Each goes back to the pool when
    /// it was written, or else is [refused](Engine::refused).
    pub fn advance(&mut self, now: Nanos, out: &mut Vec<(PortId, Frame)>) {
        self.catch_up(now);
        self.ledger.sent += self.ready.len() as u64;
        out.append(&mut self.ready);
    }

    /// Takes back a frame that its host did not take.
    pub fn refused(&mut self, frame: Frame) {
        self.ledger.sent -= 1;
        self.ledger[Reason::HostRefused] += 1;
        self.pool.give_back(frame);
    }

    /// Does everything that is due.
    fn catch_up(&mut self, now: Nanos) {
        loop {
            let news = self.changes.due().filter(|&at| at <= now);
            let Some((at, number)) = self.timers.take(news.unwrap_or(now)) else {
                let Some(news) = news else { break };
                self.converge(news);
                continue;
            };
            let Some(packet) = self.in_flight.get_mut(number as usize).and_then(Option::take)
            else {
                continue;
            };
            self.free_in_flight.push(number);
            match packet {
                InFlight::Packet(routed) => self.arrive(at, routed),
                InFlight::Frame(wired) => self.land(at, wired),
            }
        }
    }

    /// Everything that was worked out from the network as it was.
    fn forget_paths(&mut self) {
        self.generation += 1;
        self.paths.clear();
    }
}
