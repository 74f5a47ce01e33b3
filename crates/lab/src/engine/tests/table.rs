//! A network on the table: nodes in a row with a host at each end, and packets by hand.

use std::{net::IpAddr, sync::Arc};

use wire::{
    EtherType, IpProtocol, Mac,
    checksum::{self, Sum},
    ethernet, ipv4, ipv6,
};

use crate::{
    Nanos, NodeId, PortId,
    engine::{Engine, EngineOptions},
    network::{Builder, Network, Relation},
    pool::{ETHERNET, IP, VIRTIO},
};

/// A millisecond.
pub(super) const MS: u64 = 1_000_000;

/// A frame that left, as a host reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Left {
    /// When, in nanoseconds.
    pub at: u64,
    pub port: PortId,
    /// Virtio header, Ethernet and packet.
    pub bytes: Vec<u8>,
}

impl Left {
    /// The packet.
    pub(super) fn ip(&self) -> &[u8] {
        &self.bytes[IP..]
    }
}

/// An engine with its clock.
pub(super) struct Table {
    pub engine: Engine,
    pub now: u64,
}

impl Table {
    pub(super) fn new(network: Network, options: EngineOptions) -> Self {
        Self::of(Arc::new(network), options)
    }

    pub(super) fn of(network: Arc<Network>, options: EngineOptions) -> Self {
        let small = EngineOptions { frames: 4096, spills: 16, ..options };
        Self { engine: Engine::new(network, small), now: 0 }
    }

    /// The MAC address of a port's host.
    pub(super) fn host_mac(port: u16) -> Mac {
        Mac([2, 0, 0, 0, 1, port as u8])
    }

    /// The node's MAC address on a port.
    pub(super) fn node_mac(port: u16) -> Mac {
        Mac([2, 0, 0, 0, 0, port as u8])
    }

    /// Joins a host, whose MAC address is known.
    pub(super) fn host(&mut self, node: u32, addresses: &[&str]) -> PortId {
        let number = self.engine.ports.len() as u16;
        let addresses = addresses.iter().map(|net| net.parse().expect("a prefix")).collect();
        let port = self.engine.add_port(NodeId(node), Self::node_mac(number), addresses);
        self.engine.learn(port, Self::host_mac(number));
        port
    }

    /// A frame from a host.
    pub(super) fn send_frame(&mut self, port: PortId, frame: &[u8]) {
        self.send_bytes(port, &[&[0; VIRTIO], frame].concat());
    }

    /// A packet from a host to its node, with a virtio header.
    pub(super) fn send_with(&mut self, port: PortId, virtio: &[u8; VIRTIO], packet: &[u8]) {
        let kind = if packet[0] >> 4 == 4 { EtherType::IPV4 } else { EtherType::IPV6 };
        let frame = frame(Self::node_mac(port.0), Self::host_mac(port.0), kind, packet);
        self.send_bytes(port, &[&virtio[..], &frame].concat());
    }

    /// A frame from a host, with its virtio header.
    pub(super) fn send_bytes(&mut self, port: PortId, whole: &[u8]) {
        let pool = self.engine.pool();
        let buffer = pool.take_long(whole.len()).expect("a frame");
        let mut rest = whole;
        for piece in pool.pieces_mut(&buffer) {
            let (now, later) = rest.split_at(piece.len());
            piece.copy_from_slice(now);
            rest = later;
        }
        self.engine.ingress(Nanos(self.now), port, buffer);
    }

    /// A packet from a host to its node.
    pub(super) fn send(&mut self, port: PortId, packet: &[u8]) {
        self.send_with(port, &[0; VIRTIO], packet);
    }

    /// Everything that leaves up to a time, each at the time at which it was due.
    pub(super) fn until(&mut self, end: u64) -> Vec<Left> {
        let mut left = Vec::new();
        let mut out = Vec::new();
        while let Some(due) = self.engine.due().filter(|due| due.0 <= end) {
            self.now = self.now.max(due.0);
            self.engine.advance(Nanos(self.now), &mut out);
            for (port, frame) in out.drain(..) {
                let pool = self.engine.pool();
                let bytes = pool.pieces(&frame).concat();
                pool.give_back(frame);
                left.push(Left { at: self.now, port, bytes });
            }
        }
        self.now = self.now.max(end);
        left
    }

