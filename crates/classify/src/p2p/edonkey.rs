//! eDonkey and eMule over TCP and UDP.
//!
//! ```text
//! TCP   u8 0xe3 eDonkey, 0xc5 eMule, 0xd4 packed by zlib | u32 length | u8 code | length - 1 bytes
//! UDP   u8 0xe3, 0xc5                                    | u8 code    | the rest of the datagram
//! ```
//! Numbers are little-endian. There is no standard; codes and layouts are those that eMule and aMule name
//! in their headers (`opcodes.h`, `protocol/ed2k`) and the paper "The eMule Protocol Specification"
//! (Kulbak, Bickson, 2005) explains. A greeting (hello, login) has enough structure to be known alone; of
//! all else two messages are wanted whose codes and lengths agree.

use super::{Before, Context, Detection, Match, Protocol, Streams, plausible};
use crate::{
    flow::Side,
    hosts::{Hosts, Source},
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use wire::Reader;

pub(super) const EDONKEY: u8 = 0xe3;
pub(super) const EMULE: u8 = 0xc5;
pub(super) const PACKED: u8 = 0xd4;

/// No message is longer: parts of files are sent in pieces of at most 10 KiB, lists of files in packets
/// of a few hundred.
const LONGEST: u32 = 2 << 20;

/// A message of TCP, whole or not.
#[derive(Clone, Copy, Debug)]
struct Message<'a> {
    protocol: u8,
    code: u8,
    /// Bytes after the code, as the head says.
    length: usize,
    /// As many of them as came.
    body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads the head; what follows the message stays in the reader.
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let protocol = reader.u8()?;
        let length = reader.u32_le()?;
        let code = reader.u8()?;
        let fits = matches!(protocol, EDONKEY | EMULE | PACKED) && (1..=LONGEST).contains(&length);
        let length = length.checked_sub(1).filter(|_| fits)? as usize;
        let body = reader.take(length.min(reader.rest().len()))?;
        Some(Self { protocol, code, length, body })
    }

    const fn is_whole(&self) -> bool {
        self.body.len() == self.length
    }

    /// Whether a message with this code can have this length.
    fn fits(&self) -> bool {
        let n = self.length;
        match (self.protocol, self.code) {
            // zlib's first byte (RFC 1950) is always this with eMule.
            (PACKED, _) => n > 2 && self.body.first().is_none_or(|first| *first == 0x78),
            // Client and server.
            (EDONKEY, 0x01) => n >= 26,
            (EDONKEY, 0x05 | 0x14 | 0x18 | 0x21) => n == 0,
            (EDONKEY, 0x15 | 0x33 | 0x4b | 0x5f) => n >= 4,
            (EDONKEY, 0x16 | 0x1a) => n >= 3,
            (EDONKEY, 0x19) => n == 16 || n == 20 || n == 28,
            (EDONKEY, 0x1c | 0x5c) => n == 4,
            (EDONKEY, 0x23) => n == 16 || n == 20 || n == 28,
            (EDONKEY, 0x32) => n % 6 == 1,
            (EDONKEY, 0x34) => n == 8,
            (EDONKEY, 0x35) => n == 6 || n == 23,
            (EDONKEY, 0x36) => n <= 4,
            (EDONKEY, 0x38) => self.counts(n.wrapping_sub(2)),
            (EDONKEY, 0x40) => (4..=20).contains(&n) && n.is_multiple_of(4),
            (EDONKEY, 0x41) => n >= 26,
            (EDONKEY, 0x42) => n >= 17 && (n - 17).is_multiple_of(6),
            (EDONKEY, 0x44) => n >= 17,
            // Client and client.
            (EDONKEY, 0x46) => n > 24,
            (EDONKEY, 0x47) => n == 40,
            (EDONKEY, 0x48 | 0x49 | 0x4f | 0x51 | 0x5b | 0x58) => (16..=128).contains(&n),
            (EDONKEY, 0x4a | 0x55 | 0x56 | 0x57 | 0x5d | 0x61) => n == 0,
            (EDONKEY, 0x54) => n == 0 || n == 16,
            (EDONKEY, 0x4c) => n >= 31,
            (EDONKEY, 0x4d) => n == 8,
            (EDONKEY, 0x4e | 0x5e) => self.counts(n.wrapping_sub(2)),
            (EDONKEY, 0x50) => n >= 18,
            (EDONKEY, 0x52) => n >= 18 && (n - 18).is_multiple_of(16),
            (EDONKEY, 0x59) => n >= 20,
            (EDONKEY, 0x60) => n >= 6,
            // eMule's own.
            (EMULE, 0x01 | 0x02) => n >= 6,
            (EMULE, 0x40) => n > 24,
            (EMULE, 0x60) => n == 12 || n == 2,
            (EMULE, 0x61) => n >= 5,
            (EMULE, 0x81 | 0x83) => n == 16 || n == 19,
            (EMULE, 0x82 | 0x84) => n >= 18,
            (EMULE, 0x85) => self.body.first().is_none_or(|key| usize::from(*key) + 1 == n),
            (EMULE, 0x86) => n >= 17,
            (EMULE, 0x87) => n == 5,
            (EMULE, 0x90) => n == 16,
            (EMULE, 0x91 | 0x92 | 0x93 | 0xa4 | 0xb0 | 0xb1) => n >= 17,
            (EMULE, 0x97) => n == 0,
            (EMULE, 0x98) => n == 4 || n == 20,
            (EMULE, 0x99) => n >= 34,
            (EMULE, 0x9a) => n >= 22,
            (EMULE, 0x9b | 0x9d) => n == 36 || n == 38,
            (EMULE, 0x9c) => n >= 16,
            (EMULE, 0x9e) => n == 16,
            (EMULE, 0x9f | 0xa0) => n == 0,
            (EMULE, 0xa1 | 0xa2) => n > 28,
            (EMULE, 0xa3) => n == 64,
            (EMULE, 0xa5 | 0xa6) => n >= 1,
            (EMULE, 0xa7) => n == 13 || n == 8,
            (EMULE, 0xa8) => n == 0,
            _ => false,
        }
    }

    /// A u16 at the start says how many bytes follow it.
    fn counts(&self, follow: usize) -> bool {
        match Reader::new(self.body).u16_le() {
            Some(length) => usize::from(length) == follow,
            None => !self.is_whole(),
        }
    }

    /// Hello, its answer, or login: a hash, an id, a port and tags.
    fn greeting(&self) -> Option<Greeting> {
        let mut reader = Reader::new(self.body);
        let reason = match (self.protocol, self.code) {
            (EDONKEY, 0x01) if self.body.first() == Some(&0x10) => {
                reader.u8()?;
                "hello of a client"
            }
            (EDONKEY, 0x01) => "login at a server",
            (EDONKEY, 0x4c) => "answer to a client's hello",
            _ => return None,
        };
        reader.take(16)?;
        let (_id, port, tags) = (reader.u32_le()?, reader.u16_le()?, reader.u32_le()?);
        // Tags as far as they came. At least one distinguishes a greeting from chance.
        let mut read = 0;
        while read < tags.min(4) && tag(&mut reader)? {
            read += 1;
        }
        let fits = (1..=64).contains(&tags) && read > 0 && self.fits();
        fits.then_some(Greeting { port, reason })
    }
}

