//! Whoever waits for the transmitter.

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

    /// Bytes of those that wait, after [`Waiting::leave`].
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How much waits, after [`Waiting::leave`], in the unit of the limit.
    pub(super) fn size(&self, unit: Limit) -> u64 {
        match unit {
            Limit::Packets(_) => self.packets.len() as u64,
            Limit::Bytes(_) => self.bytes,
        }
    }

    /// Packets and bytes that will wait then.
    #[cfg(test)]
    pub(super) fn at(&self, now: Nanos) -> (u32, u64) {
        let later = self.packets.iter().rev().take_while(|(turn, _)| *turn > now);
        later.fold((0, 0), |(packets, sum), (_, bytes)| (packets + 1, sum + u64::from(*bytes)))
    }
}
