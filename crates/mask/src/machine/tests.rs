//! Packets with planted secrets, nested four deep and cut everywhere: what is removed leaves no trace.

mod every;
mod plant;

use super::*;
use crate::{policy::Policy, program::Program};
pub(crate) use plant::{Plant, SHAPES, STACKS};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::{IpProtocol, checksum};

const KEY: [u8; 32] = [
    21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131, 121,
    121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
];

fn program(name: &str) -> Program {
    Policy::shipped(name).expect("a policy").compile().expect("a program")
}

fn unit(program: Program) -> Unit {
    Unit::new(program, Secrets::new(&KEY, MappingName::CryptoPan).expect("a key"))
}

fn of(text: &str) -> Unit {
    unit(Policy::read(text).expect("a policy").compile().expect("a program"))
}

fn masked(unit: &mut Unit, packet: &[u8]) -> Vec<u8> {
    let mut out = vec![0xee; 7];
    unit.mask(Link::Ethernet, packet, 1, &mut out);
    out
}

#[test]
fn what_strict_gives_depends_on_no_secret_wherever_the_packet_is_cut() {
    let mut unit = unit(program("strict"));
    for shape in 0..SHAPES {
        let one = Plant::new(0x1234_5678_9abc_def1).shape(shape);
        let other = Plant::new(0xfedc_ba98_7654_3211).shape(shape);
        assert_eq!(one.len(), other.len());
        for cut in 0..=one.len() {
            let (a, b) = (masked(&mut unit, &one[..cut]), masked(&mut unit, &other[..cut]));
            assert_eq!(a, b, "shape {shape} cut at {cut}");
            assert!(a.len() <= cut);
        }
    }
}

/// A header that is wholly there is done in one step, one that is cut field by field: both give the same.
#[test]
fn one_step_does_what_field_by_field_does() {
    for (name, _) in crate::policy::SHIPPED {
        let mut unit = unit(program(name));
        for shape in 0..SHAPES {
            let packet = Plant::new(shape as u64 + 5).shape(shape);
            let whole = masked(&mut unit, &packet);
            // The first 34 bytes hold IPv4's header, which is cut at each length; its fields that are
            // there are the same as in the whole, but for the checksum.
            for cut in 14..34.min(packet.len()) {
                let part = masked(&mut unit, &packet[..cut]);
                for (at, byte) in part.iter().enumerate().filter(|(_, byte)| **byte != 0) {
                    assert_eq!(*byte, whole[at], "{name}, shape {shape} cut at {cut}, byte {at}");
                }
            }
        }
    }
}

#[test]
fn below_mpls_is_ip_only_if_it_proves_to_be() {
    let mut unit = unit(program("debug"));
    for shape in [9, 10] {
        let packet = Plant::new(40).shape(shape);
        assert_eq!(masked(&mut unit, &packet).len(), 18, "{shape}");
    }
    for version in [4, 6] {
        let mut plant = Plant::new(41);
        let udp = plant.udp(Some(53), vec![]);
        let (ip, header) = match version {
            4 => (plant.ipv4(17, &[], udp), 20),
            _ => (plant.ipv6(17, udp), 40),
        };
        let labelled = plant.mpls(ip);
        let packet = plant.ethernet(0x8847, labelled);
        assert_eq!(masked(&mut unit, &packet).len(), 18 + header + 8);
        // One of which a part is missing proves nothing.
        assert_eq!(masked(&mut unit, &packet[..packet.len() - 1]).len(), 18);
        let mut wrong = packet;
        wrong[18 + 5] ^= 1;
        let kept = 18;
        assert_eq!(masked(&mut unit, &wrong).len(), kept, "{version}");
    }
}

#[test]
fn a_second_fragment_header_does_not_make_a_packet_whole() {
    let mut unit = of("about = \"\"\npayload = true\n[fields]\n\"udp.*\" = \"keep\"");
    let packet = Plant::new(3).shape(13);
    // The headers, of which UDP's is the last.
    assert_eq!(masked(&mut unit, &packet).len(), 14 + 40 + 16 + 8);
}

#[test]
fn what_is_behind_a_datagram_is_none_of_it() {
    let mut unit = of("about = \"\"\npayload = true\n[fields]\n\"udp.*\" = \"keep\"\n\
        \"ipv4.*\" = \"keep\"");
    let mut plant = Plant::new(6);
    let udp = plant.udp(Some(53), vec![7; 10]);
    let ip = plant.ipv4(17, &[], [udp, vec![8; 12]].concat());
    let out = masked(&mut unit, &plant.ethernet(0x0800, ip));
    assert_eq!(out.len(), 14 + 20 + 18);
    let ends = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&out[at..at + 4]).expect("4 bytes"));
    let sum = checksum::pseudo(ends(26), ends(30), 18, IpProtocol::UDP).expect("one family");
    assert_eq!(sum.bytes(&out[34..]).fold(), 0xffff);
}

