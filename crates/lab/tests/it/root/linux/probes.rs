//! The packets that both networks get.

use std::net::IpAddr;

use wire::checksum::{Sum, checksum};

/// A packet of the first host.
pub(crate) struct Probe {
    pub(crate) name: String,
    pub(crate) packet: Vec<u8>,
}

const UDP: u8 = 17;
const TCP: u8 = 6;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;

/// What a probe's header says, where it is not what most say.
#[derive(Clone, Copy)]
struct Header {
    ttl: u8,
    class: u8,
    /// Flags and offset of IPv4's fragments.
    fragments: u16,
}

const PLAIN: Header = Header { ttl: 64, class: 0, fragments: 0 };
const DONT_FRAGMENT: u16 = 0x4000;

fn octets(address: &str) -> Vec<u8> {
    match address.parse().expect("an address") {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn source(to: &str) -> &'static str {
    if to.contains(':') { "2001:db8::10" } else { "10.0.0.10" }
}

fn ip(to: &str, protocol: u8, header: Header, payload: &[u8]) -> Vec<u8> {
    let (from, to) = (octets(source(to)), octets(to));
    if to.len() == 16 {
        let length = (payload.len() as u16).to_be_bytes();
        let class = [0x60 | header.class >> 4, header.class << 4, 0, 0];
        return [&class, &length[..], &[protocol, header.ttl], &from, &to, payload].concat();
    }
    let length = (20 + payload.len() as u16).to_be_bytes();
    let [high, low] = header.fragments.to_be_bytes();
    let mut packet = [
        &[0x45, header.class, length[0], length[1], 0x12, 0x34, high, low],
        &[header.ttl, protocol, 0, 0][..],
        &from,
        &to,
        payload,
    ]
    .concat();
    let check = checksum(&packet[..20]).to_be_bytes();
    packet[10..12].copy_from_slice(&check);
    packet
}

fn summed(to: &str, protocol: u8, mut payload: Vec<u8>, at: usize) -> Vec<u8> {
    let mut sum = Sum::default().bytes(&payload);
    if protocol != ICMP {
        sum = sum.bytes(&octets(source(to))).bytes(&octets(to));
        sum = sum.word(protocol.into()).word(payload.len() as u16);
    }
    payload[at..at + 2].copy_from_slice(&sum.finish().to_be_bytes());
    payload
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| at as u8).collect()
}

fn udp(to: &str, header: Header, count: usize) -> Vec<u8> {
    let length = 8 + count as u16;
    let words = [40_000, 33_434, length, 0].map(u16::to_be_bytes);
    let datagram = [words.as_flattened(), &bytes(count)].concat();
    ip(to, UDP, header, &summed(to, UDP, datagram, 6))
}

fn tcp(to: &str, header: Header, flags: u8, options: &[u8], count: usize) -> Vec<u8> {
    let offset = (5 + options.len() as u8 / 4) << 4;
    let fixed = [0x9c, 0x40, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, offset, flags, 0xfa, 0xf0, 0, 0, 0, 0];
    let segment = [&fixed, options, &bytes(count)].concat();
    ip(to, TCP, header, &summed(to, TCP, segment, 16))
}

fn icmp(to: &str, header: Header, kind: u8, code: u8, count: usize) -> Vec<u8> {
    let protocol = if to.contains(':') { ICMP6 } else { ICMP };
    let message = [&[kind, code, 0, 0, 0x43, 0x21, 0, 7][..], &bytes(count)].concat();
    ip(to, protocol, header, &summed(to, protocol, message, 2))
}

/// A packet to each end of the chain and back to wake up all neighbours: of both families.
pub(crate) fn crossing() -> Vec<Vec<u8>> {
    let ping = |to: &str, kind| icmp(to, PLAIN, kind, 0, 8);
    vec![ping("10.4.0.1", 8), ping("2001:db8:4::1", 128)]
}

/// Packets whose TTL the second router uses up, of both families.
pub(crate) fn ending_at_the_second() -> [Vec<u8>; 2] {
    ["10.4.0.10", "2001:db8:4::10"].map(|to| udp(to, Header { ttl: 2, ..PLAIN }, 8))
}

