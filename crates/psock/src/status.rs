//! How far a session is, as its application may know it: what ended, and whether well.
//!
//! The protocol task writes here before it touches the application's socket, so that who finds the
//! socket ended finds the reason here.

use crate::error::{EndReason, SessionError};
use std::{
    io,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::Notify;

/// What the application can find out.
#[derive(Debug, Default)]
pub(crate) struct Status {
    state: Mutex<State>,
    changed: Condvar,
    notify: Notify,
    /// The application itself ended reading.
    reading_ended: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// The application's socket has the peer's whole stream.
    received: bool,
    /// The peer has our whole stream.
    sent: bool,
    /// The session is over: both, or an error.
    end: Option<Result<(), SessionError>>,
    /// The peer knows all that it must know of a good end, or will not learn it any more.
    parted: bool,
}

impl Status {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
        self.notify.notify_waiters();
    }

    /// The peer's stream is whole; to be called before the application's socket shows its end.
    pub(crate) fn received(&self) {
        self.set(|state| state.received = true);
    }

    /// The peer has all of our stream.
    pub(crate) fn sent(&self) {
        self.set(|state| state.sent = true);
    }

    /// The session is over; the first call counts. To be called before the application's socket is
    /// closed.
    pub(crate) fn end(&self, result: Result<(), SessionError>) {
        self.set(|state| {
            // A good end is one of both streams, whichever task says so first.
            state.received |= result.is_ok() && state.end.is_none();
            state.sent |= result.is_ok() && state.end.is_none();
            state.end.get_or_insert(result);
        });
    }

    /// The process may end without that the peer misses something.
    pub(crate) fn parted(&self) {
        self.set(|state| state.parted = true);
    }

    /// The application ends reading: it then reads an end that says nothing of the stream.
    pub(crate) fn end_reading(&self) {
        self.reading_ended.store(true, Ordering::Relaxed);
    }

    /// How the session has ended, if it has ended badly.
    pub(crate) fn error(&self) -> Option<SessionError> {
        self.state().end.clone().and_then(Result::err)
    }

    /// What closing waits for: the peer has our whole stream; and when we have the peer's too, it knows
    /// that, so that it need not wait for a process that has ended.
    fn closed(state: &State) -> Option<Result<(), SessionError>> {
        match &state.end {
            _ if state.sent => (state.parted || !state.received).then_some(Ok(())),
            end => end.clone(),
        }
    }

    /// Waits until the stream may be closed.
    pub(crate) fn wait_closed(&self) -> Result<(), SessionError> {
        self.wait(Self::closed)
    }

    /// Waits until the session is over.
    pub(crate) fn wait_over(&self) -> Result<(), SessionError> {
        self.wait(|state| state.end.clone().filter(|end| end.is_err() || state.parted))
    }

    fn wait<T>(&self, look: impl Fn(&State) -> Option<T>) -> T {
        let mut state = self.state();
        loop {
            if let Some(value) = look(&state) {
                return value;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until the stream may be closed.
    pub(crate) async fn until_closed(&self) -> Result<(), SessionError> {
        self.until(Self::closed).await
    }

    async fn until<T>(&self, look: impl Fn(&State) -> Option<T>) -> T {
        loop {
            let changed = self.notify.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(value) = look(&self.state()) {
                return value;
            }
            changed.await;
        }
    }

    /// What the application gets when its socket gave `result`; `nothing` when it asked for none.
    pub(crate) fn read(&self, result: io::Result<usize>, nothing: bool) -> io::Result<usize> {
        match &result {
            Ok(0) if !nothing && !self.reading_ended.load(Ordering::Relaxed) => {}
            Ok(_) => return result,
            Err(error) if waits(error) => return result,
            Err(_) => {}
        }
        let state = self.state();
        match &state.end {
            _ if state.received => Ok(0),
            Some(Err(error)) => Err(error.clone().into()),
            // The protocol task itself is gone.
            _ => Err(SessionError::Here(EndReason::Aborted).into()),
        }
    }

    /// What the application gets when its socket gave `result`.
    pub(crate) fn write(&self, result: io::Result<usize>) -> io::Result<usize> {
        match (&result, &self.state().end) {
            (Err(error), Some(Err(reason))) if !waits(error) => Err(reason.clone().into()),
            _ => result,
        }
    }
}

/// Whether it only says that the application may ask again.
fn waits(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_good_only_when_the_session_says_so() {
        let status = Status::default();
        assert!(status.read(Ok(0), false).is_err(), "nothing is known of an end");
        assert_eq!(status.read(Ok(0), true).unwrap(), 0);
        assert_eq!(status.read(Ok(7), false).unwrap(), 7);
        status.received();
        assert_eq!(status.read(Ok(0), false).unwrap(), 0);
    }

    #[test]
    fn a_good_end_is_one_of_both_streams() {
        let status = Status::default();
        status.end(Ok(()));
        assert_eq!(status.read(Ok(0), false).unwrap(), 0);
        status.parted();
        assert_eq!(status.wait_closed(), Ok(()));
        assert_eq!(status.wait_over(), Ok(()));
    }

    #[test]
    fn closing_does_not_wait_for_a_peer_that_goes_on_writing() {
        let status = Status::default();
        status.sent();
        assert_eq!(status.wait_closed(), Ok(()));
    }

    #[test]
    fn the_first_end_counts() {
        let status = Status::default();
        status.end(Err(SessionError::Unknown));
        status.end(Ok(()));
        assert!(status.read(Ok(0), false).is_err());
        assert_eq!(status.wait_closed(), Err(SessionError::Unknown));
        assert_eq!(status.wait_over(), Err(SessionError::Unknown));
    }
}
