//! Every operation on fields of every width, and planted packets of every shape before other programs.

use super::*;
use crate::layer::{FIELDS, Field, Kind};
use capture::pcapng::{self, Medium, Record};
use std::{
    collections::{BTreeSet, HashSet},
    process::Command,
};

/// Where headers begin in some shapes: IPv4 with TCP, IPv6 with UDP behind tags, ARP, a route.
const HEADERS: [(usize, Kind, usize); 10] = [
    (0, Kind::Ethernet, 0),
    (0, Kind::Ipv4, 14),
    (0, Kind::Tcp, 46),
    (1, Kind::Vlan, 14),
    (1, Kind::Ipv6, 22),
    (1, Kind::Udp, 62),
    (3, Kind::Arp, 14),
    (6, Kind::Ipv6Fragment, 14 + 20 + 40 + 16 + 40),
    (15, Kind::Ipv4Route, 34),
    (15, Kind::Ipv4RouteAddress, 37),
];

/// The value of a field of a header that begins here.
fn value(field: &Field, packet: &[u8], header: usize) -> u128 {
    let at = header + usize::from(field.at);
    let bytes = &packet[at..at + usize::from(field.bytes)];
    let wide = bytes.iter().fold(0_u128, |all, byte| all << 8 | u128::from(*byte));
    if field.bytes > 4 {
        return wide;
    }
    (wide & u128::from(field.mask)) >> field.mask.trailing_zeros()
}

/// The unit of a policy that names this field with this action, if it can be.
fn naming(field: &Field, action: &str) -> Option<Unit> {
    let text = format!("about = \"\"\n[fields]\n\"{}\" = {action}", field.name);
    Some(unit(Policy::read(&text).expect("TOML").compile().ok()?))
}

#[test]
fn every_operation_does_what_it_says_with_every_width() {
    let mut seen = BTreeSet::new();
    for (shape, kind, header) in HEADERS {
        for field in FIELDS.iter().filter(|it| it.kind == kind && !it.is_structure) {
            let bits = field.bits();
            let all = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
            let kept = bits / 2;
            let top = all ^ ((1 << (bits - kept)) - 1);
            for (action, expected) in [
                ("\"keep\"".to_owned(), None),
                ("{ constant = 1 }".to_owned(), None),
                ("{ xor = 1 }".to_owned(), None),
                ("{ shift = 1 }".to_owned(), None),
                (format!("{{ truncate = {kept} }}"), None),
                (format!("{{ permute = {kept} }}"), Some(top)),
                ("\"encrypt\"".to_owned(), Some(0)),
                ("\"hash\"".to_owned(), Some(0)),
                ("\"random\"".to_owned(), Some(0)),
                ("\"prefix\"".to_owned(), Some(0)),
            ] {
                let Some(mut unit) = naming(field, &action) else { continue };
                let name = action.trim_matches(['{', ' ', '"', '}']).split(' ').next();
                seen.insert((name.unwrap_or_default().to_owned(), bits));
                let mut others = BTreeSet::new();
                // Each twice, as another packet of the data set.
                for (number, seed) in (0..).zip((1..9).chain(1..9)) {
                    let packet = Plant::new(seed).shape(shape);
                    let mut out = Vec::new();
                    unit.mask(Link::Ethernet, &packet, number, &mut out);
                    let [before, after] = [&packet, &out].map(|it| value(field, it, header));
                    let says = || format!("{} by {action}: {before:x} -> {after:x}", field.name);
                    match expected {
                        Some(top) => assert_eq!(after & top, before & top, "{}", says()),
                        None => {
                            let wanted = match name {
                                Some("keep") => before,
                                Some("constant") => 1,
                                Some("xor") => before ^ 1,
                                Some("shift") => before.wrapping_add(1) & all,
                                _ => before & top,
                            };
                            assert_eq!(after, wanted, "{}", says());
                        }
                    }
                    others.insert((before, after));
                    // No field beside it has anything.
                    for other in FIELDS
                        .iter()
                        .filter(|it| it.kind == kind && !it.is_structure && it.name != field.name)
                    {
                        assert_eq!(value(other, &out, header), 0, "{}: {}", other.name, says());
                    }
                }
                // Where there are many values, some are others.
                let is_changed = others.iter().any(|(before, after)| before != after);
                assert!(expected.is_none() || bits < 8 || is_changed, "{action} {}", field.name);
                let before: BTreeSet<u128> = others.iter().map(|(before, _)| *before).collect();
                let after: BTreeSet<u128> = others.iter().map(|(_, after)| *after).collect();
                let says = || format!("{} by {action}: {others:x?}", field.name);
                match name {
                    Some("random") => assert!(bits < 8 || after.len() > 1, "{}", says()),
                    // Equal ones stay equal; those of all but the hash differ where they did.
                    Some("hash") => assert_eq!(others.len(), before.len(), "{}", says()),
                    Some("encrypt" | "permute" | "prefix") => {
                        assert_eq!([before.len(), after.len()], [others.len(); 2], "{}", says())
                    }
                    _ => {}
                }
            }
        }
    }
    // The widths that headers have, with all that reads a field of any width.
    let widths: BTreeSet<u32> = seen.iter().map(|(_, bits)| *bits).collect();
    assert!([1, 3, 8, 12, 16, 20, 32, 48, 128].iter().all(|it| widths.contains(it)), "{widths:?}");
    for name in ["keep", "truncate", "permute", "encrypt", "hash", "random"] {
        for bits in widths.iter().filter(|bits| **bits > 1) {
            assert!(seen.contains(&(name.to_owned(), *bits)), "{name} of {bits} bits");
        }
    }
    for bits in [32, 128] {
        assert!(seen.contains(&("prefix".to_owned(), bits)));
    }
}