    /// Everything that leaves until nothing is inside, at which time no buffer may be missing.
    pub(super) fn drain(&mut self) -> Vec<Left> {
        let mut left = Vec::new();
        while let Some(due) = self.engine.due() {
            left.extend(self.until(due.0.max(self.now)));
        }
        assert_eq!(self.engine.ledger().in_flight(), 0, "{:?}", self.engine.ledger());
        assert_eq!(self.engine.pool.free(), self.engine.options.frames, "frames were lost");
        assert_eq!(self.engine.pool.free_spills(), self.engine.options.spills);
        left
    }
}

/// An Ethernet frame.
pub(super) fn frame(to: Mac, from: Mac, kind: EtherType, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; ETHERNET + payload.len()];
    let header =
        ethernet::Repr { destination: to, source: from, tags: Vec::new(), ether_type: kind };
    header.emit(&mut frame).expect("room");
    frame[ETHERNET..].copy_from_slice(payload);
    frame
}

/// An IP packet of either family.
pub(super) fn packet(
    source: &str,
    destination: &str,
    ttl: u8,
    protocol: IpProtocol,
    payload: &[u8],
) -> Vec<u8> {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    match (address(source), address(destination)) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut packet = vec![0; 20 + payload.len()];
            let header = ipv4::Repr {
                source,
                destination,
                protocol,
                ttl,
                traffic_class: 0,
                identification: 0x1234,
                dont_fragment: false,
                payload_len: payload.len(),
            };
            header.emit(&mut packet).expect("room");
            packet[20..].copy_from_slice(payload);
            packet
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut packet = vec![0; 40 + payload.len()];
            let header = ipv6::Repr {
                source,
                destination,
                next_header: protocol,
                hop_limit: ttl,
                traffic_class: 0,
                flow_label: 0,
                payload_len: payload.len(),
            };
            header.emit(&mut packet).expect("room");
            packet[40..].copy_from_slice(payload);
            packet
        }
        _ => panic!("addresses of two families"),
    }
}

/// Nodes in a row, n0 with 10.0.0.0/16 behind it, n1 with 10.1.0.0/16 and so on, and a host at each end:
/// 10.0.0.10, and .10 of the last network. Node n has the address 10.n.0.1, the interface from n to m
/// has 172.16.n.m, and the same for IPv6 in 2001:db8:n::/48. `settings` are those of all links.
pub(super) fn row(nodes: u32, settings: &str) -> Table {
    joined(nodes, &|_| settings.to_owned(), false, EngineOptions::default())
}

/// As [`row`], where the settings of the links between nodes n and n + 1 are those of n.
pub(super) fn row_of(nodes: u32, settings: impl Fn(u32) -> &'static str) -> Table {
    row_with(nodes, settings, EngineOptions::default())
}

/// As [`row_of`], with other options.
pub(super) fn row_with(
    nodes: u32,
    settings: impl Fn(u32) -> &'static str,
    options: EngineOptions,
) -> Table {
    joined(nodes, &|link| settings(link).to_owned(), false, options)
}

/// As [`row`], where the last node is joined to the first as well, and the second host is at node 1.
pub(super) fn ring(nodes: u32, settings: &str) -> Table {
    joined(nodes, &|_| settings.to_owned(), true, EngineOptions::default())
}

