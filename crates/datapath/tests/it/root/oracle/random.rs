//! Requests at random, right ones and such with faults: the program and the model give the same
//! verdict, the same bytes and count the same.

use super::frame::{Check, Frame};
use super::model::{self, Outcome};
use super::network::Network;
use super::{CLIENT, SERVICE};
use crate::root::common::Random;
use datapath::oracle::{Ledger, MAX_RANKS};

const FRAMES: usize = 40_000;

pub(crate) fn candidate(random: &mut Random, network: &Network) -> [u8; 4] {
    match random.below(4) {
        0 => (random.next() as u32).to_be_bytes(),
        1 => (0x0a01_0000 | random.next() as u32 & 0xffff).to_be_bytes(),
        _ => {
            let (prefix, _) = random.pick(&network.routes);
            let host = random.next() as u32 & u32::from(prefix.hostmask());
            (u32::from(prefix.network()) | host).to_be_bytes()
        }
    }
}

fn frame(random: &mut Random, network: &Network) -> Vec<u8> {
    let count = match random.below(6) {
        0 => 1 + random.below(363),
        1 => random.pick(&[1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 100, 200, 300, 361, 362, 363]),
        _ => 1 + random.below(20),
    };
    let candidates: Vec<_> = (0..count).map(|_| candidate(random, network)).collect();
    let mut frame = Frame::request(&candidates);
    frame.source = match random.below(3) {
        0 => CLIENT,
        _ => candidate(random, network),
    };
    frame.from_port = random.next() as u16;
    frame.ttl = random.next() as u8;
    let tos = random.next() as u8;
    frame.tos = random.pick(&[0, 0, 1, 3, 0xb8, tos]);
    // Identification, and what a request may have anything in: Zero, Rcode, TTL.
    frame.payload[4..8].copy_from_slice(&(random.next() as u32).to_be_bytes());
    frame.payload[3] = random.next() as u8;
    frame.payload[8..10].copy_from_slice(&(random.next() as u16).to_be_bytes());
    frame.payload[1] = random.pick(&[0, 0, 0, 1, 2]);
    let tag = random.next() as u16;
    frame.link.tags = random.pick(&[
        vec![],
        vec![],
        vec![],
        vec![(0x8100, tag)],
        vec![(0x88a8, tag), (0x8100, 7)],
        vec![(0x88a8, tag), (0x8100, 7), (0x8100, 9)],
    ]);
    frame.check = match random.below(8) {
        0 => Check::None,
        1 => Check::Flipped(random.next() as u16),
        _ => Check::Flipped(0),
    };
    let faults = random.pick(&[0, 0, 0, 1, 1, 2]);
    for _ in 0..faults {
        fault(&mut frame, random);
    }
    let mut bytes = frame.bytes();
    random.spoil(&mut bytes, 12);
    bytes
}

fn fault(frame: &mut Frame, random: &mut Random) {
    match random.below(19) {
        0 => frame.link.to[0] |= 1,
        1 => frame.link.from[0] |= 1,
        2 => frame.fragment = random.pick(&[0x2000, 0x0001, 0x1fff, 0x8000, 0]),
        3 => frame.ihl = Some(random.below(16) as u8),
        4 => frame.options = vec![1; 4 * (1 + random.below(10))],
        5 => frame.ip_lie = random.pick(&[-4, 4, 1, -1, -400, 400]),
        6 => frame.udp_lie = random.pick(&[-4, 4, 1, -1, -8, 400]),
        7 => frame.spoil_ip = random.next() as u16,
        8 => frame.check = Check::Partial,
        9 => frame.protocol = random.pick(&[1, 6, 17, 136]),
        10 => frame.link.ether_type = Some(random.pick(&[0x86dd, 0x0806, 0x0800])),
        11 => {
            let length = random.pick(&[1, 4, 18, 60]);
            frame.link.padding = random.bytes(length);
        }
        12 => frame.target = random.pick(&[[50, 50, 50, 51], [50, 50, 50, 52], SERVICE]),
        13 => frame.to_port = random.pick(&[9000, 8898, 0]),
        14 => frame.from_port = 0,
        15 => frame.source = random.pick(&[[0, 1, 2, 3], [127, 0, 0, 1], [224, 0, 0, 1], SERVICE]),
        16 => (frame.source, frame.from_port) = (SERVICE, super::PORT),
        17 => {
            let at = random.below(frame.payload.len().min(17));
            frame.payload[at] = random.next() as u8;
        }
        _ => {
            let length = frame.payload.len() as i32 + random.pick(&[-4, -1, 1, 4, 8]);
            frame.payload.resize(length as usize, 9);
        }
    }
}

#[test]
fn the_program_does_what_the_model_does() {
    let mut random = Random::new(1);
    let settings = super::settings();
    let mut seen = [0; 7];
    for places in [1, 3, 40, 255, 256, MAX_RANKS - 1] {
        let network = Network::random(&mut random, places);
        let Some(program) = super::program(&settings, &network) else { return };
        let mut expected = Ledger::default();
        for _ in 0..FRAMES / 6 {
            let bytes = frame(&mut random, &network);
            let outcome = model::judge(&settings, Some(&network), &bytes);
            let (verdict, out) = program.run(&bytes).unwrap();
            assert_eq!(verdict, outcome.verdict(), "{outcome:?}\n{bytes:02x?}");
            match &outcome {
                Outcome::Answered(reply) => assert_eq!(&out, reply, "{bytes:02x?}"),
                _ => assert_eq!(out, bytes),
            }
            outcome.count(&mut expected);
            seen[match outcome {
                Outcome::Other => 0,
                Outcome::Sender => 1,
                Outcome::Length => 2,
                Outcome::Form => 3,
                Outcome::Sum => 4,
                Outcome::Table => 5,
                Outcome::Answered(_) => 6,
            }] += 1;
        }
        assert_eq!(program.ledger().unwrap(), expected);
    }
    assert!(seen.iter().all(|count| *count > FRAMES / 200), "too one-sided: {seen:?}");
}
