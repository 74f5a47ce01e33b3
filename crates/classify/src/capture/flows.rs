//! The flows of a capture: which packets belong together, who began, when one ends and the next begins.
//!
//! Bounded: at most so many flows are open at once; the one that was opened first then ends.

use super::layers::{FragmentKey, Segment};
use crate::{
    flow::{Flow, Side, Transport},
    packet::{Packet, Tcp},
};
use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
};

/// After so long a silence the same sockets are another flow.
const IDLE_UDP_NS: u64 = 120 * 1_000_000_000;
/// The same of TCP, where an end may have been missed.
const IDLE_TCP_NS: u64 = 3600 * 1_000_000_000;
/// Packets of which later fragments are known.
const FRAGMENTS: usize = 4096;

/// Both sockets, lower first, so that each direction gives the same.
type Key = (Transport, SocketAddr, SocketAddr);

fn key(segment: &Segment<'_>) -> Key {
    let (a, b) = (segment.source, segment.destination);
    if a <= b { (segment.transport, a, b) } else { (segment.transport, b, a) }
}

/// An open flow with what its user keeps of it.
#[derive(Debug)]
pub struct Open<T> {
    /// Its sockets.
    pub flow: Flow,
    /// Its packets, later fragments included.
    pub packets: u64,
    /// Bytes behind the transport header, on the wire.
    pub bytes: u64,
    /// Time of its first packet, nanoseconds since 1970.
    pub first_ns: u64,
    /// Time of its last packet.
    pub last_ns: u64,
    /// What its user keeps.
    pub of_user: T,
    /// Both ends closed it, or one reset it.
    over: bool,
    finished: [bool; 2],
    number: u64,
}

/// The open flows.
#[derive(Debug)]
pub struct Table<T> {
    most: usize,
    open: HashMap<Key, Open<T>>,
    /// In the order in which they were opened; closed ones are recognized by their number.
    order: VecDeque<(Key, u64)>,
    fragments: HashMap<FragmentKey, Key>,
    fragment_order: VecDeque<FragmentKey>,
    number: u64,
}

impl<T: Default> Table<T> {
    /// Room for so many open flows, at least one.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            open: HashMap::new(),
            order: VecDeque::new(),
            fragments: HashMap::new(),
            fragment_order: VecDeque::new(),
            number: 0,
        }
    }

    /// Finds or opens the flow of a packet, and gives the packet as classifiers want it; flows that end
    /// thereby go to `ended`.
    pub fn assign<'p>(
        &mut self,
        segment: &Segment<'p>,
        at_ns: u64,
        ended: &mut Vec<Open<T>>,
    ) -> (&mut Open<T>, Packet<'p>) {
        let key = key(segment);
        if let Some(fragment) = segment.first_of {
            self.remember(fragment, key);
        }
        if self.open.get(&key).is_some_and(|open| open.is_another(segment, at_ns)) {
            ended.extend(self.open.remove(&key));
        }
        if !self.open.contains_key(&key) {
            self.make_room(ended);
            self.number += 1;
            self.order.push_back((key, self.number));
        }
        let number = self.number;
        let open = self.open.entry(key).or_insert_with(|| Open::new(segment, at_ns, number));
        let from = if segment.source == open.flow.client { Side::Client } else { Side::Server };
        open.count(segment.length, at_ns);
        open.flags(segment, from);
        let packet = Packet {
            at_ns,
            from,
            tcp: segment.tcp,
            payload: segment.payload,
            length: segment.length,
        };
        (open, packet)
    }

    /// Counts a later fragment with the flow of the first; false where that was not seen.
    pub fn fragment(&mut self, fragment: &FragmentKey, bytes: u32, at_ns: u64) -> bool {
        let key = self.fragments.get(fragment);
        let open = key.and_then(|key| self.open.get_mut(key));
        open.map(|open| open.count(bytes, at_ns)).is_some()
    }

    /// Ends all flows, in the order in which they began.
    pub fn finish(&mut self) -> Vec<Open<T>> {
        let mut all: Vec<_> = self.open.drain().map(|(_, open)| open).collect();
        all.sort_unstable_by_key(|open| open.number);
        self.order.clear();
        all
    }

    fn make_room(&mut self, ended: &mut Vec<Open<T>>) {
        while self.open.len() >= self.most || self.order.len() >= 2 * self.most {
            let Some((key, number)) = self.order.pop_front() else { return };
            if self.open.get(&key).is_some_and(|open| open.number == number) {
                ended.extend(self.open.remove(&key));
            }
        }
    }

    fn remember(&mut self, fragment: FragmentKey, key: Key) {
        if self.fragments.insert(fragment, key).is_none() {
            self.fragment_order.push_back(fragment);
        }
        if self.fragment_order.len() > FRAGMENTS
            && let Some(oldest) = self.fragment_order.pop_front()
        {
            self.fragments.remove(&oldest);
        }
    }
}

impl<T: Default> Open<T> {
    fn new(segment: &Segment<'_>, at_ns: u64, number: u64) -> Self {
        // Whoever sends the first packet calls; but an answer to a SYN that was not seen shows the server.
        let answers = segment.tcp.is_some_and(|tcp| tcp.has(Tcp::SYN) && tcp.has(Tcp::ACK));
        let (client, server) = if answers {
            (segment.destination, segment.source)
        } else {
            (segment.source, segment.destination)
        };
        Self {
            flow: Flow { transport: segment.transport, client, server },
            packets: 0,
            bytes: 0,
            first_ns: at_ns,
            last_ns: at_ns,
            of_user: T::default(),
            over: false,
            finished: [false; 2],
            number,
        }
    }

    fn count(&mut self, bytes: u32, at_ns: u64) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
        self.last_ns = self.last_ns.max(at_ns);
    }

    fn flags(&mut self, segment: &Segment<'_>, from: Side) {
        let Some(tcp) = segment.tcp else { return };
        if let Some(finished) = self.finished.get_mut(from as usize) {
            *finished |= tcp.has(Tcp::FIN);
        }
        self.over |= tcp.has(Tcp::RST) || self.finished == [true; 2];
    }

    /// Whether a packet with the same sockets belongs to a new flow.
    fn is_another(&self, segment: &Segment<'_>, at_ns: u64) -> bool {
        let silence = at_ns.saturating_sub(self.last_ns);
        match segment.tcp {
            None => silence > IDLE_UDP_NS,
            Some(tcp) => {
                let begins = tcp.has(Tcp::SYN) && !tcp.has(Tcp::ACK);
                silence > IDLE_TCP_NS || begins && self.over
            }
        }
    }
}