fn joined(
    nodes: u32,
    settings: &dyn Fn(u32) -> String,
    closed: bool,
    options: EngineOptions,
) -> Table {
    let mut builder = Builder::new();
    for n in 0..nodes {
        let node = builder.node(&format!("n{n}")).expect("a node");
        for prefix in [format!("10.{n}.0.0/16"), format!("2001:db8:{n}::/48")] {
            builder.prefix(node, prefix.parse().expect("a prefix")).expect("a prefix of its own");
        }
        for address in [format!("10.{n}.0.1"), format!("2001:db8:{n}::1")] {
            builder.node_address(node, address.parse().expect("an address")).expect("a node");
        }
    }
    let links = (1..nodes).map(|n| (n - 1, n)).chain(closed.then_some((nodes - 1, 0)));
    for (a, b) in links {
        let settings = settings(a).parse().expect("settings");
        let drafts =
            builder.link(NodeId(a), NodeId(b), &settings, 1, Relation::Peer).expect("a link");
        for (draft, [from, to]) in drafts.into_iter().zip([[a, b], [b, a]]) {
            for address in [format!("172.16.{from}.{to}"), format!("2001:db8:ffff:{from}::{to}")] {
                builder.address(draft, address.parse().expect("an address")).expect("a link");
            }
        }
    }
    let mut table = Table::new(builder.finish().expect("a network"), options);
    for node in [0, if closed { 1 } else { nodes - 1 }] {
        table.host(node, &[&format!("10.{node}.0.10/16"), &format!("2001:db8:{node}::10/48")]);
    }
    table
}

/// The sum of a pseudo header.
fn pseudo(source: &str, destination: &str, protocol: IpProtocol, length: usize) -> Sum {
    let octets = |text: &str| match text.parse::<IpAddr>().expect("an address") {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let sum = Sum::default().bytes(&octets(source)).bytes(&octets(destination));
    sum.word(protocol.0.into()).word(length as u16)
}

/// A UDP datagram from port 40,000.
pub(super) fn udp(from: &str, to: &str, ttl: u8, port: u16, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len();
    let words = [40_000, port, length as u16, 0].map(u16::to_be_bytes);
    let mut datagram = [words.as_flattened(), payload].concat();
    let sum = pseudo(from, to, IpProtocol::UDP, length).bytes(&datagram);
    datagram[6..8].copy_from_slice(&sum.finish().to_be_bytes());
    packet(from, to, ttl, IpProtocol::UDP, &datagram)
}

/// A TCP segment with so many bytes of payload, a TTL of 9 and no window.
pub(super) fn tcp(
    from: &str,
    to: &str,
    ports: (u16, u16),
    flags: u8,
    numbers: [u32; 2],
    bytes: usize,
) -> Vec<u8> {
    let mut segment = vec![0; 20 + bytes];
    segment[..2].copy_from_slice(&ports.0.to_be_bytes());
    segment[2..4].copy_from_slice(&ports.1.to_be_bytes());
    segment[4..8].copy_from_slice(&numbers[0].to_be_bytes());
    segment[8..12].copy_from_slice(&numbers[1].to_be_bytes());
    segment[12] = 5 << 4;
    segment[13] = flags;
    let sum = pseudo(from, to, IpProtocol::TCP, segment.len()).bytes(&segment);
    segment[16..18].copy_from_slice(&sum.finish().to_be_bytes());
    packet(from, to, 9, IpProtocol::TCP, &segment)
}

/// An ICMP message.
pub(super) fn icmp4(kind: u8, code: u8, rest: u32, payload: &[u8]) -> Vec<u8> {
    let mut message = [&[kind, code, 0, 0], &rest.to_be_bytes()[..], payload].concat();
    let check = checksum::checksum(&message);
    message[2..4].copy_from_slice(&check.to_be_bytes());
    message
}

/// An ICMPv6 message.
pub(super) fn icmp6(
    from: &str,
    to: &str,
    kind: u8,
    code: u8,
    rest: u32,
    payload: &[u8],
) -> Vec<u8> {
    let mut message = [&[kind, code, 0, 0], &rest.to_be_bytes()[..], payload].concat();
    let sum = pseudo(from, to, IpProtocol::ICMPV6, message.len()).bytes(&message);
    message[2..4].copy_from_slice(&sum.finish().to_be_bytes());
    message
}
