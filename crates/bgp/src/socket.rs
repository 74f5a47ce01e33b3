//! The TCP connection of a session: bound, protected and opened.
//!
//! TCP MD5 (RFC 2385 section 2) and the minimum TTL of GTSM (RFC 5082 section 3) are socket options for
//! which no crate has a ready type. nix exports the macro with which it makes its own option types; the
//! types made with it here hand the kernel an integer or a plain array of bytes to read, nothing else.

use crate::{
    config::Password,
    header::{self, TTL},
};
use nix::{libc, setsockopt_impl, sockopt_impl, sys::socket::setsockopt};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::{
    io,
    net::{IpAddr, SocketAddr},
};
use tokio::net::{TcpSocket, TcpStream};

/// `sizeof(struct tcp_md5sig)` (linux/tcp.h): sockaddr_storage, flags, prefix length, key length,
/// interface index, key.
const MD5_SIZE: usize = 128 + 1 + 1 + 2 + 4 + 80;

sockopt_impl!(
    /// The least TTL that is taken (ip(7), IP_MINTTL).
    MinTtl,
    SetOnly,
    libc::IPPROTO_IP,
    libc::IP_MINTTL,
    i32
);

sockopt_impl!(
    /// The least hop limit that is taken (linux/in6.h, IPV6_MINHOPCOUNT).
    MinHopCount,
    SetOnly,
    libc::IPPROTO_IPV6,
    libc::IPV6_MINHOPCOUNT,
    i32
);

sockopt_impl!(
    /// A key for the segments to and from one address (tcp(7), TCP_MD5SIG), as `struct tcp_md5sig`.
    Md5Signature,
    SetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_MD5SIG,
    [u8; MD5_SIZE]
);

/// How to reach the neighbour.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) peer: SocketAddr,
    pub(crate) local: Option<IpAddr>,
    pub(crate) password: Option<Password>,
    pub(crate) ttl_security: bool,
}

/// Opens the connection.
///
/// # Errors
/// The system's error, with the step that failed.
pub(crate) async fn connect(target: Target) -> io::Result<TcpStream> {
    let socket = prepare(&target)?;
    let stream = TcpSocket::from_std_stream(socket.into()).connect(target.peer).await;
    stream.map_err(|error| named(&format!("connecting to {}", target.peer), &error))
}

fn prepare(target: &Target) -> io::Result<Socket> {
    let domain = Domain::for_address(target.peer);
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket = Socket::new(domain, kind, Some(Protocol::TCP))?;
    header::set_class(&socket, domain)?;
    // A withdrawal must not wait for the acknowledgement of what went before it.
    socket.set_tcp_nodelay(true)?;
    if target.ttl_security {
        header::set_ttl(&socket, domain)?;
        let set = if domain == Domain::IPV4 {
            setsockopt(&socket, MinTtl, &(TTL as i32))
        } else {
            setsockopt(&socket, MinHopCount, &(TTL as i32))
        };
        set.map_err(|error| named("setting the minimum TTL", &error.into()))?;
    }
    if let Some(password) = &target.password {
        setsockopt(&socket, Md5Signature, &md5_signature(target.peer.ip(), password.bytes()))
            .map_err(|error| named("setting the TCP MD5 key", &error.into()))?;
    }
    if let Some(local) = target.local {
        socket
            .bind(&SockAddr::from(SocketAddr::new(local, 0)))
            .map_err(|error| named(&format!("binding to {local}"), &error))?;
    }
    Ok(socket)
}

/// `struct tcp_md5sig` for a neighbour; numbers are in the host's order, the address in the network's.
fn md5_signature(peer: IpAddr, key: &[u8]) -> [u8; MD5_SIZE] {
    let mut bytes = [0; MD5_SIZE];
    let family = match peer {
        IpAddr::V4(address) => {
            bytes[4..8].copy_from_slice(&address.octets());
            libc::AF_INET
        }
        IpAddr::V6(address) => {
            bytes[8..24].copy_from_slice(&address.octets());
            libc::AF_INET6
        }
    };
    bytes[..2].copy_from_slice(&(family as u16).to_ne_bytes());
    let length = key.len().min(80);
    bytes[130..132].copy_from_slice(&(length as u16).to_ne_bytes());
    bytes[136..136 + length].copy_from_slice(&key[..length]);
    bytes
}

/// The same error with the step at which it came.
fn named(step: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{step}: {error}"))
}
