//! What a packet shows of its host, read from its outermost headers: what they quote or carry is of others.

use crate::{
    application::Ports,
    file::link_and_bytes,
    layer::Kind,
    machine::{Visit, visit},
};
use capture::Frame;
use std::net::IpAddr;

/// A host as a capture shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Host {
    Address(IpAddr),
    /// Only where there is no address.
    Mac([u8; 6]),
}

/// The fields of a packet that may reveal its host; what was removed is zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outline {
    /// Nanoseconds since 1970.
    pub(super) time: u64,
    /// Bytes on the wire.
    pub(super) length: u32,
    mac: [u8; 6],
    /// Of IP, or the sender and the target of ARP.
    pub(super) source: Option<IpAddr>,
    pub(super) destination: Option<IpAddr>,
    pub(super) protocol: u8,
    pub(super) ttl: u8,
    pub(super) dscp: u8,
    pub(super) flow_label: u32,
    /// Of IPv4.
    pub(super) identification: u16,
    /// Of TCP and UDP: source and destination.
    pub(super) ports: [u16; 2],
    pub(super) tcp: Option<Segment>,
    /// The walk is in what an outer packet carries or quotes.
    inner: bool,
}

/// Of TCP.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Segment {
    pub(super) flags: u16,
    pub(super) window: u16,
    /// Bytes of the header.
    pub(super) header: u8,
    /// Of a SYN, in their order; those that became padding are none.
    pub(super) options: Vec<Kind>,
    pub(super) mss: u16,
    pub(super) window_scale: u8,
    /// The sender's clock.
    pub(super) timestamp: Option<u32>,
}

impl Segment {
    pub(super) fn is_syn(&self) -> bool {
        self.flags & 0x02 != 0
    }

    pub(super) fn is_ack(&self) -> bool {
        self.flags & 0x10 != 0
    }
}

impl Outline {
    /// Of a frame; none where nothing is known of its link. `room` is for the walk.
    pub(super) fn of(frame: &Frame<'_>, room: &mut Vec<u8>) -> Option<Self> {
        let (link, bytes) = link_and_bytes(frame)?;
        let before = (frame.bytes.len() - bytes.len()) as u32;
        let length = frame.length.saturating_sub(before);
        let mut outline = Self { time: frame.at_ns, length, ..Self::default() };
        visit(&mut outline, link, bytes, room);
        Some(outline)
    }

    /// Whose packet it is, if that is left.
    pub(super) fn host(&self) -> Option<Host> {
        let address = self.source.filter(|address| !address.is_unspecified());
        let mac = (self.mac != [0; 6]).then_some(Host::Mac(self.mac));
        address.map(Host::Address).or(mac)
    }

    fn ip<const N: usize>(&mut self, header: &[u8], source: usize, destination: usize)
    where
        IpAddr: From<[u8; N]>,
    {
        let address = |at: usize| {
            let bytes = header.get(at..at + N)?;
            <[u8; N]>::try_from(bytes).ok().map(IpAddr::from)
        };
        (self.source, self.destination) = (address(source), address(destination));
    }
}

impl Visit for Outline {
    fn header(&mut self, kind: Kind, header: &[u8], _: &mut [u8], _: bool, _: u128) {
        let begins = matches!(kind, Kind::Ethernet | Kind::Arp | Kind::Ipv4 | Kind::Ipv6);
        self.inner |= begins && self.source.is_some();
        if self.inner {
            return;
        }
        // Zero where the capture has cut the header.
        let byte = |at: usize| header.get(at).copied().unwrap_or_default();
        let word = |at: usize| u16::from_be_bytes([byte(at), byte(at + 1)]);
        let double = |at: usize| u32::from(word(at)) << 16 | u32::from(word(at + 2));
        match kind {
            Kind::Ethernet => self.mac = std::array::from_fn(|n| byte(6 + n)),
            Kind::Arp => self.ip::<4>(header, 14, 24),
            Kind::Ipv4 => {
                self.ip::<4>(header, 12, 16);
                (self.ttl, self.protocol) = (byte(8), byte(9));
                (self.dscp, self.identification) = (byte(1) >> 2, word(4));
            }
            Kind::Ipv6 => {
                self.ip::<16>(header, 8, 24);
                (self.ttl, self.protocol) = (byte(7), byte(6));
                self.dscp = (word(0) >> 6 & 0x3f) as u8;
                self.flow_label = double(0) & 0x000f_ffff;
            }
            Kind::Udp => self.ports = [word(0), word(2)],
            Kind::Tcp => {
                self.ports = [word(0), word(2)];
                let (flags, header) = (word(12) & 0x1ff, (byte(12) >> 4) * 4);
                self.tcp = Some(Segment { flags, header, window: word(14), ..Segment::default() });
            }
            _ => {}
        }
        let Some(tcp) = &mut self.tcp else { return };
        match kind {
            Kind::TcpMss => tcp.mss = word(2),
            Kind::TcpWindowScale => tcp.window_scale = byte(2),
            Kind::TcpTimestamps => tcp.timestamp = Some(double(2)),
            Kind::TcpSackPermitted | Kind::TcpSack => {}
            _ => return,
        }
        if tcp.is_syn() {
            tcp.options.push(kind);
        }
    }

