//! The clocks of NTP servers, inspected as a client does (RFC 5905) and not followed.

pub mod packet;
mod server;

pub use server::{Sample, Server};

use datapath::clock::unix_ns;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
    os::fd::AsFd as _,
    time::{Duration, Instant},
};

const PORT: u16 = 123;

/// How long an answer is waited for.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Asks all servers once, side by side. A new socket for each request has a port that nobody can know
/// before (RFC 9109).
pub(super) fn ask_all(servers: &mut [(IpAddr, Server)]) {
    let mut open: Vec<(UdpSocket, IpAddr, &mut Server)> = Vec::new();
    for (address, server) in servers {
        let sent = connect(*address).and_then(|socket| {
            if let Some(request) = server.ask(unix_ns().cast_signed(), rand::random()) {
                socket.send(&request)?;
                open.push((socket, *address, server));
            }
            Ok(())
        });
        if let Err(error) = sent {
            tracing::debug!("NTP server {address} cannot be queried: {error}");
        }
    }
    let deadline = Instant::now() + TIMEOUT;
    while !open.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        let ready: Vec<bool> = {
            let mut polled: Vec<_> = open
                .iter()
                .map(|(socket, ..)| PollFd::new(socket.as_fd(), PollFlags::POLLIN))
                .collect();
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
            if !matches!(poll(&mut polled, timeout), Ok(1..)) {
                return;
            }
            polled.iter().map(|socket| socket.any().unwrap_or(false)).collect()
        };
        let mut ready = ready.into_iter();
        open.retain_mut(|(socket, address, server)| {
            !ready.next().unwrap_or(false) || !answered(socket, *address, server)
        });
    }
}

/// Reads what came; whether nothing more is awaited.
fn answered(socket: &UdpSocket, address: IpAddr, server: &mut Server) -> bool {
    let mut buffer = [0; 1024];
    let received = socket.recv(&mut buffer);
    let came_ns = unix_ns().cast_signed();
    match received {
        Ok(length) => match server.receive(&buffer[..length], came_ns) {
            Ok(_) => true,
            Err(error) => {
                tracing::debug!("NTP server {address}: {error}");
                matches!(error, packet::ReplyError::Kiss(_))
            }
        },
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
        Err(error) => {
            tracing::debug!("NTP server {address}: {error}");
            true
        }
    }
}

fn connect(address: IpAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.set_nonblocking(true)?;
    socket.connect((address, PORT))?;
    Ok(socket)
}
