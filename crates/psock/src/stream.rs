//! The stream of a session, for threads that may wait.

mod asynchronous;

pub use asynchronous::AsyncPsockStream;

use crate::{
    Config, ConnectError, Counters, SessionError, connect, runtime,
    session::{PanicGuard, Session},
};
use std::{
    io::{self, IoSlice, IoSliceMut, Read, Write},
    net::{Shutdown, SocketAddr},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
        unix::net::UnixStream,
    },
    sync::Arc,
    time::Duration,
};

/// One end of a session: a byte stream in each direction.
///
/// What [`Read`] gives is exactly what the peer wrote. The end of the stream (`Ok(0)`) is only seen
/// when the peer announced its end there and everything before it has come; a session that ended
/// otherwise gives its [`SessionError`], also after all bytes that came in order were read.
///
/// Dropping a stream closes it as closing a TCP socket does: what was written is still sent, as long
/// as the process lives. Only when a panic drops it, the session ends with an error, because not all may
/// have been written that was to be. [`PsockStream::close`] waits until the peer has it; a program that ends
/// without that may cut its peer off, which the peer sees as an error.
#[derive(Debug)]
pub struct PsockStream {
    _guard: PanicGuard,
    socket: UnixStream,
    session: Arc<Session>,
}

impl PsockStream {
    /// Opens a session over the first of the paths that answers; the others join it.
    ///
    /// # Errors
    ///
    /// When the configuration cannot be used, no path answers in time, or the peer refuses.
    pub fn connect(config: &Config) -> Result<Self, ConnectError> {
        let runtime = runtime::handle()?;
        let task = runtime.spawn(connect::connect(config.clone()));
        // The caller may be on a thread of another runtime, where blocking on a future is not
        // allowed; waiting for a channel is.
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        runtime.spawn(async move {
            let _ = send.send(task.await);
        });
        match receive.recv() {
            Ok(Ok(result)) => result.map(|(socket, session)| Self::new(socket, session)),
            _ => Err(io::Error::other("a protocol task has failed").into()),
        }
    }

    pub(crate) fn new(socket: UnixStream, session: Arc<Session>) -> Self {
        Self { _guard: PanicGuard(Arc::clone(&session)), socket, session }
    }

    pub(crate) fn into_parts(self) -> (UnixStream, Arc<Session>) {
        (self.socket, self.session)
    }

    /// Ends one or both directions: after writing has been shut down the peer reads the rest and then
    /// the end.
    ///
    /// # Errors
    ///
    /// When the session has ended with an error.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        if how != Shutdown::Write {
            self.session.status.end_reading();
        }
        self.socket.shutdown(how)
    }

    /// Ends the stream and waits until the peer has everything that was written. What the peer has sent
    /// and nobody has read is lost, and the peer gets an error.
    ///
    /// # Errors
    ///
    /// When the session ends before that: the peer may have less.
    pub fn close(self) -> Result<(), SessionError> {
        self.finish()
    }

    /// As [`PsockStream::close`], for a stream that several threads share: others may still read.
    ///
    /// # Errors
    ///
    /// When the session ends before that: the peer may have less.
    pub fn finish(&self) -> Result<(), SessionError> {
        // It fails only when the session has ended, which is what is waited for.
        let _ = self.socket.shutdown(Shutdown::Write);
        self.session.status.wait_closed()
    }

    /// Ends the session now; both ends see an error, also in calls that wait.
    pub fn abort(&self) {
        self.session.abort();
    }

    /// How the session has ended, if it has ended badly.
    pub fn error(&self) -> Option<SessionError> {
        self.session.status.error()
    }

    /// What has been counted so far.
    pub fn counters(&self) -> Counters {
        self.session.counters()
    }

    /// The stream for tokio; to be called within a tokio runtime, which then drives it.
    ///
    /// # Errors
    ///
    /// When the runtime does not take the socket.
    pub fn into_async(self) -> io::Result<AsyncPsockStream> {
        AsyncPsockStream::new(self.socket, self.session)
    }

    /// The peer's address on the connection that opened the session.
    pub fn peer(&self) -> SocketAddr {
        self.session.peer
    }

    /// This end's address on the connection that opened the session.
    pub fn local(&self) -> SocketAddr {
        self.session.local
    }

    /// Whether reading and writing return [`io::ErrorKind::WouldBlock`] instead of waiting.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.socket.set_nonblocking(nonblocking)
    }

    /// How long reading may wait.
    ///
    /// # Errors
    ///
    /// When the time is zero.
    pub fn set_read_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        self.socket.set_read_timeout(time)
    }

    /// How long writing may wait.
    ///
    /// # Errors
    ///
    /// When the time is zero.
    pub fn set_write_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        self.socket.set_write_timeout(time)
    }
}

impl Read for PsockStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        (&*self).read_vectored(buffers)
    }
}

impl Read for &PsockStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.session.status.read((&self.socket).read(buffer), buffer.is_empty())
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let nothing = buffers.iter().all(|buffer| buffer.is_empty());
        self.session.status.read((&self.socket).read_vectored(buffers), nothing)
    }
}

impl Write for PsockStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        (&*self).write_vectored(buffers)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for &PsockStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.session.status.write((&self.socket).write(bytes))
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.session.status.write((&self.socket).write_vectored(buffers))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The application's end, for poll(2) and the like; reading and writing are for [`Read`] and [`Write`],
/// which know how the session ended.
impl AsFd for PsockStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for PsockStream {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
