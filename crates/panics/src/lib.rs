//! A panic fails the job whose code panicked, not the process.
//!
//! Each thread knows for which job it works. A job is called by [`catch`] and [`caught`]; threads and tasks
//! that it starts by [`thread`], [`spawn`], [`spawn_blocking`], [`inherit`] and [`adopt`] work for the same
//! job. When one panics, the [hook](install) first marks the job as [failed](failure), so that nobody takes
//! its state for good, and then the thread or task ends as usual. The daemon stops what is left of the job.
//!
//! A panic of code that works for no job ends the process: that is the daemon's own code, or a thread that
//! was not started by one of these functions.
#![forbid(unsafe_code)]

use std::{
    cell::Cell,
    collections::BTreeMap,
    io,
    panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind},
    pin::pin,
    sync::LazyLock,
    thread::{Builder, JoinHandle},
};
use tokio::{sync::watch, task};
use tracing::error;

/// A job that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Where its first panic was, and the message.
    pub first: String,
    /// How often it has panicked.
    pub panics: u64,
}

/// The characters of a panic's message that are kept.
const KEPT: usize = 300;

thread_local! {
    static JOB: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// The failed jobs.
static FAILURES: LazyLock<watch::Sender<BTreeMap<&'static str, Failure>>> =
    LazyLock::new(watch::Sender::default);

/// From now on a panic fails the job for which its thread works, and ends the process where it works for
/// none.
pub fn install() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let Some(job) = JOB.get() else {
            error!("internal error, stopping: {panic}");
            print(panic);
            std::process::abort();
        };
        let first = sentence(panic);
        let thread = std::thread::current();
        error!(job, thread = thread.name(), "internal error, the job has failed: {first}");
        fail(job, first);
        print(panic);
    }));
}

/// Where it was, and the message; safe to show.
fn sentence(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let plain = |character: char| if character.is_control() { ' ' } else { character };
    let message: String = text.unwrap_or_default().chars().map(plain).take(KEPT).collect();
    match panic.location() {
        Some(location) => format!("panicked at {location}: {message}"),
        None => format!("panicked: {message}"),
    }
}

fn fail(job: &'static str, first: String) {
    FAILURES.send_modify(|all| {
        all.entry(job).or_insert(Failure { first, panics: 0 }).panics += 1;
    });
}

/// Whether a job has failed, and how.
pub fn failure(job: &str) -> Option<Failure> {
    FAILURES.borrow().get(job).cloned()
}

/// Waits until a job has failed.
pub async fn failed(job: &str) {
    // The sender is never dropped.
    let _ = FAILURES.subscribe().wait_for(|all| all.contains_key(job)).await;
}

/// Sets the job of the thread, and afterwards again what it was, also after a panic.
struct Within(Option<&'static str>);

impl Within {
    fn new(job: Option<&'static str>) -> Self {
        Self(JOB.replace(job))
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        JOB.set(self.0);
    }
}

/// Calls a job's code; `None` if it panicked.
pub fn catch<T>(job: &'static str, work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(|| {
        let _within = Within::new(Some(job));
        work()
    }))
    .ok()
}

/// A future that works for a job; `None` if it panicked.
pub async fn caught<F: Future>(job: &'static str, work: F) -> Option<F::Output> {
    caught_in(Some(job), work).await
}

/// The same for the job of the calling thread, if any.
pub async fn caught_here<F: Future>(work: F) -> Option<F::Output> {
    let job = JOB.get();
    caught_in(job, work).await
}

async fn caught_in<F: Future>(job: Option<&'static str>, work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    std::future::poll_fn(|context| {
        let poll = || {
            let _within = Within::new(job);
            work.as_mut().poll(context)
        };
        match catch_unwind(AssertUnwindSafe(poll)) {
            Ok(poll) => poll.map(Some),
            Err(_) => std::task::Poll::Ready(None),
        }
    })
    .await
}

