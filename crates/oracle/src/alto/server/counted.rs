//! A connection whose bytes are counted.

use super::progress::Progress;
use crate::alto::counters::Counters;
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A counted connection.
pub(super) struct Counted<S> {
    inner: S,
    counters: Arc<Counters>,
    /// Told of bytes that come, over HTTP/1.1.
    heads: Option<Arc<Progress>>,
}

impl<S> Counted<S> {
    pub(super) fn new(
        inner: S,
        counters: Arc<Counters>,
        heads: Option<Arc<Progress>>,
    ) -> Counted<S> {
        Counted { inner, counters, heads }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        let count = buffer.filled().len().saturating_sub(before);
        self.counters.received(count);
        if let Some(progress) = self.heads.as_ref().filter(|_| count > 0) {
            progress.received();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        if let Poll::Ready(Ok(count)) = &written {
            self.counters.sent(*count);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
