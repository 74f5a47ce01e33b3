//! The messages of BGP-4 (RFC 4271 section 4): what is sent is built with netgauze, what is received is
//! read here.
//!
//! Every message is a header of 19 bytes (16 of marker, all ones; two of length; one of type) and a
//! body. A speaker that never learns needs little of what it receives: all of OPEN, code and subcode of
//! NOTIFICATION, and of UPDATE only whether its two lengths fit. Reading just that, with bounds checked
//! by [`split`] before anything else, keeps a hostile neighbour away from the large decoders.

pub mod attributes;
pub mod learned;
pub mod link_state;
pub mod notification;
pub mod open;
pub mod update;

use netgauze_bgp_pkt::BgpMessage;
use netgauze_parse_utils::WritablePdu;
use notification::Notification;

/// Length of the header (RFC 4271 section 4.1).
pub const HEADER: usize = 19;

/// The longest message; RFC 8654 is not negotiated (RFC 4271 section 4.1).
pub const MAX: usize = 4096;

/// The types of message (RFC 4271 section 4.1, RFC 2918 section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Opens a session.
    Open = 1,
    /// Announces and withdraws routes.
    Update = 2,
    /// Reports an error; the connection closes after it.
    Notification = 3,
    /// Keeps the session alive.
    Keepalive = 4,
    /// Asks for all routes of a family again.
    RouteRefresh = 5,
}

impl Kind {
    /// The shortest and the longest message of the type (RFC 4271 section 6.1; RFC 2918 section 3).
    fn lengths(self) -> (usize, usize) {
        match self {
            Self::Open => (29, MAX),
            Self::Update => (23, MAX),
            Self::Notification => (21, MAX),
            Self::Keepalive => (HEADER, HEADER),
            Self::RouteRefresh => (23, 23),
        }
    }
}

/// An address family that is announced: unicast of one version of IP (RFC 4760).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// AFI 1, SAFI 1.
    Ipv4,
    /// AFI 2, SAFI 1.
    Ipv6,
}

impl Family {
    /// Both families.
    pub const ALL: [Self; 2] = [Self::Ipv4, Self::Ipv6];

    /// The family of these codes, if it is one of ours.
    pub fn from_codes(afi: u16, safi: u8) -> Option<Self> {
        match (afi, safi) {
            (1, 1) => Some(Self::Ipv4),
            (2, 1) => Some(Self::Ipv6),
            _ => None,
        }
    }
}

/// A set of families.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Families {
    /// IPv4 unicast.
    pub ipv4: bool,
    /// IPv6 unicast.
    pub ipv6: bool,
}

impl Families {
    /// Whether the family is in the set.
    pub fn has(self, family: Family) -> bool {
        match family {
            Family::Ipv4 => self.ipv4,
            Family::Ipv6 => self.ipv6,
        }
    }

    /// Puts the family into the set.
    pub fn insert(&mut self, family: Family) {
        match family {
            Family::Ipv4 => self.ipv4 = true,
            Family::Ipv6 => self.ipv6 = true,
        }
    }

    /// What either set has.
    pub fn or(self, other: Self) -> Self {
        Self { ipv4: self.ipv4 || other.ipv4, ipv6: self.ipv6 || other.ipv6 }
    }

    /// What both sets have.
    pub fn and(self, other: Self) -> Self {
        Self { ipv4: self.ipv4 && other.ipv4, ipv6: self.ipv6 && other.ipv6 }
    }
}

