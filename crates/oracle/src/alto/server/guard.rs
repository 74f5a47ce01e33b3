//! A connection whose bytes are counted, and which ends when its client takes nothing for too long.

use crate::alto::counters::Counters;
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

/// A guarded connection.
pub(super) struct Guarded<S> {
    inner: S,
    counters: Arc<Counters>,
    timeout: Duration,
    /// Runs while the client takes nothing.
    stalled: Pin<Box<Sleep>>,
    waiting: bool,
}

impl<S> Guarded<S> {
    pub(super) fn new(inner: S, counters: Arc<Counters>, timeout: Duration) -> Guarded<S> {
        Guarded { inner, counters, timeout, stalled: Box::pin(sleep(timeout)), waiting: false }
    }

    /// Passes the result of writing on, unless nothing was written for too long.
    fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = false;
            return written;
        }
        if !self.waiting {
            self.waiting = true;
            self.stalled.as_mut().reset(Instant::now() + self.timeout);
        }
        ready!(self.stalled.as_mut().poll(cx));
        self.waiting = false;
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        self.counters.received(buffer.filled().len().saturating_sub(before));
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        if let Poll::Ready(Ok(count)) = &written {
            self.counters.sent(*count);
        }
        self.watch(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        self.watch(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.watch(cx, shut)
    }
}
