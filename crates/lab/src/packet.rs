//! What the engine has to know of the IP packet in a frame.
//!
//! Read once, when a frame comes in or is made: addresses, the hops it may still take, its length,
//! the length of its segments if it is a super-packet, and a hash of its flow. Then only the TTL and
//! the checksum over it are changed, in place.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::{
    IpProtocol, checksum,
    ipv4::{self, FragmentField},
    ipv6,
};

use crate::{
    gso::SuperPacket,
    pool::{IP, VIRTIO},
};

/// Why the bytes after the Ethernet header are no packet that a router would forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    /// Too short, a wrong version or length, or a wrong header checksum.
    Malformed,
    /// A source or destination that never leaves a host or its link.
    Address,
}

/// An IP packet's header as far as forwarding needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// TTL or hop limit.
    pub ttl: u8,
    /// Protocol, or IPv6's first next header.
    pub protocol: IpProtocol,
    /// Bytes of the IP header, without IPv6's extension headers.
    pub header: u16,
    /// Bytes of the packet.
    pub length: u32,
    /// Bytes of the packets that a super-packet stands for, else as `length`.
    pub segment: u32,
    /// Whether the sender lets routers mark congestion (ECT(0), ECT(1) or already CE).
    pub ect: bool,
    /// Whether it stands for several packets.
    pub is_super: bool,
    /// Whether it is an IPv4 packet that routers may fragment.
    pub may_fragment: bool,
    /// Whether it is a fragment of a larger IPv4 packet.
    pub fragment: bool,
}

impl Packet {
    /// Reads a frame's packet. `head` is what is in the frame's head, `length` the bytes of the whole
    /// frame.
    pub(crate) fn read(head: &[u8], length: usize) -> Result<Self, Bad> {
        let Some((virtio, ip)) = head.get(..VIRTIO).zip(head.get(IP..)) else {
            return Err(Bad::Malformed);
        };
        let mut packet = match ip.first().map(|byte| byte >> 4) {
            Some(4) => read4(ip)?,
            Some(6) => read6(ip)?,
            _ => return Err(Bad::Malformed),
        };
        let available = length.saturating_sub(IP);
        if packet.length as usize > available || packet.length < u32::from(packet.header) {
            return Err(Bad::Malformed);
        }
        // The byte that defines how a super-packet is cut.
        if virtio[1] != 0 {
            match SuperPacket::parse(head, IP + packet.length as usize) {
                Ok(Some(parts)) => (packet.is_super, packet.segment) = (true, parts.largest()),
                _ => return Err(Bad::Malformed),
            }
        }
        Ok(packet)
    }
}

/// An IPv4 header: RFC 1812, section 5.2.2, says what a router looks at before it forwards.
fn read4(ip: &[u8]) -> Result<Packet, Bad> {
    let Some((fixed, _)) = ip.split_first_chunk::<{ ipv4::HEADER }>() else {
        return Err(Bad::Malformed);
    };
    let header = ipv4::header_len(fixed[0]);
    let Some(whole_header) = ip.get(..header).filter(|header| header.len() >= ipv4::HEADER) else {
        return Err(Bad::Malformed);
    };
    if !checksum::verifies(whole_header) {
        return Err(Bad::Malformed);
    }
    let source = Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]);
    let destination = Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]);
    if !travels4(source) || !travels4(destination) {
        return Err(Bad::Address);
    }
    let length = u32::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    let fragment = FragmentField(u16::from_be_bytes([fixed[6], fixed[7]]));
    Ok(Packet {
        source: source.into(),
        destination: destination.into(),
        ttl: fixed[8],
        protocol: IpProtocol(fixed[9]),
        header: header as u16,
        length,
        segment: length,
        ect: fixed[1] & 3 != 0,
        is_super: false,
        may_fragment: !fragment.dont_fragment(),
        fragment: fragment.is_fragment(),
    })
}

/// An IPv6 header.
fn read6(ip: &[u8]) -> Result<Packet, Bad> {
    let Some((fixed, _)) = ip.split_first_chunk::<{ ipv6::HEADER }>() else {
        return Err(Bad::Malformed);
    };
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&fixed[at..at + 16]);
        Ipv6Addr::from(octets)
    };
    let (source, destination) = (address(8), address(24));
    if !travels6(source) || !travels6(destination) {
        return Err(Bad::Address);
    }
    let length = ipv6::HEADER as u32 + u32::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    Ok(Packet {
        source: source.into(),
        destination: destination.into(),
        ttl: fixed[7],
        protocol: IpProtocol(fixed[6]),
        header: ipv6::HEADER as u16,
        length,
        segment: length,
        ect: fixed[1] & 0x30 != 0,
        is_super: false,
        may_fragment: false,
        fragment: false,
    })
}

/// Whether a packet from or to this address may leave its link: RFC 1812, sections 5.3.7 and 4.2.2.11.
fn travels4(address: Ipv4Addr) -> bool {
    let [first, ..] = address.octets();
    first != 0 && first != 127 && first < 224 && !address.is_link_local()
}

