//! The port on which the sessions receive, and those from which they send (RFC 5881 sections 4 and 5).

use super::{PORT, packet::Packet};
use nix::{
    cmsg_space,
    sys::socket::{
        ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt,
        sockopt::{Ipv4RecvTtl, Ipv6RecvHopLimit},
    },
};
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    io::{self, IoSliceMut},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::AsRawFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};
use tokio::{
    io::Interest,
    net::UdpSocket,
    sync::mpsc::{self, Receiver, Sender},
    task::AbortHandle,
};

/// The TTL of a packet that no router has forwarded (RFC 5082 section 3).
const TTL: u32 = 255;
/// Internetwork control, precedence 6, as BGP.
const CLASS: u32 = 0xc0;
/// Ports to send from (RFC 5881 section 4).
const SOURCES: std::ops::RangeInclusive<u16> = 49152..=65535;
/// Packets that wait for a session; further ones are lost.
const WAITING: usize = 16;

/// The sessions by neighbour: two with the same one at a reload, until it is decided which stays.
type Sessions = Arc<Mutex<Vec<(IpAddr, Sender<Packet>)>>>;

/// Receives the control packets of all sessions of this process. The port is open while there are sessions.
#[derive(Clone, Debug, Default)]
pub struct Listener(Arc<Mutex<[Weak<Port>; 2]>>);

/// The port, for one family of addresses.
#[derive(Debug)]
struct Port {
    sessions: Sessions,
    task: AbortHandle,
}

/// Where a session receives.
#[derive(Debug)]
pub(super) struct Inbox {
    packets: Receiver<Packet>,
    port: Arc<Port>,
}

impl Listener {
    /// Receives the packets of a neighbour on this link.
    ///
    /// # Errors
    /// The port is taken, such as by another BFD daemon.
    pub(super) fn register(&self, peer: IpAddr) -> io::Result<Inbox> {
        let mut ports = lock(&self.0);
        let open = &mut ports[usize::from(peer.is_ipv6())];
        let port = match open.upgrade() {
            Some(port) => port,
            None => {
                let socket = listen(peer)?;
                let sessions = Sessions::default();
                let task = panics::spawn(receive(socket, sessions.clone())).abort_handle();
                let port = Arc::new(Port { sessions, task });
                *open = Arc::downgrade(&port);
                port
            }
        };
        let (sender, packets) = mpsc::channel(WAITING);
        lock(&port.sessions).push((peer, sender));
        Ok(Inbox { packets, port })
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Inbox {
    /// The next packet. Cancelling it loses none.
    pub(super) async fn next(&mut self) -> Option<Packet> {
        self.packets.recv().await
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.packets.close();
        lock(&self.port.sessions).retain(|(_, sender)| !sender.is_closed());
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen(peer: IpAddr) -> io::Result<UdpSocket> {
    let (any, domain) = match peer {
        IpAddr::V4(_) => (IpAddr::V4(Ipv4Addr::UNSPECIFIED), Domain::IPV4),
        IpAddr::V6(_) => (IpAddr::V6(Ipv6Addr::UNSPECIFIED), Domain::IPV6),
    };
    let socket = open(domain)?;
    match domain {
        Domain::IPV4 => setsockopt(&socket, Ipv4RecvTtl, &true)?,
        _ => setsockopt(&socket, Ipv6RecvHopLimit, &true)?,
    }
    socket.bind(&SocketAddr::new(any, PORT).into()).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("UDP port {PORT}: {error}; does another BFD daemon run here?"),
        )
    })?;
    UdpSocket::from_std(socket.into())
}

/// A socket that sends to the neighbour, from `local` if that is given.
///
/// # Errors
/// The system's error.
pub(super) fn sender(peer: IpAddr, local: Option<IpAddr>, random: u64) -> io::Result<Socket> {
    let domain = Domain::for_address((peer, PORT).into());
    let socket = open(domain)?;
    let any = match domain {
        Domain::IPV4 => {
            socket.set_ttl_v4(TTL)?;
            socket.set_tos_v4(CLASS)?;
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        }
        _ => {
            socket.set_unicast_hops_v6(TTL)?;
            socket.set_tclass_v6(CLASS)?;
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        }
    };
    let count = SOURCES.len() as u64;
    let ports = (0..count).map(|step| SOURCES.start() + ((random % count + step) % count) as u16);
    let mut refused = io::ErrorKind::AddrInUse.into();
    for port in ports {
        match socket.bind(&SocketAddr::new(local.unwrap_or(any), port).into()) {
            Ok(()) => return Ok(socket),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => refused = error,
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

fn open(domain: Domain) -> io::Result<Socket> {
    let socket = Socket::new(domain, Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))?;
    if domain == Domain::IPV6 {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

/// Hands packets to their sessions.
async fn receive(socket: UdpSocket, sessions: Sessions) {
    loop {
        let received = socket.async_io(Interest::READABLE, || receive_one(&socket)).await;
        match received {
            Ok(Some((from, packet))) => {
                for (_, session) in lock(&sessions).iter().filter(|(peer, _)| *peer == from) {
                    // A session that is behind misses it, as if the network had lost it.
                    let _ = session.try_send(packet);
                }
            }
            Ok(None) => {}
            // Errors of a socket that only receives pass, such as a lack of memory.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// A control packet and who sent it; none if it is not valid, or has come through a router.
fn receive_one(socket: &UdpSocket) -> io::Result<Option<(IpAddr, Packet)>> {
    let mut bytes = [0; 256];
    let mut fields = cmsg_space!(i32);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let received = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut parts,
        Some(&mut fields),
        MsgFlags::MSG_DONTWAIT,
    )?;
    let direct = received.cmsgs()?.any(|field| {
        let (ControlMessageOwned::Ipv4Ttl(ttl) | ControlMessageOwned::Ipv6HopLimit(ttl)) = field
        else {
            return false;
        };
        ttl == TTL as i32
    });
    let from = received.address.and_then(|address| {
        let four = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        four.or(address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    });
    let count = received.bytes;
    Ok(from.filter(|_| direct).zip(Packet::decode(&bytes[..count])))
}
