//! The messages between both ends of a throughput test: a preamble on every connection, then JSON
//! lines on the one for control.
//!
//! ```text
//! client                                       server
//! preamble(control, token), hello(settings) ->
//!                                           <- ready(port), or refused(reason) and the end
//! preamble(data, token) on each data connection, or knocks on a UDP port
//!                     data from the sender to the receiver
//! the receiver, when its time is over:  received(bytes, time, samples)
//! the sender:                           samples(moments)
//! ```
//!
//! Over UDP the server says `heard` when a knock has come, and the sender says `sent` when it has sent
//! everything, before the receiver reports what it has.

use super::{MOST_MOMENTS, Settings, Token};
use crate::record::Moment;
use serde::{Deserialize, Serialize};

/// Begins every connection: the protocol and its version.
const MAGIC: [u8; 8] = *b"nightp\0\x01";
/// Bytes of a preamble.
pub const PREAMBLE: usize = MAGIC.len() + 1 + Token::MARK;
/// Longest line, its end included.
pub const LONGEST_LINE: usize = 64 << 10;
/// Longest reason, in characters.
const LONGEST_REASON: usize = 300;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Messages.
    Control,
    /// What is counted.
    Data,
}

/// What a connection begins with.
pub fn preamble(role: Role, token: &Token) -> [u8; PREAMBLE] {
    let mut bytes = [0; PREAMBLE];
    let (magic, rest) = bytes.split_at_mut(MAGIC.len());
    magic.copy_from_slice(&MAGIC);
    if let Some((target, mark)) = rest.split_first_mut() {
        *target = u8::from(role == Role::Data);
        mark.copy_from_slice(&token.mark());
    }
    bytes
}

/// Reads a preamble; `None` when it is none, or of another test.
pub fn role(bytes: &[u8; PREAMBLE], token: &Token) -> Option<Role> {
    let (magic, rest) = bytes.split_first_chunk()?;
    let (role, mark) = rest.split_first()?;
    let role = match role {
        0 => Role::Control,
        1 => Role::Data,
        _ => return None,
    };
    (*magic == MAGIC && token.has_mark(mark)).then_some(role)
}

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Message {
    /// The client wants the test that was accepted.
    Hello {
        /// How.
        settings: Settings,
    },
    /// The server waits for data connections, or for knocks at this port.
    Ready {
        /// TCP or UDP port.
        port: u16,
    },
    /// The server does not take part.
    Refused {
        /// Why.
        reason: String,
    },
    /// The server has heard a knock.
    Heard {},
    /// The sender has sent all its datagrams.
    Sent {
        /// How many.
        datagrams: u64,
    },
    /// The receiver has stopped.
    Received {
        /// What it has.
        received: Received,
    },
    /// The sender has stopped.
    Samples {
        /// What its kernel reported.
        moments: Vec<Moment>,
    },
}

/// What a receiver has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Received {
    /// Bytes without headers.
    pub bytes: u64,
    /// Time in which they came.
    pub lasted_ns: u64,
    /// Of datagrams.
    pub datagrams: Option<Datagrams>,
    /// Through time.
    pub samples: Vec<Moment>,
}

/// The outcome of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Datagrams {
    /// That came, copies not counted.
    pub received: u64,
    /// That came after one that was sent later.
    pub reordered: u64,
    /// Further copies.
    pub duplicated: u64,
}

impl Message {
    /// The word for it, for errors.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Hello { .. } => "hello",
            Self::Ready { .. } => "ready",
            Self::Refused { .. } => "refused",
            Self::Heard {} => "heard",
            Self::Sent { .. } => "sent",
            Self::Received { .. } => "received",
            Self::Samples { .. } => "samples",
        }
    }

    /// The message as a line.
    pub fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// Reads a line without its end.
    ///
    /// # Errors
    /// When it is no message, or one beyond the limits.
    pub fn parse(line: &[u8]) -> Result<Self, ControlError> {
        let message: Self = serde_json::from_slice(line)
            .map_err(|error| ControlError::Malformed { reason: error.to_string() })?;
        let excess = |what| Err(ControlError::Excess { what });
        match &message {
            // It goes to terminals and logs.
            Self::Refused { reason } if reason.chars().count() > LONGEST_REASON => {
                excess("a longer reason than is taken")
            }
            Self::Refused { reason } if reason.chars().any(char::is_control) => {
                excess("control characters in a reason")
            }
            Self::Received { received: Received { samples: moments, .. } }
            | Self::Samples { moments }
                if moments.len() > MOST_MOMENTS =>
            {
                excess("more moments than are taken")
            }
            _ => Ok(message),
        }
    }
}

