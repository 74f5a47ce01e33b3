//! ICMP as the tests need it: echo, what errors say, and their extensions.
//!
//! RFC 792, RFC 1812 section 5.2.7, RFC 4443; extensions RFC 4884, with MPLS labels (RFC 4950) and
//! interfaces (RFC 5837).

use std::{
    fmt::Write as _,
    net::{IpAddr, Ipv6Addr},
};
use wire::{Fault, Identifier, Layer, ParseError, Reader, Sequence, icmpv4, icmpv6, ipv4};

/// Version, reserved bits and checksum (RFC 4884, section 7).
const EXTENSION_HEADER: usize = 4;
/// Length, class and type of an object (RFC 4884, section 7.1).
const OBJECT_HEADER: usize = 4;
/// More objects than this are not shown.
const MOST_OBJECTS: usize = 16;
/// More labels than this are not shown.
const MOST_LABELS: usize = 16;

/// IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// ICMP.
    V4,
    /// ICMPv6.
    V6,
}

impl Family {
    /// The family of an address.
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }
}

/// An echo request; the kernel fills in identifier and checksum for a ping socket, and the checksum of
/// ICMPv6.
pub fn request(family: Family, identifier: u16, sequence: u16, payload: &[u8]) -> Vec<u8> {
    let echo =
        icmpv4::Echo { identifier: Identifier(identifier), sequence: Sequence(sequence), payload };
    let mut bytes = vec![0; icmpv4::HEADER + payload.len()];
    let emitted = match family {
        Family::V4 => icmpv4::Repr::EchoRequest(echo).emit(&mut bytes),
        Family::V6 => {
            let nobody = Ipv6Addr::UNSPECIFIED;
            icmpv6::Repr::EchoRequest(echo).emit(&mut bytes, nobody, nobody)
        }
    };
    debug_assert!(emitted.is_ok(), "the buffer is as long as the message");
    bytes
}

/// Reads an echo reply as a socket gives it: without the IP header, except from a raw IPv4 socket.
/// `None` for any other message. The kernel has verified the checksum of ICMPv6.
///
/// # Errors
/// When it is malformed.
pub fn reply(
    family: Family,
    raw: bool,
    bytes: &[u8],
) -> Result<Option<icmpv4::Echo<'_>>, ParseError> {
    let (bytes, skipped) = match (family, raw) {
        (Family::V4, true) => without_header(bytes)?,
        _ => (bytes, 0),
    };
    match family {
        Family::V4 => {
            let packet = icmpv4::Packet::new(bytes).map_err(|e| e.shifted(skipped))?;
            // The value borrows the view, so the fields are taken from the bytes.
            match icmpv4::Repr::parse(&packet).map_err(|e| e.shifted(skipped))? {
                icmpv4::Repr::EchoReply(_) => {
                    Ok(Some(echo(packet.identifier(), packet.sequence(), bytes)))
                }
                _ => Ok(None),
            }
        }
        Family::V6 => {
            let packet = icmpv6::Packet::new(bytes)?;
            if packet.kind() != icmpv6::Type::ECHO_REPLY {
                return Ok(None);
            }
            if packet.code() != 0 {
                let value = packet.code().into();
                let fault = Fault::Unexpected { what: "the code of an echo", value };
                return Err(ParseError { layer: Layer::Icmpv6, offset: 1, fault });
            }
            Ok(Some(echo(packet.identifier(), packet.sequence(), bytes)))
        }
    }
}

fn echo(identifier: Identifier, sequence: Sequence, bytes: &[u8]) -> icmpv4::Echo<'_> {
    let payload = bytes.get(icmpv4::HEADER..).unwrap_or_default();
    icmpv4::Echo { identifier, sequence, payload }
}

/// What follows the IPv4 header, and where it begins.
fn without_header(bytes: &[u8]) -> Result<(&[u8], usize), ParseError> {
    let packet = ipv4::Packet::new(bytes)?;
    let length = packet.header_len();
    Ok((bytes.get(length..).unwrap_or_default(), length))
}

/// The sequence number of the echo request that an error quotes; `None` when it quotes none whole.
pub fn quoted_sequence(family: Family, quoted: &[u8]) -> Option<u16> {
    let (kind, header) = (*quoted.first()?, quoted.get(..icmpv4::HEADER)?);
    let request = match family {
        Family::V4 => icmpv4::Type::ECHO_REQUEST.0,
        Family::V6 => icmpv6::Type::ECHO_REQUEST.0,
    };
    match header {
        [.., high, low] if kind == request => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    }
}

/// What an error means to who looks for a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// TTL or hop limit ran out on the path: the path goes on.
    TimeExceeded,
    /// The destination has no such port: the packet arrived.
    NoPort,
    /// The packet is longer than a link takes.
    TooBig,
    /// The path ends here, in words.
    Unreachable(String),
    /// Another error, in words.
    Other(String),
}

