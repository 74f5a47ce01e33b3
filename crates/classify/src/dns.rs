//! DNS answers: which addresses a name was said to have.
//!
//! Read RFC 1035 (section 4) and RFC 3596. Of questions the number and the name are read, for an answer is
//! only believed to one who asked (RFC 5452, section 4.1); of answers the same, the aliases (CNAME) that lead
//! away from the name, and the addresses at their end. Names are unpacked with a bound
//! on their length, and each pointer must lead backwards, so no message is read in circles.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Most records of one message that are read.
const MANY: usize = 64;
/// Bytes of the longest name with its labels' lengths (RFC 1035, section 2.3.4).
const LONGEST: usize = 255;
/// Types of records.
const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;

/// What a response says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The number of the question.
    pub id: u16,
    /// The name that was asked for, in lower case.
    pub name: String,
    /// Its addresses, with the seconds that they hold.
    pub addresses: Vec<(IpAddr, u32)>,
}

/// The number of a plain query for one name, and the name in lower case.
pub fn question(message: &[u8]) -> Option<(u16, String)> {
    // QR is clear, the operation is a plain query.
    if u16_at(message, 2)? & 0xf800 != 0 || u16_at(message, 4)? != 1 {
        return None;
    }
    Some((u16_at(message, 0)?, name(message, 12)?.0))
}

/// Whether bytes begin as a message does: a header, and a question or record with a class that there is.
pub fn is_message(bytes: &[u8]) -> bool {
    let class = || {
        // Operations beyond 6 are not assigned (RFC 8490, section 10.2).
        let known = u16_at(bytes, 2)? >> 11 & 0xf <= 6;
        let one = u16_at(bytes, 4)? > 0 || u16_at(bytes, 6)? > 0;
        let (_, end) = name(bytes, 12).filter(|_| known && one)?;
        u16_at(bytes, end + 2)
    };
    // IN, CH, HS, NONE and ANY (RFC 6895, section 3.2); the highest bit is of mDNS (RFC 6762, section 18.12).
    class().is_some_and(|class| matches!(class & 0x7fff, 1 | 3 | 4 | 254 | 255))
}

/// Reads a message: none where it is no response without error to one question.
pub fn answer(message: &[u8]) -> Option<Answer> {
    let flags = u16_at(message, 2)?;
    // QR is set, the operation is a plain query, there is no error (RFC 1035, section 4.1.1).
    if flags & 0xf80f != 0x8000 || u16_at(message, 4)? != 1 {
        return None;
    }
    let records = usize::from(u16_at(message, 6)?).min(MANY);
    let (name, mut at) = name(message, 12)?;
    at += 4;
    // Aliases of the question's name so far; an answer of another name is none to this question.
    let mut aliases = vec![name.clone()];
    let mut addresses = Vec::new();
    for _ in 0..records {
        let Some(record) = Record::read(message, at) else { break };
        at = record.end;
        if !aliases.contains(&record.owner) {
            continue;
        }
        match (record.kind, record.data) {
            (A, &[a, b, c, d]) => {
                addresses.push((Ipv4Addr::new(a, b, c, d).into(), record.seconds));
            }
            (AAAA, data) => {
                if let Ok(octets) = <[u8; 16]>::try_from(data) {
                    addresses.push((Ipv6Addr::from(octets).into(), record.seconds));
                }
            }
            (CNAME, _) => {
                if let Some((alias, _)) = self::name(message, record.data_at) {
                    aliases.push(alias);
                }
            }
            _ => {}
        }
    }
    Some(Answer { id: u16_at(message, 0)?, name, addresses })
}

/// One record of class IN (RFC 1035, section 4.1.3).
struct Record<'a> {
    owner: String,
    kind: u16,
    seconds: u32,
    data: &'a [u8],
    data_at: usize,
    end: usize,
}

impl<'a> Record<'a> {
    fn read(message: &'a [u8], at: usize) -> Option<Self> {
        let (owner, at) = name(message, at)?;
        let class = u16_at(message, at + 2)?;
        let seconds =
            u32::from(u16_at(message, at + 4)?) << 16 | u32::from(u16_at(message, at + 6)?);
        let data_at = at + 10;
        let end = data_at + usize::from(u16_at(message, at + 8)?);
        let data = message.get(data_at..end)?;
        let kind = if class == 1 { u16_at(message, at)? } else { 0 };
        Some(Self { owner, kind, seconds, data, data_at, end })
    }
}

