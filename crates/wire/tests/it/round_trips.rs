//! What is emitted is parsed back as it was, and truncated or random bytes never panic.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use wire::{
    EtherType, Fault, Identifier, IpProtocol, Layer, Mac, Sequence, arp,
    echo_frame::{EchoFrame, Kind},
    ethernet::{self, VlanTag},
    icmpv4, icmpv6, ipv4, ipv6,
};

fn ends() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    prop_oneof![
        any::<(Ipv4Addr, Ipv4Addr)>().prop_map(|(a, b)| (a.into(), b.into())),
        any::<(Ipv6Addr, Ipv6Addr)>().prop_map(|(a, b)| (a.into(), b.into())),
    ]
}

prop_compose! {
    fn echo_frame()(
        (source, destination) in ends(),
        macs in any::<([u8; 6], [u8; 6])>(),
        tags in proptest::collection::vec((any::<bool>(), any::<u16>()), 0..=2),
        request in any::<bool>(),
        numbers in any::<(u16, u16, u8)>(),
        payload in proptest::collection::vec(any::<u8>(), 0..1500),
    ) -> EchoFrame {
        let kind = |service| if service { EtherType::SERVICE_VLAN } else { EtherType::VLAN };
        EchoFrame {
            source_mac: Mac(macs.0),
            destination_mac: Mac(macs.1),
            tags: tags.into_iter().map(|(s, control)| VlanTag { kind: kind(s), control }).collect(),
            source,
            destination,
            kind: if request { Kind::Request } else { Kind::Reply },
            identifier: Identifier(numbers.0),
            sequence: Sequence(numbers.1),
            ttl: numbers.2,
            payload,
        }
    }
}

/// Reads a whole echo frame with the views and values of each layer.
fn read(bytes: &[u8]) -> EchoFrame {
    let frame = ethernet::Packet::new(bytes).unwrap();
    let link = ethernet::Repr::parse(&frame);
    let (source, destination, ttl, kind, echo);
    let (v4, v6, m4, m6);
    match link.ether_type {
        EtherType::IPV4 => {
            v4 = ipv4::Packet::new(frame.payload()).unwrap();
            let header = ipv4::Repr::parse(&v4).unwrap();
            assert_eq!(header.protocol, IpProtocol::ICMP);
            (source, destination) = (header.source.into(), header.destination.into());
            ttl = header.ttl;
            m4 = icmpv4::Packet::new(v4.payload()).unwrap();
            (kind, echo) = match icmpv4::Repr::parse(&m4).unwrap() {
                icmpv4::Repr::EchoRequest(echo) => (Kind::Request, echo),
                icmpv4::Repr::EchoReply(echo) => (Kind::Reply, echo),
                other => panic!("{other:?}"),
            };
        }
        EtherType::IPV6 => {
            v6 = ipv6::Packet::new(frame.payload()).unwrap();
            let header = ipv6::Repr::parse(&v6);
            assert_eq!(v6.upper().unwrap().protocol, IpProtocol::ICMPV6);
            (source, destination) = (header.source.into(), header.destination.into());
            ttl = header.hop_limit;
            m6 = icmpv6::Packet::new(v6.payload()).unwrap();
            let message = icmpv6::Repr::parse(&m6, header.source, header.destination);
            (kind, echo) = match message.unwrap() {
                icmpv6::Repr::EchoRequest(echo) => (Kind::Request, echo),
                icmpv6::Repr::EchoReply(echo) => (Kind::Reply, echo),
                other => panic!("{other:?}"),
            };
        }
        other => panic!("{other:?}"),
    }
    EchoFrame {
        source_mac: link.source,
        destination_mac: link.destination,
        tags: link.tags,
        source,
        destination,
        kind,
        identifier: echo.identifier,
        sequence: echo.sequence,
        ttl,
        payload: echo.payload.to_vec(),
    }
}

