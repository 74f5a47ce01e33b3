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
    paths: Mutex<Vec<Path>>,
    /// Connections asked for so far.
    asked: AtomicU32,
}

impl Dialer {
    pub(crate) fn new(config: Config, tls: Tls<ClientConfig>) -> Self {
        let paths = Mutex::new(config.paths.clone());
        Self { config, tls, paths, asked: AtomicU32::new(0) }
    }

    fn paths(&self) -> MutexGuard<'_, Vec<Path>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
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
            let to = self.paths().get(usize::from(path)).cloned();
            let to = to.ok_or_else(|| PathError::Protocol("no such path".to_owned()))?;
            let mut channel = self.reach(&to, self.config.path_timeout).await?;
            let claim = Claim {
                session: session.agreement.session,
                secret: session.agreement.secret,
                purpose,
                connection: self.asked.fetch_add(1, Ordering::Relaxed),
                path,
            };
            handshake::join(&mut channel, &claim).await?;
            Ok(channel)
        };
        let limit = self.config.connect_timeout;
        timeout(limit, joining).await.unwrap_or(Err(PathError::TimedOut))
    }

    /// Keeps the agreed number of data connections: first one on each path, then the second ones.
    pub(crate) fn keep_all(self: &Arc<Self>, session: &Arc<Session>, tasks: &mut JoinSet<()>) {
        let places = (0..self.config.connections_per_path)
            .flat_map(|_| 0..self.config.paths.len())
            .take(session.agreement.connections.into());
        for path in places {
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
                let mut paths = self.paths();
                let known = paths.iter().any(|path| path.remote == address);
                let used = paths.len() * usize::from(self.config.connections_per_path);
                if known || used >= usize::from(session.agreement.connections) {
                    continue;
                }
                paths.push(address.into());
                paths.len() - 1
            };
            for _ in 0..self.config.connections_per_path {
                self.keep_one(session, tasks, path);
            }
        }
    }

    fn keep_one(self: &Arc<Self>, session: &Arc<Session>, tasks: &mut JoinSet<()>, path: usize) {
        let text = self.paths().get(path).map(Path::to_string).unwrap_or_default();
        let path = path as u16;
        let place = session.place(path, text, true);
        tasks.spawn(Arc::clone(self).keep(Arc::clone(session), path, place));
    }

    /// Keeps one data connection.
    async fn keep(self: Arc<Self>, session: Arc<Session>, path: u16, place: usize) {
        let mut wait = WAIT;
        loop {
            match self.join(&session, path, Purpose::Data).await {
                Ok(channel) => {
                    wait = WAIT;
                    let result = connection::run(&session, channel, place).await;
                    tracing::debug!("a data connection of path {path} ended: {result:?}");
                }
                Err(PathError::Refused(Refusal::Session)) => {
                    session.tell(Event::Fail(SessionError::Unknown));
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
        let paths = dialer.paths().len();
        for path in 0..paths {
            match dialer.join(&session, path as u16, Purpose::Control).await {
                Ok(channel) => {
                    let (channel, purpose) = (Box::new(channel), Purpose::Control);
                    session.tell(Event::Joined { channel, purpose, path: path as u16 });
                    return;
                }
                Err(PathError::Refused(Refusal::Session)) => {
                    session.tell(Event::Fail(SessionError::Unknown));
                    return;
                }
                Err(error) => tracing::debug!("no control connection over path {path}: {error}"),
            }
        }
        sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}
