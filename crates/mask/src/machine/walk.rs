//! The walk down a packet: which header follows which, and where each ends.
//!
//! It is of another kind than [`wire::ipv6`]'s walk over extension headers, which other crates use: it
//! writes a result beside the packet, bears cuts within headers, goes into tunnels and quotes 24 headers
//! deep, and takes the same steps as the kernel's unit in `bpf/mask.bpf.c`, with which it is compared.

mod ip;
mod transport;

use super::{DEPTH, Link, checksums::Pending};
use crate::{application::Ports, layer::Kind};
use wire::{EtherType, IpProtocol, checksum::Sum};

/// GRE's payload is an Ethernet frame (RFC 7637, section 3.2), MPLS packets.
const BRIDGED: EtherType = EtherType(0x6558);
const MPLS: EtherType = EtherType(0x8847);
const MPLS_MULTICAST: EtherType = EtherType(0x8848);

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Ethernet,
    Type(EtherType),
    Ip,
    /// What lies below the last label of MPLS, of which no header says what it is.
    Labelled,
    /// A transport or an IPv6 extension header.
    Protocol(IpProtocol),
    /// The application layer, behind a transport with ports.
    Payload(Option<Ports>),
    /// Something else, which is removed.
    Unknown,
}

/// The IP packet in which the walk is.
#[derive(Clone, Copy, Debug, Default)]
struct Inside {
    /// An ICMP error quotes it, so its end is missing.
    quoted: bool,
    /// It is a fragment.
    fragment: bool,
    /// Where its payload ends on the wire, which may be beyond what was captured.
    end: usize,
    /// The addresses of its pseudo-header, in the result.
    addresses: Sum,
}

/// What is done at each header.
pub(crate) trait Visit {
    /// Treats a header, of which perhaps not all is there (`whole`), at the same offset of the result;
    /// `unique` is this offset's in this packet.
    fn header(&mut self, kind: Kind, header: &[u8], out: &mut [u8], whole: bool, unique: u128);

    /// Whether an option is kept; if not it becomes padding.
    fn keeps(&self, option: Kind) -> bool;

    /// Sees an option of which nothing can be named, without what says how long it is. It is removed.
    fn unnamed(&mut self, _content: &[u8]) {}

    /// Sees the packet that a redirect of neighbour discovery quotes in an option. It is removed, too.
    fn redirected(&mut self, _packet: &[u8]) {}

    /// Masks the payload of a transport whose packet is no fragment and no quote; whether it is kept, for
    /// otherwise it does not matter what was written.
    fn payload(&mut self, ports: Option<Ports>, payload: &[u8], out: &mut [u8]) -> bool;
}

pub(super) struct Walk<'a, V> {
    visit: &'a mut V,
    packet: &'a [u8],
    out: &'a mut [u8],
    number: u64,
    /// The end of what belongs to the packet: padding and trailers do not.
    end: usize,
    /// The end of what is kept.
    kept: usize,
    inside: Inside,
}

impl<'a, V: Visit> Walk<'a, V> {
    pub(super) fn new(visit: &'a mut V, packet: &'a [u8], out: &'a mut [u8], number: u64) -> Self {
        let (end, inside) = (packet.len(), Inside::default());
        Self { visit, packet, out, number, end, kept: 0, inside }
    }

    /// Writes the result; the length that it has.
    pub(super) fn run(&mut self, link: Link, pending: &mut Vec<Pending>) -> usize {
        let (mut at, mut next) = match link {
            Link::Ethernet => (0, Next::Ethernet),
            Link::Ip => (0, Next::Ip),
        };
        pending.clear();
        for _ in 0..DEPTH {
            match self.step(next, at, pending) {
                Some((length, following)) => (at, next) = (at + length, following),
                None => break,
            }
        }
        let (out, kept) = (&mut *self.out, self.kept);
        for sum in pending.iter().rev() {
            sum.fill(&mut out[..kept]);
        }
        kept
    }

    /// Treats the header that begins here; its length and what follows it, if that is known.
    fn step(&mut self, next: Next, at: usize, pending: &mut Vec<Pending>) -> Option<(usize, Next)> {
        match next {
            Next::Ethernet => {
                self.treat(Kind::Ethernet, at, 14)?;
                Some((14, Next::Type(EtherType(self.u16_at(at + 12)?))))
            }
            Next::Type(kind) if kind.is_vlan() => {
                self.treat(Kind::Vlan, at, 4)?;
                Some((4, Next::Type(EtherType(self.u16_at(at + 2)?))))
            }
            Next::Type(MPLS | MPLS_MULTICAST) => {
                self.treat(Kind::Mpls, at, 4)?;
                let is_last = self.u16_at(at + 2)? & 0x0100 != 0;
                Some((4, if is_last { Next::Labelled } else { Next::Type(MPLS) }))
            }
            Next::Type(BRIDGED) => self.step(Next::Ethernet, at, pending),
            Next::Type(EtherType::ARP) => self.arp(at),
            Next::Type(EtherType::IPV4 | EtherType::IPV6) | Next::Ip | Next::Labelled => {
                match (self.u8_at(at)? >> 4, next) {
                    (4, Next::Labelled) if !self.is_ipv4(at) => None,
                    (6, Next::Labelled) if !self.is_ipv6(at) => None,
                    (4, Next::Type(EtherType::IPV6)) | (6, Next::Type(EtherType::IPV4)) => None,
                    (4, _) => self.ipv4(at, pending),
                    (6, _) => self.ipv6(at),
                    _ => None,
                }
            }
            Next::Protocol(protocol) => self.protocol(protocol, at, pending),
            Next::Payload(ports) => {
                if !self.inside.quoted && !self.inside.fragment && at < self.end {
                    let (payload, out) = (&self.packet[at..self.end], &mut self.out[at..self.end]);
                    if self.visit.payload(ports, payload, out) {
                        self.kept = self.kept.max(self.end);
                    }
                }
                None
            }
            Next::Type(_) | Next::Unknown => None,
        }
    }

    /// Requests and answers of Ethernet and IPv4; of others only the structure is kept.
    fn arp(&mut self, at: usize) -> Option<(usize, Next)> {
        let is_known = self.u16_at(at)? == 1
            && self.u16_at(at + 2)? == EtherType::IPV4.0
            && self.u16_at(at + 4)? == 0x0604;
        self.treat(Kind::Arp, at, if is_known { 28 } else { 6 })?;
        None
    }

    /// Treats the header of a kind that is here; nothing when a part of it is missing.
    fn treat(&mut self, kind: Kind, at: usize, length: usize) -> Option<()> {
        let end = self.end.min(at + length);
        let (header, out) = (self.packet.get(at..end)?, self.out.get_mut(at..end)?);
        let unique = u128::from(self.number) << 32 | at as u128;
        self.kept = self.kept.max(end);
        let whole = end == at + length;
        self.visit.header(kind, header, out, whole, unique);
        whole.then_some(())
    }

    /// What of these bytes was captured.
    fn captured(&self, begin: usize, end: usize) -> &'a [u8] {
        self.packet.get(begin..end.min(self.end)).unwrap_or_default()
    }

    fn u8_at(&self, at: usize) -> Option<u8> {
        self.packet.get(..self.end)?.get(at).copied()
    }

    fn u16_at(&self, at: usize) -> Option<u16> {
        let bytes = self.packet.get(..self.end)?.get(at..at + 2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }
}
