//! How a packet crosses a link: one path for the packets that nodes forward and for frames on wires.
//!
//! The link decides once, when the packet is put on it, and everything that follows from it happens
//! here in one order: count, take a hop, mark, capture, damage, copy, and set the timer of its arrival.

use super::{
    Effect, Engine, Made, Reason,
    in_flight::{InFlight, Progress, RoutedPacket, WireFrame},
    path::Action,
};
use crate::{
    LinkId, Nanos,
    link::{Arrival, Outcome},
    packet,
};

impl Engine {
    /// Puts a packet on a link, which does `action` to it.
    pub(super) fn transmit(
        &mut self,
        now: Nanos,
        link: LinkId,
        action: Action,
        mut packet: InFlight,
    ) {
        let outcome = match action {
            Action::Drop(reason) => return self.lose(now, link, packet, reason),
            Action::More(effect) => {
                let Effect { settings, state } = &mut self.effects[effect as usize];
                let arrival = Arrival { now, length: packet.length(), ect: packet.ect() };
                state.offer(settings, arrival)
            }
            Action::Delay | Action::Captured => Outcome::delayed(now + self.settings(link).delay),
        };
        let (at, copy, corrupt, mark) = match outcome {
            Outcome::Pass { at, copy, corrupt, mark } => (at, copy, corrupt, mark),
            Outcome::Drop(reason) => return self.lose(now, link, packet, reason.into()),
        };
        self.count_link(link, packet.length(), true);
        self.take_hop(&mut packet);
        if mark && let Some(ip) = self.pool.head_mut(packet.frame()).get_mut(packet.payload()..) {
            packet::mark(ip);
        }
        self.capture_transmission(now, &packet, link, None);
        if let Some(bit) = corrupt {
            let damaged = self.flip_bit(packet.frame(), bit);
            if let InFlight::Packet(routed) = &mut packet {
                routed.progress.damaged |= damaged;
            }
        }
        if let Some(at) = copy
            && let Some(twin) = self.copy(&packet)
        {
            self.carry(at, twin);
        }
        self.carry(at, packet);
    }

    /// A link does not carry a packet.
    pub(super) fn lose(&mut self, now: Nanos, link: LinkId, mut packet: InFlight, reason: Reason) {
        self.count_link(link, packet.length(), false);
        // Its node has taken a hop from it, like from those that are carried.
        self.take_hop(&mut packet);
        self.capture_transmission(now, &packet, link, Some(reason));
        match packet {
            InFlight::Packet(routed) => self.finish(routed, reason),
            InFlight::Frame(wired) => self.end(wired.frame, reason),
        }
    }

    /// A packet is on a link until its time.
    fn carry(&mut self, at: Nanos, packet: InFlight) {
        match packet {
            InFlight::Packet(mut routed) => {
                let progress = &mut routed.progress;
                *progress =
                    Progress { began: at, from: progress.from + 1, captured: false, ..*progress };
                self.leave(routed);
            }
            InFlight::Frame(wired) => self.wait(at, wired.order, InFlight::Frame(wired)),
        }
    }

    /// The node before a link forwards a packet; wires take no hop.
    fn take_hop(&mut self, packet: &mut InFlight) {
        if let InFlight::Packet(routed) = packet {
            self.take_hops(routed, 1);
        }
    }

    /// A second packet with the same bytes, at the same point of its path.
    fn copy(&mut self, packet: &InFlight) -> Option<InFlight> {
        self.ledger[Made::Copy] += 1;
        let Some(frame) = self.twin(packet.frame()) else {
            self.ledger[Reason::NoBuffer] += 1;
            return None;
        };
        Some(match packet {
            InFlight::Packet(RoutedPacket { progress, .. }) => {
                self.paths.hold(progress.path);
                InFlight::Packet(RoutedPacket { frame, progress: *progress })
            }
            InFlight::Frame(wired) => InFlight::Frame(WireFrame { frame, ..*wired }),
        })
    }
}
