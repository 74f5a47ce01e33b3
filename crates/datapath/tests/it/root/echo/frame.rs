//! Frames for the tests, every field of which can be wrong.

use crate::root::common::{Ethernet, sum};

/// The Internet checksum of RFC 1071.
pub(crate) fn checksum(bytes: &[u8]) -> u16 {
    !sum(bytes)
}

/// An IPv6 source or destination and the message in one buffer: RFC 8200 section 8.1.
pub(crate) fn pseudo6(addresses: &[u8], message: &[u8]) -> Vec<u8> {
    let mut bytes = addresses.to_vec();
    bytes.extend((message.len() as u32).to_be_bytes());
    bytes.extend([0, 0, 0, 58]);
    bytes.extend(message);
    bytes
}

/// Source and destination of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ip {
    V4([u8; 4], [u8; 4]),
    V6([u8; 16], [u8; 16]),
}

/// A frame to be: begin with [`Frame::request`], change what the test is about, then
/// [`Frame::bytes`].
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) link: Ethernet,
    pub(crate) ip: Ip,
    /// Type of service or traffic class.
    pub(crate) tos: u8,
    /// IPv6 only, 20 bits.
    pub(crate) flow_label: u32,
    /// IPv4 only.
    pub(crate) id: u16,
    /// IPv4's flags and fragment offset.
    pub(crate) fragment: u16,
    pub(crate) ttl: u8,
    /// Instead of ICMP.
    pub(crate) protocol: Option<u8>,
    /// IPv4 options, or IPv6 extension headers.
    pub(crate) between: Vec<u8>,
    /// Added to the right length field.
    pub(crate) length_lie: i32,
    /// IPv4: instead of the right header length.
    pub(crate) ihl: Option<u8>,
    /// Flipped bits of the checksums.
    pub(crate) spoil_ip: u16,
    pub(crate) spoil_icmp: u16,
    pub(crate) kind: u8,
    pub(crate) code: u8,
    pub(crate) ident: u16,
    pub(crate) sequence: u16,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// An echo request with 18 bytes of payload: the smallest frame on Ethernet.
    pub(crate) fn request(ip: Ip) -> Self {
        Self {
            link: Ethernet::plain(),
            ip,
            tos: 0,
            flow_label: 0,
            id: 0x1234,
            fragment: 0x4000,
            ttl: 57,
            protocol: None,
            between: Vec::new(),
            length_lie: 0,
            ihl: None,
            spoil_ip: 0,
            spoil_icmp: 0,
            kind: if matches!(ip, Ip::V4(..)) { 8 } else { 128 },
            code: 0,
            ident: 0x4321,
            sequence: 1,
            payload: (1..=18).collect(),
        }
    }

    /// The request from the unknown peer to the service, in either family.
    pub(crate) fn both() -> [Self; 2] {
        [
            Self::request(Ip::V4(super::CLIENT4, super::SERVICE4)),
            Self::request(Ip::V6(super::CLIENT6, super::SERVICE6)),
        ]
    }

    /// The reply that a correct responder sends.
    pub(crate) fn reply(&self) -> Self {
        let mut reply = self.clone();
        (reply.link.to, reply.link.from) = (self.link.from, self.link.to);
        reply.ip = match self.ip {
            Ip::V4(from, to) => Ip::V4(to, from),
            Ip::V6(from, to) => Ip::V6(to, from),
        };
        reply.ttl = 64;
        reply.kind = if matches!(self.ip, Ip::V4(..)) { 0 } else { 129 };
        reply
    }

    /// The ICMP message.
    fn message(&self) -> Vec<u8> {
        let mut message = vec![self.kind, self.code, 0, 0];
        message.extend(self.ident.to_be_bytes());
        message.extend(self.sequence.to_be_bytes());
        message.extend(&self.payload);
        let sum = match self.ip {
            Ip::V4(..) => checksum(&message),
            Ip::V6(from, to) => checksum(&pseudo6(&[from, to].concat(), &message)),
        };
        message[2..4].copy_from_slice(&(sum ^ self.spoil_icmp).to_be_bytes());
        message
    }

    fn packet(&self) -> Vec<u8> {
        let message = self.message();
        let lie = |length: usize| ((length as i32 + self.length_lie) as u16).to_be_bytes();
        match self.ip {
            Ip::V4(from, to) => {
                let words = 5 + self.between.len() / 4;
                let ihl = self.ihl.unwrap_or(words as u8);
                let mut head = vec![0x40 | ihl, self.tos];
                head.extend(lie(words * 4 + message.len()));
                head.extend(self.id.to_be_bytes());
                head.extend(self.fragment.to_be_bytes());
                head.extend([self.ttl, self.protocol.unwrap_or(1), 0, 0]);
                head.extend(from);
                head.extend(to);
                head.extend(&self.between);
                let sum = checksum(&head);
                head[10..12].copy_from_slice(&(sum ^ self.spoil_ip).to_be_bytes());
                [head, message].concat()
            }
            Ip::V6(from, to) => {
                let first = 6 << 28 | u32::from(self.tos) << 20 | self.flow_label;
                let mut head = first.to_be_bytes().to_vec();
                head.extend(lie(self.between.len() + message.len()));
                head.extend([self.protocol.unwrap_or(58), self.ttl]);
                head.extend(from);
                head.extend(to);
                head.extend(&self.between);
                [head, message].concat()
            }
        }
    }

    /// The whole frame.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let family = if matches!(self.ip, Ip::V4(..)) { 0x0800 } else { 0x86dd };
        self.link.around(family, &self.packet())
    }
}
