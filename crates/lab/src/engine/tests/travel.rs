//! Runs and stops: MTU, fragments, super-packets, and links that do more than delay.

use wire::{
    checksum,
    ipv4::{self, FragmentField},
};

use super::table::{Left, MS, Table, row, row_of, tcp, udp};
use crate::{
    LinkSettings, Nanos, NodeId, PortId,
    engine::{End, EngineOptions, Made, Reason},
    network::{Builder, Relation},
};

const FROM: &str = "10.0.0.10";
const TO: &str = "10.4.0.10";

/// Whether more fragments follow, and the bytes before this one (RFC 791, section 3.1).
fn fragment(ip: &[u8]) -> (bool, usize) {
    let field = FragmentField(u16::from_be_bytes([ip[6], ip[7]]));
    (field.more_fragments(), field.offset().into())
}

/// Fragments put together again; they must be those of one packet, in order, without gaps.
fn join(left: &[Left]) -> Vec<u8> {
    let mut whole = left[0].ip().to_vec();
    for (number, left) in left.iter().enumerate() {
        let ip = ipv4::Packet::new(left.ip()).expect("IPv4");
        assert!(ip.checksum_ok());
        let (more, before) = fragment(left.ip());
        assert_eq!(more, number + 1 < whole_count(left, number), "{number}");
        if number > 0 {
            assert_eq!(before, whole.len() - 20, "{number}");
            whole.extend(ip.payload());
        }
    }
    let length = whole.len() as u16;
    whole[2..4].copy_from_slice(&length.to_be_bytes());
    whole[6..8].fill(0);
    whole[10..12].fill(0);
    let check = checksum::checksum(&whole[..20]);
    whole[10..12].copy_from_slice(&check.to_be_bytes());
    whole
}

/// How many fragments there are if this one is the last.
fn whole_count(left: &Left, number: usize) -> usize {
    if fragment(left.ip()).0 { number + 2 } else { number + 1 }
}

#[test]
fn what_may_be_fragmented_is_fragmented_before_the_narrow_link() {
    for bytes in [60, 1472, 1473, 4000] {
        let mut table = row_of(5, |link| match link {
            2 => "delay=10ms mtu=576",
            3 => "delay=10ms mtu=300",
            _ => "delay=10ms mtu=9000",
        });
        let probe = udp(FROM, TO, 64, 9, &(0..bytes).map(|at| at as u8).collect::<Vec<_>>());
        table.send(PortId(0), &probe);
        let left = table.drain();
        assert!(left.iter().all(|left| left.at == 40 * MS && left.ip().len() <= 300));
        assert_eq!(
            join(&left),
            udp(FROM, TO, 59, 9, &(0..bytes).map(|at| at as u8).collect::<Vec<_>>())
        );
        let ledger = table.engine.ledger();
        assert_eq!(ledger[Made::Fragment] == 0, bytes == 60);
    }
}

#[test]
fn an_ipv6_packet_that_is_too_big_is_answered_from_before_the_narrow_link() {
    let mut table = row_of(5, |link| if link == 2 { "delay=10ms mtu=1280" } else { "delay=10ms" });
    table.send(PortId(0), &udp("2001:db8:0::10", "2001:db8:4::10", 64, 9, &[0; 1400]));
    let left = table.drain();
    assert_eq!((left.len(), left[0].at, left[0].ip().len()), (1, 40 * MS, 1280));
    assert_eq!(left[0].ip()[40..48], [2, 0, left[0].ip()[42], left[0].ip()[43], 0, 0, 5, 0]);
    assert_eq!(table.engine.ledger()[Reason::TooBig], 1);
}

/// A super-packet as Linux hands it to a TAP: 5,000 bytes of TCP in segments of 1,448.
pub(super) fn super_packet() -> Vec<u8> {
    let mut packet = tcp(FROM, TO, (40_000, 80), 0x18, [1000, 1], 5000);
    packet[6] = 0x40;
    packet[10..12].fill(0);
    let check = checksum::checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&check.to_be_bytes());
    // What the sum starts from, as NEEDS_CSUM wants it.
    let sum = checksum::Sum::default().bytes(&packet[12..20]).word(6).word(5020).fold();
    packet[36..38].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// The virtio header of [`super_packet`].
pub(super) const SUPER_HEADER: [u8; 12] = [1, 1, 54, 0, 0xa8, 5, 34, 0, 16, 0, 0, 0];

