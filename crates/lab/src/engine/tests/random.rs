//! Random networks and traffic: hop by hop against a naive reference, and the ledger under everything.

use std::net::Ipv4Addr;

use proptest::{collection::vec, prelude::*, sample::select};
use wire::{IpProtocol, ipv4};

use super::table::{MS, Table, packet, tcp, udp};
use crate::{
    LinkId, Nanos, NodeId, PortId,
    engine::answer::limit::IcmpLimits,
    engine::{Change, EngineOptions},
    network::{Builder, Network, Relation},
};

/// A link between two nodes: its ends, weight and settings.
type Edge = (u32, u32, u32, String);

/// A network where every node has 10.n.0.0/16 and 2001:db8:n::/48, and a host there.
fn table(nodes: u32, edges: &[Edge], options: EngineOptions) -> Table {
    let mut builder = Builder::new();
    for n in 0..nodes {
        let node = builder.node(&format!("n{n}")).expect("a node");
        let prefix = format!("10.{n}.0.0/16").parse().expect("a prefix");
        builder.prefix(node, prefix).expect("a prefix of its own");
        let prefix = format!("2001:db8:{n}::/48").parse().expect("a prefix");
        builder.prefix(node, prefix).expect("a prefix of its own");
        for address in [format!("10.{n}.0.1"), format!("2001:db8:{n}::1")] {
            builder.node_address(node, address.parse().expect("an address")).expect("a node");
        }
    }
    for (number, (a, b, weight, settings)) in edges.iter().enumerate() {
        let settings = settings.parse().expect("settings");
        let drafts = builder.link(NodeId(*a), NodeId(*b), &settings, *weight, Relation::None);
        for (end, draft) in drafts.expect("a link").into_iter().enumerate() {
            let address = Ipv4Addr::new(172, 16, number as u8, end as u8);
            builder.address(draft, address.into()).expect("a link");
        }
    }
    let mut table = Table::new(builder.finish().expect("a network"), options);
    for node in 0..nodes {
        table.host(node, &[&format!("10.{node}.0.10/16"), &format!("2001:db8:{node}::10/48")]);
    }
    table
}

/// A tree of the nodes and some links more.
fn edges(settings: &'static [&'static str]) -> impl Strategy<Value = (u32, Vec<Edge>)> {
    (2u32..9).prop_flat_map(move |nodes| {
        let of = || (1u32..4, select(settings));
        let tree: Vec<_> =
            (1..nodes).map(|n| (0..n, of()).prop_map(move |(to, rest)| (n, to, rest))).collect();
        let more = vec((0..nodes, 0..nodes, of()), 0..6);
        (tree, more).prop_map(move |(tree, more)| {
            let all = tree.into_iter().chain(more).filter(|(a, b, _)| a != b);
            let edge =
                |(a, b, (weight, words)): (u32, u32, (u32, &str))| (a, b, weight, words.to_owned());
            (nodes, all.map(edge).collect())
        })
    })
}

/// Where a packet is forwarded at a node, by looking at all links of the network.
fn next(network: &Network, nodes: u32, at: u32, to: u32) -> LinkId {
    let links = || (0..network.links()).map(LinkId);
    let mut far = vec![u32::MAX / 2; nodes as usize];
    far[to as usize] = 0;
    for _ in 0..nodes {
        for link in links() {
            let [from, to] = [network.from(link), network.to(link)].map(|node| node.0 as usize);
            far[from] = far[from].min(far[to] + network.weight(link));
        }
    }
    let best = |link: &LinkId| {
        let rest = far[network.to(*link).0 as usize] + network.weight(*link);
        network.from(*link).0 == at && rest == far[at as usize]
    };
    links().find(best).expect("a tree is connected")
}

/// The outcome of a packet: where it ends, when, and with what TTL or which ICMP error from whom.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Host { node: u32, at: u64, ttl: u8 },
    Error { at: u64, kind: u8, code: u8, source: Ipv4Addr },
}

/// A packet hop by hop: the node and time at which it ends, its TTL there, the error and the address
/// of the interface by which it came.
fn walk(
    network: &Network,
    nodes: u32,
    from: u32,
    to: u32,
    start: u64,
    ttl: u8,
    length: u32,
) -> End {
    let (mut at, mut now, mut left) = (from, start, ttl);
    let mut source = Ipv4Addr::new(10, from as u8, 0, 1);
    let back = |at: u32, now: u64, kind, code, source| {
        let (mut at, mut now) = (at, now);
        while at != from {
            let link = next(network, nodes, at, from);
            now += network.settings(link).delay.0;
            at = network.to(link).0;
        }
        End::Error { at: now, kind, code, source }
    };
    loop {
        if left <= 1 {
            return back(at, now, 11, 0, source);
        }
        if at == to {
            return End::Host { node: at, at: now, ttl: left - 1 };
        }
        let link = next(network, nodes, at, to);
        if length > network.settings(link).mtu {
            return back(at, now, 3, 4, source);
        }
        let back_link = network.reverse(link).expect("a reverse direction");
        source = network.interface4(back_link).expect("an address");
        (at, now, left) = (network.to(link).0, now + network.settings(link).delay.0, left - 1);
    }
}

