//! Memory that strangers make the server use: bodies of requests, until they are answered, and answers, until
//! the last byte is written or given up. Bounded in all and for each source.
//!
//! Whoever holds less than the bound may take more, so it is exceeded by at most one piece of a body or one
//! answer (two with the answers that are being made). An answer that several wait for, such as the whole network
//! map, is in memory once and counts once.

use crate::alto::limits::share;
use axum::body::Bytes;
use permits::Full;
use std::{
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{Notify, futures::Notified};

/// The account of one server.
pub(super) struct Memory {
    most: usize,
    used: Mutex<Used>,
    freed: Notify,
}

#[derive(Default)]
struct Used {
    all: usize,
    by_source: HashMap<IpAddr, usize>,
    /// How often each answer, known by its place in memory, is held: by a source, and in all.
    answers: HashMap<(Option<IpAddr>, usize), usize>,
}

impl Memory {
    /// At most `most` bytes, of which a source may use its share.
    pub(super) fn new(most: usize) -> Arc<Memory> {
        Arc::new(Memory { most, used: Mutex::default(), freed: Notify::new() })
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes in use.
    pub(super) fn all(&self) -> usize {
        self.used().all
    }

    /// Whether `source` may use more.
    ///
    /// # Errors
    ///
    /// Which bound is reached.
    pub(super) fn room(&self, source: IpAddr) -> Result<(), Full> {
        let used = self.used();
        if used.of(source) >= share(self.most) {
            Err(Full::Source)
        } else if used.all >= self.most {
            Err(Full::All)
        } else {
            Ok(())
        }
    }

    /// The source that uses the most, if it is more than `source` does.
    pub(super) fn fuller_than(&self, source: IpAddr) -> Option<IpAddr> {
        let used = self.used();
        let (fullest, bytes) = used.by_source.iter().max_by_key(|(_, bytes)| **bytes)?;
        (*bytes > used.of(source)).then_some(*fullest)
    }

    /// Completes when something that is held now is freed.
    pub(super) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    /// An account for a body that grows.
    pub(super) fn body(self: &Arc<Self>, source: IpAddr) -> Held {
        Held { memory: self.clone(), source, bytes: 0, answer: None }
    }

    /// The bytes of an answer, held for `source` as long as any slice of them is.
    pub(super) fn answer(self: &Arc<Self>, source: IpAddr, bytes: Bytes) -> Bytes {
        let answer = bytes.as_ptr() as usize;
        let mut used = self.used();
        if used.first((Some(source), answer)) {
            used.add(source, bytes.len());
        }
        if used.first((None, answer)) {
            used.all += bytes.len();
        }
        drop(used);
        let held = Held { memory: self.clone(), source, bytes: bytes.len(), answer: Some(answer) };
        held.keep(bytes)
    }
}

impl Used {
    fn of(&self, source: IpAddr) -> usize {
        self.by_source.get(&source).copied().unwrap_or(0)
    }

    fn add(&mut self, source: IpAddr, bytes: usize) {
        *self.by_source.entry(source).or_default() += bytes;
    }

    /// One more holds an answer; whether it is the first.
    fn first(&mut self, answer: (Option<IpAddr>, usize)) -> bool {
        let count = self.answers.entry(answer).or_default();
        *count += 1;
        *count == 1
    }

    /// One less holds an answer; whether it was the last.
    fn last(&mut self, answer: (Option<IpAddr>, usize)) -> bool {
        sub(&mut self.answers, answer, 1)
    }
}

/// Subtracts, and forgets what becomes zero; whether it did.
fn sub<K: Hash + Eq>(counts: &mut HashMap<K, usize>, key: K, less: usize) -> bool {
    let Some(count) = counts.get_mut(&key) else { return false };
    *count = count.saturating_sub(less);
    if *count > 0 {
        return false;
    }
    counts.remove(&key);
    true
}

/// Bytes that are in use until this is dropped.
pub(super) struct Held {
    memory: Arc<Memory>,
    source: IpAddr,
    bytes: usize,
    answer: Option<usize>,
}

impl Held {
    /// Uses more.
    pub(super) fn grow(&mut self, bytes: usize) {
        self.bytes += bytes;
        let mut used = self.memory.used();
        used.all += bytes;
        used.add(self.source, bytes);
    }

    /// The bytes that are held, which free the account when they are dropped.
    pub(super) fn keep(self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Bytes::from_owner(Kept { _held: self, bytes })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let source = self.source;
        let (of_source, of_all) = {
            let mut used = self.memory.used();
            let (of_source, of_all) = self.answer.map_or((true, true), |answer| {
                (used.last((Some(source), answer)), used.last((None, answer)))
            });
            if of_source {
                sub(&mut used.by_source, source, self.bytes);
            }
            if of_all {
                used.all = used.all.saturating_sub(self.bytes);
            }
            (of_source, of_all)
        };
        if of_source || of_all {
            self.memory.freed.notify_waiters();
        }
    }
}

/// Bytes with their account.
struct Kept<B> {
    /// Dropped first: as soon as the bytes are free, others may have the same address.
    _held: Held,
    bytes: B,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Kept<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const TWO: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    #[test]
    fn an_answer_counts_once_and_until_its_last_slice_is_gone() {
        let memory = Memory::new(800);
        let shared = Bytes::from(vec![0; 300]);
        let first = memory.answer(ONE, shared.clone());
        let second = memory.answer(ONE, shared.clone());
        let other = memory.answer(TWO, shared);
        assert_eq!(memory.all(), 300);
        assert_eq!(memory.room(ONE), Err(Full::Source), "its share is 100");
        let slice = first.slice(200..);
        drop((first, second));
        assert_eq!(memory.room(ONE), Err(Full::Source), "a slice is still held");
        drop(slice);
        assert_eq!(memory.room(ONE), Ok(()));
        assert_eq!(memory.all(), 300, "of the other source");
        drop(other);
        assert_eq!(memory.all(), 0);
        assert!(memory.used().by_source.is_empty() && memory.used().answers.is_empty());
    }

    #[test]
    fn who_uses_the_most_is_found_when_nothing_is_left() {
        let memory = Memory::new(800);
        let (mut one, mut two) = (memory.body(ONE), memory.body(TWO));
        one.grow(99);
        assert_eq!(memory.room(ONE), Ok(()), "one below its share");
        one.grow(600);
        two.grow(1);
        assert_eq!(memory.room(TWO), Ok(()));
        two.grow(99);
        two.grow(1);
        assert_eq!(memory.room(TWO), Err(Full::Source));
        let third = IpAddr::from([192, 0, 2, 3]);
        assert_eq!(memory.room(third), Err(Full::All));
        assert_eq!(memory.fuller_than(third), Some(ONE));
        assert_eq!(memory.fuller_than(ONE), None);
        drop(one);
        assert_eq!(memory.room(third), Ok(()));
    }
}
