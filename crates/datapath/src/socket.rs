//! Raw ICMP sockets, packet sockets and UDP sockets, many packets to a system call.
//!
//! [`Socket`] is one of three kinds: raw (`socket(AF_INET or AF_INET6, SOCK_RAW, ICMP)`, the kernel
//! makes the IP header), packet (`AF_PACKET`, whole Ethernet frames) or datagram (UDP, connected).
//! All send with `sendmmsg` and receive with `recvmmsg`; each packet received carries the kernel's
//! receive timestamp.

use std::{
    io, mem,
    net::{IpAddr, SocketAddr},
    os::fd::{AsFd, AsRawFd},
    ptr,
    time::Duration,
};

use crate::datagrams;
pub use crate::datagrams::BATCH;
use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Type};

/// Receive buffer in bytes; held twice as large by the kernel, which counts its own overhead.
const RECEIVE_BUFFER: usize = 32 << 20;

/// A socket could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("opening a {kind} socket: {source}; it needs CAP_NET_RAW (run as root)")]
pub struct OpenError {
    kind: &'static str,
    source: io::Error,
}

/// A raw or packet socket.
#[derive(Debug)]
pub struct Socket(socket2::Socket);

/// What is received by a packet socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receive {
    /// Frames of the interface that come in; those that go out are skipped.
    Incoming,
    /// Nothing: the socket only sends.
    Nothing,
}

impl Socket {
    /// A raw socket for ICMP with one address.
    ///
    /// Packets are ICMP messages. The kernel adds the IP header, and for IPv6 the checksum. What is
    /// received comes from that address only: for IPv4 with the IP header, for IPv6 without.
    ///
    /// # Errors
    /// When the kernel refuses, as without CAP_NET_RAW, or there is no route to the address.
    pub fn raw(peer: IpAddr, ttl: u8) -> Result<Self, OpenError> {
        let (domain, protocol) = match peer {
            IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
            IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
        };
        let open = || {
            let socket = socket2::Socket::new(domain, Type::RAW, Some(protocol))?;
            match peer {
                IpAddr::V4(_) => socket.set_ttl_v4(ttl.into())?,
                IpAddr::V6(_) => socket.set_unicast_hops_v6(ttl.into())?,
            }
            socket.connect(&SocketAddr::new(peer, 0).into())?;
            prepare(&socket)?;
            Ok(Self(socket))
        };
        open().map_err(|source| OpenError { kind: "raw ICMP", source })
    }

    /// A packet socket on the interface with this index. Packets are Ethernet frames without check
    /// sequence.
    ///
    /// # Errors
    /// When the kernel refuses, as without CAP_NET_RAW, or there is no such interface.
    pub fn packet(interface: u32, receive: Receive) -> Result<Self, OpenError> {
        // ETH_P_ALL in network order, as the kernel wants it.
        let all = (libc::ETH_P_ALL as u16).to_be();
        let protocol = if receive == Receive::Incoming { all } else { 0 };
        let open = || {
            // With protocol 0 nothing is queued before the socket is bound to its interface.
            let socket = socket2::Socket::new(Domain::PACKET, Type::RAW, Some(0.into()))?;
            set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
            prepare(&socket)?;
            socket.bind(&link_address(interface, protocol))?;
            Ok(Self(socket))
        };
        open().map_err(|source| OpenError { kind: "packet", source })
    }

    /// A connected UDP socket. Packets are datagrams' payloads.
    ///
    /// # Errors
    /// When the kernel refuses what is set.
    pub fn datagram(socket: std::net::UdpSocket) -> io::Result<Self> {
        let socket = socket2::Socket::from(socket);
        socket.set_nonblocking(false)?;
        prepare(&socket)?;
        Ok(Self(socket))
    }

