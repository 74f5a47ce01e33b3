//! Frames put together by hand: all links, fragments, cuts.

use super::{
    flows::Table,
    layers::{self, Layers, Link, Segment},
};
use crate::flow::{Side, Transport};
use ::capture::LinkType;
use std::net::IpAddr;
use wire::{IpProtocol, ipv4, ipv6, tcp, udp};

const A: &str = "192.0.2.1";
const B: &str = "198.51.100.2";

fn ends() -> (IpAddr, IpAddr) {
    (A.parse().unwrap(), B.parse().unwrap())
}

/// An IPv4 packet with a UDP datagram.
fn udp4(payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 20 + 8 + payload.len()];
    let (IpAddr::V4(source), IpAddr::V4(destination)) = ends() else { unreachable!() };
    let header = ipv4::Repr {
        source,
        destination,
        protocol: IpProtocol::UDP,
        ttl: 64,
        traffic_class: 0,
        identification: 7,
        dont_fragment: false,
        payload_len: 8 + payload.len(),
    };
    header.emit(&mut out).unwrap();
    let udp = udp::Repr { source_port: 1000, destination_port: 53 };
    udp.emit(ends(), payload, &mut out[20..]).unwrap();
    out
}

/// An IPv4 packet with a TCP segment.
fn tcp4(forward: bool, sequence: u32, flags: tcp::Flags, payload: &[u8]) -> Vec<u8> {
    let mut out = udp4(&vec![0; 12 + payload.len()]);
    out[9] = 6;
    let mut ports = (40_000, 80);
    if !forward {
        ports = (80, 40_000);
        let (a, b): ([u8; 4], [u8; 4]) =
            (out[12..16].try_into().unwrap(), out[16..20].try_into().unwrap());
        out[12..16].copy_from_slice(&b);
        out[16..20].copy_from_slice(&a);
    }
    let header = tcp::Repr {
        source_port: ports.0,
        destination_port: ports.1,
        sequence,
        flags,
        ..tcp::Repr::default()
    };
    header.emit(ends(), payload, &mut out[20..]).unwrap();
    out
}

