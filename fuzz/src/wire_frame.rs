//! Any bytes as an Ethernet frame: every view is opened and every value parsed, down to ICMP.
//!
//! What parses is emitted and parsed again, and must come out the same.

use wire::{EtherType, IpProtocol, ethernet, icmpv4, icmpv6, ipv4, ipv6};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    // Every other address is ours, so every rule can be reached.
    let class = testbed::classify::classify(data, |address| match address {
        std::net::IpAddr::V4(v4) => v4.octets()[3] % 2 == 1,
        std::net::IpAddr::V6(v6) => v6.octets()[15] % 2 == 1,
    });
    let Ok(frame) = ethernet::Packet::new(data) else {
        assert_eq!(class, testbed::classify::Class::Other);
        return;
    };
    let link = ethernet::Repr::parse(&frame);
    let mut again = vec![0; link.len()];
    link.emit(&mut again).expect("a value that was parsed can be emitted");
    assert_eq!(again, data[..link.len()]);
    match frame.ether_type() {
        EtherType::IPV4 => version4(frame.payload()),
        EtherType::IPV6 => version6(frame.payload()),
        EtherType::ARP => drop(wire::arp::Packet::new(frame.payload())),
        _ => {}
    }
}

fn version4(data: &[u8]) {
    let Ok(packet) = ipv4::Packet::new(data) else { return };
    let Ok(header) = ipv4::Repr::parse(&packet) else { return };
    if header.protocol != IpProtocol::ICMP {
        return;
    }
    let Ok(message) = icmpv4::Packet::new(packet.payload()) else { return };
    let Ok(value) = icmpv4::Repr::parse(&message) else { return };
    let mut out = vec![0; value.len()];
    value.emit(&mut out).expect("a message that was parsed can be emitted");
    let out = icmpv4::Packet::new(out).expect("what is emitted can be opened");
    assert_eq!(icmpv4::Repr::parse(&out), Ok(value));
}

fn version6(data: &[u8]) {
    let Ok(packet) = ipv6::Packet::new(data) else { return };
    let Ok(upper) = packet.upper() else { return };
    let _ = upper;
    if packet.next_header() != IpProtocol::ICMPV6 {
        return;
    }
    let (source, destination) = (packet.source(), packet.destination());
    let Ok(message) = icmpv6::Packet::new(packet.payload()) else { return };
    let Ok(value) = icmpv6::Repr::parse(&message, source, destination) else { return };
    let mut out = vec![0; value.len()];
    value.emit(&mut out, source, destination).expect("a message that was parsed can be emitted");
    let out = icmpv6::Packet::new(out).expect("what is emitted can be opened");
    assert_eq!(icmpv6::Repr::parse(&out, source, destination), Ok(value));
}
