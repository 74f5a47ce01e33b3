//! Whether a connection makes progress: which requests are on it, and for which of them it is the client's turn.
//!
//! ```text
//! request ──▶ served ──▶ piece of the answer ──▶ taken by the client ──▶ next piece ──▶ … ──▶ written
//!             our turn   └──── the client's turn: within the timeout ────┘
//! ```
//!
//! An answer is passed to HTTP in small pieces. The exchange is over when the last of them is freed, which is after
//! it was encrypted and written, not when HTTP has taken it.

use axum::{
    Error,
    body::{Body, Bytes, HttpBody},
    http::Response,
};
use hyper::body::{Frame, SizeHint};
use std::{
    collections::HashMap,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

/// Bytes of a piece of an answer: what a client must take within the timeout.
const PIECE: usize = 16 << 10;

/// The progress of one connection.
pub(super) struct Progress {
    /// Whose connection it is.
    pub(super) source: IpAddr,
    state: Mutex<State>,
    evicted: Notify,
}

struct State {
    /// When an exchange last began, ended or went on.
    last: Instant,
    /// Of each exchange since when it is the client's turn.
    exchanges: HashMap<u64, Option<Instant>>,
    next: u64,
    /// Bytes of a head have come.
    head_begun: bool,
}

/// Why a connection is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// Nothing is asked on it.
    Idle,
    /// A head does not come, or an answer is not taken.
    Slow,
}

