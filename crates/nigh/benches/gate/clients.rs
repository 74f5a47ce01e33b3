//! The load's clients: a thread for each, with a hundred connections that it waits for all at once
//! (epoll(7)), so that a slow gateway is not charged for clients that wake up for every packet.
//!
//! The body of an answer is thrown away by the kernel (MSG_TRUNC, tcp(7)).

use crate::{
    Failure,
    http::{HEAD, PORT, head_end},
};
use nix::{
    errno::Errno,
    sys::{
        epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
        socket::{MsgFlags, recv},
    },
};
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr},
    os::fd::AsRawFd,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};
use testbed::Namespace;

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

/// Clients of a load: each fetches until it is stopped.
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
        meanwhile: impl FnOnce(&Counts) -> Result<R, Failure> + Send,
    ) -> Result<R, Failure> {
        let (counts, stop) = (&Counts::default(), &AtomicBool::new(false));
        thread::scope(|scope| {
            let clients: Vec<_> = (0..self.clients.len())
                .map(|number| {
                    let client = move || -> Result<(), Failure> {
                        Client::new(self, number, counts)?.run(stop)
                    };
                    scope.spawn(move || namespace.enter(client))
                })
                .collect();
            let result = meanwhile(counts);
            stop.store(true, Ordering::Relaxed);
            for client in clients {
                client.join().map_err(|_| "a client died")??;
            }
            result
        })
    }
}

/// Where a connection is.
enum State {
    /// Nothing is open; the next file is due then.
    Idle(Instant),
    Connecting,
    /// What of the answer's head has come.
    Head(Vec<u8>),
    /// Bytes of the body that are still to come.
    Body(usize),
}

struct Connection {
    socket: Option<Socket>,
    state: State,
    /// When this file was due, and how many have been asked for.
    due: Instant,
    files: usize,
}

struct Client<'a> {
    load: &'a Load<'a>,
    number: usize,
    counts: &'a Counts,
    epoll: Epoll,
    all: Vec<Connection>,
    buffer: Vec<u8>,
}

/// Longest time without a look at whether the load has ended.
const LOOK: Duration = Duration::from_millis(20);

impl<'a> Client<'a> {
    fn new(load: &'a Load<'a>, number: usize, counts: &'a Counts) -> Result<Self, Failure> {
        let now = Instant::now();
        // A steady load begins spread over the time between two files.
        let all = (load.connections * load.clients.len()) as u32;
        let due = |n: usize| now + load.every * (n * load.clients.len() + number) as u32 / all;
        let connection =
            |n| Connection { socket: None, state: State::Idle(due(n)), due: due(n), files: n };
        Ok(Self {
            load,
            number,
            counts,
            epoll: Epoll::new(EpollCreateFlags::empty())?,
            all: (0..load.connections).map(connection).collect(),
            buffer: vec![0; 1 << 20],
        })
    }