const DELAYS: &[&str] =
    &["delay=1ms", "delay=7ms", "delay=13ms", "delay=2ms mtu=700", "delay=0s", "delay=3ms mtu=900"];

const EFFECTS: &[&str] = &[
    "delay=1ms",
    "delay=5ms mtu=600",
    "delay=1ms loss=20%",
    "delay=1ms duplicate=20%",
    "delay=3ms corrupt=30%",
    "delay=1ms rate=1Mbit queue=5p",
    "delay=4ms jitter=3ms",
    "up=false",
];

/// What may happen.
#[derive(Clone, Debug)]
enum Event {
    Send {
        from: u16,
        to: u32,
        host: u8,
        ttl: u8,
        bytes: usize,
        kind: u8,
    },
    Wait(u64),
    Link(u32, bool),
    Node(u32, bool),
    Garbage(u16, Vec<u8>),
    /// A good packet of one of some kinds with another virtio header and other bytes here and there.
    Spoilt {
        from: u16,
        kind: u8,
        virtio: [u8; 12],
        bytes: Vec<(usize, u8)>,
    },
}

fn event() -> impl Strategy<Value = Event> {
    let send = (0u16..9, 0u32..10, select(&[1u8, 10, 99][..]), 1u8..12, 0usize..1400, 0u8..5);
    let small = select(&[0u8, 0, 1, 2, 3, 4, 5, 34, 54, 100][..]);
    let virtio = vec(small, 12).prop_map(|bytes| bytes.try_into().expect("twelve"));
    let bytes = vec((0usize..120, any::<u8>()), 0..4);
    let spoilt = (0u16..9, 0u8..6, virtio, bytes)
        .prop_map(|(from, kind, virtio, bytes)| Event::Spoilt { from, kind, virtio, bytes });
    prop_oneof![
        8 => send.prop_map(|(from, to, host, ttl, bytes, kind)| {
            Event::Send { from, to, host, ttl, bytes, kind }
        }),
        4 => (0..10 * MS).prop_map(Event::Wait),
        1 => (0u32..20, any::<bool>()).prop_map(|(link, up)| Event::Link(link, up)),
        1 => (0u32..9, any::<bool>()).prop_map(|(node, up)| Event::Node(node, up)),
        1 => (0u16..9, vec(any::<u8>(), 0..100)).prop_map(|(port, bytes)| {
            Event::Garbage(port, bytes)
        }),
        4 => spoilt,
    ]
}

/// Packets to be spoilt: to hosts and to nodes.
fn spoilt_packet(kind: u8) -> Vec<u8> {
    let (from, from6) = ("10.0.0.10", "2001:db8::10");
    match kind {
        0 => udp(from, "10.1.0.10", 5, 9, &[0; 900]),
        1 => tcp(from, "10.1.0.1", (1, 2), 2, [3, 4], 700),
        2 => {
            let ping = super::table::icmp4(8, 0, 1, &[0; 800]);
            packet(from, "10.1.0.1", 9, IpProtocol::ICMP, &ping)
        }
        3 => tcp(from, "10.1.0.10", (1, 2), 24, [3, 4], 1200),
        4 => udp(from6, "2001:db8:1::10", 9, 9, &[0; 600]),
        _ => {
            let ping = super::table::icmp6(from6, "2001:db8:1::1", 128, 0, 1, &[0; 100]);
            // Behind a header of a fragment.
            let ping = [&[58, 0, 0, 1, 0, 0, 0, 7][..], &ping].concat();
            packet(from6, "2001:db8:1::1", 9, IpProtocol::FRAGMENT, &ping)
        }
    }
}

