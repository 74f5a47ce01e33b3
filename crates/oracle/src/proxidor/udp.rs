//! Proxidor over UDP sockets: one pinned thread for each core, one socket for each thread and address.
//!
//! All sockets of an address share its port (SO_REUSEPORT); the kernel gives each client's datagrams
//! to one of them. A thread takes what is there in batches, loads the pointers to tables and settings
//! once for each, and sends the replies in one call. It sleeps only when all of its sockets are
//! empty. Replies leave from the address that was asked, also where a socket listens on all of them.
//!
//! Counters are exact: a batch is counted as a whole when its replies are sent, so that whenever they
//! are read, what was received is what was answered, dropped, or could not be sent.

use std::{
    io::{self, PipeReader, PipeWriter},
    mem,
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use datapath::mmsg::{BATCH, Exchange};
use job::{Pulse, pulse::Beat};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    sys::socket::{
        setsockopt,
        sockopt::{Ipv4PacketInfo, Ipv6RecvPacketInfo, RcvBufForce, SndBufForce},
    },
    unistd::Pid,
};
use socket2::{Domain, Protocol, Socket, Type};
use tracing::warn;

use super::{MAX_REQUEST, Outcome, Rcode, Reason, Server, Settings};
use crate::tables::Tables;

/// Bytes that are read of a datagram: more than a request may have, so that a longer one is seen to
/// be longer.
const READ: usize = 1536;
const _: () = assert!(READ > MAX_REQUEST);
/// Bytes of a socket's buffers, before the kernel doubles them for its own needs.
const BUFFER: usize = 4 << 20;
/// Most batches of one socket that are answered after the request to stop.
const LAST_BATCHES: usize = 1024;

/// Where to listen, and with how many threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Addresses and ports. Port 0 is any that is free.
    pub addresses: Vec<SocketAddr>,
    /// How many threads; 0 is one for each core that the process may use.
    pub threads: usize,
}

/// A socket could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("listening on UDP {address}: {source}{}", hint(source))]
pub struct BindError {
    /// Where.
    pub address: SocketAddr,
    source: io::Error,
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; another process listens there: stop it or choose another port"
        }
        io::ErrorKind::AddrNotAvailable => "; no interface of this machine has the address",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need CAP_NET_BIND_SERVICE",
        _ => "",
    }
}

/// Threads could not be started.
#[derive(Debug, thiserror::Error)]
#[error("starting the threads that answer Proxidor: {0}")]
pub struct StartError(#[from] io::Error);

/// Sockets that are bound but not read yet.
#[derive(Debug)]
pub struct Sockets {
    /// For each thread its sockets, one for each address.
    threads: Vec<Vec<Socket>>,
    addresses: Vec<SocketAddr>,
    cores: Vec<usize>,
}

impl Sockets {
    /// Binds the sockets of all threads. They share a port with those of `held`, at which this process answers
    /// already, and with no other process.
    ///
    /// # Errors
    /// When the kernel refuses one; the others are closed.
    pub fn bind(listen: &Listen, held: &[SocketAddr]) -> Result<Self, BindError> {
        let cores = cores();
        let count = if listen.threads == 0 { cores.len().max(1) } else { listen.threads };
        let mut threads: Vec<Vec<Socket>> = (0..count).map(|_| Vec::new()).collect();
        let mut addresses = Vec::new();
        for &address in &listen.addresses {
            let failed = |source| BindError { address, source };
            // The first socket may choose the port; the others take the same.
            let mut bound = address;
            let mut alone = !held.iter().any(|held| overlap(*held, address));
            for sockets in &mut threads {
                let socket = open(bound, mem::take(&mut alone)).map_err(failed)?;
                let local = socket.local_addr().map_err(failed)?;
                bound = local.as_socket().unwrap_or(bound);
                sockets.push(socket);
            }
            addresses.push(bound);
        }
        Ok(Self { threads, addresses, cores })
    }

    /// Where they listen, with the ports that were chosen.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// All sockets, for filters to be attached to them.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.threads.iter().flatten().map(Socket::as_fd)
    }

    /// Starts the threads. They answer from the tables and settings that are there when a batch
    /// comes.
    ///
    /// # Errors
    /// When the kernel gives no thread or no event descriptor; then none runs.
    pub fn start(
        self,
        tables: &Arc<ArcSwapOption<Tables>>,
        settings: &Arc<ArcSwap<Settings>>,
        pulse: &Pulse,
    ) -> Result<Workers, StartError> {
        let Self { threads, addresses, cores } = self;
        let (wake, waker) = io::pipe()?;
        let wake = Arc::new(wake);
        let mut workers = Workers {
            threads: Vec::new(),
            counters: Vec::new(),
            stop: Arc::new(AtomicBool::new(false)),
            waker: Some(waker),
            addresses,
            cores,
        };
        for (number, sockets) in threads.into_iter().enumerate() {
            let counters = Arc::new(Mutex::new(Counters::default()));
            let worker = Worker {
                sockets,
                core: core_of(&workers.cores, number),
                tables: Arc::clone(tables),
                settings: Arc::clone(settings),
                counters: Arc::clone(&counters),
                stop: Arc::clone(&workers.stop),
                wake: Arc::clone(&wake),
                beat: pulse.beat("udp"),
            };
            // Dropping the workers on return stops those that run.
            let thread = panics::thread(format!("oracle-udp-{number}"), move || worker.run())?;
            workers.threads.push(thread);
            workers.counters.push(counters);
        }
        Ok(workers)
    }
}

