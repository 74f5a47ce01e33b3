//! Connections of a test: made with a preamble, taken by it.

use super::{
    Error, Token,
    control::{self, Lines, Message, PREAMBLE, Role},
    within,
};
use crate::tools::context::{Context, Refusal};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// Time that a connection has for its preamble.
const PREAMBLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections at once whose preamble is waited for.
const MOST_UNKNOWN: usize = 64;

/// Connects and says what for.
pub(super) async fn connect(to: SocketAddr, token: &Token, role: Role) -> Result<TcpStream, Error> {
    let failed = |source| Error::Connect { to, source };
    let connect = async {
        let mut stream = TcpStream::connect(to).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.write_all(&control::preamble(role, token)).await.map_err(failed)?;
        Ok(stream)
    };
    within(connect).await
}

/// Takes connections of one test, and none of others.
pub(super) struct Door {
    listener: TcpListener,
    token: Token,
    /// Who may connect.
    from: IpAddr,
    context: Context,
    unknown: JoinSet<Option<(Role, TcpStream)>>,
}

impl Door {
    pub(super) fn new(listener: TcpListener, token: Token, from: IpAddr, context: Context) -> Self {
        Self { listener, token, from: from.to_canonical(), context, unknown: JoinSet::new() }
    }

    /// The next connection for this; others of the test are not expected then, and closed.
    pub(super) async fn next(&mut self, wanted: Role) -> Result<TcpStream, Error> {
        loop {
            let busy = self.unknown.len() >= MOST_UNKNOWN;
            tokio::select! {
                accepted = self.listener.accept(), if !busy => match accepted {
                    Ok((stream, peer)) if peer.ip().to_canonical() == self.from => {
                        self.unknown.spawn(know(stream, self.token));
                    }
                    Ok(_) => self.context.counters.refuse(Refusal::UnknownPeer),
                    // A connection that was gone before it was taken; or too few descriptors, which
                    // must not turn this into a loop at full speed.
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                },
                Some(known) = self.unknown.join_next() => match known {
                    Ok(Some((role, stream))) if role == wanted => {
                        stream.set_nodelay(true).map_err(Error::Control)?;
                        return Ok(stream);
                    }
                    _ => self.context.counters.refuse(Refusal::UnknownPeer),
                },
            }
        }
    }
}

/// Reads what a connection is for.
async fn know(mut stream: TcpStream, token: Token) -> Option<(Role, TcpStream)> {
    let mut bytes = [0; PREAMBLE];
    let read = tokio::time::timeout(PREAMBLE_TIMEOUT, stream.read_exact(&mut bytes)).await;
    read.ok()?.ok()?;
    Some((control::role(&bytes, &token)?, stream))
}

/// The connection for control.
pub(super) struct Control {
    stream: TcpStream,
    lines: Lines,
}

impl Control {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, lines: Lines::default() }
    }

    pub(super) fn peer(&self) -> Result<SocketAddr, Error> {
        self.stream.peer_addr().map_err(Error::Control)
    }

    /// The connection itself, to try options on.
    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends a message.
    pub(super) async fn send(&mut self, message: &Message) -> Result<(), Error> {
        let say = async { self.stream.write_all(&message.line()).await.map_err(Error::Control) };
        within(say).await
    }

    /// The next message. When the future is dropped nothing is lost.
    pub(super) async fn hear(&mut self, context: &Context) -> Result<Message, Error> {
        let mut buffer = [0; 4096];
        loop {
            match self.lines.take() {
                Ok(Some(message)) => return Ok(message),
                Ok(None) => {}
                Err(error) => {
                    context.counters.refuse(Refusal::Control);
                    return Err(error.into());
                }
            }
            let room = buffer.len().min(self.lines.room());
            let room = buffer.get_mut(..room).unwrap_or_default();
            let length = self.stream.read(room).await.map_err(Error::Control)?;
            if length == 0 {
                return Err(Error::Control(io::ErrorKind::UnexpectedEof.into()));
            }
            self.lines.push(buffer.get(..length).unwrap_or_default());
        }
    }
}
