//! How a packet travels: from stop to stop of its path.

use super::{
    Engine, Reason,
    in_flight::{InFlight, Origin, PARTS, Progress, RoutedPacket},
    path::{Action, End},
};
use crate::{
    Nanos, NodeId,
    engine::answer::IcmpError,
    packet::{self, Bad, Packet},
    pool::{Frame, IP},
};

impl Engine {
    /// Sends a packet on its way from a node.
    pub(super) fn set_out(
        &mut self,
        now: Nanos,
        node: NodeId,
        frame: Frame,
        packet: &Packet,
        origin: Origin,
    ) {
        let head = self.pool.head(&frame);
        let flow = packet::flow(head, packet);
        let path = self.cached_path(node, packet.destination, flow);
        self.paths.hold(path);
        let progress = Progress {
            began: now,
            order: self.order,
            path,
            generation: self.generation,
            length: packet.length,
            segment: packet.segment,
            origin,
            from: 0,
            stop: 0,
            ttl: packet.ttl,
            ect: packet.ect,
            is_super: packet.is_super,
            may_fragment: packet.may_fragment,
            damaged: false,
            captured: false,
        };
        self.order += PARTS * PARTS;
        let routed = RoutedPacket { frame, progress };
        if packet.is_super && !self.options.gso {
            return self.split(routed, Self::leave);
        }
        self.leave(routed);
    }

    /// Begins a leg at `from` at the time `began`: one timer up to the next stop.
    pub(super) fn leave(&mut self, mut routed: RoutedPacket) {
        let progress = &mut routed.progress;
        let path = self.paths.get(progress.path);
        progress.stop = match progress.damaged {
            true => progress.from,
            false => path.stop(progress.from, progress.ttl, progress.segment),
        };
        let takes = path.before(progress.stop) - path.before(progress.from);
        let (at, hops) = (progress.began + takes, progress.stop - progress.from);
        progress.captured &= hops == 0;
        let order = progress.order;
        self.paths.count(progress.path, progress.from, progress.stop, progress.length);
        self.take_hops(&mut routed, hops as u8);
        self.wait(at, order, InFlight::Packet(routed));
    }

    /// Sets a timer; at equal times what is in flight goes by its `order`.
    pub(super) fn wait(&mut self, at: Nanos, order: u64, packet: InFlight) {
        let number = match self.free_in_flight.pop() {
            Some(number) => {
                self.in_flight[number as usize] = Some(packet);
                number
            }
            None => {
                self.in_flight.push(Some(packet));
                (self.in_flight.len() - 1) as u32
            }
        };
        self.timers.add(at, order, number);
    }

    /// A packet has reached its stop.
    pub(super) fn arrive(&mut self, at: Nanos, mut routed: RoutedPacket) {
        if routed.progress.generation != self.generation {
            if let Some(reason) = self.lost_on_leg(&routed.progress) {
                return self.finish(routed, reason);
            }
            self.reroute(&mut routed);
        }
        if routed.progress.damaged
            && let Err(reason) = self.read_again(&mut routed)
        {
            return self.finish(routed, reason);
        }
        if !self.watches.is_empty() && !routed.progress.captured {
            self.capture_arrival(at, &routed.frame, &routed.progress);
            routed.progress.captured = true;
        }
        let progress = routed.progress;
        let path = self.paths.get(progress.path);
        let Some(&hop) = path.hops.get(usize::from(progress.stop)) else {
            return self.arrive_at_end(at, routed);
        };
        if progress.ttl <= 1 {
            return self.send_error(at, routed, Reason::TtlExceeded, IcmpError::TimeExceeded);
        }
        if progress.segment > hop.mtu {
            if progress.is_super {
                return self.split(routed, |engine, part| engine.arrive(at, part));
            }
            if progress.may_fragment {
                return self.fragment(at, routed, hop.mtu);
            }
            return self.send_error(at, routed, Reason::TooBig, IcmpError::TooBig(hop.mtu));
        }
        routed.progress.began = at;
        routed.progress.from = routed.progress.stop;
        match hop.action {
            Action::Delay => self.leave(routed),
            Action::More(_) if progress.is_super => {
                self.split(routed, |engine, part| engine.arrive(at, part));
            }
            action => self.transmit(at, hop.link, action, InFlight::Packet(routed)),
        }
    }

