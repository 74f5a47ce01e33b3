//! The measuring shell: one thread runs all sessions of a station, as sender and as reflector.
//!
//! ```text
//!   commands ──▶ ┌──────────────────────── thread "delay" ────────────────────────┐
//!                │ sender's socket ◀──▶ sessions ◀── timer wheel                  │──▶ events
//!                │ reflector's socket ◀──▶ sessions (and the driver's reflector) │
//!                └─────────────────────────────────────────────────────────────────┘
//! ```
//!
//! As the kernel stamps, nothing has to be done at once: when the thread wakes, it does all that has
//! gathered, with one system call for up to 64 packets, and then lets [`Config::gather`] pass before it
//! looks again. So a hundred sessions cost little more wake-ups than one. What this adds to a reply's path
//! is in no delay, for the reflector reports how long it had the packet.
//!
//! Test packets go only to addresses that were permitted, and replies only to senders that were agreed on.

mod driver;
mod report;
mod sending;
mod turn;
mod wheel;

pub use report::Report;

use crate::{
    interval::MaximumError,
    stamp::{
        Refusals,
        reflector::{SessionConfig, SessionKey},
        sender::{Event, Settings},
    },
};
use datapath::{stamp::StampProgram, stamping::StampedSocket};
use job::{Pulse, pulse::Beat};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Sender as Queue},
    },
    thread::JoinHandle,
    time::Duration,
};
use tokio::sync::oneshot;

/// How long packets gather by default.
pub const GATHER: Duration = Duration::from_millis(1);

/// What the shell needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where test packets are sent from; port 0 for any.
    pub sender: SocketAddr,
    /// Where test packets are reflected, if anywhere.
    pub reflector: Option<SocketAddr>,
    /// How long packets may gather before they are read.
    pub gather: Duration,
    /// Bytes of each socket's room for packets that gather.
    pub receive_buffer: usize,
    /// The reflector in the driver, if there is one. Who starts this attaches it and gives it its
    /// addresses. Sessions that it can reflect are given to it, and its clock is kept right: see
    /// [`Config::driver_keeps`].
    pub driver: Option<Arc<StampProgram>>,
}

impl Config {
    /// Whether the driver's reflector can keep a session: one without key and extensions, of a session
    /// with an SSID (or zero), from any port.
    pub fn driver_keeps(config: &SessionConfig) -> bool {
        let SessionConfig { port, ssid, key, extensions, .. } = config;
        port.is_none() && ssid.is_some() && key.is_none() && !extensions
    }
}

impl Default for Config {
    fn default() -> Self {
        let any = |port| SocketAddr::new(std::net::Ipv6Addr::UNSPECIFIED.into(), port);
        Self {
            sender: any(0),
            reflector: Some(any(crate::stamp::PORT)),
            gather: GATHER,
            receive_buffer: 1 << 20,
            driver: None,
        }
    }
}

/// The shell could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A socket could not be opened.
    #[error("cannot open a socket at {address}: {source}{}", hint(source))]
    Bind {
        /// Where.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The thread could not be started.
    #[error("cannot start the thread of delay sessions: {0}")]
    Thread(io::Error),
}

/// What to do about the usual reasons.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; ports below 1024 need the capability NET_BIND_SERVICE"
        }
        io::ErrorKind::AddrInUse => "; another program uses this port",
        _ => "",
    }
}

/// A session to measure.
#[derive(Clone, Debug)]
pub struct Session {
    /// The reflector; it must be permitted.
    pub to: SocketAddr,
    /// Which of this machine's addresses packets come from; without, the kernel chooses.
    pub from: Option<IpAddr>,
    /// From one packet to the next.
    pub interval: Duration,
    /// From now to the first packet: by chance, so that sessions do not fall together (RFC 3432).
    pub phase: Duration,
    /// How many packets; without, until it is closed.
    pub count: Option<u32>,
    /// What is sent, and what reflects.
    pub settings: Settings,
}

/// The number of a session, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// What the shell reports of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum News {
    /// Something happened to a packet.
    Packet(Event),
    /// The time for so many packets passed before they could be sent.
    Missed(u64),
    /// The kernel did not take a packet; it counts as sent and lost.
    NotSent,
    /// All is reported.
    Ended,
    /// It was not begun: the address is not permitted.
    NotPermitted,
    /// It was not begun: a session to this address has this SSID.
    SsidInUse,
}

/// What the shell has, and what it counted since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sessions that run, those being settled too.
    pub sessions: u64,
    /// Sessions that are reflected, those of the driver too.
    pub reflector_sessions: u64,
    /// Test packets that the kernel took.
    pub sent: u64,
    /// Test packets that the kernel did not take.
    pub not_sent: u64,
    /// Packets whose time passed before they could be sent.
    pub missed: u64,
    /// Packets that the sender received's socket.
    pub received: u64,
    /// Of these, those refused by the sessions that they came to, or that came to none.
    pub refused: Refusals,
    /// Packets reflected; the kernel took the replies.
    pub reflected: u64,
    /// Replies that the kernel did not take.
    pub not_reflected: u64,
    /// Packets that the reflector refused.
    pub reflector_refused: Refusals,
    /// Errors of the sockets themselves, such as a neighbour's that is reported late.
    pub socket_errors: u64,
}

/// Orders to the thread.
enum Command {
    Permit(SocketAddr),
    Forbid(SocketAddr),
    Open(SessionId, Box<Session>),
    Close(SessionId),
    Admit(Box<SessionConfig>, oneshot::Sender<()>),
    Remove(SessionKey),
    Stop,
}

