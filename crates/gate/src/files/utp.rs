//! The peer wire over uTP (BEP 29): connections within one UDP flow, put into order by their packets.
//!
//! ```text
//! SYN: connection c, sequence s      the one who begins sends s+1, s+2.. with connection c+1,
//! STATE: sequence t                  the other t, t+1.. with connection c
//! ```
//!
//! Packets are numbered, not bytes: one that was never seen takes the rest of its direction with it.
//! The offsets of each connection begin at a multiple of 2^40, so that all share one set of transfers.
//! A packet with the last byte of a block that waits is held, and while blocks are scanned one that came
//! before its turn is, too: what is in it is not known yet.

use super::{Ahead, Protocol, peer_wire::PeerWire, transfers::Transfers};
use crate::{
    event::Settings,
    stream::{Budget, Share},
};
use classify::{
    flow::Side,
    p2p::utp::{DATA, FIN, Header, RESET, STATE, SYN, read},
    packet::Packet,
};
use std::collections::{BTreeMap, VecDeque};

/// Connections of a flow that are read; the oldest goes for another.
const CONNECTIONS: usize = 8;

/// Packets of a direction that wait for one before them.
const EARLY: usize = 1024;

/// Packets of a direction whose offsets are remembered.
const REMEMBERED: usize = 1024;

/// Bits of a connection's offsets.
const OFFSET: u32 = 40;

/// The connections over uTP of a flow.
#[derive(Debug)]
pub(crate) struct Utp {
    connections: VecDeque<Connection>,
    /// Connections so far.
    begun: u16,
    /// Packets came of a connection whose beginning was not seen.
    missed: bool,
    budget: Budget,
}

#[derive(Debug)]
struct Connection {
    number: u16,
    /// What the SYN says.
    id: u16,
    first: u16,
    opener: Side,
    wire: PeerWire,
    /// Of the flow's client, of its server.
    directions: [Direction; 2],
}

#[derive(Debug)]
struct Direction {
    /// The sequence number that is next; none before the SYN was answered.
    next: Option<u16>,
    /// The offset of its first byte.
    at: u64,
    early: BTreeMap<u16, (Vec<u8>, bool)>,
    share: Share,
    /// Offsets behind the packets before `next`, the latest at the end.
    ends: VecDeque<u64>,
    over: bool,
}

impl Direction {
    fn new(number: u16, next: Option<u16>, budget: &Budget) -> Self {
        Self {
            next,
            at: u64::from(number) << OFFSET,
            early: BTreeMap::new(),
            share: Share::new(budget),
            ends: VecDeque::new(),
            over: false,
        }
    }

    /// Offsets of a packet's first byte and behind its last, if it was read recently.
    fn offsets(&self, sequence: u16) -> Option<(u64, u64)> {
        let back = usize::from(self.next?.wrapping_sub(sequence));
        let last = self.ends.len().checked_sub(back)?;
        let end = *self.ends.get(last)?;
        Some((
            last.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(end),
            end,
        ))
    }

    /// Nothing more of it is read.
    fn give_up(&mut self) {
        self.over = true;
        self.early = BTreeMap::new();
        self.share.fit(0);
    }
}

/// How far a sequence number is behind another.
const fn ahead(sequence: u16, next: u16) -> i16 {
    sequence.wrapping_sub(next).cast_signed()
}

impl Utp {
    pub(crate) fn new(settings: &Settings) -> Self {
        let budget = settings.budget.clone();
        Self { connections: VecDeque::new(), begun: 0, missed: false, budget }
    }

    /// Whether a datagram may be one of uTP.
    pub(crate) fn begins(datagram: &[u8]) -> bool {
        read(datagram).is_some()
    }