/// A hello or a login.
struct Greeting {
    /// At which its sender listens.
    port: u16,
    reason: &'static str,
}

/// Passes over a tag: `None` if it is none, false if it did not come whole.
///
/// ```text
/// u8 type, u16 length of name, name, value        u8 type | 0x80, u8 name, value
/// ```
pub(super) fn tag(reader: &mut Reader<'_>) -> Option<bool> {
    let start = reader.rest();
    let Some(first) = reader.u8() else { return Some(false) };
    let kind = first & 0x7f;
    if !matches!(kind, 0x01..=0x0b | 0x11..=0x20) {
        return None;
    }
    let name = match first & 0x80 {
        0 => match reader.u16_le() {
            Some(name) if (1..=64).contains(&name) => usize::from(name),
            Some(_) => return None,
            None => return Some(false),
        },
        _ => 1,
    };
    let mut value = || {
        reader.take(name)?;
        let length = match kind {
            0x01 => 16,
            0x02 => usize::from(reader.u16_le()?),
            0x03 | 0x04 => 4,
            0x05 | 0x09 => 1,
            0x06 => usize::from(reader.u16_le()?) / 8 + 1,
            0x07 => reader.u32_le()? as usize,
            0x08 => 2,
            0x0a => usize::from(reader.u8()?),
            0x0b => 8,
            short => usize::from(short) - 0x10,
        };
        reader.take(length)
    };
    let whole = value().is_some();
    if !whole {
        *reader = Reader::new(start);
    }
    Some(whole)
}

