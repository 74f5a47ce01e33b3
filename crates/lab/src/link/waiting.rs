//! Who waits for the transmitter.

use crate::{Nanos, settings::Limit};
use std::collections::VecDeque;

/// The packets that wait: when each will leave, and its bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    packets: VecDeque<(Nanos, u32)>,
    bytes: u64,
}

impl Waiting {
    /// Those whose turn has come are gone. One that comes at the moment when another's turn does finds
    /// its place free.
    pub(super) fn leave(&mut self, now: Nanos) {
        while let Some((turn, bytes)) = self.packets.front().copied()
            && turn <= now
        {
            self.packets.pop_front();
            self.bytes -= u64::from(bytes);
        }
    }

    /// Whether there is room for one more.
    pub(super) fn fits(&self, limit: Limit, bytes: u32) -> bool {
        match limit {
            Limit::Packets(packets) => self.packets.len() < packets as usize,
            Limit::Bytes(limit) => self.bytes + u64::from(bytes) <= u64::from(limit),
        }
    }

    /// One more, whose turn comes then.
    pub(super) fn enter(&mut self, turn: Nanos, bytes: u32) {
        self.packets.push_back((turn, bytes));
        self.bytes += u64::from(bytes);
    }

    /// Packets and bytes.
    pub(super) fn size(&self) -> (u32, u64) {
        (u32::try_from(self.packets.len()).unwrap_or(u32::MAX), self.bytes)
    }
}
