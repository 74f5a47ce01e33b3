//! How a packet travels: from stop to stop of its itinerary.

use super::{
    Engine, Reason,
    cross::Crossing,
    itinerary::{Deed, End},
};
use crate::{
    LinkId, Nanos, NodeId, PortId,
    answer::Trouble,
    link::{Arrival, Fate},
    packet::{self, Bad, Packet},
    pool::{Frame, IP},
};

/// What is under way.
#[derive(Debug)]
pub(super) enum Journey {
    /// A packet from node to node.
    Hops(Flight),
    /// A frame on a wire.
    Wire(Crossing),
}

/// A packet under way.
#[derive(Debug)]
pub(super) struct Flight {
    pub frame: Frame,
    pub course: Course,
}

/// Where a packet is and what matters of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    /// When this leg began.
    pub began: Nanos,
    /// What comes first among equal times: [`PARTS`] squared for each packet that set out, so that there
    /// is room for the parts of a packet and for the parts of those.
    pub order: u64,
    /// Its itinerary.
    pub itinerary: u32,
    /// The state of the network for which the itinerary was worked out.
    pub generation: u32,
    /// Bytes of the packet, and of the packets that it stands for.
    pub length: u32,
    pub segment: u32,
    /// Where it came from to where the itinerary begins.
    pub origin: Origin,
    /// Where on it this leg began.
    pub from: u16,
    /// Where the leg ends: the next place at which something happens to the packet.
    pub stop: u16,
    pub ttl: u8,
    pub ect: bool,
    /// Whether it stands for several packets.
    pub is_super: bool,
    /// Whether it is an IPv4 packet that may be fragmented.
    pub may_fragment: bool,
    /// Whether a link has flipped a bit of it, so that the next node must read it anew.
    pub damaged: bool,
    /// Whether it was seen to come to the node where it is.
    pub seen: bool,
}

/// So many parts of a packet keep their order among equal times; more are rare.
pub(super) const PARTS: u64 = 1 << 10;

impl Course {
    /// The course of a part of this packet with so many bytes, which is no super-packet.
    pub(super) fn part(self, index: usize, bytes: usize) -> Self {
        let index = (index as u64 + 1).min(PARTS - 1);
        let order = match self.order {
            order if order % (PARTS * PARTS) == 0 => order + index * PARTS,
            order if order % PARTS == 0 => order + index,
            order => order,
        };
        let length = bytes as u32;
        Self { order, length, segment: length, is_super: false, ..self }
    }
}

