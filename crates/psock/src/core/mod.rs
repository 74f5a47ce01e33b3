//! The core of a session: bytes, frames and readings of a clock go in, frames and bytes come out.
//!
//! ```text
//! push -> sender -> schedule table -> next(connection) -> frames
//!           ^            ^ driver, with each connection's path (rate, delay)
//! frames -> receive -----+--> receiver -> deliver
//! ```
//!
//! It does no I/O, reads no clock and draws no random numbers, so a run can be repeated exactly
//! (tests/it/model does so thousands of times).

mod acknowledger;
mod chunk;
pub mod driver;
mod driver_name;
mod estimate;
pub mod frame;
mod path;
mod receiver;
mod schedule;
mod sender;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

use acknowledger::Acknowledger;
pub use chunk::Chunk;
use driver::{Driver, DriverName, View};
use frame::{Acknowledge, BLOCK_HEADER_LEN, Block, Frame, MAX_BLOCK};
use path::Path;
use receiver::{Receiver, Taken};
use schedule::{Pick, Schedule};
use sender::Sender;

/// The local number of a data connection, never used twice in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct ConnectionId(pub u32);

/// How a core is to work.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Who spreads the blocks.
    pub driver: DriverName,
    /// Bytes of a block, at most [`MAX_BLOCK`].
    pub block_bytes: usize,
    /// Our reorder memory: the window that we offer.
    pub reorder_bytes: usize,
    /// Bytes that we keep until the peer has them.
    pub send_bytes: usize,
}

/// Bytes of a block with which its frame is one TLS record.
pub const RECORD_BLOCK: usize = 16_384 - BLOCK_HEADER_LEN;

/// The kernel's figures of a connection (TCP_INFO); a value that is not known is 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kernel {
    /// Smoothed round-trip time.
    pub srtt_ns: u64,
    /// The least recent round-trip time.
    pub min_rtt_ns: u64,
    /// Bytes a second that arrived recently.
    pub delivery_rate: u64,
    /// The congestion window.
    pub cwnd_bytes: u32,
}

/// What a connection is to do.
#[derive(Debug)]
pub enum Next {
    /// Write this whole, then ask again.
    Frame(OutFrame),
    /// Nothing before [`Core::wake_at`] or the next event.
    Wait,
}

/// A frame to write: its head, then its payload.
#[derive(Clone, Debug)]
pub struct OutFrame {
    head: Vec<u8>,
    payload: Chunk,
}

impl OutFrame {
    /// What goes first.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// What goes after it; empty for all but blocks.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.payload.as_ref()
    }

    /// Octets of both.
    #[must_use]
    pub fn length(&self) -> usize {
        self.head.len() + self.payload().len()
    }

    fn of(frame: &Frame<'_>) -> Self {
        let mut head = Vec::with_capacity(32);
        frame.emit(&mut head);
        Self { head, payload: Chunk::default() }
    }
}

/// What the peer did that no honest peer does. The session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A block beyond the window.
    #[error("a block up to offset {end}, beyond the window up to {limit}")]
    BeyondWindow {
        /// Where the block ends.
        end: u64,
        /// Where the window ends.
        limit: u64,
    },
    /// A block beyond the end of the stream.
    #[error("a block up to offset {end}, beyond the end of the stream")]
    BeyondEnd {
        /// Where the block ends.
        end: u64,
    },
    /// A block that is a part of what came, or contradicts it.
    #[error("the block at offset {offset} contradicts earlier blocks")]
    Overlap {
        /// Where the block begins.
        offset: u64,
    },
    /// More blocks beyond a gap than anybody needs.
    #[error("too many small blocks")]
    TooManyBlocks,
    /// An end of the stream that contradicts earlier blocks.
    #[error("the end of the stream at offset {end} contradicts earlier blocks")]
    OtherEnd {
        /// The length that Finish carried.
        end: u64,
    },
    /// An acknowledgement of what was never sent.
    #[error("an acknowledgement of bytes that were never sent")]
    NeverSent,
    /// An acknowledgement that takes back an earlier one of the same connection.
    #[error("an acknowledgement that takes back an earlier one")]
    TakenBack,
    /// A frame that must not come on a data connection.
    #[error("a frame that must not come on a data connection")]
    Misplaced,
}

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is something left to do.
    Open,
    /// The application gave all, and the peer has it; the peer's stream goes on.
    FinishedSending,
    /// The peer's stream was delivered to its end; ours goes on.
    FinishedReceiving,
    /// Everything is acknowledged in both directions. The connections may be closed once what [`Core::next`] gave
    /// is written.
    FinishedBoth,
}

