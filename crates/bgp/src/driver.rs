//! The state machine of [`crate::fsm`] joined to a socket and a clock, on tokio.
//!
//! The task that owns it calls [`Driver::act`] and [`Driver::step`] in turn, and may do other work
//! between them. Nothing it holds can grow: one read buffer, one output buffer of at most a batch of
//! messages.

use crate::{
    clock::{now, until},
    config::{BgpUpstream, Password},
    fsm::{self, Effect, Event, Fsm, Purpose},
    socket::{self, Target},
};
use std::{
    future::{Future, pending},
    hash::{BuildHasher, Hasher, RandomState},
    io,
    net::SocketAddr,
    pin::Pin,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// How long the last bytes of a connection may take.
const FAREWELL: Duration = Duration::from_millis(500);

/// The text for the neighbour's operator at a clean stop (RFC 9003 section 2).
pub(crate) const SHUTDOWN_TEXT: &str = "nigh is stopping";

type Connecting = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

/// A session and what it runs on.
pub(crate) struct Driver {
    pub(crate) fsm: Fsm,
    target: Target,
    connecting: Option<Connecting>,
    stream: Option<TcpStream>,
    /// What is being written, and how much of it has been.
    out: Vec<u8>,
    sent: usize,
    buffer: Vec<u8>,
}

/// What moved on a connection.
enum Moved {
    Written(usize),
    Read(usize),
}

/// What came first.
enum Came {
    Opened(io::Result<TcpStream>),
    Moved(io::Result<Moved>),
    Deadline,
}

impl Driver {
    pub(crate) fn new(
        config: &BgpUpstream,
        password: Option<Password>,
        port: u16,
        purpose: Purpose,
    ) -> Self {
        let fsm = fsm::Config {
            local_as: config.local_as,
            peer_as: config.peer_as,
            router_id: config.router_id,
            next_hop4: config.next_hop4,
            next_hop6: config.next_hop6,
            hold_time: u16::try_from(config.hold_time.as_secs()).unwrap_or(u16::MAX),
            purpose,
        };
        Self {
            fsm: Fsm::new(fsm, RandomState::new().build_hasher().finish()),
            target: Target {
                peer: SocketAddr::new(config.peer, port),
                local: config.local_address,
                password,
                ttl_security: config.ttl_security,
            },
            connecting: None,
            stream: None,
            out: Vec::new(),
            sent: 0,
            buffer: vec![0; 16 * 1024],
        }
    }

    /// Whether something is being written.
    pub(crate) fn is_writing(&self) -> bool {
        !self.out.is_empty() && self.stream.is_some()
    }

    /// Carries out the machine's effects, and takes what it has to send.
    pub(crate) async fn act(&mut self) {
        while let Some(effect) = self.fsm.effect() {
            match effect {
                Effect::Connect => {
                    self.connecting = Some(Box::pin(socket::connect(self.target.clone())));
                }
                Effect::Close(last_words) => {
                    self.connecting = None;
                    let mut rest = self.out.split_off(self.sent);
                    self.out.clear();
                    self.sent = 0;
                    if let Some(stream) = self.stream.take()
                        && !last_words.is_empty()
                    {
                        rest.extend(last_words);
                        // The neighbour may have stopped reading.
                        let _ = timeout(FAREWELL, farewell(stream, &rest)).await;
                    }
                }
            }
        }
        if self.stream.is_some() && self.out.is_empty() {
            self.fsm.transmit(now(), &mut self.out);
        }
    }

    /// Waits for whichever comes first: the connection, room to write, bytes to read, the deadline; and
    /// passes it to the machine. Cancelling it loses nothing.
    pub(crate) async fn step(&mut self) {
        let out = self.out.get(self.sent..).unwrap_or_default();
        let came = tokio::select! {
            biased;
            result = opened(&mut self.connecting) => Came::Opened(result),
            moved = transfer(self.stream.as_mut(), out, &mut self.buffer) => Came::Moved(moved),
            () = until(self.fsm.deadline()) => Came::Deadline,
        };
        match came {
            Came::Opened(result) => self.opened(result),
            Came::Deadline => self.fsm.handle(Event::Tick, now()),
            Came::Moved(Ok(Moved::Written(count))) => {
                self.sent += count;
                if self.sent == self.out.len() {
                    self.out.clear();
                    self.sent = 0;
                    self.fsm.handle(Event::Written, now());
                }
            }
            Came::Moved(Ok(Moved::Read(0))) => {
                self.fsm.handle(Event::Closed("the neighbour closed the connection"), now());
            }
            Came::Moved(Ok(Moved::Read(count))) => {
                self.fsm.handle(Event::Received(&self.buffer[..count]), now());
            }
            Came::Moved(Err(error)) => {
                let why = format!("the connection failed: {error}");
                self.fsm.handle(Event::Closed(&why), now());
            }
        }
    }

    fn opened(&mut self, result: io::Result<TcpStream>) {
        self.connecting = None;
        let opened = result.and_then(|stream| Ok((stream.local_addr()?.ip(), stream)));
        match opened {
            Ok((local, stream)) => {
                self.stream = Some(stream);
                self.fsm.handle(Event::Connected(local), now());
            }
            Err(error) => self.fsm.handle(Event::Refused(&error.to_string()), now()),
        }
    }
}

/// Waits for the connection that is being opened, for ever if there is none.
async fn opened(connecting: &mut Option<Connecting>) -> io::Result<TcpStream> {
    match connecting {
        Some(connecting) => connecting.await,
        None => pending().await,
    }
}

/// Reads, or writes if there is something to write, whichever can be done first.
async fn transfer(
    stream: Option<&mut TcpStream>,
    out: &[u8],
    buffer: &mut [u8],
) -> io::Result<Moved> {
    let Some(stream) = stream else { return pending().await };
    let (mut reader, mut writer) = stream.split();
    tokio::select! {
        written = writer.write(out), if !out.is_empty() => written.map(Moved::Written),
        read = reader.read(buffer) => read.map(Moved::Read),
    }
}

/// Writes the last bytes and reads until the neighbour closes too: closing with bytes unread resets the
/// connection, and the neighbour would lose what was just written.
async fn farewell(mut stream: TcpStream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.shutdown().await?;
    let mut rest = [0; 4096];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}
