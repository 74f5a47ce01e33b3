//! The addresses of a socket: those that the kernel knows, on loopback, and those of the session behind it.

use crate::{
    pairs::{self, Kind, Pair},
    real,
};
use libc::{c_int, sockaddr, socklen_t};
use socket2::{Domain, SockAddr, SockRef, Type};
use std::{
    net::{SocketAddr, SocketAddrV6},
    os::fd::BorrowedFd,
};

type Ask = unsafe fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int;

fn ask(fd: c_int, ask: Ask) -> Option<SocketAddr> {
    let fill = |storage: *mut socket2::SockAddrStorage, length: *mut socklen_t| {
        // SAFETY: `try_init` points at room for every address, and at how much that is.
        match unsafe { ask(fd, storage.cast(), length) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: where it succeeds, the function has written an address and its length.
    let ((), address) = unsafe { SockAddr::try_init(fill) }.ok()?;
    address.as_socket()
}

/// This end's address as the kernel knows it.
pub(crate) fn kernel_local(fd: c_int) -> Option<SocketAddr> {
    ask(fd, real::getsockname)
}

/// The peer's address as the kernel knows it.
pub(crate) fn kernel_peer(fd: c_int) -> Option<SocketAddr> {
    ask(fd, real::getpeername)
}

/// Whether an address is one of loopback, also as IPv6 writes one of IPv4.
fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// The session behind a socket of the program, or what a listening one stands for.
pub(crate) fn pair(fd: c_int) -> Option<Pair> {
    let local = kernel_local(fd).filter(|local| is_loopback(*local))?;
    match kernel_peer(fd) {
        Some(peer) => {
            let connected = pairs::get(local.port())
                .filter(|pair| pair.kind == Kind::Connected && pair.other == peer.port());
            connected.or_else(|| {
                pairs::get(peer.port())
                    .filter(|pair| pair.kind == Kind::Accepted && pair.other == local.port())
            })
        }
        None => listening(fd),
    }
}

/// What a listening socket of the program stands for.
pub(crate) fn listening(fd: c_int) -> Option<Pair> {
    let local = kernel_local(fd).filter(|local| is_loopback(*local))?;
    pairs::get(local.port()).filter(|pair| pair.kind == Kind::Listening)
}

/// The real address of the peer of a socket that is ours.
pub(crate) fn peer(fd: c_int) -> Option<SocketAddr> {
    let pair = pair(fd).filter(|pair| pair.kind != Kind::Listening)?;
    Some(shown(fd, pair.peer))
}

/// The real address of a socket that is ours.
pub(crate) fn local(fd: c_int) -> Option<SocketAddr> {
    Some(shown(fd, pair(fd)?.local))
}

/// An address as a socket of this family shows it: one of IPv6 has only addresses of IPv6.
pub(crate) fn shown(fd: c_int, address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if is_ipv6(fd) => {
            SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0).into()
        }
        address => address,
    }
}

/// An address without the form that IPv6 has for those of IPv4.
pub(crate) fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip if ip != address.ip() => SocketAddr::new(ip, address.port()),
        _ => address,
    }
}

/// Whether a socket of the program is one of IPv6.
pub(crate) fn is_ipv6(fd: c_int) -> bool {
    SockRef::from(&borrow(fd)).domain().is_ok_and(|domain| domain == Domain::IPV6)
}

/// Whether it is a TCP socket.
pub(crate) fn is_tcp(fd: c_int) -> bool {
    let fd = borrow(fd);
    let socket = SockRef::from(&fd);
    socket.r#type().is_ok_and(|kind| kind == Type::STREAM)
        && socket.domain().is_ok_and(|domain| [Domain::IPV4, Domain::IPV6].contains(&domain))
}

/// A descriptor of the program, for the time of its call.
pub(crate) fn borrow(fd: c_int) -> BorrowedFd<'static> {
    // SAFETY: it is the program's, which is in a call with it; at worst the system says that it is none. -1, which
    // must not be borrowed, has no address and is passed on before.
    unsafe { BorrowedFd::borrow_raw(fd) }
}