    fn run(mut self, stop: &AtomicBool) -> Result<(), Failure> {
        let mut events = vec![EpollEvent::empty(); self.all.len()];
        while !stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            let mut wait = LOOK;
            for n in 0..self.all.len() {
                if let State::Idle(due) = self.all[n].state {
                    if due <= now {
                        self.begin(n);
                    } else {
                        wait = wait.min(due - now);
                    }
                }
            }
            let wait = EpollTimeout::from(wait.as_micros().div_ceil(1000) as u16);
            let ready = match self.epoll.wait(&mut events, wait) {
                Ok(ready) => ready,
                Err(Errno::EINTR) => 0,
                Err(error) => return Err(error.into()),
            };
            for event in &events[..ready] {
                let n = event.data() as usize;
                if self.go_on(n).is_err() {
                    self.counts.failed.fetch_add(1, Ordering::Relaxed);
                    self.all[n].socket = None;
                    self.next(n);
                }
            }
        }
        Ok(())
    }

    /// Asks for a file, over the open connection if there is one; what fails is tried again later.
    fn begin(&mut self, n: usize) {
        if self.open(n).is_err() {
            self.counts.failed.fetch_add(1, Ordering::Relaxed);
            self.all[n].socket = None;
            self.all[n].state = State::Idle(Instant::now() + LOOK);
        }
    }

    fn open(&mut self, n: usize) -> io::Result<()> {
        if self.all[n].socket.is_some() {
            return self.ask(n);
        }
        let servers = self.load.servers;
        let to =
            SocketAddr::from((servers[(self.number + self.all[n].files) % servers.len()], PORT));
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.bind(&SocketAddr::from((self.load.clients[self.number], 0)).into())?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        match socket.connect(&to.into()) {
            Err(error) if error.raw_os_error() == Some(Errno::EINPROGRESS as i32) => {}
            other => other?,
        }
        self.epoll.add(&socket, EpollEvent::new(EpollFlags::EPOLLOUT, n as u64))?;
        let connection = &mut self.all[n];
        (connection.socket, connection.state) = (Some(socket), State::Connecting);
        Ok(())
    }

    fn ask(&mut self, n: usize) -> io::Result<()> {
        let connection = &mut self.all[n];
        let mut socket = connection.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let close = match self.load.kind {
            Connections::New => "Connection: close\r\n",
            Connections::Persistent => "",
        };
        let file = connection.files;
        let request = format!("GET /file-{file}.bin HTTP/1.1\r\nHost: server.test\r\n{close}\r\n");
        // In one segment, as clients do it.
        socket.write_all(request.as_bytes())?;
        connection.state = State::Head(Vec::with_capacity(HEAD));
        Ok(())
    }

    /// What a connection does when something can be done.
    fn go_on(&mut self, n: usize) -> io::Result<()> {
        let connection = &mut self.all[n];
        let Some(socket) = &connection.socket else { return Ok(()) };
        match &mut connection.state {
            State::Connecting => {
                if let Some(error) = socket.take_error()? {
                    return Err(error);
                }
                self.epoll.modify(socket, &mut EpollEvent::new(EpollFlags::EPOLLIN, n as u64))?;
                self.ask(n)
            }
            State::Head(head) => {
                let mut chunk = [0; HEAD];
                let length = (&mut &*socket).read(&mut chunk)?;
                if length == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                head.extend_from_slice(&chunk[..length]);
                let Some(end) = head_end(head) else { return Ok(()) };
                let text = String::from_utf8_lossy(&head[..end]);
                let size = text.lines().find_map(|line| line.strip_prefix("Content-Length: "));
                let size: usize =
                    size.and_then(|text| text.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
                let here = head.len() - end;
                connection.state = State::Body(size - here.min(size));
                self.counts.bytes.fetch_add(here as u64, Ordering::Relaxed);
                Ok(())
            }
            State::Body(left) => {
                let wanted = (*left).min(self.buffer.len());
                let flags = MsgFlags::MSG_TRUNC;
                let got = match recv(socket.as_raw_fd(), &mut self.buffer[..wanted], flags) {
                    Err(Errno::EAGAIN) => return Ok(()),
                    other => other?,
                };
                if got == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                *left -= got;
                self.counts.bytes.fetch_add(got as u64, Ordering::Relaxed);
                if *left == 0 {
                    self.counts.files.fetch_add(1, Ordering::Relaxed);
                    if self.load.kind == Connections::New {
                        connection.socket = None;
                    }
                    self.next(n);
                }
                Ok(())
            }
            State::Idle(_) => {
                // Nothing was asked for, so this is the other end that hangs up.
                connection.socket = None;
                Ok(())
            }
        }
    }

    /// A file is complete: the next one is due now, or at the time that the load sets.
    fn next(&mut self, n: usize) {
        let connection = &mut self.all[n];
        connection.files += 1;
        connection.due += self.load.every;
        connection.state = State::Idle(connection.due);
        if connection.due <= Instant::now() {
            self.begin(n);
        }
    }
}
