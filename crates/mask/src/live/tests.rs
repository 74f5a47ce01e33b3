//! Both engines give the same, byte for byte: for the recordings, packets with planted secrets nested and
//! cut everywhere, and random changes of both. Those of [`process`] need no cipher in the kernel.

mod process;

use super::{
    engine::{instructions, keys, settings},
    filter::Filter,
};
use crate::{
    key::Key,
    layer::FIELDS,
    machine::{
        DEPTH, Link, MappingName, Secrets, Unit,
        tests::{Plant, SHAPES, STACKS},
    },
    policy::{Policy, SHIPPED},
};
use capture::Item;
use datapath::mask::{self as kernel, Engine, Mask, Reader, Settings};
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};
use zeroize::Zeroizing;

/// A policy that has each operation on fields of each width.
const OPERATIONS: &str = r#"
about = "all operations"
time = "keep"
[fields]
"ethernet.source" = "encrypt"
"ethernet.destination" = { permute = 24 }
"vlan.id" = "encrypt"
"vlan.priority" = { xor = 5 }
"mpls.label" = { permute = 4 }
"arp.*" = "hash"
"arp.sender_mac" = { truncate = 24 }
"ipv4.source" = "prefix"
"ipv4.destination" = { permute = 17 }
"ipv4.identification" = "random"
"ipv4.ttl" = { shift = 250 }
"ipv4.dscp" = "encrypt"
"ipv4.dont_fragment" = "encrypt"
"ipv4.route.pointer" = "keep"
"ipv4.route.address" = "prefix"
"ipv4.router_alert.value" = "keep"
"ipv6.source" = "encrypt"
"ipv6.destination" = { truncate = 72 }
"ipv6.flow_label" = "random"
"ipv6.hop_limit" = { constant = 64 }
"ipv6.routing.address" = { permute = 64 }
"ipv6.fragment.identification" = "hash"
"tcp.*" = "keep"
"tcp.source_port" = "encrypt"
"tcp.destination_port" = { truncate = 7 }
"tcp.sequence" = "random"
"tcp.window" = "remove"
"tcp.window+1:8" = "hash"
"tcp.timestamps.value" = { shift = 4000000000 }
"tcp.sack.*" = { permute = 16 }
"udp.*" = "hash"
"icmp.*" = "keep"
"icmp.redirect.gateway" = "prefix"
"icmpv6.*" = "keep"
"icmpv6.neighbour.target" = "prefix"
"icmpv6.option.link_address" = "random"
"icmpv6.option.prefix" = { permute = 100 }
"gre.key" = "encrypt"
"vxlan.vni" = { permute = 8 }
"#;

/// The same policy in both engines; or in user space and the programs that copy packets to it.
struct Both {
    user: Unit,
    kernel: Mask,
    reader: Reader,
    number: u64,
}

impl Both {
    fn new(policy: &str, name: MappingName) -> Self {
        Self::filtered(policy, name, None, Engine::Kernel)
    }

    fn filtered(policy: &str, name: MappingName, filter: Option<&Filter>, engine: Engine) -> Self {
        let key: Key = Zeroizing::new(std::array::from_fn(|n| 7 * n as u8));
        let program = Policy::read(policy).expect("a policy").compile().expect("a program");
        let settings = Settings {
            filter: filter.map_or_else(Vec::new, instructions),
            ..settings(&program, name, Link::Ethernet).expect("nothing of the application layer")
        };
        let kernel =
            Mask::open(&settings, engine).expect("this takes root and, but for process, a cipher");
        kernel.set_key(0, 0, 1, &keys(&key, name)).expect("a key");
        let reader = kernel.reader().expect("a ring");
        let user = Unit::new(program, Secrets::new(&key, name).expect("a key"));
        Self { user, kernel, reader, number: 0 }
    }

