//! Work that waits on sockets by itself, apart from the asynchronous threads.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Whether nobody waits for the work any more; it is checked between two waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Stops the work when dropped.
struct Guard(Stop);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Does work on a thread for it; when the future is dropped, the work is stopped.
///
/// # Panics
/// When the work does, with its message.
pub(crate) async fn apart<R: Send + 'static>(work: impl FnOnce(&Stop) -> R + Send + 'static) -> R {
    let guard = Guard(Stop::default());
    let stop = guard.0.clone();
    match tokio::task::spawn_blocking(move || work(&stop)).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is being shut down, and this future with it.
            Err(_) => std::future::pending().await,
        },
    }
}