/// What the other end says is not of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// A line does not end.
    #[error("a line of more than {LONGEST_LINE} bytes")]
    TooLong,
    /// No JSON, or not that of a message.
    #[error("no message: {reason}")]
    Malformed {
        /// The parser's words, with line and column.
        reason: String,
    },
    /// A value beyond its limits.
    #[error("{what}")]
    Excess {
        /// Which.
        what: &'static str,
    },
}

/// Bytes that become messages.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    /// Where no end of a line is known to be before.
    searched: usize,
}

impl Lines {
    /// Takes bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes that may be pushed before [`Lines::take`] is asked again.
    pub fn room(&self) -> usize {
        LONGEST_LINE.saturating_sub(self.bytes.len())
    }

    /// The next message, if it is whole.
    ///
    /// # Errors
    /// When the line is too long or no message; the connection is of no use after that.
    pub fn take(&mut self) -> Result<Option<Message>, ControlError> {
        let rest = self.bytes.get(self.searched..).unwrap_or_default();
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.bytes.len();
            return if self.room() == 0 { Err(ControlError::TooLong) } else { Ok(None) };
        };
        let end = self.searched + end;
        let message = Message::parse(self.bytes.get(..end).unwrap_or_default());
        self.bytes.drain(..=end);
        self.searched = 0;
        message.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn some() -> Vec<Message> {
        let received = Received {
            bytes: u64::MAX,
            lasted_ns: 1,
            datagrams: Some(Datagrams { received: 3, reordered: 2, duplicated: 1 }),
            samples: vec![Moment { at_ns: 1, bytes: 2, ..Moment::default() }],
        };
        vec![
            Message::Hello { settings: Settings::default() },
            Message::Ready { port: 65_535 },
            Message::Refused { reason: "no".to_owned() },
            Message::Heard {},
            Message::Sent { datagrams: 9 },
            Message::Received { received },
            Message::Samples { moments: vec![Moment::default(); MOST_MOMENTS] },
        ]
    }

    #[test]
    fn what_is_written_is_read_again_however_it_is_cut() {
        let bytes: Vec<u8> = some().iter().flat_map(Message::line).collect();
        for size in [1, 7, 4096] {
            let (mut lines, mut read) = (Lines::default(), Vec::new());
            for chunk in bytes.chunks(size) {
                lines.push(chunk);
                while let Some(message) = lines.take().unwrap() {
                    read.push(message);
                }
            }
            assert_eq!(read, some());
        }
    }

    #[test]
    fn the_longest_list_of_samples_fits_into_a_line() {
        let most = u64::MAX;
        let moment = Moment {
            at_ns: most,
            bytes: most,
            window_bytes: most,
            srtt_ns: most,
            retransmits: most,
        };
        let received = Received {
            bytes: most,
            lasted_ns: most,
            datagrams: Some(Datagrams { received: most, reordered: most, duplicated: most }),
            samples: vec![moment; MOST_MOMENTS],
        };
        let line = Message::Received { received }.line();
        assert!(line.len() <= LONGEST_LINE, "{}", line.len());
    }

    #[test]
    fn what_is_beyond_the_limits_is_refused() {
        let many = Message::Samples { moments: vec![Moment::default(); MOST_MOMENTS + 1] };
        let long = Message::Refused { reason: "x".repeat(LONGEST_REASON + 1) };
        let bell = Message::Refused { reason: "\u{7}".to_owned() };
        for message in [many, long, bell] {
            let line = message.line();
            let error = Message::parse(line.trim_ascii_end()).unwrap_err();
            assert!(matches!(error, ControlError::Excess { .. }), "{error}");
        }
        for line in ["", "{}", "{\"do\":\"heard\",\"more\":1}", "{\"do\":\"ready\",\"port\":65536}"]
        {
            let error = Message::parse(line.as_bytes()).unwrap_err();
            assert!(matches!(error, ControlError::Malformed { .. }), "{line}: {error}");
        }
        let mut lines = Lines::default();
        lines.push(&vec![b' '; lines.room()]);
        assert_eq!(lines.take(), Err(ControlError::TooLong));
    }

    #[test]
    fn a_preamble_is_for_one_test_only() {
        let (ours, other) = (Token::from([7; 32]), Token::from([8; 32]));
        for role_ in [Role::Control, Role::Data] {
            let mut bytes = preamble(role_, &ours);
            assert_eq!(role(&bytes, &ours), Some(role_));
            assert_eq!(role(&bytes, &other), None);
            bytes[0] ^= 1;
            assert_eq!(role(&bytes, &ours), None);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(chunks in proptest::collection::vec(any::<Vec<u8>>(), 0..8)) {
            let mut lines = Lines::default();
            for chunk in chunks {
                lines.push(&chunk);
                while let Ok(Some(message)) = lines.take() {
                    let line = message.line();
                    prop_assert_eq!(Message::parse(line.trim_ascii_end()), Ok(message));
                }
            }
        }
    }
}