#[test]
fn segments_are_addresses_and_their_options_are_not() {
    let mut unit = unit(program("research"));
    let packet = Plant::new(12).shape(11);
    let out = masked(&mut unit, &packet);
    let pan = crate::mapping::CryptoPan::new(&KEY);
    let bits = |bytes: &[u8]| u128::from_be_bytes(bytes.try_into().expect("16 bytes"));
    // The index of the last segment is kept, flags and tag are not.
    assert_eq!(out[54..62], [17, 6, 4, 1, 1, 0, 0, 0]);
    for at in [62, 78] {
        assert_eq!(bits(&out[at..at + 16]), pan.map6(bits(&packet[at..at + 16])));
    }
    assert_eq!(out[94..110], [0; 16]);
    // More segments than there is room for.
    let mut wrong = packet;
    wrong[58] = 3;
    assert_eq!(masked(&mut unit, &wrong).len(), 14 + 40 + 56);
}

#[test]
fn checksums_of_what_is_kept_are_right() {
    // Everything kept: each checksum comes out as a stack would compute it.
    let mut unit = of("about = \"all\"\npayload = true\n[fields]\n\"ethernet.*\" = \"keep\"\n\
        \"ipv4.*\" = \"keep\"\n\"ipv6.*\" = \"keep\"\n\"tcp.*\" = \"keep\"\n\"udp.*\" = \"keep\"\n\
        \"icmp.*\" = \"keep\"\n\"icmpv6.*\" = \"keep\"");
    let mut plant = Plant::new(5);
    let payload = plant.payload();
    let tcp = plant.tcp(payload.clone());
    let ip = plant.ipv4(6, &[], tcp);
    let out = masked(&mut unit, &plant.ethernet(0x0800, ip));
    assert!(checksum::verifies(&out[14..34]));
    let ends = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&out[at..at + 4]).expect("4 bytes"));
    let segment = &out[34..];
    let length = segment.len() as u32;
    let sum = checksum::pseudo(ends(26), ends(30), length, IpProtocol::TCP).expect("one family");
    assert_eq!(sum.bytes(segment).fold(), 0xffff);
    assert_eq!(&out[out.len() - 24..], payload);

    let udp = plant.udp(Some(53), payload);
    let ip = plant.ipv6(17, udp);
    let out = masked(&mut unit, &plant.ethernet(0x86dd, ip));
    let ends = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&out[at..at + 16]).expect("16"));
    let datagram = &out[54..];
    let sum = checksum::pseudo_v6(ends(22), ends(38), datagram.len() as u32, IpProtocol::UDP);
    assert_eq!(sum.bytes(datagram).fold(), 0xffff);
}

#[test]
fn a_removed_payload_is_cut_and_its_checksum_is_that_of_zeros() {
    let mut unit = unit(program("research"));
    let mut plant = Plant::new(9);
    let (payload, mut zeros) = (plant.payload(), vec![0; 24]);
    let udp = Plant::new(3).udp(Some(53), payload);
    let ip = Plant::new(4).ipv4(17, &[], udp);
    let out = masked(&mut unit, &plant.ethernet(0x0800, ip));
    assert_eq!(out.len(), 14 + 20 + 8);
    zeros.splice(0..0, out[34..].iter().copied());
    let ends = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&out[at..at + 4]).expect("4 bytes"));
    let sum = checksum::pseudo(ends(26), ends(30), 32, IpProtocol::UDP).expect("one family");
    assert_eq!(sum.bytes(&zeros).fold(), 0xffff);
}

#[test]
fn options_of_neighbour_discovery_keep_their_type_and_what_the_policy_names() {
    let mut unit = unit(program("research"));
    let packet = Plant::new(8).shape(5);
    let out = masked(&mut unit, &packet);
    let option = 14 + 40 + 16;
    // Type, length, the prefix's length and flags, both lifetimes; then the prefix, mapped.
    assert_eq!(out[option..option + 12], packet[option..option + 12]);
    assert_eq!(out[option + 12..option + 16], [0; 4]);
    let bits = |bytes: &[u8]| u128::from_be_bytes(bytes.try_into().expect("16 bytes"));
    let pan = crate::mapping::CryptoPan::new(&KEY);
    let mapped = pan.map6(bits(&packet[option + 16..option + 32]));
    assert_eq!(bits(&out[option + 16..option + 32]), mapped);
    // An unknown one is empty.
    assert_eq!(out[option + 32..], [&[25, 2][..], &[0; 14]].concat());
}