/// What an error of this type and code says.
pub fn cause(family: Family, kind: u8, code: u8) -> Cause {
    let words = |words: &str| Cause::Unreachable(words.to_owned());
    match (family, kind, code) {
        (Family::V4, 11, 0) | (Family::V6, 3, 0) => Cause::TimeExceeded,
        (Family::V4, 11, 1) | (Family::V6, 3, 1) => {
            Cause::Other("fragment reassembly time exceeded".to_owned())
        }
        (Family::V4, 3, 3) | (Family::V6, 1, 4) => Cause::NoPort,
        (Family::V4, 3, 4) | (Family::V6, 2, 0) => Cause::TooBig,
        // RFC 792 and RFC 1812, section 5.2.7.1.
        (Family::V4, 3, 0) => words("net unreachable"),
        (Family::V4, 3, 1) => words("host unreachable"),
        (Family::V4, 3, 2) => words("protocol unreachable"),
        (Family::V4, 3, 5) => words("source route failed"),
        (Family::V4, 3, 6) => words("net unknown"),
        (Family::V4, 3, 7) => words("host unknown"),
        (Family::V4, 3, 9) => words("net prohibited"),
        (Family::V4, 3, 10) => words("host prohibited"),
        (Family::V4, 3, 11) => words("net unreachable for this type of service"),
        (Family::V4, 3, 12) => words("host unreachable for this type of service"),
        (Family::V4, 3, 13) => words("administratively prohibited"),
        (Family::V4, 3, 14) => words("host precedence violation"),
        (Family::V4, 3, 15) => words("precedence cutoff"),
        // RFC 4443, section 3.1.
        (Family::V6, 1, 0) => words("no route"),
        (Family::V6, 1, 1) => words("administratively prohibited"),
        (Family::V6, 1, 2) => words("beyond the scope of the source address"),
        (Family::V6, 1, 3) => words("address unreachable"),
        (Family::V6, 1, 5) => words("source address failed the policy"),
        (Family::V6, 1, 6) => words("route rejected"),
        (Family::V4, 3, code) | (Family::V6, 1, code) => {
            Cause::Unreachable(format!("unreachable, code {code}"))
        }
        (_, kind, code) => Cause::Other(format!("ICMP type {kind}, code {code}")),
    }
}

/// Extensions could not be read: where and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("extensions at byte {offset}: {what}")]
pub struct ExtensionError {
    /// Offset in bytes from the beginning of the extensions.
    pub offset: usize,
    /// What is wrong.
    pub what: &'static str,
}

/// The extensions of an error in words, one for each object (RFC 4884, section 7).
///
/// # Errors
/// When they are malformed.
pub fn extensions(bytes: &[u8]) -> Result<Vec<String>, ExtensionError> {
    let wrong = |offset, what| ExtensionError { offset, what };
    let (header, _) = bytes
        .split_first_chunk::<EXTENSION_HEADER>()
        .ok_or(wrong(0, "shorter than their header"))?;
    if header[0] >> 4 != 2 {
        return Err(wrong(0, "not of version 2"));
    }
    // A checksum of zero: none was made.
    if header[2..] != [0, 0] && !wire::checksum::verifies(bytes) {
        return Err(wrong(2, "the checksum is wrong"));
    }
    let mut texts = Vec::new();
    let mut at = EXTENSION_HEADER;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let Some(([high, low, class, kind], _)) = rest.split_first_chunk::<OBJECT_HEADER>() else {
            return Err(wrong(at, "an object shorter than its header"));
        };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if length < OBJECT_HEADER {
            return Err(wrong(at, "an object shorter than its header"));
        }
        let body = rest.get(OBJECT_HEADER..length).ok_or(wrong(at, "an object that is cut"))?;
        if texts.len() < MOST_OBJECTS {
            texts.push(match (class, kind) {
                (1, 1) => labels(body).ok_or(wrong(at, "a cut label"))?,
                (2, kind) => interface(*kind, body).ok_or(wrong(at, "a cut interface"))?,
                (class, kind) => format!("object of class {class}, type {kind}"),
            });
        }
        at += length;
    }
    Ok(texts)
}

/// The label stack with which the packet came (RFC 4950, section 3).
fn labels(body: &[u8]) -> Option<String> {
    let mut text = "MPLS".to_owned();
    let (entries, rest) = body.as_chunks::<4>();
    if entries.is_empty() || !rest.is_empty() {
        return None;
    }
    for entry in entries.iter().take(MOST_LABELS) {
        let entry = u32::from_be_bytes(*entry);
        let (label, class, ttl) = (entry >> 12, entry >> 9 & 7, entry & 0xff);
        let _ = write!(text, " label {label} class {class} ttl {ttl}");
    }
    Some(text)
}

