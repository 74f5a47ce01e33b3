//! Matches replies with requests: received, duplicate, reordered or damaged.
//!
//! Every request has an index. The threads that send each have a range of indices, and within a
//! range requests go out in the order of their indices. A reply is reordered if it belongs to an
//! earlier request than one of the same range whose reply has come already (RFC 4737, section 3:
//! its sequence is below NextExp); duplicates are not judged.

use hdrhistogram::Histogram;

use super::{
    outcome::{Replies, histogram},
    probe,
};

/// The indices of a run and their numbers in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indices {
    /// The number of index 0; identifier and sequence of an echo are one number.
    pub base: u32,
    /// Indices of each thread.
    pub each: u32,
    /// Threads.
    pub threads: u32,
}

impl Indices {
    /// For `total` requests from some threads. The ranges are multiples of 64, so that a thread's
    /// first index is one at which the in-kernel engine reads the clock.
    pub fn new(base: u32, total: u64, threads: u32) -> Self {
        let each = total.div_ceil(threads.into()).next_multiple_of(64);
        Self { base, each: u32::try_from(each).unwrap_or(u32::MAX / threads), threads }
    }

    /// All indices.
    pub fn span(&self) -> u32 {
        self.each.saturating_mul(self.threads)
    }

    /// First index of a thread.
    pub fn first(&self, thread: u32) -> u32 {
        thread * self.each
    }

    /// The number of an index.
    pub fn number(&self, index: u32) -> u32 {
        self.base.wrapping_add(index)
    }

    /// The index that a number stands for, if it is one of this run.
    pub fn index(&self, number: u32) -> Option<u32> {
        let index = number.wrapping_sub(self.base);
        (index < self.span()).then_some(index)
    }
}

/// A reply as received.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Identifier and sequence.
    pub number: u32,
    /// What follows the ICMP header.
    pub payload: &'a [u8],
    /// Whether the checksums are right.
    pub checksum_ok: bool,
    /// When it arrived, in nanoseconds of the clock in the requests.
    pub at: u64,
}

/// The kind of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The first undamaged reply to a request.
    Received,
    /// Another one to the same request.
    Duplicate,
    /// Its checksum or payload is wrong.
    Corrupt,
    /// No reply to a request of this run.
    Foreign,
}

/// Collects the replies of a run.
#[derive(Debug)]
pub struct Matcher {
    indices: Indices,
    payload: Vec<u8>,
    start: u64,
    seen: Seen,
    expected: Vec<u32>,
    replies: Replies,
}

impl Matcher {
    /// For requests with this payload; `start` is when second 0 of the run begins.
    pub fn new(indices: Indices, payload: Vec<u8>, start: u64) -> Self {
        Self {
            indices,
            payload,
            start,
            seen: Seen::default(),
            expected: (0..indices.threads).map(|thread| indices.first(thread)).collect(),
            replies: Replies::default(),
        }
    }

    /// Adds a reply and returns its kind.
    pub fn take(&mut self, arrival: Arrival<'_>) -> Verdict {
        let Some(index) = self.indices.index(arrival.number) else { return Verdict::Foreign };
        let stamp = probe::stamp(&self.payload, arrival.payload).filter(|_| arrival.checksum_ok);
        let Some(sent) = stamp else {
            self.replies.corrupt += 1;
            return Verdict::Corrupt;
        };
        if !self.seen.insert(index) {
            self.replies.duplicated += 1;
            return Verdict::Duplicate;
        }
        self.replies.received += 1;
        let expected = &mut self.expected[(index / self.indices.each) as usize];
        if index < *expected {
            self.replies.reordered += 1;
        } else {
            *expected = index + 1;
        }
        let second = (sent.saturating_sub(self.start) / 1_000_000_000) as usize;
        count_second(&mut self.replies.by_second, second, 1);
        self.replies.rtt.saturating_record(arrival.at.saturating_sub(sent));
        Verdict::Received
    }

    /// What was counted so far.
    pub fn replies(&self) -> &Replies {
        &self.replies
    }

    /// What was counted.
    pub fn into_replies(self) -> Replies {
        self.replies
    }
}

/// Seconds that are counted one by one; later ones go into the last.
pub const SECONDS: usize = 3600;

/// Adds to a second's count.
pub fn count_second(seconds: &mut Vec<u64>, second: usize, count: u64) {
    let second = second.min(SECONDS - 1);
    if second >= seconds.len() {
        seconds.resize(second + 1, 0);
    }
    seconds[second] += count;
}

/// A set of indices: 64 Ki to a chunk. A chunk that is full needs no memory any more, so a run
/// without loss needs little, however long it is.
#[derive(Debug, Default)]
struct Seen(Vec<Chunk>);

#[derive(Clone, Debug, Default)]
enum Chunk {
    #[default]
    Empty,
    Some {
        words: Box<[u64; WORDS]>,
        missing: u32,
    },
    Full,
}

/// Words of a chunk, 64 indices each.
const WORDS: usize = 1024;

impl Seen {
    /// Puts an index in; false if it was in already.
    fn insert(&mut self, index: u32) -> bool {
        let (chunk, word, bit) = (index >> 16, (index >> 6) as usize % WORDS, index % 64);
        let chunk = chunk as usize;
        if chunk >= self.0.len() {
            self.0.resize(chunk + 1, Chunk::Empty);
        }
        let chunk = &mut self.0[chunk];
        if matches!(chunk, Chunk::Empty) {
            *chunk = Chunk::Some { words: Box::new([0; WORDS]), missing: 1 << 16 };
        }
        let Chunk::Some { words, missing } = chunk else { return false };
        if words[word] >> bit & 1 == 1 {
            return false;
        }
        words[word] |= 1 << bit;
        *missing -= 1;
        if *missing == 0 {
            *chunk = Chunk::Full;
        }
        true
    }
}

impl Default for Replies {
    fn default() -> Self {
        let rtt: Histogram<u64> = histogram();
        Self { received: 0, duplicated: 0, reordered: 0, corrupt: 0, rtt, by_second: Vec::new() }
    }
}

#[cfg(test)]
#[path = "matcher_tests.rs"]
mod tests;
