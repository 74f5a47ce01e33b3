//! Making connections: what the connecting end does for as long as a session lives.

use crate::{
    Config, Path,
    channel::Channel,
    connection,
    core::frame::Purpose,
    error::{PathError, Refusal, SessionError},
    handshake::{self, Claim},
    security::Tls,
    session::{Event, Session},
    socket,
    tls::Records,
};
use rustls::{ClientConfig, pki_types::ServerName};
use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

/// The wait before a path is tried again, at first and at most.
const WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// What is needed to make connections.
#[derive(Debug)]
pub(crate) struct Dialer {
    pub(crate) config: Config,
    tls: Tls<ClientConfig>,
    /// Those of the configuration, then those that the listener announced.
    routes: Mutex<Vec<Route>>,
    /// Connections asked for so far.
    asked: AtomicU32,
}

/// A path, and what the peer at its end reported of the session.
#[derive(Debug)]
struct Route {
    path: Path,
    /// Once it was the peer's other end who answered.
    right: bool,
    /// The last answer was that there is no such session.
    unknown: bool,
}

impl From<Path> for Route {
    fn from(path: Path) -> Self {
        Self { path, right: false, unknown: false }
    }
}

impl Dialer {
    pub(crate) fn new(config: Config, tls: Tls<ClientConfig>) -> Self {
        let routes = Mutex::new(config.paths.iter().cloned().map(Route::from).collect());
        Self { config, tls, routes, asked: AtomicU32::new(0) }
    }

    fn routes(&self) -> MutexGuard<'_, Vec<Route>> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who is at the end of a path knows the session.
    pub(crate) fn knows(&self, path: usize) {
        if let Some(route) = self.routes().get_mut(path) {
            (route.right, route.unknown) = (true, false);
        }
    }

    /// Who is at the end of a path does not know the session. Somebody else may be there, so this is the
    /// session's end only when nothing of it lives and either the path was right before or all say so.
    fn knows_not(&self, session: &Session, path: usize) {
        let mut routes = self.routes();
        let Some(route) = routes.get_mut(path) else { return };
        route.unknown = true;
        let over = route.right || routes.iter().all(|route| route.unknown);
        drop(routes);
        if over && session.live() == 0 {
            session.send_event(Event::Fail(SessionError::Unknown));
        }
    }

    /// A connection over a path, its TLS handshake done; TCP has so long to connect.
    pub(crate) async fn reach(&self, path: &Path, limit: Duration) -> Result<Channel, PathError> {
        let connect = socket::connect(path, &self.config);
        let socket = timeout(limit, connect).await.map_err(|_| PathError::TimedOut)??;
        let name = ServerName::IpAddress(path.remote.ip().into());
        let mut channel = Channel::new(socket, Records::connecting(&self.tls, name)?);
        channel.handshake().await?;
        Ok(channel)
    }

    /// A connection over a path that has joined the session.
    async fn join(
        &self,
        session: &Session,
        path: u16,
        purpose: Purpose,
    ) -> Result<Channel, PathError> {
        let joining = async {
            let to = self.routes().get(usize::from(path)).map(|route| route.path.clone());
            let to = to.ok_or_else(|| PathError::Protocol("no such path".to_owned()))?;
            let mut channel = self.reach(&to, self.config.path_timeout).await?;
            let claim = Claim {
                session: session.negotiated.session,
                secret: session.negotiated.secret,
                purpose,
                connection: self.asked.fetch_add(1, Ordering::Relaxed),
                path,
            };
            handshake::join(&mut channel, &claim).await?;
            Ok(channel)
        };
        let limit = self.config.connect_timeout;
        let joined = timeout(limit, joining).await.unwrap_or(Err(PathError::TimedOut));
        match &joined {
            Ok(_) => self.knows(path.into()),
            Err(PathError::Refused(Refusal::Session)) => self.knows_not(session, path.into()),
            Err(_) => {}
        }
        joined
    }

    /// Keeps the agreed number of data connections: first one on each path, then the second ones.
    pub(crate) fn keep_all(self: &Arc<Self>, session: &Arc<Session>, tasks: &mut JoinSet<()>) {
        let used_paths = (0..self.config.connections_per_path)
            .flat_map(|_| 0..self.config.paths.len())
            .take(session.negotiated.connections.into());
        for path in used_paths {
            self.keep_one(session, tasks, path);
        }
    }

    /// Keeps connections to addresses that the listener announced, as far as they are not known and
    /// more connections were agreed on.
    pub(crate) fn announced(
        self: &Arc<Self>,
        session: &Arc<Session>,
        tasks: &mut JoinSet<()>,
        addresses: &[SocketAddr],
    ) {
        for &address in addresses {
            let path = {
                let mut routes = self.routes();
                let known = routes.iter().any(|route| route.path.remote == address);
                let used = routes.len() * usize::from(self.config.connections_per_path);
                if known || used >= usize::from(session.negotiated.connections) {
                    continue;
                }
                routes.push(Path::from(address).into());
                routes.len() - 1
            };
            for _ in 0..self.config.connections_per_path {
                self.keep_one(session, tasks, path);
            }
        }
    }

    fn keep_one(self: &Arc<Self>, session: &Arc<Session>, tasks: &mut JoinSet<()>, path: usize) {
        let text = self.routes().get(path).map(|route| route.path.to_string()).unwrap_or_default();
        let path = path as u16;
        let slot = session.slot(path, text);
        tasks.spawn(Arc::clone(self).keep(Arc::clone(session), path, slot));
    }

    /// Keeps one data connection.
    async fn keep(self: Arc<Self>, session: Arc<Session>, path: u16, slot: usize) {
        let mut wait = WAIT;
        loop {
            match self.join(&session, path, Purpose::Data).await {
                Ok(channel) => {
                    wait = WAIT;
                    let entered = session.enter(slot);
                    let result = connection::run(channel, entered).await;
                    tracing::debug!("a data connection of path {path} ended: {result:?}");
                }
                Err(error) => tracing::debug!("path {path} cannot be used: {error}"),
            }
            sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }
}

/// Makes the control connection again, over whatever path works.
pub(crate) async fn control(dialer: Arc<Dialer>, session: Arc<Session>) {
    let mut wait = WAIT;
    loop {
        // Also at first, for a peer that takes each and ends it.
        sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
        let paths = dialer.routes().len();
        for path in 0..paths {
            match dialer.join(&session, path as u16, Purpose::Control).await {
                Ok(channel) => {
                    session.send_event(Event::Control(Box::new(channel)));
                    return;
                }
                Err(error) => tracing::debug!("no control connection over path {path}: {error}"),
            }
        }
    }
}
