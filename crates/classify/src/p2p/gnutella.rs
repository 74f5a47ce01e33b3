//! Gnutella 0.4 and 0.6 over TCP and UDP.
//!
//! - TCP handshakes: `GNUTELLA CONNECT/0.6`, answered by `GNUTELLA/0.6 200 OK`; 0.4 has two line feeds.
//! - Downloads are HTTP: `GET /uri-res/N2R?urn:sha1:...`, `GET /get/3/name` with Gnutella's own fields;
//!   hosts behind firewalls are asked to call (`GIV 3:GUID/name`).
//! - UDP: messages of the header below, alone or within the semi-reliable layer (`GND` or `GTA`).
//!
//! ```text
//! 16 GUID | u8 type | u8 time to live | u8 hops | u32 length, little-endian | payload
//! ```
//! The header's length must be the datagram's, which is enough with a known type and few hops.

use super::{
    Before, Context, Detection, Match, Protocol, Streams, begins,
    http::{self, Message},
    plausible,
};
use crate::hosts::{Hosts, Source};
use std::net::{IpAddr, SocketAddr};
use wire::Reader;

const HEADER: usize = 23;
const PONG: u8 = 0x01;
const HIT: u8 = 0x81;

/// How its connections begin, other than downloads.
const GREETINGS: [(&[u8], &str); 4] = [
    (b"GNUTELLA CONNECT/0.", "handshake of Gnutella"),
    (b"GNUTELLA/0.6 ", "answer to a handshake of Gnutella"),
    (b"GNUTELLA OK\n\n", "answer to a handshake of Gnutella 0.4"),
    (b"GNUTELLA PONG\r\n", "answer to a test of Gnutella"),
];

/// Fields of HTTP that only Gnutella has (HUGE, "Partial File Sharing Protocol", Gnutella 0.6).
const FIELDS: [&str; 10] = [
    "X-Gnutella-Content-URN",
    "X-Gnutella-Alternate-Location",
    "X-Gnutella-Servent-ID",
    "X-Gnutella-Maximum-Slot",
    "X-Alt",
    "X-NAlt",
    "X-Falt",
    "X-Queue",
    "X-Queued",
    "X-Available-Ranges",
];

/// Whether the ends speak it.
pub(super) fn tcp(streams: Streams<'_>) -> Detection {
    let ends = [streams.client, streams.server];
    let mut perhaps = ends.iter().all(|bytes| bytes.is_empty());
    for bytes in ends.into_iter().filter(|bytes| !bytes.is_empty()) {
        for (greeting, reason) in GREETINGS {
            match begins(bytes, greeting) {
                Some(true) => return Match::certain(Protocol::Gnutella, reason),
                None => perhaps = true,
                Some(false) => {}
            }
        }
        match given(bytes) {
            Detection::No => {}
            Detection::Perhaps => perhaps = true,
            yes => return yes,
        }
    }
    match download(streams) {
        Detection::No if perhaps => Detection::Perhaps,
        verdict => verdict,
    }
}

/// `GIV index:GUID/name`, two line feeds.
fn given(bytes: &[u8]) -> Detection {
    match begins(bytes, b"GIV ") {
        Some(true) => {}
        Some(false) => return Detection::No,
        None => return Detection::Perhaps,
    }
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return if bytes.len() < 512 { Detection::Perhaps } else { Detection::No };
    };
    let line = bytes.get(4..end).unwrap_or_default();
    let colon = line.iter().position(|byte| *byte == b':').unwrap_or_default();
    let (index, rest) = line.split_at(colon);
    let guid = rest.get(1..33).unwrap_or_default();
    let fits = (1..=10).contains(&index.len())
        && index.iter().all(u8::is_ascii_digit)
        && guid.len() == 32
        && guid.iter().all(u8::is_ascii_hexdigit)
        && rest.get(33) == Some(&b'/');
    if fits {
        Match::certain(Protocol::Gnutella, "file offered to one who asked")
    } else {
        Detection::No
    }
}

/// A file by the hash of its content, or by HTTP with fields of Gnutella.
fn download(streams: Streams<'_>) -> Detection {
    let asks = [&b"GET /"[..], b"HEAD /"].map(|method| begins(streams.client, method));
    if !asks.contains(&Some(true)) {
        let perhaps = asks.contains(&None) && !streams.client.is_empty();
        return if perhaps { Detection::Perhaps } else { Detection::No };
    }
    let Some(request) = Message::read(streams.client) else {
        let waits = streams.server.is_empty() && streams.client.len() < 4096;
        return if waits { Detection::Perhaps } else { Detection::No };
    };
    let target = http::target(request.line, "GET").or_else(|| http::target(request.line, "HEAD"));
    let Some(target) = target else { return Detection::No };
    if let Some(query) =
        target.strip_prefix(b"/uri-res/N2R?").or(target.strip_prefix(b"/uri-res/n2r?"))
        && (query.starts_with(b"urn:sha1:") || query.starts_with(b"urn:bitprint:"))
    {
        return Match::certain(Protocol::Gnutella, "request for a file by its hash");
    }
    let fields = |message: &Message<'_>| FIELDS.iter().any(|name| message.field(name).is_some());
    if !fields(&request) && !target.starts_with(b"/get/") {
        return Detection::No;
    }
    // One end may name the fields by chance; with both it is Gnutella.
    match Message::read(streams.server) {
        Some(answer) if fields(&answer) => {
            Match::certain(Protocol::Gnutella, "download with Gnutella's fields")
        }
        Some(_) => Detection::No,
        None if streams.server.len() < 4096 => Detection::Perhaps,
        None => Detection::No,
    }
}