/// The cores that the process may use.
fn cores() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|&core| set.is_set(core).unwrap_or(false)).collect()
}

/// The core on which a thread is to run.
fn core_of(cores: &[usize], number: usize) -> Option<usize> {
    cores.get(number % cores.len().max(1)).copied()
}

/// Whether sockets at both would get the same datagrams.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    let any = a.ip().is_unspecified() || b.ip().is_unspecified();
    a.port() == b.port() && a.is_ipv4() == b.is_ipv4() && (any || a.ip() == b.ip())
}

/// The first socket of an address is bound alone, so that another process that answers there is noticed; then it
/// shares the port.
fn open(address: SocketAddr, alone: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_port(!alone)?;
    if address.is_ipv6() {
        // So that 0.0.0.0 and :: can be listened on side by side.
        socket.set_only_v6(true)?;
    }
    if address.ip().is_unspecified() {
        match address {
            SocketAddr::V4(_) => setsockopt(&socket, Ipv4PacketInfo, &true)?,
            SocketAddr::V6(_) => setsockopt(&socket, Ipv6RecvPacketInfo, &true)?,
        }
    }
    // Beyond the limit of the system only for the administrator; others get what the limit allows.
    setsockopt(&socket, RcvBufForce, &BUFFER)
        .or_else(|_| socket.set_recv_buffer_size(BUFFER).map_err(|_| Errno::EPERM))?;
    setsockopt(&socket, SndBufForce, &BUFFER)
        .or_else(|_| socket.set_send_buffer_size(BUFFER).map_err(|_| Errno::EPERM))?;
    socket.bind(&address.into())?;
    socket.set_reuse_port(true)?;
    Ok(socket)
}

/// Counts of all datagrams, by their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams that were read.
    pub received: u64,
    /// Replies that were sent, by their code.
    pub replied: [u64; Rcode::ALL.len()],
    /// Datagrams that were not answered, by reason, in the order of [`Reason::ALL`].
    pub dropped: [u64; Reason::ALL.len()],
    /// Replies that the kernel did not take.
    pub unsent: u64,
}

impl Counters {
    fn count(&mut self, outcome: Outcome) {
        let counter = match outcome {
            Outcome::Reply(rcode) => self.replied.get_mut(usize::from(rcode.0)),
            Outcome::Drop(reason) => self.dropped.get_mut(reason as usize),
        };
        if let Some(counter) = counter {
            *counter += 1;
        }
    }

    /// Adds what another thread has counted.
    pub fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.unsent += other.unsent;
        for (sum, more) in self.replied.iter_mut().zip(other.replied) {
            *sum += more;
        }
        for (sum, more) in self.dropped.iter_mut().zip(other.dropped) {
            *sum += more;
        }
    }

    /// What was counted since `earlier`, a copy of the same counters.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = *self;
        since.received -= earlier.received;
        since.unsent -= earlier.unsent;
        for (count, before) in since.replied.iter_mut().zip(earlier.replied) {
            *count -= before;
        }
        for (count, before) in since.dropped.iter_mut().zip(earlier.dropped) {
            *count -= before;
        }
        since
    }

    /// Replies with this code.
    pub fn replies(&self, rcode: Rcode) -> u64 {
        self.replied.get(usize::from(rcode.0)).copied().unwrap_or(0)
    }

    /// Datagrams dropped for this reason.
    pub fn drops(&self, reason: Reason) -> u64 {
        self.dropped.get(reason as usize).copied().unwrap_or(0)
    }
}

