//! The accepting end: listen(2) at a configured port takes sessions.
//!
//! The program's listening socket is replaced by one on loopback, under its number; a thread of this library holds the
//! real addresses, and for each session connects to the program's socket. Other processes can connect to that as well:
//! only connections whose port this library has written down before are given to the program.

use crate::{
    call::Call,
    live::{self, Live},
    names,
    pairs::{self, Kind, Pair},
    real, setup,
};
use libc::c_int;
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::eventfd::{EfdFlags, EventFd},
};
use psock::{Config, PerProcess, PsockListener, PsockStream};
use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::{AsFd, AsRawFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// How long addresses may take to be given back, and between two looks at whether they are.
const GIVEN_BACK: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(2);

/// A listening socket of the program.
struct Listening {
    fd: c_int,
    /// Set when sessions are not to be taken any more.
    end: Arc<EventFd>,
}

static LISTENING: PerProcess<Mutex<Vec<Listening>>> = PerProcess::new();
/// How many they are: most programs have none, and close(2) is called often.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn all() -> MutexGuard<'static, Vec<Listening>> {
    LISTENING.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether there is any listening socket.
pub(crate) fn any() -> bool {
    COUNT.load(Ordering::Relaxed) > 0
}

/// Takes sessions at the port of a socket, if that is a configured one.
pub(crate) fn listen(fd: c_int, backlog: c_int) -> io::Result<Call> {
    let Some(setup) = setup::get()? else { return Ok(Call::Pass) };
    if !names::is_tcp(fd) || names::listening(fd).is_some() {
        return Ok(Call::Pass);
    }
    let Some(address) = names::kernel_local(fd) else { return Ok(Call::Pass) };
    if !setup.ports.contains(&address.port()) {
        return Ok(Call::Pass);
    }
    pairs::prepare()?;
    let mut config: Config = setup.config()?.clone();
    config.limits.backlog = usize::try_from(backlog).unwrap_or_default().max(1);
    let mut addresses = vec![address];
    // A socket of IPv6 without an address is one of IPv4 as well, unless it says that it is not.
    if address.is_ipv6()
        && address.ip().is_unspecified()
        && !SockRef::from(&names::borrow(fd)).only_v6()?
    {
        addresses.push(SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())));
    }
    let listener = bind_beside(fd, &addresses, &config)?;
    listener.set_nonblocking(true);
    let inner = replace(fd, backlog)?;
    let end = Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC)?);
    let pair = Pair { kind: Kind::Listening, other: 0, peer: address, local: address };
    pairs::put(inner.port(), pair);
    let stop = Arc::clone(&end);
    live::spawn(move || {
        take(&listener, inner, &stop);
        pairs::remove(inner.port());
    })?;
    all().push(Listening { fd, end });
    COUNT.fetch_add(1, Ordering::Relaxed);
    Ok(Call::Done(0))
}

/// Takes the addresses that the program's socket still has, which stays as it is when that fails. Both may have them
/// for as long as one does not listen and both say that they share (socket(7), SO_REUSEADDR).
fn bind_beside(fd: c_int, addresses: &[SocketAddr], config: &Config) -> io::Result<PsockListener> {
    let program = names::borrow(fd);
    let program = SockRef::from(&program);
    let before = program.reuse_address()?;
    program.set_reuse_address(true)?;
    let listener = bind(addresses, config);
    if listener.is_err() {
        program.set_reuse_address(before)?;
    }
    listener
}

/// Takes the addresses. A program that closes its socket and listens anew may find the ones before not given back yet.
fn bind(addresses: &[SocketAddr], config: &Config) -> io::Result<PsockListener> {
    let begin = Instant::now();
    loop {
        match PsockListener::bind(addresses, config).map_err(io::Error::from) {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse && begin.elapsed() < GIVEN_BACK =>
            {
                thread::sleep(LOOK);
            }
            result => return result,
        }
    }
}