    fn compare(&mut self, link: Link, packet: &[u8]) {
        let (mut user, packet) = (Vec::new(), &packet[..packet.len().min(3000)]);
        self.number += 0x1_0000_0001;
        self.user.mask(link, packet, self.number, &mut user);
        let kernel = self
            .kernel
            .try_one(&mut self.reader, super::engine::link(link), packet, self.number)
            .expect("run");
        assert_eq!(
            kernel.as_deref(),
            Some(user.as_slice()),
            "user space is right, the kernel left: packet {packet:02x?} of {link:?}"
        );
    }
}

fn policies() -> Vec<(String, MappingName)> {
    let mut policies: Vec<(String, MappingName)> =
        SHIPPED.iter().map(|(_, text)| ((*text).to_owned(), MappingName::CryptoPan)).collect();
    let (_, research) = SHIPPED[1];
    let with_payload = research.replace("[fields]", "payload = true\n[fields]");
    assert_ne!(with_payload, research);
    policies.push((with_payload, MappingName::IpcryptPfx));
    policies.push((OPERATIONS.to_owned(), MappingName::CryptoPan));
    policies
}

/// Packets of each kind; those of a TCP of nothing but cut ones are skipped.
fn recorded() -> Vec<(Link, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/gate");
    let mut packets = Vec::new();
    for entry in fs::read_dir(folder).expect("testdata/gate") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|it| it != "pcap") {
            continue;
        }
        let mut count = 0;
        let file = fs::File::open(&path).expect("a capture");
        capture::read_all::<capture::ReadError>(file, |item, _| {
            if let Item::Frame(frame) = item
                && count < 60
                && let Some((link, bytes)) = crate::file::link_and_bytes(&frame)
            {
                count += 1;
                packets.push((link, bytes.to_vec()));
            }
            Ok(())
        })
        .expect("a capture");
    }
    assert!(packets.len() > 500);
    packets
}

#[test]
fn both_engines_give_the_same_of_recordings() {
    let packets = recorded();
    for (policy, name) in policies() {
        let mut both = Both::new(&policy, name);
        for (link, packet) in &packets {
            both.compare(*link, packet);
        }
    }
}

#[test]
fn both_engines_give_the_same_of_planted_packets_cut_everywhere() {
    for (policy, name) in policies() {
        let mut both = Both::new(&policy, name);
        for shape in 0..SHAPES {
            let packet = Plant::new(shape as u64 + 1).shape(shape);
            for cut in 1..=packet.len() {
                both.compare(Link::Ethernet, &packet[..cut]);
                if cut > 14 {
                    both.compare(Link::Ip, &packet[14..cut]);
                }
            }
        }
    }
}

/// Each kind of step is the last one that is taken and the first that is not.
#[test]
fn both_engines_give_the_same_of_packets_about_as_deep_as_they_go() {
    for (policy, name) in policies() {
        let mut both = Both::new(&policy, name);
        for headers in 20..=27 {
            for (stack, protocol) in STACKS.into_iter().flat_map(|it| [(it, 6), (it, 17)]) {
                let packet = Plant::new(headers as u64).stack(stack, headers, protocol);
                both.compare(Link::Ethernet, &packet);
                both.compare(Link::Ip, &packet[14..]);
            }
        }
        // The shapes behind so many tags that each of their headers comes to stand there.
        for shape in 0..SHAPES {
            let packet = Plant::new(shape as u64 + 30).shape(shape);
            for tags in 8..=DEPTH {
                let tags = [0x81, 0, 0, 5].repeat(tags);
                both.compare(Link::Ethernet, &[&packet[..12], &tags, &packet[12..]].concat());
            }
        }
    }
}

