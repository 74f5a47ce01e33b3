//! One data connection as the sending half sees it: what it carries, how fast and how late.
//!
//! A connection is a queue that empties at a rate and delivers after a delay, so when a block will be
//! acknowledged follows from the bytes before it:
//!
//! ```text
//! until acknowledged = max(least delay, bytes in flight / rate) + bytes / rate + lateness
//! until there        = until acknowledged - least delay / 2
//! ```
//!
//! Lateness is by how much the first block in flight misses its time while nothing is acknowledged. A
//! connection that is late by some time is expected to be so for as long again, so one that stops is
//! believed less and less from the first missed block on, and is as good as before with the first
//! acknowledgement.

use std::collections::VecDeque;

use super::{
    Kernel, Violation,
    estimate::{LeastDelay, Rate, bytes_in, rate_of, time_ns},
    sender::Number,
};

/// A connection is kept so much longer at work than its round trip, for hosts that are late.
const SLACK_NS: u64 = 10_000_000;
/// A connection that misses its time by less is not taken for stalled.
const LEAST_TIMEOUT_NS: u64 = 30_000_000;
/// As much is added to the timeout at most because a connection's times vary.
const MOST_VARIATION_NS: u64 = 100_000_000;
/// The delay of a connection about which nothing is known.
const UNKNOWN_DELAY_NS: u64 = 50_000_000;
/// What a TCP connection sends in its first round trip (RFC 6928).
const INITIAL_WINDOW: u64 = 14_600;

/// A block that was handed to the connection.
struct Carried {
    number: Number,
    bytes: u64,
    /// Bytes handed to the connection up to the end of this block.
    end: u64,
    handed_ns: u64,
    /// When it should be acknowledged.
    expected_ns: u64,
    /// Bytes acknowledged when it was handed over, and since when they were.
    received: u64,
    received_ns: u64,
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
    kernel: Kernel,
    delay: LeastDelay,
    last_delay_ns: u64,
    rate: Rate,
    /// By how much acknowledgements miss their times, smoothed.
    variation_ns: u64,
    /// When something was last acknowledged, or handed over with nothing in flight.
    progress_ns: u64,
    /// What it carries was given to others because it stalled.
    pub(super) released: bool,
}

impl Path {
    /// A block was handed over; returns the bytes handed over up to its end.
    pub(super) fn hand(&mut self, number: Number, bytes: usize, now_ns: u64) -> u64 {
        if self.carried.is_empty() {
            self.progress_ns = now_ns;
        }
        self.rate.feed(now_ns);
        let expected_ns = now_ns + self.until_acknowledged(bytes as u64, now_ns);
        self.handed += bytes as u64;
        self.carried.push_back(Carried {
            number,
            bytes: bytes as u64,
            end: self.handed,
            handed_ns: now_ns,
            expected_ns,
            received: self.received,
            received_ns: self.progress_ns,
        });
        self.handed
    }

    pub(super) fn observe(&mut self, kernel: &Kernel) {
        self.kernel = *kernel;
        self.delay.begin(kernel.min_rtt_ns);
    }

    pub(super) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The connection could take a block and gets none.
    pub(super) fn starve(&mut self, now_ns: u64) {
        self.rate.starve(now_ns);
    }

    /// The peer has so many bytes from this connection. The blocks that it has come out of
    /// [`Self::arrived`].
    pub(super) fn acknowledged(&mut self, received: u64, now_ns: u64) -> Result<(), Violation> {
        if received > self.handed {
            return Err(Violation::NeverSent);
        }
        if received < self.received {
            return Err(Violation::TakenBack);
        }
        let arrived = self.carried.partition_point(|carried| carried.end <= received);
        self.received = received;
        let Some(last) = arrived.checked_sub(1).and_then(|last| self.carried.get(last)) else {
            return Ok(());
        };
        let delay_ns = now_ns.saturating_sub(last.handed_ns);
        let missed_ns = now_ns.abs_diff(last.expected_ns);
        self.variation_ns = self.variation_ns - self.variation_ns / 8 + missed_ns / 8;
        self.last_delay_ns = delay_ns;
        // What fills the room and the block that went in last, and half of it for what varies.
        let block_ns = time_ns(last.bytes, self.rate());
        let explained_ns = (self.room_ns() + 2 * block_ns) * 3 / 2;
        self.delay.sample(delay_ns, explained_ns, last.end, now_ns);
        let (bytes, from_ns) = (received - last.received, last.received_ns);
        self.rate.sample(bytes, from_ns, self.delay_ns(), now_ns);
        self.progress_ns = now_ns;
        Ok(())
    }