fn send_super(table: &mut Table) {
    table.send_with(PortId(0), &SUPER_HEADER, &super_packet());
}

/// Through links that only delay it stays whole; before one that treats packets one by one, with
/// `gso = false`, and at a port without virtio header it is split. What was split has right checksums.
#[test]
pub(super) fn super_packets_pass_whole_where_links_only_delay() {
    let plain = |_| "delay=10ms";
    let rated = |link| if link == 2 { "delay=10ms rate=1Gbit" } else { "delay=10ms" };
    let whole = EngineOptions::default();
    let split = EngineOptions { gso: false, ..EngineOptions::default() };
    type Links = fn(u32) -> &'static str;
    let cases = [
        ("whole", plain as Links, whole.clone(), false, 1),
        ("a rate", rated, whole.clone(), false, 4),
        ("gso = false", plain, split, false, 4),
        ("a plain port", plain, whole, true, 4),
    ];
    for (name, links, options, no_header, count) in cases {
        let mut table = super::table::row_with(5, links, options);
        if no_header {
            table.engine.set_plain(PortId(1));
        }
        send_super(&mut table);
        let left = table.drain();
        assert_eq!(left.len(), count, "{name}");
        if count == 1 {
            assert_eq!(left[0].bytes[..12], SUPER_HEADER);
            assert_eq!(left[0].ip().len(), 5040);
            assert_eq!(left[0].ip()[8], 4);
            continue;
        }
        let lengths: Vec<_> = left.iter().map(|left| left.ip().len()).collect();
        assert_eq!(lengths, [1488, 1488, 1488, 696], "{name}");
        for (number, left) in left.iter().enumerate() {
            let sequence = u32::from_be_bytes(left.ip()[24..28].try_into().expect("four bytes"));
            assert_eq!(sequence, 1000 + 1448 * number as u32, "{name}");
            assert!(checksum::verifies(&left.ip()[..20]), "{name}");
            if no_header {
                let tcp = &left.ip()[20..];
                let sum = checksum::Sum::default().bytes(tcp).bytes(&left.ip()[12..20]).word(6);
                assert_eq!(sum.word(tcp.len() as u16).fold(), 0xffff, "{name}");
                assert_eq!(left.bytes[..12], [0; 12]);
            }
        }
        let ledger = table.engine.ledger();
        assert_eq!((ledger[Reason::Split], ledger[Made::Segment]), (1, 4), "{name}");
    }
}

#[test]
fn a_super_packet_is_too_big_by_its_segments() {
    let mut table = row_of(5, |link| if link == 2 { "delay=10ms mtu=1488" } else { "delay=10ms" });
    send_super(&mut table);
    assert_eq!(table.drain().len(), 1, "1,488 bytes fit");
    let mut table = row_of(5, |link| if link == 2 { "delay=10ms mtu=1400" } else { "delay=10ms" });
    send_super(&mut table);
    let left = table.drain();
    // The three segments of 1,488 bytes are answered, the last one of 696 fits.
    let to: Vec<_> = left.iter().map(|left| left.port.0).collect();
    assert_eq!(to.iter().filter(|&&port| port == 0).count(), 3, "{:?}", table.engine.ledger());
    assert_eq!(to.len(), 4);
    let error = left.iter().find(|left| left.port == PortId(0)).expect("an error");
    let quoted = &error.ip()[28..];
    assert_eq!(quoted[2..4], 1488u16.to_be_bytes(), "what is quoted is a segment");
}

#[test]
fn a_packet_is_as_long_on_its_way_as_links_with_rate_say() {
    let mut table = row(5, "delay=10ms rate=8Mbit");
    // 986 bytes and 14 of Ethernet take a millisecond on each of four links, one packet after the other.
    for _ in 0..3 {
        table.send(PortId(0), &udp(FROM, TO, 64, 9, &[0; 958]));
    }
    let at: Vec<_> = table.drain().iter().map(|left| left.at / MS).collect();
    assert_eq!(at, [44, 45, 46]);
}

#[test]
fn copies_are_counted_and_go_the_whole_way() {
    let mut table =
        row_of(5, |link| if link == 2 { "delay=10ms duplicate=100%" } else { "delay=10ms" });
    table.send(PortId(0), &udp(FROM, TO, 64, 9, &[0; 100]));
    let left = table.drain();
    assert_eq!(left.len(), 2);
    assert_eq!(left[0].ip(), left[1].ip());
    assert_eq!(table.engine.ledger()[Made::Copy], 1);
}

