//! The seed's load (section 4.1): clients that fetch files of 2 MB from HTTP servers, a hundred
//! connections each.
//!
//! Both ends do as little as they can, so that what lies between them is what is measured: servers hand
//! the file to the kernel (sendfile), clients have the kernel throw the body away (MSG_TRUNC, tcp(7)).

use crate::Failure;
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::socket::{MsgFlags, recv},
};
use std::{
    fs::File,
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::fd::{AsFd, AsRawFd},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use testbed::Namespace;

/// Where servers listen.
pub(crate) const PORT: u16 = 80;
/// Bytes that a thread of either end has as its stack.
const STACK: usize = 128 << 10;
/// After so long without a byte a request has failed.
const SILENCE: Duration = Duration::from_secs(20);
/// The longest head of a request or an answer.
const HEAD: usize = 1024;

/// Longest time between the drop of [`Servers`] and their end, in milliseconds.
const POLL_MS: u16 = 50;

/// Servers at several addresses of one namespace; they end when dropped.
pub(crate) struct Servers {
    ended: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Servers {
    /// Serves one file, whatever is asked for, at each address.
    pub(crate) fn start(
        namespace: &Namespace,
        addresses: &[Ipv4Addr],
        file: &Path,
    ) -> Result<Self, Failure> {
        let ended = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for address in addresses {
            let listener = namespace.enter(|| TcpListener::bind((*address, PORT)))?;
            listener.set_nonblocking(true)?;
            let (ended, file) = (Arc::clone(&ended), file.to_owned());
            threads.push(thread::spawn(move || accept(&listener, &file, &ended)));
        }
        Ok(Self { ended, threads })
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, file: &Path, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        let mut ready = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut ready, PollTimeout::from(POLL_MS));
        while let Ok((stream, _)) = listener.accept() {
            let file: PathBuf = file.to_owned();
            let serve = move || {
                // A client that goes away is its own business.
                let _ = serve(stream, &file);
            };
            if thread::Builder::new().stack_size(STACK).spawn(serve).is_err() {
                return;
            }
        }
    }
}

/// Answers requests until the client hangs up or asks for the end.
fn serve(mut stream: TcpStream, file: &Path) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let mut file = File::open(file)?;
    let length = file.metadata()?.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: nigh-bench\r\nContent-Type: application/octet-stream\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    let mut request = Vec::with_capacity(HEAD);
    loop {
        request.clear();
        if read_head(&mut stream, &mut request)?.is_none() {
            return Ok(());
        }
        stream.write_all(head.as_bytes())?;
        io::Seek::rewind(&mut file)?;
        // From a file to a socket this is sendfile(2).
        io::copy(&mut (&mut file).take(length), &mut stream)?;
        if contains(&request, b"Connection: close") {
            return Ok(());
        }
    }
}

/// Reads up to the empty line; returns where it ends. `None`: the other end has hung up before.
fn read_head(stream: &mut TcpStream, into: &mut Vec<u8>) -> io::Result<Option<usize>> {
    let mut chunk = [0; HEAD];
    loop {
        let length = stream.read(&mut chunk)?;
        if length == 0 {
            return if into.is_empty() {
                Ok(None)
            } else {
                Err(io::ErrorKind::UnexpectedEof.into())
            };
        }
        into.extend_from_slice(&chunk[..length]);
        if let Some(at) = find(into, b"\r\n\r\n") {
            return Ok(Some(at + 4));
        }
        if into.len() > 4 * HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn contains(bytes: &[u8], what: &[u8]) -> bool {
    find(bytes, what).is_some()
}

/// What a load is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Connections {
    /// One file after the other over each connection.
    Persistent,
    /// A connection for each file.
    New,
}

/// What all clients have had so far.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Of bodies.
    pub(crate) bytes: AtomicU64,
    pub(crate) files: AtomicU64,
    pub(crate) failed: AtomicU64,
}

/// Clients of a load: threads that fetch until they are told to stop.
pub(crate) struct Load<'a> {
    pub(crate) clients: &'a [Ipv4Addr],
    pub(crate) servers: &'a [Ipv4Addr],
    /// Of each client.
    pub(crate) connections: usize,
    pub(crate) kind: Connections,
    /// Between the beginnings of two files on one connection; with zero at once.
    pub(crate) every: Duration,
}