    /// The next datagram of the flow.
    pub(crate) fn packet(&mut self, packet: &Packet<'_>, transfers: &mut Transfers) {
        let Some((header, payload)) = read(packet.payload) else { return };
        if header.kind == SYN {
            return self.begin(packet.from, &header, transfers);
        }
        let Some(connection) = find(&mut self.connections, packet.from, &header) else {
            if header.kind == DATA && !std::mem::replace(&mut self.missed, true) {
                transfers.unread();
            }
            return;
        };
        connection.answered(packet.from, &header, transfers);
        match header.kind {
            RESET => connection.end(transfers),
            DATA if packet.length as usize > packet.payload.len() => {
                connection.lose(packet.from, transfers);
            }
            DATA | FIN => connection.packet(packet.from, &header, payload, transfers),
            _ => {}
        }
    }

    fn begin(&mut self, from: Side, header: &Header, transfers: &mut Transfers) {
        let same = |other: &Connection| {
            (other.opener, other.id, other.first) == (from, header.connection, header.sequence)
        };
        if self.connections.iter().any(same) {
            return;
        }
        if self.connections.len() >= CONNECTIONS
            && let Some(mut oldest) = self.connections.pop_front()
        {
            oldest.end(transfers);
        }
        self.begun = self.begun.wrapping_add(1);
        let direction = |side| {
            let next = (side == from).then(|| header.sequence.wrapping_add(1));
            Direction::new(self.begun, next, &self.budget)
        };
        self.connections.push_back(Connection {
            number: self.begun,
            id: header.connection,
            first: header.sequence,
            opener: from,
            wire: PeerWire::new(&self.budget),
            directions: [direction(Side::Client), direction(Side::Server)],
        });
    }

    /// What a packet that is held is known by; none when it need not wait.
    pub(crate) fn token(&self, packet: &Packet<'_>) -> Option<u32> {
        let (header, _) = read(packet.payload)?;
        if !matches!(header.kind, DATA | FIN) {
            return None;
        }
        let connection =
            self.connections.iter().rev().find(|other| other.has(packet.from, &header))?;
        Some(u32::from(connection.number) << 16 | u32::from(header.sequence))
    }

    /// Whether a packet that is held still waits.
    pub(crate) fn waits(&self, from: Side, token: u32, transfers: &Transfers) -> bool {
        let (number, sequence) = ((token >> 16) as u16, token as u16);
        let connection = self.connections.iter().find(|other| other.number == number);
        let Some(direction) = connection.map(|connection| &connection.directions[from as usize])
        else {
            return false;
        };
        match direction.offsets(sequence) {
            Some((start, end)) => transfers.waits(from, start, end),
            None => !direction.over && direction.early.contains_key(&sequence),
        }
    }

    /// What is missing will not come any more.
    pub(crate) fn give_up(&mut self, transfers: &mut Transfers) {
        for connection in &mut self.connections {
            for side in [Side::Client, Side::Server] {
                if !connection.directions[side as usize].early.is_empty() {
                    connection.lose(side, transfers);
                }
            }
        }
    }

    /// The flow is over.
    pub(crate) fn finish(&mut self, transfers: &mut Transfers) {
        for mut connection in self.connections.drain(..) {
            connection.end(transfers);
        }
    }

    /// How far the sides were read, in all connections.
    pub(crate) fn read(&self) -> [u64; 2] {
        [0, 1].map(|side: usize| {
            self.connections
                .iter()
                .filter_map(|one| one.directions.get(side))
                .map(|direction| direction.at)
                .sum()
        })
    }

    /// Whether there is nothing in any of the connections that is read.
    pub(crate) fn is_idle(&self) -> bool {
        let idle = |connection: &Connection, side: Side| {
            connection.directions[side as usize].over
                || connection.wire.ahead(side) == Ahead::Idle(None)
        };
        !self.connections.is_empty()
            && self.connections.iter().all(|one| idle(one, Side::Client) && idle(one, Side::Server))
    }
}

