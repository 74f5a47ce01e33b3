//! Content scanned by ClamAV's daemon while it streams.
//!
//! A [`Scanner`] has a bounded number of threads with a connection to clamd each. A [`Job`] is one
//! file's content: it is sent on as it comes when a thread is free, and waits until then. What waits
//! is bounded over all jobs; a job that cannot be taken fails, and policy says what a failure means.
//! Nothing here ever waits for clamd but the threads. A job whose content rests, or comes slowly while
//! others wait, gives its thread to others after a verdict on what came; what it keeps of that is sent
//! again when it goes on. Those whose content is complete come first: packets wait for them.
//!
//! ```text
//! Job::content --> [ waiting bytes, bounded ] --> thread --> clamd, INSTREAM
//! Job::end                                           `-----> Report: clean | found | failed
//! ```

pub mod clamd;

mod config;
mod job;
mod limits;
#[cfg(test)]
mod tests;
mod whole;

pub use config::{Address, Config, Failed};
pub use job::Job;
pub use limits::WARNING as LIMITS_WARNING;

use crate::stream::Budget;
use clamd::{Failure, ScanResult};
use job::{Shared, Step, Work};
use limits::Limits;
use std::{
    collections::VecDeque,
    fmt,
    ops::ControlFlow,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread::Builder,
    time::{Duration, Instant},
};

/// How long a connection waits for a job's content at most. clamd itself waits for 30 seconds
/// (`CommandReadTimeout`).
const REST: Duration = Duration::from_secs(10);

/// How long a job whose content does not keep up has a connection that others wait for.
const SLICE: Duration = Duration::from_millis(500);

/// Bytes of a thread's stack; it calls little.
const STACK: usize = 1 << 18;

/// What came of a job, or of its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The job's number, as [`Scanner::begin`] was given it.
    pub job: u64,
    /// Bytes of content that this is about.
    pub bytes: u64,
    /// What [`Job::pause`] was given, when this is the answer to it and nothing was found: more may
    /// follow. None of the last report of a job.
    pub pause: Option<u64>,
    /// What the scanner says.
    pub verdict: ScanResult,
}

/// What scanners count; exact.
#[derive(Debug, Default)]
pub struct Counters {
    /// Last verdicts without a find.
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
    threads: Mutex<usize>,
    /// To the thread for content that is all there.
    wholes: Mutex<Option<mpsc::Sender<whole::Whole>>>,
}

struct Queue {
    config: Config,
    budget: Budget,
    /// For what is kept to be sent again.
    kept: Budget,
    waiting: Mutex<Waiting>,
    more: Condvar,
    counters: Counters,
    limits: Limits,
    deliver: Box<dyn Fn(Report) + Send + Sync>,
}

#[derive(Default)]
struct Waiting {
    /// Those whose content is complete.
    ended: VecDeque<Arc<Shared>>,
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
            budget: Budget::new(config.waiting.0 as usize),
            kept: Budget::new(config.waiting.0 as usize),
            config: config.clone(),
            waiting: Mutex::default(),
            more: Condvar::new(),
            counters: Counters::default(),
            limits: Limits::default(),
            deliver: Box::new(deliver),
        };
        Self { queue: Arc::new(queue), threads: Mutex::default(), wholes: Mutex::default() }
    }

    /// A new job; its reports carry its number.
    ///
    /// # Errors
    ///
    /// When a thread was needed and cannot be started.
    pub fn begin(&self, job: u64) -> std::io::Result<Job> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = self.queue.lock();
        let busy = waiting.idle <= waiting.jobs.len() + waiting.ended.len();
        drop(waiting);
        if busy && *threads < self.queue.config.connections {
            let queue = Arc::clone(&self.queue);
            let thread = Builder::new().name("gate-scan".into()).stack_size(STACK);
            thread.spawn(panics::inherit(move || queue.work()))?;
            *threads += 1;
        }
        drop(threads);
        let budget = self.queue.budget.clone();
        let shared = Arc::new(Shared::new(job, self.queue.config.max_size.0, budget));
        self.queue.add(Arc::clone(&shared));
        Ok(Job::new(shared, Arc::clone(&self.queue)))
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.queue.counters
    }

    /// Asks clamd what it says of archives that go beyond its limits.
    ///
    /// # Errors
    ///
    /// When the thread that does it cannot be started.
    pub fn ask(&self) -> std::io::Result<()> {
        let queue = Arc::downgrade(&self.queue);
        let thread = Builder::new().name("gate-scan-ask".into()).stack_size(STACK);
        thread.spawn(panics::inherit(move || limits::ask(&queue))).map(drop)
    }

    /// Whether clamd tells that an archive goes beyond its limits; none until it has answered.
    pub fn alerts(&self) -> Option<bool> {
        self.queue.limits.alert()
    }

    /// Bytes of content that wait for clamd.
    pub fn waiting_bytes(&self) -> usize {
        self.queue.budget.used()
    }
}

