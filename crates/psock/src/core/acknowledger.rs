//! When a connection tells the peer what came.
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
    /// What was said last.
    told: Option<Acknowledge>,
    /// When the next one goes at the latest.
    due_ns: Option<u64>,
}

impl Acknowledger {
    /// A block came.
    pub(super) fn came(&mut self, bytes: usize, now_ns: u64) {
        self.came += bytes as u64;
        let told = self.told.map_or(0, |told| told.received);
        let due = if self.came - told >= BYTES { now_ns } else { now_ns + DELAY_NS };
        self.by(due);
    }

    /// Something happened that is to be told by this time.
    pub(super) fn by(&mut self, due_ns: u64) {
        self.due_ns = Some(self.due_ns.map_or(due_ns, |before| before.min(due_ns)));
    }

    /// When the next one is due, as far as it follows from blocks that came here.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// The stream as a whole went so far that the peer is to be told on every connection.
    pub(super) fn is_behind(&self, receiver: &Receiver) -> bool {
        let (limit, in_order, ended) =
            self.told.map_or((receiver.window(), 0, false), |t| (t.limit, t.in_order, t.ended));
        let step = (receiver.window() / 8).max(1);
        receiver.limit() - limit >= step
            || receiver.in_order() - in_order >= step
            || receiver.is_ended() != ended
    }

    /// What is to be said now, if it is time.
    pub(super) fn next(&mut self, receiver: &Receiver, now_ns: u64) -> Option<Acknowledge> {
        if self.due_ns.is_none_or(|due| due > now_ns) && !self.is_behind(receiver) {
            return None;
        }
        let told = Acknowledge {
            in_order: receiver.in_order(),
            limit: receiver.limit(),
            received: self.came,
            ended: receiver.is_ended(),
        };
        self.due_ns = None;
        self.told = Some(told);
        Some(told)
    }

    /// The peer was told on this connection that its stream came to its end.
    pub(super) fn told_end(&self) -> bool {
        self.told.is_some_and(|told| told.ended)
    }
}