impl Load<'_> {
    /// Runs the load while `meanwhile` does.
    pub(crate) fn run<R: Send>(
        &self,
        namespace: &Namespace,
        meanwhile: impl FnOnce(&Counts) -> R + Send,
    ) -> Result<R, Failure> {
        let (counts, stop) = (Counts::default(), AtomicBool::new(false));
        let (counts, stop) = (&counts, &stop);
        thread::scope(|scope| {
            let clients = scope.spawn(move || {
                namespace.enter(|| {
                    thread::scope(|scope| {
                        for number in 0..self.connections * self.clients.len() {
                            let client = move || self.client(number, counts, stop);
                            let builder = thread::Builder::new().stack_size(STACK);
                            if builder.spawn_scoped(scope, client).is_err() {
                                counts.failed.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    });
                });
            });
            let result = meanwhile(counts);
            stop.store(true, Ordering::Relaxed);
            clients.join().map_err(|_| "the clients died")?;
            Ok(result)
        })
    }

    /// One connection's worth of a client, for as long as the load lasts.
    fn client(&self, number: usize, counts: &Counts, stop: &AtomicBool) {
        let from = self.clients[number % self.clients.len()];
        let mut turn = number / self.clients.len();
        // A steady load begins spread over the time between two files.
        let all = (self.connections * self.clients.len()) as u32;
        let mut next = Instant::now() + self.every * number as u32 / all;
        let mut buffer = vec![0; 256 << 10];
        let mut open = None;
        while !stop.load(Ordering::Relaxed) {
            if !self.every.is_zero() {
                if Instant::now() < next {
                    thread::sleep(Duration::from_millis(1).min(self.every));
                    continue;
                }
                next += self.every;
            }
            let to = SocketAddr::from((self.servers[turn % self.servers.len()], PORT));
            turn += 1;
            let mut stream = match open.take() {
                Some(stream) => stream,
                None => match connect(from, to) {
                    Ok(stream) => stream,
                    Err(_) => {
                        counts.failed.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                },
            };
            let last = self.kind == Connections::New;
            match fetch(&mut stream, number, last, &mut buffer, counts, stop) {
                Ok(()) if !last => open = Some(stream),
                Ok(()) => {}
                Err(_) => {
                    counts.failed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Connects from an address.
pub(crate) fn connect(from: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = socket2::Socket::new(
        socket2::Domain::IPV4,
        socket2::Type::STREAM,
        Some(socket2::Protocol::TCP),
    )?;
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    socket.connect_timeout(&to.into(), SILENCE)?;
    socket.set_read_timeout(Some(SILENCE))?;
    socket.set_tcp_nodelay(true)?;
    Ok(socket.into())
}

/// Fetches a file over a connection. When told to stop it ends in the middle.
pub(crate) fn fetch(
    stream: &mut TcpStream,
    number: usize,
    last: bool,
    buffer: &mut [u8],
    counts: &Counts,
    stop: &AtomicBool,
) -> io::Result<()> {
    let close = if last { "Connection: close\r\n" } else { "" };
    write!(stream, "GET /file-{number}.bin HTTP/1.1\r\nHost: server.test\r\n{close}\r\n")?;
    let mut head = Vec::with_capacity(HEAD);
    let end = read_head(stream, &mut head)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let text = String::from_utf8_lossy(&head[..end]);
    let length = text.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let length: usize =
        length.and_then(|text| text.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    let mut left = length.saturating_sub(head.len() - end);
    counts.bytes.fetch_add((length - left) as u64, Ordering::Relaxed);
    while left > 0 {
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let wanted = left.min(buffer.len());
        let got = recv(stream.as_raw_fd(), &mut buffer[..wanted], MsgFlags::MSG_TRUNC)?;
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        left -= got;
        counts.bytes.fetch_add(got as u64, Ordering::Relaxed);
    }
    counts.files.fetch_add(1, Ordering::Relaxed);
    Ok(())
}
