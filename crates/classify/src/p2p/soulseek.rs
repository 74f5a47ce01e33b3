//! Soulseek, as Nicotine+ and Museek+ describe it (it has no standard).
//!
//! ```text
//! with the server    u32 length | u32 code | contents       1 login, 2 own port, 3 address, 18 connect
//! first to a peer    u32 length | u8 0 pierce | u32 token
//!                    u32 length | u8 1 init | text user | text P, F or D | u32 token
//! text               u32 length | bytes
//! ```
//! Numbers are little-endian, addresses backwards. A login and an init have texts whose lengths fit and
//! are known alone; a pierce is confirmed by what follows it.

use super::{Context, Detection, Match, Protocol, Streams, edonkey::backwards};
use crate::{
    flow::Side,
    hosts::{Hosts, Source},
};
use std::net::SocketAddr;
use wire::Reader;

/// Nicotine+ takes names of at most 30 characters; other clients more.
const NAME: usize = 64;

/// A text that can be read, not longer than that.
fn text<'a>(reader: &mut Reader<'a>, longest: usize) -> Option<&'a [u8]> {
    let length = reader.u32_le()? as usize;
    let text = (length <= longest).then(|| reader.take(length))??;
    text.iter().all(|byte| !byte.is_ascii_control()).then_some(text)
}

/// The length and the contents of the first message, if it is not too long for those that are looked for.
fn first(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut reader = Reader::new(bytes);
    let length = reader.u32_le()? as usize;
    (5..=512).contains(&length).then_some((length, reader.rest()))
}

/// Login: code 1, name, password, version, hash of both in hexadecimal digits, minor version.
fn login(length: usize, contents: &[u8]) -> Option<()> {
    let mut reader = Reader::new(contents.get(..length)?);
    (reader.u32_le()? == 1).then_some(())?;
    let name = text(&mut reader, NAME)?;
    text(&mut reader, 128)?;
    let version = reader.u32_le()?;
    let hash = if reader.is_empty() { &[][..] } else { text(&mut reader, 32)? };
    let whole = match hash.len() {
        0 => reader.is_empty(),
        32 => hash.iter().all(u8::is_ascii_hexdigit) && reader.rest().len() <= 4,
        _ => false,
    };
    (whole && !name.is_empty() && version < 1 << 16).then_some(())
}

/// Init: code 1, name, kind of connection, token.
fn init(length: usize, contents: &[u8]) -> Option<()> {
    let mut reader = Reader::new(contents.get(..length)?);
    (reader.u8()? == 1).then_some(())?;
    let name = text(&mut reader, NAME)?;
    let kind = text(&mut reader, 1)?;
    // The token is one of 32 bits; some clients write 64.
    let fits = !name.is_empty() && matches!(kind, b"P" | b"F" | b"D");
    (fits && matches!(reader.rest().len(), 4 | 8)).then_some(())
}

/// Whether the ends speak it.
pub(super) fn tcp(streams: Streams<'_>) -> Detection {
    if streams.client.is_empty() {
        return if streams.server.is_empty() { Detection::Perhaps } else { Detection::No };
    }
    let head: [u8; 4] = match streams.client.first_chunk() {
        Some(head) => *head,
        // Lengths of first messages have two bytes of zero.
        None if streams.client.len() < 3 || streams.client.get(2) == Some(&0) => {
            return Detection::Perhaps;
        }
        None => return Detection::No,
    };
    if head[2..] != [0, 0] {
        return Detection::No;
    }
    let Some((length, contents)) = first(streams.client) else { return Detection::No };
    if contents.len() < length {
        // What came must go on to be one of the two.
        let code = contents.get(..4).unwrap_or(contents);
        let fits = code.first().is_none_or(|code| *code == 1) || (length == 5 && code[0] == 0);
        return if fits { Detection::Perhaps } else { Detection::No };
    }
    if login(length, contents).is_some() {
        return Match::certain(Protocol::Soulseek, "login at the server");
    }
    if init(length, contents).is_some() {
        return Match::certain(Protocol::Soulseek, "first message to a peer");
    }
    if length == 5 && contents.first() == Some(&0) {
        // A pierced firewall: then messages of peers follow, from either end.
        let after = contents.get(5..).unwrap_or_default();
        for bytes in [after, streams.server] {
            match peer(bytes) {
                Some(true) => return Match::certain(Protocol::Soulseek, "messages of peers"),
                Some(false) => return Detection::No,
                None => {}
            }
        }
        return Detection::Perhaps;
    }
    Detection::No
}

/// Whether bytes begin with a peer's message, by its length and code; unknown if they are too few.
fn peer(bytes: &[u8]) -> Option<bool> {
    let mut reader = Reader::new(bytes);
    let (length, code) = (reader.u32_le()?, reader.u32_le()?);
    let fits = match code {
        // Shares and information asked for.
        4 | 15 => length == 4,
        5 | 9 | 16 | 37 | 40 | 41 | 43 | 44 | 46 | 50..=52 => length >= 8,
        8 | 36 => length >= 12,
        _ => false,
    };
    Some(fits && length < 16 << 20)
}

/// The client's own port, and the peers that the server names.
pub(super) fn learn(
    read: &mut [usize; 2],
    streams: Streams<'_>,
    context: &Context<'_>,
    hosts: &mut Hosts,
) {
    for (from, bytes) in [(Side::Client, streams.client), (Side::Server, streams.server)] {
        let context = Context { from, ..*context };
        let mut reader = Reader::new(bytes.get(read[from as usize]..).unwrap_or_default());
        while let Some(length) = reader.u32_le()
            && let Some(contents) = reader.take(length as usize)
        {
            read[from as usize] = bytes.len() - reader.rest().len();
            match (from, named(from, contents)) {
                (Side::Client, Some(socket)) => {
                    context.announces(hosts, socket.port(), Protocol::Soulseek);
                }
                (Side::Server, Some(socket)) => {
                    context.names(hosts, socket, Protocol::Soulseek, Source::Soulseek);
                }
                (_, None) => {}
            }
        }
    }
}

/// The socket in a message to or from the server.
fn named(from: Side, contents: &[u8]) -> Option<SocketAddr> {
    let mut reader = Reader::new(contents);
    let code = reader.u32_le()?;
    let ip = match (from, code) {
        (Side::Client, 2) => [0, 0, 0, 0].into(),
        (Side::Server, 3) => {
            text(&mut reader, NAME)?;
            backwards(&mut reader)?
        }
        (Side::Server, 18) => {
            text(&mut reader, NAME)?;
            text(&mut reader, 1)?;
            backwards(&mut reader)?
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::try_from(reader.u32_le()?).ok()?))
}