    fn keeps(&self, _: Kind) -> bool {
        true
    }

    fn payload(&mut self, _: Option<Ports>, _: &[u8], _: &mut [u8]) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::LinkType;

    fn of(link: LinkType, bytes: &[u8]) -> Outline {
        let frame = Frame { at_ns: 9, interface: 0, link, bytes, length: bytes.len() as u32 + 10 };
        Outline::of(&frame, &mut Vec::new()).expect("a known link")
    }

    fn ipv4(protocol: u8, last: u8, rest: &[u8]) -> Vec<u8> {
        let start = [0x45, 46 << 2, 0, 20 + rest.len() as u8, 1, 2, 0, 0, 63, protocol, 0, 0];
        [&start[..], &[192, 0, 2, last, 198, 51, 100, last], rest].concat()
    }

    #[test]
    fn only_the_outermost_packet_is_read() {
        let tcp = [&[0, 80, 0, 90][..], &[0; 8], &[0x50, 2, 1, 2], &[0; 4]].concat();
        let raw = LinkType::RAW;
        let plain = of(raw, &ipv4(6, 1, &tcp));
        let host = Some(Host::Address([192, 0, 2, 1].into()));
        assert_eq!((plain.host(), plain.ports, plain.ttl, plain.dscp), (host, [80, 90], 63, 46));
        assert_eq!((plain.time, plain.length, plain.identification), (9, 50, 0x0102));
        let segment = plain.tcp.expect("TCP");
        assert!(segment.is_syn() && !segment.is_ack() && segment.window == 0x0102);
        // A tunnel, and an error that quotes a packet.
        for outer in [
            ipv4(4, 1, &ipv4(6, 2, &tcp)),
            ipv4(1, 1, &[&[3, 1, 0, 0, 0, 0, 0, 0][..], &ipv4(6, 2, &tcp)].concat()),
        ] {
            let outline = of(raw, &outer);
            assert_eq!((outline.host(), outline.ports, outline.tcp), (host, [0, 0], None));
        }
        // What is before IP on a loopback is not of the packet.
        let loopback = of(LinkType(0), &[&[0, 0, 0, 2][..], &ipv4(6, 1, &tcp)].concat());
        assert_eq!((loopback.host(), loopback.length), (host, 50));
    }

    #[test]
    fn senders_are_read_from_ipv6_arp_and_ethernet() {
        let ipv6 = [&[0x6b, 0x91, 0x23, 0x45, 0, 0, 59, 64][..], &[0x20; 16], &[0x30; 16]].concat();
        let outline = of(LinkType::RAW, &ipv6);
        assert_eq!(outline.host(), Some(Host::Address([0x20; 16].into())));
        assert_eq!((outline.dscp, outline.flow_label, outline.ttl), (46, 0x12345, 64));
        let frame = |kind: [u8; 2], rest: &[u8]| [&[9; 6][..], &[2; 6], &kind, rest].concat();
        let arp = |sender: [u8; 4]| {
            let start = [0, 1, 8, 0, 6, 4, 0, 1, 2, 2, 2, 2, 2, 2];
            frame([8, 6], &[&start[..], &sender, &[0; 6], &[192, 0, 2, 2]].concat())
        };
        let host = of(LinkType::ETHERNET, &arp([192, 0, 2, 1])).host();
        assert_eq!(host, Some(Host::Address([192, 0, 2, 1].into())));
        let mac = Some(Host::Mac([2; 6]));
        assert_eq!(of(LinkType::ETHERNET, &arp([0; 4])).host(), mac);
        assert_eq!(of(LinkType::ETHERNET, &frame([0x88, 0xcc], &[])).host(), mac);
        assert_eq!(of(LinkType::ETHERNET, &[0; 14]).host(), None);
    }
}
