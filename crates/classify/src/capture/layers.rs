//! From a frame to its transport header.
//!
//! Links: Ethernet with up to two VLAN tags, raw IP, Linux cooked (both versions), the loopback of BSDs.
//! Lengths come from the IP header, so padding is omitted, and what a snap length has cut is known.

use crate::{flow::Transport, packet::Tcp};
use ::capture::LinkType;
use std::net::{IpAddr, SocketAddr};
use wire::{
    EtherType, IpProtocol, Reader, ethernet,
    ipv4::{self, FragmentField},
    ipv6, tcp, udp,
};

/// Kinds of links (tcpdump.org/linktypes.html).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// 1: Ethernet.
    Ethernet,
    /// 101, 12, 14, 228, 229: an IP packet, version by its first bits.
    Raw,
    /// 113: what Linux gives on the interface `any`.
    Cooked,
    /// 276: the same, newer.
    Cooked2,
    /// 0 and 108: four bytes of address family, in either order.
    Loopback,
    /// Another one.
    Other(u16),
}

impl Link {
    /// What a capture says it is.
    pub fn new(kind: LinkType) -> Self {
        match kind.0 {
            1 => Self::Ethernet,
            12 | 14 | 101 | 228 | 229 => Self::Raw,
            113 => Self::Cooked,
            276 => Self::Cooked2,
            0 | 108 => Self::Loopback,
            other => Self::Other(other),
        }
    }

    /// The IP packet in a frame; none where something else is in it.
    pub fn ip(self, frame: &[u8]) -> Option<&[u8]> {
        let is_ip = |kind: &[u8]| matches!(kind, [0x08, 0x00] | [0x86, 0xdd]);
        match self {
            Self::Ethernet => {
                let packet = ethernet::Packet::new(frame).ok()?;
                let kind = packet.ether_type();
                let at = ethernet::HEADER + packet.tags().count() * ethernet::TAG;
                if kind == EtherType::IPV4 || kind == EtherType::IPV6 {
                    frame.get(at..)
                } else {
                    None
                }
            }
            Self::Raw => Some(frame),
            // The protocol's type is at its end, or at its beginning.
            Self::Cooked => frame.get(16..).filter(|_| frame.get(14..16).is_some_and(is_ip)),
            Self::Cooked2 => frame.get(20..).filter(|_| frame.get(..2).is_some_and(is_ip)),
            // The family's number differs between systems; the version is in the packet itself.
            Self::Loopback => frame.get(4..),
            Self::Other(_) => None,
        }
    }
}

/// What joins the fragments of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FragmentKey {
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// Chosen by its sender.
    pub identification: u32,
    /// What the whole packet carries.
    pub protocol: u8,
}

/// A TCP segment or UDP datagram in an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Which of the two.
    pub transport: Transport,
    /// Where it comes from.
    pub source: SocketAddr,
    /// Where it goes.
    pub destination: SocketAddr,
    /// TCP's header.
    pub tcp: Option<Tcp>,
    /// The payload, as far as it was kept.
    pub payload: &'a [u8],
    /// Bytes of it on the wire, in this packet.
    pub length: u32,
    /// Set on the first of several fragments.
    pub first_of: Option<FragmentKey>,
}

/// What an IP packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layers<'a> {
    /// A packet of a flow.
    Segment(Segment<'a>),
    /// A later fragment: its ports are in the first.
    Fragment(FragmentKey),
    /// Another protocol over IP.
    OtherProtocol(u8),
    /// Neither version, or cut short or wrong within a header.
    Damaged,
}

/// Reads an IP packet whose end may be cut off.
pub fn read(bytes: &[u8]) -> Layers<'_> {
    match bytes.first().map(|first| first >> 4) {
        Some(4) => version4(bytes),
        Some(6) => version6(bytes),
        _ => None,
    }
    .unwrap_or(Layers::Damaged)
}