#[test]
fn a_flipped_bit_ends_in_a_checksum_of_the_next_node_or_the_host() {
    let mut table =
        row_of(5, |link| if link == 2 { "delay=10ms corrupt=100%" } else { "delay=10ms" });
    let sent = udp(FROM, TO, 64, 9, &[0; 100]);
    for _ in 0..200 {
        table.send(PortId(0), &sent);
    }
    let right = udp(FROM, TO, 59, 9, &[0; 100]);
    let left = table.drain();
    for left in left.iter().filter(|left| left.port == PortId(1)) {
        let bits: u32 = left.ip().iter().zip(&right).map(|(a, b)| (a ^ b).count_ones()).sum();
        assert_eq!(bits, 1);
        assert_eq!(left.ip()[..20], right[..20]);
    }
    // 20 of 128 bytes are header.
    let malformed = table.engine.ledger()[Reason::Malformed];
    assert!((10..60).contains(&malformed), "{malformed}");
    assert_eq!(malformed + left.len() as u64, 200);
}

#[test]
fn marks_and_drops_of_a_link_are_counted() {
    let mut table = row_of(3, |link| if link == 1 { "delay=1ms loss=50%" } else { "delay=1ms" });
    for _ in 0..1000 {
        table.send(PortId(0), &udp(FROM, "10.2.0.10", 64, 9, &[0; 10]));
    }
    let left = table.drain().len() as u64;
    assert_eq!(left + table.engine.ledger()[Reason::Loss], 1000);
    assert!((400..600).contains(&left), "{left}");
    assert_eq!(table.now, Nanos(2 * MS).0);
}

/// Ten packets end in the middle, ten go through, one answers: what came to each link and node.
#[test]
fn links_and_nodes_know_what_came_to_them() {
    let mut table = row_of(5, |link| if link == 1 { "delay=1ms rate=1Gbit" } else { "delay=1ms" });
    for ttl in [3, 64] {
        for _ in 0..10 {
            table.send(PortId(0), &udp(FROM, TO, ttl, 9, &[0; 72]));
        }
    }
    table.drain();
    let mut load = |from: u32, to: u32| {
        let ends = [from, to].map(crate::NodeId);
        let link = table.engine.network().link_between(ends[0], ends[1]).expect("a link");
        let load = table.engine.loads_of(&[link]).next().unwrap();
        (load.packets, load.bytes, load.dropped)
    };
    assert_eq!(load(0, 1), (20, 2000, 0));
    assert_eq!(load(1, 2), (20, 2000, 0));
    assert_eq!(load(2, 3), (10, 1000, 0));
    assert_eq!(load(3, 4), (10, 1000, 0));
    // Six errors of 128 bytes, then the limit.
    assert_eq!(load(2, 1), (6, 6 * 128, 0));
    assert_eq!(load(1, 0), (6, 6 * 128, 0));
    assert_eq!(load(4, 3), (0, 0, 0));
    let node = table.engine.node_loads[&crate::NodeId(2)];
    assert_eq!((node.ended, node.sent), (10, 6));
    assert_eq!(table.engine.link_loads().count(), 6);
}

/// Two nodes whose entries send packets to each other: none gets to the third, and the path that is shown
/// says so.
#[test]
fn a_circle_is_the_way_to_nowhere() {
    let mut builder = Builder::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| builder.node(name).expect("a node"));
    let settings = LinkSettings::default();
    let [ab, ba] = builder.link(a, b, &settings, 1, Relation::None).expect("a link");
    builder.link(b, c, &settings, 1, Relation::None).expect("a link");
    let net = "10.4.0.0/16".parse().expect("a prefix");
    builder.prefix(c, net).expect("a node");
    builder.entry(a, net, ab).expect("a link of a");
    builder.entry(b, net, ba).expect("a link of b");
    let mut table = Table::new(builder.finish().expect("a network"), EngineOptions::default());
    table.host(0, &["10.0.0.10/16"]);
    table.host(2, &["10.4.0.10/16"]);
    let path = table.engine.path(NodeId(0), TO.parse().expect("an address"), 0);
    assert_eq!((path.end, path.links.len()), (End::TooFar, 255));
    for ttl in [64, 255] {
        table.send(PortId(0), &udp(FROM, TO, ttl, 9, b"x"));
    }
    table.drain();
    assert_eq!(table.engine.ledger()[Reason::TtlExceeded], 2);
}
