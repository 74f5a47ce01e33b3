//! How a packet travels: from stop to stop of its itinerary.

use wire::{EtherType, Mac};

use super::{Engine, Made, Reason, itinerary::End};
use crate::{
    Nanos, PortId,
    answer::neighbour::{self, Heard},
    link::{Arrival, DropReason, Fate},
    packet::{self, Bad, Packet},
    pool::{ETHERNET, Frame, IP, VIRTIO},
};

/// A packet under way.
#[derive(Debug)]
pub(super) struct Flight {
    pub frame: Frame,
    /// Its itinerary.
    pub itinerary: u32,
    /// Where on it this leg began, and when.
    pub from: u16,
    pub began: Nanos,
    /// Where the leg ends: the next place at which something happens to the packet.
    pub stop: u16,
    pub ttl: u8,
    pub ect: bool,
    /// Bytes of the packet, and of the packets that it stands for.
    pub length: u32,
    pub segment: u32,
    /// The state of the network for which the itinerary was worked out.
    pub generation: u32,
}

impl Engine {
    /// Takes a frame from a host.
    pub(super) fn enter(&mut self, now: Nanos, id: PortId, mut frame: Frame) {
        let Some(port) = self.ports.get_mut(usize::from(id.0)) else {
            return self.end(frame, Reason::NotForNode);
        };
        let head = self.pool.head(&frame);
        let Some((mac, rest)) = head.get(VIRTIO..).and_then(<[u8]>::split_first_chunk::<6>) else {
            return self.end(frame, Reason::Malformed);
        };
        let Some((host, rest)) = rest.split_first_chunk::<6>() else {
            return self.end(frame, Reason::Malformed);
        };
        let Some((&kind, payload)) = rest.split_first_chunk::<2>() else {
            return self.end(frame, Reason::Malformed);
        };
        let (to, host, kind) = (Mac(*mac), Mac(*host), EtherType(u16::from_be_bytes(kind)));
        if to != port.mac && !to.is_multicast() {
            return self.end(frame, Reason::NotForNode);
        }
        if port.host != Some(host) && !host.is_multicast() {
            port.host = Some(host);
        }
        let heard = match kind {
            EtherType::ARP => {
                let is_host = |address| port.is_host(address);
                neighbour::arp(&neighbour::Link { node: port.mac, is_host: &is_host }, payload)
            }
            EtherType::IPV6 if is_discovery(payload) => {
                let is_host = |address| port.is_host(address);
                let link = neighbour::Link { node: port.mac, is_host: &is_host };
                neighbour::discovery(&link, host, payload)
            }
            EtherType::IPV4 | EtherType::IPV6 if !to.is_multicast() => {
                let node = port.node;
                let packet = match Packet::read(head, frame.packet_length()) {
                    Ok(packet) => packet,
                    Err(Bad::Malformed) => return self.end(frame, Reason::Malformed),
                    Err(Bad::Address) => return self.end(frame, Reason::Address),
                };
                self.pool.cut(&mut frame, IP + packet.length as usize);
                return self.set_out(now, node, frame, &packet);
            }
            EtherType::IPV4 | EtherType::IPV6 => return self.end(frame, Reason::Address),
            _ => return self.end(frame, Reason::NotForNode),
        };
        self.end(frame, Reason::Neighbour);
        if let Heard::Ask(answer, length) = heard {
            self.tell(id, answer.get(..length).unwrap_or_default());
        }
    }

    /// Sends a frame to a port's host at once.
    fn tell(&mut self, port: PortId, bytes: &[u8]) {
        let Some(frame) = self.pool.take_long(bytes.len()) else { return };
        self.pool.head_mut(&frame).copy_from_slice(bytes);
        self.ledger[Made::Neighbour] += 1;
        self.ready.push((port, frame));
    }

    /// Sends a packet on its way from a node.
    fn set_out(&mut self, now: Nanos, node: crate::NodeId, frame: Frame, packet: &Packet) {
        // Worked out by itself: the flow is hashed only where the way depends on it.
        let flow = packet::flow(self.pool.head(&frame), packet);
        let itinerary = self.itinerary(node, packet.destination, || flow);
        self.plans.hold(itinerary);
        let flight = Flight {
            frame,
            itinerary,
            from: 0,
            began: now,
            stop: 0,
            ttl: packet.ttl,
            ect: packet.ect,
            length: packet.length,
            segment: packet.segment,
            generation: self.generation,
        };
        self.leave(flight);
    }

    /// Begins a leg at `from` at the time `began`: one timer up to the next stop.
    fn leave(&mut self, mut flight: Flight) {
        let itinerary = self.plans.get(flight.itinerary);
        flight.stop = itinerary.stop(flight.from, flight.ttl, flight.segment);
        let takes = itinerary.before(flight.stop) - itinerary.before(flight.from);
        let hops = flight.stop.saturating_sub(flight.from) as u8;
        self.take_hops(&mut flight, hops);
        let at = flight.began + takes;
        let number = match self.free_flights.pop() {
            Some(number) => {
                self.flights[number as usize] = Some(flight);
                number
            }
            None => {
                self.flights.push(Some(flight));
                (self.flights.len() - 1) as u32
            }
        };
        self.timers.add(at, number);
    }

