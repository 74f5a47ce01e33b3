//! Protocols of lines: HTTP/1 (RFC 9112, section 2) and SIP (RFC 3261, section 7).
//!
//! ```text
//! GET /a/page HTTP/1.1      method and version stay, the target is treated
//! Host: www.example.org     names of fields stay, their values are treated by what they reveal
//!                           the body is treated whole
//! ```
//!
//! A message begins with its head; what goes on in further segments is not known to be one, and removed.

use super::message::Message;
use std::ops::Range;

/// What of a protocol is which part.
pub(super) struct Protocol {
    versions: &'static [&'static [u8]],
    methods: &'static [&'static [u8]],
    target: usize,
    /// Values of some fields, by their names in lower case.
    special: (&'static [&'static str], usize),
    header: usize,
    body: usize,
}

pub(super) const HTTP: Protocol = Protocol {
    versions: &[b"HTTP/1.0", b"HTTP/1.1"],
    methods: &[
        b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH",
    ],
    target: 19,
    special: (&["host"], 20),
    header: 21,
    body: 22,
};

pub(super) const SIP: Protocol = Protocol {
    versions: &[b"SIP/2.0"],
    methods: &[
        b"INVITE",
        b"ACK",
        b"BYE",
        b"CANCEL",
        b"REGISTER",
        b"OPTIONS",
        b"PRACK",
        b"SUBSCRIBE",
        b"NOTIFY",
        b"PUBLISH",
        b"INFO",
        b"REFER",
        b"MESSAGE",
        b"UPDATE",
    ],
    target: 23,
    // Also in their short forms (RFC 3261, section 7.3.3).
    special: (&["from", "f", "to", "t", "contact", "m", "via", "v", "call-id", "i"], 24),
    header: 25,
    body: 26,
};

/// Whether a field's value says how long a message is and no more, which is structure.
fn is_structure(name: &str, value: &[u8]) -> bool {
    match name {
        "content-length" | "l" => value.len() < 20 && value.iter().all(u8::is_ascii_digit),
        "transfer-encoding" => value == b"chunked",
        _ => false,
    }
}

/// Masks a message of which all of the head is there.
pub(super) fn mask(message: &mut Message<'_>, of: &Protocol) -> Option<()> {
    let whole = message.from;
    let end = whole.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let (mut at, mut is_first) = (0, true);
    while at < end - 2 {
        let next = at + whole[at..].windows(2).position(|window| window == b"\r\n")?;
        if is_first {
            start(message, of, at..next)?;
        } else {
            field(message, of, at..next)?;
        }
        message.keep(next..next + 2)?;
        (at, is_first) = (next + 2, false);
    }
    message.keep(end - 2..end)?;
    message.text(of.body, end..whole.len())
}

/// A request's line or a status line: what is between the version and the end, or the method and the version.
fn start(message: &mut Message<'_>, of: &Protocol, line: Range<usize>) -> Option<()> {
    let bytes = &message.from[line.clone()];
    let first = line.start + bytes.iter().position(|byte| *byte == b' ')?;
    let last = line.start + bytes.iter().rposition(|byte| *byte == b' ')?;
    if of.versions.contains(&&message.from[line.start..first]) {
        // Version, status, and a reason, which says no more.
        let reason = first + 4;
        let is_status = message.from.get(first + 1..reason)?.iter().all(u8::is_ascii_digit);
        if !is_status || reason > line.end {
            return None;
        }
        message.keep(line.start..reason)?;
        return message.text(of.header, reason..line.end);
    }
    let method = &message.from[line.start..first];
    let version = &message.from[last + 1..line.end];
    if first == last || !of.methods.contains(&method) || !of.versions.contains(&version) {
        return None;
    }
    message.keep(line.start..first + 1)?;
    message.text(of.target, first + 1..last)?;
    message.keep(last..line.end)
}

/// A field, or the rest of the one before (obsolete folding).
fn field(message: &mut Message<'_>, of: &Protocol, line: Range<usize>) -> Option<()> {
    let bytes = &message.from[line.clone()];
    if bytes.first().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
        message.keep(line.start..line.start + 1)?;
        return message.text(of.header, line.start + 1..line.end);
    }
    let colon = bytes.iter().position(|byte| *byte == b':')?;
    let name = std::str::from_utf8(&bytes[..colon]).ok()?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let blanks = bytes[colon + 1..].iter().take_while(|byte| **byte == b' ').count();
    let value = line.start + colon + 1 + blanks..line.end;
    // An unregistered name may itself reveal something.
    let names = line.start..value.start;
    if KNOWN.contains(&name.as_str()) || of.special.0.contains(&name.as_str()) {
        message.keep(names)?;
    } else {
        message.text(of.header, line.start..line.start + colon)?;
        message.keep(line.start + colon..value.start)?;
    }
    match name.as_str() {
        name if is_structure(name, &message.from[value.clone()]) => message.keep(value),
        name if of.special.0.contains(&name) => message.text(of.special.1, value),
        _ => message.text(of.header, value),
    }
}

/// Fields whose names stay: the usual ones of both protocols.
const KNOWN: [&str; 47] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "c",
    "cookie",
    "cseq",
    "date",
    "etag",
    "expect",
    "expires",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "keep-alive",
    "l",
    "last-modified",
    "location",
    "max-forwards",
    "origin",
    "pragma",
    "proxy-authorization",
    "range",
    "record-route",
    "referer",
    "retry-after",
    "route",
    "server",
    "set-cookie",
    "supported",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "www-authenticate",
];