/// All probes.
pub(crate) fn probes() -> Vec<Probe> {
    let mut probes = Vec::new();
    let mut add = |name: String, packet: Vec<u8>| probes.push(Probe { name, packet });
    let hosts = ["10.4.0.10", "2001:db8:4::10"];
    let nodes = ["10.2.0.1", "2001:db8:2::1", "10.0.0.1", "2001:db8::1"];
    let echo = |to: &str| if to.contains(':') { 128 } else { 8 };
    for to in hosts {
        for ttl in [1, 2, 3, 4, 5, 6, 64, 255] {
            let header = Header { ttl, ..PLAIN };
            add(format!("UDP to {to}, TTL {ttl}"), udp(to, header, 32));
            add(format!("TCP SYN to {to}, TTL {ttl}"), tcp(to, header, 2, &[2, 4, 5, 180], 0));
            add(format!("ping {to}, TTL {ttl}"), icmp(to, header, echo(to), 0, 56));
        }
        for class in [0x10, 0x03, 0xb8, 0xff, 0x1e] {
            let header = Header { ttl: 3, class, ..PLAIN };
            add(format!("class {class:#x} to {to}"), udp(to, header, 32));
        }
        for count in [0, 519, 520, 521, 1183, 1184, 1185, 1200] {
            let header = Header { ttl: 2, ..PLAIN };
            add(format!("{count} bytes to {to}, TTL 2"), udp(to, header, count));
        }
        for count in [1200, 1232, 1233, 1252, 1253, 1400, 1452, 1472] {
            let may = if to.contains(':') { count.min(1452) } else { count };
            add(format!("{may} bytes to {to}"), udp(to, PLAIN, may));
            let whole = Header { fragments: DONT_FRAGMENT, ..PLAIN };
            add(format!("{may} bytes to {to} that stay whole"), udp(to, whole, may));
            let last = Header { ttl: 3, ..whole };
            add(format!("{may} bytes to {to} that stay whole, TTL 3"), udp(to, last, may));
        }
    }
    let four = hosts[0];
    for (fragments, what) in [(0x2000, "first"), (0x2010, "middle"), (0x0020, "last")] {
        let header = Header { fragments, ..PLAIN };
        add(format!("the {what} fragment"), udp(four, header, 1400));
        let header = Header { ttl: 2, fragments, ..PLAIN };
        add(format!("the {what} fragment, TTL 2"), udp(four, header, 64));
    }
    for (kind, name) in
        [(0, "echo reply"), (3, "error"), (11, "error"), (13, "timestamp"), (40, "unknown")]
    {
        add(format!("ICMP {name}, TTL 2"), icmp(four, Header { ttl: 2, ..PLAIN }, kind, 0, 32));
    }
    for kind in [1, 3, 100, 129, 200] {
        let header = Header { ttl: 2, ..PLAIN };
        add(format!("ICMPv6 type {kind}, TTL 2"), icmp(hosts[1], header, kind, 0, 32));
    }
    for to in nodes {
        for class in [0, 0x10, 0x03, 0xb8] {
            let header = Header { class, ..PLAIN };
            add(format!("ping {to}, class {class:#x}"), icmp(to, header, echo(to), 0, 56));
            add(format!("UDP to {to}, class {class:#x}"), udp(to, header, 32));
            add(format!("SYN to {to}, class {class:#x}"), tcp(to, header, 2, &[2, 4, 5, 180], 0));
        }
        add(format!("ping {to}, code 3"), icmp(to, PLAIN, echo(to), 3, 56));
        add(format!("ping {to}, TTL 1"), icmp(to, Header { ttl: 3, ..PLAIN }, echo(to), 0, 0));
        add(format!("a long ping to {to}"), icmp(to, PLAIN, echo(to), 0, 1452 - 40));
        let whole = Header { fragments: DONT_FRAGMENT, ..PLAIN };
        add(format!("ping {to} that stays whole"), icmp(to, whole, echo(to), 0, 56));
        for flags in [0x10, 0x18, 0x11, 0x12, 0x01, 0x03, 0x04, 0x14, 0x00, 0x29] {
            add(format!("TCP {flags:#x} to {to}"), tcp(to, PLAIN, flags, &[], 10));
        }
        add(format!("protocol 253 to {to}"), ip(to, 253, PLAIN, &bytes(32)));
        let mut damaged = udp(to, PLAIN, 32);
        *damaged.last_mut().expect("a payload") ^= 1;
        add(format!("damaged UDP to {to}"), damaged);
        let mut damaged = tcp(to, PLAIN, 2, &[], 4);
        *damaged.last_mut().expect("a payload") ^= 1;
        add(format!("damaged TCP to {to}"), damaged);
        let mut damaged = icmp(to, PLAIN, echo(to), 0, 4);
        *damaged.last_mut().expect("a payload") ^= 1;
        add(format!("a damaged ping to {to}"), damaged);
    }
    for (to, what) in [
        ("10.3.0.99", "nobody"),
        ("2001:db8:3::99", "nobody"),
        ("198.51.100.1", "no route"),
        ("2001:db9::1", "no route"),
        ("10.4.99.1", "prohibited"),
        ("2001:db8:4:99::1", "prohibited"),
        ("10.4.255.255", "a broadcast"),
        ("224.0.1.1", "a group"),
        ("127.0.0.1", "loopback"),
    ] {
        add(format!("UDP to {what}, {to}"), udp(to, PLAIN, 32));
        // Where there is no route, Linux sends IPv4 no second error soon after.
        if to != "198.51.100.1" {
            add(format!("SYN to {what}, {to}"), tcp(to, PLAIN, 2, &[], 0));
        }
    }
    probes
}
