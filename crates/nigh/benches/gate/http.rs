//! The servers of the load, which serve a file of 2 MB: *Integrating and Accelerating Content
//! Classification and Management at P2P Gateways*, section 4.1.
//!
//! They have the file in memory and hand it to the kernel whole, so that what lies between the ends is
//! what is measured.

use crate::Failure;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream},
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};
use testbed::Namespace;

/// Where servers listen.
pub(crate) const PORT: u16 = 80;
/// Where they send and where they take as much as goes, by [`Bulk`].
pub(crate) const BULK: [u16; 2] = [5001, 5002];
/// Bytes that a thread of either end has as its stack.
const STACK: usize = 128 << 10;
/// The longest head of a request or an answer.
pub(crate) const HEAD: usize = 1024;

/// Longest time between the drop of [`Servers`] and their end, in milliseconds.
const POLL_MS: u16 = 50;

/// The direction of bytes whose content does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bulk {
    /// To the client.
    Down,
    /// From it.
    Up,
}

/// Servers at several addresses of one namespace; they end when dropped.
pub(crate) struct Servers {
    ended: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

/// What a server does with a connection.
type Serve = Arc<dyn Fn(TcpStream) -> io::Result<()> + Send + Sync>;

impl Servers {
    /// Serves one file of this content, whatever is asked for, at each address.
    pub(crate) fn of_file(
        namespace: &Namespace,
        addresses: &[Ipv4Addr],
        content: Vec<u8>,
    ) -> Result<Self, Failure> {
        let addresses: Vec<_> =
            addresses.iter().map(|address| SocketAddrV4::new(*address, PORT)).collect();
        Self::start(namespace, &addresses, Arc::new(move |stream| serve(stream, &content)))
    }

    /// Sends the first bytes of each connection back and hangs up.
    pub(crate) fn of_echoes(namespace: &Namespace, address: SocketAddrV4) -> Result<Self, Failure> {
        let serve = |mut stream: TcpStream| {
            let mut message = [0; HEAD];
            let length = stream.read(&mut message)?;
            stream.write_all(&message[..length])
        };
        Self::start(namespace, &[address], Arc::new(serve))
    }

    /// Sends as much as possible to one port of an address, and receives as much on another.
    pub(crate) fn of_bulk(namespace: &Namespace, address: Ipv4Addr) -> Result<Self, Failure> {
        let serve = |mut stream: TcpStream| {
            let mut buffer = vec![0x6e; 64 << 10];
            if stream.local_addr()?.port() == BULK[Bulk::Down as usize] {
                loop {
                    stream.write_all(&buffer)?;
                }
            }
            while stream.read(&mut buffer)? > 0 {}
            Ok(())
        };
        Self::start(namespace, &BULK.map(|port| SocketAddrV4::new(address, port)), Arc::new(serve))
    }

    fn start(
        namespace: &Namespace,
        addresses: &[SocketAddrV4],
        serve: Serve,
    ) -> Result<Self, Failure> {
        let ended = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for address in addresses {
            let listener = namespace.enter(|| TcpListener::bind(address))?;
            listener.set_nonblocking(true)?;
            let (ended, serve) = (Arc::clone(&ended), Arc::clone(&serve));
            threads.push(thread::spawn(move || accept(&listener, &serve, &ended)));
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

fn accept(listener: &TcpListener, serve: &Serve, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        let mut ready = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut ready, PollTimeout::from(POLL_MS));
        while let Ok((stream, _)) = listener.accept() {
            let serve = Arc::clone(serve);
            let serve = move || {
                // A client that goes away is its own business.
                let _ = stream.set_nonblocking(false).and_then(|()| serve(stream));
            };
            if thread::Builder::new().stack_size(STACK).spawn(serve).is_err() {
                return;
            }
        }
    }
}

/// Answers requests until the client hangs up or asks for the end.
fn serve(mut stream: TcpStream, content: &[u8]) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: nigh-bench\r\nContent-Type: application/octet-stream\r\n\
         Content-Length: {}\r\n\r\n",
        content.len()
    );
    let mut request = Vec::with_capacity(HEAD);
    loop {
        request.clear();
        if read_head(&mut stream, &mut request)?.is_none() {
            return Ok(());
        }
        stream.write_all(head.as_bytes())?;
        stream.write_all(content)?;
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
        if let Some(end) = head_end(into) {
            return Ok(Some(end));
        }
        if into.len() > 4 * HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

/// Where the head of a request or an answer ends, its empty line included.
pub(crate) fn head_end(bytes: &[u8]) -> Option<usize> {
    find(bytes, b"\r\n\r\n").map(|at| at + 4)
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn contains(bytes: &[u8], what: &[u8]) -> bool {
    find(bytes, what).is_some()
}
