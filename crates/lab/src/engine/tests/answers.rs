//! What nodes answer: who, when, what, and when they keep quiet.

use wire::{IpProtocol, Mac, checksum, icmpv4, icmpv6, ipv4, ipv6};

use super::table::{Left, MS, Table, icmp4, icmp6, packet, row, tcp, udp};
use crate::{
    Nanos, PortId,
    engine::{Change, Made, Reason},
};

const SOURCE: &str = "10.0.0.10";
const SOURCE6: &str = "2001:db8:0::10";

/// An ICMP message of either family that left: source, TTL, type, code, the four bytes after, payload.
type Message = (String, u8, u8, u8, u32, Vec<u8>);

fn read(left: &Left) -> Message {
    if left.ip()[0] >> 4 == 4 {
        let ip = ipv4::Packet::new(left.ip()).expect("IPv4");
        assert!(ip.checksum_ok() && checksum::verifies(ip.payload()), "{:02x?}", left.ip());
        let icmp = icmpv4::Packet::new(ip.payload()).expect("ICMP");
        let rest = u32::from_be_bytes(icmp.rest());
        let (kind, code) = (icmp.kind().0, icmp.code());
        (ip.source().to_string(), ip.ttl(), kind, code, rest, icmp.payload().to_vec())
    } else {
        let ip = ipv6::Packet::new(left.ip()).expect("IPv6");
        let icmp = icmpv6::Packet::new(ip.payload()).expect("ICMPv6");
        assert!(icmp.checksum_ok(ip.source(), ip.destination()));
        let rest = u32::from_be_bytes(icmp.rest());
        let (kind, code) = (icmp.kind().0, icmp.code());
        (ip.source().to_string(), ip.hop_limit(), kind, code, rest, icmp.payload().to_vec())
    }
}

/// One packet through a row of five nodes and the single answer to it.
fn ask(probe: &[u8]) -> (u64, Message) {
    let mut table = row(5, "delay=10ms");
    table.send(PortId(0), probe);
    let left = table.drain();
    assert_eq!(left.len(), 1, "{:?}", table.engine.ledger());
    assert_eq!(left[0].port, PortId(0));
    (left[0].at / MS, read(&left[0]))
}

/// What every TTL finds: the node where it ends, and the time there and back.
#[test]
fn a_ttl_ends_at_its_node_after_its_part_of_the_delay() {
    let hops = ["10.0.0.1", "172.16.1.0", "172.16.2.1", "172.16.3.2", "172.16.4.3"];
    for (ttl, from) in (1u8..).zip(hops) {
        let probe = udp(SOURCE, "10.4.0.10", ttl, 33_434, &[9; 32]);
        let (at, (source, left_ttl, kind, code, rest, quote)) = ask(&probe);
        assert_eq!((source.as_str(), kind, code, rest), (from, 11, 0, 0));
        assert_eq!(at, 20 * u64::from(ttl - 1), "there and back for TTL {ttl}");
        assert_eq!(left_ttl, 64 - (ttl - 1), "TTL of the answer");
        // Quoted is the packet as the node got it, with a TTL of 1.
        assert_eq!(quote, udp(SOURCE, "10.4.0.10", 1, 33_434, &[9; 32]));
    }
    for ttl in 1..=5 {
        let probe = udp(SOURCE6, "2001:db8:4::10", ttl, 33_434, &[9; 32]);
        let (at, (source, left_ttl, kind, code, _, quote)) = ask(&probe);
        let from = match ttl {
            1 => "2001:db8::1".to_owned(),
            ttl => format!("2001:db8:ffff:{}::{}", ttl - 1, ttl - 2),
        };
        let from: std::net::Ipv6Addr = from.parse().expect("an address");
        assert_eq!((source, left_ttl, kind, code), (from.to_string(), 65 - ttl, 3, 0));
        assert_eq!(at, 20 * u64::from(ttl - 1));
        assert_eq!(quote, udp(SOURCE6, "2001:db8:4::10", 1, 33_434, &[9; 32]));
    }
}