/// Puts a socket that listens on loopback in the place of the program's; returns its address.
fn replace(fd: c_int, backlog: c_int) -> io::Result<SocketAddr> {
    let loopback: SocketAddr = match names::is_ipv6(fd) {
        true => (Ipv6Addr::LOCALHOST, 0).into(),
        false => (Ipv4Addr::LOCALHOST, 0).into(),
    };
    let inner = Socket::new(Domain::for_address(loopback), Type::STREAM.cloexec(), None)?;
    inner.bind(&SockAddr::from(loopback))?;
    if real::listen(inner.as_raw_fd(), backlog) < 0 {
        return Err(io::Error::last_os_error());
    }
    let program = names::borrow(fd);
    let flags = fcntl(program, FcntlArg::F_GETFL)?;
    fcntl(&inner, FcntlArg::F_SETFL(OFlag::from_bits_retain(flags)))?;
    let cloexec = fcntl(program, FcntlArg::F_GETFD)? & libc::FD_CLOEXEC != 0;
    let flags = if cloexec { libc::O_CLOEXEC } else { 0 };
    // SAFETY: dup3(2) takes numbers; what it closes is the socket that is replaced.
    Errno::result(unsafe { libc::dup3(inner.as_raw_fd(), fd, flags) })?;
    names::kernel_local(fd).ok_or_else(|| io::ErrorKind::NotConnected.into())
}

/// Takes sessions until the program closes its socket.
fn take(listener: &PsockListener, inner: SocketAddr, end: &EventFd) {
    loop {
        let mut files = [
            PollFd::new(listener.as_fd(), PollFlags::POLLIN),
            PollFd::new(end.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut files, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return,
        }
        if files[1].any() == Some(true) {
            return;
        }
        // A session may be gone again.
        let Ok((stream, peer)) = listener.accept() else { continue };
        if hand_over(stream, peer, inner)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        {
            return;
        }
    }
}

/// Connects a session with the program's listening socket; when that fails, the peer sees an error.
fn hand_over(stream: PsockStream, peer: SocketAddr, inner: SocketAddr) -> io::Result<()> {
    let live = Live::new();
    match knock(stream.local(), peer, inner) {
        Ok(socket) => live::carry(live, stream, socket.into()),
        Err(error) => {
            stream.abort();
            Err(error)
        }
    }
}

/// Connects to the program's listening socket from a port that is written down.
fn knock(local: SocketAddr, peer: SocketAddr, inner: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(inner), Type::STREAM.cloexec(), None)?;
    socket.bind(&SockAddr::from(SocketAddr::new(inner.ip(), 0)))?;
    let own = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
    // Before the program can see the connection.
    pairs::put(own.port(), Pair { kind: Kind::Waiting, other: inner.port(), peer, local });
    let connected =
        socket.connect(&SockAddr::from(inner)).and_then(|()| socket.set_tcp_nodelay(true));
    if let Err(error) = connected {
        // Nobody may come from this port later in the name of this session.
        pairs::remove(own.port());
        return Err(error);
    }
    Ok(socket)
}

/// The next connection of a listening socket that is ours, and its peer's address; `None` where the socket is not.
pub(crate) fn accept(fd: c_int, flags: c_int) -> io::Result<Option<(c_int, SocketAddr)>> {
    let Some(_) = names::listening(fd) else { return Ok(None) };
    loop {
        let none = std::ptr::null_mut();
        // SAFETY: without an address there is nothing to write.
        let socket = unsafe { real::accept4(fd, none, std::ptr::null_mut(), flags) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        let ends = names::kernel_local(socket).zip(names::kernel_peer(socket));
        let waiting = ends.filter(|(local, peer)| pairs::take(peer.port(), local.port()));
        if let Some(pair) = waiting.and_then(|(_, peer)| pairs::get(peer.port())) {
            return Ok(Some((socket, names::shown(fd, pair.peer))));
        }
        // It did not come through psock: it is nobody whom the program should meet.
        real::close(socket);
    }
}

/// The program closes a descriptor: if it was a listening socket of this process, sessions are no longer taken.
pub(crate) fn closing(fd: c_int) {
    let mut all = all();
    if let Some(at) = all.iter().position(|one| one.fd == fd) {
        let closed = all.swap_remove(at);
        COUNT.fetch_sub(1, Ordering::Relaxed);
        let _ = closed.end.write(1);
    }
}
