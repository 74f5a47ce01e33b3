//! Kad, eMule's distributed hash table, version 2 (`KADEMLIA2_...` of eMule and aMule).
//!
//! ```text
//! u8 0xe4 | u8 code | body                     u8 0xe5 | u8 code | body packed by zlib
//! contact: 16 id, 4 address (backwards), u16 UDP port, u16 TCP port, u8 version
//! ```
//! Numbers are little-endian. Messages with a count that agrees with their length, or with tags, are known
//! alone; of others two of different codes are wanted.

use super::{
    Before, Context, Detection, Match, Protocol,
    edonkey::{backwards, tag},
    plausible,
};
use crate::{
    flow::Transport,
    hosts::{Hosts, Source},
};
use std::net::SocketAddr;
use wire::Reader;

const KAD: u8 = 0xe4;
const PACKED: u8 = 0xe5;
/// Bytes of a contact.
const CONTACT: usize = 25;

/// What a message carries.
enum Message<'a> {
    /// Code and length agree.
    Plain,
    /// A count or tags agree too.
    Strong,
    /// A list of contacts that agrees with its count.
    Contacts(&'a [u8]),
    /// The sender's TCP port.
    Hello(u16),
}

fn read(datagram: &[u8]) -> Option<Message<'_>> {
    let [protocol, code, body @ ..] = datagram else { return None };
    if *protocol == PACKED {
        // RFC 1950, section 2.2: eMule packs with the default window, and both bytes are a multiple of 31.
        let head = body.first_chunk().map(|head| u16::from_be_bytes(*head));
        let head = head.is_some_and(|head| head >> 8 == 0x78 && head.is_multiple_of(31));
        let fits = is_code(*code) && body.len() > 8 && head;
        return fits.then_some(Message::Plain);
    }
    if *protocol != KAD {
        return None;
    }
    let n = body.len();
    let plain = match code {
        // Requests to bootstrap and pings are empty.
        0x01 | 0x59 | 0x60 => n == 0,
        0x09 => {
            let mut reader = Reader::new(body);
            reader.take(16 + 2)?;
            let (version, count) = (reader.u8()?, usize::from(reader.u16_le()?));
            let fits = version <= 16 && reader.rest().len() == count * CONTACT;
            return fits.then_some(Message::Contacts(reader.rest()));
        }
        0x11 | 0x19 => {
            let mut reader = Reader::new(body);
            reader.take(16)?;
            let port = reader.u16_le()?;
            let (version, tags) = (reader.u8()?, reader.u8()?);
            for _ in 0..tags {
                tag(&mut reader).filter(|whole| *whole)?;
            }
            let fits = (1..=16).contains(&version) && reader.is_empty();
            return fits.then_some(Message::Hello(port));
        }
        0x21 => n == 33 && matches!(body.first(), Some(0x02 | 0x04 | 0x0b)),
        0x22 => n >= 17,
        0x29 => {
            let contacts = body.get(17..)?;
            let fits = contacts.len() == usize::from(*body.get(16)?) * CONTACT;
            return fits.then_some(Message::Contacts(contacts));
        }
        0x33 => n >= 18,
        0x34 => n == 26,
        0x35 => n == 24,
        0x3b => n >= 34,
        0x43 => n >= 18 + 17,
        0x44 | 0x45 => {
            let mut reader = Reader::new(body.get(32..)?);
            let tags = reader.u8()?;
            let fits = tags > 0 && tag(&mut reader) == Some(true);
            return fits.then_some(Message::Strong);
        }
        0x4b => n == 17 || n == 18,
        0x50..=0x52 => n == 2 || n == 34,
        0x53 => n == 19,
        0x58 => n == 4,
        0x5a => n == 34 || n == 35,
        0x61 => n == 2,
        0x62 => n == 3,
        _ => false,
    };
    plain.then_some(Message::Plain)
}

/// Codes that a packed message can have: those of long ones.
const fn is_code(code: u8) -> bool {
    matches!(code, 0x09 | 0x29 | 0x33 | 0x3b | 0x43 | 0x44 | 0x45)
}

/// Whether a datagram may be one.
pub(super) fn is_message(datagram: &[u8]) -> bool {
    read(datagram).is_some()
}

/// Whether a datagram is a message of Kad, after those before.
pub(super) fn udp(datagram: &[u8], before: &mut Before) -> Detection {
    let kind = datagram.get(1).copied().unwrap_or_default();
    match read(datagram) {
        Some(Message::Strong | Message::Hello(_) | Message::Contacts(_)) => {
            Match::certain(Protocol::Kad, "Kad message")
        }
        Some(Message::Plain) => plausible(before, kind, Protocol::Kad, "two Kad messages"),
        None => Detection::No,
    }
}

/// Contacts, with the sockets of both their protocols, and the sender's own TCP port.
pub(super) fn learn(datagram: &[u8], context: &Context<'_>, hosts: &mut Hosts) {
    match read(datagram) {
        Some(Message::Contacts(contacts)) => {
            for contact in contacts.chunks_exact(CONTACT) {
                let mut reader = Reader::new(contact.get(16..).unwrap_or_default());
                let sockets =
                    (|| Some((backwards(&mut reader)?, reader.u16_le()?, reader.u16_le()?)))();
                let Some((ip, udp, tcp)) = sockets else { continue };
                for (port, over) in [(udp, Transport::Udp), (tcp, Transport::Tcp)] {
                    let socket = SocketAddr::new(ip, port);
                    context.names_over(hosts, socket, Some(over), Protocol::Kad, Source::Kad);
                }
            }
        }
        Some(Message::Hello(port)) => {
            context.announces(hosts, port, Protocol::Kad);
            let udp = context.flow.socket(context.from).port();
            context.announces_over(hosts, udp, Some(Transport::Udp), Protocol::Kad);
        }
        _ => {}
    }
}
