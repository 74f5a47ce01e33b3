//! DHCP for IPv4 (RFC 2131, section 2; options of RFC 2132): addresses, MAC addresses, names, times.

use super::message::Message;

pub(super) const ID: usize = 5;
pub(super) const ADDRESS: usize = 6;
pub(super) const MAC: usize = 7;
pub(super) const TEXT: usize = 8;
pub(super) const TIME: usize = 9;

/// Before the options: their cookie is part of it.
const HEADER: usize = 240;
const COOKIE: [u8; 4] = [99, 130, 83, 99];
const ETHERNET: usize = 1;

/// Masks a message of a host on Ethernet.
pub(super) fn mask(message: &mut Message<'_>) -> Option<()> {
    let is_known = message.from.get(HEADER - 4..HEADER)? == COOKIE
        && message.from[1..3] == [ETHERNET as u8, 6];
    if !is_known {
        return None;
    }
    // Kind, hardware, hops; seconds and flags.
    message.keep(0..4)?;
    message.bytes(ID, 4..8)?;
    message.keep(8..12)?;
    for at in [12, 16, 20, 24] {
        message.address(ADDRESS, at..at + 4)?;
    }
    message.address(MAC, 28..34)?;
    // The server's name and the boot file are zero.
    message.keep(HEADER - 4..HEADER)?;
    let mut at = HEADER;
    loop {
        let code = message.u8_at(at)?;
        message.keep(at..at + 1)?;
        match code {
            0 => at += 1,
            255 => return Some(()),
            _ => {
                message.keep(at + 1..at + 2)?;
                let begin = at + 2;
                at = begin + message.u8_at(at + 1)?;
                if at > message.from.len() {
                    return None;
                }
                option(message, code, begin, at)?;
            }
        }
    }
}

fn option(message: &mut Message<'_>, code: usize, at: usize, end: usize) -> Option<()> {
    match (code, end - at) {
        // Kinds of messages and masks. The requested options, and their order, distinguish systems.
        (53, 1) | (1, 4) => message.keep(at..end),
        // Routers and servers of all kinds, the address that is asked for, the server, broadcast.
        (3..=11 | 28 | 41..=45 | 50 | 54, length) if length % 4 == 0 => {
            (at..end).step_by(4).try_for_each(|at| message.address(ADDRESS, at..at + 4))
        }
        (51 | 58 | 59, 4) => message.bytes(TIME, at..end),
        // Names of hosts, domains, vendors and users.
        (12 | 15 | 60 | 62 | 64 | 66 | 67 | 77 | 81, _) => message.text(TEXT, at..end),
        (61, 7) if message.u8_at(at)? == ETHERNET => {
            message.keep(at..at + 1)?;
            message.address(MAC, at + 1..end)
        }
        // An association and a DUID, as in DHCP for IPv6 (RFC 4361, section 6.1).
        (61, 7..) if message.u8_at(at)? == 255 => {
            message.keep(at..at + 1)?;
            message.bytes(MAC, at + 1..at + 5)?;
            duid(message, at + 5, end)
        }
        _ => Some(()),
    }
}

/// Treats what a machine is called by DHCP, both versions (RFC 8415, section 11): its MAC address, which
/// is mapped as elsewhere, with the time of the choice or without; or other bytes that identify it as
/// well.
pub(super) fn duid(message: &mut Message<'_>, at: usize, end: usize) -> Option<()> {
    let is_ethernet = message.u16_at(at + 2) == Some(ETHERNET as u16);
    match (message.u16_at(at), end - at) {
        (Some(1), 14) if is_ethernet => {
            message.keep(at..at + 4)?;
            message.bytes(MAC, at + 4..at + 8)?;
            message.address(MAC, at + 8..end)
        }
        (Some(3), 10) if is_ethernet => {
            message.keep(at..at + 4)?;
            message.address(MAC, at + 4..end)
        }
        // Of other hardware, a vendor's own, a UUID; then what is of no kind.
        (Some(1..=4), 2..) => {
            message.keep(at..at + 2)?;
            message.bytes(MAC, at + 2..end)
        }
        _ => message.bytes(MAC, at..end),
    }
}
