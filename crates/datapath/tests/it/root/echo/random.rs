//! Frames with random faults: the program and the model give the same verdict, the same bytes and
//! count the same row.

use super::frame::{Frame, Ip};
use super::model::{self, As, Counted};
use super::{CLIENT4, CLIENT6, LINK4, LINK6, PROBE_ID, SERVICE4, SERVICE6};
use crate::root::common::Random;
use datapath::echo::{Counters, EchoProgram, Fragments, Ledger, Settings};
use std::collections::HashMap;
use std::net::IpAddr;

const FRAMES: usize = 60_000;

const SOURCES4: [[u8; 4]; 12] = [
    CLIENT4,
    [198, 51, 100, 9],
    [10, 0, 0, 1],
    [0, 1, 2, 3],
    [127, 0, 0, 1],
    [224, 0, 0, 1],
    [239, 1, 1, 1],
    [240, 0, 0, 1],
    [255, 255, 255, 255],
    [223, 255, 255, 255],
    SERVICE4,
    LINK4,
];
const TARGETS4: [[u8; 4]; 6] =
    [SERVICE4, SERVICE4, SERVICE4, LINK4, [50, 50, 50, 51], [255, 255, 255, 255]];

fn v6(first: &[u8], last: u8) -> [u8; 16] {
    let mut address = [0; 16];
    address[..first.len()].copy_from_slice(first);
    address[15] = last;
    address
}

fn address(random: &mut Random) -> Ip {
    if random.below(2) == 0 {
        return Ip::V4(random.pick(&SOURCES4), random.pick(&TARGETS4));
    }
    let mapped = v6(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1], 1);
    let sources = [
        CLIENT6,
        CLIENT6,
        v6(&[0xfe, 0x80], 1),
        v6(&[0xfd, 1], 2),
        v6(&[], 0),
        v6(&[], 1),
        v6(&[0xff, 2], 1),
        mapped,
        v6(&[0, 0x64, 0xff, 0x9b], 9),
        SERVICE6,
        LINK6,
    ];
    let targets = [SERVICE6, SERVICE6, SERVICE6, LINK6, v6(&[0x20, 1, 0xd, 0xb8], 9)];
    Ip::V6(random.pick(&sources), random.pick(&targets))
}

/// A request with up to three things about it changed, mostly such as matter.
fn frame(random: &mut Random) -> Vec<u8> {
    let mut frame = Frame::request(match random.below(4) {
        0 => Ip::V4(CLIENT4, SERVICE4),
        1 => Ip::V6(CLIENT6, SERVICE6),
        2 if random.below(2) == 0 => Ip::V4(LINK4, LINK4),
        2 => Ip::V6(LINK6, LINK6),
        _ => address(random),
    });
    frame.ident = random.pick(&[PROBE_ID, PROBE_ID, 1, 0x1234]);
    frame.sequence = random.next() as u16;
    let length = random.pick(&[18, 18, 0, 1, 7, 8, 9, 15, 56, 57, 64, 72, 120, 500, 1472, 3000]);
    frame.payload = random.bytes(length);
    if random.below(8) == 0 {
        frame.payload.fill(0);
    }
    let (one, two) = (random.next() as u16, random.next() as u16);
    frame.link.tags = random.pick(&[
        vec![],
        vec![],
        vec![(0x8100, one)],
        vec![(0x88a8, one)],
        vec![(0x88a8, one), (0x8100, two)],
        vec![(0x8100, one), (0x8100, two)],
        vec![(0x88a8, one), (0x8100, two), (0x8100, one)],
    ]);
    for _ in 0..random.below(4) {
        fault(&mut frame, random);
    }
    let mut bytes = frame.bytes();
    random.spoil(&mut bytes, 8);
    bytes
}

fn fault(frame: &mut Frame, random: &mut Random) {
    match random.below(17) {
        0 => frame.link.to[0] |= 1,
        1 => frame.link.from[0] |= 1,
        2 => frame.fragment = random.pick(&[0x2000, 0x0001, 0x2001, 0x1fff, 0x8000, 0]),
        3 => frame.ihl = Some(random.below(16) as u8),
        4 => frame.between = vec![1; 4 * (1 + random.below(10))],
        5 => frame.length_lie = random.below(4000) as i32 - 2000,
        6 => frame.length_lie = random.pick(&[-1, 1, -18, -19, -26, -27, -46, 8]),
        7 => frame.spoil_ip = random.next() as u16,
        8 => frame.spoil_icmp = random.next() as u16,
        9 => frame.spoil_icmp = 0xffff,
        10 => frame.kind = random.pick(&[0, 8, 13, 128, 129, 135, 136]),
        11 => frame.code = random.pick(&[1, 3, 255]),
        12 => frame.protocol = Some(random.pick(&[0, 1, 6, 17, 43, 44, 58, 60])),
        13 => {
            frame.link.ether_type = Some(random.pick(&[0x0800, 0x86dd, 0x0806, 0x8100, 0x88a8, 9]))
        }
        14 => {
            let length = random.pick(&[1, 5, 17, 200]);
            frame.link.padding = random.bytes(length);
        }
        15 => frame.ttl = random.next() as u8,
        _ => frame.tos = random.next() as u8,
    }
}

fn configurations() -> Vec<Settings> {
    let nets = |list: &[&str]| list.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>();
    let plain = super::settings();
    vec![
        plain.clone(),
        Settings { verify: false, ..plain.clone() },
        Settings {
            fragments: Fragments::Drop,
            deny: nets(&["192.0.2.0/25", "2001:db8:7::/48"]),
            ..plain.clone()
        },
        Settings {
            allow: nets(&["192.0.0.0/16", "2001:db8::/32"]),
            deny: nets(&["192.0.2.128/25"]),
            ..plain
        },
    ]
}

#[test]
fn the_program_does_what_the_model_does() {
    let mut random = Random::new(1);
    for settings in configurations() {
        let program = super::program(&settings);
        let (mut services, mut probe, mut other) =
            (HashMap::<IpAddr, Counters>::new(), Counters::default(), Counters::default());
        let mut seen = [0; 3];
        for _ in 0..FRAMES / 4 {
            let bytes = frame(&mut random);
            let expected = model::judge(&settings, &bytes);
            let (verdict, out) = program.run(None, &bytes).unwrap();
            assert_eq!(verdict, expected.verdict(), "{expected:?}\n{bytes:02x?}\n{settings:?}");
            assert_eq!(out, expected.frame, "{expected:?}\n{bytes:02x?}");
            let counters = match expected.counted {
                Counted::Service(address) => services.entry(address).or_default(),
                Counted::Probe => &mut probe,
                Counted::Other => &mut other,
            };
            counters.received += 1;
            match expected.as_ {
                As::Answered => counters.answered += 1,
                As::Passed => counters.passed += 1,
                As::Dropped(reason) => counters.drops[reason as usize] += 1,
            }
            seen[match expected.as_ {
                As::Answered => 0,
                As::Passed => 1,
                As::Dropped(_) => 2,
            }] += 1;
        }
        assert_eq!(ledger(&program), (services, probe, other));
        assert!(seen.iter().all(|count| *count > FRAMES / 200), "too one-sided: {seen:?}");
    }
}

fn ledger(program: &EchoProgram) -> (HashMap<IpAddr, Counters>, Counters, Counters) {
    let Ledger { rows, probe, other } = program.ledger().unwrap();
    (rows.into_iter().map(|row| (row.address, row.counters)).collect(), probe, other)
}