/// Packets for nodes and for where nobody is, and the answers.
#[test]
fn nodes_answer_what_is_for_them_and_say_what_is_wrong() {
    let echo = icmp4(8, 0, 0x1234_0001, b"payload");
    let echo6 = icmp6(SOURCE6, "2001:db8:2::1", 128, 0, 0x1234_0001, b"payload");
    let to4 = |address: &str, ttl, protocol, payload: &[u8]| {
        packet(SOURCE, address, ttl, IpProtocol(protocol), payload)
    };
    let to6 = |address: &str, ttl, protocol, payload: &[u8]| {
        packet(SOURCE6, address, ttl, IpProtocol(protocol), payload)
    };
    // The probe, who answers, type, code, rest, after how many ms.
    let cases = [
        ("ping", to4("10.2.0.1", 64, 1, &echo), "10.2.0.1", 0, 0, 0x1234_0001, 40),
        ("ping an interface", to4("172.16.2.3", 64, 1, &echo), "172.16.2.3", 0, 0, 0x1234_0001, 40),
        ("ping with the last TTL", to4("10.2.0.1", 3, 1, &echo), "10.2.0.1", 0, 0, 0x1234_0001, 40),
        ("ping the first node", to4("10.0.0.1", 1, 1, &echo), "10.0.0.1", 0, 0, 0x1234_0001, 0),
        ("UDP to a node", udp(SOURCE, "10.2.0.1", 9, 53, b"x"), "10.2.0.1", 3, 3, 0, 40),
        ("GRE to a node", to4("10.2.0.1", 9, 47, &[0; 8]), "10.2.0.1", 3, 2, 0, 40),
        ("nobody", udp(SOURCE, "10.3.0.99", 9, 53, b"x"), "172.16.3.2", 3, 1, 0, 60),
        ("no route", udp(SOURCE, "198.51.100.1", 9, 53, b"x"), "10.0.0.1", 3, 0, 0, 0),
        ("ping6", to6("2001:db8:2::1", 64, 58, &echo6), "2001:db8:2::1", 129, 0, 0x1234_0001, 40),
        ("UDP6", udp(SOURCE6, "2001:db8:2::1", 9, 53, b"x"), "2001:db8:2::1", 1, 4, 0, 40),
        ("GRE6", to6("2001:db8:2::1", 9, 47, &[0; 8]), "2001:db8:2::1", 4, 1, 6, 40),
        ("nobody6", udp(SOURCE6, "2001:db8:3::99", 9, 53, b"x"), "2001:db8:ffff:3::2", 1, 3, 0, 60),
        ("no route6", udp(SOURCE6, "2001:db9::1", 9, 53, b"x"), "2001:db8::1", 1, 0, 0, 0),
    ];
    for (name, probe, from, kind, code, rest, at) in cases {
        let (when, (source, _, answer_kind, answer_code, answer_rest, payload)) = ask(&probe);
        assert_eq!(
            (source.as_str(), answer_kind, answer_code, answer_rest, when),
            (from, kind, code, rest, at),
            "{name}"
        );
        if matches!(kind, 0 | 129) {
            assert_eq!(payload, b"payload", "{name}");
        } else {
            assert_eq!(payload.len(), probe.len(), "{name}");
        }
    }
}

/// What no node says anything about, wherever it ends.
#[test]
fn nodes_keep_quiet_about_errors_later_fragments_and_damaged_packets() {
    let error = icmp4(3, 3, 0, &[0; 28]);
    let unknown = icmp4(40, 0, 0, &[0; 28]);
    let mut later = udp(SOURCE, "10.4.0.10", 2, 53, &[0; 32]);
    later[6..8].copy_from_slice(&185u16.to_be_bytes());
    later[10..12].fill(0);
    let check = checksum::checksum(&later[..20]);
    later[10..12].copy_from_slice(&check.to_be_bytes());
    let mut damaged = udp(SOURCE, "10.2.0.1", 9, 53, b"damaged");
    damaged[30] ^= 1;
    let error6 = icmp6(SOURCE6, "2001:db8:4::10", 3, 0, 0, &[0; 48]);
    let mut ping = icmp4(8, 0, 1, b"damaged");
    ping[9] ^= 1;
    let cases = [
        ("an error", packet(SOURCE, "10.4.0.10", 2, IpProtocol::ICMP, &error), Reason::TtlExceeded),
        (
            "an error for a node",
            packet(SOURCE, "10.2.0.1", 9, IpProtocol::ICMP, &error),
            Reason::ToNode,
        ),
        (
            "an unknown type",
            packet(SOURCE, "10.4.0.10", 2, IpProtocol::ICMP, &unknown),
            Reason::TtlExceeded,
        ),
        ("a later fragment", later, Reason::TtlExceeded),
        ("damaged UDP", damaged, Reason::ToNode),
        ("a damaged ping", packet(SOURCE, "10.2.0.1", 9, IpProtocol::ICMP, &ping), Reason::ToNode),
        (
            "an ICMPv6 error",
            packet(SOURCE6, "2001:db8:4::10", 2, IpProtocol::ICMPV6, &error6),
            Reason::TtlExceeded,
        ),
        ("a broadcast", udp(SOURCE, "10.4.255.255", 9, 53, b"x"), Reason::Address),
    ];
    for (name, probe, reason) in cases {
        let mut table = row(5, "delay=10ms");
        table.send(PortId(0), &probe);
        assert_eq!(table.drain(), [], "{name}");
        assert_eq!(table.engine.ledger()[reason], 1, "{name}: {:?}", table.engine.ledger());
    }
}

