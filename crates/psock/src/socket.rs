//! TCP sockets as a session wants them.

use crate::{Config, Endpoint, Local, Path};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::{io, net::SocketAddr, time::Duration};
use tokio::net::{TcpSocket, TcpStream};

/// Bytes that the kernel takes beyond what it can send at once. A block that waits in the kernel can
/// no longer go over a better path, so it is kept small; with too little the path would run dry
/// between two turns of the protocol task.
const UNSENT_BYTES: u32 = 128 * 1024;

/// An idle connection is asked this often whether its path still works.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Opens a connection over a path; the caller bounds the time.
pub(crate) async fn connect(path: &Path, config: &Config) -> io::Result<TcpStream> {
    let domain = Domain::for_address(path.remote);
    let socket = Socket::new(domain, Type::STREAM.nonblocking().cloexec(), Some(Protocol::TCP))?;
    match &path.local {
        Some(Local::Address(address)) => socket.bind(&SocketAddr::new(*address, 0).into())?,
        Some(Local::Interface(name)) => socket.bind_device(Some(name.as_bytes()))?,
        None => {}
    }
    tune(SockRef::from(&socket), config)?;
    TcpSocket::from_std_stream(socket.into()).connect(path.remote).await
}

/// Sets what every connection of a session has, made or accepted.
pub(crate) fn tune(socket: SockRef<'_>, config: &Config) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_notsent_lowat(UNSENT_BYTES)?;
    socket.set_tcp_user_timeout(Some(config.path_timeout))?;
    let keepalive = TcpKeepalive::new().with_time(ASK_EVERY).with_interval(ASK_EVERY);
    socket.set_tcp_keepalive(&keepalive)?;
    congestion(socket, config)
}

fn congestion(socket: SockRef<'_>, config: &Config) -> io::Result<()> {
    if let Some(name) = &config.congestion {
        socket.set_tcp_congestion(name.as_bytes()).map_err(|error| {
            io::Error::new(error.kind(), format!("congestion control {name:?}: {error}"))
        })?;
    }
    Ok(())
}

/// Opens a listening socket. One for the unspecified IPv6 address takes IPv6 alone, so that both
/// families can listen at one port.
pub(crate) fn listen(endpoint: &Endpoint, config: &Config) -> io::Result<std::net::TcpListener> {
    let address = endpoint.address;
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM.nonblocking().cloexec(), Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if let Some(interface) = &endpoint.interface {
        socket.bind_device(Some(interface.as_bytes()))?;
    }
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Whoever connects gets it anyway; here it is known whether it can be had.
    congestion(SockRef::from(&socket), config)?;
    socket.bind(&address.into())?;
    // A session has several connections, so the kernel's queue is not the sessions'.
    socket.listen(config.limits.handshakes.try_into().unwrap_or(i32::MAX))?;
    Ok(socket.into())
}