/// Calls every accessor of every view that can be had of the bytes.
fn touch_all(bytes: &[u8]) {
    if let Ok(frame) = ethernet::Packet::new(bytes) {
        let _ = (frame.tags().count(), frame.payload(), ethernet::Repr::parse(&frame));
    }
    if let Ok(packet) = arp::Packet::new(bytes) {
        let _ = arp::Repr::parse(&packet);
    }
    if let Ok(packet) = ipv4::Packet::new(bytes) {
        let _ = (packet.options(), packet.payload(), ipv4::Repr::parse(&packet));
    }
    if let Ok(packet) = ipv6::Packet::new(bytes) {
        let _ = (packet.payload(), packet.upper(), ipv6::Repr::parse(&packet));
    }
    if let Ok(packet) = icmpv4::Packet::new(bytes) {
        let _ = icmpv4::Repr::parse(&packet);
    }
    if let Ok(packet) = icmpv6::Packet::new(bytes) {
        let _ = icmpv6::Repr::parse(&packet, Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn truncated_echo_frames(frame in echo_frame()) {
        let bytes = frame.to_bytes().unwrap();
        let link = frame.ethernet_len();
        for end in 0..bytes.len() {
            touch_all(&bytes[..end]);
            if end >= link {
                touch_all(&bytes[link..end]);
                // An IP packet that is cut short is refused, and the fault lies at the cut.
                let error = match frame.source {
                    IpAddr::V4(_) => ipv4::Packet::new(&bytes[link..end]).unwrap_err(),
                    IpAddr::V6(_) => ipv6::Packet::new(&bytes[link..end]).unwrap_err(),
                };
                prop_assert_eq!(error.offset, end - link);
                let truncated = matches!(error.fault, Fault::Truncated { .. });
                prop_assert!(truncated, "{}", error);
            } else {
                prop_assert_eq!(ethernet::Packet::new(&bytes[..end]).unwrap_err().offset, end);
            }
        }
    }
}

proptest! {
    #[test]
    fn echo_frames(frame in echo_frame()) {
        let bytes = frame.to_bytes().unwrap();
        prop_assert_eq!(read(&bytes), frame.clone());
        // Ethernet padding changes nothing.
        let padded = [&bytes[..], &[0xaa; 18]].concat();
        prop_assert_eq!(read(&padded), frame);
    }

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        touch_all(&bytes);
        // The version and next header at their places make deeper paths likely.
        let mut v6 = bytes.clone();
        if v6.len() > 40 {
            v6[0] = 0x60 | v6[0] & 0x0f;
            v6[4] = 0;
            v6[5] = (v6.len() - 40) as u8;
            v6[6] = [0, 43, 44, 51, 60][usize::from(v6[6]) % 5];
        }
        touch_all(&v6);
    }

    #[test]
    fn arp_packets(
        operation in any::<u16>(),
        macs in any::<([u8; 6], [u8; 6])>(),
        ips in any::<(Ipv4Addr, Ipv4Addr)>(),
    ) {
        let repr = arp::Repr {
            operation: arp::Operation(operation),
            sender_mac: Mac(macs.0),
            sender_ip: ips.0,
            target_mac: Mac(macs.1),
            target_ip: ips.1,
        };
        let mut bytes = [0; arp::LEN];
        repr.emit(&mut bytes).unwrap();
        prop_assert_eq!(arp::Repr::parse(&arp::Packet::new(&bytes).unwrap()).unwrap(), repr);
    }

    #[test]
    fn neighbour_discovery(
        target in any::<Ipv6Addr>(),
        mac in proptest::option::of(any::<[u8; 6]>()),
        flags in any::<(bool, bool, bool)>(),
        ends in any::<(Ipv6Addr, Ipv6Addr)>(),
    ) {
        let messages = [
            icmpv6::Repr::NeighbourSolicitation { target, source_mac: mac.map(Mac) },
            icmpv6::Repr::NeighbourAdvertisement {
                target,
                target_mac: mac.map(Mac),
                router: flags.0,
                solicited: flags.1,
                over_ride: flags.2,
            },
        ];
        for message in messages {
            let mut bytes = vec![0xee; message.len()];
            message.emit(&mut bytes, ends.0, ends.1).unwrap();
            let packet = icmpv6::Packet::new(&bytes).unwrap();
            prop_assert_eq!(icmpv6::Repr::parse(&packet, ends.0, ends.1).unwrap(), message);
            for end in 0..bytes.len() {
                touch_all(&bytes[..end]);
            }
        }
    }

    /// One bit that is wrong anywhere in an ICMP message is seen.
    #[test]
    fn flipped_bits_are_seen(frame in echo_frame(), place in any::<prop::sample::Index>()) {
        let mut bytes = frame.to_ip_bytes().unwrap();
        let header = if frame.source.is_ipv4() { ipv4::HEADER } else { ipv6::HEADER };
        let bit = place.index((bytes.len() - header) * 8);
        bytes[header + bit / 8] ^= 1 << (bit % 8);
        let error = match (frame.source, frame.destination) {
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let packet = icmpv6::Packet::new(&bytes[header..]).unwrap();
                icmpv6::Repr::parse(&packet, from, to).unwrap_err()
            }
            _ => icmpv4::Repr::parse(&icmpv4::Packet::new(&bytes[header..]).unwrap()).unwrap_err(),
        };
        let checksum = matches!(error.fault, Fault::Checksum { .. });
        prop_assert!(checksum, "{}", error);
    }
}

