//! The listening side of the control socket: a thread that accepts, and one for each connection.

use super::{
    Answer, Context, Request,
    capture::{Capture, Limits},
    events::Follower,
    parse,
};
use datapath::capabilities;
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        socket::{Shutdown, shutdown},
        stat::{Mode, umask},
    },
};
use std::{
    io::{self, BufRead, BufReader, ErrorKind, Read, Write},
    os::{
        fd::{AsFd, AsRawFd},
        unix::net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::channel,
    },
    time::Duration,
};

/// Longest request, in bytes with its end of line.
const LINE_LIMIT: u64 = 64 << 10;
/// Most connections at once.
const CONNECTION_LIMIT: usize = 32;
/// How long a connection may be silent, or an answer may wait to be read.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How often it is looked at what has happened.
const LOOK: Duration = Duration::from_millis(200);

/// The control socket cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the control socket {}: {source}", .path.display())]
pub struct ServeError {
    path: PathBuf,
    source: io::Error,
}

/// A control socket that is served until this is dropped.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
}

impl Server {
    /// Opens the socket, to its owner only: it is bound under a umask of 0177, so that it is never open
    /// to others, not even for a moment. No other thread should make files meanwhile.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start(context: Arc<Context>, path: &Path) -> Result<Self, ServeError> {
        let error = |source| ServeError { path: path.to_owned(), source };
        let before = umask(Mode::from_bits_truncate(0o177));
        let bound = UnixListener::bind(path);
        umask(before);
        let listener = bound.map_err(error)?;
        let accepting = listener.try_clone().map_err(error)?;
        let thread = std::thread::Builder::new().name("control".into());
        let (tell, told) = channel();
        let begin = move || {
            let given_up = capabilities::give_up();
            let may_serve = given_up.is_ok();
            let _ = tell.send(given_up);
            if may_serve {
                serve(&accepting, &context);
            }
        };
        thread.spawn(begin).map_err(error)?;
        told.recv().map_err(io::Error::other).and_then(|given_up| given_up).map_err(error)?;
        Ok(Self { listener })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = shutdown(self.listener.as_raw_fd(), Shutdown::Both);
    }
}

/// Accepts until the socket is shut down.
fn serve(listener: &UnixListener, context: &Arc<Context>) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let mut stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::InvalidInput => return,
            // Out of file descriptors: what ends meanwhile makes room.
            Err(_) => {
                std::thread::sleep(LOOK);
                continue;
            }
        };
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTION_LIMIT {
            open.fetch_sub(1, Ordering::Relaxed);
            let sentence =
                format!("{CONNECTION_LIMIT} control connections are open already: try again later");
            let _ = stream.set_nonblocking(true);
            let _ = stream.write_all(&encode(&Answer::Error(sentence)));
            continue;
        }
        let slot = Slot(open.clone());
        let context = context.clone();
        let thread = std::thread::Builder::new().name("control".into());
        let _ = thread.spawn(move || {
            // A client that goes away is its own affair.
            let _ = converse(stream, &context);
            drop(slot);
        });
    }
}

/// A connection's place among those that may be open.
struct Slot(Arc<AtomicUsize>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers the requests of one connection until it ends, is silent for too long, or breaks the rules.
fn converse(stream: UnixStream, context: &Context) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut output = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        if (&mut input).take(LINE_LIMIT + 1).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.len() as u64 > LINE_LIMIT {
            let sentence = format!("a request has at most {LINE_LIMIT} bytes");
            return output.write_all(&encode(&Answer::Error(sentence)));
        }
        let request = match parse(&line) {
            Ok(request) => request,
            Err(error) => {
                let sentence = format!("this is not a request: {error}");
                output.write_all(&encode(&Answer::Error(sentence)))?;
                continue;
            }
        };
        if let Request::Capture { what, snap, count, seconds } = request {
            let limits = Limits::new(count, seconds);
            let sentence = match (limits, Capture::start(context, &what, snap)) {
                (Ok(limits), Ok(capture)) => {
                    return send(&mut output, input.get_ref(), &capture, limits);
                }
                (Err(sentence), _) => sentence,
                (_, Err(error)) => error.to_string(),
            };
            output.write_all(&encode(&Answer::Error(sentence)))?;
            continue;
        }
        output.write_all(&encode(&context.reply(&request)))?;
        if request == (Request::Events {}) {
            return tell(&mut output, input.get_mut(), context);
        }
    }
}

/// Sends a capture until it has reached a limit, the client has enough, or the lab ends.
fn send(
    output: &mut UnixStream,
    input: &UnixStream,
    capture: &Capture<'_>,
    limits: Limits,
) -> io::Result<()> {
    output.write_all(&encode(&Answer::Ok(serde_json::json!({}))))?;
    // Who reads it may be stopped for long; what finds no room meanwhile is counted.
    output.set_write_timeout(None)?;
    let has_enough = || {
        let mut fds = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    };
    capture.write(output, limits, has_enough)
}

/// Tells what happens until the client has enough, or the lab ends.
fn tell(output: &mut UnixStream, input: &mut UnixStream, context: &Context) -> io::Result<()> {
    let Ok(mut follower) = Follower::new(context) else { return Ok(()) };
    input.set_read_timeout(Some(LOOK))?;
    loop {
        match input.read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            _ => return Ok(()),
        }
        let Ok(events) = follower.next(context) else { return Ok(()) };
        for event in events {
            let mut line = serde_json::to_vec(&event).unwrap_or_default();
            line.push(b'\n');
            output.write_all(&line)?;
        }
    }
}

/// An answer as a line.
fn encode(answer: &Answer) -> Vec<u8> {
    // A JSON value and a string always serialize.
    let mut line = serde_json::to_vec(answer).unwrap_or_default();
    line.push(b'\n');
    line
}
