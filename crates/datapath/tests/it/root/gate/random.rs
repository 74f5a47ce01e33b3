//! Frames at random, damaged ones too: each is counted once and goes on as it was, and every copy is
//! what was sent.

use super::frame::{ACK, FIN, Packet, RST, SYN};
use super::table::gate;
use crate::root::common::Random;
use datapath::gate::{Direction, Meta, Reason, TcVerdict};
use std::time::Duration;

fn packet(random: &mut Random) -> Vec<u8> {
    let family = random.below(2);
    let mut packet = Packet::tcp(family, random.pick(&[SYN, ACK, ACK | FIN, RST, 0xff]), &[]);
    let length = random.pick(&[0, 1, 5, 144, 145, 500, 1400]);
    packet.payload = random.bytes(length);
    packet.protocol = random.pick(&[6, 6, 17, 17, 1, 58]);
    packet.from.set_port(random.below(5) as u16);
    packet.fragment = random.pick(&[0x4000, 0x4000, 0, 0x2000, 0x2010, 3]);
    packet.id = random.below(3) as u16;
    packet.options = vec![1; 4 * random.below(11)];
    packet.tcp_options = vec![1; 4 * random.below(11)];
    for _ in 0..random.below(8) {
        let length = 8 * random.pick(&[1, 1, 1, 2, 5]);
        let mut bytes = random.bytes(length);
        bytes[1] = (length / 8 - 1) as u8;
        packet.extensions.push((random.pick(&[0, 43, 44, 51, 60]), bytes));
    }
    if random.below(3) == 0 {
        packet.link.tags = vec![(0x8100, 5); random.below(4)];
        let padding = random.below(20);
        packet.link.padding = random.bytes(padding);
    }
    if random.below(2) == 0 { packet.back() } else { packet }.bytes()
}

#[test]
fn any_frame_is_left_as_it_is_and_counted_once() {
    let gate = gate();
    let mut reader = gate.reader().unwrap();
    let mut random = Random::new(170);
    let mut copied = 0;
    let (mut count, mut dropped) = (0, 0);
    while count < 20_000 {
        let mut frame = packet(&mut random);
        random.spoil(&mut frame, 6);
        // The kernel runs no frame that ends within its network header.
        if frame.len() < 14 + 40 {
            continue;
        }
        count += 1;
        if count % 100 == 1 {
            gate.heartbeat().unwrap();
        }
        let up = random.below(2) == 0;
        let direction = if up { Direction::FromInternal } else { Direction::ToInternal };
        let (verdict, out, _) = gate.run(direction, &frame, Meta::default()).unwrap();
        // What hides its flow is dropped.
        assert!(matches!(verdict, TcVerdict::Next | TcVerdict::Drop));
        dropped += u64::from(verdict == TcVerdict::Drop);
        assert_eq!(out, frame);
        reader
            .poll(Duration::ZERO, |record| {
                copied += 1;
                assert_eq!(record.frame, &frame[..record.frame.len()]);
                let ends = record.reason == Reason::Ended || record.tcp_flags & (FIN | RST) != 0;
                assert!(ends || !record.payload().is_empty());
            })
            .unwrap();
        if count % 1000 == 0 {
            let ledger = gate.ledger().unwrap();
            let all = [ledger.from_internal, ledger.to_internal];
            assert_eq!(all.map(|counts| counts.received).iter().sum::<u64>(), count);
            assert_eq!(all.map(|counts| counts.dropped_form).iter().sum::<u64>(), dropped);
            assert!(all.iter().all(|counts| counts.accounted() == counts.received), "{all:?}");
        }
    }
    // What is undecided is copied while user space lives: its heartbeat was a hundred frames ago at most.
    assert!(copied > 50, "{copied}");
}
