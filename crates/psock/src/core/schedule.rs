//! The schedule table of *Psock Parallel Socket Library* (CESNET, 2005): which
//! connection is next, and with what.
//!
//! A circular buffer that the driver fills and the sender empties. Who is asked to send and is not at its
//! head has to wait. All blocks have the same size, so an item needs not say how many bytes; a receiving
//! half is not needed, because blocks carry their offset in the stream.

use std::collections::VecDeque;

use super::{ConnectionId, sender::Number};

/// One turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// Whose turn it is.
    pub(super) connection: ConnectionId,
    /// What it sends.
    pub(super) pick: Pick,
}

/// A block to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// The first that no connection carries, whichever it is when the turn comes.
    Head,
    /// This one, which no connection carries.
    Free(Number),
    /// This one, which another connection carries too.
    Again(Number),
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    items: VecDeque<Item>,
}

impl Schedule {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Appends a turn.
    pub(super) fn put(&mut self, item: Item) {
        self.items.push_back(item);
    }

    /// What `connection` is to send, if it is its turn.
    pub(super) fn turn(&self, connection: ConnectionId) -> Option<Pick> {
        self.items.front().filter(|item| item.connection == connection).map(|item| item.pick)
    }

    /// The turn at the head is over.
    pub(super) fn advance(&mut self) {
        self.items.pop_front();
    }

    /// Drops the turns of a connection that is gone.
    pub(super) fn forget(&mut self, connection: ConnectionId) {
        self.items.retain(|item| item.connection != connection);
    }
}
