//! A session joined with a socket of the process.

use crate::{
    Counters, PsockStream, SessionError, runtime,
    session::{PanicGuard, Session},
};
use socket2::SockRef;
use std::{
    io,
    os::fd::OwnedFd,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};

/// A session joined with a socket; dropping it changes nothing.
#[derive(Debug)]
pub struct Splice {
    session: Arc<Session>,
    ended: Arc<Ended>,
}

/// Whether the socket is closed.
#[derive(Debug, Default)]
struct Ended {
    closed: Mutex<bool>,
    changed: Condvar,
}

/// Says that the socket is closed when it is dropped, however the task ends.
struct End(Arc<Ended>);

impl Drop for End {
    fn drop(&mut self) {
        *self.0.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }
}

impl Splice {
    /// Waits until the session is over and the socket is closed.
    ///
    /// # Errors
    ///
    /// Why the session ended, when not both streams came to their ends.
    pub fn wait(&self) -> Result<(), SessionError> {
        let result = self.session.status.wait_over();
        let mut closed = self.ended.closed.lock().unwrap_or_else(PoisonError::into_inner);
        while !*closed {
            closed = self.ended.changed.wait(closed).unwrap_or_else(PoisonError::into_inner);
        }
        result
    }

    /// What has been counted so far.
    pub fn counters(&self) -> Counters {
        self.session.counters()
    }
}

/// Joins a session with any stream socket of the process (TCP or Unix).
///
/// When the session ends with an error a TCP socket is reset (SO_LINGER 0), so that its reader sees an
/// error and never a short stream.
///
/// # Errors
///
/// When the socket is no stream socket; the session ends with an error then.
pub fn splice(stream: PsockStream, socket: OwnedFd) -> io::Result<Splice> {
    let (application, session) = stream.into_parts();
    session.turn(application, |application| join(application, &session, socket))
}

fn join(
    application: std::os::unix::net::UnixStream,
    session: &Arc<Session>,
    socket: OwnedFd,
) -> io::Result<Splice> {
    let runtime = runtime::handle()?;
    let _inside = runtime.enter();
    let session = Arc::clone(session);
    application.set_nonblocking(true)?;
    let application = UnixStream::from_std(application)?;
    // Reading and writing are the same for all stream sockets.
    let socket = std::os::unix::net::UnixStream::from(socket);
    socket.set_nonblocking(true)?;
    // Until both directions ended well a close is a reset, also when the process is killed.
    SockRef::from(&socket).set_linger(Some(Duration::ZERO))?;
    let socket = UnixStream::from_std(socket)?;
    let ended = Arc::<Ended>::default();
    let splice = Splice { session: Arc::clone(&session), ended: Arc::clone(&ended) };
    runtime.spawn(async move {
        // Dropped after the socket, which is made later.
        let _end = End(ended);
        let (mut from_application, mut to_application) = application.into_split();
        let (mut from_socket, mut to_socket) = socket.into_split();
        let _guard = PanicGuard(Arc::clone(&session));
        let out = async {
            tokio::io::copy(&mut from_socket, &mut to_application).await?;
            to_application.shutdown().await
        };
        let back = async {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let result = from_application.read(&mut buffer).await;
                let count = session.status.read(result, false)?;
                if count == 0 {
                    return to_socket.shutdown().await;
                }
                to_socket.write_all(buffer.get(..count).unwrap_or_default()).await?;
            }
        };
        let well = tokio::try_join!(out, back).is_ok();
        if !well {
            session.abort();
        }
        // A half that is dropped shuts its direction down, which would look like a good end.
        if let Ok(socket) = from_socket.reunite(to_socket)
            && well
        {
            let _ = SockRef::from(&socket).set_linger(None);
        }
    });
    Ok(splice)
}
