//! DNS answers: the addresses of names.
//!
//! Read RFC 1035 (section 4) and RFC 3596. Of questions the number and the name are read, for an answer is
//! only believed to one who asked (RFC 5452, section 4.1); of answers the same, the aliases (CNAME) that lead
//! away from the name, and the addresses at their end. Names are unpacked with a bound
//! on their length, and each pointer must lead backwards, so no message is read in circles.

use domain::{
    base::{
        Message, ParsedName, Question,
        iana::{Class, Opcode, Rcode},
    },
    dep::octseq::Parser,
    rdata::{A, Aaaa, Cname},
};
use std::net::IpAddr;

/// Most records of one message that are read.
const MANY: usize = 64;
/// Bytes of a message's header.
const HEADER: usize = 12;

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
    let message = Message::from_slice(message).ok()?;
    let header = message.header();
    if header.qr() || header.opcode() != Opcode::QUERY {
        return None;
    }
    Some((header.id(), text(message.sole_question().ok()?.qname())))
}

/// Whether bytes begin as a message does: a header, and a question or record with a class that there is.
pub fn is_message(bytes: &[u8]) -> bool {
    let class = || {
        let message = Message::from_slice(bytes).ok()?;
        // Operations beyond 6 are not assigned (RFC 8490, section 10.2).
        let known = message.header().opcode().to_int() <= 6;
        let counts = message.header_counts();
        let one = counts.qdcount() > 0 || counts.ancount() > 0;
        // A record begins as a question does.
        let mut parser = Parser::from_ref(bytes);
        parser.advance(HEADER).ok().filter(|()| known && one)?;
        Some(Question::<ParsedName<_>>::parse(&mut parser).ok()?.qclass().to_int())
    };
    // IN, CH, HS, NONE and ANY (RFC 6895, section 3.2); the highest bit is of mDNS (RFC 6762, section 18.12).
    class().is_some_and(|class| matches!(class & 0x7fff, 1 | 3 | 4 | 254 | 255))
}

/// Reads a message: none where it is no response without error to one question.
pub fn answer(message: &[u8]) -> Option<Answer> {
    let message = Message::from_slice(message).ok()?;
    let header = message.header();
    if !header.qr() || header.opcode() != Opcode::QUERY || header.rcode() != Rcode::NOERROR {
        return None;
    }
    let question = message.sole_question().ok()?;
    // Aliases of the question's name so far; an answer of another name is none to this question.
    let mut aliases = vec![*question.qname()];
    let mut addresses = Vec::new();
    for record in message.answer().ok()?.take(MANY).map_while(Result::ok) {
        if record.class() != Class::IN || !aliases.contains(&record.owner()) {
            continue;
        }
        let seconds = record.ttl().as_secs();
        if let Ok(Some(a)) = record.to_record::<A>() {
            addresses.push((a.data().addr().into(), seconds));
        } else if let Ok(Some(aaaa)) = record.to_record::<Aaaa>() {
            addresses.push((aaaa.data().addr().into(), seconds));
        } else if let Ok(Some(cname)) = record.to_record::<Cname<_>>() {
            aliases.push(*cname.data().cname());
        }
    }
    Some(Answer { id: header.id(), name: text(question.qname()), addresses })
}

/// A name in lower case.
fn text(name: &ParsedName<&[u8]>) -> String {
    let mut text = String::new();
    for label in name.iter().filter(|label| !label.is_root()) {
        if !text.is_empty() {
            text.push('.');
        }
        text.extend(label.iter().map(|byte| {
            let good = byte.is_ascii_graphic() && byte != b'.';
            if good { char::from(byte.to_ascii_lowercase()) } else { '?' }
        }));
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const A: u16 = 1;
    const CNAME: u16 = 5;
    const AAAA: u16 = 28;

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
        let mut questions = Message::from_slice(response).unwrap().question();
        questions.next().unwrap().unwrap();
        let mut question = response[..questions.pos()].to_vec();
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
