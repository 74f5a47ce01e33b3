//! Wires: two ports that are joined directly by a link, as by a cable.
//!
//! A frame crosses as it is: whatever its EtherType, with its MAC addresses, TTL and padding, and a
//! super-packet whole. What a link may do to it is what links do to packets: delay, jitter, loss,
//! copies, reordering, flipped bits, a rate with its queue (which may mark congestion), an MTU, and
//! being down. Nobody on a wire answers: a frame that is too large is lost, as by a switch.
//!
//! Each direction is a directed link of the network, so it is named, counted, changed and captured as
//! any other. The nodes at its ends stand for the systems that are joined; they forward nothing.

use wire::{EtherType, ethernet};

use super::{
    CapturePoint, Engine, Reason,
    in_flight::{InFlight, PARTS, Part, WireFrame},
    path::Action,
    port::{Joined, Port},
};
use crate::{
    LinkId, Nanos, PortId,
    gso::SuperPacket,
    pool::{Frame, IP, VIRTIO},
};

/// What matters of a frame on a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// Where its payload begins, behind tags.
    payload: usize,
    /// Bytes of the longest payload that it or a packet in it has, without tags.
    longest: u32,
    /// Whether its sender allows marks of congestion.
    ect: bool,
    /// Whether it stands for several packets, and can be cut into them.
    is_super: bool,
}

impl Shape {
    /// None if there is no Ethernet header.
    fn read(head: &[u8], length: usize) -> Option<Self> {
        let kind = |at: usize| Some(EtherType(u16::from_be_bytes(*head.get(at..)?.first_chunk()?)));
        let mut payload = IP;
        for _ in 0..ethernet::MAX_TAGS {
            if kind(payload - 2).is_some_and(EtherType::is_vlan) {
                payload += ethernet::TAG;
            }
        }
        let byte = |at: usize| head.get(payload + at).copied().unwrap_or_default();
        let ect = match kind(payload - 2)? {
            EtherType::IPV4 => byte(0) >> 4 == 4 && byte(1) & 3 != 0,
            EtherType::IPV6 => byte(0) >> 4 == 6 && byte(1) & 0x30 != 0,
            _ => false,
        };
        // The byte that defines how a super-packet is cut. One that cannot be, such as one with a tag,
        // was made for its sender's MTU all the same.
        let (is_super, longest) = match head.get(1) {
            Some(0) => (false, length.saturating_sub(payload) as u32),
            _ => match SuperPacket::parse(head, length) {
                Ok(Some(parts)) => (true, parts.largest()),
                _ => (false, 0),
            },
        };
        Some(Self { payload, longest, ect, is_super })
    }
}

impl Engine {
    /// Makes a wire of a link and the one back; returns the ports at its two ends, the first of them
    /// where the link begins.
    ///
    /// None if the link has no reverse direction, or both begin at one node.
    pub fn add_wire(&mut self, link: LinkId) -> Option<[PortId; 2]> {
        let back = self.network.reverse(link).filter(|back| *back != link)?;
        let first = self.ports.len() as u16;
        let ids = [PortId(first), PortId(first + 1)];
        for (link, other) in [(link, ids[1]), (back, ids[0])] {
            self.ports.push(Port::of_wire(self.network.from(link), Joined { link, other }));
            self.wires.push(link);
        }
        self.wires.sort_unstable();
        Some(ids)
    }

    /// Whether a link is a direction of a wire.
    pub fn is_wire(&self, link: LinkId) -> bool {
        self.wires.binary_search(&link).is_ok()
    }

    /// Puts a frame on the wire that its port is joined to.
    pub(super) fn cross(&mut self, now: Nanos, wire: Joined, frame: Frame) {
        let Some(shape) = Shape::read(self.pool.head(&frame), frame.length()) else {
            return self.end(frame, Reason::Malformed);
        };
        let action = self.action(wire.link);
        let settings = *self.settings(wire.link);
        let whole = self.on_wire(wire, frame, shape);
        if matches!(action, Action::Drop(_)) {
            return self.transmit(now, wire.link, action, InFlight::Frame(whole));
        }
        if shape.longest > settings.mtu {
            return self.lose(now, wire.link, InFlight::Frame(whole), Reason::TooBig);
        }
        if shape.is_super && (settings.one_by_one() || !self.options.gso) {
            let cut = self.cut(&whole.frame, |engine, _, part| {
                let part = engine.on_wire(wire, part, shape);
                engine.transmit(now, wire.link, action, InFlight::Frame(part));
            });
            return self.end(whole.frame, if cut { Reason::Split } else { Reason::Malformed });
        }
        self.transmit(now, wire.link, action, InFlight::Frame(whole));
    }

    /// A frame that is put on a wire next.
    fn on_wire(&mut self, wire: Joined, frame: Frame, shape: Shape) -> WireFrame {
        let order = self.order;
        self.order += PARTS * PARTS;
        let Shape { payload, ect, .. } = shape;
        WireFrame { frame, link: wire.link, to: wire.other, payload, ect, order }
    }

    /// A frame has come to the other end of its wire.
    pub(super) fn land(&mut self, at: Nanos, wired: WireFrame) {
        let WireFrame { frame, link, to, .. } = wired;
        let node = self.network.to(link);
        if self.changes.is_down(node) {
            return self.end(frame, Reason::NodeDown);
        }
        if !self.watches.is_empty() {
            let part = Part::frame(&frame);
            self.capture(at, &frame, part, CapturePoint::By(link), node, None);
        }
        if !self.ports.get(usize::from(to.0)).is_some_and(|port| port.plain) {
            return self.ready.push((to, frame));
        }
        let is_super = self.pool.head(&frame).get(1).is_some_and(|kind| *kind != 0);
        if is_super {
            let cut = self.cut(&frame, |engine, _, part| engine.land_plain(to, part));
            return self.end(frame, if cut { Reason::Split } else { Reason::Malformed });
        }
        self.land_plain(to, frame);
    }

    /// A frame leaves by a port without virtio header.
    fn land_plain(&mut self, to: PortId, frame: Frame) {
        self.finish_checksum(&frame);
        if let Some(header) = self.pool.head_mut(&frame).get_mut(..VIRTIO) {
            header.fill(0);
        }
        self.ready.push((to, frame));
    }
}
