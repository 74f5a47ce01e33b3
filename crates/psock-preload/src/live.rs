//! The sessions of this process: carried by threads, and waited for when the program ends.

use crate::{inside, names, pairs, real, setup};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use psock::{PerProcess, PsockStream, splice};
use serde_json::json;
use std::{
    fs::OpenOptions,
    io::{self, Write},
    net::TcpStream,
    os::fd::OwnedFd,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

/// How many sessions live; a child of fork(2) has none of its parent's.
static SESSIONS: PerProcess<AtomicUsize> = PerProcess::new();

/// Between two looks at whether all sessions are over.
const LOOK: Duration = Duration::from_millis(2);

/// A session that is counted for as long as this lives.
pub(crate) struct Live(&'static AtomicUsize);

impl Live {
    pub(crate) fn new() -> Self {
        let sessions = SESSIONS.get();
        sessions.fetch_add(1, Ordering::AcqRel);
        Self(sessions)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Joins a session with this library's socket, and waits for its end on a thread.
pub(crate) fn carry(live: Live, stream: PsockStream, socket: TcpStream) -> io::Result<()> {
    let peer = stream.peer();
    let splice = splice(stream, OwnedFd::from(socket))?;
    spawn(move || {
        let result = splice.wait();
        if let Ok(Some(setup)) = setup::get() {
            let error = result.err().map(|error| error.to_string());
            if let Some(file) = &setup.counters {
                let line = json!({ "peer": peer, "error": error, "counters": splice.counters() });
                // One write, so that lines of several processes do not mix.
                let _ = OpenOptions::new()
                    .append(true)
                    .create(true)
                    .open(file)
                    .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
            }
            if let Some(why) = error {
                setup::explain(&io::Error::other(format!("session with {peer}: {why}")));
            }
        }
        drop(live);
    })
}

/// Runs something on a thread of this library, which gets none of the program's signals.
pub(crate) fn spawn(run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut before = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
    let thread = thread::Builder::new().name("psock".to_owned()).spawn(|| {
        inside::stay();
        run();
    });
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    thread.map(drop)
}

/// When the program ends: closes its sockets, as the system would, and waits until the peers have everything.
extern "C" fn finish() {
    let Some(_inside) = inside::enter() else { return };
    let sessions = SESSIONS.get();
    if sessions.load(Ordering::Acquire) == 0 {
        return;
    }
    let Ok(Some(setup)) = setup::get() else { return };
    // What the program's streams still hold could not reach a socket after this function. Where another thread
    // waits for stdin, it holds what writing out all streams would wait for.
    if !is_locked_stdin() {
        // SAFETY: without a stream, all of the program's streams are written out.
        unsafe { libc::fflush(std::ptr::null_mut()) };
    }
    let numbers = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for fd in numbers.collect::<Vec<_>>() {
        if names::pair(fd).is_some_and(|pair| pair.kind != pairs::Kind::Listening) {
            real::close(fd);
        }
    }
    let begin = Instant::now();
    while sessions.load(Ordering::Acquire) > 0 && begin.elapsed() < setup.linger {
        thread::sleep(LOOK);
    }
}

unsafe extern "C" {
    static stdin: *mut libc::FILE;
    fn ftrylockfile(stream: *mut libc::FILE) -> libc::c_int;
    fn funlockfile(stream: *mut libc::FILE);
}

/// Whether another thread is in a call with stdin.
fn is_locked_stdin() -> bool {
    // SAFETY: the C library's, set when the program starts.
    let stream = unsafe { stdin };
    if stream.is_null() {
        return false;
    }
    // SAFETY: it is a stream; who closed it must not use it any more, nor may fflush(3) then.
    if unsafe { ftrylockfile(stream) } != 0 {
        return true;
    }
    // SAFETY: it was locked here.
    unsafe { funlockfile(stream) };
    false
}

/// Called when the library is loaded: what the environment says is read before the program can change it, and all
/// that is made once is made before there are threads.
extern "C" fn start() {
    if let Ok(Some(setup)) = setup::get() {
        let _ = setup.config();
        let _ = pairs::prepare();
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

#[used]
#[unsafe(link_section = ".fini_array")]
static FINISH: extern "C" fn() = finish;
