//! A session: what the application's socket, the connections and the task that manages them share.
//!
//! ```text
//! application <-> socket pair <-> pumps <-> core <-> connections <-> paths
//!                                            |
//!                                    manager <-> control connection
//! ```
//!
//! Each connection, each pump, the control connection and the manager is a task of its own, so that a
//! machine with several processors encrypts several connections at a time. They meet at the core, behind
//! a lock that is held for as long as it takes to copy some blocks.

use crate::{
    Config, ConnectionState, Counters, Path,
    channel::Channel,
    core::{
        ConnectionId, Core, Outcome, Settings, Violation,
        frame::{Secret, SessionId},
    },
    counters::{ConnectionCounters, SessionCounters},
    error::{EndReason, SessionError},
    manager::Manager,
    pump,
    status::Status,
};
use std::{
    io,
    net::SocketAddr,
    os::{fd::AsFd, unix::net::UnixStream as StdUnixStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    net::UnixStream,
    sync::{Notify, mpsc},
};

/// What both ends have agreed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreement {
    pub(crate) session: SessionId,
    pub(crate) secret: Secret,
    pub(crate) driver: crate::DriverName,
    /// Data connections at a time.
    pub(crate) connections: u16,
    /// The peer's reorder memory.
    pub(crate) peer_window: u64,
    /// The shorter of both ends' times.
    pub(crate) survive: Duration,
}

/// What happens to a session.
pub(crate) enum Event {
    /// A data connection of this path has joined (accepting end).
    Joined(Box<Channel>, u16, Admission),
    /// The control connection was made again.
    Control(Box<Channel>),
    /// The session ends with an error, of which the peer is told if it is not from there.
    Fail(SessionError),
    /// Connections came or went, or the core came to an end.
    Changed,
}

/// What the control connection of this number brings; few of them wait at a time, so that the peer's
/// words take no memory.
pub(crate) struct Word(pub(crate) u32, pub(crate) Said);

/// What the peer says on it.
pub(crate) enum Said {
    /// The accepting end has these addresses.
    Announced(Vec<SocketAddr>),
    /// The peer has everything and knows that we have everything.
    Goodbye,
    /// The session ends.
    Fail(SessionError),
    /// Nothing more: the connection is gone.
    Ended,
}

/// A session.
pub(crate) struct Session {
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) status: Status,
    pub(crate) config: Config,
    pub(crate) agreement: Agreement,
    begin: Instant,
    inner: Mutex<Inner>,
    events: mpsc::UnboundedSender<Event>,
    /// The core takes bytes again.
    pub(crate) room: Notify,
    /// The core has bytes for the application.
    pub(crate) arrived: Notify,
}

/// What is behind the lock.
pub(crate) struct Inner {
    pub(crate) core: Core,
    live: Vec<Live>,
    /// Data connections that were let in and do not work yet.
    admitted: usize,
    places: Vec<Place>,
    next_id: u32,
    /// The application has given the session up: that its socket ends then is no end of its stream.
    pub(crate) aborted: bool,
    /// The pump into the core waits for room.
    pub(crate) wants_room: bool,
    /// The pump out of the core waits for bytes.
    pub(crate) wants_bytes: bool,
    /// What the manager was told last.
    outcome: Outcome,
    bytes_given: u64,
    bytes_delivered: u64,
    pub(crate) control: ConnectionState,
    pub(crate) control_returns: u64,
}

/// A connection that works.
struct Live {
    id: ConnectionId,
    place: usize,
    wake: Arc<Wake>,
}

/// How others reach a connection's task.
#[derive(Default)]
pub(crate) struct Wake {
    pub(crate) notify: Notify,
    /// It waits for something to send.
    pub(crate) idle: AtomicBool,
    /// It is to end.
    pub(crate) close: AtomicBool,
}

/// One more data connection may join; given back when dropped before it has.
pub(crate) struct Admission {
    session: Arc<Session>,
    used: bool,
}

impl Drop for Admission {
    fn drop(&mut self) {
        if !self.used {
            self.session.lock().admitted -= 1;
        }
    }
}

/// A data connection that works, for as long as this lives.
pub(crate) struct Entered {
    pub(crate) session: Arc<Session>,
    pub(crate) id: ConnectionId,
    pub(crate) wake: Arc<Wake>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.session.leave(self.id);
    }
}