/// What is behind a quote is no packet, even where the quoted headers would go on there.
#[test]
fn extensions_behind_a_quote_are_removed() {
    let mut unit = unit(program("research"));
    let mut plant = Plant::new(31);
    // Six headers of 20 bytes, then TCP's, of which 8 are quoted.
    let tunnels = (0..6).fold(vec![0x77; 20], |inner, depth| {
        plant.ipv4(if depth == 0 { 6 } else { 4 }, &[], inner)
    });
    let extension = [0x5a; 24];
    for (kind, words) in [(3, 32), (11, 0), (12, 32)] {
        let start = [kind, 0, 0, 0, 0, words, 0, 0];
        let error = [&start[..], &tunnels[..128], &extension].concat();
        let ip = Plant::new(2).ipv4(1, &[], error);
        let out = masked(&mut unit, &Plant::new(3).ethernet(0x0800, ip));
        assert_eq!(out.len(), 14 + 20 + 8 + 128);
        // The ports and the sequence number are the last that is there.
        assert_eq!(out[out.len() - 8..], [0x77; 8]);
    }
}

#[test]
fn addresses_are_mapped_alike_wherever_they_stand() {
    let mut unit = unit(program("research"));
    let mut plant = Plant::new(21);
    let quoted = plant.ipv4(17, &[], vec![0; 8]);
    let error = [vec![11, 0, 0, 0, 0, 0, 0, 0], quoted.clone()].concat();
    let mut ip = plant.ipv4(1, &[], error);
    // The error goes back to who sent the packet.
    ip[16..20].copy_from_slice(&quoted[12..16]);
    let out = masked(&mut unit, &plant.ethernet(0x0800, ip.clone()));
    assert_eq!(out[30..34], out[14 + 28 + 12..14 + 28 + 16]);
    let pan = crate::mapping::CryptoPan::new(&KEY);
    let original = Ipv4Addr::from(<[u8; 4]>::try_from(&ip[16..20]).expect("4 bytes"));
    let mapped = Ipv4Addr::from(<[u8; 4]>::try_from(&out[30..34]).expect("4 bytes"));
    assert_eq!(pan.map(original.into()), IpAddr::from(mapped));
}

#[test]
fn operations_do_what_they_say() {
    let mut packet = Plant::new(1).ethernet(0x0800, Plant::new(2).ipv4(17, &[], vec![0x12; 8]));
    packet[26..30].copy_from_slice(&[198, 51, 100, 7]);
    packet[22] = 250;
    let source = |action: &str| -> [u8; 4] {
        let mut unit = of(&format!(
            "about = \"\"\n[fields]\n\"ipv4.source\" = {action}\n\"ipv4.ttl\" = \"keep\""
        ));
        let out = masked(&mut unit, &packet);
        assert_eq!(out[22], 250);
        out[26..30].try_into().expect("4 bytes")
    };
    assert_eq!(source("\"keep\""), [198, 51, 100, 7]);
    assert_eq!(source("\"remove\""), [0; 4]);
    assert_eq!(source("{ constant = 0x01020304 }"), [1, 2, 3, 4]);
    assert_eq!(source("{ xor = 0xff }"), [198, 51, 100, 248]);
    assert_eq!(source("{ shift = 0xffffffff }"), [198, 51, 100, 6]);
    assert_eq!(source("{ truncate = 24 }"), [198, 51, 100, 0]);
    assert_eq!(source("{ truncate = 0 }"), [0; 4]);
    assert_eq!(source("{ truncate = 32 }"), [198, 51, 100, 7]);
    assert_eq!(source("{ permute = 16 }")[..2], [198, 51]);
    assert_ne!(source("{ permute = 16 }")[2..], [100, 7]);
    assert_eq!(source("\"encrypt\""), source("{ permute = 0 }"));
    assert_ne!(source("\"hash\""), source("\"random\""));
}

