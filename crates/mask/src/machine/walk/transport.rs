//! What IP carries: transports, ICMP with what it quotes, tunnels.

use super::{Inside, Next, Visit, Walk};
use crate::{application::Ports, layer::Kind, machine::checksums::Pending};
use wire::{EtherType, IpProtocol, checksum::Sum};

const IP_IN_IP: IpProtocol = IpProtocol(4);
const IPV6_IN_IP: IpProtocol = IpProtocol(41);
const GRE: IpProtocol = IpProtocol(47);
/// VXLAN's port (RFC 7348, section 5).
const VXLAN: u16 = 4789;

/// TCP's options of which something can be kept.
const END: u8 = 0;
const NOTHING: u8 = 1;

impl<V: Visit> Walk<'_, V> {
    pub(super) fn protocol(
        &mut self,
        protocol: IpProtocol,
        at: usize,
        pending: &mut Vec<Pending>,
    ) -> Option<(usize, Next)> {
        match protocol {
            IpProtocol::TCP => self.tcp(at, pending),
            IpProtocol::UDP => self.udp(at, pending),
            IpProtocol::ICMP => self.icmp(at, pending),
            IpProtocol::ICMPV6 => self.icmpv6(at, pending),
            // A fragment of a tunnel has not all of the inner packet.
            IP_IN_IP if !self.inside.fragment => {
                self.step(Next::Type(EtherType::IPV4), at, pending)
            }
            IPV6_IN_IP if !self.inside.fragment => {
                self.step(Next::Type(EtherType::IPV6), at, pending)
            }
            GRE if !self.inside.fragment => self.gre(at, pending),
            _ => None,
        }
    }

    /// Notes that this checksum is to be computed; one of a fragment or a quote cannot be.
    fn sum(&self, at: usize, from: usize, pseudo: Option<IpProtocol>) -> Option<Pending> {
        if self.inside.fragment || self.inside.quoted {
            return None;
        }
        let length = (self.inside.end - from) as u32;
        let pseudo = pseudo.map_or(Sum::default(), |protocol| {
            let sum = self.inside.addresses.bytes(&length.to_be_bytes());
            sum.word(u16::from(protocol.0))
        });
        Some(Pending { at, from, to: self.inside.end, pseudo, zero_is_none: false })
    }

    fn tcp(&mut self, at: usize, pending: &mut Vec<Pending>) -> Option<(usize, Next)> {
        self.treat(Kind::Tcp, at, 20)?;
        pending.extend(self.sum(at + 16, at, Some(IpProtocol::TCP)));
        let header = usize::from(self.u8_at(at + 12)? >> 4) * 4;
        if header < 20 {
            return None;
        }
        self.tcp_options(at + 20, at + header);
        Some((header, Next::Payload(self.ports(at, IpProtocol::TCP))))
    }

    fn ports(&self, at: usize, transport: IpProtocol) -> Option<Ports> {
        Some(Ports { transport, ports: [self.u16_at(at)?, self.u16_at(at + 2)?] })
    }

    fn tcp_options(&mut self, begin: usize, end: usize) -> Option<()> {
        let mut at = begin;
        let end = end.min(self.end);
        self.kept = self.kept.max(end);
        while at < end {
            let kind = self.u8_at(at)?;
            let length = match kind {
                END => break,
                NOTHING => 1,
                _ => usize::from(self.u8_at(at + 1)?),
            };
            if length == 0 || at + length > end || kind != NOTHING && length < 2 {
                break;
            }
            // RFC 9293, section 3.2; RFC 7323, sections 2.2 and 3.2; RFC 2018, sections 2 and 3.
            let option = match (kind, length) {
                (2, 4) => Some(Kind::TcpMss),
                (3, 3) => Some(Kind::TcpWindowScale),
                (4, 2) => Some(Kind::TcpSackPermitted),
                (5, _) => Some(Kind::TcpSack),
                (8, 10) => Some(Kind::TcpTimestamps),
                _ => None,
            };
            match option.filter(|option| self.visit.keeps(*option)) {
                Some(Kind::TcpSack) => {
                    self.treat(Kind::TcpSack, at, 2)?;
                    for n in 0..(length - 2) / 8 {
                        self.treat(Kind::TcpSackBlock, at + 2 + 8 * n, 8)?;
                    }
                }
                Some(option) => self.treat(option, at, length)?,
                None => {
                    self.visit.unnamed(self.captured(at + 2, at + length));
                    self.out[at..at + length].fill(NOTHING);
                }
            }
            at += length;
        }
        self.visit.unnamed(self.captured(at, end));
        Some(())
    }

    fn udp(&mut self, at: usize, pending: &mut Vec<Pending>) -> Option<(usize, Next)> {
        self.treat(Kind::Udp, at, 8)?;
        // It may end before IP's payload does; a length that is none is taken for that of IP's (RFC 2675,
        // section 4).
        let length = usize::from(self.u16_at(at + 4)?);
        if (8..=self.inside.end - at).contains(&length) {
            self.inside.end = at + length;
            self.end = self.end.min(at + length);
        }
        if self.u16_at(at + 6)? != 0 {
            let sum = self.sum(at + 6, at, Some(IpProtocol::UDP));
            pending.extend(sum.map(|sum| Pending { zero_is_none: true, ..sum }));
        }
        if self.u16_at(at + 2)? == VXLAN && !self.inside.fragment {
            let (length, next) = self.vxlan(at + 8)?;
            return Some((8 + length, next));
        }
        Some((8, Next::Payload(self.ports(at, IpProtocol::UDP))))
    }

    fn vxlan(&mut self, at: usize) -> Option<(usize, Next)> {
        // If the flag of the network's number is set, a frame follows (RFC 7348, section 5).
        // All else is reserved and zero; where it is not, it is another protocol on this port.
        let header = self.packet.get(at..self.end.min(at + 8))?;
        if !matches!(header, [8, 0, 0, 0, _, _, _, 0]) {
            return None;
        }
        self.treat(Kind::Vxlan, at, 8)?;
        Some((8, Next::Ethernet))
    }

    /// RFC 2784 and RFC 2890; other versions are removed.
    fn gre(&mut self, at: usize, pending: &mut Vec<Pending>) -> Option<(usize, Next)> {
        let flags = self.u16_at(at)?;
        if flags & 0x4fff != 0 {
            return None;
        }
        self.treat(Kind::Gre, at, 4)?;
        let protocol = EtherType(self.u16_at(at + 2)?);
        let mut length = 4;
        if flags & 0x8000 != 0 {
            self.kept = self.kept.max(self.end.min(at + 8));
            pending.extend(self.sum(at + 4, at, None));
            length += 4;
        }
        for (flag, kind) in [(0x2000, Kind::GreKey), (0x1000, Kind::GreSequence)] {
            if flags & flag != 0 {
                self.treat(kind, at + length, 4)?;
                length += 4;
            }
        }
        Some((length, Next::Type(protocol)))
    }

    fn icmp(&mut self, at: usize, pending: &mut Vec<Pending>) -> Option<(usize, Next)> {
        self.treat(Kind::Icmp, at, 4)?;
        pending.extend(self.sum(at + 2, at, None));
        let (rest, next) = match self.u8_at(at)? {
            0 | 8 => (Kind::IcmpEcho, Next::Payload(None)),
            5 => (Kind::IcmpRedirect, Next::Ip),
            3 | 4 | 11 | 12 => (Kind::IcmpError, Next::Ip),
            _ => return None,
        };
        self.treat(rest, at + 4, 4)?;
        let words = matches!(self.u8_at(at)?, 3 | 11 | 12).then(|| self.u8_at(at + 5));
        self.quote(at + 8, next, 4, words.flatten())
    }

    /// Messages of RFC 4443 and of neighbour discovery; of others type and code are kept.
    fn icmpv6(&mut self, at: usize, pending: &mut Vec<Pending>) -> Option<(usize, Next)> {
        self.treat(Kind::Icmpv6, at, 4)?;
        pending.extend(self.sum(at + 2, at, Some(IpProtocol::ICMPV6)));
        let kind = self.u8_at(at)?;
        let (rest, length, next) = match kind {
            1..=4 => (Kind::Icmpv6Error, 4, Next::Ip),
            128 | 129 => (Kind::Icmpv6Echo, 4, Next::Payload(None)),
            134 => (Kind::RouterAdvertisement, 12, Next::Unknown),
            135 | 136 => (Kind::Neighbour, 20, Next::Unknown),
            137 => (Kind::NeighbourRedirect, 36, Next::Unknown),
            // A router's solicitation has four bytes of nothing.
            133 => {
                self.kept = self.kept.max(self.end.min(at + 8));
                return self.discovery_options(at + 8);
            }
            _ => return None,
        };
        self.treat(rest, at + 4, length)?;
        if kind >= 133 {
            return self.discovery_options(at + 4 + length);
        }
        let words = matches!(kind, 1 | 3).then(|| self.u8_at(at + 4));
        self.quote(at + 8, next, 8, words.flatten())
    }

    /// What an error quotes is a packet again, whose end is missing. Some errors say how many words of
    /// how many bytes it has, behind which extensions stand (RFC 4884, section 4); older ones that have
    /// extensions do not say it and quote 128 bytes (section 5).
    fn quote(
        &mut self,
        at: usize,
        next: Next,
        word: usize,
        words: Option<u8>,
    ) -> Option<(usize, Next)> {
        if next == Next::Ip {
            let length = match words {
                Some(0) => 128,
                Some(words) => usize::from(words) * word,
                None => usize::MAX - at,
            };
            self.end = self.end.min(at + length);
            if self.inside.fragment || at >= self.end {
                return None;
            }
            self.inside = Inside { quoted: true, ..self.inside };
        }
        Some((8, next))
    }

    /// Options of neighbour discovery (RFC 4861, section 4.6); of unknown ones type and length are kept.
    fn discovery_options(&mut self, mut at: usize) -> Option<(usize, Next)> {
        while at < self.end {
            let length = usize::from(self.u8_at(at + 1)?) * 8;
            if length == 0 {
                return None;
            }
            self.treat(Kind::NeighbourOption, at, length.min(8))?;
            match (self.u8_at(at)?, length) {
                (1 | 2, 8) => self.treat(Kind::NeighbourLink, at, 8)?,
                (3, 32) => self.treat(Kind::NeighbourPrefix, at, 32)?,
                (kind, _) => {
                    match kind {
                        // Behind six bytes of nothing (4.6.3).
                        4 => self.visit.redirected(self.captured(at + 8, at + length)),
                        _ => self.visit.unnamed(self.captured(at + 2, at + length)),
                    }
                    self.kept = self.kept.max(self.end.min(at + length));
                }
            }
            at += length;
        }
        None
    }
}
