//! A question to a name server and as much of the answer as its time needs: RFC 1035, section 4, with
//! EDNS(0) (RFC 6891).

use domain::base::{
    self, Message, MessageBuilder,
    iana::{Class, Opcode, Rcode, Rtype},
};
use std::{fmt, str::FromStr};

/// Bytes of the header.
const HEADER: usize = 12;
/// What an answer over UDP may have at most: DNS Flag Day 2020's recommendation.
pub(super) const UDP_BYTES: u16 = 1232;

/// A domain name, as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name {
    text: String,
    wire: base::Name<Vec<u8>>,
}

/// A text is no name that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no domain name: labels of 1 to 63 letters, digits, `-` or `_`, joined by dots, at most 253 in all"
)]
pub struct NameError;

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let wire = base::Name::vec_from_str(text).ok().filter(|_| text.bytes().all(plain));
        Ok(Self { text: text.to_owned(), wire: wire.ok_or(NameError)? })
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.text
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Chosen at random; an answer must bear it.
    pub id: u16,
    /// What is asked for.
    pub name: Name,
    /// Type of record (RFC 1035, section 3.2.2), such as 1 for A.
    pub kind: u16,
}

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Response code.
    pub code: u8,
    /// Whether it was cut, so that TCP has to be used.
    pub truncated: bool,
    /// Records in the answer section.
    pub answers: u16,
}

/// An answer that is none to the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {what}")]
pub struct ReplyError {
    /// Where.
    pub offset: usize,
    /// What is wrong.
    pub what: &'static str,
}

impl Question {
    /// The message that asks it, recursion desired.
    pub fn message(&self) -> Vec<u8> {
        let mut message = MessageBuilder::new_vec();
        message.header_mut().set_id(self.id);
        message.header_mut().set_rd(true);
        let mut message = message.question();
        let question = message.push((&self.name.wire, Rtype::from_int(self.kind)));
        let mut message = message.additional();
        let option = message.opt(|option| {
            option.set_udp_payload_size(UDP_BYTES);
            Ok(())
        });
        question.and(option).expect("a question is shorter than the longest message");
        message.finish()
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// When it is none to this question.
    pub fn reply(&self, bytes: &[u8]) -> Result<Reply, ReplyError> {
        let wrong = |offset, what| Err(ReplyError { offset, what });
        let Ok(message) = Message::from_slice(bytes) else {
            return wrong(bytes.len(), "shorter than a header");
        };
        let (header, counts) = (message.header(), message.header_counts());
        if header.id() != self.id {
            return wrong(0, "another identifier");
        }
        if !header.qr() {
            return wrong(2, "a question");
        }
        if header.opcode() != Opcode::QUERY {
            return wrong(2, "another kind of answer");
        }
        let code = header.rcode().to_int();
        let reply = Reply { code, truncated: header.tc(), answers: counts.ancount() };
        // A server that cannot read a question need not repeat it.
        if counts.qdcount() == 0 && code != 0 {
            return Ok(reply);
        }
        let Ok(question) = message.sole_question() else {
            return wrong(4, "not one whole question");
        };
        // Letters may come back in another case (RFC 4343).
        if *question.qname() != self.name.wire {
            return wrong(HEADER, "an answer to another name");
        }
        let end = HEADER + self.name.wire.len();
        if (question.qtype(), question.qclass()) != (Rtype::from_int(self.kind), Class::IN) {
            return wrong(end, "an answer to another type or class");
        }
        // An answer record takes 11 bytes at the least: root, type, class, TTL and length.
        let room = bytes.len().saturating_sub(end + 4) / 11;
        if !reply.truncated && usize::from(reply.answers) > room {
            return wrong(6, "more answers than there is room for");
        }
        Ok(reply)
    }
}

/// The name of a response code (IANA's registry of DNS RCODEs).
pub fn code(code: u8) -> String {
    let name = Rcode::checked_from_int(code).and_then(Rcode::to_mnemonic_str);
    name.map_or_else(|| format!("RCODE{code}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn question() -> Question {
        Question { id: 0x1234, name: "www.example.org".parse().unwrap(), kind: 28 }
    }

    /// An answer with so many records that point at the question's name.
    fn answer(question: &Question, flags: [u8; 2], answers: u16) -> Vec<u8> {
        let mut bytes = question.message();
        bytes.truncate(bytes.len() - 11);
        bytes[2..4].copy_from_slice(&flags);
        bytes[6..8].copy_from_slice(&answers.to_be_bytes());
        bytes[11] = 0;
        for _ in 0..answers {
            bytes.extend_from_slice(&[0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 4, 1, 2, 3, 4]);
        }
        bytes
    }

    #[test]
    fn names_are_those_that_can_be_asked_for() {
        let label = "a".repeat(63);
        let long = [label.as_str(); 4].join(".");
        for (text, fits) in [
            ("example.org", true),
            ("example.org.", true),
            ("_sip._tcp.example", true),
            (".", true),
            (&label, true),
            (&long[..253], true),
            (&long, false),
            (&(label.clone() + "a"), false),
            ("", false),
            ("a..b", false),
            ("a b", false),
            ("é", false),
        ] {
            assert_eq!(text.parse::<Name>().is_ok(), fits, "{text}");
        }
        assert_eq!(".".parse::<Name>().unwrap().wire.as_slice(), [0]);
    }

    #[test]
    fn an_answer_is_read_and_one_to_another_question_is_not() {
        let ours = question();
        let reply = ours.reply(&answer(&ours, [0x81, 0x80], 2)).unwrap();
        assert_eq!(reply, Reply { code: 0, truncated: false, answers: 2 });
        let cut = ours.reply(&answer(&ours, [0x83, 0x83], 0)).unwrap();
        assert_eq!(cut, Reply { code: 3, truncated: true, answers: 0 });
        let upper = Question { name: "WWW.Example.ORG".parse().unwrap(), ..question() };
        assert!(ours.reply(&answer(&upper, [0x81, 0x80], 1)).is_ok());
        for (other, offset) in [
            (Question { id: 1, ..question() }, 0),
            (Question { name: "www.example.com".parse().unwrap(), ..question() }, 12),
            (Question { kind: 1, ..question() }, 29),
        ] {
            let error = ours.reply(&answer(&other, [0x81, 0x80], 1)).unwrap_err();
            assert_eq!(error.offset, offset, "{error}");
        }
        assert_eq!(ours.reply(&ours.message()).unwrap_err().what, "a question");
        let mut many = answer(&ours, [0x81, 0x80], 1);
        many[6] = 0xff;
        assert_eq!(ours.reply(&many).unwrap_err().offset, 6);
        let short = answer(&ours, [0x81, 0x80], 0);
        for length in 0..short.len() {
            assert!(ours.reply(&short[..length]).is_err(), "{length}");
        }
        // FORMERR without the question.
        assert!(ours.reply(&[0x12, 0x34, 0x80, 1, 0, 0, 0, 0, 0, 0, 0, 0]).is_ok());
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(bytes: Vec<u8>) {
            let _ = question().reply(&bytes);
        }
    }
}
