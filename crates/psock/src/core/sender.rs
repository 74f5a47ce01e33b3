//! The sending half: the application's bytes, cut into blocks, until the peer has them.
//!
//! ```text
//!     base                                              tail
//!      |  acknowledged out of order: bytes dropped       |  bytes that are no block yet
//!      v                                                 v
//!  [carried][free][arrived][carried][carried][free][free][...
//!             ^ head: the first that no connection carries
//! ```
//!
//! A block is cut when there are bytes for a whole one, or when a shorter one can go at once, and is never
//! cut anew: when it is sent again, it has the same place and the same length. What a connection carries
//! arrives there in order, so the number of bytes that a peer has from a connection says which blocks it
//! has. All steps take O(log n) of the blocks.

use std::collections::{BTreeSet, VecDeque};

use super::{Acknowledge, Chunk, ConnectionId, Violation};

/// Blocks that there may be at a time between the first that the peer does not have and the last. The
/// peer's receiver counts on it (`receiver::MAX_HELD`).
const MAX_BLOCKS: usize = 32_768;

/// One block.
struct Block {
    offset: u64,
    length: usize,
    /// Dropped when the block arrived.
    bytes: Option<Chunk>,
    /// The connections that carry it.
    carriers: Vec<ConnectionId>,
    /// It was handed to a connection at some time.
    sent: bool,
}

impl Block {
    fn end(&self) -> u64 {
        self.offset + self.length as u64
    }
}

/// A block by its place among all blocks of the stream.
pub(super) type Number = u64;

/// A block on its way out.
pub(super) struct Outgoing {
    pub(super) offset: u64,
    pub(super) bytes: Chunk,
    /// It was sent before.
    pub(super) again: bool,
}

/// The sending half.
pub(super) struct Sender {
    block_bytes: usize,
    send_bytes: usize,
    /// The number of the first block in `blocks`.
    base: Number,
    blocks: VecDeque<Block>,
    /// Bytes behind the last block.
    tail: Vec<u8>,
    /// Blocks that are to be sent.
    free: BTreeSet<Number>,
    /// Bytes in memory.
    held: usize,
    /// Where the stream ends by now.
    end: u64,
    /// The application gives no more.
    finished: bool,
    /// The peer was told where the stream ends.
    finish_sent: bool,
    /// The peer has everything before this.
    in_order: u64,
    /// The peer knows that it has everything.
    ended: bool,
    /// The peer takes bytes before this.
    limit: u64,
}

impl Sender {
    pub(super) fn new(block_bytes: usize, send_bytes: usize, limit: u64) -> Self {
        Self {
            block_bytes,
            send_bytes,
            base: 0,
            blocks: VecDeque::new(),
            tail: Vec::new(),
            free: BTreeSet::new(),
            held: 0,
            end: 0,
            finished: false,
            finish_sent: false,
            in_order: 0,
            ended: false,
            limit,
        }
    }

    /// Bytes that may be pushed now.
    pub(super) fn room(&self) -> usize {
        if self.finished || self.blocks.len() >= MAX_BLOCKS {
            return 0;
        }
        self.send_bytes.saturating_sub(self.held)
    }

    pub(super) fn push(&mut self, bytes: Vec<u8>) {
        if self.finished {
            return;
        }
        self.end += bytes.len() as u64;
        self.held += bytes.len();
        if self.tail.is_empty() && bytes.len() == self.block_bytes {
            self.cut(bytes);
            return;
        }
        let mut bytes = bytes.as_slice();
        while !bytes.is_empty() {
            let missing = self.block_bytes - self.tail.len();
            let (now, later) = bytes.split_at(missing.min(bytes.len()));
            self.tail.extend_from_slice(now);
            bytes = later;
            if self.tail.len() == self.block_bytes {
                let whole = std::mem::take(&mut self.tail);
                self.cut(whole);
            }
        }
    }

    pub(super) fn finish(&mut self) {
        self.finished = true;
    }

    /// Makes a block of bytes that come after the last one.
    fn cut(&mut self, bytes: Vec<u8>) {
        let number = self.base + self.blocks.len() as u64;
        let offset = self.blocks.back().map_or(self.in_order, Block::end);
        self.blocks.push_back(Block {
            offset,
            length: bytes.len(),
            bytes: Some(Chunk::new(bytes)),
            carriers: Vec::new(),
            sent: false,
        });
        self.free.insert(number);
    }

    /// Where the stream ends, to tell the peer, if the application has said so and the peer has not
    /// acknowledged it.
    pub(super) fn tell_finish(&mut self) -> Option<u64> {
        let told = self.finished && !self.ended;
        self.finish_sent |= told;
        told.then_some(self.end)
    }

    /// The peer has everything, and knows it.
    pub(super) fn is_done(&self) -> bool {
        self.ended
    }

    fn block(&self, number: Number) -> Option<&Block> {
        self.blocks.get(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    fn block_mut(&mut self, number: Number) -> Option<&mut Block> {
        self.blocks.get_mut(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    /// The first block that no connection carries and the peer takes.
    pub(super) fn head(&self) -> Option<Number> {
        let next = self.base + self.blocks.len() as u64;
        let (number, end) = match self.free.first() {
            Some(number) => (*number, self.block(*number)?.end()),
            None if self.tail.is_empty() || self.blocks.len() >= MAX_BLOCKS => return None,
            None => (next, self.end),
        };
        (end <= self.limit).then_some(number)
    }

    /// Hands a block to a connection.
    pub(super) fn take(&mut self, number: Number, carrier: ConnectionId) -> Option<Outgoing> {
        if number == self.base + self.blocks.len() as u64 && !self.tail.is_empty() {
            let rest = std::mem::take(&mut self.tail);
            self.cut(rest);
        }
        self.free.remove(&number);
        let block = self.block_mut(number)?;
        let bytes = block.bytes.clone()?;
        let again = std::mem::replace(&mut block.sent, true);
        block.carriers.push(carrier);
        Some(Outgoing { offset: block.offset, bytes, again })
    }

    /// A connection brought a block to the peer.
    pub(super) fn arrived(&mut self, number: Number) {
        let Some(block) = self.block_mut(number) else { return };
        if block.bytes.take().is_some() {
            block.carriers = Vec::new();
            self.held -= block.length;
            self.free.remove(&number);
        }
    }

    /// A connection is gone that may not have brought a block to the peer.
    pub(super) fn lost(&mut self, number: Number, carrier: ConnectionId) {
        let Some(block) = self.block_mut(number) else { return };
        block.carriers.retain(|other| *other != carrier);
        if block.bytes.is_some() && block.carriers.is_empty() {
            self.free.insert(number);
        }
    }

    /// What the peer says of the stream as a whole.
    pub(super) fn acknowledged(&mut self, ack: &Acknowledge) -> Result<(), Violation> {
        self.limit = self.limit.max(ack.limit);
        while let Some(block) = self.blocks.front() {
            if block.end() > ack.in_order {
                break;
            }
            if !block.sent {
                return Err(Violation::NeverSent);
            }
            self.in_order = block.end();
            self.arrived(self.base);
            self.blocks.pop_front();
            self.base += 1;
        }
        // The peer takes blocks whole, so what it has in order ends where a block ends.
        if ack.in_order > self.in_order {
            return Err(Violation::NeverSent);
        }
        if ack.ended {
            if !self.finish_sent || ack.in_order != self.end {
                return Err(Violation::NeverSent);
            }
            self.ended = true;
        }
        Ok(())
    }
}
