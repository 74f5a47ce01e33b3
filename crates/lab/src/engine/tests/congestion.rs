//! Queues that manage themselves mark what may be marked, and drop the rest.

use wire::checksum;

use super::table::{MS, row, udp};
use crate::{PortId, engine::Reason};

/// A packet with that ECN field; a right header checksum in IPv4.
fn with_ecn(mut packet: Vec<u8>, ecn: u8) -> Vec<u8> {
    if packet[0] >> 4 == 4 {
        packet[1] = packet[1] & !3 | ecn;
        packet[10..12].fill(0);
        let check = checksum::checksum(&packet[..20]);
        packet[10..12].copy_from_slice(&check.to_be_bytes());
    } else {
        packet[1] = packet[1] & !0x30 | ecn << 4;
    }
    packet
}

const FAMILIES: [[&str; 2]; 2] = [["10.0.0.10", "10.1.0.10"], ["2001:db8:0::10", "2001:db8:1::10"]];

/// A hundred packets at once, and then each millisecond as much as the link carries in it: the queue
/// stands at 100 ms. What is ECN-capable (ECT(0), ECT(1)) is marked CE (RFC 3168, section 5) and nothing
/// of it dropped; else nothing is marked, and some is dropped. What was marked is otherwise what it was,
/// with right checksums.
#[test]
fn what_is_ecn_capable_is_marked_instead_of_dropped() {
    for queue in ["200KB,codel,ecn", "200KB,red,min=10KB,max=180KB,probability=20%,weight=5%,ecn"] {
        for [from, to] in FAMILIES {
            for ecn in [0b00, 0b01, 0b10, 0b11] {
                let mut table = row(2, &format!("delay=1ms rate=8Mbit queue={queue}"));
                // 986 bytes and 14 of Ethernet take a millisecond.
                let bytes = if from.contains(':') { 986 - 48 } else { 986 - 28 };
                let packet = |ttl, ecn| with_ecn(udp(from, to, ttl, 9, &vec![7; bytes]), ecn);
                let mut left = Vec::new();
                let sent = 1_000;
                for number in 0..sent {
                    if number >= 100 {
                        left.extend(table.until((number - 100) * MS));
                    }
                    table.send(PortId(0), &packet(64, ecn));
                }
                left.extend(table.drain());
                let dropped = table.engine.ledger()[Reason::QueueManaged];
                assert_eq!(left.len() as u64 + dropped, sent, "{queue} {from} {ecn}");
                let (plain, marked) = (packet(62, ecn), packet(62, 0b11));
                assert!(left.iter().all(|left| left.ip() == plain || left.ip() == marked));
                let marks = left.iter().filter(|left| left.ip() == marked).count();
                match ecn {
                    0b00 => assert!(marks == 0 && dropped > 0, "{queue} {from}: {dropped}"),
                    0b11 => assert_eq!((marks as u64, dropped), (sent, 0), "{queue} {from}"),
                    _ => {
                        assert_eq!(dropped, 0, "{queue} {from} {ecn}");
                        assert!((1..sent as usize / 2).contains(&marks), "{queue} {from}: {marks}");
                    }
                }
            }
        }
    }
}

/// Without `ecn` in the queue's words everything is dropped alike, and no field is touched.
#[test]
fn queues_that_are_not_set_to_mark_drop() {
    for queue in ["200KB,codel", "200KB,red,min=10KB,max=180KB,probability=20%,weight=5%"] {
        let [from, to] = FAMILIES[0];
        let mut table = row(2, &format!("delay=1ms rate=8Mbit queue={queue}"));
        let packet = |ttl| with_ecn(udp(from, to, ttl, 9, &[7; 958]), 0b10);
        let mut left = Vec::new();
        for number in 0..1_000u64 {
            left.extend(table.until(number.saturating_sub(100) * MS));
            table.send(PortId(0), &packet(64));
        }
        left.extend(table.drain());
        assert!(table.engine.ledger()[Reason::QueueManaged] > 0, "{queue}");
        assert!(left.iter().all(|left| left.ip() == packet(62)), "{queue}");
    }
}
