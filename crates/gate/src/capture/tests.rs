//! Captures put together by hand: both formats, all links, fragments, cuts, damage.

use super::{
    flows::Table,
    layers::{Layers, Segment},
    *,
};
use crate::flow::{Side, Transport};
use std::net::IpAddr;
use wire::{IpProtocol, ipv4, ipv6, tcp, udp};

const A: &str = "192.0.2.1";
const B: &str = "198.51.100.2";

/// A classic capture of one link, in microseconds or nanoseconds.
fn pcap(link: u32, magic: u32, frames: &[(u32, u32, Vec<u8>)]) -> Vec<u8> {
    let mut out = magic.to_le_bytes().to_vec();
    out.extend([2, 0, 4, 0]);
    out.extend([0; 8]);
    out.extend(262_144u32.to_le_bytes());
    out.extend(link.to_le_bytes());
    for (seconds, parts, frame) in frames {
        out.extend(seconds.to_le_bytes());
        out.extend(parts.to_le_bytes());
        out.extend((frame.len() as u32).to_le_bytes());
        out.extend((frame.len() as u32 + 7).to_le_bytes());
        out.extend(frame);
    }
    out
}

/// A block of pcapng.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = (padded as u32 + 12).to_le_bytes();
    let mut out = kind.to_le_bytes().to_vec();
    out.extend(length);
    out.extend(body);
    out.resize(8 + padded, 0);
    out.extend(length);
    out
}

fn section() -> Vec<u8> {
    block(
        0x0a0d_0d0a,
        &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255],
    )
}

fn interface(link: u16, options: &[u8]) -> Vec<u8> {
    let mut body = link.to_le_bytes().to_vec();
    body.extend([0, 0, 0, 0, 4, 0]);
    body.extend(options);
    block(1, &body)
}

fn enhanced(interface: u32, units: u64, frame: &[u8]) -> Vec<u8> {
    let mut body = interface.to_le_bytes().to_vec();
    body.extend(((units >> 32) as u32).to_le_bytes());
    body.extend((units as u32).to_le_bytes());
    body.extend((frame.len() as u32).to_le_bytes());
    body.extend((frame.len() as u32).to_le_bytes());
    body.extend(frame);
    block(6, &body)
}

type Seen = (u64, Link, Vec<u8>, u32);

