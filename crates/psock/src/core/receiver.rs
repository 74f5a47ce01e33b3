//! The receiving half: blocks in any order go in, the stream comes out.
//!
//! Memory is bounded by the advertised window, and by the number of blocks that may lie
//! beyond a gap; the peer never has a reason to send more. A block that is sent again has the place and
//! the length that it had before, so a part of a known block, or the same block with other bytes, is a
//! violation and not a guess about which bytes are true.

use std::collections::{BTreeMap, VecDeque};

use super::{Block, Chunk, Violation};

/// Blocks beyond a gap that are kept at most: twice what an honest peer has in flight.
const MAX_HELD: usize = 65_536;
/// Small blocks are joined up to this size when they wait for the application.
const JOINED_BYTES: usize = 16_384;

/// The outcome of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is kept; whether it closed a gap.
    New {
        /// Blocks that waited behind it are in order now.
        closed_gap: bool,
    },
    /// It had come before.
    Duplicate,
}

/// The receiving half.
pub(super) struct Receiver {
    window: u64,
    /// In order, for the application.
    ready: VecDeque<Chunk>,
    /// Beyond a gap, by their offsets.
    held: BTreeMap<u64, Vec<u8>>,
    in_order: u64,
    /// The application has everything before this.
    taken: u64,
    /// Bytes handed out.
    handed: u64,
    /// Bytes in `held`.
    held_bytes: usize,
    /// Where the stream ends.
    end: Option<u64>,
}

impl Receiver {
    pub(super) fn new(window: u64) -> Self {
        Self {
            window,
            ready: VecDeque::new(),
            held: BTreeMap::new(),
            in_order: 0,
            taken: 0,
            handed: 0,
            held_bytes: 0,
            end: None,
        }
    }

    /// Everything before this came.
    pub(super) fn in_order(&self) -> u64 {
        self.in_order
    }

    /// The peer may send bytes before this.
    pub(super) fn limit(&self) -> u64 {
        self.taken + self.window
    }

    /// The window, which does not change.
    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// The end is known and everything before it came.
    pub(super) fn is_ended(&self) -> bool {
        self.end == Some(self.in_order)
    }

    /// The application has the whole stream.
    pub(super) fn is_taken(&self) -> bool {
        self.end == Some(self.taken)
    }

    /// Bytes in memory that the application has not taken.
    pub(super) fn held(&self) -> usize {
        // What is in order and not taken lies in the window, whose size is a usize.
        usize::try_from(self.in_order - self.taken).unwrap_or(usize::MAX) + self.held_bytes
    }

    pub(super) fn block(&mut self, block: &Block<'_>) -> Result<Taken, Violation> {
        let Block { offset, bytes } = *block;
        let end = offset + bytes.len() as u64;
        if end > self.limit() {
            return Err(Violation::BeyondWindow { end, limit: self.limit() });
        }
        if self.end.is_some_and(|last| end > last) {
            return Err(Violation::BeyondEnd { end });
        }
        if end <= self.in_order {
            return Ok(Taken::Duplicate);
        }
        if offset < self.in_order {
            return Err(Violation::Overlap { offset });
        }
        if let Some((start, before)) = self.held.range(..end).next_back() {
            if *start == offset && before.len() == bytes.len() {
                let same = before == bytes;
                return if same {
                    Ok(Taken::Duplicate)
                } else {
                    Err(Violation::Overlap { offset })
                };
            }
            if *start + before.len() as u64 > offset {
                return Err(Violation::Overlap { offset });
            }
        }
        if offset > self.in_order {
            if self.held.len() == MAX_HELD {
                return Err(Violation::TooManyBlocks);
            }
            self.held_bytes += bytes.len();
            self.held.insert(offset, bytes.to_vec());
            return Ok(Taken::New { closed_gap: false });
        }
        self.in_order = end;
        self.ready(bytes.to_vec());
        let mut closed_gap = false;
        while let Some(entry) = self.held.first_entry() {
            if *entry.key() != self.in_order {
                break;
            }
            let bytes = entry.remove();
            self.held_bytes -= bytes.len();
            self.in_order += bytes.len() as u64;
            self.ready(bytes);
            closed_gap = true;
        }
        Ok(Taken::New { closed_gap })
    }

    fn ready(&mut self, bytes: Vec<u8>) {
        let last = self.ready.back_mut();
        if let Some(last) = last.filter(|l| l.as_ref().len() + bytes.len() <= JOINED_BYTES)
            && last.append(&bytes)
        {
            return;
        }
        self.ready.push_back(Chunk::new(bytes));
    }

    /// The peer says where its stream ends.
    pub(super) fn finish(&mut self, end: u64) -> Result<(), Violation> {
        let known = self.held.last_key_value().map_or(self.in_order, |(k, v)| k + v.len() as u64);
        if self.end.is_some_and(|other| other != end) || end < known {
            return Err(Violation::OtherEnd { end });
        }
        self.end = Some(end);
        Ok(())
    }

    /// The next bytes for the application.
    pub(super) fn deliver(&mut self) -> Option<Chunk> {
        let chunk = self.ready.pop_front()?;
        self.handed += chunk.as_ref().len() as u64;
        Some(chunk)
    }

    /// The application took bytes that were handed out.
    pub(super) fn delivered(&mut self, bytes: usize) {
        self.taken = self.handed.min(self.taken + bytes as u64);
    }
}