/// Figures of a connection or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Bytes of blocks handed to the connection, those sent again too.
    pub sent_bytes: u64,
    /// Blocks handed to the connection.
    pub sent_blocks: u64,
    /// Blocks among them that had been sent before.
    pub retransmitted_blocks: u64,
    /// Bytes of blocks that the peer has from this connection.
    pub acknowledged_bytes: u64,
    /// Bytes of blocks that came.
    pub received_bytes: u64,
    /// Blocks that came.
    pub received_blocks: u64,
    /// Blocks among them that had come before.
    pub duplicate_blocks: u64,
}

/// One data connection.
#[derive(Default)]
pub(crate) struct Connection {
    path: Path,
    acknowledger: Acknowledger,
    /// The peer was informed on it where our stream ends.
    finish_sent: bool,
    counters: Counters,
}

/// The data connections of a session.
pub(crate) type Connections = BTreeMap<ConnectionId, Connection>;

/// The core of a session.
pub struct Core {
    sender: Sender,
    receiver: Receiver,
    connections: Connections,
    schedule: Schedule,
    driver: Box<dyn Driver>,
    /// Of connections that are gone.
    gone: Counters,
}

impl Core {
    /// A session whose peer offers this window.
    #[must_use]
    pub fn new(settings: Settings, peer_window: u64) -> Self {
        // A block must fit into half of the window, or it might wait for room that is never advertised.
        let largest = usize::try_from(peer_window / 2).unwrap_or(MAX_BLOCK).clamp(1, MAX_BLOCK);
        let block_bytes = settings.block_bytes.clamp(1, largest);
        Self {
            sender: Sender::new(block_bytes, settings.send_bytes, peer_window),
            receiver: Receiver::new(settings.reorder_bytes as u64),
            connections: Connections::new(),
            schedule: Schedule::default(),
            driver: settings.driver.driver(),
            gone: Counters::default(),
        }
    }

    /// A data connection has joined.
    pub fn opened(&mut self, id: ConnectionId, _now_ns: u64) {
        let mut connection = Connection::default();
        if self.receiver.in_order() > 0 {
            connection.acknowledger.now();
        }
        self.connections.insert(id, connection);
        self.driver.opened(id);
    }

    /// A data connection is gone: its unacknowledged blocks are sent elsewhere.
    pub fn closed(&mut self, id: ConnectionId, _now_ns: u64) {
        let Some(connection) = self.connections.remove(&id) else { return };
        self.gone.add(&connection.counters);
        for number in connection.path.carried() {
            self.sender.lost(number, id);
        }
        self.driver.closed(id);
        self.schedule.forget(id);
    }