#[test]
fn both_engines_give_the_same_of_random_changes() {
    let mut packets: Vec<(Link, Vec<u8>)> = recorded().into_iter().step_by(7).collect();
    for shape in 0..SHAPES {
        packets.push((Link::Ethernet, Plant::new(99).shape(shape)));
    }
    let mut random = Plant::new(0x9e37);
    for (policy, name) in policies() {
        let mut both = Both::new(&policy, name);
        for (link, packet) in packets.iter().cycle().take(4000) {
            let mut packet = packet.clone();
            // Mostly in headers, sometimes a length or a kind that leads elsewhere.
            for _ in 0..=random.bytes::<1>()[0] % 4 {
                let [high, low, to] = random.bytes();
                let within = packet.len().min(if high & 1 == 0 { 80 } else { 400 });
                let at = usize::from(u16::from_be_bytes([high, low])) % within;
                packet[at] = if to & 3 == 0 { to >> 3 } else { to };
            }
            both.compare(*link, &packet);
        }
    }
}

/// Each operation on all fields that it can be used on, whatever their width.
#[test]
fn both_engines_give_the_same_by_each_operation_on_every_field() {
    let packets: Vec<Vec<u8>> =
        (0..SHAPES).map(|shape| Plant::new(shape as u64 + 60).shape(shape)).collect();
    for action in [
        "{ constant = 1 }",
        "{ xor = 1 }",
        "{ shift = 1 }",
        "\"random\"",
        "\"hash\"",
        "\"encrypt\"",
        "\"prefix\"",
        "{ truncate = 1 }",
        "{ permute = 1 }",
    ] {
        let policy = |lines: &str| format!("about = \"\"\n[fields]\n{lines}");
        let lines = FIELDS.iter().filter(|it| !it.is_structure).map(|it| (it.name, action));
        let lines = lines.map(|(name, action)| format!("\"{name}\" = {action}\n"));
        let can = |line: &String| Policy::read(&policy(line)).is_ok_and(|it| it.compile().is_ok());
        let lines: String = lines.filter(can).collect();
        assert!(lines.lines().count() > 8, "{action}: {lines}");
        let mut both = Both::new(&policy(&lines), MappingName::IpcryptPfx);
        for packet in &packets {
            both.compare(Link::Ethernet, packet);
        }
    }
}

#[test]
fn the_kernel_filters_as_user_space_does() {
    filters_as_user_space_does(Engine::Kernel);
}

fn filters_as_user_space_does(engine: Engine) {
    let packets = recorded();
    for expression in [
        "tcp",
        "udp port 53 or tcp port 80",
        "ip6",
        "not ip",
        "host 10.0.0.1 or net 10.66.0.0/16",
        "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0 and tcp[13] % 3 = 1",
        "len > 400 and ip[2:2] - ((ip[0] & 0xf) << 2) > 300",
        "ether[6] & 1 = 0 and (ip[8] * 3) / 2 > 90 and ip[9] ^ 6 = 0",
        "vlan 5 and ip",
        "udp[4:2] >> (udp[5] & 63) = 0",
        "ip[ip[3]] = 7 or ip[60000] = 1",
        "portrange 6881-6999",
    ] {
        let filter = Filter::compile(expression, Link::Ethernet).expect(expression);
        let (strict, name) = (SHIPPED[0].1, MappingName::CryptoPan);
        let mut both = Both::filtered(strict, name, Some(&filter), engine);
        let mut taken = 0;
        for (link, packet) in &packets {
            if *link != Link::Ethernet || packet.len() > 3000 {
                continue;
            }
            let kernel =
                both.kernel.try_one(&mut both.reader, super::engine::link(*link), packet, 1);
            let wanted = filter.matches(packet, packet.len() as u32);
            assert_eq!(kernel.expect("run").is_some(), wanted, "{expression}: {packet:02x?}");
            taken += u32::from(wanted);
        }
        let counts = both.kernel.counts().expect("counts");
        assert_eq!((counts.taken, counts.lost_ring), (u64::from(taken), 0));
    }
}