    /// The next block that the peer has from this connection.
    pub(super) fn arrived(&mut self) -> Option<Number> {
        let first = self.carried.front().filter(|carried| carried.end <= self.received)?.number;
        self.carried.pop_front();
        if self.delay.is_draining() && self.under_way() <= self.room_bytes() {
            self.delay.emptied(self.handed);
        }
        Some(first)
    }

    /// The blocks of which it is not known whether the peer has them.
    pub(super) fn carried(&self) -> impl Iterator<Item = Number> {
        self.carried.iter().map(|carried| carried.number)
    }

    /// Bytes of which it is not known whether the peer has them.
    pub(super) fn under_way(&self) -> u64 {
        self.handed - self.received
    }

    /// From the hand-over of a block to its acknowledgement, with no queue.
    fn delay_ns(&self) -> u64 {
        self.delay.get().unwrap_or(UNKNOWN_DELAY_NS)
    }

    /// Bytes a second.
    pub(super) fn rate(&self) -> u64 {
        self.rate.get().unwrap_or_else(|| self.lets().max(self.kernel.delivery_rate)).max(1)
    }

    /// Bytes a second that TCP would let through now.
    fn lets(&self) -> u64 {
        let Kernel { srtt_ns, .. } = self.kernel;
        rate_of(self.window(), if srtt_ns > 0 { srtt_ns } else { self.delay_ns() })
    }

    /// The congestion window.
    fn window(&self) -> u64 {
        u64::from(self.kernel.cwnd_bytes).max(INITIAL_WINDOW)
    }

    /// Bytes that may be in flight: twice what fills the path, so that its rate can be seen to grow and a
    /// loss leaves it no hole, but not the seconds of queue that TCP would fill. While the delay is looked
    /// for, half of what fills the path.
    fn room_bytes(&self) -> u64 {
        if self.rate.get().is_none() {
            return self.window();
        }
        if self.delay.is_draining() {
            return bytes_in(self.rate(), self.delay_ns() / 2);
        }
        let fills = bytes_in(self.rate().max(self.kernel.delivery_rate), self.room_ns());
        if self.last_delay_ns <= self.room_ns() { fills.max(2 * self.window()) } else { fills }
    }

    /// The longest that our own queue, and the path, may take.
    fn room_ns(&self) -> u64 {
        2 * self.delay_ns() + SLACK_NS
    }

    /// Whether so many bytes more may be handed over.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        let more = if self.delay.is_draining() { 0 } else { bytes };
        self.under_way() <= self.room_bytes() + more
    }

    /// By how much the first block in flight missed its time while nothing was acknowledged.
    fn lateness_ns(&self, now_ns: u64) -> u64 {
        let first = self.carried.front();
        first.map_or(0, |first| now_ns.saturating_sub(first.expected_ns.max(self.progress_ns)))
    }

    fn until_acknowledged(&self, bytes: u64, now_ns: u64) -> u64 {
        let (rate, lateness_ns) = (self.rate(), self.lateness_ns(now_ns));
        self.delay_ns().max(time_ns(self.under_way(), rate)) + time_ns(bytes, rate) + lateness_ns
    }

    /// In how many nanoseconds a block would be with the peer if it was handed over now.
    pub(super) fn until_there(&self, bytes: u64, now_ns: u64) -> u64 {
        self.until_acknowledged(bytes, now_ns).saturating_sub(self.delay_ns() / 2)
    }

    /// In how many nanoseconds a block that ends at `end` and was handed over at `handed_ns` will be with
    /// the peer.
    pub(super) fn until_carried(&self, end: u64, handed_ns: u64, now_ns: u64) -> u64 {
        let queue_ns = time_ns(end.saturating_sub(self.received), self.rate());
        let delay_ns = (handed_ns + self.delay_ns()).saturating_sub(now_ns);
        let acknowledged_ns = queue_ns.max(delay_ns) + self.lateness_ns(now_ns);
        acknowledged_ns.saturating_sub(self.delay_ns() / 2)
    }

    /// How much the times of this connection vary.
    pub(super) fn variation_ns(&self) -> u64 {
        (4 * self.variation_ns).min(MOST_VARIATION_NS)
    }

    /// When the connection is to be taken for stalled if nothing is acknowledged until then. A lost
    /// segment costs a round trip, which is no stall.
    pub(super) fn stalls_at(&self) -> Option<u64> {
        let first = self.carried.front()?;
        let round_trip_ns = self.kernel.srtt_ns.max(self.delay_ns());
        let timeout_ns =
            LEAST_TIMEOUT_NS.max(round_trip_ns + round_trip_ns / 2).max(self.variation_ns());
        Some(first.expected_ns.max(self.progress_ns) + timeout_ns)
    }

    pub(super) fn is_stalled(&self, now_ns: u64) -> bool {
        self.stalls_at().is_some_and(|at| at <= now_ns)
    }
}
