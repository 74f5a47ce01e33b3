//! RADIUS (RFC 2865, section 3; attributes of RFC 2865, RFC 2866, RFC 2869 and RFC 3162).

use super::message::Message;

const ID: usize = 10;
const TEXT: usize = 11;
const ADDRESS: usize = 12;
const NUMBER: usize = 13;

/// Code, identifier, length, authenticator.
const HEADER: usize = 20;

/// Masks a message. The authenticator and passwords are always removed: they could be tried out.
pub(super) fn mask(message: &mut Message<'_>) -> Option<()> {
    message.keep(0..1)?;
    message.bytes(ID, 1..2)?;
    message.keep(2..4)?;
    if usize::from(message.u16_at(2)?) != message.from.len() {
        return None;
    }
    let mut at = HEADER;
    while at < message.from.len() {
        let (kind, length) = (message.u8_at(at)?, message.u8_at(at + 1)?);
        let end = at + length;
        if length < 2 || end > message.from.len() {
            return None;
        }
        message.keep(at..at + 2)?;
        match (kind, length - 2) {
            // Names of users and of the access server, stations, messages, sessions, ports.
            (
                1 | 11 | 18 | 19 | 20 | 22 | 30 | 31 | 32 | 34 | 35 | 44 | 50 | 60 | 63 | 77 | 87,
                _,
            ) => {
                message.text(TEXT, at + 2..end)?;
            }
            // NAS-IP-Address, Framed-IP-Address, Login-IP-Host; NAS-IPv6-Address, Login-IPv6-Host.
            (4 | 8 | 14, 4) | (95 | 98, 16) => message.address(ADDRESS, at + 2..end)?,
            // Kinds of services, of what is counted and why it ended, and counts.
            (5..=7 | 10 | 12 | 13 | 15 | 27 | 28 | 40..=43 | 45..=49 | 51..=53 | 55 | 61, 4) => {
                message.bytes(NUMBER, at + 2..end)?;
            }
            _ => {}
        }
        at = end;
    }
    Some(())
}
