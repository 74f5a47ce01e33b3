//! Whole echo frames: Ethernet, tags, IP, ICMP and payload, with every length and checksum right.

use std::net::IpAddr;

use crate::{
    EmitError, EtherType, Identifier, IpProtocol, Mac, Sequence,
    ethernet::{self, VlanTag},
    icmpv4::{self, Echo},
    icmpv6, ipv4, ipv6,
};

/// Asked or answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An echo request.
    Request,
    /// An echo reply.
    Reply,
}

/// An ICMP echo in an Ethernet frame; [`EchoFrame::to_bytes`] writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EchoFrame {
    /// MAC address of the sender.
    pub source_mac: Mac,
    /// MAC address of the receiver or next hop.
    pub destination_mac: Mac,
    /// VLAN tags, outermost first.
    pub tags: Vec<VlanTag>,
    /// IP address of the sender.
    pub source: IpAddr,
    /// IP address of the receiver, of the same family.
    pub destination: IpAddr,
    /// Request or reply.
    pub kind: Kind,
    /// Echo identifier.
    pub identifier: Identifier,
    /// Echo sequence number.
    pub sequence: Sequence,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// What follows the ICMP header.
    pub payload: Vec<u8>,
}

impl EchoFrame {
    /// An untagged request with TTL 64, identifier and sequence 0, no payload and MAC addresses 0.
    pub fn request(source: IpAddr, destination: IpAddr) -> Self {
        Self {
            source_mac: Mac::default(),
            destination_mac: Mac::default(),
            tags: Vec::new(),
            source,
            destination,
            kind: Kind::Request,
            identifier: Identifier(0),
            sequence: Sequence(0),
            ttl: 64,
            payload: Vec::new(),
        }
    }

    /// The answer that RFC 792 and RFC 4443 ask for: ends exchanged, TTL 64, payload as it was.
    #[must_use]
    pub fn reply(&self) -> Self {
        Self {
            source_mac: self.destination_mac,
            destination_mac: self.source_mac,
            source: self.destination,
            destination: self.source,
            kind: Kind::Reply,
            ttl: 64,
            ..self.clone()
        }
    }

    /// Bytes before the IP header.
    pub fn ethernet_len(&self) -> usize {
        ethernet::HEADER + self.tags.len() * ethernet::TAG
    }

    /// The frame, without padding and frame check sequence.
    ///
    /// # Errors
    /// When the addresses are of different families or the payload does not fit in an IP packet.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EmitError> {
        let link = ethernet::Repr {
            destination: self.destination_mac,
            source: self.source_mac,
            tags: self.tags.clone(),
            ether_type: match self.source {
                IpAddr::V4(_) => EtherType::IPV4,
                IpAddr::V6(_) => EtherType::IPV6,
            },
        };
        let packet = self.to_ip_bytes()?;
        let mut frame = vec![0; link.len()];
        link.emit(&mut frame)?;
        frame.extend(packet);
        Ok(frame)
    }

    /// The IP packet alone.
    ///
    /// # Errors
    /// As [`EchoFrame::to_bytes`].
    pub fn to_ip_bytes(&self) -> Result<Vec<u8>, EmitError> {
        let echo =
            Echo { identifier: self.identifier, sequence: self.sequence, payload: &self.payload };
        let payload_len = icmpv4::HEADER + self.payload.len();
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let header = ipv4::Repr {
                    source,
                    destination,
                    protocol: IpProtocol::ICMP,
                    ttl: self.ttl,
                    traffic_class: 0,
                    identification: 0,
                    dont_fragment: true,
                    payload_len,
                };
                let message = match self.kind {
                    Kind::Request => icmpv4::Repr::EchoRequest(echo),
                    Kind::Reply => icmpv4::Repr::EchoReply(echo),
                };
                let mut out = vec![0; ipv4::HEADER + payload_len];
                header.emit(&mut out)?;
                message.emit(&mut out[ipv4::HEADER..])?;
                Ok(out)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let header = ipv6::Repr {
                    source,
                    destination,
                    next_header: IpProtocol::ICMPV6,
                    hop_limit: self.ttl,
                    traffic_class: 0,
                    flow_label: 0,
                    payload_len,
                };
                let message = match self.kind {
                    Kind::Request => icmpv6::Repr::EchoRequest(echo),
                    Kind::Reply => icmpv6::Repr::EchoReply(echo),
                };
                let mut out = vec![0; ipv6::HEADER + payload_len];
                header.emit(&mut out)?;
                message.emit(&mut out[ipv6::HEADER..], source, destination)?;
                Ok(out)
            }
            _ => Err(EmitError::Families),
        }
    }
}
