//! Bytes that came before their turn: non-overlapping segments by offset, bounded.

use super::Budget;
use std::collections::BTreeMap;

/// What a segment costs beside its bytes: the tree's entry and the allocation's head.
const OVERHEAD: usize = 64;

/// A run of bytes that waits.
#[derive(Debug)]
pub(super) enum Segment {
    /// The bytes.
    Bytes(Box<[u8]>),
    /// They passed uncopied; up to this offset.
    Lost(i64),
}

impl Segment {
    fn end(&self, start: i64) -> i64 {
        match self {
            Self::Bytes(bytes) => start + i64::try_from(bytes.len()).unwrap_or(i64::MAX),
            Self::Lost(to) => *to,
        }
    }

    fn cost(&self) -> usize {
        match self {
            Self::Bytes(bytes) => OVERHEAD + bytes.len(),
            Self::Lost(_) => OVERHEAD,
        }
    }
}

/// The waiting segments of one direction.
#[derive(Debug)]
pub(super) struct Early {
    segments: BTreeMap<i64, Segment>,
    cost: usize,
    limit: usize,
    budget: Budget,
    conflicts: u64,
}

impl Early {
    pub(super) fn new(limit: usize, budget: Budget) -> Self {
        Self { segments: BTreeMap::new(), cost: 0, limit, budget, conflicts: 0 }
    }

    /// Bytes in use, overhead included.
    pub(super) fn bytes(&self) -> usize {
        self.cost
    }

    /// Bytes that came twice and differed.
    pub(super) fn conflicts(&self) -> u64 {
        self.conflicts
    }

    /// Where the first segment starts.
    pub(super) fn first(&self) -> Option<i64> {
        self.segments.first_key_value().map(|(start, _)| *start)
    }

    /// The first segment, if it reaches `next` or lies before it; what it has beyond `next`.
    pub(super) fn take(&mut self, next: i64) -> Option<Segment> {
        loop {
            let entry = self.segments.first_entry().filter(|entry| *entry.key() <= next)?;
            let (start, segment) = entry.remove_entry();
            self.give(segment.cost());
            if segment.end(start) <= next {
                continue;
            }
            return Some(match segment {
                Segment::Bytes(bytes) if start < next => {
                    let known = usize::try_from(next - start).unwrap_or(usize::MAX);
                    Segment::Bytes(bytes.get(known..).unwrap_or_default().into())
                }
                segment => segment,
            });
        }
    }

    /// Keeps those of `bytes` that are not held yet; false when there is no room for some.
    pub(super) fn insert(&mut self, start: i64, bytes: &[u8]) -> bool {
        let (mut at, mut rest) = (start, bytes);
        while !rest.is_empty() {
            let holder = self.segments.range(..=at).next_back();
            let step = match holder.map(|(from, held)| held.end(*from)).filter(|end| *end > at) {
                Some(end) => length(end - at).min(rest.len()),
                None => {
                    let following = self.segments.range(at..).next().map(|(from, _)| *from);
                    let room = following.map_or(usize::MAX, |from| length(from - at));
                    let step = room.min(rest.len());
                    let part = rest.get(..step).unwrap_or_default();
                    if !self.keep(at, OVERHEAD + step, || Segment::Bytes(part.into())) {
                        return false;
                    }
                    step
                }
            };
            rest = rest.get(step..).unwrap_or_default();
            at += i64::try_from(step).unwrap_or(i64::MAX);
        }
        true
    }

    /// Whether every byte from `start` to `end` is held, or known as lost.
    pub(super) fn covers(&self, mut start: i64, end: i64) -> bool {
        while start < end {
            let holder = self.segments.range(..=start).next_back();
            match holder.map(|(from, held)| held.end(*from)).filter(|reach| *reach > start) {
                Some(reach) => start = reach,
                None => return false,
            }
        }
        true
    }

    /// Drops the segments that end before an offset.
    pub(super) fn forget(&mut self, before: i64) {
        while self.segments.first_key_value().is_some_and(|(from, held)| held.end(*from) <= before)
        {
            self.pop();
        }
    }

    /// Drops the first segment; false when there is none.
    pub(super) fn pop(&mut self) -> bool {
        let Some((_, segment)) = self.segments.pop_first() else { return false };
        self.give(segment.cost());
        true
    }

    /// Counts those of `bytes` that differ from what is held.
    pub(super) fn compare(&mut self, start: i64, bytes: &[u8]) {
        let end = start + i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        for (from, held) in self.segments.range(..end).rev() {
            if held.end(*from) <= start {
                break;
            }
            if let Segment::Bytes(held) = held {
                let common = start.max(*from);
                let held = held.get(length(common - from)..).unwrap_or_default();
                let new = bytes.get(length(common - start)..).unwrap_or_default();
                let differ = held.iter().zip(new).filter(|(old, new)| old != new).count();
                self.conflicts += differ as u64;
            }
        }
    }

    /// Notes that the bytes from `start` to `end` passed uncopied; where some are held, those before
    /// the first of them.
    pub(super) fn lost(&mut self, start: i64, end: i64) {
        let held = self.segments.range(..=start).next_back();
        let start = held.map_or(start, |(from, held)| held.end(*from).max(start));
        let following = self.segments.range(start..).next().map(|(from, _)| *from);
        let end = following.map_or(end, |from| from.min(end));
        if end > start {
            // Without room the hole stays one, and ends like any other.
            self.keep(start, OVERHEAD, || Segment::Lost(end));
        }
    }

    pub(super) fn clear(&mut self) {
        self.segments.clear();
        self.give(self.cost);
    }

    fn keep(&mut self, at: i64, cost: usize, segment: impl FnOnce() -> Segment) -> bool {
        if self.cost + cost > self.limit || !self.budget.take(cost) {
            return false;
        }
        self.cost += cost;
        self.segments.insert(at, segment());
        true
    }

    fn give(&mut self, cost: usize) {
        self.cost -= cost;
        self.budget.give(cost);
    }
}

impl Drop for Early {
    fn drop(&mut self) {
        self.budget.give(self.cost);
    }
}

fn length(bytes: i64) -> usize {
    usize::try_from(bytes).unwrap_or(0)
}
