//! What happens to a connection that comes: handshake, then a new session, a session that it joins, or
//! a refusal that is counted.

use super::places::Places;
use crate::{
    AcceptError, Config, ListenerCounters, PsockStream,
    channel::Channel,
    core::frame::{Join, MAX_OFFSET, Open, Purpose, Secret, SessionId, Welcome},
    error::{PathError, Refusal},
    handshake::{self, Wish},
    manager::Role,
    security::Tls,
    session::{Admission, Event, Negotiated, Session},
    socket,
    start::start,
    tls::Records,
};
use nix::{
    errno::Errno,
    sys::eventfd::{EfdFlags, EventFd},
};
use permits::{Permit, Permits, source};
use rustls::ServerConfig;
use socket2::SockRef;
use std::{
    collections::{HashMap, VecDeque},
    fmt, io,
    net::{IpAddr, SocketAddr},
    os::fd::{AsFd, BorrowedFd},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::AbortHandle,
    time::{sleep, timeout},
};

/// The wait after accepting has failed, mostly for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Sources that are remembered of one session.
const MOST_SOURCES: usize = 16;

/// What is called with the source of a connection and why it was refused.
pub(super) struct OnRefused(pub(super) Box<Report>);

type Report = dyn Fn(SocketAddr, &str) + Send + Sync;

impl fmt::Debug for OnRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnRefused(..)")
    }
}