    /// Sets how long [`Socket::receive`] waits for a first packet.
    ///
    /// # Errors
    /// When the time is 0.
    pub fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.0.set_read_timeout(Some(timeout))
    }

    /// The address that packets are sent from, of a raw socket.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn local_address(&self) -> io::Result<IpAddr> {
        let address = self.0.local_addr()?.as_socket();
        address.map(|a| a.ip()).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }

    /// Sends packets of `length` bytes that lie one behind the other, at most [`BATCH`] of them,
    /// and returns how many the kernel took.
    ///
    /// # Errors
    /// When the kernel did not take the first one.
    pub fn send(&self, packets: &[u8], length: usize) -> io::Result<usize> {
        // SAFETY: all zeros is a valid mmsghdr: null pointers and lengths of 0.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
        let mut vectors = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH];
        let mut count = 0;
        for packet in packets.chunks_exact(length).take(BATCH) {
            vectors[count].iov_base = packet.as_ptr().cast_mut().cast();
            vectors[count].iov_len = length;
            headers[count].msg_hdr.msg_iov = &raw mut vectors[count];
            headers[count].msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        // SAFETY: `count` headers point to vectors that point into `packets`; the kernel only reads
        // the packets, and all of it outlives the call.
        let sent = unsafe {
            libc::sendmmsg(self.0.as_raw_fd(), headers.as_mut_ptr(), count as libc::c_uint, 0)
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Receives up to [`BATCH`] packets; waits for the first one only. None if none came within the
    /// timeout.
    ///
    /// # Errors
    /// When the kernel reports one for the socket.
    pub fn receive<'a>(
        &self,
        buffer: &'a mut Buffer,
    ) -> io::Result<impl Iterator<Item = Received<'a>>> {
        match buffer.0.fill(self.0.as_fd(), libc::MSG_WAITFORONE) {
            Ok(_) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
        Ok(buffer.0.datagrams().map(|(bytes, envelope)| {
            let stamp = envelope.control(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
            Received { bytes, stamp: stamp.and_then(datagrams::timespec_ns) }
        }))
    }

    /// Packets that came but were dropped, as the receive buffer was full.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn overruns(&self) -> io::Result<u64> {
        let mut numbers = [0u32; 9];
        let mut length = mem::size_of_val(&numbers) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into `numbers`.
        let result = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MEMINFO,
                numbers.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        // SK_MEMINFO_DROPS of linux/sock_diag.h.
        Ok(numbers[8].into())
    }
}

/// Timestamps on, large buffers where they are allowed.
fn prepare(socket: &socket2::Socket) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    let size = RECEIVE_BUFFER as libc::c_int;
    // Beyond the limit of the system only for the administrator; others get what the limit allows.
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, size)
        .or_else(|_| socket.set_recv_buffer_size(RECEIVE_BUFFER))?;
    let size = (RECEIVE_BUFFER / 8) as libc::c_int;
    set(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, size)
        .or_else(|_| socket.set_send_buffer_size(RECEIVE_BUFFER / 8))
}

/// Sets an option whose value is an int.
pub(crate) fn set(
    socket: impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the kernel reads an int from where `value` is.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            mem::size_of_val(&value) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

pub(crate) fn link_address(interface: u32, protocol: u16) -> SockAddr {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: the storage is larger than a sockaddr_ll, is aligned for every address, and all zeros
    // is a valid sockaddr_ll.
    let address = unsafe { storage.view_as::<libc::sockaddr_ll>() };
    address.sll_family = libc::AF_PACKET as libc::sa_family_t;
    address.sll_protocol = protocol;
    address.sll_ifindex = interface as libc::c_int;
    // SAFETY: the storage holds a sockaddr_ll, and the length is that of one.
    unsafe { SockAddr::new(storage, mem::size_of::<libc::sockaddr_ll>() as libc::socklen_t) }
}

/// Room for the packets of one system call.
pub struct Buffer(datagrams::Received);

/// A packet that was received.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// When the kernel received it: nanoseconds since 1970.
    pub stamp: Option<u64>,
}

impl Buffer {
    /// Room for packets of up to `each` bytes; longer ones are cut.
    ///
    /// # Panics
    /// When `each` is 0.
    pub fn new(each: usize) -> Self {
        Self(datagrams::Received::new(each))
    }
}
