//! One data connection as the sending half sees it: what it carries, how fast and how late.

use std::collections::VecDeque;

use super::{Violation, sender::Number};

/// A block that was handed to the connection.
pub(super) struct Carried {
    number: Number,
    /// Bytes handed to the connection up to the end of this block.
    end: u64,
}

/// One data connection.
#[derive(Default)]
pub(super) struct Path {
    /// In the order in which they were handed over and will arrive.
    carried: VecDeque<Carried>,
    /// Bytes of blocks handed to the connection.
    handed: u64,
    /// Bytes of blocks that the peer has from it.
    received: u64,
}

impl Path {
    pub(super) fn hand(&mut self, number: Number, bytes: usize) {
        self.handed += bytes as u64;
        self.carried.push_back(Carried { number, end: self.handed });
    }

    /// The peer has so many bytes from this connection; blocks that it has are taken with
    /// [`Self::arrived`].
    pub(super) fn acknowledged(&mut self, received: u64) -> Result<(), Violation> {
        if received > self.handed {
            return Err(Violation::NeverSent);
        }
        if received < self.received {
            return Err(Violation::TakenBack);
        }
        self.received = received;
        Ok(())
    }

    /// The next block that the peer has from this connection.
    pub(super) fn arrived(&mut self) -> Option<Number> {
        let first = self.carried.front().filter(|carried| carried.end <= self.received)?.number;
        self.carried.pop_front();
        Some(first)
    }

    /// The blocks of which it is not known whether the peer has them.
    pub(super) fn into_lost(self) -> impl Iterator<Item = Number> {
        self.carried.into_iter().map(|carried| carried.number)
    }
}