fn find<'a>(
    connections: &'a mut VecDeque<Connection>,
    from: Side,
    header: &Header,
) -> Option<&'a mut Connection> {
    connections.iter_mut().rev().find(|other| other.has(from, header))
}

impl Connection {
    /// Whether a packet other than the SYN is one of it.
    fn has(&self, from: Side, header: &Header) -> bool {
        header.connection == self.id.wrapping_add(u16::from(from == self.opener))
    }

    /// What a packet says of the other direction.
    fn answered(&mut self, from: Side, header: &Header, transfers: &mut Transfers) {
        let direction = &mut self.directions[from as usize];
        if direction.next.is_none() && header.kind == STATE {
            direction.next = Some(header.sequence);
        }
        let other = &mut self.directions[from.other() as usize];
        let Some(next) = other.next.filter(|_| !other.over && header.kind != RESET) else { return };
        if ahead(header.acknowledgement, next) < 0 {
            return;
        }
        // Its receiver has what was not seen here; but some count the STATE that answers a SYN.
        let second = next.wrapping_add(1);
        if other.ends.is_empty() && other.early.contains_key(&second) {
            other.next = Some(second);
            self.take_early(from.other(), transfers);
        } else {
            self.lose(from.other(), transfers);
        }
    }

    fn packet(&mut self, from: Side, header: &Header, payload: &[u8], transfers: &mut Transfers) {
        let direction = &mut self.directions[from as usize];
        // The STATE that answers the SYN may come after the first data.
        let next = *direction.next.get_or_insert(header.sequence);
        let distance = ahead(header.sequence, next);
        if direction.over || distance < 0 {
            return;
        }
        if distance > 0 {
            let room =
                direction.early.len() < EARLY && usize::from(distance.unsigned_abs()) < EARLY;
            if direction.early.contains_key(&header.sequence) {
                return;
            }
            if !room || !direction.share.grow(payload.len()) {
                return self.lose(from, transfers);
            }
            direction.early.insert(header.sequence, (payload.to_vec(), header.kind == FIN));
            return;
        }
        self.take(from, payload, header.kind == FIN, transfers);
        self.take_early(from, transfers);
    }

    /// Reads the packets whose turn it is now.
    fn take_early(&mut self, from: Side, transfers: &mut Transfers) {
        loop {
            let direction = &mut self.directions[from as usize];
            let Some((bytes, fin)) = direction.next.and_then(|next| direction.early.remove(&next))
            else {
                break;
            };
            direction.share.shrink(bytes.len());
            self.take(from, &bytes, fin, transfers);
        }
    }

    /// Reads the packet that is next.
    fn take(&mut self, from: Side, bytes: &[u8], fin: bool, transfers: &mut Transfers) {
        let direction = &mut self.directions[from as usize];
        let at = direction.at;
        direction.at += bytes.len() as u64;
        direction.next = direction.next.map(|next| next.wrapping_add(1));
        if direction.ends.is_empty() {
            direction.ends.push_back(at);
        }
        if direction.ends.len() >= REMEMBERED {
            direction.ends.pop_front();
        }
        direction.ends.push_back(direction.at);
        if !bytes.is_empty() {
            self.wire.bytes(from, at, bytes, transfers);
        }
        if fin {
            self.directions[from as usize].give_up();
            self.wire.end(from, true, transfers);
        }
    }

    /// A packet of a direction was not seen, and so neither is what follows.
    fn lose(&mut self, from: Side, transfers: &mut Transfers) {
        let direction = &mut self.directions[from as usize];
        direction.give_up();
        if self.wire.ahead(from) != Ahead::Idle(None) {
            transfers.unread();
        }
        self.wire.gap(from, direction.at, u64::MAX, transfers);
    }

    fn end(&mut self, transfers: &mut Transfers) {
        for side in [Side::Client, Side::Server] {
            let direction = &mut self.directions[side as usize];
            if !direction.over {
                direction.give_up();
                self.wire.end(side, false, transfers);
            }
        }
    }
}