/// An interface or next hop (RFC 5837, section 4).
fn interface(kind: u8, body: &[u8]) -> Option<String> {
    let role = match kind >> 6 {
        0 => "incoming interface",
        1 => "incoming subinterface",
        2 => "outgoing interface",
        _ => "next hop",
    };
    let (mut text, mut body) = (role.to_owned(), Reader::new(body));
    if kind & 8 != 0 {
        let _ = write!(text, " index {}", body.u32()?);
    }
    if kind & 4 != 0 {
        let (family, _reserved) = (body.u16()?, body.u16()?);
        let address: IpAddr = match family {
            1 => body.array::<4>()?.into(),
            2 => body.array::<16>()?.into(),
            _ => return None,
        };
        let _ = write!(text, " address {address}");
    }
    if kind & 2 != 0 {
        // Its length with the length's byte, and up to 63 bytes of UTF-8 filled up with zeros.
        let length = usize::from(body.u8()?).checked_sub(1)?;
        let name = std::str::from_utf8(body.take(length)?).ok()?.trim_end_matches('\0');
        let _ = write!(text, " name {}", config::printable(name.chars()));
    }
    if kind & 1 != 0 {
        let _ = write!(text, " MTU {}", body.u32()?);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_with_or_without_its_header_and_nothing_else_is() {
        let mut bytes = request(Family::V4, 7, 9, b"abcd");
        assert_eq!(reply(Family::V4, false, &bytes), Ok(None), "a request is no reply");
        let echo = icmpv4::Echo {
            identifier: Identifier(7),
            sequence: Sequence(9),
            payload: b"abcd".as_slice(),
        };
        icmpv4::Repr::EchoReply(echo).emit(&mut bytes).unwrap();
        assert_eq!(reply(Family::V4, false, &bytes), Ok(Some(echo)));
        let header = [0x45, 0, 0, 32, 0, 0, 0, 0, 64, 1, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        let whole = [header.as_slice(), &bytes].concat();
        assert_eq!(reply(Family::V4, true, &whole), Ok(Some(echo)));
        bytes[10] ^= 1;
        assert!(reply(Family::V4, false, &bytes).is_err(), "the checksum is wrong");
        let six = [129, 0, 0, 0, 0, 7, 0, 9, b'a', b'b', b'c', b'd'];
        assert_eq!(reply(Family::V6, false, &six), Ok(Some(echo)));
        assert!(reply(Family::V6, false, &[129, 1, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(reply(Family::V6, false, &six[..7]).is_err());
    }

    #[test]
    fn an_error_quotes_the_sequence_of_our_request() {
        for family in [Family::V4, Family::V6] {
            let bytes = request(family, 1, 0x1234, b"");
            assert_eq!(quoted_sequence(family, &bytes), Some(0x1234));
            assert_eq!(quoted_sequence(family, &bytes[..7]), None);
        }
        assert_eq!(quoted_sequence(Family::V4, &[0; 8]), None);
    }

    #[test]
    fn extensions_are_shown_in_words() {
        // Two labels, then the incoming interface with index, address, name and MTU.
        let labels = [0, 12, 1, 1, 0x05, 0xdc, 0x01, 0x01, 0, 0, 0x23, 0xff];
        let interface = [
            [0, 28, 2, 0b0000_1111].as_slice(),
            &[0, 0, 0, 3],
            &[0, 1, 0, 0, 192, 0, 2, 1],
            b"\x08eth1\0\0\0",
            &[0, 0, 5, 220],
        ]
        .concat();
        let bytes = [&[0x20, 0, 0, 0], labels.as_slice(), &interface].concat();
        let texts = extensions(&bytes).unwrap();
        assert_eq!(texts[0], "MPLS label 24000 class 0 ttl 1 label 2 class 1 ttl 255");
        assert_eq!(texts[1], "incoming interface index 3 address 192.0.2.1 name eth1 MTU 1500");
        assert_eq!(extensions(&[0x20, 0, 0, 0]), Ok(vec![]));
        let mut summed = bytes.clone();
        let sum = wire::checksum::checksum(&summed);
        summed[2..4].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(extensions(&summed).unwrap(), texts);
        summed[2] ^= 1;
        assert_eq!(extensions(&summed).unwrap_err().offset, 2);
        for length in 0..bytes.len() {
            let cut = extensions(&bytes[..length]);
            assert_eq!(cut.is_ok(), [4, 16].contains(&length), "{length}: {cut:?}");
        }
        let short = [0x20, 0, 0, 0, 0, 3, 1, 1];
        assert_eq!(extensions(&short).unwrap_err().offset, 4);
    }
}