/// The header's type and payload, if the datagram is one message.
fn message(datagram: &[u8]) -> Option<(u8, &[u8])> {
    let (header, payload) = datagram.split_at_checked(HEADER)?;
    let mut reader = Reader::new(header.get(16..)?);
    let (kind, life, hops) = (reader.u8()?, reader.u8()?, reader.u8()?);
    let length = reader.u32_le()? as usize;
    let shortest = match kind {
        // Ping, route and vendor messages, push, query.
        0x00 => 0,
        PONG => 14,
        0x02 => 2,
        0x30..=0x32 => 1,
        0x40 => 26,
        0x80 => 3,
        HIT => 27,
        _ => return None,
    };
    let fits = length == payload.len() && length >= shortest && length < 1 << 16;
    let zero = header.iter().take(16).all(|byte| *byte == 0);
    (fits && !zero && life <= 16 && hops <= 16 && life + hops > 0).then_some((kind, payload))
}

/// A part of the semi-reliable layer: tag, flags, u16 number, u8 part, u8 parts (0: acknowledged).
fn part(datagram: &[u8]) -> Option<()> {
    let (b"GND" | b"GTA", rest) = datagram.split_at_checked(3)? else { return None };
    let [flags, _, _, part, parts, payload @ ..] = rest else { return None };
    let fits = flags & 0x0c == 0
        && match parts {
            0 => payload.len() <= 8,
            parts => (1..=*parts).contains(part) && !payload.is_empty(),
        };
    fits.then_some(())
}

/// Whether a datagram may be one of Gnutella.
pub(super) fn is_datagram(datagram: &[u8]) -> bool {
    message(datagram).is_some() || part(datagram).is_some()
}

/// Whether a datagram is one of Gnutella, after those before.
pub(super) fn udp(datagram: &[u8], before: &mut Before) -> Detection {
    if message(datagram).is_some() {
        return Match::certain(Protocol::Gnutella, "Gnutella message");
    }
    // A part, or that one was acknowledged.
    let kind = u8::from(datagram.get(7) == Some(&0));
    match part(datagram) {
        Some(()) => plausible(before, kind, Protocol::Gnutella, "two semi-reliable datagrams"),
        None => Detection::No,
    }
}

/// Sockets in pongs and query hits.
pub(super) fn learn_udp(datagram: &[u8], context: &Context<'_>, hosts: &mut Hosts) {
    let socket = |bytes: &[u8]| {
        let mut reader = Reader::new(bytes);
        let port = reader.u16_le()?;
        Some(SocketAddr::new(IpAddr::from(reader.array::<4>()?), port))
    };
    let socket = match message(datagram) {
        Some((PONG, payload)) => socket(payload),
        Some((HIT, payload)) => payload.get(1..).and_then(socket),
        _ => None,
    };
    if let Some(socket) = socket {
        context.names(hosts, socket, Protocol::Gnutella, Source::Gnutella);
    }
}

/// Sockets in the fields of handshakes and downloads: `X-Try: 192.0.2.1:6346,...`.
pub(super) fn learn(streams: Streams<'_>, context: &Context<'_>, hosts: &mut Hosts) {
    const LISTS: [&str; 6] =
        ["X-Try", "X-Try-Ultrapeers", "X-Try-Hubs", "X-Alt", "Listen-IP", "X-Node"];
    let bytes = match context.from {
        crate::flow::Side::Client => streams.client,
        crate::flow::Side::Server => streams.server,
    };
    let Some(message) = Message::read(bytes) else { return };
    for (name, value) in message.fields() {
        if !LISTS.iter().any(|list| name.eq_ignore_ascii_case(list.as_bytes())) {
            continue;
        }
        for entry in value.split(|byte| matches!(byte, b',' | b';')).take(64) {
            // What follows the address is when it was seen.
            let entry = entry.trim_ascii().split(|byte| *byte == b' ').next().unwrap_or_default();
            let Ok(entry) = std::str::from_utf8(entry) else { continue };
            let socket =
                entry.parse().or_else(|_| entry.parse().map(|ip| SocketAddr::new(ip, 6346)));
            if let Ok(socket) = socket {
                context.names(hosts, socket, Protocol::Gnutella, Source::Gnutella);
            }
        }
    }
}