fn version4(bytes: &[u8]) -> Option<Layers<'_>> {
    let mut header = Reader::new(bytes.get(..ipv4::HEADER)?);
    let header_length = ipv4::header_len(header.u8()?);
    header.take(1)?;
    let total = match usize::from(header.u16()?) {
        // The kernel's own super-packets may have none.
        0 => bytes.len(),
        total => total,
    };
    let length = total.checked_sub(header_length).filter(|_| header_length >= ipv4::HEADER)?;
    let next_layer = bytes.get(header_length..total.min(bytes.len()))?;
    let identification = header.u16()?.into();
    let field = FragmentField(header.u16()?);
    header.take(1)?;
    let protocol = header.u8()?;
    header.take(2)?;
    let (source, destination) = (header.array::<4>()?.into(), header.array::<4>()?.into());
    let key = FragmentKey { source, destination, identification, protocol };
    if field.offset() != 0 {
        return Some(Layers::Fragment(key));
    }
    let first_of = field.more_fragments().then_some(key);
    transport(next_layer, length, protocol, (source, destination), first_of)
}

fn version6(bytes: &[u8]) -> Option<Layers<'_>> {
    let mut header = Reader::new(bytes.get(..ipv6::HEADER)?);
    header.take(4)?;
    let end = match usize::from(header.u16()?) {
        0 => bytes.len(),
        length => ipv6::HEADER + length,
    };
    let mut protocol = IpProtocol(header.u8()?);
    header.take(1)?;
    let (source, destination) = (header.array::<16>()?.into(), header.array::<16>()?.into());
    let mut at = ipv6::HEADER;
    let mut first_of = None;
    while ipv6::is_extension(protocol) {
        let extension = ipv6::Extension::read(protocol, bytes.get(at..)?)?;
        protocol = extension.next;
        at += extension.length;
        if let Some(ipv6::Fragment { offset, more, identification }) = extension.fragment {
            let key = FragmentKey { source, destination, identification, protocol: protocol.0 };
            if offset != 0 {
                return Some(Layers::Fragment(key));
            }
            first_of = more.then_some(key);
        }
    }
    let next_layer = bytes.get(at..end.min(bytes.len()))?;
    transport(next_layer, end.checked_sub(at)?, protocol.0, (source, destination), first_of)
}

/// Reads the transport layer, of which `length` bytes were on the wire.
fn transport(
    bytes: &[u8],
    length: usize,
    protocol: u8,
    (source, destination): (IpAddr, IpAddr),
    first_of: Option<FragmentKey>,
) -> Option<Layers<'_>> {
    let segment = match IpProtocol(protocol) {
        IpProtocol::TCP => {
            let packet = tcp::Packet::new(bytes).ok()?;
            let seen = Tcp {
                sequence: packet.sequence(),
                acknowledgement: packet.acknowledgement(),
                flags: packet.flags().0,
            };
            Segment {
                transport: Transport::Tcp,
                source: SocketAddr::new(source, packet.source_port()),
                destination: SocketAddr::new(destination, packet.destination_port()),
                tcp: Some(seen),
                payload: bytes.get(packet.header_len()..)?,
                length: u32::try_from(length.checked_sub(packet.header_len())?).ok()?,
                first_of,
            }
        }
        IpProtocol::UDP => {
            let packet = udp::Packet::new(bytes).ok()?;
            // Of the first fragment only its own part is here, whatever UDP's length says.
            let there = length.checked_sub(udp::HEADER)?;
            let length = match usize::from(packet.length()) {
                0 => there,
                length => there.min(length - udp::HEADER),
            };
            let payload = bytes.get(udp::HEADER..)?;
            Segment {
                transport: Transport::Udp,
                source: SocketAddr::new(source, packet.source_port()),
                destination: SocketAddr::new(destination, packet.destination_port()),
                tcp: None,
                payload: payload.get(..length).unwrap_or(payload),
                length: u32::try_from(length).ok()?,
                first_of,
            }
        }
        IpProtocol(other) => return Some(Layers::OtherProtocol(other)),
    };
    Some(Layers::Segment(segment))
}
