//! The threads that answer over UDP, and what those before them have counted.

use crate::{
    proxidor::udp::{Counters, Workers},
    status::{QueryStatus, ThreadStatus},
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The threads in force.
#[derive(Debug, Default)]
pub(super) struct Udp(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    workers: Option<Workers>,
    /// What threads have counted that are no more, or are about to end.
    before: Counters,
}

impl Udp {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Other threads take over; those before answer what has arrived and end. Waits for that;
    /// readers of the counters do not wait.
    pub(super) fn take_over(&self, workers: Option<Workers>) {
        let mut state = self.state();
        let Some(old) = std::mem::replace(&mut state.workers, workers) else { return };
        // So that no sum is ever less than the one before.
        let counted = old.counters();
        state.before.add(&counted);
        drop(state);
        let last = old.stop().since(&counted);
        self.state().before.add(&last);
    }

    /// Ends threads that were never in force. They may have answered, where they share addresses with
    /// those that are.
    pub(super) fn discard(&self, workers: Workers) {
        let counted = workers.stop();
        self.state().before.add(&counted);
    }

    pub(super) fn threads(&self) -> Vec<ThreadStatus> {
        let state = self.state();
        let threads = state.workers.iter().flat_map(Workers::each).enumerate();
        let threads = threads.map(|(thread, (core, counters))| ThreadStatus {
            thread,
            core,
            queries: (&counters).into(),
        });
        threads.collect()
    }

    /// All that was ever received and answered.
    pub(super) fn queries(&self) -> QueryStatus {
        let state = self.state();
        let mut sum = state.before;
        state.workers.iter().for_each(|workers| sum.add(&workers.counters()));
        (&sum).into()
    }
}