/// Where a connection is at home: its path, and its number there.
#[derive(Debug)]
struct Place {
    path: u16,
    counters: ConnectionCounters,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Session {
    /// Begins a session on its control connection; returns the application's socket.
    ///
    /// A connecting end has `paths`, over which the manager makes the connections. `over` is called
    /// when nothing of the session is left.
    pub(crate) fn begin(
        control: Channel,
        config: Config,
        agreement: Agreement,
        role: crate::manager::Role,
        over: impl FnOnce() + Send + 'static,
    ) -> io::Result<(StdUnixStream, Arc<Self>)> {
        let (application, ours) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (reader, writer) = UnixStream::from_std(ours)?.into_split();
        let settings = Settings {
            driver: agreement.driver,
            block_bytes: config.block_bytes,
            reorder_bytes: config.window_bytes,
            send_bytes: config.send_bytes,
        };
        let (events, inbox) = mpsc::unbounded_channel();
        let inner = Inner {
            core: Core::new(settings, agreement.peer_window),
            live: Vec::new(),
            admitted: 0,
            places: Vec::new(),
            next_id: 0,
            aborted: false,
            wants_room: false,
            wants_bytes: false,
            outcome: Outcome::Open,
            bytes_given: 0,
            bytes_delivered: 0,
            control: ConnectionState::Connecting,
            control_returns: 0,
        };
        let session = Arc::new(Self {
            peer: control.socket.peer_addr()?,
            local: control.socket.local_addr()?,
            status: Status::default(),
            config,
            agreement,
            begin: Instant::now(),
            inner: Mutex::new(inner),
            events,
            room: Notify::new(),
            arrived: Notify::new(),
        });
        let mut manager = Manager::new(Arc::clone(&session), role);
        manager.tasks.spawn(pump::give(Arc::clone(&session), reader));
        manager.tasks.spawn(pump::take(Arc::clone(&session), writer));
        tokio::spawn(async move {
            manager.run(control, inbox).await;
            over();
        });
        Ok((application, session))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nanoseconds since the session began: the core's clock.
    pub(crate) fn now_ns(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    pub(crate) fn tell(&self, event: Event) {
        // When the manager is gone nobody needs it.
        let _ = self.events.send(event);
    }

    /// Turns the application's socket into something else. Where that fails the session ends with an error
    /// before the socket is closed, for a socket that is only closed is the good end of a stream.
    pub(crate) fn turn<S: AsFd, T>(
        self: &Arc<Self>,
        socket: S,
        turn: impl FnOnce(S) -> io::Result<T>,
    ) -> io::Result<T> {
        let kept = match socket.as_fd().try_clone_to_owned() {
            Ok(kept) => kept,
            Err(error) => {
                self.abort();
                return Err(error);
            }
        };
        let guard = PanicGuard(Arc::clone(self));
        let turned = turn(socket);
        if turned.is_err() {
            self.abort();
        }
        drop(guard);
        drop(kept);
        turned
    }

    /// The application ends the session.
    pub(crate) fn abort(&self) {
        self.lock().aborted = true;
        self.tell(Event::Fail(SessionError::Here(EndReason::Aborted)));
    }

    /// Whether one more data connection of this path may join now. One that is there and must be dead,
    /// because the peer has no more than were agreed on, makes room.
    pub(crate) fn admit(self: &Arc<Self>, path: u16) -> Option<Admission> {
        let mut inner = self.lock();
        let closing = |live: &Live| live.wake.close.load(Ordering::Relaxed);
        let stay = inner.live.iter().filter(|live| !closing(live)).count();
        if stay + inner.admitted >= usize::from(self.agreement.connections) {
            let home = |live: &Live| inner.places.get(live.place).is_some_and(|p| p.path == path);
            let oldest = inner.live.iter().find(|live| home(live) && !closing(live))?;
            oldest.wake.close.store(true, Ordering::Relaxed);
            oldest.wake.notify.notify_one();
        }
        inner.admitted += 1;
        drop(inner);
        Some(Admission { session: Arc::clone(self), used: false })
    }

    /// Makes a place for a connection of the connecting end.
    pub(crate) fn place(&self, path: u16, text: String) -> usize {
        self.lock().place(path, text)
    }

    /// A connection begins to work at its place.
    pub(crate) fn enter(self: &Arc<Self>, place: usize) -> Entered {
        self.enter_at(self.lock(), place)
    }

    /// A connection that was let in begins to work: at a place of its path that nobody has any more, or
    /// else a new one.
    pub(crate) fn join(
        self: &Arc<Self>,
        path: u16,
        text: String,
        mut admission: Admission,
    ) -> Entered {
        let mut inner = self.lock();
        inner.admitted -= 1;
        admission.used = true;
        let dead = |place: &Place| place.counters.state == ConnectionState::Dead;
        let of_path = inner.places.iter().position(|place| dead(place) && place.path == path);
        // The peer chooses the numbers of paths, but not how many are remembered.
        let most = 2 * usize::from(self.agreement.connections);
        let any = || inner.places.iter().position(dead).filter(|_| inner.places.len() >= most);
        let at = of_path.or_else(any);
        let place = match at.and_then(|at| Some((at, inner.places.get_mut(at)?))) {
            Some((at, place)) => {
                (place.path, place.counters.path) = (path, text);
                at
            }
            None => inner.place(path, text),
        };
        self.enter_at(inner, place)
    }

    fn enter_at(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner>, place: usize) -> Entered {
        let id = ConnectionId(inner.next_id);
        inner.next_id += 1;
        inner.core.opened(id, self.now_ns());
        let wake = Arc::<Wake>::default();
        inner.live.push(Live { id, place, wake: Arc::clone(&wake) });
        if let Some(place) = inner.places.get_mut(place) {
            let counters = &mut place.counters;
            counters.returns += u64::from(counters.state == ConnectionState::Dead);
            counters.state = ConnectionState::Open;
        }
        inner.settle(self);
        drop(inner);
        self.tell(Event::Changed);
        Entered { session: Arc::clone(self), id, wake }
    }

    /// A connection does not work any more.
    fn leave(&self, id: ConnectionId) {
        let now_ns = self.now_ns();
        let mut inner = self.lock();
        let Some(at) = inner.live.iter().position(|live| live.id == id) else { return };
        let place = inner.live.remove(at).place;
        let last = inner.core.connection(id);
        inner.core.closed(id, now_ns);
        if let Some(place) = inner.places.get_mut(place) {
            place.counters.state = ConnectionState::Dead;
            place.counters.deaths += 1;
            if let Some((counters, _)) = last {
                place.counters.add(&counters);
            }
        }
        inner.settle(self);
        drop(inner);
        self.tell(Event::Changed);
    }

    /// Data connections that work.
    pub(crate) fn live(&self) -> usize {
        self.lock().live.len()
    }

    pub(crate) fn counters(&self) -> Counters {
        let inner = self.lock();
        let mut connections: Vec<_> =
            inner.places.iter().map(|place| place.counters.clone()).collect();
        for live in &inner.live {
            if let Some(place) = connections.get_mut(live.place)
                && let Some((counters, kernel)) = inner.core.connection(live.id)
            {
                place.add(&counters);
                place.srtt_ns = kernel.srtt_ns;
                place.rate = kernel.delivery_rate;
            }
        }
        let session = SessionCounters {
            driver: self.agreement.driver.to_string(),
            bytes_given: inner.bytes_given,
            bytes_delivered: inner.bytes_delivered,
            control: inner.control,
            control_returns: inner.control_returns,
        };
        Counters { session, connections }
    }
}

impl Inner {
    /// Makes a place.
    fn place(&mut self, path: u16, text: String) -> usize {
        let number = self.places.iter().filter(|place| place.path == path).count() as u16;
        let counters = ConnectionCounters { path: text, number, ..Default::default() };
        self.places.push(Place { path, counters });
        self.places.len() - 1
    }

    /// Tells those who wait for the core that it may have something for them.
    pub(crate) fn settle(&mut self, session: &Session) {
        for live in &self.live {
            if live.wake.idle.swap(false, Ordering::Relaxed) {
                live.wake.notify.notify_one();
            }
        }
        if self.wants_room && self.core.send_room() > 0 {
            self.wants_room = false;
            session.room.notify_one();
        }
        if self.wants_bytes {
            self.wants_bytes = false;
            session.arrived.notify_one();
        }
        if self.core.is_sent() {
            session.status.sent();
        }
        let outcome = self.core.outcome();
        if outcome != self.outcome {
            self.outcome = outcome;
            session.tell(Event::Changed);
        }
    }

    /// How far the core is.
    pub(crate) fn outcome(&self) -> Outcome {
        self.core.outcome()
    }

    /// Bytes from the application.
    pub(crate) fn give(&mut self, bytes: Vec<u8>) {
        self.bytes_given += bytes.len() as u64;
        self.core.push(bytes);
    }

    /// The application's socket has taken so many bytes more.
    pub(crate) fn delivered(&mut self, bytes: usize) {
        self.bytes_delivered += bytes as u64;
        self.core.delivered(bytes);
    }
}

impl ConnectionCounters {
    fn add(&mut self, counters: &crate::core::Counters) {
        self.bytes_sent += counters.sent_bytes;
        self.blocks_sent += counters.sent_blocks;
        self.blocks_again += counters.again_blocks;
        self.bytes_acknowledged += counters.acknowledged_bytes;
        self.bytes_received += counters.received_bytes;
        self.blocks_received += counters.received_blocks;
        self.blocks_duplicate += counters.duplicate_blocks;
    }
}

impl From<Violation> for SessionError {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation.to_string())
    }
}

/// Ends the session when its stream is dropped by a panic: what was written is then not all that was to
/// be written, and must not look so. To be dropped before the application's socket.
#[derive(Debug)]
pub(crate) struct PanicGuard(pub(crate) Arc<Session>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abort();
        }
    }
}

/// The text of a path as the accepting end sees it.
pub(crate) fn path_text(channel: &Channel) -> String {
    let addresses = channel.socket.local_addr().and_then(|local| {
        let remote = channel.socket.peer_addr()?;
        Ok(Path { local: Some(crate::Local::Address(local.ip())), remote })
    });
    addresses.map(|path| path.to_string()).unwrap_or_default()
}
