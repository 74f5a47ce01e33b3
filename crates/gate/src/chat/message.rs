//! What the readers of chat protocols find.

use classify::flow::Side;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Longest text, name or address that a message carries on, in bytes; what is longer is cut there.
pub const MAX_TEXT: usize = 4096;

/// The protocols that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// RFC 2812.
    Irc,
    /// RFC 6120 and 6121.
    Xmpp,
}

/// One chat event.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Message {
    /// The protocol.
    pub protocol: Protocol,
    /// The end of the flow that sent the bytes: messages of others come from the server.
    pub side: Side,
    /// Who did it: a nick, a JID. Empty if the flow did not show it.
    pub from: String,
    /// To whom: a channel, a nick, a JID. Empty likewise.
    pub to: String,
    /// What it was.
    pub event: Event,
}

/// The event. Passwords and other credentials never are in it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Event {
    /// A message between people.
    Text(String),
    /// A message that expects no answer (IRC's NOTICE).
    Notice(String),
    /// Somebody describes what they do (CTCP ACTION).
    Action(String),
    /// Somebody entered `to`.
    Join,
    /// Somebody left `to`, for the reason given; all of it where `to` is empty.
    Leave(String),
    /// Somebody is called otherwise from now on.
    Rename(String),
    /// A topic was set.
    Topic(String),
    /// Somebody offers a file (DCC SEND, an XMPP offer).
    Offer {
        /// The file's name, as it was offered.
        name: String,
        /// Its bytes, where known.
        size: Option<u64>,
        /// Where it can be fetched, where known.
        address: Option<SocketAddr>,
    },
    /// Somebody waits for a file that was offered without an address (DCC SEND, passive).
    Await {
        /// The file's name, as it was offered.
        name: String,
        /// Its bytes, where known.
        size: Option<u64>,
        /// Where it is to be sent to.
        address: SocketAddr,
    },
    /// Somebody offers a connection past the server (DCC CHAT).
    Direct(SocketAddr),
    /// Encryption begins: nothing is read from here on.
    Encrypted,
}

impl Event {
    /// Its name in the audit log.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Notice(_) => "notice",
            Self::Action(_) => "action",
            Self::Join => "join",
            Self::Leave(_) => "leave",
            Self::Rename(_) => "rename",
            Self::Topic(_) => "topic",
            Self::Offer { .. } => "offer",
            Self::Await { .. } => "await",
            Self::Direct(_) => "direct",
            Self::Encrypted => "encrypted",
        }
    }
}

/// Text of people from bytes: UTF-8, else each byte as Latin 1, and not too long.
pub(super) fn text(bytes: &[u8]) -> String {
    let kept = bytes.get(..MAX_TEXT).unwrap_or(bytes);
    let is_cut = kept.len() < bytes.len();
    match std::str::from_utf8(kept) {
        Ok(text) => text.to_owned(),
        // What is cut may end within a character.
        Err(error) if is_cut && error.error_len().is_none() => {
            let whole = kept.get(..error.valid_up_to()).unwrap_or_default();
            String::from_utf8_lossy(whole).into_owned()
        }
        Err(_) => kept.iter().map(|&byte| char::from(byte)).collect(),
    }
}

/// A decimal number.
pub(super) fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}
