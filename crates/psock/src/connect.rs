//! Opening a session.

use crate::{
    Config, ConnectError, Path,
    channel::Channel,
    core::frame::{MAX_OFFSET, Open},
    dial::Dialer,
    error::PathError,
    handshake,
    manager::Role,
    security,
    session::{Negotiated, Session},
    start::start,
};
use std::{os::unix::net::UnixStream, sync::Arc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout_at},
};

/// The next path is tried when those before have not answered for so long.
const NEXT_PATH_AFTER: Duration = Duration::from_millis(250);

/// Opens a session over the first path that answers; the application's socket and the session.
pub(crate) async fn connect(config: Config) -> Result<(UnixStream, Arc<Session>), ConnectError> {
    config.check().map_err(ConnectError::Config)?;
    if config.paths.is_empty() {
        return Err(ConnectError::Config("there is no path"));
    }
    let tls = security::connecting(&config.security)?;
    let limit = config.connect_timeout;
    let deadline = Instant::now() + limit;
    let failed = |(path, source): (usize, _)| match (config.paths.get(path), source) {
        (Some(path), PathError::Refused(reason)) => {
            ConnectError::Refused { peer: path.remote, reason }
        }
        (path, source) => {
            let path = path.map(ToString::to_string).unwrap_or_default();
            ConnectError::NoPath { limit, path, source }
        }
    };
    let dialer = Arc::new(Dialer::new(config.clone(), tls));
    let (path, mut channel) = first(&dialer, deadline).await.map_err(failed)?;
    let connections = match config.follow_announced {
        // How many addresses the listener has is not known yet.
        true => config.limits.connections.try_into().unwrap_or(u16::MAX),
        false => {
            let connections = config.paths.len() * usize::from(config.connections_per_path);
            connections.try_into().unwrap_or(u16::MAX)
        }
    };
    let open = Open {
        driver: config.driver,
        connections,
        window: (config.window_bytes as u64).min(MAX_OFFSET),
        survive_ms: config.survive.as_millis().try_into().unwrap_or(u32::MAX),
    };
    let opened = timeout_at(deadline, handshake::open(&mut channel, open)).await;
    let opened = opened.unwrap_or(Err(PathError::TimedOut));
    let welcome = opened.map_err(|source| failed((path, source)))?;
    dialer.knows(path);
    let negotiated = Negotiated {
        session: welcome.session,
        secret: welcome.secret,
        driver: welcome.driver,
        connections: welcome.connections.min(open.connections),
        peer_window: welcome.window,
        survive: config.survive.min(Duration::from_millis(welcome.survive_ms.into())),
    };
    Ok(start(channel, config, negotiated, Role::Connecting(dialer), || {})?)
}

/// A connection over a path whose peer speaks the protocol: TCP and TLS may work where nobody answers.
async fn greeted(dialer: &Dialer, path: &Path, limit: Duration) -> Result<Channel, PathError> {
    let mut channel = dialer.reach(path, limit).await?;
    handshake::challenge(&mut channel).await?;
    Ok(channel)
}

/// The first path that answers, each tried a little later than the one before; or else the last that
/// failed, or the first if all of them are silent.
async fn first(
    dialer: &Arc<Dialer>,
    deadline: Instant,
) -> Result<(usize, Channel), (usize, PathError)> {
    let mut attempts = JoinSet::new();
    let mut paths = dialer.config.paths.iter().cloned().enumerate();
    let mut last = (0, PathError::TimedOut);
    loop {
        let more = match paths.next() {
            Some((number, path)) => {
                let dialer = Arc::clone(dialer);
                let limit = dialer.config.connect_timeout;
                attempts.spawn(async move { (number, greeted(&dialer, &path, limit).await) });
                true
            }
            None => false,
        };
        tokio::select! {
            ended = attempts.join_next() => match ended {
                Some(Ok((number, Ok(channel)))) => return Ok((number, channel)),
                Some(Ok((number, Err(error)))) => last = (number, error),
                Some(Err(_)) => {}
                None => return Err(last),
            },
            () = sleep(NEXT_PATH_AFTER), if more => {}
            () = sleep_until(deadline) => return Err(last),
        }
    }
}
