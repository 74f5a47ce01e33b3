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
    status::Status,
};
use std::{
    io,
    net::SocketAddr,
    os::fd::AsFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{Notify, mpsc};

/// The parameters that both ends have negotiated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Negotiated {
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
    /// The session ends with an error, which the peer gets if it did not send it.
    Fail(SessionError),
    /// Connections came or went, or the core came to an end.
    Changed,
}

/// What the control connection of this number brings; few of them wait at a time, so that a
/// peer cannot fill memory.
pub(crate) struct ControlMessage(pub(crate) u32, pub(crate) PeerMessage);

/// What the peer sends on it.
pub(crate) enum PeerMessage {
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
    pub(crate) negotiated: Negotiated,
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
    slots: Vec<Slot>,
    next_id: u32,
    /// The application has given the session up: that its socket ends then is no end of its stream.
    pub(crate) aborted: bool,
    /// The pump into the core waits for room.
    pub(crate) wants_room: bool,
    /// The pump out of the core waits for bytes.
    pub(crate) wants_bytes: bool,
    /// The outcome that the manager knows.
    outcome: Outcome,
    bytes_given: u64,
    bytes_delivered: u64,
    pub(crate) control: ConnectionState,
    pub(crate) control_recoveries: u64,
}

/// A connection that works.
struct Live {
    id: ConnectionId,
    slot: usize,
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

/// The slot of a connection: its path, and its number there.
#[derive(Debug)]
struct Slot {
    path: u16,
    counters: ConnectionCounters,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Session {
    /// A session on its control connection, and the events that its manager takes.
    pub(crate) fn new(
        control: &Channel,
        config: Config,
        negotiated: Negotiated,
    ) -> io::Result<(Arc<Self>, mpsc::UnboundedReceiver<Event>)> {
        let settings = Settings {
            driver: negotiated.driver,
            block_bytes: config.block_bytes,
            reorder_bytes: config.window_bytes,
            send_bytes: config.send_bytes,
        };
        let (events, inbox) = mpsc::unbounded_channel();
        let inner = Inner {
            core: Core::new(settings, negotiated.peer_window),
            live: Vec::new(),
            admitted: 0,
            slots: Vec::new(),
            next_id: 0,
            aborted: false,
            wants_room: false,
            wants_bytes: false,
            outcome: Outcome::Open,
            bytes_given: 0,
            bytes_delivered: 0,
            control: ConnectionState::Connecting,
            control_recoveries: 0,
        };
        let session = Arc::new(Self {
            peer: control.socket.peer_addr()?,
            local: control.socket.local_addr()?,
            status: Status::default(),
            config,
            negotiated,
            begin: Instant::now(),
            inner: Mutex::new(inner),
            events,
            room: Notify::new(),
            arrived: Notify::new(),
        });
        Ok((session, inbox))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nanoseconds since the session began: the core's clock.
    pub(crate) fn now_ns(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    pub(crate) fn send_event(&self, event: Event) {
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
        self.send_event(Event::Fail(SessionError::Here(EndReason::Aborted)));
    }

    /// Whether one more data connection of this path may join now. One that is there and must be dead,
    /// because the peer has no more than were agreed on, makes room.
    pub(crate) fn admit(self: &Arc<Self>, path: u16) -> Option<Admission> {
        let mut inner = self.lock();
        let closing = |live: &Live| live.wake.close.load(Ordering::Relaxed);
        let stay = inner.live.iter().filter(|live| !closing(live)).count();
        if stay + inner.admitted >= usize::from(self.negotiated.connections) {
            let home = |live: &Live| inner.slots.get(live.slot).is_some_and(|p| p.path == path);
            let oldest = inner.live.iter().find(|live| home(live) && !closing(live))?;
            oldest.wake.close.store(true, Ordering::Relaxed);
            oldest.wake.notify.notify_one();
        }
        inner.admitted += 1;
        drop(inner);
        Some(Admission { session: Arc::clone(self), used: false })
    }

    /// Makes a slot for a connection of the connecting end.
    pub(crate) fn slot(&self, path: u16, text: String) -> usize {
        self.lock().slot(path, text)
    }

    /// A connection begins to work at its slot.
    pub(crate) fn enter(self: &Arc<Self>, slot: usize) -> Entered {
        self.enter_at(self.lock(), slot)
    }

    /// A connection that was let in begins to work: at a slot of its path that nobody has any more, or
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
        let dead = |slot: &Slot| slot.counters.state == ConnectionState::Dead;
        let of_path = inner.slots.iter().position(|slot| dead(slot) && slot.path == path);
        // The peer chooses the numbers of paths, but not how many are remembered.
        let most = 2 * usize::from(self.negotiated.connections);
        let any = || inner.slots.iter().position(dead).filter(|_| inner.slots.len() >= most);
        let at = of_path.or_else(any);
        let slot = match at.and_then(|at| Some((at, inner.slots.get_mut(at)?))) {
            Some((at, slot)) => {
                (slot.path, slot.counters.path) = (path, text);
                at
            }
            None => inner.slot(path, text),
        };
        self.enter_at(inner, slot)
    }

    fn enter_at(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner>, slot: usize) -> Entered {
        let id = ConnectionId(inner.next_id);
        inner.next_id += 1;
        inner.core.opened(id, self.now_ns());
        let wake = Arc::<Wake>::default();
        inner.live.push(Live { id, slot, wake: Arc::clone(&wake) });
        if let Some(slot) = inner.slots.get_mut(slot) {
            let counters = &mut slot.counters;
            counters.recoveries += u64::from(counters.state == ConnectionState::Dead);
            counters.state = ConnectionState::Open;
        }
        inner.settle(self);
        drop(inner);
        self.send_event(Event::Changed);
        Entered { session: Arc::clone(self), id, wake }
    }

    /// A connection does not work any more.
    fn leave(&self, id: ConnectionId) {
        let now_ns = self.now_ns();
        let mut inner = self.lock();
        let Some(at) = inner.live.iter().position(|live| live.id == id) else { return };
        let slot = inner.live.remove(at).slot;
        let last = inner.core.connection(id);
        inner.core.closed(id, now_ns);
        if let Some(slot) = inner.slots.get_mut(slot) {
            slot.counters.state = ConnectionState::Dead;
            slot.counters.failures += 1;
            if let Some((counters, _)) = last {
                slot.counters.add(&counters);
            }
        }
        inner.settle(self);
        drop(inner);
        self.send_event(Event::Changed);
    }

    /// Data connections that work.
    pub(crate) fn live(&self) -> usize {
        self.lock().live.len()
    }

    pub(crate) fn counters(&self) -> Counters {
        let inner = self.lock();
        let mut connections: Vec<_> =
            inner.slots.iter().map(|slot| slot.counters.clone()).collect();
        for live in &inner.live {
            if let Some(slot) = connections.get_mut(live.slot)
                && let Some((counters, kernel)) = inner.core.connection(live.id)
            {
                slot.add(&counters);
                slot.srtt_ns = kernel.srtt_ns;
                slot.rate = kernel.delivery_rate;
            }
        }
        let session = SessionCounters {
            driver: self.negotiated.driver.to_string(),
            bytes_given: inner.bytes_given,
            bytes_delivered: inner.bytes_delivered,
            control: inner.control,
            control_recoveries: inner.control_recoveries,
        };
        Counters { session, connections }
    }
}

impl Inner {
    /// Makes a slot.
    fn slot(&mut self, path: u16, text: String) -> usize {
        let number = self.slots.iter().filter(|slot| slot.path == path).count() as u16;
        let counters = ConnectionCounters { path: text, number, ..Default::default() };
        self.slots.push(Slot { path, counters });
        self.slots.len() - 1
    }

    /// Wakes the tasks that wait for the core.
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
            session.send_event(Event::Changed);
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
        self.blocks_retransmitted += counters.retransmitted_blocks;
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
