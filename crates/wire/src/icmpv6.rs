//! ICMP for IPv6 (RFC 4443): echo and neighbour discovery (RFC 4861) in full, others by type.
//!
//! The checksum covers a pseudo header, so the addresses are needed to read and to write.

use std::net::Ipv6Addr;

use crate::{
    EmitError, Fault, Identifier, IpProtocol, Layer, Mac, ParseError, Sequence,
    bytes::{array_at, need, put_u16, room, u16_at},
    checksum,
    icmpv4::Echo,
};

/// Bytes of the header, identifier and sequence included.
pub const HEADER: usize = 8;
/// Bytes of a neighbour solicitation or advertisement without options.
const NEIGHBOUR: usize = 24;
/// Bytes of a link-layer address option for Ethernet (RFC 4861, section 4.6.1).
const LINK_OPTION: usize = 8;

/// The type of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type(pub u8);

impl Type {
    /// Destination unreachable.
    pub const UNREACHABLE: Self = Self(1);
    /// Hop limit exceeded.
    pub const TIME_EXCEEDED: Self = Self(3);
    /// Echo request.
    pub const ECHO_REQUEST: Self = Self(128);
    /// Answer to an echo request.
    pub const ECHO_REPLY: Self = Self(129);
    /// Who has this address?
    pub const NEIGHBOUR_SOLICITATION: Self = Self(135);
    /// I have this address.
    pub const NEIGHBOUR_ADVERTISEMENT: Self = Self(136);
}

/// A view over a message.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks that the header is there. The bytes must end where the IP packet ends.
    pub fn new(data: T) -> Result<Self, ParseError> {
        need(Layer::Icmpv6, data.as_ref(), HEADER)?;
        Ok(Self(data))
    }

    /// The type.
    pub fn kind(&self) -> Type {
        Type(self.0.as_ref()[0])
    }

    /// The code.
    pub fn code(&self) -> u8 {
        self.0.as_ref()[1]
    }

    /// The checksum as it stands.
    pub fn checksum(&self) -> u16 {
        u16_at(self.0.as_ref(), 2)
    }

    /// Whether the checksum is right for a packet between two addresses.
    pub fn checksum_ok(&self, from: Ipv6Addr, to: Ipv6Addr) -> bool {
        sum(from, to, self.0.as_ref()).fold() == 0xffff
    }

    /// The identifier of an echo.
    pub fn identifier(&self) -> Identifier {
        Identifier(u16_at(self.0.as_ref(), 4))
    }

    /// The sequence number of an echo.
    pub fn sequence(&self) -> Sequence {
        Sequence(u16_at(self.0.as_ref(), 6))
    }

    /// The four bytes whose meaning depends on the type: identifier and sequence of an echo.
    pub fn rest(&self) -> [u8; 4] {
        array_at(self.0.as_ref(), 4)
    }

    /// What follows the header.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[HEADER..]
    }
}

