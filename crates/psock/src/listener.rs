//! Taking sessions.

mod places;
mod take;

use crate::{
    AcceptError, AsyncPsockStream, BindError, Config, Endpoint, ListenerCounters, PsockStream,
    runtime, security, socket,
};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
use std::{
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use take::{OnRefused, Taker};
use tokio::net::TcpListener;

/// Takes sessions on all of its addresses; each session is accepted once, whatever the addresses its
/// connections come to.
///
/// Dropping it ends the taking of new sessions; those that are there go on with all their paths, and
/// the addresses are free again when the last of them has ended.
#[derive(Debug)]
pub struct PsockListener {
    taker: Arc<Taker>,
    addresses: Vec<SocketAddr>,
    nonblocking: AtomicBool,
}

impl PsockListener {
    /// Listens at addresses, or at [`Endpoint`]s: addresses for what comes in through an interface.
    ///
    /// # Errors
    ///
    /// When an endpoint cannot be bound or the configuration cannot be used.
    pub fn bind<P: Clone + Into<Endpoint>>(
        endpoints: &[P],
        config: &Config,
    ) -> Result<Self, BindError> {
        config.check().map_err(BindError::Config)?;
        if endpoints.is_empty() {
            return Err(BindError::Config("there is no address to listen at"));
        }
        let tls = security::accepting(&config.security)?;
        let runtime = runtime::handle()?;
        let _inside = runtime.enter();
        let taker = Arc::new(Taker::new(config.clone(), tls)?);
        let mut bound = Vec::new();
        let mut sockets = Vec::new();
        for endpoint in endpoints {
            let endpoint: Endpoint = endpoint.clone().into();
            let error = |source| BindError::Address { endpoint: endpoint.clone(), source };
            let socket = socket::listen(&endpoint, config).map_err(error)?;
            let socket = TcpListener::from_std(socket).map_err(error)?;
            bound.push(socket.local_addr().map_err(error)?);
            sockets.push(socket);
        }
        for socket in sockets {
            taker.listen(socket);
        }
        Ok(Self { taker, addresses: bound, nonblocking: AtomicBool::new(false) })
    }

    /// Waits for a session and returns its stream and the peer's address.
    ///
    /// # Errors
    ///
    /// When the listener is set to not wait and no session waits, or waiting fails.
    pub fn accept(&self) -> Result<(PsockStream, SocketAddr), AcceptError> {
        loop {
            if let Some(accepted) = self.taker.next()? {
                return Ok(accepted);
            }
            if self.nonblocking.load(Ordering::Relaxed) {
                return Err(AcceptError::WouldBlock);
            }
            let mut files = [PollFd::new(self.as_fd(), PollFlags::POLLIN)];
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

    /// Calls `report` with the source of each connection that is refused and why, on one of the
    /// protocol's threads; the first call counts. Connections beyond the limits of handshakes are only
    /// counted.
    pub fn on_refused(&self, report: impl Fn(SocketAddr, &str) + Send + Sync + 'static) {
        let _ = self.taker.on_refused.set(OnRefused(Box::new(report)));
    }

    /// The addresses it listens at, with the ports that the system chose.
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        self.addresses.clone()
    }

    /// What has been counted so far.
    pub fn counters(&self) -> ListenerCounters {
        self.taker.counters()
    }
}

/// Readable while a session waits to be accepted, for poll(2) and the like.
impl AsFd for PsockListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.taker.event()
    }
}

impl Drop for PsockListener {
    fn drop(&mut self) {
        self.taker.stop();
    }
}

/// Takes sessions, as [`PsockListener`] does, for tokio.
#[derive(Debug)]
pub struct AsyncPsockListener {
    listener: PsockListener,
}

impl AsyncPsockListener {
    /// As [`PsockListener::bind`].
    ///
    /// # Errors
    ///
    /// When an endpoint cannot be bound or the configuration cannot be used.
    pub async fn bind<P: Clone + Into<Endpoint>>(
        endpoints: &[P],
        config: &Config,
    ) -> Result<Self, BindError> {
        Ok(Self { listener: PsockListener::bind(endpoints, config)? })
    }

    /// Waits for a session and returns its stream and the peer's address.
    ///
    /// # Errors
    ///
    /// When waiting fails.
    pub async fn accept(&self) -> Result<(AsyncPsockStream, SocketAddr), AcceptError> {
        let (stream, peer) = self.listener.taker.until_next().await?;
        Ok((stream.into_async()?, peer))
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
