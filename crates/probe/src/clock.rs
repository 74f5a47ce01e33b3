//! How good this station's clock is, at any moment.
//!
//! [`Clock`] has a thread that reads what is known of the clock and keeps it in [`held`], from where
//! [`Clock::now_error`] takes it without a lock or a system call: it is asked for every packet. Between two
//! readings the error grows as the kernel lets its own grow, and a step of the clock, whoever made it,
//! is added to the error at once.
//! What the kernel says of its clock is read in [`kernel`].

pub mod kernel;

mod held;

use crate::{interval::MaximumError, record};
use arc_swap::ArcSwap;
use held::Held;
use std::{
    io,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread::JoinHandle,
    time::Duration,
};

/// How often the clock's state is read.
const PERIOD: Duration = Duration::from_secs(1);

/// The watch over this station's clock; stops when it is dropped.
#[derive(Debug)]
pub struct Clock {
    shared: Arc<Shared>,
    thread: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

#[derive(Debug)]
struct Shared {
    held: ArcSwap<Held>,
    state: ArcSwap<record::Clock>,
}

/// The clock cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("the thread that watches the clock cannot be started: {0}")]
pub struct StartError(#[from] io::Error);

impl Clock {
    /// Reads the clock's state and goes on doing so.
    ///
    /// # Errors
    ///
    /// There can be no thread.
    pub fn start() -> Result<Self, StartError> {
        let shared = Arc::new(Shared {
            held: ArcSwap::from_pointee(Held::new(MaximumError::UNKNOWN)),
            state: ArcSwap::default(),
        });
        shared.read();
        let (stop, stopped) = mpsc::channel();
        let watched = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("probe-clock".into()).spawn(move || {
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                watched.read();
            }
        })?;
        Ok(Self { shared, thread: Some((stop, thread)) })
    }

    /// A clock of which this is known, now: for tests, and for stations whose clocks somebody else watches.
    pub fn fixed(error: MaximumError) -> Self {
        let state = record::Clock {
            source: "configuration".into(),
            maximum_error_ns: error.nanoseconds,
            ..record::Clock::default()
        };
        let shared = Shared {
            held: ArcSwap::from_pointee(Held::new(error)),
            state: ArcSwap::from_pointee(state),
        };
        Self { shared: Arc::new(shared), thread: None }
    }

    /// The most that this station's clock is off at this moment.
    pub fn now_error(&self) -> MaximumError {
        self.shared.held.load().now()
    }

    /// What was read last.
    pub fn state(&self) -> Arc<record::Clock> {
        self.shared.state.load_full()
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            drop(stop);
            // A panic of the thread has been written already.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn read(&self) {
        let state = kernel::read().unwrap_or_else(|error| {
            tracing::warn!("the kernel says nothing of its clock: {error}");
            record::Clock { source: "kernel".into(), ..record::Clock::default() }
        });
        self.held.store(Arc::new(Held::new(MaximumError { nanoseconds: state.maximum_error_ns })));
        self.state.store(Arc::new(state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_kept() {
        let clock = Clock::start().unwrap();
        let state = clock.state();
        assert_eq!(state.source, "kernel");
        match (state.maximum_error_ns, clock.now_error().nanoseconds) {
            (None, now) => assert_eq!(now, None, "no bound from a clock that nobody sets"),
            (Some(then), now) => {
                assert!(now.is_none_or(|now| now >= then), "it grows: {then}, {now:?}")
            }
        }
    }

    #[test]
    fn a_fixed_error_grows_from_what_it_was() {
        let clock = Clock::fixed(MaximumError::known(1000));
        let (first, second) = (clock.now_error().nanoseconds, clock.now_error().nanoseconds);
        assert!(first >= Some(1000) && second.is_some(), "{first:?} {second:?}");
        assert_eq!(Clock::fixed(MaximumError::UNKNOWN).now_error(), MaximumError::UNKNOWN);
    }
}
