//! One file's content in flight to the scanner.

use super::{
    Queue,
    clamd::{Failure, ScanResult, Stream},
};
use crate::stream::{Budget, Share};
use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// One file's content: given piece by piece; dropped before its [`end`](Self::end), it is forgotten.
#[derive(Debug)]
pub struct Job {
    shared: Arc<Shared>,
    queue: Arc<Queue>,
    ended: bool,
}

impl Job {
    pub(super) fn new(shared: Arc<Shared>, queue: Arc<Queue>) -> Self {
        Self { shared, queue, ended: false }
    }

    /// The next content.
    ///
    /// # Errors
    ///
    /// Without room, or beyond the largest size: the job is over then, and no report follows.
    pub fn content(&mut self, bytes: Vec<u8>) -> Result<(), Failure> {
        let taken = self.shared.content(bytes);
        match &taken {
            Ok(()) => self.wake(),
            Err(failure) => self.queue.count(&ScanResult::Failed(failure.clone())),
        }
        taken
    }

    /// The number by which its reports are known.
    pub fn number(&self) -> u64 {
        self.shared.number()
    }

    /// Asks for a verdict on what came; more may follow. Its report has `mark`.
    pub fn pause(&mut self, mark: u64) {
        self.shared.add(Step::Verdict { pause: Some(mark) });
        self.wake();
    }

    /// That was all: asks for the verdict.
    pub fn end(mut self) {
        self.ended = true;
        self.shared.add(Step::Verdict { pause: None });
        self.wake();
        self.queue.hurry(&self.shared);
    }

    /// A job that rests waits for a thread again.
    fn wake(&self) {
        if self.shared.unpark() {
            self.queue.add(Arc::clone(&self.shared));
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.ended {
            self.shared.cancel();
        }
    }
}

/// What a thread does next with a job.
#[derive(Debug)]
pub(super) enum Step {
    Content(Vec<u8>),
    /// A verdict on what came: the last one, or with the mark of a pause.
    Verdict {
        pause: Option<u64>,
    },
    Cancelled,
}

/// How far a thread came with a job.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Where its content goes, once some has come since the last verdict.
    pub(super) stream: Option<Stream>,
    /// Content bytes that came.
    pub(super) total: u64,
    /// The last content, to be sent again after a verdict on it.
    kept: Vec<u8>,
    share: Option<Share>,
    /// There was no room to keep it.
    lost: bool,
}

impl Work {
    /// The verdict on what was sent.
    pub(super) fn end(&mut self) -> ScanResult {
        self.stream.take().map_or(ScanResult::Clean, Stream::end)
    }

    /// What is to be sent again; none when there was no room for it.
    pub(super) fn kept(&self) -> Option<&[u8]> {
        (!self.lost).then_some(self.kept.as_slice())
    }

    /// Adds to what is kept, or, where it becomes too much, keeps the last half alone: what lies
    /// across the seam is still found.
    pub(super) fn keep(&mut self, bytes: &[u8], limit: usize, budget: &Budget) {
        if self.lost {
            return;
        }
        let share = self.share.get_or_insert_with(|| Share::new(budget));
        self.kept.extend_from_slice(bytes);
        if self.kept.len() > limit {
            let surplus = self.kept.len() - limit / 2;
            self.kept.drain(..surplus);
        }
        if !share.fit(self.kept.len()) {
            (self.kept, self.share, self.lost) = (Vec::new(), None, true);
        }
    }
}

/// A job as both ends see it.
#[derive(Debug)]
pub(super) struct Shared {
    number: u64,
    max_bytes: u64,
    budget: Budget,
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Debug, Default)]
struct State {
    steps: VecDeque<Step>,
    total: u64,
    /// Nothing is added or sent any more.
    over: bool,
    /// What a thread has left when it went on to other jobs.
    work: Option<Work>,
    parked: bool,
    /// Since when all content is there.
    ended: Option<Instant>,
}

impl Shared {
    pub(super) fn new(number: u64, max_bytes: u64, budget: Budget) -> Self {
        Self { number, max_bytes, budget, state: Mutex::default(), more: Condvar::new() }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn content(&self, bytes: Vec<u8>) -> Result<(), Failure> {
        let mut state = self.state();
        if state.over {
            // Its report is in flight, or was given.
            return Ok(());
        }
        state.total += bytes.len() as u64;
        let refused = if state.total > self.max_bytes {
            Err(Failure::TooLarge)
        } else if self.budget.take(bytes.len()) {
            state.steps.push_back(Step::Content(bytes));
            Ok(())
        } else {
            Err(Failure::Overloaded)
        };
        if refused.is_err() {
            self.forget(&mut state);
        }
        drop(state);
        self.more.notify_one();
        refused
    }

    fn add(&self, step: Step) {
        let mut state = self.state();
        if matches!(step, Step::Verdict { pause: None }) {
            state.ended = Some(Instant::now());
        }
        if !state.over {
            state.steps.push_back(step);
        }
        drop(state);
        self.more.notify_one();
    }

    /// Waits for what is next; nothing, when that takes longer than `rest`.
    pub(super) fn next(&self, rest: Duration) -> Option<Step> {
        let nothing = |state: &mut State| state.steps.is_empty() && !state.over;
        let waited = self.more.wait_timeout_while(self.state(), rest, nothing);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        match state.steps.pop_front() {
            Some(Step::Content(bytes)) => {
                self.budget.give(bytes.len());
                Some(Step::Content(bytes))
            }
            None if state.over => Some(Step::Cancelled),
            step => step,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state().ended.is_some()
    }

    /// How long all content has been there; none when it is not.
    pub(super) fn waited(&self) -> Option<Duration> {
        self.state().ended.map(|since| since.elapsed())
    }

    /// Whether there is something to be done.
    pub(super) fn is_busy(&self) -> bool {
        let state = self.state();
        !state.steps.is_empty() || state.over
    }

    pub(super) fn take_work(&self) -> Work {
        self.state().work.take().unwrap_or_default()
    }

    /// Leaves the job until something is added to it; false when something was.
    pub(super) fn park(&self, work: &mut Work) -> bool {
        let mut state = self.state();
        if !state.steps.is_empty() || state.over {
            return false;
        }
        state.work = Some(std::mem::take(work));
        state.parked = true;
        true
    }

    /// Whether the job was left and needs a thread again.
    fn unpark(&self) -> bool {
        std::mem::take(&mut self.state().parked)
    }

    pub(super) fn cancel(&self) {
        self.forget(&mut self.state());
        self.more.notify_one();
    }

    /// Gives back what waits; nothing follows.
    fn forget(&self, state: &mut State) {
        for step in state.steps.drain(..) {
            if let Step::Content(bytes) = step {
                self.budget.give(bytes.len());
            }
        }
        state.over = true;
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.cancel();
    }
}
