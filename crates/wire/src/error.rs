//! What can be wrong with bytes that are read, and with values that are written.

use std::fmt;

/// The protocol in whose header a fault was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// Ethernet II, with its VLAN tags.
    Ethernet,
    /// Address resolution, RFC 826.
    Arp,
    /// IPv4, RFC 791.
    Ipv4,
    /// IPv6 and its extension headers, RFC 8200.
    Ipv6,
    /// ICMP for IPv4, RFC 792.
    Icmpv4,
    /// ICMP for IPv6, RFC 4443, and neighbour discovery, RFC 4861.
    Icmpv6,
    /// RFC 9293.
    Tcp,
    /// RFC 768.
    Udp,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ethernet => "Ethernet",
            Self::Arp => "ARP",
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
            Self::Icmpv4 => "ICMPv4",
            Self::Icmpv6 => "ICMPv6",
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        })
    }
}

/// What was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The bytes end before the header or the length that it gives.
    #[error("{need} bytes needed, {have} there")]
    Truncated {
        /// Bytes that were needed, counted from the start of the view.
        need: usize,
        /// Bytes that were there.
        have: usize,
    },
    /// The IP version is another one.
    #[error("the version is {0}")]
    Version(u8),
    /// A length field contradicts another one or the minimum of the RFC.
    #[error("the length field is {0}")]
    Length(usize),
    /// The checksum is wrong.
    #[error("the checksum is {found:#06x} where {right:#06x} is right")]
    Checksum {
        /// As found.
        found: u16,
        /// What it should have been.
        right: u16,
    },
    /// A type, code or format that the value cannot hold.
    #[error("{what} is {value}")]
    Unexpected {
        /// Name of the field.
        what: &'static str,
        /// Its value.
        value: u32,
    },
}

/// Bytes could not be read: where and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{layer} at byte {offset}: {fault}")]
pub struct ParseError {
    /// The protocol.
    pub layer: Layer,
    /// Offset of the fault in bytes, from the start of the bytes that the view was given.
    pub offset: usize,
    /// What was wrong.
    pub fault: Fault,
}

impl ParseError {
    /// The same error seen from a frame in which the view began `by` bytes further on.
    pub fn shifted(self, by: usize) -> Self {
        Self { offset: self.offset + by, ..self }
    }
}

/// A value could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// The buffer is too short.
    #[error("{layer}: {need} bytes needed in the buffer, {have} there")]
    Buffer {
        /// The protocol.
        layer: Layer,
        /// Bytes needed.
        need: usize,
        /// Bytes there.
        have: usize,
    },
    /// A length does not fit in its field.
    #[error("{layer}: a length of {length} does not fit in 16 bits")]
    TooLong {
        /// The protocol.
        layer: Layer,
        /// The length in bytes.
        length: usize,
    },
    /// Source and destination are of different address families.
    #[error("source and destination must be of one address family")]
    Families,
}