#[test]
fn addresses_that_share_a_cache_slot_stay_apart() {
    let (_, research) = SHIPPED[1];
    let mut both = Both::new(research, MappingName::CryptoPan);
    // As mask_prefix4 hashes them.
    let sharing = (1_u32..).filter(|address| address.wrapping_mul(0x9e37_79b1) >> 16 == 0);
    let addresses: Vec<u32> = sharing.take(3).collect();
    let mut packet = Plant::new(5).shape(0);
    assert_eq!(packet[12..14], [8, 0], "IPv4");
    for order in [[0, 1], [1, 0], [2, 1], [0, 2], [1, 1], [2, 0]] {
        for (at, which) in [26, 30].into_iter().zip(order) {
            let address: u32 = addresses[which];
            packet[at..at + 4].copy_from_slice(&address.to_be_bytes());
        }
        both.compare(Link::Ethernet, &packet);
    }
}

#[test]
fn another_key_is_used_from_its_time_on() {
    let (_, research) = SHIPPED[1];
    let name = MappingName::CryptoPan;
    let mut both = Both::new(research, name);
    let packet = Plant::new(5).shape(0);
    let mask = |both: &mut Both| {
        let kernel = kernel::Link::Ethernet;
        both.kernel.try_one(&mut both.reader, kernel, &packet, 1).expect("run").expect("a result")
    };
    let first = mask(&mut both);
    let other: Key = Zeroizing::new([9; 32]);
    let begins = nix::time::clock_gettime(nix::time::ClockId::CLOCK_TAI).expect("a clock");
    let begins = Duration::from(begins) + Duration::from_secs(1);
    both.kernel.set_key(1, begins.as_nanos() as u64, 2, &keys(&other, name)).expect("a key");
    assert_eq!(mask(&mut both), first);
    let program = Policy::read(research).expect("a policy").compile().expect("a program");
    let mut user = Unit::new(program, Secrets::new(&other, name).expect("a key"));
    let mut wanted = Vec::new();
    user.mask(Link::Ethernet, &packet, 1, &mut wanted);
    assert_ne!(wanted, first);
    let end = Instant::now() + Duration::from_secs(20);
    let second = loop {
        let now = mask(&mut both);
        if now != first || Instant::now() > end {
            break now;
        }
    };
    assert_eq!(second, wanted);
    // The first one's slot is free for a third.
    both.kernel.set_key(0, u64::MAX, 3, &keys(&other, name)).expect("a key");
    assert_eq!(mask(&mut both), wanted);
}

#[test]
fn nothing_is_given_by_a_mask_that_was_wiped() {
    let mut both = Both::new(SHIPPED[1].1, MappingName::CryptoPan);
    let link = kernel::Link::Ethernet;
    let packet = Plant::new(1).shape(0);
    assert!(both.kernel.try_one(&mut both.reader, link, &packet, 1).expect("run").is_some());
    both.kernel.wipe();
    assert_eq!(both.kernel.try_one(&mut both.reader, link, &packet, 1).expect("run"), None);
}

#[test]
fn nothing_is_given_without_a_key_and_a_policy_that_looks_higher_is_refused() {
    let (_, research) = SHIPPED[1];
    let both = Both::new(research, MappingName::CryptoPan);
    both.kernel.set_key(0, u64::MAX, 1, &Default::default()).expect("a key");
    let mut reader = both.reader;
    let tried =
        both.kernel.try_one(&mut reader, kernel::Link::Ethernet, &Plant::new(1).shape(0), 1);
    assert_eq!(tried.expect("run"), None);
    assert_eq!(both.kernel.counts().expect("counts").lost_key, 1);
    let policy = research.replace("[fields]", "[fields]\n\"dns.name\" = \"hash\"");
    let program = Policy::read(&policy).expect("a policy").compile().expect("a program");
    let refused = settings(&program, MappingName::CryptoPan, Link::Ethernet);
    let refused = refused.expect_err("it names what lies higher").to_string();
    assert!(refused.contains("dns.name"), "{refused}");
}
