//! What comes from hosts.

use wire::{EtherType, Mac, Reader};

use super::{Engine, Made, Reason, in_flight::Origin};
use crate::{
    Nanos, PortId,
    engine::answer::neighbour::{self, NeighbourReply},
    packet::{Bad, Packet},
    pool::{Frame, IP, VIRTIO},
};

impl Engine {
    /// Takes a frame from a host.
    pub(super) fn enter(&mut self, now: Nanos, id: PortId, mut frame: Frame) {
        let Some(port) = self.ports.get_mut(usize::from(id.0)) else {
            return self.end(frame, Reason::NotForNode);
        };
        if frame.is_cut() {
            return self.end(frame, Reason::NoBuffer);
        }
        if let Some(wire) = port.wire {
            return self.cross(now, wire, frame);
        }
        let head = self.pool.head(&frame);
        let Some((to, host, kind, payload)) = ethernet(head) else {
            return self.end(frame, Reason::Malformed);
        };
        let node = port.node;
        if self.changes.is_down(node) {
            return self.end(frame, Reason::NodeDown);
        }
        if to != port.mac && !to.is_multicast() {
            return self.end(frame, Reason::NotForNode);
        }
        if port.host != Some(host) && !host.is_multicast() {
            port.host = Some(host);
        }
        let reply = match kind {
            EtherType::ARP => neighbour::arp(port, payload),
            EtherType::IPV6 if is_discovery(payload) => neighbour::discovery(port, host, payload),
            EtherType::IPV4 | EtherType::IPV6 if !to.is_multicast() => {
                let packet = match Packet::read(head, frame.length()) {
                    Ok(packet) => packet,
                    Err(Bad::Malformed) => return self.end(frame, Reason::Malformed),
                    Err(Bad::Address) => return self.end(frame, Reason::Address),
                };
                self.pool.cut(&mut frame, IP + packet.length as usize);
                return self.set_out(now, node, frame, &packet, Origin::Port(id));
            }
            EtherType::IPV4 | EtherType::IPV6 => return self.end(frame, Reason::Address),
            _ => return self.end(frame, Reason::NotForNode),
        };
        self.end(frame, Reason::Neighbour);
        self.send_to_host(id, &reply);
    }

    /// A packet for a host has come whose MAC address is not known: asks for it, once a second at most.
    pub(super) fn ask_for_host(&mut self, at: Nanos, id: PortId, frame: &Frame) {
        const AGAIN: Nanos = Nanos(1_000_000_000);
        let Ok(packet) = Packet::read(self.pool.head(frame), frame.length()) else { return };
        let Some(port) = self.ports.get_mut(usize::from(id.0)) else { return };
        if port.asked.is_none_or(|asked| at.since(asked) >= AGAIN) {
            port.asked = Some(at);
            let question = neighbour::ask(port, packet.destination);
            self.send_to_host(id, &question);
        }
    }

    /// Sends a neighbour's message to a port's host at once.
    fn send_to_host(&mut self, port: PortId, message: &NeighbourReply) {
        let NeighbourReply::Send(bytes, length) = message else { return };
        let bytes = bytes.get(..*length).unwrap_or_default();
        let Some(frame) = self.pool.take_long(bytes.len()) else { return };
        self.pool.head_mut(&frame).copy_from_slice(bytes);
        self.ledger[Made::Neighbour] += 1;
        self.ready.push((port, frame));
    }
}

/// The parts of an untagged frame: where to, where from, what it carries.
fn ethernet(head: &[u8]) -> Option<(Mac, Mac, EtherType, &[u8])> {
    let mut rest = Reader::new(head.get(VIRTIO..)?);
    let (to, from, kind) = (rest.array()?, rest.array()?, rest.array()?);
    Some((Mac(to), Mac(from), EtherType(u16::from_be_bytes(kind)), rest.rest()))
}

/// Whether an IPv6 packet is neighbour or router discovery.
fn is_discovery(ip: &[u8]) -> bool {
    ip.get(6) == Some(&58) && matches!(ip.get(40), Some(133..=137))
}
