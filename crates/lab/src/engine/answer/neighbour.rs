//! ARP (RFC 826) and neighbour discovery (RFC 4861) between a port's host and its node.
//!
//! The node is the router of the link and a proxy (RFC 1027; RFC 4861, section 7.2.8): it answers for
//! every address but the host's own, whatever the host thinks is on its link. What a host asks to
//! find out whether an address is in use (RFC 5227, RFC 4862 section 5.4) is not answered, else it
//! would have to give its own address up. The node asks for the host's MAC address where it is not set
//! and the host has not spoken.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::{IpProtocol, Mac, arp, ethernet, icmpv6, ipv6};

use crate::{engine::port::Port, pool::VIRTIO};

/// The longest answer: a frame with a neighbour advertisement.
pub(crate) const ANSWER: usize = VIRTIO + ethernet::HEADER + 40 + 32;

/// The message to a neighbour.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NeighbourReply {
    /// Something to say: the frame's bytes and how many.
    Send([u8; ANSWER], usize),
    /// Nothing to say.
    Nothing,
}

/// Takes an ARP packet. `frame` begins with the virtio header.
pub(crate) fn arp(port: &Port, payload: &[u8]) -> NeighbourReply {
    let Ok(ask) = arp::Packet::new(payload).and_then(|packet| arp::Repr::parse(&packet)) else {
        return NeighbourReply::Nothing;
    };
    let probe = ask.sender_ip.is_unspecified() || ask.sender_ip == ask.target_ip;
    let ours = !port.is_host(ask.target_ip.into()) && is_unicast(ask.target_ip);
    if ask.operation != arp::Operation::REQUEST || probe || !ours {
        return NeighbourReply::Nothing;
    }
    let answer = arp::Repr {
        operation: arp::Operation::REPLY,
        sender_mac: port.mac,
        sender_ip: ask.target_ip,
        target_mac: ask.sender_mac,
        target_ip: ask.sender_ip,
    };
    write(port.mac, ask.sender_mac, wire::EtherType::ARP, |out| answer.emit(out))
}

/// Takes a neighbour solicitation or advertisement: an IPv6 packet with hop limit 255.
pub(crate) fn discovery(port: &Port, from_mac: Mac, payload: &[u8]) -> NeighbourReply {
    let Ok(packet) = ipv6::Packet::new(payload) else { return NeighbourReply::Nothing };
    let (source, destination) = (packet.source(), packet.destination());
    let Ok(message) = icmpv6::Packet::new(packet.payload()) else { return NeighbourReply::Nothing };
    let Ok(icmpv6::Repr::NeighbourSolicitation { target, source_mac }) =
        icmpv6::Repr::parse(&message, source, destination)
    else {
        return NeighbourReply::Nothing;
    };
    let ours = !port.is_host(target.into()) && !target.is_multicast();
    let link_local = link_local(port.mac);
    // Of link-local addresses only its own is the node's.
    let ours = ours && (!target.is_unicast_link_local() || target == link_local);
    if source.is_unspecified() || !ours || packet.hop_limit() != 255 {
        return NeighbourReply::Nothing;
    }
    let to = source_mac.unwrap_or(from_mac);
    let advertisement = icmpv6::Repr::NeighbourAdvertisement {
        target,
        target_mac: Some(port.mac),
        router: true,
        solicited: true,
        // A proxy leaves what is known as it is (RFC 4861, section 7.2.8).
        over_ride: target == link_local,
    };
    write(port.mac, to, wire::EtherType::IPV6, |out| discover(out, target, source, &advertisement))
}

/// Asks for the MAC address of a port's host: who has `target`?
pub(crate) fn ask(port: &Port, target: IpAddr) -> NeighbourReply {
    match target {
        IpAddr::V4(target_ip) => {
            let question = arp::Repr {
                operation: arp::Operation::REQUEST,
                sender_mac: port.mac,
                sender_ip: port.gateway4.unwrap_or(Ipv4Addr::UNSPECIFIED),
                target_mac: Mac([0; 6]),
                target_ip,
            };
            write(port.mac, Mac::BROADCAST, wire::EtherType::ARP, |out| question.emit(out))
        }
        IpAddr::V6(target) => {
            // The solicited-node address (RFC 4291, section 2.7.1) and its MAC address (RFC 2464).
            let [.., a, b, c] = target.octets();
            let group = Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c]);
            let question =
                icmpv6::Repr::NeighbourSolicitation { target, source_mac: Some(port.mac) };
            let to = Mac([0x33, 0x33, 0xff, a, b, c]);
            let source = link_local(port.mac);
            write(port.mac, to, wire::EtherType::IPV6, |out| {
                discover(out, source, group, &question)
            })
        }
    }
}

/// Writes a message of neighbour discovery.
fn discover(
    out: &mut [u8],
    source: Ipv6Addr,
    destination: Ipv6Addr,
    message: &icmpv6::Repr<'_>,
) -> Result<usize, wire::EmitError> {
    let header = ipv6::Repr {
        source,
        destination,
        traffic_class: 0,
        flow_label: 0,
        next_header: IpProtocol::ICMPV6,
        hop_limit: 255,
        payload_len: message.len(),
    };
    let at = header.emit(out)?;
    Ok(at + message.emit(&mut out[at..], source, destination)?)
}

/// The link-local address made of a MAC address: RFC 4291, appendix A.
pub(crate) fn link_local(mac: Mac) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

/// Whether an address can be a neighbour's.
fn is_unicast(address: Ipv4Addr) -> bool {
    !(address.is_unspecified() || address.is_multicast() || address.is_broadcast())
}

/// A whole frame with what `emit` writes after its Ethernet header.
fn write(
    from: Mac,
    to: Mac,
    kind: wire::EtherType,
    emit: impl FnOnce(&mut [u8]) -> Result<usize, wire::EmitError>,
) -> NeighbourReply {
    let mut out = [0; ANSWER];
    let header =
        ethernet::Repr { destination: to, source: from, tags: Vec::new(), ether_type: kind };
    let written = header.emit(&mut out[VIRTIO..]).and_then(|header| {
        emit(&mut out[VIRTIO + header..]).map(|payload| VIRTIO + header + payload)
    });
    written.map_or(NeighbourReply::Nothing, |length| NeighbourReply::Send(out, length))
}