    /// A packet has come to the end of its path.
    fn arrive_at_end(&mut self, at: Nanos, mut routed: RoutedPacket) {
        let path = self.paths.get(routed.progress.path);
        if self.changes.is_down(path.node(routed.progress.stop)) {
            return self.finish(routed, Reason::NodeDown);
        }
        match path.end {
            End::Node => self.take(at, routed),
            End::NoRoute => self.send_error(at, routed, Reason::NoRoute, IcmpError::NoRoute),
            End::Prohibited => {
                self.send_error(at, routed, Reason::Prohibited, IcmpError::Prohibited)
            }
            End::TooFar => {
                self.send_error(at, routed, Reason::TtlExceeded, IcmpError::TimeExceeded);
            }
            _ if routed.progress.ttl <= 1 => {
                self.send_error(at, routed, Reason::TtlExceeded, IcmpError::TimeExceeded);
            }
            End::NoHost => {
                // A router forwards first and then finds that nobody is there.
                self.take_hops(&mut routed, 1);
                self.send_error(at, routed, Reason::NoHost, IcmpError::NoHost);
            }
            End::Broadcast => self.finish(routed, Reason::Address),
            End::Port(port) => {
                self.take_hops(&mut routed, 1);
                self.capture_delivery(at, &routed, port);
                self.deliver(at, port, routed);
            }
        }
    }

    /// The network has changed since the packet set out: from here on it goes as packets go now.
    fn reroute(&mut self, routed: &mut RoutedPacket) {
        let head = self.pool.head(&routed.frame);
        let progress = &mut routed.progress;
        progress.generation = self.generation;
        let Ok(packet) = Packet::read(head, routed.frame.length()) else { return };
        let flow = packet::flow(head, &packet);
        let path = self.paths.get(progress.path);
        let node = path.node(progress.stop);
        if let Some(last) = path.came_by(progress.stop) {
            progress.origin = Origin::Link(last);
        }
        let path = self.cached_path(node, packet.destination, flow);
        self.paths.hold(path);
        self.paths.release(std::mem::replace(&mut routed.progress.path, path));
        (routed.progress.from, routed.progress.stop) = (0, 0);
    }

    /// A bit of the packet was flipped on the path here: the node sees what has become of it.
    fn read_again(&mut self, routed: &mut RoutedPacket) -> Result<(), Reason> {
        routed.progress.damaged = false;
        let head = self.pool.head(&routed.frame);
        let packet = Packet::read(head, routed.frame.length()).map_err(|bad| match bad {
            Bad::Malformed => Reason::Malformed,
            Bad::Address => Reason::Address,
        })?;
        self.pool.cut(&mut routed.frame, IP + packet.length as usize);
        let progress = &mut routed.progress;
        (progress.length, progress.segment, progress.ttl) =
            (packet.length, packet.segment, packet.ttl);
        (progress.ect, progress.may_fragment) = (packet.ect, packet.may_fragment);
        self.reroute(routed);
        Ok(())
    }

    /// Takes hops from a packet's TTL.
    pub(super) fn take_hops(&mut self, routed: &mut RoutedPacket, hops: u8) {
        if hops > 0 {
            routed.progress.ttl = routed.progress.ttl.saturating_sub(hops);
            if let Some(ip) = self.pool.head_mut(&routed.frame).get_mut(IP..) {
                packet::take_hops(ip, hops);
            }
        }
    }

    /// Ends a packet that was in flight.
    pub(super) fn finish(&mut self, routed: RoutedPacket, reason: Reason) {
        self.paths.release(routed.progress.path);
        self.end(routed.frame, reason);
    }

    /// Ends a packet.
    pub(super) fn end(&mut self, frame: Frame, reason: Reason) {
        self.ledger[reason] += 1;
        self.pool.give_back(frame);
    }
}
