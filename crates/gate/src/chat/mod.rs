//! Chat in plain text, read for the audit.
//!
//! Readers take the bytes of each side in order and return messages and events. They are bounded
//! in all they keep, find their place again after a gap, and end by themselves where encryption
//! begins. Credentials (IRC's PASS and OPER, XMPP's authentication, messages to services that keep
//! passwords) are skipped unread.

mod irc;
mod lines;
mod message;
#[cfg(test)]
mod tests;
mod xmpp;

pub use message::{Event, MAX_TEXT, Message, Protocol};

use self::{irc::Irc, xmpp::Xmpp};
use classify::flow::Side;

/// Reads one flow's chat.
#[derive(Debug)]
pub struct Reader(Kind);

#[derive(Debug)]
enum Kind {
    Irc(Irc),
    Xmpp(Box<Xmpp>),
}

impl Reader {
    /// A reader for flows of an application, by the names that the engines give; none where that is no
    /// chat that can be read.
    pub fn new(application: &str) -> Option<Self> {
        Some(Self(match application {
            "irc" => Kind::Irc(Irc::new()),
            "xmpp" | "jabber" => Kind::Xmpp(Box::default()),
            _ => return None,
        }))
    }

    /// Takes the next bytes of a side, in any portions.
    pub fn feed(&mut self, side: Side, bytes: &[u8], out: &mut Vec<Message>) {
        match &mut self.0 {
            Kind::Irc(it) => it.feed(side, bytes, out),
            Kind::Xmpp(it) => it.feed(side, bytes, out),
        }
    }

    /// Bytes of a side were missed: what comes next may begin within a message.
    pub fn gap(&mut self, side: Side) {
        match &mut self.0 {
            Kind::Irc(it) => it.gap(side),
            Kind::Xmpp(it) => it.gap(side),
        }
    }

    /// Whether nothing of the flow will be read any more.
    pub const fn is_over(&self) -> bool {
        match &self.0 {
            Kind::Irc(it) => it.is_over(),
            Kind::Xmpp(it) => it.is_over(),
        }
    }
}