/// Segments to a node's closed ports: sequence, acknowledgement and flags of the reset.
#[test]
fn closed_ports_reset_as_rfc_9293_says() {
    const FIN: u8 = 1;
    const SYN: u8 = 2;
    const RST: u8 = 4;
    const ACK: u8 = 16;
    let cases = [
        ((SYN, 1000, 0, 0), Some((RST | ACK, 0, 1001))),
        ((SYN | FIN, 1000, 0, 10), Some((RST | ACK, 0, 1012))),
        ((ACK, 1000, 77, 10), Some((RST, 77, 0))),
        ((0, u32::MAX, 0, 10), Some((RST | ACK, 0, 9))),
        ((RST, 1000, 0, 0), None),
        ((RST | ACK, 1000, 5, 0), None),
    ];
    for (source, node) in [(SOURCE, "10.2.0.1"), (SOURCE6, "2001:db8:2::1")] {
        for ((flags, sequence, acknowledged, bytes), right) in cases {
            let mut table = row(5, "delay=10ms");
            let probe = tcp(source, node, (40_000, 80), flags, [sequence, acknowledged], bytes);
            table.send(PortId(0), &probe);
            let left = table.drain();
            assert_eq!(left.len(), usize::from(right.is_some()), "flags {flags:#x}");
            let (Some(left), Some((flags, sequence, acknowledged))) = (left.first(), right) else {
                continue;
            };
            // Two hops back.
            let mut reset = tcp(node, source, (80, 40_000), flags, [sequence, acknowledged], 0);
            let four = reset[0] >> 4 == 4;
            if four {
                reset[4..8].copy_from_slice(&[0, 0, 0x40, 0]); // Identification 0, don't fragment.
            }
            let ttl = if four { 8 } else { 7 };
            reset[ttl] = 62;
            if four {
                reset[10..12].fill(0);
                let check = checksum::checksum(&reset[..20]);
                reset[10..12].copy_from_slice(&check.to_be_bytes());
            }
            // The window of a reset is 0.
            assert_eq!(left.ip(), reset, "flags {flags:#x}");
        }
    }
}

/// 2,000 bytes that are too large to quote.
#[test]
fn errors_have_at_most_576_and_1280_bytes() {
    for (source, to, most) in [(SOURCE, "10.4.0.10", 576), (SOURCE6, "2001:db8:4::10", 1280)] {
        let mut table = row(5, "delay=10ms mtu=9000");
        table.send(PortId(0), &udp(source, to, 2, 53, &[5; 1972]));
        let left = table.drain();
        assert_eq!(left[0].ip().len(), most);
        read(&left[0]);
    }
}

#[test]
fn errors_are_limited_by_destination_and_what_finds_the_mtu_is_not() {
    let mut table = row(5, "delay=10ms");
    for _ in 0..100 {
        table.send(PortId(0), &udp(SOURCE, "10.4.0.10", 2, 53, b"x"));
    }
    assert_eq!(table.drain().len(), 6);
    let ledger = table.engine.ledger();
    assert_eq!((ledger[Reason::TtlExceeded], ledger[Made::Error]), (100, 6));

    let mut table = row(5, "delay=10ms mtu=100");
    for _ in 0..20 {
        let mut probe = udp(SOURCE, "10.4.0.10", 9, 53, &[0; 100]);
        probe[6] = 0x40;
        probe[10..12].fill(0);
        let check = checksum::checksum(&probe[..20]);
        probe[10..12].copy_from_slice(&check.to_be_bytes());
        table.send(PortId(0), &probe);
    }
    let left = table.drain();
    assert_eq!(left.len(), 20);
    assert_eq!(read(&left[0]).2..=read(&left[0]).3, 3..=4);
    assert_eq!(read(&left[0]).4, 100, "the next MTU");
}