    /// The kernel's figures of a connection.
    pub fn observe(&mut self, id: ConnectionId, kernel: &Kernel, _now_ns: u64) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.path.observe(kernel);
        }
    }

    /// Bytes that the application may give now.
    #[must_use]
    pub fn send_room(&self) -> usize {
        self.sender.room()
    }

    /// Bytes from the application, at most [`Self::send_room`]. A block of exactly the block size is not
    /// copied.
    pub fn push(&mut self, bytes: Vec<u8>) {
        self.sender.push(bytes);
    }

    /// The application gives no more bytes.
    pub fn finish(&mut self) {
        self.sender.finish();
    }

    /// The next bytes in order for the application.
    pub fn deliver(&mut self) -> Option<Chunk> {
        self.receiver.deliver()
    }

    /// The application has taken so many bytes more: the window opens.
    pub fn delivered(&mut self, bytes: usize) {
        self.receiver.delivered(bytes);
    }

    /// What a connection whose socket can be written is to write.
    pub fn next(&mut self, id: ConnectionId, now_ns: u64) -> Next {
        let Some(connection) = self.connections.get_mut(&id) else { return Next::Wait };
        if let Some(ack) = connection.acknowledger.next(&self.receiver, now_ns) {
            return Next::Frame(OutFrame::of(&Frame::Acknowledge(ack)));
        }
        if !connection.finish_sent
            && let Some(end) = self.sender.tell_finish()
        {
            connection.finish_sent = true;
            return Next::Frame(OutFrame::of(&Frame::Finish(end)));
        }
        self.next_block(id, now_ns).map_or(Next::Wait, Next::Frame)
    }

    fn next_block(&mut self, id: ConnectionId, now_ns: u64) -> Option<OutFrame> {
        let Self { sender, connections, driver, schedule, .. } = self;
        driver.fill(id, &mut View { sender, connections, now_ns }, schedule);
        let number = match schedule.turn(id)? {
            Pick::Head => sender.head()?.number,
            Pick::Free(number) | Pick::Again(number) => number,
        };
        schedule.advance();
        let (block, connection) = (sender.take(number)?, connections.get_mut(&id)?);
        let length = block.bytes.as_ref().len();
        let end = connection.path.hand(number, length, now_ns);
        sender.handed(number, id, end, now_ns);
        connection.counters.sent_bytes += length as u64;
        connection.counters.sent_blocks += 1;
        connection.counters.retransmitted_blocks += u64::from(block.again);
        let head = frame::block_header(block.offset, length).to_vec();
        Some(OutFrame { head, payload: block.bytes })
    }

    /// A frame of the peer. After an error the session must end.
    pub fn receive(
        &mut self,
        id: ConnectionId,
        frame: &Frame<'_>,
        now_ns: u64,
    ) -> Result<(), Violation> {
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        match frame {
            Frame::Block(block) => {
                let length = block.bytes.len();
                connection.counters.received_bytes += length as u64;
                connection.counters.received_blocks += 1;
                connection.acknowledger.came(length, now_ns);
                match self.receiver.block(block)? {
                    Taken::Duplicate => connection.counters.duplicate_blocks += 1,
                    Taken::New { closed_gap: true } => self.tell_soonest(now_ns),
                    Taken::New { closed_gap: false } => {}
                }
                Ok(())
            }
            Frame::Acknowledge(ack) => {
                connection.path.acknowledged(ack.received, now_ns)?;
                connection.counters.acknowledged_bytes = ack.received;
                while let Some(number) = connection.path.arrived() {
                    self.sender.arrived(number);
                }
                self.sender.acknowledged(ack)?;
                self.tick(now_ns);
                Ok(())
            }
            Frame::Finish(end) => self.receiver.finish(*end),
            Frame::Skipped(_) => Ok(()),
            _ => Err(Violation::Misplaced),
        }
    }

    /// Has the connection with the shortest round trip say that a gap is closed: the peer may wait for
    /// it, and the connection that closed it may be slow.
    fn tell_soonest(&mut self, now_ns: u64) {
        let known = self.connections.values_mut().filter(|c| c.path.kernel().srtt_ns > 0);
        if let Some(connection) = known.min_by_key(|c| c.path.kernel().srtt_ns) {
            connection.acknowledger.soon(now_ns);
        }
    }

    /// Time went by.
    pub fn tick(&mut self, now_ns: u64) {
        for connection in self.connections.values_mut() {
            connection.acknowledger.tick(now_ns);
        }
        let Self { sender, connections, driver, .. } = self;
        driver.tick(&mut View { sender, connections, now_ns });
    }

    /// When [`Self::tick`] and then [`Self::next`] of every connection are to be called at the latest.
    #[must_use]
    pub fn wake_at(&self) -> Option<u64> {
        let acknowledgements = self.connections.values().filter_map(|c| c.acknowledger.due_ns());
        acknowledgements.chain(self.driver.wake_at(&self.connections)).min()
    }

    /// Whether the application gave all and the peer has it.
    #[must_use]
    pub fn is_sent(&self) -> bool {
        self.sender.is_done()
    }

    /// Whether the peer's whole stream has come, taken by the application or not.
    #[must_use]
    pub fn is_received(&self) -> bool {
        self.receiver.is_ended()
    }

    /// Whether the application has taken the peer's stream to its end.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.receiver.is_taken()
    }

    /// How far the session is.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let received = self.receiver.is_taken();
        let informed = self.connections.values().any(|c| c.acknowledger.end_reported());
        match (self.sender.is_done(), received) {
            (false, false) => Outcome::Open,
            (false, true) => Outcome::FinishedReceiving,
            (true, true) if informed => Outcome::FinishedBoth,
            (true, _) => Outcome::FinishedSending,
        }
    }

    /// Bytes in memory that the peer is not known to have.
    #[must_use]
    pub fn unacknowledged_bytes(&self) -> usize {
        self.sender.held()
    }

    /// Bytes in memory that the application has not taken: at most [`Settings::reorder_bytes`].
    #[must_use]
    pub fn reorder_bytes(&self) -> usize {
        self.receiver.held()
    }

    /// Figures of the connections that are there.
    pub fn counters(&self) -> impl Iterator<Item = (ConnectionId, Counters)> {
        self.connections.iter().map(|(id, connection)| (*id, connection.counters))
    }

    /// Figures of a connection that is there, and the kernel's last figures.
    #[must_use]
    pub fn connection(&self, id: ConnectionId) -> Option<(Counters, Kernel)> {
        self.connections.get(&id).map(|connection| (connection.counters, *connection.path.kernel()))
    }

    /// Figures of all connections that there ever were.
    #[must_use]
    pub fn total(&self) -> Counters {
        let mut total = self.gone;
        for connection in self.connections.values() {
            total.add(&connection.counters);
        }
        total
    }
}

impl Counters {
    fn add(&mut self, other: &Self) {
        self.sent_bytes += other.sent_bytes;
        self.sent_blocks += other.sent_blocks;
        self.retransmitted_blocks += other.retransmitted_blocks;
        self.acknowledged_bytes += other.acknowledged_bytes;
        self.received_bytes += other.received_bytes;
        self.received_blocks += other.received_blocks;
        self.duplicate_blocks += other.duplicate_blocks;
    }
}