#[test]
fn other_messages_are_kept() {
    let message = icmpv4::Repr::Other {
        kind: icmpv4::Type(250),
        code: 7,
        rest: [1, 2, 3, 4],
        payload: b"kept",
    };
    let mut bytes = vec![0; message.len()];
    message.emit(&mut bytes).unwrap();
    assert_eq!(icmpv4::Repr::parse(&icmpv4::Packet::new(&bytes).unwrap()).unwrap(), message);
}

#[test]
fn extension_headers_are_walked_over() {
    // Hop-by-hop (16 bytes), authentication (24 bytes: length field 4), first fragment, ICMPv6.
    let mut payload = vec![51, 1];
    payload.extend([0; 14]);
    payload.extend([44, 4]);
    payload.extend([0; 22]);
    payload.extend([58, 0, 0x00, 0x01, 0, 0, 0, 9]);
    payload.extend([128, 0, 0, 0, 0, 0, 0, 0]);
    let header = ipv6::Repr {
        source: Ipv6Addr::LOCALHOST,
        destination: Ipv6Addr::LOCALHOST,
        next_header: IpProtocol::HOP_BY_HOP,
        hop_limit: 1,
        traffic_class: 0xab,
        flow_label: 0xfffff,
        payload_len: payload.len(),
    };
    let mut bytes = vec![0; ipv6::HEADER];
    header.emit(&mut bytes).unwrap();
    bytes.extend(&payload);
    let packet = ipv6::Packet::new(&bytes).unwrap();
    assert_eq!(ipv6::Repr::parse(&packet), header);
    let fragment = ipv6::Fragment { offset: 0, more: true, identification: 9 };
    let upper = ipv6::Upper {
        protocol: IpProtocol::ICMPV6,
        offset: 40 + 48,
        extensions: 3,
        fragment: Some(fragment),
    };
    assert_eq!(packet.upper().unwrap(), upper);

    // A later fragment: what follows is data, even where its next header is walkable.
    let at = 40 + 40;
    bytes[at] = 60;
    bytes[at + 3] = 8;
    let upper = ipv6::Packet::new(&bytes).unwrap().upper().unwrap();
    assert_eq!((upper.protocol, upper.offset), (IpProtocol::DESTINATION_OPTIONS, 88));

    // A header that reaches beyond the payload.
    bytes[41] = 200;
    let error = ipv6::Packet::new(&bytes).unwrap().upper().unwrap_err();
    assert_eq!((error.layer, error.offset), (Layer::Ipv6, bytes.len()));
}

#[test]
fn lengths_that_lie_are_refused() {
    let good = EchoFrame::request([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
    let good = good.to_ip_bytes().unwrap();
    let refused = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        ipv4::Packet::new(&bytes).unwrap_err()
    };
    assert_eq!(refused(0, 0x44).fault, Fault::Length(16));
    assert_eq!(refused(0, 0x65).fault, Fault::Version(6));
    assert_eq!(refused(3, 19).fault, Fault::Length(19));
    assert_eq!(refused(3, 29).fault, Fault::Truncated { need: 29, have: 28 });
    assert_eq!(refused(3, 29).to_string(), "IPv4 at byte 28: 29 bytes needed, 28 there");
    assert_eq!(refused(3, 29).shifted(14).offset, 42);
}

#[test]
fn families_must_agree_and_lengths_must_fit() {
    let mut frame = EchoFrame::request([192, 0, 2, 1].into(), Ipv6Addr::LOCALHOST.into());
    assert!(frame.to_bytes().is_err());
    frame.destination = [192, 0, 2, 2].into();
    frame.payload = vec![0; 65_535 - 28];
    assert_eq!(frame.to_ip_bytes().unwrap().len(), 65_535);
    frame.payload.push(0);
    assert!(frame.to_bytes().is_err());
}

#[test]
fn options_and_fragments_have_views_but_no_value() {
    let frame = EchoFrame::request([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
    let plain = frame.to_ip_bytes().unwrap();
    // Four bytes of options: three no-operations and an end.
    let mut bytes = [&plain[..20], &[1, 1, 1, 0], &plain[20..]].concat();
    (bytes[0], bytes[3]) = (0x46, 32);
    bytes[10..12].fill(0);
    let check = wire::checksum::checksum(&bytes[..24]);
    bytes[10..12].copy_from_slice(&check.to_be_bytes());
    let packet = ipv4::Packet::new(&bytes).unwrap();
    assert!(packet.checksum_ok());
    assert_eq!(packet.options(), [1, 1, 1, 0]);
    assert_eq!(packet.payload(), &plain[20..]);
    assert_eq!(ipv4::Repr::parse(&packet).unwrap_err().offset, 20);

    let mut bytes = plain;
    (bytes[6], bytes[7]) = (0x20, 0x03);
    let packet = ipv4::Packet::new(&bytes).unwrap();
    assert!(packet.is_fragment() && !packet.fragment_field().dont_fragment());
}