/// What all connections of a listener share.
#[derive(Debug)]
pub(super) struct Taker {
    config: Config,
    tls: Tls<ServerConfig>,
    /// Handshakes of strangers, and of sources that have a session: nobody else takes these from them.
    handshakes: [Arc<Places>; 2],
    sessions: Arc<Permits>,
    state: Mutex<State>,
    /// Is called with each refused peer and the reason.
    pub(super) on_refused: OnceLock<OnRefused>,
    /// Counts the sessions that wait to be accepted.
    event: EventFd,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct State {
    counters: ListenerCounters,
    table: HashMap<SessionId, Entry>,
    waiting: VecDeque<PsockStream>,
    /// No new sessions are taken.
    stopping: bool,
    tasks: Vec<AbortHandle>,
    /// Where the peer may find the listener too: all of its addresses that are some.
    addresses: Vec<SocketAddr>,
}

/// A session that can be joined.
#[derive(Debug)]
struct Entry {
    secret: Secret,
    session: Arc<Session>,
    /// Where its connections came from, the latest last.
    sources: VecDeque<IpAddr>,
    _held: Permit,
}

/// Why a connection did not become part of a session.
enum Rejection {
    Refused(Refusal, fn(&mut ListenerCounters) -> &mut u64),
    Failed(PathError),
}

impl From<PathError> for Rejection {
    fn from(error: PathError) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for Rejection {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl Taker {
    pub(super) fn new(config: Config, tls: Tls<ServerConfig>) -> io::Result<Self> {
        let flags = EfdFlags::EFD_SEMAPHORE | EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let limits = &config.limits;
        Ok(Self {
            handshakes: [(); 2]
                .map(|()| Places::new(limits.handshakes, limits.handshakes_per_source)),
            sessions: Permits::new(limits.sessions, limits.sessions_per_source),
            config,
            tls,
            state: Mutex::default(),
            on_refused: OnceLock::new(),
            event: EventFd::from_flags(flags)?,
            arrived: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    pub(super) fn counters(&self) -> ListenerCounters {
        self.state().counters.clone()
    }

    /// Takes connections of one address from now on.
    pub(super) fn listen(self: &Arc<Self>, socket: TcpListener) {
        let address = socket.local_addr().ok().filter(|address| !address.ip().is_unspecified());
        self.state().addresses.extend(address);
        let taker = Arc::clone(self);
        let task = tokio::spawn(async move {
            loop {
                match socket.accept().await {
                    Ok((socket, peer)) => taker.take(socket, peer),
                    // The connection was gone again, or there are too many files.
                    Err(_) => sleep(PAUSE).await,
                }
            }
        });
        self.state().tasks.push(task.abort_handle());
    }

    /// Takes no new sessions; ends when the last one has.
    pub(super) fn stop(&self) {
        let waiting = {
            let mut state = self.state();
            state.stopping = true;
            state.end_if_idle();
            std::mem::take(&mut state.waiting)
        };
        // Nobody will ever accept them.
        for stream in waiting {
            stream.abort();
        }
    }

    /// The next session that waits.
    pub(super) fn next(&self) -> Result<Option<(PsockStream, SocketAddr)>, AcceptError> {
        match self.event.read() {
            Ok(_) => {}
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(error) => return Err(AcceptError::System(error.into())),
        }
        let stream = self.state().waiting.pop_front();
        Ok(stream.map(|stream| {
            let peer = stream.peer();
            (stream, peer)
        }))
    }

    /// Waits for the next session.
    pub(super) async fn until_next(&self) -> Result<(PsockStream, SocketAddr), AcceptError> {
        loop {
            let arrived = self.arrived.notified();
            tokio::pin!(arrived);
            arrived.as_mut().enable();
            if let Some(accepted) = self.next()? {
                return Ok(accepted);
            }
            arrived.await;
        }
    }

    /// A connection has come.
    fn take(self: &Arc<Self>, socket: TcpStream, peer: SocketAddr) {
        let source = source(peer.ip());
        let mut state = self.state();
        state.counters.accepted += 1;
        let [strangers, known] = &self.handshakes;
        let own = if state.knows(source) { known.take(source).ok() } else { None };
        let Some(place) = own.or_else(|| strangers.take(source).ok()) else {
            state.counters.refused_handshakes += 1;
            return;
        };
        drop(state);
        let taker = Arc::clone(self);
        tokio::spawn(async move {
            let limit = taker.config.limits.handshake_time;
            let result = tokio::select! {
                result = timeout(limit, taker.admit(socket, peer)) => result,
                () = place.is_lost() => {
                    return taker.count(|counters| &mut counters.refused_handshakes);
                }
            };
            // The place is free before the counters show the connection's result.
            drop(place);
            let reason = match result {
                Ok(Ok(count)) => return taker.count(count),
                Err(_) => {
                    taker.count(|counters| &mut counters.refused_slow);
                    "too slow".to_owned()
                }
                Ok(Err(Rejection::Refused(refusal, counter))) => {
                    taker.count(counter);
                    refusal.to_string()
                }
                Ok(Err(Rejection::Failed(error))) => {
                    taker.count(match error {
                        PathError::Tls(_) => |counters| &mut counters.refused_tls,
                        PathError::Io(_) | PathError::TimedOut => |counters| &mut counters.broken,
                        _ => |counters| &mut counters.refused_protocol,
                    });
                    error.to_string()
                }
            };
            tracing::debug!("a connection from {peer} was refused: {reason}");
            if let Some(OnRefused(report)) = taker.on_refused.get() {
                report(peer, &reason);
            }
        });
    }

    fn count(&self, counter: fn(&mut ListenerCounters) -> &mut u64) {
        *counter(&mut self.state().counters) += 1;
    }

    /// Does the handshake and gives the connection to its session; returns what to count.
    async fn admit(
        self: &Arc<Self>,
        socket: TcpStream,
        peer: SocketAddr,
    ) -> Result<fn(&mut ListenerCounters) -> &mut u64, Rejection> {
        socket::tune(SockRef::from(&socket), &self.config)?;
        let mut channel = Channel::new(socket, Records::accepting(&self.tls)?);
        channel.handshake().await?;
        if let Tls::On { name: Some(name), .. } = &self.tls {
            channel.records.peer_is(name).map_err(PathError::Tls)?;
        }
        let (wish, nonce) = match handshake::greet(&mut channel).await {
            Ok(greeted) => greeted,
            Err(error) => {
                if let Some(refusal) = Refusal::of(&error) {
                    let _ = handshake::refuse(&mut channel, refusal).await;
                }
                return Err(error.into());
            }
        };
        let result = match wish {
            Wish::Open(open) => self.open(&mut channel, open, peer),
            Wish::Join(join) => self.join(&mut channel, join, &nonce, source(peer.ip())).await,
        };
        match result {
            Err(Rejection::Refused(refusal, counter)) => {
                // Whether it hears why or not, it is refused.
                let _ = handshake::refuse(&mut channel, refusal).await;
                Err(Rejection::Refused(refusal, counter))
            }
            Err(failed) => Err(failed),
            Ok(Admitted::Opened(negotiated, permit)) => {
                self.begin(channel, negotiated, permit, source(peer.ip()))?;
                Ok(|counters| &mut counters.opened)
            }
            Ok(Admitted::Joined(session, data)) => {
                let channel = Box::new(channel);
                session.send_event(match data {
                    Some((path, admission)) => Event::Joined(channel, path, admission),
                    None => Event::Control(channel),
                });
                Ok(|counters| &mut counters.joined)
            }
        }
    }

    /// Whether there may be one more session that waits.
    fn takes_more(&self, state: &State) -> Result<(), Rejection> {
        if state.stopping {
            return Err(Rejection::Refused(Refusal::Stopping, |c| &mut c.refused_stopping));
        }
        if state.waiting.len() >= self.config.limits.backlog {
            return Err(Rejection::Refused(Refusal::Limit, |c| &mut c.refused_limit));
        }
        Ok(())
    }

    /// Agrees on a new session.
    fn open(
        &self,
        channel: &mut Channel,
        open: Open,
        peer: SocketAddr,
    ) -> Result<Admitted, Rejection> {
        self.takes_more(&self.state())?;
        let Ok(permit) = self.sessions.take(source(peer.ip())) else {
            return Err(Rejection::Refused(Refusal::Limit, |c| &mut c.refused_limit));
        };
        let most = self.config.limits.connections.try_into().unwrap_or(u16::MAX);
        let negotiated = Negotiated {
            session: SessionId(handshake::random()?),
            secret: Secret(handshake::random()?),
            driver: open.driver,
            connections: open.connections.clamp(1, most.max(1)),
            peer_window: open.window,
            survive: self.config.survive.min(Duration::from_millis(open.survive_ms.into())),
        };
        let welcome = Welcome {
            session: negotiated.session,
            secret: negotiated.secret,
            driver: negotiated.driver,
            connections: negotiated.connections,
            window: (self.config.window_bytes as u64).min(MAX_OFFSET),
            survive_ms: self.config.survive.as_millis().try_into().unwrap_or(u32::MAX),
        };
        let addresses = self.state().addresses.clone();
        handshake::welcome(channel, welcome, addresses)?;
        Ok(Admitted::Opened(negotiated, permit))
    }

    /// Begins a session whose control connection this is.
    fn begin(
        self: &Arc<Self>,
        channel: Channel,
        negotiated: Negotiated,
        permit: Permit,
        source: IpAddr,
    ) -> Result<(), Rejection> {
        let taker = Arc::clone(self);
        let id = negotiated.session;
        let (config, role) = (self.config.clone(), Role::Accepting);
        // The peer may join as soon as it knows the session, so nobody looks for it before it is there.
        let mut state = self.state();
        // Others may have come since it was asked first, or the listener may have been dropped.
        self.takes_more(&state)?;
        let (socket, session) = start(channel, config, negotiated, role, move || taker.ended(id))?;
        let sources = [source].into();
        let entry = Entry {
            secret: negotiated.secret,
            session: Arc::clone(&session),
            sources,
            _held: permit,
        };
        state.table.insert(id, entry);
        state.waiting.push_back(PsockStream::new(socket, session));
        drop(state);
        self.event.write(1).map_err(io::Error::from)?;
        self.arrived.notify_waiters();
        Ok(())
    }

    /// Checks a join.
    async fn join(
        &self,
        channel: &mut Channel,
        join: Join,
        nonce: &[u8; 32],
        source: IpAddr,
    ) -> Result<Admitted, Rejection> {
        let known = {
            let state = self.state();
            state.table.get(&join.session).map(|e| (e.secret, Arc::clone(&e.session)))
        };
        let Some((secret, session)) = known else {
            return Err(Rejection::Refused(Refusal::Session, |c| &mut c.refused_session));
        };
        if !handshake::proves(&join, nonce, &secret) {
            return Err(Rejection::Refused(Refusal::Session, |c| &mut c.refused_proof));
        }
        let data = match join.purpose {
            Purpose::Control => None,
            Purpose::Data => match session.admit(join.path) {
                Some(admission) => Some((join.path, admission)),
                None => return Err(Rejection::Refused(Refusal::Limit, |c| &mut c.refused_limit)),
            },
        };
        handshake::joined(channel).await?;
        if let Some(entry) = self.state().table.get_mut(&join.session) {
            entry.came_from(source);
        }
        Ok(Admitted::Joined(session, data))
    }

    /// Nothing is left of a session.
    fn ended(&self, id: SessionId) {
        let mut state = self.state();
        state.table.remove(&id);
        state.end_if_idle();
    }
}

/// The outcome of a connection.
enum Admitted {
    Opened(Negotiated, Permit),
    /// One for data has a path, and was let in.
    Joined(Arc<Session>, Option<(u16, Admission)>),
}

impl Entry {
    /// A connection that proved to be one of this session came from there.
    fn came_from(&mut self, source: IpAddr) {
        self.sources.retain(|it| *it != source);
        if self.sources.len() >= MOST_SOURCES {
            self.sources.pop_front();
        }
        self.sources.push_back(source);
    }
}

impl State {
    /// Whether connections of a session came from there.
    fn knows(&self, source: IpAddr) -> bool {
        self.table.values().any(|entry| entry.sources.contains(&source))
    }

    fn end_if_idle(&mut self) {
        if self.stopping && self.table.is_empty() {
            for task in self.tasks.drain(..) {
                task.abort();
            }
        }
    }
}