fn sum(from: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> checksum::Sum {
    // An IPv6 payload has at most 65,535 bytes without the jumbo option.
    checksum::pseudo_v6(from, to, message.len() as u32, IpProtocol::ICMPV6).bytes(message)
}

/// A message as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repr<'a> {
    /// An echo request.
    EchoRequest(Echo<'a>),
    /// An answer to an echo request.
    EchoReply(Echo<'a>),
    /// Who has this address? RFC 4861, section 4.3.
    NeighbourSolicitation {
        /// The address that is sought.
        target: Ipv6Addr,
        /// The option with the sender's MAC address.
        source_mac: Option<Mac>,
    },
    /// I have this address. RFC 4861, section 4.4.
    NeighbourAdvertisement {
        /// The address.
        target: Ipv6Addr,
        /// The option with the MAC address of the target.
        target_mac: Option<Mac>,
        /// Whether the sender is a router.
        router: bool,
        /// Whether this answers a solicitation.
        solicited: bool,
        /// Whether what is known already is to be replaced.
        over_ride: bool,
    },
    /// Any other message, kept as it is.
    Other {
        /// The type.
        kind: Type,
        /// The code.
        code: u8,
        /// The four bytes whose meaning depends on the type.
        rest: [u8; 4],
        /// What follows the header.
        payload: &'a [u8],
    },
}

/// The option type of the sender's link-layer address (RFC 4861, section 4.6.1).
const SOURCE_LINK: u8 = 1;
/// The option type of the target's link-layer address.
const TARGET_LINK: u8 = 2;

impl<'a> Repr<'a> {
    /// Reads the message of a packet between two addresses.
    ///
    /// # Errors
    /// When the checksum is wrong, the code of an echo or of neighbour discovery is not 0, or a
    /// neighbour discovery message is too short or has an option of length 0.
    pub fn parse<T: AsRef<[u8]>>(
        packet: &'a Packet<T>,
        from: Ipv6Addr,
        to: Ipv6Addr,
    ) -> Result<Self, ParseError> {
        let wrong = |offset, fault| ParseError { layer: Layer::Icmpv6, offset, fault };
        let bytes = packet.0.as_ref();
        if !packet.checksum_ok(from, to) {
            let mut bytes = bytes.to_vec();
            put_u16(&mut bytes, 2, 0);
            let right = sum(from, to, &bytes).finish();
            return Err(wrong(2, Fault::Checksum { found: packet.checksum(), right }));
        }
        let (kind, code, payload) = (packet.kind(), packet.code(), packet.payload());
        let known = matches!(
            kind,
            Type::ECHO_REQUEST
                | Type::ECHO_REPLY
                | Type::NEIGHBOUR_SOLICITATION
                | Type::NEIGHBOUR_ADVERTISEMENT
        );
        if !known {
            return Ok(Self::Other { kind, code, rest: packet.rest(), payload });
        }
        if code != 0 {
            return Err(wrong(1, Fault::Unexpected { what: "the code", value: code.into() }));
        }
        let echo = Echo { identifier: packet.identifier(), sequence: packet.sequence(), payload };
        match kind {
            Type::ECHO_REQUEST => return Ok(Self::EchoRequest(echo)),
            Type::ECHO_REPLY => return Ok(Self::EchoReply(echo)),
            _ => need(Layer::Icmpv6, bytes, NEIGHBOUR)?,
        }
        let target = array_at::<16>(bytes, 8).into();
        Ok(if kind == Type::NEIGHBOUR_SOLICITATION {
            Self::NeighbourSolicitation { target, source_mac: link_option(bytes, SOURCE_LINK)? }
        } else {
            Self::NeighbourAdvertisement {
                target,
                target_mac: link_option(bytes, TARGET_LINK)?,
                router: bytes[4] & 0x80 != 0,
                solicited: bytes[4] & 0x40 != 0,
                over_ride: bytes[4] & 0x20 != 0,
            }
        })
    }

    /// Bytes that [`Repr::emit`] writes.
    pub fn len(&self) -> usize {
        let link = |mac: &Option<Mac>| if mac.is_some() { LINK_OPTION } else { 0 };
        match self {
            Self::EchoRequest(echo) | Self::EchoReply(echo) => HEADER + echo.payload.len(),
            Self::NeighbourSolicitation { source_mac, .. } => NEIGHBOUR + link(source_mac),
            Self::NeighbourAdvertisement { target_mac, .. } => NEIGHBOUR + link(target_mac),
            Self::Other { payload, .. } => HEADER + payload.len(),
        }
    }

    /// Never: a message has 8 bytes at least.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Writes the message with its checksum for a packet between two addresses at the start of
    /// `buffer` and returns how long it is.
    pub fn emit(
        &self,
        buffer: &mut [u8],
        from: Ipv6Addr,
        to: Ipv6Addr,
    ) -> Result<usize, EmitError> {
        let out = room(Layer::Icmpv6, buffer, self.len())?;
        out[..HEADER].fill(0);
        match *self {
            Self::EchoRequest(echo) | Self::EchoReply(echo) => {
                let request = matches!(self, Self::EchoRequest(_));
                out[0] = if request { Type::ECHO_REQUEST.0 } else { Type::ECHO_REPLY.0 };
                out[4..8].copy_from_slice(&echo.rest());
                out[8..].copy_from_slice(echo.payload);
            }
            Self::NeighbourSolicitation { target, source_mac } => {
                out[0] = Type::NEIGHBOUR_SOLICITATION.0;
                out[8..24].copy_from_slice(&target.octets());
                put_link_option(out, SOURCE_LINK, source_mac);
            }
            Self::NeighbourAdvertisement { target, target_mac, router, solicited, over_ride } => {
                out[0] = Type::NEIGHBOUR_ADVERTISEMENT.0;
                out[4] =
                    u8::from(router) << 7 | u8::from(solicited) << 6 | u8::from(over_ride) << 5;
                out[8..24].copy_from_slice(&target.octets());
                put_link_option(out, TARGET_LINK, target_mac);
            }
            Self::Other { kind, code, rest, payload } => {
                out[0] = kind.0;
                out[1] = code;
                out[4..8].copy_from_slice(&rest);
                out[8..].copy_from_slice(payload);
            }
        }
        let check = sum(from, to, out).finish();
        put_u16(out, 2, check);
        Ok(self.len())
    }
}

fn put_link_option(out: &mut [u8], kind: u8, mac: Option<Mac>) {
    if let Some(mac) = mac {
        out[NEIGHBOUR] = kind;
        out[NEIGHBOUR + 1] = 1; // In units of eight bytes.
        out[NEIGHBOUR + 2..].copy_from_slice(&mac.0);
    }
}

/// The first option of a kind; options that are not known are skipped (RFC 4861, section 4.6).
fn link_option(bytes: &[u8], kind: u8) -> Result<Option<Mac>, ParseError> {
    let mut at = NEIGHBOUR;
    while at < bytes.len() {
        need(Layer::Icmpv6, bytes, at + 2)?;
        let length = usize::from(bytes[at + 1]) * 8;
        if length == 0 {
            let fault = Fault::Length(0);
            return Err(ParseError { layer: Layer::Icmpv6, offset: at + 1, fault });
        }
        need(Layer::Icmpv6, bytes, at + length)?;
        if bytes[at] == kind && length == LINK_OPTION {
            return Ok(Some(Mac(array_at(bytes, at + 2))));
        }
        at += length;
    }
    Ok(None)
}