/// How a packet came to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// From the host of a port.
    Port(PortId),
    /// By a link.
    Link(LinkId),
    /// The node made it.
    Node,
}

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
        let itinerary = self.itinerary(node, packet.destination, flow);
        self.plans.hold(itinerary);
        let course = Course {
            began: now,
            order: self.order,
            itinerary,
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
            seen: false,
        };
        self.order += PARTS * PARTS;
        let flight = Flight { frame, course };
        if packet.is_super && !self.options.gso {
            return self.split(flight, Self::leave);
        }
        self.leave(flight);
    }

    /// Begins a leg at `from` at the time `began`: one timer up to the next stop.
    pub(super) fn leave(&mut self, mut flight: Flight) {
        let course = &mut flight.course;
        let itinerary = self.plans.get(course.itinerary);
        course.stop = match course.damaged {
            true => course.from,
            false => itinerary.stop(course.from, course.ttl, course.segment),
        };
        let takes = itinerary.before(course.stop) - itinerary.before(course.from);
        let (at, hops) = (course.began + takes, course.stop - course.from);
        course.seen &= hops == 0;
        let order = course.order;
        self.plans.count(course.itinerary, course.from, course.stop, course.length);
        self.take_hops(&mut flight, hops as u8);
        self.wait(at, order, Journey::Hops(flight));
    }

    /// Sets a timer; at equal times what is under way goes by its `order`.
    pub(super) fn wait(&mut self, at: Nanos, order: u64, journey: Journey) {
        let number = match self.free_flights.pop() {
            Some(number) => {
                self.flights[number as usize] = Some(journey);
                number
            }
            None => {
                self.flights.push(Some(journey));
                (self.flights.len() - 1) as u32
            }
        };
        self.timers.add(at, order, number);
    }

    /// A packet has reached its stop.
    pub(super) fn arrive(&mut self, at: Nanos, mut flight: Flight) {
        if flight.course.generation != self.generation {
            if let Some(reason) = self.lost_on_leg(&flight.course) {
                return self.finish(flight, reason);
            }
            self.plan_again(&mut flight);
        }
        if flight.course.damaged
            && let Err(reason) = self.read_again(&mut flight)
        {
            return self.finish(flight, reason);
        }
        if !self.watches.is_empty() && !flight.course.seen {
            self.see_arrival(at, &flight.frame, &flight.course);
            flight.course.seen = true;
        }
        let course = flight.course;
        let itinerary = self.plans.get(course.itinerary);
        let Some(&hop) = itinerary.hops.get(usize::from(course.stop)) else {
            return self.arrive_at_end(at, flight);
        };
        if course.ttl <= 1 {
            return self.complain(at, flight, Reason::TtlExceeded, Trouble::TimeExceeded);
        }
        if course.segment > hop.mtu {
            if course.is_super {
                return self.split(flight, |engine, part| engine.arrive(at, part));
            }
            if course.may_fragment {
                return self.fragment(at, flight, hop.mtu);
            }
            return self.complain(at, flight, Reason::TooBig, Trouble::TooBig(hop.mtu));
        }
        flight.course.began = at;
        flight.course.from = flight.course.stop;
        match hop.deed {
            Deed::Delay => self.leave(flight),
            Deed::Watched => {
                self.count_link(hop.link, course.length, true);
                self.take_hops(&mut flight, 1);
                self.see_departure(at, &mut flight, hop.link, None);
                flight.course.began = at + self.settings(hop.link).delay;
                flight.course.from += 1;
                flight.course.seen = false;
                self.leave(flight);
            }
            Deed::Drop(reason) => {
                self.see_departure(at, &mut flight, hop.link, Some(reason));
                self.count_link(hop.link, course.length, false);
                self.finish(flight, reason);
            }
            Deed::More(_) if course.is_super => {
                self.split(flight, |engine, part| engine.arrive(at, part));
            }
            Deed::More(effect) => self.offer(hop.link, effect, flight),
        }
    }

    /// A packet has come to the end of its itinerary.
    fn arrive_at_end(&mut self, at: Nanos, mut flight: Flight) {
        let itinerary = self.plans.get(flight.course.itinerary);
        if self.changes.is_down(itinerary.node(flight.course.stop)) {
            return self.finish(flight, Reason::NodeDown);
        }
        match itinerary.end {
            End::Node => self.take(at, flight),
            End::NoRoute => self.complain(at, flight, Reason::NoRoute, Trouble::NoRoute),
            End::Prohibited => self.complain(at, flight, Reason::Prohibited, Trouble::Prohibited),
            End::TooFar => {
                self.complain(at, flight, Reason::TtlExceeded, Trouble::TimeExceeded);
            }
            _ if flight.course.ttl <= 1 => {
                self.complain(at, flight, Reason::TtlExceeded, Trouble::TimeExceeded);
            }
            End::NoHost => {
                // A router forwards first and then finds that nobody is there.
                self.take_hops(&mut flight, 1);
                self.complain(at, flight, Reason::NoHost, Trouble::NoHost);
            }
            End::Broadcast => self.finish(flight, Reason::Address),
            End::Port(port) => {
                self.take_hops(&mut flight, 1);
                self.see_delivery(at, &flight, port);
                self.deliver(at, port, flight);
            }
        }
    }

    /// The network has changed since the packet set out: from here on it goes as packets go now.
    fn plan_again(&mut self, flight: &mut Flight) {
        let head = self.pool.head(&flight.frame);
        let course = &mut flight.course;
        course.generation = self.generation;
        let Ok(packet) = Packet::read(head, flight.frame.length()) else { return };
        let flow = packet::flow(head, &packet);
        let itinerary = self.plans.get(course.itinerary);
        let node = itinerary.node(course.stop);
        if let Some(last) = itinerary.came_by(course.stop) {
            course.origin = Origin::Link(last);
        }
        let itinerary = self.itinerary(node, packet.destination, flow);
        self.plans.hold(itinerary);
        self.plans.release(std::mem::replace(&mut flight.course.itinerary, itinerary));
        (flight.course.from, flight.course.stop) = (0, 0);
    }

    /// A bit of the packet was flipped on the way here: the node sees what has become of it.
    fn read_again(&mut self, flight: &mut Flight) -> Result<(), Reason> {
        flight.course.damaged = false;
        let head = self.pool.head(&flight.frame);
        let packet = Packet::read(head, flight.frame.length()).map_err(|bad| match bad {
            Bad::Malformed => Reason::Malformed,
            Bad::Address => Reason::Address,
        })?;
        self.pool.cut(&mut flight.frame, IP + packet.length as usize);
        let course = &mut flight.course;
        (course.length, course.segment, course.ttl) = (packet.length, packet.segment, packet.ttl);
        (course.ect, course.may_fragment) = (packet.ect, packet.may_fragment);
        self.plan_again(flight);
        Ok(())
    }

    /// Puts a packet on a link that does more than delay.
    fn offer(&mut self, link: LinkId, effect: u32, mut flight: Flight) {
        let course = flight.course;
        let effect = &mut self.effects[effect as usize];
        let arrival = Arrival { now: course.began, length: course.length, ect: course.ect };
        let fate = effect.state.offer(&effect.settings, arrival);
        self.count_link(link, course.length, matches!(fate, Fate::Pass { .. }));
        let (at, copy, corrupt, mark) = match fate {
            Fate::Pass { at, copy, corrupt, mark } => (at, copy, corrupt, mark),
            Fate::Drop(reason) => {
                let reason = reason.into();
                self.see_departure(course.began, &mut flight, link, Some(reason));
                return self.finish(flight, reason);
            }
        };
        self.take_hops(&mut flight, 1);
        if mark && let Some(ip) = self.pool.head_mut(&flight.frame).get_mut(IP..) {
            packet::mark(ip);
        }
        self.see_departure(course.began, &mut flight, link, None);
        if let Some(bit) = corrupt {
            self.flip(&mut flight, bit);
        }
        flight.course.from += 1;
        flight.course.began = at;
        flight.course.seen = false;
        if let Some(began) = copy
            && let Some(twin) = self.copy(&flight)
        {
            let course = Course { began, ..flight.course };
            self.leave(Flight { frame: twin, course });
        }
        self.leave(flight);
    }

    /// Takes hops from a packet's TTL.
    pub(super) fn take_hops(&mut self, flight: &mut Flight, hops: u8) {
        if hops > 0 {
            flight.course.ttl = flight.course.ttl.saturating_sub(hops);
            if let Some(ip) = self.pool.head_mut(&flight.frame).get_mut(IP..) {
                packet::take_hops(ip, hops);
            }
        }
    }

    /// Ends a packet that was under way.
    pub(super) fn finish(&mut self, flight: Flight, reason: Reason) {
        self.plans.release(flight.course.itinerary);
        self.end(flight.frame, reason);
    }

    /// Ends a packet.
    pub(super) fn end(&mut self, frame: Frame, reason: Reason) {
        self.ledger[reason] += 1;
        self.pool.give_back(frame);
    }
}
