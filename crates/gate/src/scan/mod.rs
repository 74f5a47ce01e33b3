//! Content scanned by ClamAV's daemon while it streams.
//!
//! A [`Scanner`] has a bounded number of threads with a connection to clamd each. A [`Job`] is one
//! file's content: it is sent on as it comes when a thread is free, and waits until then. What waits
//! is bounded over all jobs; a job that cannot be taken fails, and policy says what a failure means.
//! Nothing here ever waits for clamd but the threads. A job whose content rests gives its thread to
//! others after a verdict on what came; what it keeps of that is sent again when it goes on.
//!
//! ```text
//! Job::content --> [ waiting bytes, bounded ] --> thread --> clamd, INSTREAM
//! Job::end                                           `-----> Report: clean | found | failed
//! ```

pub mod clamd;

mod config;
mod job;
#[cfg(test)]
mod tests;

pub use config::{Address, Config, Failed};
pub use job::Job;

use crate::stream::Budget;
use clamd::Verdict;
use job::{Shared, Step, Work};
use std::{
    collections::VecDeque,
    fmt,
    ops::ControlFlow,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{Builder, JoinHandle},
    time::Duration,
};

/// How long a connection waits for a job's content before others may have it. clamd itself waits for
/// 30 seconds (`CommandReadTimeout`).
const REST: Duration = Duration::from_secs(10);

/// Bytes of a thread's stack; it calls little.
const STACK: usize = 1 << 18;

/// What came of a job, or of its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The job's number, as [`Scanner::begin`] was given it.
    pub job: u64,
    /// Bytes of content that this is about.
    pub bytes: u64,
    /// What the scanner says.
    pub verdict: Verdict,
}

/// What scanners count; exact.
#[derive(Debug, Default)]
pub struct Counters {
    /// Verdicts without a find.
    pub clean: AtomicU64,
    /// Finds.
    pub found: AtomicU64,
    /// No verdict: clamd was away, too slow or refused, or there was too much to scan.
    pub failed: AtomicU64,
    /// Bytes sent to clamd.
    pub bytes: AtomicU64,
}

/// Threads that bring content to clamd.
pub struct Scanner {
    queue: Arc<Queue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Queue {
    config: Config,
    budget: Budget,
    waiting: Mutex<Waiting>,
    more: Condvar,
    counters: Counters,
    deliver: Box<dyn Fn(Report) + Send + Sync>,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Arc<Shared>>,
    /// Threads that wait for a job.
    idle: usize,
    closed: bool,
}

impl fmt::Debug for Scanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scanner").field("config", &self.queue.config).finish_non_exhaustive()
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Scanner {
    /// A scanner without threads yet. `deliver` is called by them with each report and must not block.
    pub fn new(config: &Config, deliver: impl Fn(Report) + Send + Sync + 'static) -> Self {
        let queue = Queue {
            budget: Budget::new(config.waiting_bytes),
            config: config.clone(),
            waiting: Mutex::default(),
            more: Condvar::new(),
            counters: Counters::default(),
            deliver: Box::new(deliver),
        };
        Self { queue: Arc::new(queue), threads: Mutex::default() }
    }

    /// A new job; its reports carry its number.
    ///
    /// # Errors
    ///
    /// When a thread was needed and cannot be started.
    pub fn begin(&self, job: u64) -> std::io::Result<Job> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = self.queue.lock();
        let busy = waiting.idle <= waiting.jobs.len();
        drop(waiting);
        if busy && threads.len() < self.queue.config.connections {
            let queue = Arc::clone(&self.queue);
            let thread = Builder::new().name("gate-scan".into()).stack_size(STACK);
            threads.push(thread.spawn(move || queue.work())?);
        }
        drop(threads);
        let budget = self.queue.budget.clone();
        let shared = Arc::new(Shared::new(job, self.queue.config.max_bytes, budget));
        self.queue.add(Arc::clone(&shared));
        Ok(Job::new(shared, Arc::clone(&self.queue)))
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.queue.counters
    }

    /// Bytes of content that wait for clamd.
    pub fn waiting_bytes(&self) -> usize {
        self.queue.budget.used()
    }
}

impl Drop for Scanner {
    /// Ends the threads; jobs without a verdict get none.
    fn drop(&mut self) {
        let mut waiting = self.queue.lock();
        waiting.closed = true;
        waiting.jobs.clear();
        drop(waiting);
        self.queue.more.notify_all();
        for thread in self.threads.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, job: Arc<Shared>) {
        self.lock().jobs.push_back(job);
        self.more.notify_one();
    }

    fn next(&self) -> Option<Arc<Shared>> {
        let mut waiting = self.lock();
        waiting.idle += 1;
        loop {
            if waiting.closed {
                return None;
            }
            if let Some(job) = waiting.jobs.pop_front() {
                waiting.idle -= 1;
                return Some(job);
            }
            waiting = self.more.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn closed(&self) -> bool {
        self.lock().closed
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            let mut work = job.take_work();
            loop {
                match job.next(REST) {
                    Some(step) => {
                        if self.step(&job, &mut work, step).is_break() {
                            job.cancel();
                            break;
                        }
                    }
                    None if self.closed() => break,
                    // Its content comes slowly: it gives its connection up until more has come.
                    None => match work.end() {
                        Verdict::Clean => {
                            if job.park(&mut work) {
                                break;
                            }
                        }
                        verdict => {
                            self.report(&job, work.total, verdict);
                            job.cancel();
                            break;
                        }
                    },
                }
            }
        }
    }

    fn step(&self, job: &Shared, work: &mut Work, step: Step) -> ControlFlow<()> {
        match step {
            Step::Content(bytes) => {
                work.total += bytes.len() as u64;
                if let Err(verdict) = self.send(work, &bytes) {
                    self.report(job, work.total, verdict);
                    return ControlFlow::Break(());
                }
                work.keep(&bytes, self.config.keep_bytes);
                ControlFlow::Continue(())
            }
            Step::Verdict { last } => {
                let verdict = work.end();
                let over = last || verdict != Verdict::Clean;
                self.report(job, work.total, verdict);
                if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
            Step::Cancelled => ControlFlow::Break(()),
        }
    }

    fn send(&self, work: &mut Work, bytes: &[u8]) -> Result<(), Verdict> {
        let begun = match &mut work.stream {
            Some(stream) => stream,
            None => {
                let mut begun = clamd::Stream::begin(&self.config).map_err(Verdict::Failed)?;
                begun.send(&work.kept)?;
                self.counters.bytes.fetch_add(work.kept.len() as u64, Ordering::Relaxed);
                work.stream.insert(begun)
            }
        };
        begun.send(bytes)?;
        self.counters.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn report(&self, job: &Shared, bytes: u64, verdict: Verdict) {
        self.count(&verdict);
        (self.deliver)(Report { job: job.number(), bytes, verdict });
    }

    fn count(&self, verdict: &Verdict) {
        let counter = match verdict {
            Verdict::Clean => &self.counters.clean,
            Verdict::Found(_) => &self.counters.found,
            Verdict::Failed(_) => &self.counters.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
