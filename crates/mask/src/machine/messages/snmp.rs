//! SNMP (RFC 1157, RFC 3416, RFC 3412) as BER (X.690): what is in it by its type.
//!
//! Tags and lengths stay. Of version 3 the security parameters are an octet string and so removed or hashed
//! whole, and what is encrypted is one, too.

use super::message::Message;

const COMMUNITY: usize = 14;
const OID: usize = 15;
const STRING: usize = 16;
const ADDRESS: usize = 17;
const NUMBER: usize = 18;

/// Types (X.690, section 8; RFC 3416, section 3): those of numbers are INTEGER, Counter32, Gauge32, TimeTicks
/// and Counter64.
const INTEGER: usize = 0x02;
const OCTET_STRING: usize = 0x04;
const OBJECT: usize = 0x06;
const IP_ADDRESS: usize = 0x40;
/// Bit 6 of a tag: it holds other elements.
const CONSTRUCTED: usize = 0x20;
/// Elements that hold others, one in the other.
const DEPTH: usize = 16;

/// Masks a message.
pub(super) fn mask(message: &mut Message<'_>) -> Option<()> {
    let (body, end) = element(message, 0)?;
    if end != message.from.len() || message.u8_at(0)? & CONSTRUCTED == 0 {
        return None;
    }
    // The version is structure.
    let (version, next) = element(message, body)?;
    if message.u8_at(body)? != INTEGER || next - version != 1 {
        return None;
    }
    message.keep(version..next)?;
    let mut at = next;
    if message.u8_at(next)? == OCTET_STRING {
        let (community, after) = element(message, next)?;
        message.text(COMMUNITY, community..after)?;
        at = after;
    }
    elements(message, at, end, DEPTH)
}

/// Keeps an element's tag and length; where its content begins and ends.
fn element(message: &mut Message<'_>, at: usize) -> Option<(usize, usize)> {
    // Tags of more than one byte are none of SNMP's.
    let (tag, first) = (message.u8_at(at)?, message.u8_at(at + 1)?);
    let more = if first < 0x80 { 0 } else { first & 0x7f };
    if tag & 0x1f == 0x1f || first == 0x80 || more > 4 {
        return None;
    }
    let begin = at + 2 + more;
    let digits = message.from.get(at + 2..begin)?;
    let length = digits.iter().fold(0, |all, byte| all << 8 | usize::from(*byte));
    let end = begin + if more == 0 { first } else { length };
    message.keep(at..begin)?;
    (end <= message.from.len()).then_some((begin, end))
}

fn elements(message: &mut Message<'_>, mut at: usize, end: usize, depth: usize) -> Option<()> {
    while at < end {
        let tag = message.u8_at(at)?;
        let (begin, next) = element(message, at)?;
        if next > end {
            return None;
        }
        match (tag, next - begin) {
            (OCTET_STRING, _) => message.bytes(STRING, begin..next)?,
            (OBJECT, _) => message.bytes(OID, begin..next)?,
            (IP_ADDRESS, 4) => message.address(ADDRESS, begin..next)?,
            (tag, _) if tag & CONSTRUCTED != 0 => {
                elements(message, begin, next, depth.checked_sub(1)?)?;
            }
            (_, 0) => {}
            _ => message.bytes(NUMBER, begin..next)?,
        }
        at = next;
    }
    Some(())
}