/// A super-packet of TCP in segments of 100 bytes.
fn send_super(table: &mut Table, port: PortId, from: &str, to: &str, bytes: usize) {
    let packet = tcp(from, to, (1, 2), 0x10, [0, 0], bytes);
    table.send_with(port, &[0, 1, 54, 0, 100, 0, 34, 0, 16, 0, 0, 0], &packet);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn packets_go_as_a_naive_hop_by_hop_reference_says(
        (nodes, edges) in edges(DELAYS),
        sent in vec((0u32..9, 0u32..9, 1u8..12, select(&[100usize, 800, 1400][..])), 1..20),
    ) {
        let options = EngineOptions { icmp: IcmpLimits::OFF, ..EngineOptions::default() };
        let mut table = table(nodes, &edges, options);
        for (from, to, ttl, length) in sent {
            let (from, to) = (from % nodes, to % nodes);
            let [source, host] = [from, to].map(|node| format!("10.{node}.0.10"));
            let mut probe = packet(&source, &host, ttl, IpProtocol::UDP, &vec![0; length - 20]);
            probe[6] = 0x40;
            let check = wire::checksum::update(u16::from_be_bytes([probe[10], probe[11]]), 0, 0x4000);
            probe[10..12].copy_from_slice(&check.to_be_bytes());
            let start = table.now;
            table.send(PortId(from as u16), &probe);
            let left = table.drain();
            prop_assert_eq!(left.len(), 1);
            let ip = ipv4::Packet::new(left[0].ip()).expect("IPv4");
            let at = left[0].at;
            let seen = if ip.protocol() == IpProtocol::ICMP {
                prop_assert_eq!(u32::from(left[0].port.0), from);
                let payload = ip.payload();
                End::Error { at, kind: payload[0], code: payload[1], source: ip.source() }
            } else {
                End::Host { node: left[0].port.0.into(), at, ttl: ip.ttl() }
            };
            let right =
                walk(table.engine.network(), nodes, from, to, start, ttl, length as u32);
            prop_assert_eq!(seen, right, "{} to {}, TTL {}, {} bytes", from, to, ttl, length);
        }
    }

    #[test]
    fn the_ledger_is_exact_whatever_happens(
        (nodes, edges) in edges(EFFECTS),
        events in vec(event(), 1..120),
        gso in any::<bool>(),
        paths in 1usize..20,
        seed in any::<u64>(),
    ) {
        let convergence = Nanos(20 * MS);
        let options =
            EngineOptions { gso, paths, seed, convergence, ..EngineOptions::default() };
        let mut table = table(nodes, &edges, options);
        table.engine.set_plain(PortId(0));
        for event in events {
            match event {
                Event::Send { from, to, host, ttl, bytes, kind } => {
                    let from = PortId(from % nodes as u16);
                    let source = format!("10.{}.0.10", from.0);
                    let to = format!("10.{to}.0.{host}");
                    match kind {
                        0 => send_super(&mut table, from, &source, &to, bytes),
                        1 => table.send(from, &tcp(&source, &to, (1, 2), 2, [0, 0], bytes)),
                        2 => {
                            let ping = super::table::icmp4(8, 0, 1, &vec![0; bytes]);
                            table.send(from, &packet(&source, &to, ttl, IpProtocol::ICMP, &ping));
                        }
                        _ => table.send(from, &udp(&source, &to, ttl, 9, &vec![0; bytes])),
                    }
                }
                Event::Wait(time) => {
                    let end = table.now + time;
                    table.until(end);
                }
                Event::Link(link, up) => {
                    let link = LinkId(link % table.engine.network().links());
                    let settings = format!("up={up}").parse().expect("settings");
                    let change = Change::Link { link, both_ways: up, settings };
                    table.engine.apply(Nanos(table.now), change).expect("a link");
                }
                Event::Node(node, up) => {
                    let change = Change::Node { node: NodeId(node % nodes), up };
                    table.engine.apply(Nanos(table.now), change).expect("a node");
                }
                Event::Garbage(port, bytes) => table.send_frame(PortId(port), &bytes),
                Event::Spoilt { from, kind, virtio, bytes } => {
                    let from = PortId(from % nodes as u16);
                    let mut packet = spoilt_packet(kind);
                    for (at, byte) in bytes {
                        let length = packet.len();
                        packet[at % length] ^= byte;
                    }
                    if packet[0] >> 4 == 4 {
                        // Right again, so that more than the checksum is inspected.
                        packet[10..12].fill(0);
                        let header = usize::from(packet[0] & 15).max(5) * 4;
                        let header = header.min(packet.len());
                        let check = wire::checksum::checksum(&packet[..header]);
                        packet[10..12].copy_from_slice(&check.to_be_bytes());
                    }
                    table.send_with(from, &virtio, &packet);
                }
            }
            let under_way = table.engine.in_flight.iter().flatten().count();
            let there = under_way + table.engine.ready.len();
            prop_assert_eq!(table.engine.ledger().in_flight(), there as u64);
        }
        table.drain();
        prop_assert_eq!(table.engine.in_flight.iter().flatten().count(), 0);
    }
}