impl Progress {
    pub(super) fn new(source: IpAddr) -> Arc<Progress> {
        let state =
            State { last: Instant::now(), exchanges: HashMap::new(), next: 0, head_begun: false };
        Arc::new(Progress { source, state: Mutex::new(state), evicted: Notify::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request has come.
    pub(super) fn begin(self: &Arc<Self>) -> Arc<Exchange> {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.last = Instant::now();
        state.head_begun = false;
        state.exchanges.insert(number, None);
        Arc::new(Exchange { progress: self.clone(), number })
    }

    /// The connection is set up: only now a client can ask.
    pub(super) fn touch(&self) {
        self.state().last = Instant::now();
    }

    /// Bytes have come over HTTP/1.1: between exchanges they are a head's.
    pub(super) fn received(&self) {
        let mut state = self.state();
        state.head_begun = state.exchanges.is_empty();
    }

    /// Whether nothing is asked on the connection, and when something last happened.
    pub(super) fn idle(&self) -> (bool, Instant) {
        let state = self.state();
        (state.exchanges.is_empty(), state.last)
    }

    /// How the connection holds memory, the most surely first: its client has not taken an answer, something is
    /// asked on it, it is idle. And since when.
    pub(super) fn stuck(&self) -> (u8, Instant) {
        let state = self.state();
        match state.exchanges.values().flatten().min() {
            Some(since) => (0, *since),
            None => (if state.exchanges.is_empty() { 2 } else { 1 }, state.last),
        }
    }

    /// Makes the connection end.
    pub(super) fn evict(&self) {
        self.evicted.notify_one();
    }

    /// Completes when the connection is to make room for others.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Completes when nothing has been asked, or an answer has not been taken, for as long as `timeout`.
    pub(super) async fn over(&self, timeout: Duration) -> Over {
        loop {
            match self.check(Instant::now(), timeout) {
                Ok(next) => sleep_until(next).await,
                Err(over) => return over,
            }
        }
    }

    /// When to look again, or why the connection is over.
    fn check(&self, now: Instant, timeout: Duration) -> Result<Instant, Over> {
        let state = self.state();
        let (since, over) = if state.exchanges.is_empty() {
            (state.last, if state.head_begun { Over::Slow } else { Over::Idle })
        } else {
            (state.exchanges.values().flatten().min().copied().unwrap_or(now), Over::Slow)
        };
        let end = since + timeout;
        if end <= now { Err(over) } else { Ok(end) }
    }
}

/// One request and its answer.
pub(super) struct Exchange {
    progress: Arc<Progress>,
    number: u64,
}

impl Exchange {
    /// It is the client's turn, or ours, from now on.
    fn turn(&self, of_client: bool) {
        let now = Instant::now();
        let mut state = self.progress.state();
        state.last = now;
        if let Some(since) = state.exchanges.get_mut(&self.number) {
            *since = of_client.then_some(now);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut state = self.progress.state();
        state.exchanges.remove(&self.number);
        state.last = Instant::now();
    }
}

/// The response in pieces, with which the exchange ends.
pub(super) fn paced(response: Response<Body>, exchange: Arc<Exchange>) -> Response<Body> {
    exchange.turn(true);
    response.map(|inner| Body::new(Paced { inner, rest: Bytes::new(), exchange }))
}

/// A body in pieces.
struct Paced {
    inner: Body,
    rest: Bytes,
    exchange: Arc<Exchange>,
}

impl HttpBody for Paced {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        while self.rest.is_empty() {
            self.exchange.turn(false);
            match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => {
                        let exchange = self.exchange.clone();
                        self.rest = Bytes::from_owner(Sent { bytes, _exchange: exchange });
                    }
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        self.exchange.turn(true);
        let length = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.rest.is_empty() { self.inner.size_hint() } else { SizeHint::default() }
    }
}

/// Bytes that are being sent.
struct Sent {
    bytes: Bytes,
    _exchange: Arc<Exchange>,
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{FutureExt, StreamExt};

    const TIMEOUT: Duration = Duration::from_secs(20);

    fn progress() -> (Arc<Progress>, Instant) {
        let progress = Progress::new(IpAddr::from([192, 0, 2, 1]));
        let begin = progress.state().last;
        (progress, begin)
    }

    #[tokio::test]
    async fn a_connection_without_requests_is_idle_or_its_head_is_slow() {
        let (progress, begin) = progress();
        assert_eq!(progress.check(begin, TIMEOUT), Ok(begin + TIMEOUT));
        assert_eq!(progress.check(begin + TIMEOUT, TIMEOUT), Err(Over::Idle));
        progress.received();
        assert_eq!(progress.check(begin + TIMEOUT, TIMEOUT), Err(Over::Slow));
        let exchange = progress.begin();
        progress.received();
        drop(exchange);
        let (idle, last) = progress.idle();
        assert!(idle);
        assert_eq!(progress.check(last + TIMEOUT, TIMEOUT), Err(Over::Idle));
    }

    #[tokio::test]
    async fn an_answer_that_is_not_taken_is_slow_and_one_that_is_made_is_not() {
        let (progress, _) = progress();
        let late = Instant::now() + 10 * TIMEOUT;
        let exchange = progress.begin();
        assert!(progress.check(late, TIMEOUT).is_ok(), "it is our turn");
        let mut body = paced(Response::new(Body::from(vec![7; PIECE + 1])), exchange)
            .into_body()
            .into_data_stream();
        assert_eq!(progress.check(late, TIMEOUT), Err(Over::Slow));
        let first = body.next().await.expect("a piece").expect("no error");
        let second = body.next().await.expect("a piece").expect("no error");
        assert_eq!((first.len(), second.len()), (PIECE, 1));
        assert!(body.next().await.is_none());
        drop((body, first));
        assert!(!progress.idle().0, "the second piece is not written yet");
        drop(second);
        assert!(progress.idle().0);
    }

    #[tokio::test]
    async fn a_body_that_waits_for_the_server_is_not_slow() {
        let (progress, _) = progress();
        let inner = Body::from_stream(futures_util::stream::pending::<Result<Bytes, Error>>());
        let mut body = paced(Response::new(inner), progress.begin()).into_body().into_data_stream();
        assert!(body.next().now_or_never().is_none());
        assert!(progress.check(Instant::now() + 10 * TIMEOUT, TIMEOUT).is_ok());
    }
}