/// Takes the first message off `buffer`: its type and its body, which [`HEADER`] bytes come
/// before.
///
/// Returns `None` while the message is not complete; a header that is complete is judged at once.
///
/// # Errors
/// The NOTIFICATION to answer with (RFC 4271 section 6.1).
pub fn split(buffer: &[u8]) -> Result<Option<(Kind, &[u8])>, Notification> {
    // A marker that is wrong from its first byte on is not waited for.
    if buffer.iter().take(16).any(|byte| *byte != 0xff) {
        return Err(Notification::header(notification::NOT_SYNCHRONIZED, &[]));
    }
    let Some(header) = buffer.get(..HEADER) else { return Ok(None) };
    let (length, code) = ([header[16], header[17]], header[18]);
    let bad_length = || Notification::header(notification::BAD_LENGTH, &length);
    let total = usize::from(u16::from_be_bytes(length));
    if !(HEADER..=MAX).contains(&total) {
        return Err(bad_length());
    }
    let kind = match code {
        1 => Kind::Open,
        2 => Kind::Update,
        3 => Kind::Notification,
        4 => Kind::Keepalive,
        5 => Kind::RouteRefresh,
        _ => return Err(Notification::header(notification::BAD_TYPE, &[code])),
    };
    let (shortest, longest) = kind.lengths();
    if !(shortest..=longest).contains(&total) {
        return Err(bad_length());
    }
    Ok(buffer.get(HEADER..total).map(|body| (kind, body)))
}

/// Appends a message that netgauze has built.
///
/// Writing into memory cannot fail, and what is built here is within [`MAX`] by construction.
fn append(message: &BgpMessage, out: &mut Vec<u8>) {
    message.write(out).expect("a message of at most 4,096 bytes is written into memory");
}

/// Appends a KEEPALIVE.
pub fn keepalive(out: &mut Vec<u8>) {
    append(&BgpMessage::KeepAlive, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(length: u16, code: u8) -> Vec<u8> {
        let mut bytes = vec![0xff; 16];
        bytes.extend(length.to_be_bytes());
        bytes.push(code);
        bytes
    }

    /// RFC 4271 section 6.1, case by case.
    #[test]
    fn each_header_error_has_its_notification() {
        let cases: &[(u16, u8, u8, &[u8])] = &[
            (18, 4, notification::BAD_LENGTH, &[0, 18]),
            (0, 4, notification::BAD_LENGTH, &[0, 0]),
            (4097, 2, notification::BAD_LENGTH, &[0x10, 0x01]),
            (65535, 2, notification::BAD_LENGTH, &[0xff, 0xff]),
            (28, 1, notification::BAD_LENGTH, &[0, 28]),
            (22, 2, notification::BAD_LENGTH, &[0, 22]),
            (20, 3, notification::BAD_LENGTH, &[0, 20]),
            (20, 4, notification::BAD_LENGTH, &[0, 20]),
            (22, 5, notification::BAD_LENGTH, &[0, 22]),
            (24, 5, notification::BAD_LENGTH, &[0, 24]),
            (19, 0, notification::BAD_TYPE, &[0]),
            (19, 6, notification::BAD_TYPE, &[6]),
            (19, 255, notification::BAD_TYPE, &[255]),
        ];
        for (length, code, subcode, data) in cases {
            assert_eq!(
                split(&header(*length, *code)),
                Err(Notification::header(*subcode, data)),
                "length {length}, type {code}"
            );
        }
        for position in 0..16 {
            let mut bytes = header(19, 4);
            bytes[position] = 0xfe;
            assert_eq!(
                split(&bytes),
                Err(Notification::header(notification::NOT_SYNCHRONIZED, &[])),
                "marker byte {position}"
            );
            assert!(split(&bytes[..=position]).is_err(), "marker byte {position}, nothing behind");
        }
    }

    #[test]
    fn a_message_is_taken_when_it_is_complete() {
        let mut bytes = header(23, 2);
        bytes.extend([0, 0, 0, 0]);
        bytes.extend(header(19, 4));
        for end in 0..23 {
            assert_eq!(split(&bytes[..end]), Ok(None), "{end} bytes");
        }
        assert_eq!(split(&bytes), Ok(Some((Kind::Update, &[0u8, 0, 0, 0][..]))));
        assert_eq!(split(&bytes[23..]), Ok(Some((Kind::Keepalive, &[][..]))));
    }
}
