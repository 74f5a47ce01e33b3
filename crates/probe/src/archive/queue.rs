//! The bounded queue between who measures and who writes.
//!
//! The lock is held for moments only, never while anything is written.

use crate::record::Record;
use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The queue.
#[derive(Debug)]
pub(super) struct Queue {
    /// Most records in it.
    room: usize,
    /// Records of a full batch.
    batch: usize,
    /// How long the first record waits for others.
    gather: Duration,
    state: Mutex<State>,
    /// There is something to do for the writer.
    work: Condvar,
    /// The writer has done something.
    progress: Condvar,
}

#[derive(Debug, Default)]
struct State {
    records: VecDeque<Record>,
    /// When the first record came into the empty queue.
    since: Option<Instant>,
    /// Records that ever came in, were taken out, and are no longer the writer's business.
    came: u64,
    taken: u64,
    settled: u64,
    /// Up to which record somebody waits.
    wanted: u64,
    /// How often the writer failed.
    failures: u64,
    closed: bool,
}

impl Queue {
    pub(super) fn new(room: usize, batch: usize, gather: Duration) -> Self {
        let (state, work, progress) = Default::default();
        Self { room, batch, gather, state, work, progress }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False where there is no room.
    pub(super) fn put(&self, record: Record) -> bool {
        let mut state = self.lock();
        if state.records.len() >= self.room {
            return false;
        }
        state.records.push_back(record);
        state.came += 1;
        let count = state.records.len();
        if count == 1 {
            state.since = Some(Instant::now());
        }
        if count == 1 || count == self.batch {
            self.work.notify_one();
        }
        true
    }

    /// No more will come.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.work.notify_one();
    }

    /// Fills the writer's batch and returns whether more may come: when the batch can be filled, when the
    /// first record has waited, when somebody waits for it, at the latest at `until`.
    /// After a failure nothing of that is checked before `until`, but for the end.
    pub(super) fn take(&self, batch: &mut Vec<Record>, until: Instant, failed: bool) -> bool {
        let mut state = self.lock();
        while !state.closed {
            let mut until = until;
            if !failed {
                if state.taken < state.wanted || state.records.len() + batch.len() >= self.batch {
                    break;
                }
                until = state.since.map_or(until, |since| until.min(since + self.gather));
            }
            let wait = until.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                break;
            }
            let waited = self.work.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let count = state.records.len().min(self.batch.saturating_sub(batch.len()));
        batch.extend(state.records.drain(..count));
        state.taken += count as u64;
        state.since = (!state.records.is_empty()).then(Instant::now);
        !state.closed || !state.records.is_empty()
    }

    /// If no more will come, what is left is removed and its number returned.
    pub(super) fn give_up(&self) -> Option<usize> {
        let mut state = self.lock();
        state.closed.then(|| state.records.drain(..).count())
    }

    /// Records that were taken are written, or lost for good.
    pub(super) fn settle(&self, count: usize) {
        self.lock().settled += count as u64;
        self.progress.notify_all();
    }

    /// They could not be written now.
    pub(super) fn fail(&self) {
        self.lock().failures += 1;
        self.progress.notify_all();
    }

    /// Waits until all that came before is written; false when the writer fails or the time is over.
    pub(super) fn flush(&self, limit: Duration) -> bool {
        let mut state = self.lock();
        let (wanted, failures) = (state.came, state.failures);
        state.wanted = state.wanted.max(wanted);
        self.work.notify_one();
        let waits = |state: &mut State| state.settled < wanted && state.failures == failures;
        let waited = self.progress.wait_timeout_while(state, limit, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0.settled >= wanted
    }
}
