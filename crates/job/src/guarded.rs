//! A running job, called so that its panic stays its own.

use crate::{Pulse, Service};
use std::{fmt, future::Future, time::Duration};
use tokio::{sync::Mutex, time::sleep};
use tracing::{error, info};

/// How long what is left of a failed job may take to stop.
const STOP: Duration = Duration::from_secs(10);

/// A job has failed: its code panicked, and the daemon has stopped it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{job}: failed: {first}; restart the daemon to start it again")]
pub struct Failed {
    job: &'static str,
    /// Where its first panic was, and the message.
    first: String,
}

impl Failed {
    /// Of a job that has panicked.
    pub(crate) fn of(job: &'static str) -> Self {
        let first = panics::failure(job).map_or_else(|| "panicked".into(), |failure| failure.first);
        Self { job, first }
    }
}

/// A running job. A panic in it makes it fail. Then its service, whose state may be half changed, is not
/// called any more but to stop.
pub struct Guarded<S> {
    name: &'static str,
    service: S,
    stopped: Mutex<bool>,
}

impl<S> fmt::Debug for Guarded<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<S: Service> Guarded<S> {
    pub(crate) fn new(name: &'static str, service: S) -> Self {
        Self { name, service, stopped: Mutex::default() }
    }

    /// The job's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it has failed.
    pub fn failed(&self) -> Option<Failed> {
        panics::failure(self.name).map(|_| Failed::of(self.name))
    }

    /// Its pulse, which means nothing once it has failed.
    pub(crate) fn pulse(&self) -> &Pulse {
        self.service.pulse()
    }

    fn check(&self) -> Result<(), Failed> {
        self.failed().map_or(Ok(()), Err)
    }

    /// Calls the service.
    ///
    /// # Errors
    ///
    /// It has failed.
    pub fn call<'s, T>(&'s self, call: impl FnOnce(&'s S) -> T) -> Result<T, Failed> {
        self.check()?;
        let call = || {
            panics::point(self.name);
            call(&self.service)
        };
        panics::catch(self.name, call).ok_or_else(|| Failed::of(self.name))
    }

    /// Calls the service and waits for what it gives.
    ///
    /// # Errors
    ///
    /// It has failed, or fails meanwhile.
    pub async fn ask<'s, F>(&'s self, ask: impl FnOnce(&'s S) -> F) -> Result<F::Output, Failed>
    where
        F: Future,
    {
        let asked = self.call(ask)?;
        tokio::select! {
            biased;
            done = panics::caught(self.name, asked) => done.ok_or_else(|| Failed::of(self.name)),
            () = panics::failed(self.name) => Err(Failed::of(self.name)),
        }
    }

    /// Stops it, once; returns when it has stopped. A job that has failed gets ten seconds.
    pub(crate) async fn stop(&self) {
        let mut stopped = self.stopped.lock().await;
        if *stopped {
            return;
        }
        let job = self.name;
        let over = async {
            panics::failed(job).await;
            sleep(STOP).await;
        };
        tokio::select! {
            _ = panics::caught(job, self.service.stop()) => {
                if self.failed().is_some() {
                    info!(job, "what was left of the failed job has stopped");
                }
            }
            () = over => error!(job, "the failed job does not stop"),
        }
        *stopped = true;
    }
}
