//! Starts the tasks of a session.

use crate::{
    Config,
    channel::Channel,
    manager::{Manager, Role},
    pump,
    session::{Negotiated, Session},
};
use std::{io, os::unix::net::UnixStream as StdUnixStream, sync::Arc};
use tokio::net::UnixStream;

/// Starts a session on its control connection; returns the application's socket.
///
/// A connecting end has paths, over which the manager makes the connections. `over` is called when
/// nothing of the session is left.
pub(crate) fn start(
    control: Channel,
    config: Config,
    negotiated: Negotiated,
    role: Role,
    over: impl FnOnce() + Send + 'static,
) -> io::Result<(StdUnixStream, Arc<Session>)> {
    let (application, ours) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let (reader, writer) = UnixStream::from_std(ours)?.into_split();
    let (session, inbox) = Session::new(&control, config, negotiated)?;
    let mut manager = Manager::new(Arc::clone(&session), role);
    manager.tasks.spawn(pump::give(Arc::clone(&session), reader));
    manager.tasks.spawn(pump::take(Arc::clone(&session), writer));
    tokio::spawn(async move {
        manager.run(control, inbox).await;
        over();
    });
    Ok((application, session))
}