/// Work for another thread that works for the calling thread's job.
pub fn inherit<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let job = JOB.get();
    move || {
        let _within = Within::new(job);
        work()
    }
}

/// Makes threads of a runtime work for the job of the thread that calls this: for `on_thread_start`.
pub fn adopt() -> impl Fn() + Send + Sync + 'static {
    let job = JOB.get();
    move || JOB.set(job)
}

/// Starts a thread that works for the calling thread's job.
///
/// # Errors
///
/// The system has no thread left.
pub fn thread<T: Send + 'static>(
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.into()).spawn(inherit(work))
}

/// Starts a task that works for the calling thread's job. Must be called on a tokio runtime.
pub fn spawn<F>(work: F) -> task::JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let job = JOB.get();
    task::spawn(async move {
        let mut work = pin!(work);
        std::future::poll_fn(|context| {
            let _within = Within::new(job);
            work.as_mut().poll(context)
        })
        .await
    })
}

/// Starts blocking work for the calling thread's job. Must be called on a tokio runtime.
pub fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> task::JoinHandle<T> {
    task::spawn_blocking(inherit(work))
}

/// Where tests cause a panic: it panics if the folder that the environment variable `NIGH_PANIC` names
/// has a file of this name, and removes the file. The folder must be there at the first call. Only in
/// programs with debug assertions.
#[cfg(debug_assertions)]
#[track_caller]
pub fn point(name: &str) {
    static FOLDER: LazyLock<Option<std::path::PathBuf>> = LazyLock::new(|| {
        std::env::var_os("NIGH_PANIC").map(std::path::PathBuf::from).filter(|path| path.is_dir())
    });
    if let Some(folder) = &*FOLDER {
        let wanted = std::fs::remove_file(folder.join(name)).is_ok();
        assert!(!wanted, "a test wants a panic in {name}");
    }
}

/// Nothing in a program without debug assertions.
#[cfg(not(debug_assertions))]
pub const fn point(_: &str) {}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    #[test]
    fn threads_and_tasks_work_for_the_job_that_started_them() {
        let job = || JOB.get();
        let started = catch("one", || {
            let scoped = std::thread::scope(|scope| scope.spawn(inherit(job)).join().unwrap());
            let task = runtime().block_on(async {
                [spawn(async move { job() }).await, spawn_blocking(job).await].map(Result::unwrap)
            });
            let adopted = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .on_thread_start(adopt())
                .build()
                .unwrap();
            let other = adopted.block_on(adopted.spawn(async move { job() })).unwrap();
            [thread("", job).unwrap().join().unwrap(), scoped, task[0], task[1], other]
        });
        assert_eq!(started, Some([Some("one"); 5]));
        assert_eq!(job(), None);
    }

    #[test]
    fn a_panic_fails_its_job_and_no_other() {
        install();
        assert_eq!(failure("two"), None);
        assert_eq!(catch("two", || -> u8 { panic!("of the thread's\nown") }), None);
        assert_eq!(catch("three", || 3), Some(3));
        let count = || failure("two").unwrap().panics;
        let first = failure("two").unwrap().first;
        assert!(first.starts_with("panicked at crates/panics/src/lib.rs:"), "{first}");
        assert!(first.ends_with(": of the thread's own"), "{first}");
        runtime().block_on(async {
            assert_eq!(caught("two", async { panic!("later") }).await, None::<u8>);
            let task = caught("two", async { spawn(async { panic!("of a task") }).await }).await;
            assert!(task.unwrap().unwrap_err().is_panic());
            assert_eq!(caught("three", async { 3 }).await, Some(3));
            failed("two").await;
        });
        let ended = catch("two", || thread("", || panic!("of a thread")).unwrap().join()).unwrap();
        assert!(ended.is_err());
        assert_eq!((count(), failure("two").unwrap().first), (4, first));
        assert_eq!((failure("three"), JOB.get()), (None, None));
    }
}
