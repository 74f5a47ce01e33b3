//! The server's end of a lab's control socket: a thread without capabilities. A request that needs the
//! engine waits for it on another one.

use super::{
    Context, Request,
    capture::{Capture, Limits},
    events::Follower,
    parse,
};
use ::control::{BindError, ControlSocket, Reply};
use datapath::capabilities;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::{
    io::{self, ErrorKind, Read, Write},
    os::{fd::AsFd, unix::net::UnixStream},
    path::Path,
    sync::{Arc, mpsc::channel},
    time::Duration,
};
use tokio::{runtime::Builder, sync::oneshot, task::spawn_blocking};

/// How often new events are checked for.
const LOOK: Duration = Duration::from_millis(200);

/// A control socket that is served until this is dropped.
#[derive(Debug)]
pub struct Server {
    _stop: oneshot::Sender<()>,
}

impl Server {
    /// Opens the socket. No other thread should make files meanwhile.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start(context: Arc<Context>, path: &Path) -> Result<Self, BindError> {
        let error = |source| BindError::Io { path: path.to_owned(), source };
        let runtime = Builder::new_current_thread()
            .thread_name("control")
            .enable_all()
            .build()
            .map_err(error)?;
        let socket = {
            let _guard = runtime.enter();
            ControlSocket::bind(path)?
        };
        let (stop, stopped) = oneshot::channel();
        let (sender, receiver) = channel();
        let begin = move || {
            // Before the runtime starts threads of its own.
            let given_up = capabilities::give_up();
            let may_serve = given_up.is_ok();
            let _ = sender.send(given_up);
            if may_serve {
                runtime.block_on(async {
                    tokio::select! {
                        () = socket.serve(move |line| reply(context.clone(), line)) => {}
                        _ = stopped => {}
                    }
                });
            }
            // An answer that is worked out still must not delay the end.
            runtime.shutdown_background();
        };
        std::thread::Builder::new().name("control".into()).spawn(begin).map_err(error)?;
        receiver.recv().map_err(io::Error::other).and_then(|given_up| given_up).map_err(error)?;
        Ok(Self { _stop: stop })
    }
}

/// Does what a line asks.
async fn reply(context: Arc<Context>, line: Vec<u8>) -> Result<Reply, String> {
    let request = parse(&line)?;
    let work = move || match request {
        Request::Events {} => {
            Ok(Reply::Stream(Box::new(move |stream| send_events(stream, &context))))
        }
        Request::Capture { what, snap, count, seconds } => {
            let limits = Limits::new(count, seconds)?;
            let capture =
                Capture::start(context, &what, snap).map_err(|error| error.to_string())?;
            Ok(Reply::Stream(Box::new(move |stream| send_capture(stream, &capture, limits))))
        }
        request => context.reply(&request).map(Reply::Value),
    };
    let done = spawn_blocking(work).await;
    done.map_err(|_| "the answer could not be computed".to_owned())?
}

/// Sends a capture until it has reached a limit, the client has enough, or the lab ends.
fn send_capture(mut stream: UnixStream, capture: &Capture, limits: Limits) -> io::Result<()> {
    // Whoever reads it may be stopped for long; what finds no room meanwhile is counted.
    stream.set_write_timeout(None)?;
    let input = stream.try_clone()?;
    let has_enough = || {
        let mut fds = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    };
    capture.write(&mut stream, limits, has_enough)
}

/// Sends events as they occur until the client has enough, or the lab ends.
fn send_events(mut stream: UnixStream, context: &Context) -> io::Result<()> {
    let Ok(mut follower) = Follower::new(context) else { return Ok(()) };
    stream.set_read_timeout(Some(LOOK))?;
    loop {
        match stream.read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            _ => return Ok(()),
        }
        let Ok(events) = follower.next(context) else { return Ok(()) };
        for event in events {
            let mut line = serde_json::to_vec(&event).unwrap_or_default();
            line.push(b'\n');
            stream.write_all(&line)?;
        }
    }
}
