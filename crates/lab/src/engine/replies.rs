//! Packets that nodes make: answers and errors.

use std::net::IpAddr;

use super::{
    Engine, Made, Reason,
    in_flight::{Origin, Progress, RoutedPacket},
};
use crate::{
    LinkId, Nanos, NodeId,
    engine::answer::{self, IcmpError, Reply},
    packet::Packet,
    pool::{Frame, IP, VIRTIO},
};

impl Engine {
    /// A packet has reached the node that it is for.
    pub(super) fn take(&mut self, at: Nanos, mut routed: RoutedPacket) {
        if routed.progress.is_super {
            return self.split(routed, |engine, part| engine.take(at, part));
        }
        self.finish_checksum(&routed.frame);
        let identification = self.next_identification();
        let length = routed.progress.length as usize;
        let [head, rest] = self.pool.slots_mut(&routed.frame);
        let ip = head.get_mut(IP..).unwrap_or_default();
        let rest = rest.get(..length.saturating_sub(ip.len())).unwrap_or_default();
        match answer::reply(ip, rest, length, identification) {
            Reply::Nothing => self.end_at_node(routed, Reason::ToNode),
            Reply::Error(error) => self.send_error(at, routed, Reason::ToNode, error),
            Reply::Written(length) => {
                self.pool.resize(&mut routed.frame, IP + length);
                self.count_end(&routed.progress, Reason::ToNode);
                self.send_answer(at, routed, Made::Reply);
            }
        }
    }

    /// Ends a packet, and has the node where it ends send an error to its source, if one may be sent.
    pub(super) fn send_error(
        &mut self,
        at: Nanos,
        mut routed: RoutedPacket,
        reason: Reason,
        error: IcmpError,
    ) {
        if routed.progress.is_super {
            return self.split(routed, |engine, part| engine.send_error(at, part, reason, error));
        }
        let Ok(packet) = Packet::read(self.pool.head(&routed.frame), routed.frame.length()) else {
            return self.end_at_node(routed, reason);
        };
        let Some((node, facing)) = self.answering_node(&routed.progress, packet.source.is_ipv4())
        else {
            return self.end_at_node(routed, reason);
        };
        self.finish_checksum(&routed.frame);
        let source = if reason == Reason::ToNode { Some(packet.destination) } else { facing };
        let identification = self.next_identification();
        let [head, _] = self.pool.slots_mut(&routed.frame);
        let ip = head.get_mut(IP..).unwrap_or_default();
        let length = (packet.length as usize).min(ip.len());
        let limiter = &mut self.limiter;
        let allowed = || match error {
            IcmpError::TooBig(_) => true,
            _ => limiter.allows(at, node, packet.source),
        };
        match answer::error(ip, length, error, source, identification, allowed) {
            None => self.end_at_node(routed, reason),
            Some(length) => {
                self.pool.resize(&mut routed.frame, IP + length);
                self.count_end(&routed.progress, reason);
                self.send_answer(at, routed, Made::Error);
            }
        }
    }

    /// Ends a packet at the node where it is, which says nothing.
    fn end_at_node(&mut self, routed: RoutedPacket, reason: Reason) {
        self.count_end(&routed.progress, reason);
        self.paths.release(routed.progress.path);
        self.pool.give_back(routed.frame);
    }

    /// Sends what a node has written over a packet that ended there.
    fn send_answer(&mut self, at: Nanos, routed: RoutedPacket, made: Made) {
        let RoutedPacket { frame, progress } = routed;
        let node = self.paths.get(progress.path).node(progress.stop);
        self.paths.release(progress.path);
        if let Some(virtio) = self.pool.head_mut(&frame).get_mut(..VIRTIO) {
            virtio.fill(0);
        }
        self.ledger[made] += 1;
        self.node_loads.entry(node).or_default().sent += 1;
        self.send(at, node, frame);
    }

    /// Sends a node's own packet.
    fn send(&mut self, at: Nanos, node: NodeId, frame: Frame) {
        match Packet::read(self.pool.head(&frame), frame.length()) {
            Ok(packet) => self.set_out(at, node, frame, &packet, Origin::Node),
            Err(_) => self.end(frame, Reason::Malformed),
        }
    }

    /// The node where a packet is, and its address there: of the interface by which the packet came,
    /// else of the node. None if the node made the packet itself.
    fn answering_node(&self, progress: &Progress, four: bool) -> Option<(NodeId, Option<IpAddr>)> {
        let path = self.paths.get(progress.path);
        let node = path.node(progress.stop);
        let link = match (path.came_by(progress.stop), progress.origin) {
            (Some(link), _) | (None, Origin::Link(link)) => link,
            (None, Origin::Node) => return None,
            (None, Origin::Port(port)) => {
                let port = self.ports.get(usize::from(port.0))?;
                let address = match four {
                    true => port.gateway4.map(IpAddr::V4),
                    false => port.gateway6.map(IpAddr::V6),
                };
                return Some((node, address.or_else(|| self.own_address(node, four))));
            }
        };
        let address = self.interface(link, four).or_else(|| self.own_address(node, four));
        Some((node, address))
    }

    /// The address of the interface at the far end of a link.
    fn interface(&self, link: LinkId, four: bool) -> Option<IpAddr> {
        let back = self.network.reverse(link)?;
        match four {
            true => self.network.interface4(back).map(IpAddr::V4),
            false => self.network.interface6(back).map(IpAddr::V6),
        }
    }

    /// A node's own address.
    fn own_address(&self, node: NodeId, four: bool) -> Option<IpAddr> {
        match four {
            true => self.network.address4(node).map(IpAddr::V4),
            false => self.network.address6(node).map(IpAddr::V6),
        }
    }

    /// What joins the fragments of the next packet that a node makes.
    fn next_identification(&mut self) -> u16 {
        self.identification = self.identification.wrapping_add(1);
        self.identification
    }
}
