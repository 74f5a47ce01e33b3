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

use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Type};

/// Packets to a system call.
pub const BATCH: usize = 64;
/// Receive buffer in bytes; held twice as large by the kernel, which counts its own overhead.
const RECEIVE_BUFFER: usize = 32 << 20;
/// Bytes of ancillary data for each packet: a timestamp needs 32.
const CONTROL: usize = 64;

/// A socket could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("opening a {kind} socket: {source}; it takes CAP_NET_RAW (be root)")]
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
    /// and says how many the kernel took.
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

    /// Receives up to [`BATCH`] packets; waits for the first one only. None when it was patient in
    /// vain.
    ///
    /// # Errors
    /// When the kernel reports one for the socket.
    pub fn receive<'a>(
        &self,
        buffer: &'a mut Buffer,
    ) -> io::Result<impl Iterator<Item = Received<'a>>> {
        let count = match buffer.fill(&self.0) {
            Ok(count) => count,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock) => 0,
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted) => 0,
            Err(error) => return Err(error),
        };
        let buffer = &*buffer;
        Ok((0..count).map(|at| buffer.packet(at)))
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

fn link_address(interface: u32, protocol: u16) -> SockAddr {
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

/// Ancillary data of one packet, aligned as its headers must be.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// Room for the packets of one system call.
pub struct Buffer {
    bytes: Vec<u8>,
    each: usize,
    lengths: [usize; BATCH],
    stamps: [Option<u64>; BATCH],
    control: [Control; BATCH],
}

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
    pub fn new(each: usize) -> Self {
        Self {
            bytes: vec![0; each * BATCH],
            each,
            lengths: [0; BATCH],
            stamps: [None; BATCH],
            control: [Control([0; CONTROL]); BATCH],
        }
    }

    fn packet(&self, at: usize) -> Received<'_> {
        let bytes = &self.bytes[at * self.each..][..self.lengths[at]];
        Received { bytes, stamp: self.stamps[at] }
    }

    fn fill(&mut self, socket: &socket2::Socket) -> io::Result<usize> {
        // SAFETY: all zeros is a valid mmsghdr: null pointers and lengths of 0.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
        let mut vectors = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH];
        for (at, packet) in self.bytes.chunks_exact_mut(self.each).enumerate() {
            vectors[at].iov_base = packet.as_mut_ptr().cast();
            vectors[at].iov_len = self.each;
            let header = &mut headers[at].msg_hdr;
            header.msg_iov = &raw mut vectors[at];
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut self.control[at]).cast();
            header.msg_controllen = CONTROL;
        }
        // SAFETY: each header points to a vector and control data of the lengths given, no two to
        // the same, and all of it outlives the call.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_WAITFORONE,
                ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        for (at, header) in headers[..count].iter().enumerate() {
            self.lengths[at] = (header.msg_len as usize).min(self.each);
            self.stamps[at] = stamp(&header.msg_hdr);
        }
        Ok(count)
    }
}

/// The receive timestamp in a message's ancillary data.
fn stamp(message: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel has filled the control data and set its length.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: not null, hence a whole header within the control data.
        let control = unsafe { &*header };
        if control.cmsg_level == libc::SOL_SOCKET && control.cmsg_type == libc::SCM_TIMESTAMPNS {
            // SAFETY: within the control data, as the header before it is.
            let data = unsafe { libc::CMSG_DATA(header) };
            // SAFETY: SCM_TIMESTAMPNS carries a timespec; it may lie unaligned.
            let time = unsafe { ptr::read_unaligned(data.cast::<libc::timespec>()) };
            return Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
        }
        // SAFETY: `header` is one of this message's.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    None
}
