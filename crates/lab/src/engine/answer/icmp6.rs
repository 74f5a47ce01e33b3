//! ICMP errors for IPv6: RFC 4443, as Linux sends them.

use std::net::Ipv6Addr;

use wire::{IpProtocol, ipv6};

use super::{IcmpError, TTL};

/// Bytes of the longest error: the smallest MTU (RFC 4443, section 2.4 (c)).
const LONGEST: usize = 1280;
/// Bytes of the IPv6 and ICMP headers before the quotation.
const HEADERS: usize = 40 + 8;
/// Types from here on are no errors: RFC 4443, section 2.1.
const INFORMATIONAL: u8 = 128;

/// As [`super::error`].
pub(super) fn error(
    ip: &mut [u8],
    length: usize,
    error: IcmpError,
    source: Ipv6Addr,
) -> Option<usize> {
    let mut destination = [0; 16];
    destination.copy_from_slice(ip.get(8..24)?);
    let destination = Ipv6Addr::from(destination);
    let header = ipv6::Repr {
        source,
        destination,
        next_header: IpProtocol::ICMPV6,
        hop_limit: TTL,
        traffic_class: 0,
        flow_label: 0,
        payload_len: length.min(LONGEST - HEADERS) + 8,
    };
    let (kind, code, rest) = match error {
        IcmpError::NoRoute => (1, 0, 0),
        IcmpError::Prohibited => (1, 1, 0),
        IcmpError::NoHost => (1, 3, 0),
        IcmpError::NoPort => (1, 4, 0),
        IcmpError::TooBig(mtu) => (2, 0, mtu),
        IcmpError::TimeExceeded => (3, 0, 0),
        IcmpError::NoProtocol(offset) => (4, 1, u32::from(offset)),
    };
    let whole = 40 + header.payload_len;
    if ip.len() < whole {
        return None;
    }
    ip.copy_within(..whole - HEADERS, HEADERS);
    header.emit(ip).ok()?;
    let message = ip.get_mut(40..whole)?;
    message.get_mut(..4)?.copy_from_slice(&[kind, code, 0, 0]);
    message.get_mut(4..8)?.copy_from_slice(&rest.to_be_bytes());
    let check = sum(source, destination, message);
    message.get_mut(2..4)?.copy_from_slice(&check.to_be_bytes());
    Some(whole)
}

/// Whether errors may be sent about a packet: RFC 4443, section 2.4 (e). Addresses were inspected when
/// it came in.
pub(super) fn deserves(packet: &[u8]) -> bool {
    match upper(packet) {
        Some(upper) if upper.protocol == IpProtocol::ICMPV6 => {
            packet.get(upper.at).is_some_and(|&kind| kind >= INFORMATIONAL)
        }
        _ => true,
    }
}

/// The checksum of a message whose checksum field is zero.
fn sum(from: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> u16 {
    wire::checksum::pseudo_v6(from, to, message.len() as u32, IpProtocol::ICMPV6)
        .bytes(message)
        .finish()
}

/// What an IPv6 packet carries behind its extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Upper {
    /// What it is.
    pub protocol: IpProtocol,
    /// Where it begins.
    pub at: usize,
    /// The offset of the byte that names it.
    pub named_at: u16,
    /// Whether there is a fragment header that makes the packet a part of a larger one.
    pub fragment: bool,
    /// Whether it is a fragment that does not hold the beginning.
    pub later: bool,
}

/// Walks the extension headers: RFC 8200, section 4. None if they do not end in the packet.
pub(super) fn upper(packet: &[u8]) -> Option<Upper> {
    let (mut at, mut named_at) = (40, 6);
    let (mut fragment, mut later) = (false, false);
    loop {
        let protocol = IpProtocol(*packet.get(named_at)?);
        if later || !ipv6::is_extension(protocol) {
            let named_at = named_at as u16;
            return (at <= packet.len()).then_some(Upper {
                protocol,
                at,
                named_at,
                fragment,
                later,
            });
        }
        let extension = ipv6::Extension::read(protocol, packet.get(at..)?)?;
        if let Some(part) = extension.fragment {
            (fragment, later) = (part.offset != 0 || part.more, part.offset != 0);
        }
        (named_at, at) = (at, at + extension.length);
    }
}