/// Every run of four bytes of what was planted.
#[test]
fn no_policy_lets_an_address_or_a_payload_through_wherever_the_packet_is_cut() {
    for (name, _) in crate::policy::SHIPPED {
        let mut unit = unit(program(name));
        for shape in 0..SHAPES {
            let mut plant = Plant::new(177 + shape as u64);
            let packet = plant.shape(shape);
            for secret in &plant.secrets {
                let is_there = packet.windows(secret.len()).any(|it| it == secret);
                assert!(is_there, "shape {shape} has {secret:02x?}");
            }
            let runs: HashSet<&[u8]> =
                plant.secrets.iter().flat_map(|secret| secret.windows(4)).collect();
            for cut in 0..=packet.len() {
                let out = masked(&mut unit, &packet[..cut]);
                let found = out.windows(4).find(|window| runs.contains(window));
                assert_eq!(found, None, "{name}: shape {shape} cut at {cut}: {packet:02x?}");
            }
        }
    }
}

/// The last header that is treated is the 24th, whatever leads there.
#[test]
fn what_is_deeper_than_the_depth_is_removed() {
    let mut unit = unit(program("research"));
    for stack in STACKS {
        for (kind, last) in [(6, 52), (17, 8)] {
            for headers in 20..=27 {
                let packet = Plant::new(headers as u64).stack(stack, headers, kind);
                let length = masked(&mut unit, &packet).len();
                let whole = packet.len() - 24;
                let says = || format!("{stack:?}, {headers} headers, protocol {kind}");
                match headers {
                    ..=DEPTH => assert_eq!(length, whole, "{}", says()),
                    _ if headers == DEPTH + 1 => assert_eq!(length, whole - last, "{}", says()),
                    _ => assert!(length < whole - last, "{}", says()),
                }
            }
        }
    }
}

/// tshark's words on the frames of a capture: which are malformed, and which have a wrong checksum.
fn faults(frames: &[Vec<u8>]) -> [BTreeSet<String>; 2] {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("planted.pcapng");
    let mut out = Vec::new();
    pcapng::section(&mut out, "test", None);
    pcapng::interface(&mut out, None, Medium::Ethernet, 0);
    for (time, bytes) in (0..).zip(frames) {
        let (interface, direction, medium) = (0, None, Medium::Ethernet);
        let length = bytes.len() as u32;
        let record = Record { interface, time, direction, medium, length, bytes, comment: None };
        pcapng::packet(&mut out, record);
    }
    std::fs::write(&path, out).expect("written");
    let protocols = ["ip", "tcp", "udp"];
    let checks: Vec<String> =
        protocols.iter().map(|it| format!("{it}.check_checksum:TRUE")).collect();
    let bad = ["ip", "udp", "icmp", "icmpv6", "!icmp && tcp"]
        .map(|it| format!("({it}.checksum.status == \"Bad\")"));
    ["_ws.malformed".to_owned(), bad.join(" || ")].map(|filter| {
        let mut tshark = Command::new("tshark");
        checks.iter().for_each(|check| _ = tshark.args(["-o", check]));
        let fields = ["-T", "fields", "-e", "frame.number", "-e", "frame.protocols"];
        let run = tshark.args(["-Y", &filter]).args(fields).arg("-r").arg(&path).output();
        let run = run.expect("tshark is installed by scripts/setup test");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8_lossy(&run.stdout).lines().map(str::to_owned).collect()
    })
}

#[test]
fn tshark_finds_nothing_wrong_in_planted_packets_that_was_not_wrong_before() {
    let packets: Vec<Vec<u8>> =
        (0..SHAPES).map(|shape| Plant::new(shape as u64 + 4).shape(shape)).collect();
    let number = |line: &String| line.split('\t').next().unwrap_or_default().to_owned();
    let [before, _] = faults(&packets);
    let before: BTreeSet<String> = before.iter().map(number).collect();
    for (name, _) in crate::policy::SHIPPED {
        let mut unit = unit(program(name));
        let masked: Vec<Vec<u8>> = packets
            .iter()
            .map(|packet| {
                // As captured: what is removed at the end is not there, and the length stays.
                let mut out = masked(&mut unit, packet);
                out.resize(packet.len(), 0);
                out
            })
            .collect();
        let [malformed, bad] = faults(&masked);
        let new: Vec<_> = malformed.iter().filter(|it| !before.contains(&number(it))).collect();
        assert!(new.is_empty(), "{name}: {new:?}");
        // The planted ones are made up; all of a result are computed, but those of transports in quotes, which
        // are zero. Of these tshark looks at TCP's.
        assert!(bad.is_empty(), "{name}: {bad:?}");
    }
}
