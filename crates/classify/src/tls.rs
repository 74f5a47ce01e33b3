//! TLS ClientHellos: the server's name, and the client's fingerprint JA4.
//!
//! Read RFC 8446 (sections 4.1.2, 5.1), RFC 6066 (section 3) and RFC 7301; JA4 as FoxIO describes it
//! (`technical_details/JA4.md` of github.com/FoxIO-LLC/ja4, BSD-3-Clause; the rest of JA4+ has another
//! licence and is not here).
//!
//! ```text
//! record 22 | handshake 1 ClientHello: version, random, session, ciphers, compression, extensions
//! ```
//!
//! A hello may be split over records, and over segments: [`client_hello`] is asked again with more bytes.

mod ja4;
#[cfg(test)]
pub(crate) mod tests;

pub use ja4::{Carrier, ja4};
use wire::Reader;

/// Longest hello that is read.
const LONGEST: usize = 16 * 1024;
/// Most cipher suites, extensions and the like that are kept.
const MANY: usize = 256;
/// Bytes of the longest name of a host (RFC 1035, section 2.3.4).
const LONGEST_NAME: usize = 253;

/// What the first bytes of a client are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Not a ClientHello, whatever follows.
    Not,
    /// The beginning of one.
    More,
    /// A whole one.
    Hello(ClientHello),
}

/// What is read of a ClientHello; lists without the values that are reserved to be ignored (RFC 8701).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// The version field; newer versions are in `versions`.
    pub legacy_version: u16,
    /// Cipher suites in the client's order.
    pub ciphers: Vec<u16>,
    /// Types of extensions in the client's order.
    pub extensions: Vec<u16>,
    /// Versions that it offers (RFC 8446, section 4.2.1).
    pub versions: Vec<u16>,
    /// Signature algorithms in the client's order.
    pub signatures: Vec<u16>,
    /// The first application protocol that it offers (RFC 7301).
    pub alpn: Option<Vec<u8>>,
    /// Whether it names the server at all.
    pub named: bool,
    /// The server's name, in lower case; none where it is no name of a host.
    pub server_name: Option<String>,
}

/// Reads the first bytes of a client's side of a TCP connection.
pub fn client_hello(stream: &[u8]) -> Found {
    let mut handshake = Vec::new();
    let mut records = Reader::new(stream);
    loop {
        // A record: type 22, version 3.x, length (RFC 8446, section 5.1).
        let rest = records.rest();
        match rest {
            [] => return unfinished(&handshake),
            [22] | [22, 3] => return Found::More,
            [22, 3, minor, ..] if *minor <= 4 => {}
            _ => return Found::Not,
        }
        let (Some(_), Some(length)) = (records.take(3), records.u16()) else { return Found::More };
        let length = usize::from(length);
        if length == 0 || length > LONGEST {
            return Found::Not;
        }
        let there = length.min(records.rest().len());
        handshake.extend_from_slice(records.take(there).unwrap_or_default());
        if let Some(found) = hello_in(&handshake) {
            return found;
        }
        if there < length {
            return Found::More;
        }
    }
}

/// What follows from a handshake message that ends before its time.
fn unfinished(handshake: &[u8]) -> Found {
    if handshake.len() > LONGEST { Found::Not } else { Found::More }
}

/// The ClientHello in handshake bytes, when they are enough to say.
fn hello_in(handshake: &[u8]) -> Option<Found> {
    let mut reader = Reader::new(handshake);
    match reader.u8() {
        None => return None,
        Some(1) => {}
        Some(_) => return Some(Found::Not),
    }
    let length = reader.u24()? as usize;
    if length > LONGEST {
        return Some(Found::Not);
    }
    let body = reader.take(length)?;
    Some(parse(body).map_or(Found::Not, Found::Hello))
}

/// Reads the body of a ClientHello (RFC 8446, section 4.1.2).
pub fn parse(body: &[u8]) -> Option<ClientHello> {
    let mut reader = Reader::new(body);
    let mut hello = ClientHello { legacy_version: reader.u16()?, ..ClientHello::default() };
    reader.take(32)?;
    // Session; compression.
    reader.block8()?;
    hello.ciphers = numbers(reader.block16()?);
    reader.block8()?;
    // Before TLS 1.2 there may be no extensions at all.
    let Some(mut extensions) = reader.block16() else { return Some(hello) };
    while let Some(kind) = extensions.u16() {
        let mut data = extensions.block16()?;
        if is_reserved(kind) || hello.extensions.len() == MANY {
            continue;
        }
        hello.extensions.push(kind);
        match kind {
            0 => {
                hello.named = true;
                hello.server_name = server_name(&mut data);
            }
            13 => hello.signatures = data.block16().map(numbers).unwrap_or_default(),
            16 => {
                hello.alpn = data
                    .block16()
                    .and_then(|mut list| list.block8())
                    .map(|name| name.rest().to_vec())
                    .filter(|name| !name.is_empty());
            }
            43 => hello.versions = data.block8().map(numbers).unwrap_or_default(),
            _ => {}
        }
    }
    Some(hello)
}

/// The first name of a host (RFC 6066, section 3).
fn server_name(data: &mut Reader<'_>) -> Option<String> {
    let mut list = data.block16()?;
    while let Some(kind) = list.u8() {
        let name = list.block16()?.rest();
        if kind == 0 {
            return host_name(name);
        }
    }
    None
}

/// A name of a host in lower case: letters, digits, `-`, `_`, `.`; nothing else goes into logs.
pub(crate) fn host_name(name: &[u8]) -> Option<String> {
    let name = name.strip_suffix(b".").unwrap_or(name);
    let good = (1..=LONGEST_NAME).contains(&name.len())
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte));
    let text = std::str::from_utf8(name).ok().filter(|_| good)?;
    Some(text.to_ascii_lowercase())
}

/// Values that clients send to see them ignored (RFC 8701): 0x0a0a, 0x1a1a, ...
const fn is_reserved(value: u16) -> bool {
    value & 0x0f0f == 0x0a0a && value >> 8 == value & 0xff
}

/// All that is left as numbers of two bytes, without those reserved to be ignored.
fn numbers(mut reader: Reader<'_>) -> Vec<u16> {
    let mut numbers = Vec::new();
    while let Some(number) = reader.u16() {
        if !is_reserved(number) && numbers.len() < MANY {
            numbers.push(number);
        }
    }
    numbers
}
