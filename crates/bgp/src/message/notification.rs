//! NOTIFICATION (RFC 4271 section 4.5): a code, a subcode and data; the connection closes after it.
//!
//! Codes are kept as they come, known or not. The subcodes of Cease are in RFC 4486, the text that may
//! go with a shutdown in RFC 9003, the subcodes of FSM errors in RFC 6608, the send hold timer in RFC
//! 9687.

use super::HEADER;
use std::fmt;

/// Message Header Error: Connection Not Synchronized.
pub const NOT_SYNCHRONIZED: u8 = 1;
/// Message Header Error: Bad Message Length; the data is the length.
pub const BAD_LENGTH: u8 = 2;
/// Message Header Error: Bad Message Type; the data is the type.
pub const BAD_TYPE: u8 = 3;

/// OPEN Message Error: no subcode fits.
pub const UNSPECIFIC: u8 = 0;
/// OPEN Message Error: Unsupported Version Number; the data is the version we speak.
pub const BAD_VERSION: u8 = 1;
/// OPEN Message Error: Bad Peer AS.
pub const BAD_PEER_AS: u8 = 2;
/// OPEN Message Error: Bad BGP Identifier.
pub const BAD_IDENTIFIER: u8 = 3;
/// OPEN Message Error: Unsupported Optional Parameter.
pub const BAD_PARAMETER: u8 = 4;
/// OPEN Message Error: Unacceptable Hold Time.
pub const BAD_HOLD_TIME: u8 = 6;
/// OPEN Message Error: Unsupported Capability; the data is what is missing (RFC 5492 section 5).
pub const UNSUPPORTED_CAPABILITY: u8 = 7;

/// UPDATE Message Error: Malformed Attribute List.
pub const MALFORMED_ATTRIBUTES: u8 = 1;
/// UPDATE Message Error: Optional Attribute Error.
pub const OPTIONAL_ATTRIBUTE: u8 = 9;

/// Cease: Administrative Shutdown (RFC 4486).
pub const ADMINISTRATIVE_SHUTDOWN: u8 = 2;
/// Cease: BFD Down (RFC 9384).
const BFD_DOWN: u8 = 10;
/// Cease: Administrative Reset (RFC 4486).
pub const ADMINISTRATIVE_RESET: u8 = 4;

/// One NOTIFICATION.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The error's code.
    pub code: u8,
    /// Its subcode.
    pub subcode: u8,
    /// What the code and subcode define.
    pub data: Vec<u8>,
}

impl Notification {
    fn new(code: u8, subcode: u8, data: &[u8]) -> Self {
        Self { code, subcode, data: data.to_vec() }
    }

    /// Message Header Error (RFC 4271 section 6.1).
    pub fn header(subcode: u8, data: &[u8]) -> Self {
        Self::new(1, subcode, data)
    }

    /// OPEN Message Error (RFC 4271 section 6.2).
    pub fn open(subcode: u8, data: &[u8]) -> Self {
        Self::new(2, subcode, data)
    }

    /// UPDATE Message Error (RFC 4271 section 6.3).
    pub fn update(subcode: u8) -> Self {
        Self::new(3, subcode, &[])
    }

    /// Hold Timer Expired (RFC 4271 section 6.5).
    pub fn hold_timer() -> Self {
        Self::new(4, 0, &[])
    }

    /// Finite State Machine Error: a message of type `kind` in OpenSent (1), OpenConfirm (2) or
    /// Established (3) (RFC 6608 section 3).
    pub fn unexpected(subcode: u8, kind: u8) -> Self {
        Self::new(5, subcode, &[kind])
    }

    /// Cease / Administrative Shutdown with a text for the neighbour's operator (RFC 9003 section 2).
    /// The text is cut to 255 bytes at a character's end.
    pub fn shutdown(text: &str) -> Self {
        let mut end = text.len().min(255);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut data = vec![u8::try_from(end).expect("at most 255")];
        data.extend_from_slice(&text.as_bytes()[..end]);
        Self { code: 6, subcode: ADMINISTRATIVE_SHUTDOWN, data }
    }

    /// Cease / BFD Down (RFC 9384 section 3).
    pub fn bfd_down() -> Self {
        Self::new(6, BFD_DOWN, &[])
    }

    /// Reads the body of a NOTIFICATION, which [`super::split`] has found to be two bytes or more.
    pub fn decode(body: &[u8]) -> Self {
        match body {
            [code, subcode, data @ ..] => Self::new(*code, *subcode, data),
            _ => Self::new(0, 0, &[]),
        }
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let length = u16::try_from(HEADER + 2 + self.data.len()).expect("at most 4,096 bytes");
        out.extend([0xff; 16]);
        out.extend(length.to_be_bytes());
        out.extend([3, self.code, self.subcode]);
        out.extend(&self.data);
    }

    /// The text that goes with a shutdown or reset (RFC 9003), made safe to print.
    pub fn text(&self) -> Option<String> {
        if self.code != 6 || !matches!(self.subcode, ADMINISTRATIVE_SHUTDOWN | ADMINISTRATIVE_RESET)
        {
            return None;
        }
        let (length, rest) = self.data.split_first()?;
        let text = rest.get(..usize::from(*length))?;
        let text = config::printable(String::from_utf8_lossy(text).chars());
        if text.is_empty() { None } else { Some(text) }
    }