#[test]
fn a_prohibited_network_is_said_to_be_so_by_the_node_that_prohibits_it() {
    let mut table = row(5, "delay=10ms");
    let node = crate::NodeId(2);
    let prefix = "10.4.0.0/16".parse().expect("a prefix");
    let change = Change::Prohibit { node, prefix, prohibited: true };
    table.engine.apply(Nanos::ZERO, change).expect("a node");
    table.send(PortId(0), &udp(SOURCE, "10.4.0.10", 9, 53, b"x"));
    let left = table.drain();
    let (source, _, kind, code, ..) = read(&left[0]);
    assert_eq!((source.as_str(), kind, code), ("172.16.2.1", 3, 13));
    let change = Change::Prohibit { node, prefix, prohibited: false };
    table.engine.apply(Nanos(table.now), change).expect("a node");
    table.send(PortId(0), &udp(SOURCE, "10.4.0.10", 9, 53, b"x"));
    assert_eq!(table.drain()[0].port, PortId(1));
}

/// The host's own node prohibits what no node has: it says so, not that it has no route.
#[test]
fn a_network_without_a_route_can_be_prohibited() {
    let mut table = row(2, "delay=10ms");
    for (prohibited, right) in [(true, (3, 13)), (false, (3, 0))] {
        let prefix = "203.0.113.0/24".parse().expect("a prefix");
        let change = Change::Prohibit { node: crate::NodeId(0), prefix, prohibited };
        table.engine.apply(Nanos(table.now), change).expect("a node");
        table.send(PortId(0), &udp(SOURCE, "203.0.113.7", 9, 53, b"x"));
        let left = table.drain();
        let (_, _, kind, code, ..) = read(&left[0]);
        assert_eq!((kind, code), right);
    }
}

/// A frame that was longer than its buffer had no buffer, whatever can be read of it.
#[test]
fn a_frame_that_was_cut_ends_for_want_of_a_buffer() {
    let mut table = row(2, "delay=10ms");
    let pool = table.engine.pool();
    let mut frame = pool.take().expect("a frame");
    pool.filled(&mut frame, 1 << 20);
    table.engine.ingress(Nanos::ZERO, PortId(0), frame);
    assert_eq!(table.drain(), []);
    assert_eq!(table.engine.ledger()[Reason::NoBuffer], 1);
}

/// Neighbour solicitations of the host, and whether its node answers.
#[test]
fn the_node_answers_neighbour_solicitations_for_every_address_but_the_hosts_own() {
    let cases = [
        (SOURCE6, "2001:db8::1", true),
        (SOURCE6, "2001:db8::99", true),
        ("fe80::9", "fe80::ff:fe00:0", true), // The node's own, of its MAC address 02:00:00:00:00:00.
        ("fe80::9", "fe80::1", false),
        (SOURCE6, SOURCE6, false),
        ("::", SOURCE6, false), // Is it in use?
        ("::", "2001:db8::99", false),
    ];
    for (source, target, answered) in cases {
        let target: std::net::Ipv6Addr = target.parse().expect("an address");
        let source: std::net::Ipv6Addr = source.parse().expect("an address");
        let group = "ff02::1:ff00:1".parse().expect("an address");
        let ask = icmpv6::Repr::NeighbourSolicitation {
            target,
            source_mac: Some(Table::host_mac(0)).filter(|_| !source.is_unspecified()),
        };
        let mut bytes = vec![0; ask.len()];
        ask.emit(&mut bytes, source, group).expect("room");
        let probe = packet(&source.to_string(), "ff02::1:ff00:1", 255, IpProtocol::ICMPV6, &bytes);
        let mut table = row(2, "delay=10ms");
        let to = Mac([0x33, 0x33, 0xff, 0, 0, 1]);
        let frame = super::table::frame(to, Table::host_mac(0), wire::EtherType::IPV6, &probe);
        table.send_frame(PortId(0), &frame);
        let left = table.drain();
        assert_eq!(left.len(), usize::from(answered), "{source} asks for {target}");
        let Some(answer) = left.first() else { continue };
        let ip = ipv6::Packet::new(answer.ip()).expect("IPv6");
        assert_eq!((ip.source(), ip.destination(), ip.hop_limit()), (target, source, 255));
        let message = icmpv6::Packet::new(ip.payload()).expect("ICMPv6");
        let Ok(icmpv6::Repr::NeighbourAdvertisement { target: of, target_mac, solicited, .. }) =
            icmpv6::Repr::parse(&message, target, source)
        else {
            panic!("no advertisement");
        };
        assert_eq!((of, target_mac, solicited), (target, Some(Table::node_mac(0)), true));
    }
}
