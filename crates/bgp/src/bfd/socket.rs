//! The port on which the sessions receive, and those from which they send (RFC 5881 sections 3 to 5).

use super::{
    PORT,
    link::{self, Links},
    packet::Packet,
};
use crate::header::{self, TTL};
use nix::{
    cmsg_space, libc,
    sys::socket::{
        ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt,
        sockopt::{Ipv4PacketInfo, Ipv6RecvPacketInfo},
    },
};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use std::{
    collections::HashMap,
    io::{self, IoSliceMut},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    ops::RangeInclusive,
    os::fd::AsRawFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::{
    io::Interest,
    net::UdpSocket,
    sync::{
        self,
        mpsc::{self, Receiver, Sender},
    },
    task::AbortHandle,
};

/// Ports to send from (RFC 5881 section 4).
const SOURCES: RangeInclusive<u16> = 49152..=65535;
/// Packets that wait for a session; further ones are lost.
const WAITING: usize = 16;
/// Most packets that are taken from the port at once.
const AT_ONCE: usize = 256;
/// How long the port is left alone after an error.
const PAUSE: Duration = Duration::from_secs(1);

/// Receives the control packets of all sessions of this process. The port is open while there are sessions.
#[derive(Clone, Debug, Default)]
pub struct Listener(Arc<Mutex<[Weak<Port>; 2]>>);

/// The port, for one family of addresses.
#[derive(Debug)]
struct Port {
    shared: Arc<Shared>,
    receiving: AbortHandle,
}

/// What the task that receives has in common with the sessions.
#[derive(Debug)]
struct Shared {
    socket: UdpSocket,
    neighbours: Mutex<HashMap<IpAddr, Neighbour>>,
    links: Mutex<Links>,
}

/// Where a neighbour's packets go: to the session that holds the lock, one at a time.
#[derive(Clone, Debug)]
struct Neighbour {
    sender: Sender<Packet>,
    packets: Arc<sync::Mutex<Receiver<Packet>>>,
}

/// A session's place among those with its neighbour.
#[derive(Debug)]
pub(super) struct Place {
    packets: Arc<sync::Mutex<Receiver<Packet>>>,
    port: Arc<Port>,
}

/// Where the one session with a neighbour receives.
#[derive(Debug)]
pub(super) struct Inbox {
    packets: sync::OwnedMutexGuard<Receiver<Packet>>,
    port: Arc<Port>,
}

impl Listener {
    /// A place to receive the packets of a neighbour on this link.
    ///
    /// # Errors
    /// The port is taken, such as by another BFD daemon.
    pub(super) fn place(&self, peer: IpAddr) -> io::Result<Place> {
        let mut ports = lock(&self.0);
        let open = &mut ports[usize::from(peer.is_ipv6())];
        let port = match open.upgrade() {
            Some(port) => port,
            None => {
                let shared = Arc::new(Shared {
                    socket: listen(peer)?,
                    neighbours: Mutex::default(),
                    links: Mutex::default(),
                });
                let receiving = panics::spawn(receive(shared.clone())).abort_handle();
                let port = Arc::new(Port { shared, receiving });
                *open = Arc::downgrade(&port);
                port
            }
        };
        let neighbour =
            lock(&port.shared.neighbours).entry(peer).or_insert_with(Neighbour::new).clone();
        Ok(Place { packets: neighbour.packets, port })
    }
}

impl Neighbour {
    fn new() -> Self {
        let (sender, packets) = mpsc::channel(WAITING);
        Self { sender, packets: Arc::new(sync::Mutex::new(packets)) }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.receiving.abort();
    }
}

impl Place {
    /// Waits until no other session has the neighbour: at a reload, until the old one has ended.
    pub(super) async fn take(&self) -> Inbox {
        let mut packets = self.packets.clone().lock_owned().await;
        // What came for the session before.
        while packets.try_recv().is_ok() {}
        Inbox { packets, port: self.port.clone() }
    }
}

impl Inbox {
    /// The next packet. Cancelling it loses none.
    pub(super) async fn next(&mut self) -> Option<Packet> {
        self.packets.recv().await
    }

    /// A packet that has arrived already, though this thread has not come to receive it yet.
    pub(super) fn arrived(&mut self) -> Option<Packet> {
        self.packets.try_recv().ok().or_else(|| {
            self.port.shared.receive_waiting();
            self.packets.try_recv().ok()
        })
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen(peer: IpAddr) -> io::Result<UdpSocket> {
    let domain = Domain::for_address((peer, PORT).into());
    let socket = open(domain)?;
    match domain {
        Domain::IPV4 => setsockopt(&socket, Ipv4PacketInfo, &true)?,
        _ => setsockopt(&socket, Ipv6RecvPacketInfo, &true)?,
    }
    socket.attach_filter(&from_the_link(domain))?;
    socket.bind(&SocketAddr::new(any(peer), PORT).into()).map_err(|error| {
        let why = format!("UDP port {PORT}: {error}; does another BFD daemon run here?");
        io::Error::new(error.kind(), why)
    })?;
    UdpSocket::from_std(socket.into())
}

/// Lets the kernel drop what a router has forwarded, so that it takes no room from the neighbour's packets.
fn from_the_link(domain: Domain) -> [SockFilter; 4] {
    // The field TTL of IPv4 (RFC 791 section 3.1), Hop Limit of IPv6 (RFC 8200 section 3).
    let field = if domain == Domain::IPV4 { 8 } else { 7 };
    let instruction = |code: u32, jf, k| SockFilter::new(code as u16, 0, jf, k);
    [
        instruction(
            libc::BPF_LD | libc::BPF_B | libc::BPF_ABS,
            0,
            (libc::SKF_NET_OFF + field) as u32,
        ),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, TTL),
        instruction(libc::BPF_RET | libc::BPF_K, 0, u32::MAX),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0),
    ]
}

/// A socket that sends to the neighbour, from `local` if that is given.
///
/// # Errors
/// The system's error.
pub(super) fn sender(peer: IpAddr, local: Option<IpAddr>, random: u64) -> io::Result<Socket> {
    let domain = Domain::for_address((peer, PORT).into());
    let socket = open(domain)?;
    header::set_ttl(&socket, domain)?;
    header::set_class(&socket, domain)?;
    let from = local.unwrap_or(any(peer));
    let count = SOURCES.len() as u64;
    let ports = (0..count).map(|step| SOURCES.start() + ((random % count + step) % count) as u16);
    let mut refused = io::ErrorKind::AddrInUse.into();
    for port in ports {
        match socket.bind(&SocketAddr::new(from, port).into()) {
            Ok(()) => return Ok(socket),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => refused = error,
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

/// All addresses of this host of the neighbour's family.
fn any(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

fn open(domain: Domain) -> io::Result<Socket> {
    let socket = Socket::new(domain, Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))?;
    if domain == Domain::IPV6 {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

/// Hands packets to their sessions.
async fn receive(shared: Arc<Shared>) {
    loop {
        let received = shared.socket.async_io(Interest::READABLE, || shared.receive_one()).await;
        if let Err(error) = received {
            tracing::warn!(%error, "BFD: cannot receive");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Shared {
    /// Receives what has arrived.
    fn receive_waiting(&self) {
        for _ in 0..AT_ONCE {
            if self.receive_one().is_err() {
                return;
            }
        }
    }

    /// Receives a packet; what is not valid, or not from a neighbour on its own link, is discarded.
    fn receive_one(&self) -> io::Result<()> {
        let mut bytes = [0; 256];
        let mut fields = cmsg_space!(libc::in6_pktinfo);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let received = recvmsg::<SockaddrStorage>(
            self.socket.as_raw_fd(),
            &mut parts,
            Some(&mut fields),
            MsgFlags::MSG_DONTWAIT,
        )?;
        let interface = received.cmsgs()?.find_map(|field| match field {
            ControlMessageOwned::Ipv4PacketInfo(info) => u32::try_from(info.ipi_ifindex).ok(),
            ControlMessageOwned::Ipv6PacketInfo(info) => Some(info.ipi6_ifindex),
            _ => None,
        });
        let from = received.address.as_ref().and_then(link::ip);
        let count = received.bytes;
        let (Some(from), Some(interface)) = (from, interface) else { return Ok(()) };
        let neighbours = lock(&self.neighbours);
        if let Some(neighbour) = neighbours.get(&from)
            && let Some(packet) = Packet::decode(&bytes[..count])
            && lock(&self.links).has(interface, from)
        {
            // A session that is behind misses it, as if the network had lost it.
            let _ = neighbour.sender.try_send(packet);
        }
        Ok(())
    }
}
