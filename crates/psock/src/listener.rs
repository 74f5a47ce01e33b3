//! Taking sessions.

use crate::{
    AcceptError, AsyncPsockStream, BindError, Config, ListenerCounters, PsockStream,
    channel::Channel, error::PathError, runtime, security, security::Tls, session::Session, socket,
    tls::Records,
};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::eventfd::{EfdFlags, EventFd},
};
use rustls::ServerConfig;
use socket2::SockRef;
use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::{net::TcpListener, sync::Notify, task::JoinHandle};

/// Takes sessions on all of its addresses; each session is accepted once, whatever the addresses its
/// connections come to.
///
/// Dropping it ends the taking of new sessions; those that are there go on, with their paths.
#[derive(Debug)]
pub struct PsockListener {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
    addresses: Vec<SocketAddr>,
    nonblocking: AtomicBool,
}

#[derive(Debug)]
struct Shared {
    config: Config,
    tls: Tls<ServerConfig>,
    waiting: Mutex<VecDeque<PsockStream>>,
    /// Counts the sessions that wait.
    event: EventFd,
    arrived: Notify,
}

impl PsockListener {
    /// Listens at the addresses; port 0 is one that is free.
    ///
    /// # Errors
    ///
    /// When an address cannot be bound or the configuration cannot be used.
    pub fn bind(addresses: &[SocketAddr], config: &Config) -> Result<Self, BindError> {
        if addresses.is_empty() {
            return Err(BindError::Config("there is no address to listen at"));
        }
        let tls = security::accepting(&config.security)?;
        let runtime = runtime::handle()?;
        let _inside = runtime.enter();
        let flags = EfdFlags::EFD_SEMAPHORE | EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let event = EventFd::from_flags(flags).map_err(io::Error::from)?;
        let (config, waiting) = (config.clone(), Mutex::default());
        let shared = Arc::new(Shared { config, tls, waiting, event, arrived: Notify::new() });
        let mut tasks = Vec::new();
        let mut bound = Vec::new();
        for &address in addresses {
            let error = |source| BindError::Address { address, source };
            let socket = socket::listen(address, shared.config.limits.backlog).map_err(error)?;
            let socket = TcpListener::from_std(socket).map_err(error)?;
            bound.push(socket.local_addr().map_err(error)?);
            tasks.push(runtime.spawn(Arc::clone(&shared).take(socket)));
        }
        Ok(Self { shared, tasks, addresses: bound, nonblocking: AtomicBool::new(false) })
    }

    /// Waits for a session and returns its stream and the peer's address.
    ///
    /// # Errors
    ///
    /// When the listener is set to not wait and no session waits, or waiting fails.
    pub fn accept(&self) -> Result<(PsockStream, SocketAddr), AcceptError> {
        loop {
            if let Some(accepted) = self.shared.next()? {
                return Ok(accepted);
            }
            if self.nonblocking.load(Ordering::Relaxed) {
                return Err(AcceptError::WouldBlock);
            }
            let mut files = [PollFd::new(self.shared.event.as_fd(), PollFlags::POLLIN)];
            match poll(&mut files, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(AcceptError::System(error.into())),
            }
        }
    }

    /// Whether [`PsockListener::accept`] returns [`AcceptError::WouldBlock`] instead of waiting.
    pub fn set_nonblocking(&self, nonblocking: bool) {
        self.nonblocking.store(nonblocking, Ordering::Relaxed);
    }

    /// The addresses it listens at, with the ports that the system chose.
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        self.addresses.clone()
    }

    /// What has been counted so far.
    pub fn counters(&self) -> ListenerCounters {
        ListenerCounters::default()
    }
}

/// Readable while a session waits to be accepted, for poll(2) and the like.
impl AsFd for PsockListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.event.as_fd()
    }
}

impl Drop for PsockListener {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Takes sessions, as [`PsockListener`] does, for tokio.
#[derive(Debug)]
pub struct AsyncPsockListener {
    listener: PsockListener,
}

impl AsyncPsockListener {
    /// Listens at the addresses; port 0 is one that is free.
    ///
    /// # Errors
    ///
    /// When an address cannot be bound or the configuration cannot be used.
    pub async fn bind(addresses: &[SocketAddr], config: &Config) -> Result<Self, BindError> {
        Ok(Self { listener: PsockListener::bind(addresses, config)? })
    }

    /// Waits for a session and returns its stream and the peer's address.
    ///
    /// # Errors
    ///
    /// When waiting fails.
    pub async fn accept(&self) -> Result<(AsyncPsockStream, SocketAddr), AcceptError> {
        loop {
            let arrived = self.listener.shared.arrived.notified();
            if let Some((stream, peer)) = self.listener.shared.next()? {
                return Ok((stream.into_async()?, peer));
            }
            arrived.await;
        }
    }

    /// The addresses it listens at, with the ports that the system chose.
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        self.listener.local_addresses()
    }

    /// What has been counted so far.
    pub fn counters(&self) -> ListenerCounters {
        self.listener.counters()
    }
}

impl Shared {
    /// The next session that waits.
    fn next(&self) -> Result<Option<(PsockStream, SocketAddr)>, AcceptError> {
        match self.event.read() {
            Ok(_) => {}
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(error) => return Err(AcceptError::System(error.into())),
        }
        let stream = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Ok(stream.map(|stream| {
            let peer = stream.peer();
            (stream, peer)
        }))
    }

    /// Takes connections of one address.
    async fn take(self: Arc<Self>, listener: TcpListener) {
        loop {
            let Ok((socket, _)) = listener.accept().await else { continue };
            let shared = Arc::clone(&self);
            tokio::spawn(async move {
                if let Err(error) = shared.open(socket).await {
                    tracing::debug!("a connection was refused: {error}");
                }
            });
        }
    }

    async fn open(&self, socket: tokio::net::TcpStream) -> Result<(), PathError> {
        socket::tune(SockRef::from(&socket), &self.config)?;
        let mut channel = Channel::new(socket, Records::accepting(&self.tls)?);
        channel.handshake().await?;
        if let Tls::On { name: Some(name), .. } = &self.tls {
            channel.records().peer_is(name)?;
        }
        let (socket, session) = Session::begin(channel)?;
        let stream = PsockStream::new(socket, session);
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(stream);
        self.event.write(1).map_err(io::Error::from)?;
        self.arrived.notify_waiters();
        Ok(())
    }
}
