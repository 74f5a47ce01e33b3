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
//! cut again: when it is sent again, it has the same offset and the same length. What a connection carries
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
    carriers: Vec<Carrier>,
    /// It was handed to a connection at some time.
    sent: bool,
}

impl Block {
    fn end(&self) -> u64 {
        self.offset + self.length as u64
    }
}

/// A connection that has a block.
struct Carrier {
    id: ConnectionId,
    /// Bytes handed to it up to the end of the block.
    end: u64,
    handed_ns: u64,
    /// It stalls, and is not counted on.
    stalled: bool,
}

/// A block by its index among all blocks of the stream.
pub(super) type Number = u64;

/// A block that no connection carries.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) number: Number,
    pub(super) offset: u64,
}

/// A block that one connection carries and the peer is not known to have.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub(super) number: Number,
    pub(super) offset: u64,
    pub(super) carrier: ConnectionId,
    /// Bytes handed to the carrier up to the end of the block.
    pub(super) end: u64,
    pub(super) handed_ns: u64,
}

/// A block that is being sent.
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
    /// Blocks that no connection carries, or only such that stall.
    free: BTreeSet<Number>,
    /// Blocks that one connection carries that does not stall.
    waiting: BTreeSet<Number>,
    /// Bytes in memory.
    held: usize,
    /// Where the stream ends by now.
    end: u64,
    /// The application gives no more.
    finished: bool,
    /// The peer was informed where the stream ends.
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
            waiting: BTreeSet::new(),
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
        if self.finished {
            return 0;
        }
        // As many as become whole blocks, which are small where the peer's window is.
        let blocks = MAX_BLOCKS.saturating_sub(self.blocks.len());
        let most = blocks.saturating_mul(self.block_bytes).saturating_sub(self.tail.len());
        self.send_bytes.saturating_sub(self.held).min(most)
    }

    /// Bytes in memory.
    pub(super) fn held(&self) -> usize {
        self.held
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

    /// Where the stream ends, to announce it to the peer, if the application has ended it and the peer has not
    /// acknowledged it.
    pub(super) fn tell_finish(&mut self) -> Option<u64> {
        let sent = self.finished && !self.ended;
        self.finish_sent |= sent;
        sent.then_some(self.end)
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

    /// Bytes of a block that is not the last one.
    pub(super) fn block_bytes(&self) -> u64 {
        self.block_bytes as u64
    }

    /// The peer takes bytes before this.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// The first block that no connection carries, if the peer takes it.
    pub(super) fn head(&self) -> Option<Head> {
        let (head, end) = match self.free.first() {
            Some(number) => {
                let block = self.block(*number)?;
                (Head { number: *number, offset: block.offset }, block.end())
            }
            None if self.tail.is_empty() || self.blocks.len() >= MAX_BLOCKS => return None,
            None => {
                let number = self.base + self.blocks.len() as u64;
                (Head { number, offset: self.end - self.tail.len() as u64 }, self.end)
            }
        };
        (end <= self.limit).then_some(head)
    }

    /// The first block from `offset` on that no connection carries, if the peer takes it.
    pub(super) fn ahead(&self, offset: u64) -> Option<Number> {
        let index = self.blocks.partition_point(|block| block.offset < offset);
        let number = *self.free.range(self.base + index as u64..).next()?;
        (self.block(number)?.end() <= self.limit).then_some(number)
    }

    /// The first block that one connection carries.
    pub(super) fn waiting(&self) -> Option<Waiting> {
        let number = *self.waiting.first()?;
        let block = self.block(number)?;
        let carrier = block.carriers.iter().find(|carrier| !carrier.stalled)?;
        let Carrier { id, end, handed_ns, .. } = *carrier;
        Some(Waiting { number, offset: block.offset, carrier: id, end, handed_ns })
    }

    /// The bytes of a block, to be handed to a connection with [`Self::handed`].
    pub(super) fn take(&mut self, number: Number) -> Option<Outgoing> {
        if number == self.base + self.blocks.len() as u64 && !self.tail.is_empty() {
            let rest = std::mem::take(&mut self.tail);
            self.cut(rest);
        }
        let block = self.block(number)?;
        Some(Outgoing { offset: block.offset, bytes: block.bytes.clone()?, again: block.sent })
    }

    /// A connection got a block; `end` bytes were handed to it up to the block's end.
    pub(super) fn handed(&mut self, number: Number, id: ConnectionId, end: u64, handed_ns: u64) {
        if let Some(block) = self.block_mut(number) {
            block.sent = true;
            block.carriers.push(Carrier { id, end, handed_ns, stalled: false });
            self.file(number);
        }
    }

    /// A connection brought a block to the peer.
    pub(super) fn arrived(&mut self, number: Number) {
        let Some(block) = self.block_mut(number) else { return };
        if block.bytes.take().is_some() {
            block.carriers = Vec::new();
            self.held -= block.length;
            self.file(number);
        }
    }

    /// A connection is gone that may not have brought a block to the peer.
    pub(super) fn lost(&mut self, number: Number, id: ConnectionId) {
        if let Some(block) = self.block_mut(number) {
            block.carriers.retain(|carrier| carrier.id != id);
            self.file(number);
        }
    }

    /// A connection that has a block stalls, or goes on.
    pub(super) fn release(&mut self, number: Number, id: ConnectionId, stalled: bool) {
        if let Some(block) = self.block_mut(number) {
            for carrier in block.carriers.iter_mut().filter(|carrier| carrier.id == id) {
                carrier.stalled = stalled;
            }
            self.file(number);
        }
    }

    /// Puts a block where it belongs by the connections that have it.
    fn file(&mut self, number: Number) {
        self.free.remove(&number);
        self.waiting.remove(&number);
        let Some(block) = self.block(number).filter(|block| block.bytes.is_some()) else { return };
        match block.carriers.iter().filter(|carrier| !carrier.stalled).count() {
            0 => self.free.insert(number),
            1 => self.waiting.insert(number),
            _ => false,
        };
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
