//! The header of NTP's packets (RFC 5905, section 7.3), as a client sends and receives it.
//!
//! A client's packet says nothing of the client: all its fields are zero but mode and version, and the time
//! of sending is a random number that only the server's answer can bear as its origin.

use std::net::Ipv4Addr;

/// Bytes of the header; extensions and a digest that may follow are not read.
pub const LENGTH: usize = 48;

const VERSION: u8 = 4;
const CLIENT: u8 = 3;
const SERVER: u8 = 4;

/// What 0 stands for in a packet (RFC 5905, figure 11).
pub const UNSYNCHRONISED: u8 = 16;

/// The reference ID of a clock that follows only itself.
pub const LOCAL: [u8; 4] = [127, 127, 1, 1];

/// The kisses that mean something to who asks (RFC 5905, section 7.4); with any other a server says only
/// that it is not synchronised.
const KISSES: [&[u8; 4]; 3] = [b"DENY", b"RSTR", b"RATE"];

/// Seconds from NTP's prime epoch to 1970 (RFC 5905, section 6, figure 4).
const UNIX_EPOCH_S: i64 = 2_208_988_800;

/// A moment in NTP's format: seconds since 1900 modulo 2^32, and their fraction (RFC 5905, section 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Of nanoseconds since 1970.
    pub fn from_unix_ns(ns: i64) -> Self {
        let (seconds, rest) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
        let fraction = (rest.cast_unsigned() << 32) / 1_000_000_000;
        Self((seconds.wrapping_add(UNIX_EPOCH_S).cast_unsigned() << 32) | fraction)
    }

    /// How long after another moment this one is, in nanoseconds; right if they are less than 68 years
    /// apart, in whichever eras they are.
    pub fn since(self, other: Self) -> i64 {
        let steps = self.0.wrapping_sub(other.0).cast_signed();
        // At most 2^31 seconds, in nanoseconds less than 2^63.
        ((i128::from(steps) * 1_000_000_000) >> 32) as i64
    }
}

/// What a server's packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Leap indicator; 3 is a clock that is not synchronised.
    pub leap: u8,
    /// Stratum, 16 when not synchronised.
    pub stratum: u8,
    /// Precision of the clock, a power of two in seconds.
    pub precision: i8,
    /// Delay to the primary source, there and back, in nanoseconds.
    pub root_delay_ns: u64,
    /// Dispersion to the primary source, in nanoseconds.
    pub root_dispersion_ns: u64,
    /// What the server follows.
    pub reference: [u8; 4],
    /// When the server's clock was last set.
    pub set: Timestamp,
    /// When it received the request.
    pub received: Timestamp,
    /// When it sent this.
    pub sent: Timestamp,
}

/// A packet is no answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// Not enough bytes.
    #[error("{0} bytes in place of at least {LENGTH}")]
    Short(usize),
    /// Not from a server.
    #[error("mode {0} at byte 0 in place of {SERVER}")]
    Mode(u8),
    /// A version that is none of NTP's.
    #[error("version {0} at byte 0 in place of 1 to {VERSION}")]
    Version(u8),
    /// It answers another request, or none.
    #[error("its origin at byte 24 is not this request")]
    Origin,
    /// It does not say when it was sent.
    #[error("no time of sending at byte 40, or of receiving at byte 32")]
    Unstamped,
    /// The server wants to be asked less, or not at all (RFC 5905, section 7.4).
    #[error("kiss-o'-death {}", Kiss(*.0))]
    Kiss([u8; 4]),
}

struct Kiss([u8; 4]);

impl std::fmt::Display for Kiss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

/// A request whose time of sending is this number.
pub fn request(number: u64) -> [u8; LENGTH] {
    let mut packet = [0; LENGTH];
    let (rest, sent) = packet.split_at_mut(LENGTH - 8);
    sent.copy_from_slice(&number.to_be_bytes());
    if let Some(first) = rest.first_mut() {
        *first = VERSION << 3 | CLIENT;
    }
    packet
}

impl Reply {
    /// Reads the answer to the request with a number.
    ///
    /// # Errors
    ///
    /// It is none; a kiss-o'-death that answers the request is reported as such.
    pub fn parse(bytes: &[u8], number: u64) -> Result<Self, ReplyError> {
        let Some(header) = bytes.first_chunk::<LENGTH>() else {
            return Err(ReplyError::Short(bytes.len()));
        };
        let word = |index: usize| {
            let four = header.as_chunks::<4>().0.get(index).copied();
            four.unwrap_or_default()
        };
        let long = |index| {
            let (high, low) =
                (u32::from_be_bytes(word(index)), u32::from_be_bytes(word(index + 1)));
            Timestamp(u64::from(high) << 32 | u64::from(low))
        };
        let [first, stratum, _poll, precision] = word(0);
        let (leap, version, mode) = (first >> 6, first >> 3 & 7, first & 7);
        if mode != SERVER {
            return Err(ReplyError::Mode(mode));
        }
        if !(1..=VERSION).contains(&version) {
            return Err(ReplyError::Version(version));
        }
        if long(6).0 != number {
            return Err(ReplyError::Origin);
        }
        let reference = word(3);
        if stratum == 0 && KISSES.contains(&&reference) {
            return Err(ReplyError::Kiss(reference));
        }
        let (received, sent) = (long(8), long(10));
        if received.0 == 0 || sent.0 == 0 {
            return Err(ReplyError::Unstamped);
        }
        Ok(Self {
            leap,
            stratum: if stratum == 0 { UNSYNCHRONISED } else { stratum },
            precision: precision.cast_signed(),
            root_delay_ns: short_ns(word(1)),
            root_dispersion_ns: short_ns(word(2)),
            reference,
            set: long(4),
            received,
            sent,
        })
    }
}

