//! The peer wire over uTP: datagrams in any order.

use super::{
    peers::{handshake, info_hash, message},
    *,
};
use splitmix::Random;

/// A connection over uTP whose client opened it; both sides' next sequence numbers.
struct Utp {
    manager: Manager,
    events: Vec<Event>,
    next: [u16; 2],
}

const ID: u16 = 0xffff;

fn datagram(kind: u8, connection: u16, sequence: u16, ack: u16, payload: &[u8]) -> Vec<u8> {
    let [c, s, a] = [connection, sequence, ack].map(u16::to_be_bytes);
    [&[kind << 4 | 1, 0][..], &c, &[7; 8], &[0, 1, 0, 0], &s, &a, payload].concat()
}

impl Utp {
    fn new(settings: &Settings) -> Self {
        let flow = Flow { transport: Transport::Udp, ..flow() };
        let manager = Manager::new("bittorrent", &flow, settings).unwrap();
        let mut one = Self { manager, events: Vec::new(), next: [u16::MAX - 1, 3] };
        one.give(Side::Client, &datagram(4, ID, u16::MAX - 2, 0, b""));
        one.give(Side::Server, &datagram(2, ID, 3, u16::MAX - 2, b""));
        one
    }

    /// Gives a datagram to the manager; what it is known by where it is held.
    fn give(&mut self, from: Side, payload: &[u8]) -> Option<u32> {
        let length = payload.len() as u32;
        let packet = Packet { at_ns: 0, from, tcp: None, payload, length };
        let token = self.manager.token(&packet);
        self.manager.packet(&packet, &mut self.events);
        token
    }

    /// The next datagram of data of a side.
    fn data(&mut self, from: Side, payload: &[u8]) -> Vec<u8> {
        let sequence = self.next[index(from)];
        self.next[index(from)] = sequence.wrapping_add(1);
        // What the other side sent before is acknowledged when that is asked for alone.
        let connection = if from == Side::Client { ID.wrapping_add(1) } else { ID };
        let ack = if from == Side::Client { 2 } else { u16::MAX - 2 };
        datagram(0, connection, sequence, ack, payload)
    }

    fn send(&mut self, from: Side, payload: &[u8]) -> Option<u32> {
        let data = self.data(from, payload);
        self.give(from, &data)
    }

    fn open(settings: &Settings, decision: FileVerdict) -> Self {
        let mut one = Self::new(settings);
        one.send(Side::Client, &handshake());
        let Some(Event::FileNamed(file)) = one.events.pop() else { panic!("{:?}", one.events) };
        assert_eq!(file.hash, Some(FileHash::InfoV1(info_hash())));
        one.manager.answer(file.transfer, decision, &mut one.events);
        one.send(Side::Server, &handshake());
        one
    }
}

fn holding() -> Settings {
    Settings { hold: true, ..Settings::default() }
}

fn block(bytes: &[u8]) -> Vec<u8> {
    message(&[&b"\x07\0\0\0\x03\0\0\0\0"[..], bytes].concat())
}

#[test]
fn blocks_are_read_from_datagrams_in_any_order() {
    // The order differs from round to round and is the same each time.
    let mut random = Random::new(6);
    let mut random = |below: usize| random.below(below as u64) as usize;
    for _ in 0..50 {
        let mut one = Utp::open(&holding(), FileVerdict::Scan);
        assert_eq!(one.manager.hold_from(Side::Server), Some(0));
        let content: Vec<u8> = (0..16_384).map(|at| (at % 251) as u8).collect();
        let mut rest = &block(&content)[..];
        let mut datagrams = Vec::new();
        while !rest.is_empty() {
            let (part, left) = rest.split_at(rest.len().min(1 + random(1400)));
            datagrams.push(one.data(Side::Server, part));
            rest = left;
        }
        let last = datagrams.len() - 1;
        let mut order: Vec<usize> = (0..=last).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, random(at + 1));
        }
        // Some twice.
        order.extend_from_within(..random(order.len()));
        let mut tokens = vec![None; order.len()];
        for number in order {
            tokens[number] = one.give(Side::Server, &datagrams[number]);
        }
        let blocks: Vec<_> =
            one.events.iter().filter(|e| matches!(e, Event::Block { .. })).collect();
        let [Event::Block { part, index: 3, begin: 0, bytes, .. }] = blocks[..] else {
            panic!("{:?}", one.events);
        };
        assert_eq!(*bytes, content);
        // Only the datagram with the last byte waits, until the verdict.
        let part = *part;
        let waits =
            |one: &Utp, number: usize| one.manager.waits(Side::Server, tokens[number].unwrap());
        assert_eq!((0..=last).filter(|at| waits(&one, *at)).collect::<Vec<_>>(), [last]);
        one.manager.cleared(part, u64::MAX);
        assert!(!waits(&one, last));
    }
}

#[test]
fn what_came_before_its_turn_waits_until_it_was_read() {
    let mut one = Utp::open(&holding(), FileVerdict::Scan);
    let first = one.data(Side::Server, &message(b"\x01"));
    let early = one.send(Side::Server, &message(b"\x01")).unwrap();
    assert!(one.manager.waits(Side::Server, early));
    one.give(Side::Server, &first);
    assert!(!one.manager.waits(Side::Server, early));
}

#[test]
fn a_datagram_that_was_not_seen_ends_the_reading_of_its_direction() {
    let mut one = Utp::open(&holding(), FileVerdict::Scan);
    one.data(Side::Server, &message(b"\x01"));
    let early = one.send(Side::Server, &message(b"\x01")).unwrap();
    // The client has both.
    let acknowledges = one.next[1].wrapping_sub(1);
    one.give(Side::Client, &datagram(2, ID.wrapping_add(1), one.next[0], acknowledges, b""));
    assert!(matches!(one.events.last(), Some(Event::Unread)), "{:?}", one.events);
    assert!(!one.manager.waits(Side::Server, early));
    assert_eq!(one.manager.interests(), [Interest::All; 2], "the client's side is read still");
    // The same when it is given up.
    let mut one = Utp::open(&holding(), FileVerdict::Scan);
    one.data(Side::Server, &message(b"\x01"));
    let early = one.send(Side::Server, &message(b"\x01")).unwrap();
    one.manager.give_up(&mut one.events);
    assert!(!one.manager.waits(Side::Server, early));
}

#[test]
fn encrypted_connections_and_the_distributed_table_are_left_alone() {
    let mut one = Utp::new(&holding());
    one.give(Side::Client, b"d1:ad2:id20:01234567890123456789e1:q4:ping1:t1:a1:y1:qe");
    one.send(Side::Client, &[0xa7; 200]);
    one.send(Side::Server, &[0x5c; 200]);
    assert_eq!(one.manager.interests(), [Interest::Nothing; 2]);
    assert_eq!(one.manager.hold_from(Side::Client), None);
    assert!(one.events.is_empty());
    // A reset ends a connection, and another one may follow.
    let mut one = Utp::open(&Settings::default(), FileVerdict::Allow);
    one.give(Side::Server, &datagram(3, ID, one.next[1], one.next[0].wrapping_sub(1), b""));
    assert!(matches!(one.events.last(), Some(Event::FileEnded { .. })), "{:?}", one.events);
    one.give(Side::Client, &datagram(4, 500, 9, 0, b""));
    one.give(Side::Client, &datagram(0, 501, 10, 0, &handshake()));
    assert!(matches!(one.events.last(), Some(Event::FileNamed(_))), "{:?}", one.events);
}
