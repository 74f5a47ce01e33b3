//! When a connection acknowledges what came.
//!
//! After some blocks, after a short while, and at once when something is known that the peer waits for.

use super::{Acknowledge, receiver::Receiver};

/// Bytes that come on a connection before they are acknowledged at the latest.
const BYTES: u64 = 65_536;
/// How long an acknowledgement waits for more blocks.
const DELAY_NS: u64 = 1_000_000;

/// The state of one connection.
#[derive(Debug, Default)]
pub(super) struct Acknowledger {
    /// Bytes of blocks that came on this connection.
    came: u64,
    /// The last one sent.
    sent: Option<Acknowledge>,
    /// When the next one becomes due.
    due_ns: Option<u64>,
    /// It is due, and goes as soon as the connection can be written.
    is_due: bool,
}

impl Acknowledger {
    /// A block came.
    pub(super) fn came(&mut self, bytes: usize, now_ns: u64) {
        self.came += bytes as u64;
        let sent = self.sent.map_or(0, |sent| sent.received);
        if self.came - sent >= BYTES {
            self.now();
        } else {
            self.soon(now_ns);
        }
    }

    /// Something happened that must be sent at once.
    pub(super) fn now(&mut self) {
        self.is_due = true;
        self.due_ns = None;
    }

    /// Something happened that is sent after the usual delay.
    pub(super) fn soon(&mut self, now_ns: u64) {
        if !self.is_due {
            self.due_ns = self.due_ns.or(Some(now_ns + DELAY_NS));
        }
    }

    /// Time went by.
    pub(super) fn tick(&mut self, now_ns: u64) {
        if self.due_ns.is_some_and(|due| due <= now_ns) {
            self.now();
        }
    }

    /// When the next one becomes due, as far as it is not yet.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// The stream as a whole went so far that the peer must be informed on every connection.
    pub(super) fn is_behind(&self, receiver: &Receiver) -> bool {
        let (limit, in_order, ended) =
            self.sent.map_or((receiver.window(), 0, false), |t| (t.limit, t.in_order, t.ended));
        let step = (receiver.window() / 8).max(1);
        receiver.limit() - limit >= step
            || receiver.in_order() - in_order >= step
            || receiver.is_ended() != ended
    }

    /// What is to be sent now, if it is time.
    pub(super) fn next(&mut self, receiver: &Receiver, now_ns: u64) -> Option<Acknowledge> {
        self.tick(now_ns);
        if !self.is_due && !self.is_behind(receiver) {
            return None;
        }
        let sent = Acknowledge {
            in_order: receiver.in_order(),
            limit: receiver.limit(),
            received: self.came,
            ended: receiver.is_ended(),
        };
        (self.due_ns, self.is_due) = (None, false);
        self.sent = Some(sent);
        Some(sent)
    }

    /// The peer was informed on this connection that its stream came to its end.
    pub(super) fn end_reported(&self) -> bool {
        self.sent.is_some_and(|sent| sent.ended)
    }
}