/// Seconds with 16 bits of fraction, in nanoseconds, rounded up.
fn short_ns(bytes: [u8; 4]) -> u64 {
    (u64::from(u32::from_be_bytes(bytes)) * 1_000_000_000).div_ceil(1 << 16)
}

/// What a reference ID says: a name at stratum 1, an IPv4 address or the hash of one of IPv6 below it.
pub fn reference_name(reference: [u8; 4], stratum: u8) -> String {
    if stratum <= 1 {
        let name: Vec<u8> = reference.into_iter().filter(|byte| *byte != 0).collect();
        return name.escape_ascii().to_string();
    }
    Ipv4Addr::from(reference).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NUMBER: u64 = 0x0123_4567_89ab_cdef;

    fn reply() -> Vec<u8> {
        let mut bytes = vec![0x24, 2, 6, 0xe9];
        bytes.extend([0, 0, 0x80, 0]); // half a second
        bytes.extend([0, 1, 0, 0]); // one second
        bytes.extend([192, 0, 2, 7]);
        bytes.extend(1u64.to_be_bytes());
        bytes.extend(NUMBER.to_be_bytes());
        bytes.extend(2u64.to_be_bytes());
        bytes.extend(3u64.to_be_bytes());
        bytes
    }

    #[test]
    fn a_request_says_only_that_it_is_one() {
        let packet = request(NUMBER);
        assert_eq!(packet[0], 0x23);
        assert_eq!(packet[1..40], [0; 39]);
        assert_eq!(packet[40..], NUMBER.to_be_bytes());
    }

    #[test]
    fn a_reply_is_read() {
        let wanted = Reply {
            leap: 0,
            stratum: 2,
            precision: -23,
            root_delay_ns: 500_000_000,
            root_dispersion_ns: 1_000_000_000,
            reference: [192, 0, 2, 7],
            set: Timestamp(1),
            received: Timestamp(2),
            sent: Timestamp(3),
        };
        assert_eq!(Reply::parse(&reply(), NUMBER), Ok(wanted));
        let mut longer = reply();
        longer.extend([9; 20]);
        assert_eq!(Reply::parse(&longer, NUMBER), Ok(wanted));
    }

    #[test]
    fn what_is_no_reply_is_refused_and_reported() {
        let with = |offset: usize, value: u8| {
            let mut bytes = reply();
            bytes[offset] = value;
            Reply::parse(&bytes, NUMBER)
        };
        assert_eq!(Reply::parse(&reply()[..47], NUMBER), Err(ReplyError::Short(47)));
        assert_eq!(with(0, 0x23), Err(ReplyError::Mode(3)));
        assert_eq!(with(0, 0x04), Err(ReplyError::Version(0)));
        assert_eq!(with(0, 0x3c), Err(ReplyError::Version(7)));
        assert_eq!(with(24, 0xff), Err(ReplyError::Origin));
        assert_eq!(with(47, 0), Err(ReplyError::Unstamped));
        assert_eq!(with(39, 0), Err(ReplyError::Unstamped));
        let mut kiss = reply();
        kiss[1] = 0;
        kiss[12..16].copy_from_slice(b"RATE");
        let refused = Reply::parse(&kiss, NUMBER).unwrap_err();
        assert_eq!(refused, ReplyError::Kiss(*b"RATE"));
        assert_eq!(refused.to_string(), "kiss-o'-death RATE");
        kiss[12..16].copy_from_slice(b"INIT");
        assert_eq!(Reply::parse(&kiss, NUMBER).unwrap().stratum, UNSYNCHRONISED);
        kiss[12..16].copy_from_slice(b"RATE");
        // One that answers no request of ours could stop us from asking anybody.
        kiss[24] = 0xff;
        assert_eq!(Reply::parse(&kiss, NUMBER), Err(ReplyError::Origin));
    }

    #[test]
    fn references_have_names() {
        assert_eq!(reference_name(*b"GPS\0", 1), "GPS");
        assert_eq!(reference_name([0xff, b'A', 0, 0], 1), "\\xffA");
        assert_eq!(reference_name([192, 0, 2, 7], 3), "192.0.2.7");
    }

    #[test]
    fn eras_meet() {
        // The first second of era 1, 7 February 2036 (RFC 5905, figure 4), and the one before.
        let era_s = (1i64 << 32) - UNIX_EPOCH_S;
        let [before, after] =
            [era_s - 1, era_s].map(|s| Timestamp::from_unix_ns(s * 1_000_000_000));
        assert_eq!(after, Timestamp(0));
        assert_eq!((after.since(before), before.since(after)), (1_000_000_000, -1_000_000_000));
    }

    proptest! {
        #[test]
        fn differences_are_those_of_unix_time(
            at in 0..4_000_000_000_000_000_000i64,
            later in -2_000_000_000_000_000_000..2_000_000_000_000_000_000i64,
        ) {
            let difference =
                Timestamp::from_unix_ns(at + later).since(Timestamp::from_unix_ns(at));
            prop_assert!(difference.abs_diff(later) <= 1, "{difference} {later}");
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let number = bytes.get(24..32).map_or(0, |b| u64::from_be_bytes(b.try_into().unwrap()));
            let _ = Reply::parse(&bytes, number);
        }
    }
}
