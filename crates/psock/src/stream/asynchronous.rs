//! The stream of a session, for tokio.

use super::PsockStream;
use crate::{
    Config, ConnectError, Counters, SessionError, connect, runtime,
    session::{PanicGuard, Session},
};
use std::{
    io,
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::UnixStream,
};

/// One end of a session, as [`PsockStream`] is, for tokio.
#[derive(Debug)]
pub struct AsyncPsockStream {
    _guard: PanicGuard,
    socket: UnixStream,
    session: Arc<Session>,
}

impl AsyncPsockStream {
    /// Opens a session over the first of the paths that answers; the others join it.
    ///
    /// # Errors
    ///
    /// When the configuration cannot be used, no path answers in time, or the peer refuses.
    pub async fn connect(config: &Config) -> Result<Self, ConnectError> {
        let task = runtime::handle()?.spawn(connect::connect(config.clone()));
        let (socket, session) = task.await.map_err(io::Error::other)??;
        Ok(Self::new(socket, session)?)
    }

    pub(super) fn new(
        socket: std::os::unix::net::UnixStream,
        session: Arc<Session>,
    ) -> io::Result<Self> {
        let socket = session.turn(socket, |socket| {
            socket.set_nonblocking(true)?;
            UnixStream::from_std(socket)
        })?;
        Ok(Self { _guard: PanicGuard(Arc::clone(&session)), socket, session })
    }

    /// The stream for threads that may wait.
    ///
    /// # Errors
    ///
    /// When the system does not allow waiting on the socket.
    pub fn into_blocking(self) -> io::Result<PsockStream> {
        let socket = self.session.turn(self.socket, |socket| {
            let socket = socket.into_std()?;
            socket.set_nonblocking(false)?;
            Ok(socket)
        })?;
        Ok(PsockStream::new(socket, self.session))
    }

    /// Ends the stream and waits until the peer has everything that was written. What the peer has sent
    /// and nobody has read is lost, and the peer gets an error.
    ///
    /// # Errors
    ///
    /// When the session ends before that: the peer may have less.
    pub async fn close(mut self) -> Result<(), SessionError> {
        // It fails only when the session has ended, which is what is waited for.
        let _ = self.socket.shutdown().await;
        self.session.status.until_closed().await
    }

    /// Ends the session now; both ends see an error.
    pub fn abort(&self) {
        self.session.abort();
    }

    /// What has been counted so far.
    pub fn counters(&self) -> Counters {
        self.session.counters()
    }

    /// The peer's address on the connection that opened the session.
    pub fn peer(&self) -> SocketAddr {
        self.session.peer
    }

    /// This end's address on the connection that opened the session.
    pub fn local(&self) -> SocketAddr {
        self.session.local
    }
}

impl AsyncRead for AsyncPsockStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let nothing = buffer.remaining() == 0;
        let result = ready!(Pin::new(&mut self.socket).poll_read(context, buffer));
        let count = result.map(|()| buffer.filled().len() - before);
        Poll::Ready(self.session.status.read(count, nothing).map(drop))
    }
}

impl AsyncWrite for AsyncPsockStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = ready!(Pin::new(&mut self.socket).poll_write(context, bytes));
        Poll::Ready(self.session.status.write(result))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ends writing; the peer reads the rest and then the end.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

impl AsFd for AsyncPsockStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