/// Whether the ends speak it.
pub(super) fn tcp(streams: Streams<'_>) -> Detection {
    let mut plausible = [false; 2];
    for (bytes, plausible) in [streams.client, streams.server].into_iter().zip(&mut plausible) {
        match bytes.first() {
            None => continue,
            Some(&(EDONKEY | EMULE | PACKED)) => {}
            Some(_) => return Detection::No,
        }
        let mut reader = Reader::new(bytes);
        let Some(message) = Message::read(&mut reader) else {
            if bytes.len() >= 6 {
                return Detection::No;
            }
            continue;
        };
        if let Some(greeting) = message.greeting() {
            return Match::certain(Protocol::EdonkeyTcp, greeting.reason);
        }
        if !message.fits() {
            return Detection::No;
        }
        *plausible = true;
        if message.is_whole() && Message::read(&mut reader).is_some_and(|next| next.fits()) {
            return Match::certain(Protocol::EdonkeyTcp, "two messages in a row");
        }
    }
    match plausible {
        [true, true] => Match::certain(Protocol::EdonkeyTcp, "messages of both ends"),
        _ => Detection::Perhaps,
    }
}

/// Sources and servers that messages name, as far as they came whole.
pub(super) fn learn(
    read: &mut [usize; 2],
    streams: Streams<'_>,
    context: &Context<'_>,
    hosts: &mut Hosts,
) {
    for (from, bytes) in [(Side::Client, streams.client), (Side::Server, streams.server)] {
        let context = Context { from, ..*context };
        let mut reader = Reader::new(bytes.get(read[from as usize]..).unwrap_or_default());
        while let Some(message) = Message::read(&mut reader).filter(Message::is_whole) {
            read[from as usize] = bytes.len() - reader.rest().len();
            if let Some(greeting) = message.greeting() {
                context.announces(hosts, greeting.port, Protocol::EdonkeyTcp);
            }
            let entries = match (message.protocol, message.code) {
                // Count, servers of address and port.
                (EDONKEY, 0x32) => message.body.get(1..),
                // Hash, count, sources of id and port.
                (EDONKEY, 0x42) => message.body.get(17..),
                (EDONKEY, 0x35) => message.body.get(..6),
                _ => None,
            };
            for socket in entries.into_iter().flat_map(sources) {
                context.names(hosts, socket, Protocol::EdonkeyTcp, Source::Edonkey);
            }
            if let (EDONKEY, 0x44) = (message.protocol, message.code) {
                let mut reader = Reader::new(message.body.get(17..).unwrap_or_default());
                // Behind each source what it can obfuscate, and its hash if the highest bit says so.
                while let (Some(entry), Some(options)) = (reader.take(6), reader.u8()) {
                    for socket in sources(entry) {
                        context.names(hosts, socket, Protocol::EdonkeyTcp, Source::Edonkey);
                    }
                    if options & 0x80 != 0 && reader.take(16).is_none() {
                        break;
                    }
                }
            }
        }
    }
}

/// Address in network order and port in little-endian order, 6 bytes each; a low id is no address.
fn sources(entries: &[u8]) -> impl Iterator<Item = SocketAddr> + '_ {
    entries.chunks_exact(6).filter_map(|entry| {
        let mut reader = Reader::new(entry);
        let ip = Ipv4Addr::from(reader.array::<4>()?);
        let port = reader.u16_le()?;
        (ip.octets()[3] != 0).then_some(SocketAddr::new(IpAddr::V4(ip), port))
    })
}

/// What a datagram says of itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// Its code and length agree.
    Weak,
    /// So do counts within it.
    Strong,
}