/// The name at an offset in lower case, and where what follows it begins.
fn name(message: &[u8], at: usize) -> Option<(String, usize)> {
    let mut text = String::new();
    let end = wire::dns::name(message, at, |label| {
        if text.len() + label.len() + 1 > LONGEST {
            return None;
        }
        if !text.is_empty() {
            text.push('.');
        }
        for &byte in label {
            let good = byte.is_ascii_graphic() && byte != b'.';
            text.push(if good { char::from(byte.to_ascii_lowercase()) } else { '?' });
        }
        Some(())
    })?;
    Some((text, end))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn labels(name: &str) -> Vec<u8> {
        let mut out = Vec::new();
        for label in name.split('.') {
            out.push(label.len() as u8);
            out.extend(label.bytes());
        }
        out.push(0);
        out
    }

    fn record(owner: &[u8], kind: u16, seconds: u32, data: &[u8]) -> Vec<u8> {
        let mut out = owner.to_vec();
        out.extend(kind.to_be_bytes());
        out.extend([0, 1]);
        out.extend(seconds.to_be_bytes());
        out.extend((data.len() as u16).to_be_bytes());
        out.extend(data);
        out
    }

    /// A response with these records to a question for the addresses of a name.
    fn response(name: &str, records: &[Vec<u8>]) -> Vec<u8> {
        let mut out = vec![0x12, 0x34, 0x81, 0x80, 0, 1, 0, records.len() as u8, 0, 0, 0, 0];
        out.extend(labels(name));
        out.extend([0, 1, 0, 1]);
        out.extend(records.concat());
        out
    }

    /// The question to which a response is.
    pub(crate) fn question_to(response: &[u8]) -> Vec<u8> {
        let (_, end) = name(response, 12).unwrap();
        let mut question = response[..end + 4].to_vec();
        question[2..8].copy_from_slice(&[1, 0, 0, 1, 0, 0]);
        question
    }

    /// A response that gives a name one address.
    pub(crate) fn one(name: &str, address: Ipv4Addr, seconds: u32) -> Vec<u8> {
        response(name, &[record(&[0xc0, 12], A, seconds, &address.octets())])
    }

    #[test]
    fn aliases_lead_from_the_question_to_its_addresses() {
        let message = response(
            "WWW.Example.org",
            &[
                record(&[0xc0, 12], CNAME, 300, &labels("cdn.example.net")),
                record(&labels("cdn.example.net"), A, 60, &[192, 0, 2, 7]),
                record(&labels("CDN.example.net"), AAAA, 61, &Ipv6Addr::LOCALHOST.octets()),
                // Of another name: nobody asked for it.
                record(&labels("bank.example"), A, 60, &[192, 0, 2, 66]),
            ],
        );
        let answer = answer(&message).unwrap();
        assert_eq!(answer.name, "www.example.org");
        let addresses =
            [("192.0.2.7".parse().unwrap(), 60), (IpAddr::from(Ipv6Addr::LOCALHOST), 61)];
        assert_eq!(answer.addresses, addresses);
    }

    #[test]
    fn questions_errors_and_cut_messages_say_nothing_and_circles_end() {
        let whole = one("a.example", [192, 0, 2, 1].into(), 9);
        assert_eq!(question(&question_to(&whole)), Some((0x1234, "a.example".to_owned())));
        assert_eq!(question(&whole), None);
        assert!(is_message(&whole) && is_message(&question_to(&whole)));
        assert_eq!(answer(&whole).unwrap().addresses.len(), 1);
        for cut in 0..whole.len() {
            assert_eq!(is_message(&whole[..cut]), cut >= 12 + 11 + 4);
            assert!(answer(&whole[..cut]).is_none_or(|answer| answer.addresses.is_empty()));
        }
        let mut other = whole.clone();
        other[2] = 0x01;
        assert_eq!(answer(&other), None);
        other[2..4].copy_from_slice(&[0x81, 0x83]);
        assert_eq!(answer(&other), None);
        // A name that points at itself, and two that point at each other.
        let mut circle = whole;
        circle[12..14].copy_from_slice(&[0xc0, 12]);
        assert_eq!(answer(&circle), None);
        circle[12..16].copy_from_slice(&[0xc0, 14, 0xc0, 12]);
        assert_eq!(answer(&circle), None);
    }
}
