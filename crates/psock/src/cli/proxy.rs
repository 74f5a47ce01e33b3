//! `nigh psock proxy`: TCP at both ends, a session over all paths between.
//!
//! A connection that cannot be carried on is reset, never ended, so that no program takes half of an
//! answer for all of it.

use super::{CommandError, ProxyArgs, log};
use crate::{Config, PsockListener, PsockStream, Splice, splice};
use serde_json::json;
use socket2::SockRef;
use std::{
    io::{self, ErrorKind, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::OwnedFd,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::Duration,
};

/// Connections at once; more have to wait.
const CONNECTIONS: usize = 1024;
/// Pause after accepting has failed, as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) fn run(args: &ProxyArgs) -> Result<(), CommandError> {
    let config = Arc::new(args.end.config()?);
    let gate = Arc::new(Gate::default());
    match (args.from, args.to) {
        (Some(from), _) => enter(from, &config, &gate, args.json),
        (None, Some(to)) => {
            let listener = args.end.listener(&config)?;
            leave(&listener, to, &config, &gate, args.json)
        }
        // The command line has one of them.
        (None, None) => Ok(()),
    }
}

/// Each TCP connection becomes a session.
fn enter(
    from: SocketAddr,
    config: &Arc<Config>,
    gate: &Arc<Gate>,
    json: bool,
) -> Result<(), CommandError> {
    let listen = |source| CommandError::Listen { address: from, source };
    let listener = TcpListener::bind(from).map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    log(&format!("forwarding from {address} over {} paths", config.paths.len()));
    loop {
        let permit = Gate::enter(gate);
        let (socket, client) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) => {
                after(&error);
                continue;
            }
        };
        // Until a session has ended well, the program is to see an error and no end.
        if let Err(error) = SockRef::from(&socket).set_linger(Some(Duration::ZERO)) {
            log(&format!("{client}: {error}"));
            continue;
        }
        let config = Arc::clone(config);
        start(permit, move || {
            let carried = match PsockStream::connect(&config) {
                Ok(stream) => carry(Unjoined(Some(stream)), socket, client, json),
                Err(error) => Err(error.to_string()),
            };
            carried.unwrap_or_else(|why| log(&format!("{client}: {why}")));
        });
    }
}

/// Each session becomes a TCP connection.
fn leave(
    listener: &PsockListener,
    to: SocketAddr,
    config: &Arc<Config>,
    gate: &Arc<Gate>,
    json: bool,
) -> Result<(), CommandError> {
    for address in listener.local_addresses() {
        log(&format!("forwarding from {address} to {to}"));
    }
    let limit = config.connect_timeout;
    loop {
        let permit = Gate::enter(gate);
        let (stream, client) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) => {
                after(&io::Error::from(error));
                continue;
            }
        };
        let stream = Unjoined(Some(stream));
        start(permit, move || {
            let carried = match TcpStream::connect_timeout(&to, limit) {
                Ok(socket) => carry(stream, socket, client, json),
                Err(error) => Err(format!("connecting to {to}: {error}")),
            };
            carried.unwrap_or_else(|why| log(&format!("{client}: {why}")));
        });
    }
}

/// Carries one connection to its end.
fn carry(
    mut stream: Unjoined,
    socket: TcpStream,
    client: SocketAddr,
    json: bool,
) -> Result<(), String> {
    socket.set_nodelay(true).map_err(|error| error.to_string())?;
    let Some(stream) = stream.0.take() else { return Ok(()) };
    let joined: Splice =
        splice(stream, OwnedFd::from(socket)).map_err(|error| error.to_string())?;
    let result = joined.wait();
    if json {
        let error = result.as_ref().err().map(ToString::to_string);
        let line = json!({ "client": client, "error": error, "counters": joined.counters() });
        // Whoever reads the counters may have seen enough; the forwarder goes on.
        let _ = writeln!(io::stdout(), "{line}");
    }
    result.map_err(|error| error.to_string())
}

/// A session that is not joined with a socket; when nothing becomes of it, the other end sees an error.
struct Unjoined(Option<PsockStream>);

impl Drop for Unjoined {
    fn drop(&mut self) {
        if let Some(stream) = self.0.take() {
            stream.abort();
        }
    }
}

/// Runs one connection on a thread of its own; without one it ends at once.
fn start(permit: Permit, carry: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().name("proxy".into());
    let run = move || {
        carry();
        drop(permit);
    };
    if let Err(error) = thread.spawn(run) {
        log(&format!("no thread for a connection: {error}"));
    }
}

/// Says why accepting failed; when it is for want of something, gives it time to come back.
fn after(error: &io::Error) {
    if error.kind() != ErrorKind::ConnectionAborted {
        log(&format!("accepting: {error}"));
        thread::sleep(PAUSE);
    }
}

/// Counts the connections that there are.
#[derive(Default)]
struct Gate {
    inside: Mutex<usize>,
    left: Condvar,
}

/// One connection's permit; given back when dropped.
struct Permit(Arc<Gate>);

impl Gate {
    /// Waits for a permit.
    fn enter(gate: &Arc<Self>) -> Permit {
        let inside = gate.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |inside: &mut usize| *inside >= CONNECTIONS;
        let mut inside = gate.left.wait_while(inside, full).unwrap_or_else(PoisonError::into_inner);
        *inside += 1;
        Permit(Arc::clone(gate))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *self.0.inside.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.left.notify_one();
    }
}
