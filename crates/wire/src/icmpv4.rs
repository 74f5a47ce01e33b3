//! ICMP for IPv4 (RFC 792): echo in full, other messages by type and code.

use crate::{
    EmitError, Fault, Identifier, Layer, ParseError, Sequence,
    bytes::{array_at, need, put_u16, room, u16_at},
    checksum,
};

/// Bytes of the header, identifier and sequence included.
pub const HEADER: usize = 8;

/// The type of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type(pub u8);

impl Type {
    /// Answer to an echo request.
    pub const ECHO_REPLY: Self = Self(0);
    /// Destination unreachable.
    pub const UNREACHABLE: Self = Self(3);
    /// Echo request.
    pub const ECHO_REQUEST: Self = Self(8);
    /// Time to live exceeded.
    pub const TIME_EXCEEDED: Self = Self(11);
}

/// A view over a message.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks that the header is there. The bytes must end where the IP packet ends.
    pub fn new(data: T) -> Result<Self, ParseError> {
        need(Layer::Icmpv4, data.as_ref(), HEADER)?;
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

    /// Whether the checksum is right.
    pub fn checksum_ok(&self) -> bool {
        checksum::verifies(self.0.as_ref())
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

/// A message as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repr<'a> {
    /// An echo request.
    EchoRequest(Echo<'a>),
    /// An answer to an echo request.
    EchoReply(Echo<'a>),
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

/// What an echo request and its reply have in common; the same for ICMPv4 and ICMPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo<'a> {
    /// Chosen by the sender, once a run.
    pub identifier: Identifier,
    /// Chosen by the sender, for each request.
    pub sequence: Sequence,
    /// Comes back unchanged.
    pub payload: &'a [u8],
}

impl<'a> Repr<'a> {
    /// Reads the message.
    ///
    /// # Errors
    /// When the checksum is wrong, or the code of an echo is not 0.
    pub fn parse<T: AsRef<[u8]>>(packet: &'a Packet<T>) -> Result<Self, ParseError> {
        let wrong = |offset, fault| ParseError { layer: Layer::Icmpv4, offset, fault };
        if !packet.checksum_ok() {
            let mut bytes = packet.0.as_ref().to_vec();
            put_u16(&mut bytes, 2, 0);
            let right = checksum::checksum(&bytes);
            return Err(wrong(2, Fault::Checksum { found: packet.checksum(), right }));
        }
        let (kind, code, payload) = (packet.kind(), packet.code(), packet.payload());
        if !matches!(kind, Type::ECHO_REQUEST | Type::ECHO_REPLY) {
            return Ok(Self::Other { kind, code, rest: packet.rest(), payload });
        }
        if code != 0 {
            let fault = Fault::Unexpected { what: "the code of an echo", value: code.into() };
            return Err(wrong(1, fault));
        }
        let echo = Echo { identifier: packet.identifier(), sequence: packet.sequence(), payload };
        Ok(match kind {
            Type::ECHO_REQUEST => Self::EchoRequest(echo),
            _ => Self::EchoReply(echo),
        })
    }

    /// Bytes that [`Repr::emit`] writes.
    pub fn len(&self) -> usize {
        match self {
            Self::EchoRequest(echo) | Self::EchoReply(echo) => HEADER + echo.payload.len(),
            Self::Other { payload, .. } => HEADER + payload.len(),
        }
    }

    /// Never: a message has 8 bytes at least.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Writes the message with its checksum at the start of `buffer` and returns how long it is.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let (kind, code, rest, payload) = match *self {
            Self::EchoRequest(echo) => (Type::ECHO_REQUEST, 0, echo.rest(), echo.payload),
            Self::EchoReply(echo) => (Type::ECHO_REPLY, 0, echo.rest(), echo.payload),
            Self::Other { kind, code, rest, payload } => (kind, code, rest, payload),
        };
        let out = room(Layer::Icmpv4, buffer, self.len())?;
        out[0] = kind.0;
        out[1] = code;
        put_u16(out, 2, 0);
        out[4..8].copy_from_slice(&rest);
        out[8..].copy_from_slice(payload);
        let check = checksum::checksum(out);
        put_u16(out, 2, check);
        Ok(self.len())
    }
}

impl Echo<'_> {
    /// Identifier and sequence as they appear in the message.
    pub(crate) fn rest(&self) -> [u8; 4] {
        let [a, b] = self.identifier.0.to_be_bytes();
        let [c, d] = self.sequence.0.to_be_bytes();
        [a, b, c, d]
    }
}