fn segment(bytes: &[u8]) -> Segment<'_> {
    match layers::read(bytes) {
        Layers::Segment(segment) => segment,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_link_leads_to_the_same_segment() {
    let packet = udp4(b"hello");
    let with = |front: &[u8]| [front, &packet].concat();
    let mut cooked = vec![0; 16];
    cooked[14..].copy_from_slice(&[8, 0]);
    let mut cooked2 = vec![0; 20];
    cooked2[..2].copy_from_slice(&[8, 0]);
    for (link, frame) in [
        (1, with(&[&[0; 12][..], &[8, 0]].concat())),
        (1, with(&[&[0; 12][..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0]].concat())),
        (101, packet.clone()),
        (228, packet.clone()),
        (113, with(&cooked)),
        (276, with(&cooked2)),
        (0, with(&[2, 0, 0, 0])),
    ] {
        let link = Link::new(LinkType(link));
        let segment = segment(link.ip(&frame).unwrap_or_else(|| panic!("{link:?}")));
        assert_eq!((segment.payload, segment.length), (&b"hello"[..], 5));
        assert_eq!(segment.source.to_string(), format!("{A}:1000"));
        assert_eq!(segment.transport, Transport::Udp);
    }
    assert_eq!(Link::Ethernet.ip(&with(&[&[0; 12][..], &[8, 6]].concat())), None);
    assert_eq!(Link::new(LinkType(127)).ip(&packet), None);
}

#[test]
fn what_was_cut_is_known_and_padding_is_skipped() {
    let packet = udp4(b"hello world");
    let cut = segment(&packet[..packet.len() - 6]);
    assert_eq!((cut.payload, cut.length), (&b"hello"[..], 11));
    let padded = [&packet[..], &[0; 20]].concat();
    assert_eq!(segment(&padded).payload, b"hello world");
    for end in 0..28 {
        assert_eq!(layers::read(&packet[..end]), Layers::Damaged, "{end}");
    }
}

#[test]
fn later_fragments_go_with_the_first() {
    let mut first = udp4(&[1; 24]);
    first[6] = 0x20;
    let mut later = udp4(&[1; 24]);
    later[7] = 4;
    let mut table: Table<()> = Table::new(10);
    let mut ended = Vec::new();
    let Layers::Fragment(key) = layers::read(&later) else { panic!("no fragment") };
    assert!(!table.fragment(&key, 10, 0));
    table.assign(&segment(&first), 0, &mut ended);
    assert!(table.fragment(&key, 10, 0));
    let all = table.finish();
    assert_eq!((all[0].packets, all[0].bytes), (2, 34));
}

#[test]
fn extension_headers_of_ipv6_are_walked_over_and_its_fragments_found() {
    let ends = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    let packet = |fragment: [u8; 8]| {
        let mut out = vec![0; 40 + 8 + 8 + 8 + 3];
        let header = ipv6::Repr {
            source: ends.0,
            destination: ends.1,
            next_header: IpProtocol::HOP_BY_HOP,
            hop_limit: 64,
            traffic_class: 0,
            flow_label: 0,
            payload_len: 8 + 8 + 8 + 3,
        };
        header.emit(&mut out).unwrap();
        out[40] = 44;
        out[48..56].copy_from_slice(&fragment);
        let udp = udp::Repr { source_port: 1, destination_port: 2 };
        udp.emit((ends.0.into(), ends.1.into()), b"abc", &mut out[56..]).unwrap();
        out
    };
    let first = packet([17, 0, 0, 1, 0, 0, 0, 9]);
    let found = segment(&first);
    assert_eq!((found.payload, found.length), (&b"abc"[..], 3));
    let key = found.first_of.unwrap();
    assert_eq!(layers::read(&packet([17, 0, 0, 9, 0, 0, 0, 9])), Layers::Fragment(key));
    // An atomic fragment is whole (RFC 8200, section 4.5).
    assert_eq!(segment(&packet([17, 0, 0, 0, 0, 0, 0, 9])).first_of, None);
}

#[test]
fn who_called_is_known_and_sockets_are_used_again() {
    use tcp::Flags;
    let mut table: Table<()> = Table::new(10);
    let mut ended = Vec::new();
    let answer = tcp4(false, 9, Flags::SYN.with(Flags::ACK), b"");
    let (open, packet) = table.assign(&segment(&answer), 0, &mut ended);
    assert_eq!(open.flow.client.port(), 40_000);
    assert_eq!(packet.from, Side::Server);
    for (forward, flags) in [(true, Flags::FIN), (false, Flags::FIN), (true, Flags::ACK)] {
        let bytes = tcp4(forward, 10, flags, b"");
        table.assign(&segment(&bytes), 1, &mut ended);
    }
    assert!(ended.is_empty());
    table.assign(&segment(&tcp4(true, 99, Flags::SYN, b"")), 2, &mut ended);
    assert_eq!(ended.iter().map(|open| open.packets).collect::<Vec<_>>(), [4]);
    // Datagrams after a long silence are another flow.
    let datagram = udp4(b"x");
    table.assign(&segment(&datagram), 0, &mut ended);
    table.assign(&segment(&datagram), 200_000_000_000, &mut ended);
    assert_eq!(ended.len(), 2);
}

#[test]
fn the_table_is_bounded() {
    let mut table: Table<u8> = Table::new(100);
    let mut ended = Vec::new();
    let mut packet = udp4(b"x");
    for port in 1..=5000u16 {
        packet[20..22].copy_from_slice(&port.to_be_bytes());
        table.assign(&segment(&packet), 0, &mut ended);
    }
    assert_eq!((ended.len(), table.finish().len()), (4900, 100));
}
