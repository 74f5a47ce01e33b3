//! When packets are sent at a rate, without drift.
//!
//! A packet of n bytes takes 8 n / rate seconds, seldom a whole number of nanoseconds. What is left over
//! is kept, so that the n-th packet of a busy transmitter ends where the sum of all bytes says, to the
//! nanosecond, however many packets there were.

use crate::Nanos;

/// Nanoseconds that a byte takes at one bit a second.
const NANOS_A_BYTE: u64 = 8_000_000_000;

/// One that sends a packet after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Transmitter {
    /// When it will have sent all, rounded down.
    free: Nanos,
    /// What was rounded off, in nanoseconds divided by `rate`.
    rest: u64,
    /// The rate that `rest` belongs to, bits a second.
    rate: u64,
}

impl Transmitter {
    /// When a packet that comes now would begin to be sent.
    pub(super) fn start(&self, now: Nanos) -> Nanos {
        now.max(self.free)
    }

    /// When it will have sent all, or has.
    pub(super) fn free(&self) -> Nanos {
        self.free
    }

    /// Sends a packet and says when its last bit is out; at once without a rate.
    pub(super) fn send(&mut self, now: Nanos, bytes: u32, rate: Option<u64>) -> Nanos {
        let start = self.start(now);
        let rate = rate.unwrap_or(0);
        if now > self.free || rate != self.rate {
            (self.rest, self.rate) = (0, rate);
        }
        let total = u64::from(bytes).saturating_mul(NANOS_A_BYTE).saturating_add(self.rest);
        let (nanos, rest) = match rate {
            0 => (0, 0),
            rate => (total / rate, total % rate),
        };
        (self.free, self.rest) = (start + Nanos(nanos), rest);
        self.free
    }
}