/// The running shell; dropping it stops the thread.
#[derive(Debug)]
pub struct Delays {
    commands: Queue<Command>,
    wake: Arc<EventFd>,
    counters: Arc<Mutex<Counters>>,
    next: Mutex<u64>,
    sender: SocketAddr,
    reflector: Option<SocketAddr>,
    thread: Option<JoinHandle<()>>,
}

/// Open sockets without a thread yet: a thread that starts before rights are given up keeps them.
#[derive(Debug)]
pub struct Opened {
    config: Config,
    sender: StampedSocket,
    reflector: Option<StampedSocket>,
    beat: Beat,
}

impl Opened {
    /// Opens the sockets in the calling thread's network namespace.
    ///
    /// # Errors
    /// When a socket is not available.
    pub fn open(config: &Config) -> Result<Self, StartError> {
        let bind = |address: SocketAddr| {
            let open = || {
                let socket = StampedSocket::bind(address)?;
                socket.set_receive_buffer(config.receive_buffer)?;
                Ok(socket)
            };
            open().map_err(|source| StartError::Bind { address, source })
        };
        let sender = bind(config.sender)?;
        let reflector = config.reflector.map(bind).transpose()?;
        if let Some(socket) = &reflector {
            socket
                .report_headers()
                .map_err(|source| StartError::Bind { address: socket.local_address(), source })?;
        }
        Ok(Self { config: config.clone(), sender, reflector, beat: Pulse::default().beat("delay") })
    }

    /// With this beat of the thread.
    #[must_use]
    pub fn watch(self, beat: Beat) -> Self {
        Self { beat, ..self }
    }

    /// Starts the thread; see [`Delays::start`].
    ///
    /// # Errors
    /// When the thread is not available.
    pub fn start(
        self,
        error: impl Fn(u64) -> MaximumError + Send + 'static,
        report: impl FnMut(SessionId, News) + Send + 'static,
    ) -> Result<Delays, StartError> {
        let Self { config, sender, reflector, beat } = self;
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let wake = EventFd::from_value_and_flags(0, flags)
            .map_err(|error| StartError::Thread(error.into()))?;
        let (wake, counters) = (Arc::new(wake), Arc::new(Mutex::new(Counters::default())));
        let (commands, orders) = mpsc::channel();
        let addresses =
            (sender.local_address(), reflector.as_ref().map(StampedSocket::local_address));
        let sockets = turn::Sockets { sender, reflector, wake: Arc::clone(&wake) };
        let station = turn::Station::new(&config, sockets, Arc::clone(&counters), error, report);
        let thread = panics::thread("delay", move || station.run(&orders, &beat))
            .map_err(StartError::Thread)?;
        Ok(Delays {
            commands,
            wake,
            counters,
            next: Mutex::new(0),
            sender: addresses.0,
            reflector: addresses.1,
            thread: Some(thread),
        })
    }
}

impl Delays {
    /// Opens the sockets in the calling thread's network namespace and starts the thread. `error` says how
    /// far this machine's clock was off at a time that it read, and since, or will be until one to come (see
    /// [`Clock::error_of`](crate::clock::Clock::error_of)); `tell` gets the events, on the thread, so it must not
    /// wait.
    ///
    /// # Errors
    /// When a socket or the thread is not available.
    pub fn start(
        config: &Config,
        error: impl Fn(u64) -> MaximumError + Send + 'static,
        report: impl FnMut(SessionId, News) + Send + 'static,
    ) -> Result<Self, StartError> {
        Opened::open(config)?.start(error, report)
    }

    /// Where test packets are sent from.
    pub fn sender_address(&self) -> SocketAddr {
        self.sender
    }

    /// Where test packets are reflected.
    pub fn reflector_address(&self) -> Option<SocketAddr> {
        self.reflector
    }

    /// Lets sessions send to an address: whoever is there has agreed.
    pub fn permit(&self, to: SocketAddr) {
        self.order(Command::Permit(to));
    }

    /// Ends that, and closes all sessions to the address at once.
    pub fn forbid(&self, to: SocketAddr) {
        self.order(Command::Forbid(to));
    }

    /// Begins a session; its events are reported.
    pub fn open(&self, session: Session) -> SessionId {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let id = SessionId(*next);
        *next += 1;
        self.order(Command::Open(id, Box::new(session)));
        id
    }

    /// Sends no more packets of a session; when those in flight are settled, its end is reported.
    pub fn close(&self, session: SessionId) {
        self.order(Command::Close(session));
    }

    /// Reflects packets of a sender, from when the result is ready.
    #[must_use]
    pub fn admit(&self, config: SessionConfig) -> oneshot::Receiver<()> {
        let (done, admitted) = oneshot::channel();
        self.order(Command::Admit(Box::new(config), done));
        admitted
    }

    /// No longer.
    pub fn remove(&self, session: SessionKey) {
        self.order(Command::Remove(session));
    }

    /// What was counted until the thread last went to wait.
    pub fn counters(&self) -> Counters {
        *self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all sessions and closes the sockets, soon after this returns.
    pub fn stop(&self) {
        self.order(Command::Stop);
    }

    fn order(&self, command: Command) {
        // A thread that has ended has no use for it.
        let _ = self.commands.send(command);
        let _ = self.wake.write(1);
    }
}

impl Drop for Delays {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
