//! The ALTO server: HTTPS with HTTP/2 and HTTP/1.1 on a thread and runtime of its own, so that a large map
//! never delays the daemon.
//!
//! ```text
//! bind() ── sockets, certificate ──▶ start() ──▶ thread "alto": accept ─▶ TLS ─▶ HTTP ─▶ dispatch.rs
//!   (may need rights)                              places.rs, progress.rs, memory.rs       │   │   │
//!                              threads for blocking work: answers of the core, comparing ◀─┘   │   │
//!                                              streams of RFC 8895, views of RFC 9569 ◀────────┘───┘
//! ```

mod bodies;
mod connection;
mod counted;
mod dispatch;
mod memory;
mod places;
mod progress;
mod renewal;
mod turns;

use super::{
    auth::{
        Gate,
        config::{PasswordError, UserConfig},
    },
    config::AltoConfig,
    counters::{Counters, Figures},
    limits::Limits,
    tips::Tips,
    tls::{self, Fingerprint, Identity, Source, TlsError},
    updates::{
        follow::{Answers, Follower},
        graph::Bounds,
        service::Streams,
    },
};
use arc_swap::ArcSwap;
use axum::http::uri::Authority;
use dispatch::Site;
use job::pulse::Beat;
use rustls::server::danger::ClientCertVerifier;
use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    runtime,
    sync::{oneshot, watch},
    time::Instant,
};

pub use renewal::{RenewError, Renewal, Renewed};

/// Connections that the kernel completes before they are accepted.
const BACKLOG: i32 = 1024;
/// Threads for answering and comparing, beside the one that serves.
const BLOCKING_THREADS: usize = 3;
/// How often, at least and at most, views without a reader are searched for.
const TIDY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// How long a stop waits for what is in flight.
const STOP: Duration = Duration::from_secs(5);

/// Where and how to serve.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Addresses to listen on.
    pub listen: Vec<SocketAddr>,
    /// Where the certificate comes from.
    pub source: Source,
    /// What goes before paths in URIs, such as `https://alto.example.net:6671`. If it is empty, the host that the
    /// client asked where the certificate is for it, else the address.
    pub base: String,
    /// Who may ask.
    pub access: Access,
    /// How much is done at once.
    pub limits: Limits,
}

/// Who may ask: everybody, unless there are users or authorities. With both either is enough.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Users with passwords.
    pub users: Vec<UserConfig>,
    /// The realm of their passwords.
    pub realm: String,
    /// PEM file with the authorities of clients' certificates.
    pub client_ca: Option<PathBuf>,
}

impl Settings {
    /// The settings of a configuration. `state` is the node's state directory, where a self-signed certificate is
    /// kept.
    pub fn new(config: &AltoConfig, state: &Path) -> Settings {
        let source = match (&config.certificate, &config.key) {
            (Some(certificate), Some(key)) => {
                Source::Files { certificate: certificate.clone(), key: key.clone() }
            }
            _ => Source::SelfMade { directory: state.to_owned(), names: names(config) },
        };
        Settings {
            listen: config.listen.clone(),
            source,
            base: config.base(),
            access: Access {
                users: config.users.clone(),
                realm: config.realm(),
                client_ca: config.client_ca.clone(),
            },
            limits: config.limit.clone(),
        }
    }
}

/// Whom a self-signed certificate is for: the configured host, else this machine by its addresses.
fn names(config: &AltoConfig) -> Vec<String> {
    let host = config.host.as_deref().and_then(|host| host.parse::<Authority>().ok());
    if let Some(host) = host {
        return vec![host.host().trim_matches(['[', ']']).to_owned()];
    }
    let listened = config.listen.iter().map(SocketAddr::ip).filter(|ip| !ip.is_unspecified());
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    names.extend(listened.map(|ip| ip.to_string()));
    names.dedup();
    names
}