fn frames(capture: &[u8]) -> Result<(Vec<Seen>, End), ReadError> {
    let mut all = Vec::new();
    let end = read::<ReadError>(capture, |frame, _| {
        all.push((frame.at_ns, frame.link, frame.bytes.to_vec(), frame.length));
        Ok(())
    })?;
    Ok((all, end))
}

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
fn tcp4(forth: bool, sequence: u32, flags: tcp::Flags, payload: &[u8]) -> Vec<u8> {
    let mut out = udp4(&vec![0; 12 + payload.len()]);
    out[9] = 6;
    let mut ports = (40_000, 80);
    if !forth {
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
fn both_units_of_pcap_are_read() {
    let frame = vec![1, 2, 3];
    for (magic, at_ns) in [(0xa1b2_c3d4, 5_000_007_000), (0xa1b2_3c4d, 5_000_000_007)] {
        let (all, end) = frames(&pcap(1, magic, &[(5, 7, frame.clone())])).unwrap();
        assert_eq!(all, [(at_ns, Link::Ethernet, frame.clone(), 10)]);
        assert_eq!(end, End::Whole);
    }
}

#[test]
fn pcapng_has_interfaces_clocks_and_sections() {
    let mut capture = section();
    capture.extend(interface(1, &[]));
    // if_tsresol: nanoseconds; if_tsoffset: 10 seconds.
    let options = [9, 0, 1, 0, 9, 0, 0, 0, 14, 0, 8, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    capture.extend(interface(101, &options));
    // In units of 2^-10 of a second.
    capture.extend(interface(113, &[9, 0, 1, 0, 0x8a, 0, 0, 0, 0, 0, 0, 0]));
    capture.extend(enhanced(0, 1_000_001, b"ether"));
    capture.extend(enhanced(1, 5, b"raw"));
    capture.extend(enhanced(2, 1536, b"cooked"));
    // An interface that is not there, a block that nobody knows, a simple packet.
    capture.extend(enhanced(9, 5, b"none"));
    capture.extend(block(0x0bad, b"unknown"));
    let mut simple = 6u32.to_le_bytes().to_vec();
    simple.extend(b"simple");
    capture.extend(block(3, &simple));
    capture.extend(section());
    capture.extend(interface(276, &[]));
    capture.extend(enhanced(0, 0, b"new"));
    let (all, end) = frames(&capture).unwrap();
    let expected = [
        (1_000_001_000, Link::Ethernet, b"ether".to_vec(), 5),
        (10_000_000_005, Link::Raw, b"raw".to_vec(), 3),
        (1_500_000_000, Link::Cooked, b"cooked".to_vec(), 6),
        (0, Link::Ethernet, b"simple".to_vec(), 6),
        (0, Link::Cooked2, b"new".to_vec(), 3),
    ];
    assert_eq!(all, expected);
    assert_eq!(end, End::Whole);
}

#[test]
fn a_file_that_ends_within_a_packet_is_read_up_to_there() {
    let whole = pcap(1, 0xa1b2_c3d4, &[(1, 0, vec![1; 50]), (2, 0, vec![2; 50])]);
    for cut in whole.len() - 60..whole.len() {
        let (all, end) = frames(&whole[..cut]).unwrap();
        assert_eq!((all.len(), end), (1, End::Within), "{cut}");
    }
    assert!(matches!(frames(b"no capture at all, but a text"), Err(ReadError::Form)));
    assert!(matches!(frames(b""), Err(ReadError::Empty)));
}

#[test]
fn a_process_block_shorter_than_its_frame_is_damage() {
    for (kind, length) in [
        (0x8000_0001u32.to_le_bytes(), 4u32.to_le_bytes()),
        (0x8000_0001u32.to_le_bytes(), 15u32.to_le_bytes()),
        (0x8000_0001u32.to_be_bytes(), 6u32.to_be_bytes()),
    ] {
        let capture = [&section()[..], &kind, &length, &[0; 32]].concat();
        assert!(matches!(frames(&capture), Err(ReadError::Damaged(28))), "{length:?}");
    }
    let process = block(0x8000_0001, &[7, 0, 0, 0]);
    let (seen, end) = frames(&[section(), process].concat()).unwrap();
    assert_eq!((seen.len(), end), (0, End::Whole));
}

#[test]
fn a_frame_larger_than_the_buffer_is_read_and_one_too_large_is_refused() {
    let large = vec![7; 3 * BUFFER];
    let capture = pcap(1, 0xa1b2_c3d4, &[(1, 0, large.clone()), (2, 0, vec![1])]);
    let (all, _) = frames(&capture).unwrap();
    assert_eq!(all.iter().map(|frame| frame.2.len()).collect::<Vec<_>>(), [large.len(), 1]);
    let capture = pcap(1, 0xa1b2_c3d4, &[(1, 0, vec![7; LARGEST])]);
    assert!(matches!(frames(&capture), Err(ReadError::TooLarge(24))));
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
        let link = Link::new(Linktype(link));
        let segment = segment(link.ip(&frame).unwrap_or_else(|| panic!("{link:?}")));
        assert_eq!((segment.payload, segment.length), (&b"hello"[..], 5));
        assert_eq!(segment.source.to_string(), format!("{A}:1000"));
        assert_eq!(segment.transport, Transport::Udp);
    }
    assert_eq!(Link::Ethernet.ip(&with(&[&[0; 12][..], &[8, 6]].concat())), None);
    assert_eq!(Link::new(Linktype(127)).ip(&packet), None);
}

#[test]
fn what_was_cut_is_known_and_padding_is_left_out() {
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
    table.place(&segment(&first), 0, &mut ended);
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
    let (open, packet) = table.place(&segment(&answer), 0, &mut ended);
    assert_eq!(open.flow.client.port(), 40_000);
    assert_eq!(packet.from, Side::Server);
    for (forth, flags) in [(true, Flags::FIN), (false, Flags::FIN), (true, Flags::ACK)] {
        let bytes = tcp4(forth, 10, flags, b"");
        table.place(&segment(&bytes), 1, &mut ended);
    }
    assert!(ended.is_empty());
    table.place(&segment(&tcp4(true, 99, Flags::SYN, b"")), 2, &mut ended);
    assert_eq!(ended.iter().map(|open| open.packets).collect::<Vec<_>>(), [4]);
    // Datagrams after a long silence are another flow.
    let datagram = udp4(b"x");
    table.place(&segment(&datagram), 0, &mut ended);
    table.place(&segment(&datagram), 200_000_000_000, &mut ended);
    assert_eq!(ended.len(), 2);
}

#[test]
fn the_table_is_bounded() {
    let mut table: Table<u8> = Table::new(100);
    let mut ended = Vec::new();
    let mut packet = udp4(b"x");
    for port in 1..=5000u16 {
        packet[20..22].copy_from_slice(&port.to_be_bytes());
        table.place(&segment(&packet), 0, &mut ended);
    }
    assert_eq!((ended.len(), table.finish().len()), (4900, 100));
}
