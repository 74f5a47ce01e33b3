//! TCP and UDP: what is emitted is parsed back, checksums hold, and cut or random bytes never panic.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use wire::{Fault, IpProtocol, Layer, checksum::pseudo, tcp, udp};

fn ends() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    prop_oneof![
        any::<(Ipv4Addr, Ipv4Addr)>().prop_map(|(a, b)| (a.into(), b.into())),
        any::<(Ipv6Addr, Ipv6Addr)>().prop_map(|(a, b)| (a.into(), b.into())),
    ]
}

/// Whether the sum over pseudo header and bytes is that of intact data.
fn intact((from, to): (IpAddr, IpAddr), protocol: IpProtocol, bytes: &[u8]) -> bool {
    pseudo(from, to, bytes.len() as u32, protocol).unwrap().bytes(bytes).fold() == 0xffff
}

proptest! {
    #[test]
    fn tcp_comes_back_as_it_was(
        ends in ends(),
        (ports, sequence, acknowledgement) in any::<((u16, u16), u32, u32)>(),
        (flags, window) in any::<(u8, u16)>(),
        payload in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        let header = tcp::Repr {
            source_port: ports.0,
            destination_port: ports.1,
            sequence,
            acknowledgement,
            flags: tcp::Flags(flags),
            window,
        };
        let mut bytes = vec![0xaa; 700];
        let length = header.emit(ends, &payload, &mut bytes).unwrap();
        bytes.truncate(length);
        prop_assert!(intact(ends, IpProtocol::TCP, &bytes));
        let packet = tcp::Packet::new(&bytes).unwrap();
        prop_assert_eq!(tcp::Repr::parse(&packet), header);
        prop_assert_eq!(packet.payload(), &payload[..]);
    }

    #[test]
    fn udp_comes_back_as_it_was(
        ends in ends(),
        ports in any::<(u16, u16)>(),
        payload in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        let header = udp::Repr { source_port: ports.0, destination_port: ports.1 };
        let mut bytes = vec![0xaa; 700];
        let length = header.emit(ends, &payload, &mut bytes).unwrap();
        bytes.truncate(length);
        prop_assert!(intact(ends, IpProtocol::UDP, &bytes));
        let packet = udp::Packet::new(&bytes).unwrap();
        prop_assert_eq!(udp::Repr::parse(&packet), header);
        prop_assert_eq!(packet.payload(), &payload[..]);
        prop_assert_ne!(packet.checksum(), 0);
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(packet) = tcp::Packet::new(&bytes) {
            prop_assert_eq!(
                packet.options().len() + packet.payload().len() + tcp::HEADER,
                bytes.len()
            );
        }
        if let Ok(packet) = udp::Packet::new(&bytes) {
            prop_assert!(packet.payload().len() + udp::HEADER <= bytes.len());
        }
    }
}

#[test]
fn a_cut_payload_is_borne_and_a_cut_header_is_not() {
    let ends = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
    let mut bytes = [0; 64];
    let header = udp::Repr { source_port: 1, destination_port: 2 };
    let length = header.emit(ends, b"payload", &mut bytes).unwrap();
    assert_eq!(udp::Packet::new(&bytes[..length - 3]).unwrap().payload(), b"payl");
    // What is behind the length is padding.
    assert_eq!(udp::Packet::new(&bytes).unwrap().payload(), b"payload");
    bytes[5] = 7;
    assert_eq!(udp::Packet::new(&bytes).unwrap_err().fault, Fault::Length(7));

    let error = tcp::Packet::new(&[0; 19]).unwrap_err();
    assert_eq!((error.layer, error.offset), (Layer::Tcp, 19));
    let mut bytes = [0; 24];
    bytes[12] = 0x40;
    assert_eq!(tcp::Packet::new(&bytes).unwrap_err().fault, Fault::Length(16));
    bytes[12] = 0x60;
    assert_eq!(tcp::Packet::new(&bytes).unwrap().options(), [0; 4]);
    bytes[12] = 0x70;
    assert_eq!(
        tcp::Packet::new(&bytes).unwrap_err().to_string(),
        "TCP at byte 24: 28 bytes needed, 24 there"
    );
}