    /// The names of code and subcode (IANA registry "BGP Error (Notification) Codes").
    fn names(&self) -> (&'static str, &'static str) {
        const NONE: &str = "";
        match (self.code, self.subcode) {
            (1, 1) => ("Message Header Error", "Connection Not Synchronized"),
            (1, 2) => ("Message Header Error", "Bad Message Length"),
            (1, 3) => ("Message Header Error", "Bad Message Type"),
            (1, _) => ("Message Header Error", NONE),
            (2, 1) => ("OPEN Message Error", "Unsupported Version Number"),
            (2, 2) => ("OPEN Message Error", "Bad Peer AS"),
            (2, 3) => ("OPEN Message Error", "Bad BGP Identifier"),
            (2, 4) => ("OPEN Message Error", "Unsupported Optional Parameter"),
            (2, 6) => ("OPEN Message Error", "Unacceptable Hold Time"),
            (2, 7) => ("OPEN Message Error", "Unsupported Capability"),
            (2, 11) => ("OPEN Message Error", "Role Mismatch"),
            (2, _) => ("OPEN Message Error", NONE),
            (3, 1) => ("UPDATE Message Error", "Malformed Attribute List"),
            (3, 2) => ("UPDATE Message Error", "Unrecognized Well-known Attribute"),
            (3, 3) => ("UPDATE Message Error", "Missing Well-known Attribute"),
            (3, 4) => ("UPDATE Message Error", "Attribute Flags Error"),
            (3, 5) => ("UPDATE Message Error", "Attribute Length Error"),
            (3, 6) => ("UPDATE Message Error", "Invalid ORIGIN Attribute"),
            (3, 8) => ("UPDATE Message Error", "Invalid NEXT_HOP Attribute"),
            (3, 9) => ("UPDATE Message Error", "Optional Attribute Error"),
            (3, 10) => ("UPDATE Message Error", "Invalid Network Field"),
            (3, 11) => ("UPDATE Message Error", "Malformed AS_PATH"),
            (3, _) => ("UPDATE Message Error", NONE),
            (4, _) => ("Hold Timer Expired", NONE),
            (5, 1) => ("Finite State Machine Error", "Unexpected Message in OpenSent"),
            (5, 2) => ("Finite State Machine Error", "Unexpected Message in OpenConfirm"),
            (5, 3) => ("Finite State Machine Error", "Unexpected Message in Established"),
            (5, _) => ("Finite State Machine Error", NONE),
            (6, 1) => ("Cease", "Maximum Number of Prefixes Reached"),
            (6, 2) => ("Cease", "Administrative Shutdown"),
            (6, 3) => ("Cease", "Peer De-configured"),
            (6, 4) => ("Cease", "Administrative Reset"),
            (6, 5) => ("Cease", "Connection Rejected"),
            (6, 6) => ("Cease", "Other Configuration Change"),
            (6, 7) => ("Cease", "Connection Collision Resolution"),
            (6, 8) => ("Cease", "Out of Resources"),
            (6, 9) => ("Cease", "Hard Reset"),
            (6, 10) => ("Cease", "BFD Down"),
            (6, _) => ("Cease", NONE),
            (7, _) => ("ROUTE-REFRESH Message Error", NONE),
            (8, _) => ("Send Hold Timer Expired", NONE),
            _ => ("unknown error", NONE),
        }
    }
}

impl fmt::Display for Notification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, subcode) = self.names();
        f.write_str(code)?;
        if !subcode.is_empty() {
            write!(f, " / {subcode}")?;
        }
        write!(f, " ({}/{})", self.code, self.subcode)?;
        match self.text() {
            Some(text) => write!(f, ": {text:?}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let shutdown = Notification::shutdown("site A is going");
        let mut bytes = Vec::new();
        shutdown.encode(&mut bytes);
        assert_eq!(bytes[16..19], [0, 37, 3]);
        assert_eq!(Notification::decode(&bytes[HEADER..]), shutdown);
        assert_eq!(
            shutdown.to_string(),
            "Cease / Administrative Shutdown (6/2): \"site A is going\""
        );
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let shutdown = Notification::shutdown(&"ü".repeat(200));
        assert_eq!(shutdown.data[0], 254);
        assert_eq!(shutdown.data.len(), 255);
        assert_eq!(shutdown.text().unwrap(), "ü".repeat(127));
    }

    #[test]
    fn a_neighbours_text_is_safe_to_print() {
        let mut shutdown = Notification::shutdown("x");
        shutdown.data = b"\x08a\x1b[31mb\xff".to_vec();
        assert_eq!(shutdown.text().unwrap(), "a\u{fffd}[31mb\u{fffd}");
        shutdown.data = vec![9, b'a'];
        assert_eq!(shutdown.text(), None, "a length that lies");
        shutdown.data = Vec::new();
        assert_eq!(shutdown.text(), None);
        assert_eq!(Notification::decode(&[99, 7]).to_string(), "unknown error (99/7)");
    }
}
