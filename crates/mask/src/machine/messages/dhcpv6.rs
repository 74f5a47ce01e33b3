//! DHCP for IPv6 (RFC 8415): addresses, machine identifiers, names, times.
//!
//! ```text
//! client   | kind | transaction | option | option ..
//! relay    | kind | hops | link | peer | option ..       one of them holds the message, perhaps another relay's
//! option   | code | length | an association | option ..  which has addresses as options
//! ```

use super::{
    dhcp::{ADDRESS, ID, MAC, TEXT, TIME, duid},
    message::Message,
};

/// Lists of options, one in the other: those of eight relays (section 7.6), a client's, an association's, an
/// address's, and some to spare.
const DEPTH: usize = 16;
/// Hardware of [`LINK_LAYER`]'s address.
const ETHERNET: u16 = 1;

/// Masks a message.
pub(super) fn mask(message: &mut Message<'_>) -> Option<()> {
    let end = message.from.len();
    nested(message, 0, end, DEPTH)
}

/// A message, perhaps in a relay's.
fn nested(message: &mut Message<'_>, at: usize, end: usize, depth: usize) -> Option<()> {
    message.keep(at..at + 1)?;
    match message.u8_at(at)? {
        // Of clients and servers (section 7.3), and those that register addresses (RFC 9686).
        1..=11 | 36 | 37 => {
            message.bytes(ID, at + 1..at + 4)?;
            options(message, at + 4, end, depth)
        }
        // Of relays (section 9).
        12 | 13 => {
            message.keep(at + 1..at + 2)?;
            addresses(message, at + 2, at + 34)?;
            options(message, at + 34, end, depth)
        }
        _ => None,
    }
}

fn options(message: &mut Message<'_>, at: usize, end: usize, depth: usize) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    list(message, at, end, |message, code, at, end| option(message, code, at, end, depth))
}

/// Keeps codes and lengths of a list of options, and does this with each one's content.
fn list(
    message: &mut Message<'_>,
    mut at: usize,
    end: usize,
    each: impl Fn(&mut Message<'_>, u16, usize, usize) -> Option<()>,
) -> Option<()> {
    while at < end {
        let (code, begin) = (message.u16_at(at)?, at + 4);
        message.keep(at..begin)?;
        at = begin + usize::from(message.u16_at(at + 2)?);
        if at > end {
            return None;
        }
        each(message, code, begin, at)?;
    }
    (at == end).then_some(())
}

/// What an option says; what is not known, or not as long as it should be, is zero. So is always what a relay
/// says of the line (18, 37), what authenticates (11) and what is asked for (6), as in DHCP for IPv4.
fn option(message: &mut Message<'_>, code: u16, at: usize, end: usize, depth: usize) -> Option<()> {
    match (code, end - at) {
        // Of the client and of the server.
        (1 | 2, _) => duid(message, at, end),
        // Associations for addresses and prefixes: their number, which many make of the MAC address, and when
        // to renew; temporary ones are not renewed.
        (3 | 25, 12..) => {
            message.bytes(MAC, at..at + 4)?;
            times(message, at + 4, at + 12)?;
            options(message, at + 12, end, depth)
        }
        (4, 4..) => {
            message.bytes(MAC, at..at + 4)?;
            options(message, at + 4, end, depth)
        }
        (5, 24..) => {
            message.address(ADDRESS, at..at + 16)?;
            times(message, at + 16, at + 24)?;
            options(message, at + 24, end, depth)
        }
        (26, 25..) => {
            times(message, at, at + 8)?;
            // The prefix's length.
            message.keep(at + 8..at + 9)?;
            message.address(ADDRESS, at + 9..at + 25)?;
            options(message, at + 25, end, depth)
        }
        (9, _) => nested(message, at, end, depth),
        // The server's own, and servers of all kinds (RFC 3319, RFC 3646, RFC 3898, RFC 4075, RFC 4280).
        (12 | 22 | 23 | 27 | 28 | 31 | 34, length) if length % 16 == 0 => {
            addresses(message, at, end)
        }
        (56, _) => list(message, at, end, time_server),
        // How long it has taken; when to ask again, and how often at most (RFC 7083).
        (8, 2) => message.bytes(TIME, at..end),
        (32 | 82 | 83, 4) => times(message, at, end),
        // How it ended, in a number and in words; the message that is to come.
        (13, 2..) => {
            message.keep(at..at + 2)?;
            message.text(TEXT, at + 2..end)
        }
        (19, 1) => message.keep(at..end),
        // Classes of users and of vendors, who have a number.
        (15, _) => strings(message, at, end),
        (16, 4..) => {
            message.bytes(TEXT, at..at + 4)?;
            strings(message, at + 4, end)
        }
        // What a vendor says is its own: only its structure stays.
        (17, 4..) => list(message, at + 4, end, |_, _, _, _| Some(())),
        // Domains, of servers, to search in, of tunnels (RFC 6334); the client's own behind flags (RFC 4704).
        (21 | 24 | 29 | 30 | 33 | 64, _) => names(message, at, end),
        (39, 1..) => {
            message.keep(at..at + 1)?;
            names(message, at + 1, end)
        }
        // Subscribers, time zones, the boot file, the portal (RFC 4580, RFC 4833, RFC 5970, RFC 8910).
        (38 | 41 | 42 | 59 | 103, _) => message.text(TEXT, at..end),
        (LINK_LAYER, 8) if message.u16_at(at)? == ETHERNET => {
            message.keep(at..at + 2)?;
            message.address(MAC, at + 2..end)
        }
        _ => Some(()),
    }
}

/// The client's, as a relay saw it (RFC 6939).
const LINK_LAYER: u16 = 79;

/// An address or a name of a server of NTP (RFC 5908, section 4).
fn time_server(message: &mut Message<'_>, code: u16, at: usize, end: usize) -> Option<()> {
    match (code, end - at) {
        (1 | 2, 16) => message.address(ADDRESS, at..end),
        (3, _) => names(message, at, end),
        _ => Some(()),
    }
}

fn addresses(message: &mut Message<'_>, at: usize, end: usize) -> Option<()> {
    (at..end).step_by(16).try_for_each(|at| message.address(ADDRESS, at..at + 16))
}

fn times(message: &mut Message<'_>, at: usize, end: usize) -> Option<()> {
    (at..end).step_by(4).try_for_each(|at| message.bytes(TIME, at..at + 4))
}

/// Strings behind their lengths.
fn strings(message: &mut Message<'_>, mut at: usize, end: usize) -> Option<()> {
    while at < end {
        message.keep(at..at + 2)?;
        let begin = at + 2;
        at = begin + usize::from(message.u16_at(at)?);
        message.text(TEXT, begin..at)?;
    }
    (at == end).then_some(())
}

/// Names as DNS writes them, but never with pointers (section 10); the last one may have no end. Each label
/// is hashed with those above it, so that what is in one domain stays in one.
fn names(message: &mut Message<'_>, mut at: usize, end: usize) -> Option<()> {
    let (from, mut labels) = (message.from, Vec::new());
    while at < end {
        let length = message.u8_at(at)?;
        message.keep(at..at + 1)?;
        labels.push(at + 1..at + 1 + length);
        at += 1 + length;
        if length > 63 || at > end {
            return None;
        }
        if length == 0 || at == end {
            for label in labels.drain(..) {
                message.text_as(TEXT, label.clone(), &from[label.start..at])?;
            }
        }
    }
    Some(())
}

#[cfg(test)]
pub(super) mod tests;