fn datagram(datagram: &[u8]) -> Option<Fit> {
    let [protocol, code, body @ ..] = datagram else { return None };
    let n = body.len();
    let weak = match (*protocol, *code) {
        // With servers: a challenge whose low half is fixed, answers that repeat it.
        (EDONKEY, 0x96) => {
            return (n == 4 && body.ends_with(&[0xaa, 0x55])).then_some(Fit::Strong);
        }
        (EDONKEY, 0x97) => (12..=64).contains(&n) && n.is_multiple_of(2),
        (EDONKEY, 0x90 | 0x92 | 0x98) => (3..=1024).contains(&n) && is_search(body, *code),
        (EDONKEY, 0x99) => {
            // Hash, id, port, count of tags, tags.
            let mut reader = Reader::new(body.get(22..)?);
            let tags = reader.u32_le()?;
            let fits = (1..=64).contains(&tags) && tag(&mut reader) == Some(true);
            return fits.then_some(Fit::Strong);
        }
        (EDONKEY, 0x9a) => (16..=16 * 32).contains(&n) && n.is_multiple_of(16),
        (EDONKEY, 0x94) => (20..=28 * 32).contains(&n),
        (EDONKEY, 0x9b) => {
            let count = usize::from(*body.get(16)?);
            return (count > 0 && n >= 17 + 6 * count).then_some(Fit::Strong);
        }
        (EDONKEY, 0x9c) => n == 10,
        (EDONKEY, 0xa2) => n == 0 || (n == 4 && body.starts_with(&[0xff, 0xf0])),
        (EDONKEY, 0xa3) => n >= 4,
        (EDONKEY, 0xa0) => n == 6,
        (EDONKEY, 0xa4) => n == 0,
        (EDONKEY, 0xa1) => n > 0 && n == 1 + 6 * usize::from(*body.first()?),
        // Between clients.
        (EMULE, 0x90) => (16..=16 + 2 + 1024 + 2).contains(&n),
        (EMULE, 0x91) => n >= 2,
        (EMULE, 0x92 | 0x93) => n == 0,
        (EMULE, 0x94) => n >= 32,
        (EMULE, 0x95) => n >= 10,
        (EMULE, 0xfe) => n == 1,
        _ => false,
    };
    weak.then_some(Fit::Weak)
}

/// A search is a tree: an operator, a text with its length, or a number.
fn is_search(body: &[u8], code: u8) -> bool {
    // The third form has tags before the tree.
    if code == 0x90 {
        return body.len() > 8;
    }
    match body {
        [0, 0..=2, ..] => true,
        [1, low, high, text @ ..] => {
            usize::from(u16::from_le_bytes([*low, *high])) <= text.len() && !text.is_empty()
        }
        [2 | 3 | 8, ..] => body.len() >= 8,
        _ => false,
    }
}

/// Whether a datagram may be one of eDonkey's.
pub(super) fn is_datagram(bytes: &[u8]) -> bool {
    datagram(bytes).is_some()
}

/// Whether a datagram is one of eDonkey's, after those before.
pub(super) fn udp(bytes: &[u8], before: &mut Before) -> Detection {
    let kind = bytes.get(1).copied().unwrap_or_default();
    match datagram(bytes) {
        Some(Fit::Strong) => Match::certain(Protocol::EdonkeyUdp, "eDonkey datagram"),
        Some(Fit::Weak) => plausible(before, kind, Protocol::EdonkeyUdp, "two eDonkey datagrams"),
        None => Detection::No,
    }
}

/// Sources that a server names.
pub(super) fn learn_udp(datagram: &[u8], context: &Context<'_>, hosts: &mut Hosts) {
    let entries = match datagram {
        [EDONKEY, 0x9b, body @ ..] => {
            let count = usize::from(body.get(16).copied().unwrap_or_default());
            body.get(17..).and_then(|entries| entries.get(..6 * count))
        }
        [EDONKEY, 0xa1, body @ ..] => body.get(1..),
        _ => None,
    };
    for socket in entries.into_iter().flat_map(sources) {
        context.names(hosts, socket, Protocol::EdonkeyUdp, Source::Edonkey);
    }
}

/// Kad writes addresses backwards.
pub(super) fn backwards(reader: &mut Reader<'_>) -> Option<IpAddr> {
    let [d, c, b, a] = reader.array::<4>()?;
    Some(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
}
