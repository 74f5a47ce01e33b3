//! ICMP errors for IPv4: RFC 792, RFC 1812 section 4.3, as Linux sends them.

use std::net::Ipv4Addr;

use wire::{
    IpProtocol, checksum,
    ipv4::{self, FragmentField},
};

use super::{IcmpError, TTL, word};

/// Bytes of the longest error: RFC 1812, section 4.3.2.3.
const LONGEST: usize = 576;
/// Bytes of the IP and ICMP headers before the quotation.
const HEADERS: usize = 20 + 8;
/// Internetwork control: RFC 1812, section 4.3.2.5.
const PRECEDENCE: u8 = 0xc0;
/// The bits of the type of service that an error takes over from the packet.
const SERVICE: u8 = 0x1e;

/// As [`super::error`].
pub(super) fn error(
    ip: &mut [u8],
    length: usize,
    error: IcmpError,
    source: Ipv4Addr,
    identification: u16,
) -> Option<usize> {
    let fixed = ip.first_chunk::<20>()?;
    let header = ipv4::Repr {
        source,
        destination: Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]),
        protocol: IpProtocol::ICMP,
        ttl: TTL,
        traffic_class: (fixed[1] & SERVICE) | PRECEDENCE,
        identification,
        dont_fragment: false,
        payload_len: length.min(LONGEST - HEADERS) + 8,
    };
    let (kind, code, rest) = match error {
        IcmpError::NoRoute => (3, 0, 0),
        IcmpError::NoHost => (3, 1, 0),
        IcmpError::NoProtocol(_) => (3, 2, 0),
        IcmpError::NoPort => (3, 3, 0),
        IcmpError::TooBig(mtu) => (3, 4, mtu.min(u32::from(u16::MAX))),
        IcmpError::Prohibited => (3, 13, 0),
        IcmpError::TimeExceeded => (11, 0, 0),
    };
    let whole = 20 + header.payload_len;
    if ip.len() < whole {
        return None;
    }
    ip.copy_within(..whole - HEADERS, HEADERS);
    header.emit(ip).ok()?;
    let message = ip.get_mut(20..whole)?;
    message.get_mut(..4)?.copy_from_slice(&[kind, code, 0, 0]);
    message.get_mut(4..8)?.copy_from_slice(&rest.to_be_bytes());
    let check = checksum::checksum(message);
    message.get_mut(2..4)?.copy_from_slice(&check.to_be_bytes());
    Some(whole)
}

/// Whether errors may be sent about a packet: RFC 1812, section 4.3.2.7. Addresses were inspected when
/// it came in.
pub(super) fn deserves(packet: &[u8]) -> bool {
    let Some(fragment) = word(packet, 6).map(FragmentField) else { return false };
    if fragment.offset() != 0 {
        return false;
    }
    if packet.get(9) != Some(&IpProtocol::ICMP.0) {
        return true;
    }
    let header = packet.first().map_or(0, |first| ipv4::header_len(*first));
    // Echo and the pairs of questions and answers up to the address mask (RFC 950): no errors.
    matches!(packet.get(header), Some(0 | 8 | 13..=18))
}