/// The running threads. Dropping it stops them.
#[derive(Debug)]
pub struct Workers {
    threads: Vec<JoinHandle<()>>,
    counters: Vec<Arc<Mutex<Counters>>>,
    stop: Arc<AtomicBool>,
    /// Nothing is written: closing it wakes all threads.
    waker: Option<PipeWriter>,
    addresses: Vec<SocketAddr>,
    cores: Vec<usize>,
}

impl Workers {
    /// Where they listen.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.counters.len()
    }

    /// The core of each thread and what it has counted since it was started.
    pub fn each(&self) -> impl Iterator<Item = (Option<usize>, Counters)> {
        self.counters.iter().enumerate().map(|(number, counters)| {
            let counters = counters.lock().unwrap_or_else(PoisonError::into_inner);
            (core_of(&self.cores, number), *counters)
        })
    }

    /// The sum over all threads since they were started.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        for (_, counters) in self.each() {
            sum.add(&counters);
        }
        sum
    }

    /// Answers what has arrived, stops the threads, waits for them and gives the last counters.
    pub fn stop(mut self) -> Counters {
        self.end();
        self.counters()
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.waker = None;
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                warn!("a thread that answers Proxidor has panicked");
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.end();
    }
}

/// One thread.
struct Worker {
    sockets: Vec<Socket>,
    core: Option<usize>,
    tables: Arc<ArcSwapOption<Tables>>,
    settings: Arc<ArcSwap<Settings>>,
    counters: Arc<Mutex<Counters>>,
    stop: Arc<AtomicBool>,
    wake: Arc<PipeReader>,
    beat: Beat,
}

/// The state with which a thread answers.
struct Answering {
    exchange: Exchange,
    server: Server,
    outcomes: [Option<Outcome>; BATCH],
    /// Whether it was logged that replies cannot be sent.
    send_error_logged: bool,
}

impl Worker {
    fn run(self) {
        if let Some(core) = self.core {
            let mut set = CpuSet::new();
            let pinned = set.set(core).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
            if let Err(error) = pinned {
                warn!(core, %error, "a thread that answers Proxidor is not bound to its core");
            }
        }
        let mut answering = Answering {
            exchange: Exchange::new(READ),
            server: Server::new(self.settings.load_full()),
            outcomes: [None; BATCH],
            send_error_logged: false,
        };
        while !self.stop.load(Ordering::Relaxed) {
            self.beat.beat();
            let mut idle = true;
            for socket in &self.sockets {
                idle &= self.batch(socket, &mut answering) == 0;
            }
            if idle && let Err(error) = self.beat.idle(|| self.wait()) {
                warn!(%error, "waiting for Proxidor requests failed: a thread ends");
                break;
            }
        }
        for socket in &self.sockets {
            for _ in 0..LAST_BATCHES {
                if self.batch(socket, &mut answering) == 0 {
                    break;
                }
            }
        }
    }

    /// Waits until a socket can be read or the thread is to stop.
    fn wait(&self) -> nix::Result<()> {
        let mut fds: Vec<_> = [self.wake.as_fd()]
            .into_iter()
            .chain(self.sockets.iter().map(Socket::as_fd))
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Answers what a socket has, up to a batch, and returns how many datagrams that was.
    fn batch(&self, socket: &Socket, answering: &mut Answering) -> usize {
        let received = match answering.exchange.receive(socket.as_fd()) {
            Ok(received) => received,
            // Nothing there; or an error that a sent reply came back with, which reading it clears.
            Err(_) => return 0,
        };
        panics::point("oracle-udp");
        answering.server.set_settings(&self.settings.load());
        let tables = self.tables.load();
        answering.outcomes.fill(None);
        answering.exchange.answer(|slot, request, from, reply| {
            let outcome = answering.server.answer(request, from, tables.as_deref(), reply);
            if let Some(entry) = answering.outcomes.get_mut(slot) {
                *entry = Some(outcome);
            }
        });
        let mut counts = Counters { received: received as u64, ..Counters::default() };
        // Held while replies leave, so that whoever has a reply finds it counted.
        let mut counted = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        answering.exchange.send(socket.as_fd(), |slot, error| {
            counts.unsent += 1;
            if let Some(entry) = answering.outcomes.get_mut(slot) {
                *entry = None;
            }
            if !answering.send_error_logged {
                answering.send_error_logged = true;
                warn!(%error, "a Proxidor reply could not be sent; further ones are only counted");
            }
        });
        for outcome in answering.outcomes.iter().flatten() {
            counts.count(*outcome);
        }
        counted.add(&counts);
        received
    }
}