    /// A packet has reached its stop.
    pub(super) fn arrive(&mut self, at: Nanos, mut flight: Flight) {
        if flight.generation != self.generation {
            self.plan_again(&mut flight);
        }
        let itinerary = self.plans.get(flight.itinerary);
        let end = itinerary.end;
        let hop = itinerary.hops.get(usize::from(flight.stop)).copied();
        match (hop, end) {
            (None, End::NoRoute) => self.finish(flight, Reason::NoRoute),
            (None, End::Node) => self.finish(flight, Reason::ToNode),
            _ if flight.ttl <= 1 => self.finish(flight, Reason::TtlExceeded),
            (None, End::NoHost) => self.finish(flight, Reason::NoHost),
            (None, End::Port(port)) => {
                self.take_hops(&mut flight, 1);
                self.deliver(port, flight);
            }
            (Some(hop), _) if flight.segment > hop.mtu => self.finish(flight, Reason::TooBig),
            (Some(hop), _) => {
                let after = match hop.effect {
                    Some(effect) => match self.offer(effect, at, &flight) {
                        Ok(after) => after,
                        Err(reason) => return self.finish(flight, reason),
                    },
                    None => at,
                };
                flight.from = flight.stop + u16::from(hop.effect.is_some());
                if hop.effect.is_some() {
                    self.take_hops(&mut flight, 1);
                }
                flight.began = after;
                self.leave(flight);
            }
        }
    }

    /// The network has changed since the packet set out: from here on it goes as packets go now.
    fn plan_again(&mut self, flight: &mut Flight) {
        flight.generation = self.generation;
        let head = self.pool.head(&flight.frame);
        let Ok(packet) = Packet::read(head, flight.frame.packet_length()) else { return };
        let flow = packet::flow(head, &packet);
        let node = self.plans.get(flight.itinerary).node(flight.stop);
        let itinerary = self.itinerary(node, packet.destination, || flow);
        self.plans.hold(itinerary);
        self.plans.release(std::mem::replace(&mut flight.itinerary, itinerary));
        flight.stop = 0;
    }

    /// Puts a packet on a link that does more than delay: when it arrives, or why it does not.
    fn offer(&mut self, effect: u32, now: Nanos, flight: &Flight) -> Result<Nanos, Reason> {
        let effect = &mut self.effects[effect as usize];
        let arrival = Arrival { now, length: flight.length, ect: flight.ect };
        match effect.state.offer(&effect.settings, arrival) {
            Fate::Drop(DropReason::Down) => Err(Reason::LinkDown),
            Fate::Drop(DropReason::QueueFull) => Err(Reason::QueueFull),
            Fate::Drop(DropReason::QueueDiscipline) => Err(Reason::QueueManaged),
            Fate::Drop(DropReason::Lost) => Err(Reason::Loss),
            Fate::Pass { at, .. } => Ok(at),
        }
    }

    /// Hands a packet to its host.
    fn deliver(&mut self, id: PortId, flight: Flight) {
        let Some((port, host)) =
            self.ports.get(usize::from(id.0)).and_then(|port| Some((port, port.host?)))
        else {
            return self.finish(flight, Reason::HostUnknown);
        };
        let head = self.pool.head_mut(&flight.frame);
        if let Some(macs) = head.get_mut(VIRTIO..VIRTIO + ETHERNET - 2) {
            macs[..6].copy_from_slice(&host.0);
            macs[6..].copy_from_slice(&port.mac.0);
        }
        self.plans.release(flight.itinerary);
        self.ready.push((id, flight.frame));
    }

    /// Takes hops from a packet's TTL.
    fn take_hops(&mut self, flight: &mut Flight, hops: u8) {
        if hops > 0 {
            flight.ttl = flight.ttl.saturating_sub(hops);
            if let Some(ip) = self.pool.head_mut(&flight.frame).get_mut(IP..) {
                packet::take_hops(ip, hops);
            }
        }
    }

    /// Ends a packet that was under way.
    fn finish(&mut self, flight: Flight, reason: Reason) {
        self.plans.release(flight.itinerary);
        self.end(flight.frame, reason);
    }

    /// Ends a packet.
    fn end(&mut self, frame: Frame, reason: Reason) {
        self.ledger[reason] += 1;
        self.pool.give_back(frame);
    }
}

/// Whether an IPv6 packet is neighbour or router discovery.
fn is_discovery(ip: &[u8]) -> bool {
    ip.get(6) == Some(&58) && matches!(ip.get(40), Some(133..=137))
}