/// The server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}; see oracle.alto.listen")]
    Listen {
        /// Which one.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] TlsError),
    /// There is no usable password for a user.
    #[error("oracle.alto.user: {0}")]
    Password(#[from] PasswordError),
    /// The TLS library refuses its settings.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// No thread can be started.
    #[error("cannot start ALTO's thread: {0}")]
    Thread(io::Error),
}

/// What needs rights and may fail: the sockets and the certificate.
pub struct Bound {
    settings: Settings,
    listeners: Vec<TcpListener>,
    identity: Identity,
    clients: Arc<dyn ClientCertVerifier>,
    gate: Option<Gate>,
}

/// Listens, and reads certificates and passwords. No thread is started, and no request is answered yet.
///
/// # Errors
///
/// An address is taken or needs a right; a certificate or password is missing or wrong.
pub fn bind(settings: Settings) -> Result<Bound, StartError> {
    let identity = Identity::load(settings.source.clone())?;
    let Access { users, realm, client_ca } = &settings.access;
    let clients = tls::clients(client_ca.as_deref(), users.is_empty())?;
    let gate = if users.is_empty() { None } else { Some(Gate::new(realm.clone(), users)?) };
    let mut listeners = Vec::new();
    for &address in &settings.listen {
        let listener = listen(address).map_err(|source| StartError::Listen { address, source })?;
        listeners.push(listener);
    }
    Ok(Bound { settings, listeners, identity, clients, gate })
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// The maps of each moment; none before the first ones are there.
pub type Snapshots = watch::Receiver<Option<Arc<dyn Answers>>>;

/// A server that serves.
pub struct Server {
    addresses: Vec<SocketAddr>,
    identity: Arc<Identity>,
    tls: Arc<ArcSwap<rustls::ServerConfig>>,
    counters: Arc<Counters>,
    site: Arc<Site>,
    stopping: watch::Sender<bool>,
    stopped: oneshot::Receiver<()>,
}

impl Bound {
    /// The addresses listened on, with their real ports.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// Serves from now on, on a thread of its own.
    ///
    /// # Errors
    ///
    /// TLS cannot be set up, or no thread can be started.
    pub fn start(self, snapshots: Snapshots, beat: Beat) -> Result<Server, StartError> {
        let Bound { settings, listeners, identity, clients, gate } = self;
        let addresses: Vec<_> =
            listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
        let tls = Arc::new(ArcSwap::from_pointee(identity.config(clients)?));
        let counters = Arc::new(Counters::default());
        let bounds = Bounds {
            versions: settings.limits.versions,
            bytes: settings.limits.versions_size.0 as usize,
        };
        let follower = Arc::new(Follower::new(snapshots, bounds, settings.limits.followed));
        let limits = settings.limits.clone();
        let identity = Arc::new(identity);
        let site = Arc::new(Site::new(
            Arc::new(Streams::new(follower.clone(), limits.clone(), counters.clone())),
            Arc::new(Tips::new(follower.clone(), limits, counters.clone())),
            follower,
            settings,
            gate,
            identity.clone(),
            counters.clone(),
        ));
        let (stopping, stop) = watch::channel(false);
        let (done, stopped) = oneshot::channel();
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_name("alto-work")
            .on_thread_start(panics::adopt())
            .build()
            .map_err(StartError::Thread)?;
        let (serving, shaking) = (site.clone(), tls.clone());
        let serve = move || {
            runtime.spawn(beat.keep());
            runtime.block_on(run(listeners, shaking, serving, stop));
            // Work that is still going on is left to itself.
            runtime.shutdown_background();
            let _ = done.send(());
        };
        panics::thread("alto", serve).map_err(StartError::Thread)?;
        Ok(Server { addresses, identity, tls, counters, site, stopping, stopped })
    }
}

impl Server {
    /// The addresses served, with their real ports.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What has been done since the start.
    pub fn figures(&self) -> Figures {
        Figures { memory_bytes: self.site.memory().all() as u64, ..self.counters.figures() }
    }

    /// How many views are open (RFC 9569).
    pub fn views(&self) -> usize {
        self.site.tips().len()
    }

    /// How many questions streams and views follow.
    pub fn followed(&self) -> usize {
        self.site.follower().len()
    }

    /// What is read again at a reload; open connections go on as they began.
    pub fn renewal(&self) -> Renewal {
        let Server { identity, tls, site, .. } = self;
        Renewal { identity: identity.clone(), tls: tls.clone(), site: site.clone() }
    }

    /// The fingerprint of the certificate in use.
    pub fn fingerprint(&self) -> Fingerprint {
        self.identity.fingerprint()
    }

    /// Takes no more connections, ends the streams with an event, lets requests in progress be
    /// answered, and returns when that is done or some seconds have passed.
    pub async fn stop(self) {
        self.stopping.send_replace(true);
        let _ = self.stopped.await;
    }
}

/// Serves until it is stopped.
async fn run(
    listeners: Vec<TcpListener>,
    tls: Arc<ArcSwap<rustls::ServerConfig>>,
    site: Arc<Site>,
    mut stop: watch::Receiver<bool>,
) {
    tokio::spawn(site.follower().clone().run());
    let connections = connection::Connections::new(tls, site.clone(), stop.clone());
    for listener in listeners {
        match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => {
                tokio::spawn(connections.clone().accept(listener));
            }
            Err(error) => tracing::error!(%error, "cannot serve one of ALTO's addresses"),
        }
    }
    let mut tidy = tokio::time::interval(site.limits().view_idle.clamp(TIDY.0, TIDY.1));
    loop {
        tokio::select! {
            _ = tidy.tick() => site.tips().tidy(std::time::Instant::now()),
            stopped = stop.wait_for(|stop| *stop) => {
                drop(stopped);
                break;
            }
        }
    }
    site.stop();
    let end = Instant::now() + STOP;
    while !site.places().are_free() && Instant::now() < end {
        site.places().one_left(end).await;
    }
}