#[test]
fn bits_at_an_offset_are_named_by_a_field_before_them() {
    let packet = Plant::new(1).ethernet(0x0800, Plant::new(2).ipv4(17, &[], vec![0x12; 8]));
    let mut unit = of("about = \"\"\n[fields]\n\"ethernet.source+0:16\" = \"keep\"\n\
        \"ipv4.source+3:8\" = { constant = 1 }\n\"ipv4.source+1:16\" = \"encrypt\"");
    let out = masked(&mut unit, &packet);
    assert_eq!(out[6..12], [packet[6], packet[7], 0, 0, 0, 0]);
    assert_eq!((out[26], out[29]), (0, 1));
    assert_ne!(out[27..29], packet[27..29]);
    let refused = |line: &str| {
        let text = format!("about = \"\"\n[fields]\n{line}");
        Policy::read(&text).expect("TOML").compile().expect_err(line).to_string()
    };
    for (line, says) in [
        ("\"ipv4.source+0:12\" = \"keep\"", "FIELD+BYTES:8 or FIELD+BYTES:16"),
        ("\"ipv4.source+x:8\" = \"keep\"", "FIELD+BYTES:8 or FIELD+BYTES:16"),
        ("\"ipv4.sorce+0:8\" = \"keep\"", "did you mean \"ipv4.source\""),
        ("\"ipv4.source+250:8\" = \"keep\"", "FIELD+BYTES:8 or FIELD+BYTES:16"),
        ("\"ipv4.source+8:8\" = \"keep\"", "beyond the header's fixed part"),
        // A checksum, structure, and what another line is about.
        ("\"ipv4.ttl+2:16\" = \"keep\"", "there is no field"),
        ("\"ipv4.ttl+1:8\" = { constant = 6 }", "another instruction also writes there"),
        (
            "\"ipv4.*\" = \"keep\"\n\"ipv4.source+0:8\" = \"keep\"",
            "another instruction also writes there",
        ),
    ] {
        assert!(refused(line).contains(says), "{line}: {}", refused(line));
    }
}

#[test]
fn random_differs_from_packet_to_packet_and_hash_does_not() {
    let packet = Plant::new(1).ethernet(0x0800, Plant::new(2).ipv4(17, &[], vec![0x12; 8]));
    let mut unit = of("about = \"\"\n[fields]\n\"ipv4.source\" = \"random\"\n\
        \"ipv4.destination\" = \"hash\"");
    let (mut one, mut two) = (Vec::new(), Vec::new());
    unit.mask(Link::Ethernet, &packet, 1, &mut one);
    unit.mask(Link::Ethernet, &packet, 2, &mut two);
    assert_ne!(one[26..30], two[26..30]);
    assert_eq!(one[30..34], two[30..34]);
}

proptest! {
    #[test]
    fn any_bytes_are_masked_without_harm(packet in prop::collection::vec(any::<u8>(), 0..200)) {
        for (name, _) in crate::policy::SHIPPED {
            let mut unit = unit(program(name));
            for link in [Link::Ethernet, Link::Ip] {
                let mut out = Vec::new();
                unit.mask(link, &packet, 0, &mut out);
                prop_assert!(out.len() <= packet.len());
            }
        }
    }

    #[test]
    fn permutations_are_ones(bits in 1u32..=12, tweak: u128) {
        let secrets = Secrets::new(&KEY, MappingName::CryptoPan).expect("a key");
        let mut seen = vec![false; 1 << bits];
        for value in 0..1u128 << bits {
            let to = secrets.permute(9, tweak, value, bits);
            prop_assert!(!std::mem::replace(&mut seen[to as usize], true), "{value} of {bits}");
        }
    }

    #[test]
    fn what_is_remembered_is_what_would_be_computed(
        values in prop::collection::vec((0u32..100, 0usize..4), 1..40),
    ) {
        let actions = ["\"encrypt\"", "\"hash\"", "{ permute = 8 }", "{ permute = 16 }"];
        let mut units = actions.map(|action| of(&format!(
            "about = \"\"\n[fields]\n\"ipv4.source\" = {action}\n\"ipv4.identification\" = {action}"
        )));
        for (value, which) in values {
            let mut packet = Plant::new(1).ethernet(0x0800, Plant::new(2).ipv4(17, &[], vec![0x12; 8]));
            packet[26..30].copy_from_slice(&value.to_be_bytes());
            packet[18..20].copy_from_slice(&(value as u16).to_be_bytes());
            let mut fresh = of(&format!(
                "about = \"\"\n[fields]\n\"ipv4.source\" = {0}\n\"ipv4.identification\" = {0}",
                actions[which]
            ));
            prop_assert_eq!(masked(&mut units[which], &packet), masked(&mut fresh, &packet));
        }
    }

    #[test]
    fn the_cache_gives_what_the_mapping_gives(addresses in prop::collection::vec(0u32..4096, 1..200)) {
        let pan = crate::mapping::CryptoPan::new(&KEY);
        let mut secrets = Secrets::new(&KEY, MappingName::CryptoPan).expect("a key");
        for address in addresses {
            prop_assert_eq!(secrets.prefix4(address), pan.map4(address));
            let wide = u128::from(address) << 64 | 7;
            prop_assert_eq!(secrets.prefix6(wide), pan.map6(wide));
        }
    }
}