impl Drop for Scanner {
    /// Lets the threads end, each as soon as clamd lets it; jobs without a verdict get none.
    fn drop(&mut self) {
        let mut waiting = self.queue.lock();
        waiting.closed = true;
        let jobs: Vec<_> = std::mem::take(&mut waiting.jobs).into_iter().collect();
        let ended = std::mem::take(&mut waiting.ended);
        drop(waiting);
        jobs.iter().chain(&ended).for_each(|job| job.cancel());
        self.queue.more.notify_all();
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, job: Arc<Shared>) {
        let mut waiting = self.lock();
        if waiting.closed {
            return;
        }
        if job.has_ended() { &mut waiting.ended } else { &mut waiting.jobs }.push_back(job);
        drop(waiting);
        self.more.notify_one();
    }

    /// A job that waits has ended: it is next.
    fn hurry(&self, job: &Arc<Shared>) {
        let mut waiting = self.lock();
        if let Some(place) = waiting.jobs.iter().position(|other| Arc::ptr_eq(other, job)) {
            waiting.jobs.remove(place);
            waiting.ended.push_back(Arc::clone(job));
        }
    }

    fn next(&self) -> Option<Arc<Shared>> {
        let mut waiting = self.lock();
        waiting.idle += 1;
        loop {
            if waiting.closed {
                return None;
            }
            if let Some(job) = waiting.ended.pop_front().or_else(|| waiting.jobs.pop_front()) {
                waiting.idle -= 1;
                return Some(job);
            }
            waiting = self.more.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn closed(&self) -> bool {
        self.lock().closed
    }

    /// Whether jobs wait that no thread is free for.
    fn wanted(&self) -> bool {
        let waiting = self.lock();
        waiting.ended.len() + waiting.jobs.len() > 0
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            panics::point("gate-scan");
            self.serve(&job);
        }
    }

    /// Serves a job until it is over, or others are served first.
    fn serve(&self, job: &Arc<Shared>) {
        let mut work = job.take_work();
        if job.waited().is_some_and(|waited| waited > self.config.timeout) {
            let verdict = ScanResult::Failed(Failure::TimedOut);
            self.report(job, work.total, None, verdict);
            return job.cancel();
        }
        let (begun, mut rested) = (Instant::now(), Instant::now());
        loop {
            match job.next(SLICE) {
                Some(step) => {
                    if self.step(job, &mut work, step).is_break() {
                        return job.cancel();
                    }
                    rested = Instant::now();
                }
                None if self.closed() => return,
                None => {}
            }
            let long = rested.elapsed() > REST;
            let slow = begun.elapsed() > SLICE && !job.is_busy() && self.wanted();
            if !long && !slow {
                continue;
            }
            // Its content comes slowly: it gives its connection up until more has come.
            match work.end() {
                ScanResult::Clean => {
                    if job.park(&mut work) {
                        return;
                    }
                }
                verdict => {
                    self.report(job, work.total, None, verdict);
                    return job.cancel();
                }
            }
        }
    }

    fn step(&self, job: &Shared, work: &mut Work, step: Step) -> ControlFlow<()> {
        match step {
            Step::Content(bytes) => {
                work.total += bytes.len() as u64;
                if let Err(verdict) = self.send(work, &bytes) {
                    self.report(job, work.total, None, verdict);
                    return ControlFlow::Break(());
                }
                work.keep(&bytes, self.config.keep.0 as usize, &self.kept);
                ControlFlow::Continue(())
            }
            Step::Verdict { pause } => {
                let verdict = work.end();
                let pause = pause.filter(|_| verdict == ScanResult::Clean);
                self.report(job, work.total, pause, verdict);
                if pause.is_none() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
            Step::Cancelled => ControlFlow::Break(()),
        }
    }

    fn send(&self, work: &mut Work, bytes: &[u8]) -> Result<(), ScanResult> {
        let begun = match &mut work.stream {
            Some(stream) => stream,
            None => {
                // What came before must be sent again.
                let kept = work.kept().ok_or(ScanResult::Failed(Failure::Overloaded))?;
                let mut begun = clamd::Stream::begin(&self.config).map_err(ScanResult::Failed)?;
                begun.send(kept)?;
                self.counters.bytes.fetch_add(kept.len() as u64, Ordering::Relaxed);
                work.stream.insert(begun)
            }
        };
        begun.send(bytes)?;
        self.counters.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn report(&self, job: &Shared, bytes: u64, pause: Option<u64>, verdict: ScanResult) {
        if pause.is_none() {
            self.count(&verdict);
        }
        (self.deliver)(Report { job: job.number(), bytes, pause, verdict });
    }

    fn count(&self, verdict: &ScanResult) {
        let counter = match verdict {
            ScanResult::Clean => &self.counters.clean,
            ScanResult::Found(_) => &self.counters.found,
            ScanResult::Failed(_) => &self.counters.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
