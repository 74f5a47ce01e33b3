//! Copies of packets as they pass links and nodes that somebody watches.
//!
//! A packet passes a run of links that only delay without being inspected. So a link that is watched
//! ends the run, as one that does more than delay: packets stop there, at the very time and with the TTL
//! that they have there. Nobody pays for this when nobody watches.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
    mpsc::Sender,
};

use super::{
    Engine, Reason,
    in_flight::{InFlight, Origin, Part, Progress, RoutedPacket},
};
use crate::{
    LinkId, Nanos, NodeId, PortId,
    pool::{Frame, VIRTIO},
};

/// Bytes that may wait to be taken by somebody who watches.
const ROOM: usize = 32 << 20;
/// What a copy takes beside its bytes.
const OVERHEAD: usize = 128;

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// What is put on a link, and on the one back if there is a second.
    Link(LinkId, Option<LinkId>),
    /// What comes to a node and what leaves it.
    Node(NodeId),
}

/// Where a packet was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CapturePoint {
    /// Its node has put it on this link.
    Onto(LinkId),
    /// It has come to the node by this link.
    By(LinkId),
    /// It has come to the node from the host of this port.
    FromHost(PortId),
    /// Its node has handed it to the host of this port.
    ToHost(PortId),
}

/// A packet that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedPacket {
    /// When.
    pub at: Nanos,
    /// Where.
    pub point: CapturePoint,
    /// Whether it is a frame on a wire, with its Ethernet header, and not an IP packet.
    pub ethernet: bool,
    /// Bytes of the IP packet, or of the frame.
    pub length: u32,
    /// The first of them.
    pub bytes: Vec<u8>,
    /// Why the link did not carry it, if it did not.
    pub dropped: Option<Reason>,
}

/// The room for copies that wait, and how many found none.
#[derive(Debug, Default)]
pub struct Room {
    used: AtomicUsize,
    lost: AtomicU64,
}

impl Room {
    /// Makes room again for a copy that was taken.
    pub fn taken(&self, seen: &CapturedPacket) {
        self.used.fetch_sub(seen.bytes.len() + OVERHEAD, Ordering::Relaxed);
    }

    /// Copies that found no room.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// Somebody who watches.
#[derive(Debug)]
pub struct Watch {
    /// What.
    pub what: Watched,
    /// Most bytes of each packet.
    pub snap: usize,
    /// Where copies go.
    pub to: Sender<CapturedPacket>,
    /// How much may wait there.
    pub room: Arc<Room>,
}

/// Everybody who watches.
#[derive(Debug, Default)]
pub(super) struct Watches {
    all: Vec<(u32, Watch)>,
    made: u32,
}

impl Watches {
    /// Whether nobody watches.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl Engine {
    /// Begins to copy packets; returns the number by which it is ended.
    pub fn watch(&mut self, watch: Watch) -> u32 {
        self.watches.made += 1;
        self.watches.all.push((self.watches.made, watch));
        self.forget_paths();
        self.watches.made
    }

    /// Ends it.
    pub fn unwatch(&mut self, number: u32) {
        self.watches.all.retain(|(other, _)| *other != number);
        self.forget_paths();
    }

    /// Whether packets stop at a link to be seen.
    pub(super) fn is_captured(&self, link: LinkId) -> bool {
        self.watches.all.iter().any(|(_, watch)| match watch.what {
            Watched::Link(one, other) => one == link || other == Some(link),
            Watched::Node(node) => self.network.from(link) == node,
        })
    }

    /// A packet has come to a node.
    pub(super) fn capture_arrival(&mut self, at: Nanos, frame: &Frame, progress: &Progress) {
        let path = self.paths.get(progress.path);
        let node = path.node(progress.stop);
        let point = match (path.came_by(progress.stop), progress.origin) {
            (Some(link), _) | (None, Origin::Link(link)) => CapturePoint::By(link),
            (None, Origin::Port(port)) => CapturePoint::FromHost(port),
            (None, Origin::Node) => return,
        };
        self.capture(at, frame, Part::packet(progress), point, node, None);
    }

    /// A packet was put on a link, which carries it if it is not `dropped`.
    pub(super) fn capture_transmission(
        &mut self,
        at: Nanos,
        packet: &InFlight,
        link: LinkId,
        dropped: Option<Reason>,
    ) {
        if !self.watches.is_empty() {
            let node = self.network.from(link);
            let point = CapturePoint::Onto(link);
            self.capture(at, packet.frame(), packet.part(), point, node, dropped);
        }
    }

    /// A packet is handed to a port's host.
    pub(super) fn capture_delivery(&mut self, at: Nanos, routed: &RoutedPacket, id: PortId) {
        if self.watches.is_empty() {
            return;
        }
        let Some(node) = self.ports.get(usize::from(id.0)).map(|port| port.node) else { return };
        let part = Part::packet(&routed.progress);
        self.capture(at, &routed.frame, part, CapturePoint::ToHost(id), node, None);
    }

    /// A packet was seen at a node.
    pub(super) fn capture(
        &mut self,
        at: Nanos,
        frame: &Frame,
        part: Part,
        point: CapturePoint,
        node: NodeId,
        dropped: Option<Reason>,
    ) {
        let is_meant = |watch: &Watch| match (watch.what, point) {
            (Watched::Link(one, other), CapturePoint::Onto(link)) => {
                one == link || other == Some(link)
            }
            (Watched::Link(..), _) => false,
            (Watched::Node(watched), _) => watched == node,
        };
        if !self.watches.all.iter().any(|(_, watch)| is_meant(watch)) {
            return;
        }
        if !part.is_super {
            self.finish_checksum(frame);
        }
        let [head, rest] = self.pool.pieces(frame);
        let head = head.get(part.from..).unwrap_or_default();
        for (_, watch) in self.watches.all.iter().filter(|(_, watch)| is_meant(watch)) {
            let length = (part.length as usize).min(watch.snap);
            let bytes = length + OVERHEAD;
            if watch.room.used.fetch_add(bytes, Ordering::Relaxed) + bytes > ROOM {
                watch.room.used.fetch_sub(bytes, Ordering::Relaxed);
                watch.room.lost.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let mut bytes = Vec::with_capacity(length);
            bytes.extend(head.iter().take(length));
            bytes.extend(rest.iter().take(length - bytes.len()));
            let ethernet = part.from == VIRTIO;
            let seen = CapturedPacket { at, point, ethernet, length: part.length, bytes, dropped };
            let _ = watch.to.send(seen);
        }
    }
}
