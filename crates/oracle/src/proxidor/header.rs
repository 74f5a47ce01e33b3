//! The fixed header of twelve bytes, the same in requests and replies.

use std::fmt;

/// Bytes of the fixed header.
pub const HEADER: usize = 12;

const REPLY: u8 = 0x80;
const BLOCK: u8 = 0x04;
const SOURCE4: u8 = 0x02;
const SOURCE6: u8 = 0x01;

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rcode(pub u8);

impl Rcode {
    /// The ranking follows.
    pub const NO_ERROR: Self = Self(0);
    /// The request does not keep to the format.
    pub const MALFORMED: Self = Self(1);
    /// The request asks for what this server does not have.
    pub const NOT_SUPPORTED: Self = Self(2);
    /// The client may not give a source.
    pub const REFUSED: Self = Self(3);
    /// The tag is wrong, or there is none where one is demanded.
    pub const NOT_AUTHENTICATED: Self = Self(4);
    /// The server has no ranking yet.
    pub const BUSY: Self = Self(5);
    /// The best of the ranking follows; the rest had no room.
    pub const CUT: Self = Self(6);
    /// All that this version of the protocol has.
    pub const ALL: [Self; 7] = [
        Self::NO_ERROR,
        Self::MALFORMED,
        Self::NOT_SUPPORTED,
        Self::REFUSED,
        Self::NOT_AUTHENTICATED,
        Self::BUSY,
        Self::CUT,
    ];

    /// The name, as counters and clients write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NO_ERROR => "no error",
            Self::MALFORMED => "malformed",
            Self::NOT_SUPPORTED => "not supported",
            Self::REFUSED => "refused",
            Self::NOT_AUTHENTICATED => "not authenticated",
            Self::BUSY => "server busy",
            Self::CUT => "cut",
            _ => "unknown code",
        }
    }

    /// Whether candidates come with it.
    pub fn has_ranking(self) -> bool {
        matches!(self, Self::NO_ERROR | Self::CUT)
    }
}

impl fmt::Display for Rcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0, self.name())
    }
}

/// The fixed header as a value. Fields hold what was read, also where the protocol has no such value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version of the protocol, 0; 4 bits.
    pub version: u8,
    /// Metrics, 12 bits: the one asked for, or in a reply those that the server has. Bit 0, the
    /// lowest, is the default metric.
    pub servcode: u16,
    /// Q: a reply, not a request.
    pub reply: bool,
    /// 0: client oracle query; 4 bits.
    pub opcode: u8,
    /// A: a block of authentication follows.
    pub block: bool,
    /// 4: an IPv4 source follows.
    pub source4: bool,
    /// 6: an IPv6 source follows.
    pub source6: bool,
    /// The result of the request; 4 bits.
    pub rcode: Rcode,
    /// Chosen by the client, returned untouched.
    pub identification: u32,
    /// How long the ranking holds, in seconds.
    pub ttl: u16,
    /// Service category; 0: ranking.
    pub category: u8,
    /// Type of the authentication: 0 none, 1 SipHash-2-4.
    pub authentication: u8,
}

impl Header {
    /// Reads the header and gives what follows it; none when there are fewer than twelve bytes.
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&[b0, b1, b2, b3, i0, i1, i2, i3, t0, t1, category, authentication], rest) =
            bytes.split_first_chunk::<HEADER>()?;
        let header = Self {
            version: b0 >> 4,
            servcode: u16::from_be_bytes([b0 & 0x0f, b1]),
            reply: b2 & REPLY != 0,
            opcode: b2 >> 3 & 0x0f,
            block: b2 & BLOCK != 0,
            source4: b2 & SOURCE4 != 0,
            source6: b2 & SOURCE6 != 0,
            rcode: Rcode(b3 & 0x0f),
            identification: u32::from_be_bytes([i0, i1, i2, i3]),
            ttl: u16::from_be_bytes([t0, t1]),
            category,
            authentication,
        };
        Some((header, rest))
    }

    /// Writes the header; what does not fit in a field loses its upper bits.
    pub fn emit(&self) -> [u8; HEADER] {
        let [s0, s1] = self.servcode.to_be_bytes();
        let [i0, i1, i2, i3] = self.identification.to_be_bytes();
        let [t0, t1] = self.ttl.to_be_bytes();
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let flags = flag(self.reply, REPLY)
            | (self.opcode & 0x0f) << 3
            | flag(self.block, BLOCK)
            | flag(self.source4, SOURCE4)
            | flag(self.source6, SOURCE6);
        [
            self.version << 4 | s0 & 0x0f,
            s1,
            flags,
            self.rcode.0 & 0x0f,
            i0,
            i1,
            i2,
            i3,
            t0,
            t1,
            self.category,
            self.authentication,
        ]
    }

    /// The header of a reply: version, operation and category are 0, no source is repeated.
    pub fn reply(identification: u32, rcode: Rcode, servcode: u16) -> Self {
        Self {
            version: 0,
            servcode,
            reply: true,
            opcode: 0,
            block: false,
            source4: false,
            source6: false,
            rcode,
            identification,
            ttl: 0,
            category: 0,
            authentication: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_field_has_its_bits() {
        let bytes = [0x5a, 0xbc, 0b1100_1101, 0xf6, 1, 2, 3, 4, 0, 60, 7, 8];
        let (header, rest) = Header::parse(&bytes).unwrap();
        assert!(rest.is_empty());
        assert_eq!((header.version, header.servcode), (5, 0xabc));
        assert_eq!((header.reply, header.opcode), (true, 9));
        assert_eq!((header.block, header.source4, header.source6), (true, false, true));
        assert_eq!((header.rcode, header.identification), (Rcode::CUT, 0x0102_0304));
        assert_eq!((header.ttl, header.category, header.authentication), (60, 7, 8));
    }

    #[test]
    fn eleven_bytes_are_no_header() {
        assert_eq!(Header::parse(&[0; 11]), None);
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_back_but_for_the_zero_field(bytes: [u8; HEADER]) {
            let (header, _) = Header::parse(&bytes).unwrap();
            let mut expected = bytes;
            expected[3] &= 0x0f;
            prop_assert_eq!(header.emit(), expected);
        }
    }
}
