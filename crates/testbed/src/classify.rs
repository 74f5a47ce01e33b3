//! What a responder may do with a whole frame: the rules of `bpf/include/echo.h`, read with the views
//! of `wire`. Tests run both on the same frames.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::{
    EtherType, IpProtocol, ethernet, icmpv4, icmpv6,
    ipv4::{self, FragmentField},
    ipv6,
    space::is_bogon_source,
};

/// What a frame is to a responder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// For none of the addresses, or not IP at all.
    Other,
    /// For one of the addresses, and the kernel's to deal with: no echo request, a fragment, IPv4
    /// options, IPv6 extension headers.
    Kernel,
    /// An echo request to answer.
    Request,
    /// An echo request that must not be answered.
    Refused(Reason),
}

/// Why an echo request must not be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A length field contradicts another one or the frame.
    BadLength,
    /// The code is not 0.
    BadCode,
    /// It came from or went to a group of stations.
    NotUnicast,
    /// No honest packet has its source.
    BogonSource,
    /// The IPv4 header's checksum is wrong.
    BadChecksumIp,
    /// The ICMP message's checksum is wrong.
    BadChecksumIcmp,
}

/// Says what a frame is to a responder for the addresses that `ours` names. Fragments are passed on.
pub fn classify(frame: &[u8], ours: impl Fn(IpAddr) -> bool) -> Class {
    let Ok(link) = ethernet::Packet::new(frame) else { return Class::Other };
    let unicast = !link.destination().is_multicast() && !link.source().is_multicast();
    match link.ether_type() {
        EtherType::IPV4 => version_4(link.payload(), unicast, ours),
        EtherType::IPV6 => version_6(link.payload(), unicast, ours),
        _ => Class::Other,
    }
}

fn version_4(bytes: &[u8], unicast: bool, ours: impl Fn(IpAddr) -> bool) -> Class {
    // The addresses are read before the lengths are known to be right: a packet for us whose lengths
    // lie is to be counted as ours.
    if bytes.len() < ipv4::HEADER || bytes[0] >> 4 != 4 {
        return Class::Other;
    }
    if !ours(Ipv4Addr::from(array_at::<4>(bytes, 16)).into()) {
        return Class::Other;
    }
    let fragment = FragmentField(u16::from_be_bytes(array_at(bytes, 6))).is_fragment();
    if IpProtocol(bytes[9]) != IpProtocol::ICMP
        || fragment
        || ipv4::header_len(bytes[0]) > ipv4::HEADER
    {
        return Class::Kernel;
    }
    let Ok(packet) = ipv4::Packet::new(bytes) else { return Class::Refused(Reason::BadLength) };
    let Ok(message) = icmpv4::Packet::new(packet.payload()) else {
        return Class::Refused(Reason::BadLength);
    };
    if message.kind() != icmpv4::Type::ECHO_REQUEST {
        return Class::Kernel;
    }
    let source = packet.source().into();
    refused([
        (message.code() != 0, Reason::BadCode),
        (!unicast, Reason::NotUnicast),
        (is_bogon_source(source) || ours(source), Reason::BogonSource),
        (!packet.checksum_ok(), Reason::BadChecksumIp),
        (!message.checksum_ok(), Reason::BadChecksumIcmp),
    ])
}

fn version_6(bytes: &[u8], unicast: bool, ours: impl Fn(IpAddr) -> bool) -> Class {
    if bytes.len() < ipv6::HEADER || bytes[0] >> 4 != 6 {
        return Class::Other;
    }
    if !ours(Ipv6Addr::from(array_at::<16>(bytes, 24)).into()) {
        return Class::Other;
    }
    if IpProtocol(bytes[6]) != IpProtocol::ICMPV6 {
        return Class::Kernel;
    }
    let Ok(packet) = ipv6::Packet::new(bytes) else { return Class::Refused(Reason::BadLength) };
    let Ok(message) = icmpv6::Packet::new(packet.payload()) else {
        return Class::Refused(Reason::BadLength);
    };
    if message.kind() != icmpv6::Type::ECHO_REQUEST {
        return Class::Kernel;
    }
    let (source, destination) = (packet.source(), packet.destination());
    refused([
        (message.code() != 0, Reason::BadCode),
        (!unicast, Reason::NotUnicast),
        (is_bogon_source(source.into()) || ours(source.into()), Reason::BogonSource),
        (!message.checksum_ok(source, destination), Reason::BadChecksumIcmp),
    ])
}

/// The first reason that holds, in the order of the rules.
fn refused<const N: usize>(rules: [(bool, Reason); N]) -> Class {
    let broken = rules.into_iter().find(|&(broken, _)| broken);
    broken.map_or(Class::Request, |(_, reason)| Class::Refused(reason))
}

/// Some bytes of a header whose length was checked.
fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}