/// As [`travels4`], for IPv6: RFC 4291, section 2.5.
fn travels6(address: Ipv6Addr) -> bool {
    !(address.is_multicast()
        || address.is_unspecified()
        || address.is_loopback()
        || address.is_unicast_link_local())
}

/// A hash of what stays the same for all packets of a flow: addresses, protocol and, for TCP and UDP
/// that is not in fragments, the ports.
pub(crate) fn flow(head: &[u8], packet: &Packet) -> u32 {
    let mut hash = u64::from(packet.protocol.0);
    let mut mix = |word: u64| {
        hash = (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    };
    for address in [packet.source, packet.destination] {
        match address {
            IpAddr::V4(address) => mix(u64::from(address.to_bits())),
            IpAddr::V6(address) => {
                mix(address.to_bits() as u64);
                mix((address.to_bits() >> 64) as u64);
            }
        }
    }
    let ports = head.get(IP + usize::from(packet.header)..).and_then(<[u8]>::first_chunk::<4>);
    if matches!(packet.protocol, IpProtocol::TCP | IpProtocol::UDP) && !packet.fragment {
        mix(ports.map_or(0, |ports| u64::from(u32::from_be_bytes(*ports))));
    }
    (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_right(32) as u32
}

/// Takes hops from a packet's TTL. `ip` is the packet, which was read before; its TTL stops at zero.
pub(crate) fn take_hops(ip: &mut [u8], hops: u8) {
    match ip {
        [first, ..] if *first >> 4 == 4 && ip.len() >= ipv4::HEADER => {
            let old = u16::from_be_bytes([ip[8], ip[9]]);
            ip[8] = ip[8].saturating_sub(hops);
            let check = u16::from_be_bytes([ip[10], ip[11]]);
            let check = checksum::update(check, old, u16::from_be_bytes([ip[8], ip[9]]));
            ip[10..12].copy_from_slice(&check.to_be_bytes());
        }
        [first, ..] if *first >> 4 == 6 && ip.len() >= ipv6::HEADER => {
            ip[7] = ip[7].saturating_sub(hops);
        }
        _ => {}
    }
}

/// Marks a packet whose sender allows it as one that met congestion (RFC 3168, section 5: CE).
pub(crate) fn mark(ip: &mut [u8]) {
    match ip {
        [first, ..] if *first >> 4 == 4 && ip.len() >= ipv4::HEADER => {
            let old = u16::from_be_bytes([ip[0], ip[1]]);
            ip[1] |= 3;
            let check = u16::from_be_bytes([ip[10], ip[11]]);
            let check = checksum::update(check, old, u16::from_be_bytes([ip[0], ip[1]]));
            ip[10..12].copy_from_slice(&check.to_be_bytes());
        }
        [first, ..] if *first >> 4 == 6 && ip.len() >= ipv6::HEADER => ip[1] |= 0x30,
        _ => {}
    }
}

/// An IPv4 packet about to be fragmented.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Bytes of its header.
    pub header: usize,
    /// Where it is itself in a larger packet, in bytes.
    offset: u16,
    /// Whether others follow it there.
    more: bool,
}

impl Shape {
    /// Reads the header of a frame's packet, which was read before.
    pub(crate) fn read(head: &[u8]) -> Option<Self> {
        let fixed = head.get(IP..)?.first_chunk::<{ ipv4::HEADER }>()?;
        let fragment = FragmentField(u16::from_be_bytes([fixed[6], fixed[7]]));
        let header = ipv4::header_len(fixed[0]);
        Some(Self { header, offset: fragment.offset(), more: fragment.more_fragments() })
    }

    /// Makes of the packet's header, which `ip` begins with, that of a fragment with these bytes of its
    /// payload: RFC 791, section 3.2.
    pub(crate) fn write(&self, ip: &mut [u8], start: usize, bytes: usize, last: bool) {
        let Some(header) = ip.get_mut(..self.header).filter(|header| header.len() >= ipv4::HEADER)
        else {
            return;
        };
        let offset = self.offset.wrapping_add(start as u16);
        let fragment = FragmentField::of_fragment(offset, self.more || !last);
        header[2..4].copy_from_slice(&((self.header + bytes) as u16).to_be_bytes());
        header[6..8].copy_from_slice(&fragment.0.to_be_bytes());
        if start > 0 {
            drop_options(&mut header[ipv4::HEADER..]);
        }
        header[10..12].fill(0);
        let check = checksum::checksum(header);
        header[10..12].copy_from_slice(&check.to_be_bytes());
    }
}

/// Overwrites the options that only the first fragment has: RFC 791, section 3.1, "copied flag".
fn drop_options(mut options: &mut [u8]) {
    const END: u8 = 0;
    const NOTHING: u8 = 1;
    const COPIED: u8 = 0x80;
    while let [kind, rest @ ..] = options {
        let length = match (*kind, rest.first()) {
            (END, _) => return,
            (NOTHING, _) => 1,
            (_, Some(&length)) if length >= 2 => usize::from(length),
            _ => return,
        };
        let Some((option, later)) = std::mem::take(&mut options).split_at_mut_checked(length)
        else {
            return;
        };
        if option[0] & COPIED == 0 {
            option.fill(NOTHING);
        }
        options = later;
    }
}
