//! UDP sockets that say when each datagram was received and sent, by the kernel's clock
//! (Documentation/networking/timestamping.rst), many to a system call.
//!
//! The time of receiving comes with the datagram. The time of sending is taken where the driver is handed
//! the datagram and comes later, by the socket's queue of errors, with the datagram's number: the kernel
//! numbers what is sent on a socket from zero. [`StampedSocket::send`] counts along. When the kernel
//! refuses a datagram it may have counted it or not, so times are not believed until all that may still
//! come under wrong numbers has come; then both begin at zero again.

use crate::socket::set;
use nix::libc;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::{
    io, mem,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6},
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    ptr,
    time::{Duration, Instant},
};

/// Datagrams to a system call.
pub const BATCH: usize = 64;

/// Bytes of control data to a datagram. Received: three times (64), address and interface (40), TTL (24),
/// traffic class (24). By the queue of errors: three times, and what they belong to with an address (64).
const CONTROL: usize = 256;

/// How long times are not believed after the kernel refused a datagram.
const DISTRUST: Duration = Duration::from_secs(1);

/// The interest in times, without and with numbers.
const STAMPS: libc::c_int = (libc::SOF_TIMESTAMPING_RX_SOFTWARE
    | libc::SOF_TIMESTAMPING_TX_SOFTWARE
    | libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_OPT_TSONLY) as libc::c_int;
const NUMBERS: libc::c_int = libc::SOF_TIMESTAMPING_OPT_ID as libc::c_int;

/// A UDP socket whose datagrams have the kernel's times. It never waits.
#[derive(Debug)]
pub struct StampedSocket {
    socket: Socket,
    local: SocketAddr,
    /// The number of the next datagram.
    next: u32,
    /// Until when times of sending are not believed.
    distrust: Option<Instant>,
}

impl StampedSocket {
    /// A socket at this address. At the IPv6 wildcard it serves IPv4 as well, whose addresses are then
    /// written as IPv4 here all the same.
    ///
    /// # Errors
    /// What the system says, such as that the port is taken or needs the right to bind to it.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(!address.ip().is_unspecified())?;
            set(&socket, libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, 255)?;
        }
        // An IPv6 socket has this for the IPv4 that it serves.
        set(&socket, libc::IPPROTO_IP, libc::IP_TTL, 255)?;
        set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, STAMPS | NUMBERS)?;
        socket.bind(&address.into())?;
        let local = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { socket, local, next: 0, distrust: None })
    }

    /// Also tells of datagrams from now on what their IP headers said: [`Datagram::to`],
    /// [`Datagram::ttl`] and [`Datagram::traffic_class`]. That costs some of the time of receiving.
    ///
    /// # Errors
    /// What the system says.
    pub fn tell_headers(&self) -> io::Result<()> {
        let on = |level, name| set(&self.socket, level, name, 1);
        if self.local.is_ipv6() {
            on(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO)?;
            on(libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT)?;
            on(libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS)?;
        } else {
            on(libc::IPPROTO_IP, libc::IP_PKTINFO)?;
        }
        on(libc::IPPROTO_IP, libc::IP_RECVTTL)?;
        on(libc::IPPROTO_IP, libc::IP_RECVTOS)
    }

    /// Asks for room for so many bytes of datagrams that wait to be received, and as many of times; without
    /// the right to it, as much as the system allows.
    ///
    /// # Errors
    /// What the system says.
    pub fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        let size = bytes as libc::c_int;
        set(&self.socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, size)
            .or_else(|_| self.socket.set_recv_buffer_size(bytes))
    }

    /// The address that it is bound to.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Receives what is there, up to [`BATCH`] datagrams, and says how many.
    ///
    /// # Errors
    /// When the kernel reports one for the socket; that nothing is there is none.
    pub fn receive(&self, incoming: &mut Incoming) -> io::Result<usize> {
        incoming.fill(&self.socket, 0)
    }

    /// Sends what was given to `outgoing` and empties it. Gives the number of each datagram, in order, as
    /// [`StampedSocket::sent`] will name it: or why the kernel did not take it.
    pub fn send(
        &mut self,
        outgoing: &mut Outgoing,
        mut number: impl FnMut(usize, io::Result<u32>),
    ) {
        let wide = self.local.is_ipv6();
        let count = outgoing.count;
        // SAFETY: all zeros is a valid mmsghdr: null pointers and lengths of 0.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
        let mut vectors = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH];
        let slots = outgoing.slots.iter_mut().take(count);
        for ((slot, header), vector) in slots.zip(&mut headers).zip(&mut vectors) {
            slot.name = (if wide { widened(slot.to) } else { slot.to }).into();
            vector.iov_base = slot.bytes.as_mut_ptr().cast();
            vector.iov_len = slot.bytes.len();
            let message = &mut header.msg_hdr;
            message.msg_iov = vector;
            message.msg_iovlen = 1;
            message.msg_name = slot.name.as_ptr().cast_mut().cast();
            message.msg_namelen = slot.name.len();
            message.msg_control = (&raw mut slot.control).cast();
            message.msg_controllen = CONTROL;
            message.msg_controllen = slot.write_control(message, wide);
        }
        let mut done = 0;
        while done < count {
            let rest = &mut headers[done..count];
            // SAFETY: each header points to a vector, a name and control data of the lengths given; the
            // kernel only reads them, and all of it outlives the call.
            let sent = unsafe {
                libc::sendmmsg(
                    self.socket.as_raw_fd(),
                    rest.as_mut_ptr(),
                    rest.len() as libc::c_uint,
                    libc::MSG_DONTWAIT,
                )
            };
            match usize::try_from(sent) {
                Ok(sent) => {
                    for place in done..done + sent {
                        number(place, Ok(self.next));
                        self.next = self.next.wrapping_add(1);
                    }
                    done += sent;
                }
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        self.distrust = Some(Instant::now() + DISTRUST);
                        number(done, Err(error));
                        done += 1;
                    }
                }
            }
        }
        outgoing.count = 0;
    }

    /// Gives the times at which datagrams were sent, with their numbers, as far as they are there.
    ///
    /// # Errors
    /// When the kernel reports one for the socket.
    pub fn sent(&mut self, stamps: &mut Incoming, mut f: impl FnMut(u32, u64)) -> io::Result<()> {
        loop {
            let count = stamps.fill(&self.socket, libc::MSG_ERRQUEUE)?;
            for slot in stamps.slots.iter().take(count) {
                if let (Some(number), Some(at_ns), None) = (slot.number, slot.at_ns, self.distrust)
                {
                    f(number, at_ns);
                }
            }
            if count < BATCH {
                break;
            }
        }
        if self.distrust.is_some_and(|until| until <= Instant::now()) {
            // Switching numbers on makes them begin at zero.
            set(&self.socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, STAMPS)?;
            set(&self.socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, STAMPS | NUMBERS)?;
            (self.next, self.distrust) = (0, None);
        }
        Ok(())
    }
}

impl AsFd for StampedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// An address as an IPv6 socket wants it.
fn widened(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(four) => SocketAddr::new(four.ip().to_ipv6_mapped().into(), four.port()),
        six @ SocketAddr::V6(_) => six,
    }
}

/// Control data of one datagram, aligned as its headers must be.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// Room for datagrams to send with one system call.
pub struct Outgoing {
    slots: Box<[OutSlot]>,
    count: usize,
}

struct OutSlot {
    bytes: Vec<u8>,
    to: SocketAddr,
    /// Where to, as the system wants it.
    name: SockAddr,
    from: Option<IpAddr>,
    traffic_class: u8,
    control: Control,
}

impl Default for Outgoing {
    fn default() -> Self {
        let nowhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let slot = || OutSlot {
            bytes: Vec::new(),
            to: nowhere,
            name: nowhere.into(),
            from: None,
            traffic_class: 0,
            control: Control([0; CONTROL]),
        };
        Self { slots: (0..BATCH).map(|_| slot()).collect(), count: 0 }
    }
}

impl Outgoing {
    /// Whether there is room for no more.
    pub fn is_full(&self) -> bool {
        self.count == BATCH
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a datagram that `write` writes into a buffer that holds whatever it held before, if it gives
    /// one: where to, from which of our addresses (the kernel chooses without), and the byte for DSCP and
    /// ECN. Gives its place, for [`StampedSocket::send`].
    ///
    /// # Panics
    /// When it is full.
    pub fn add(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Option<(SocketAddr, Option<IpAddr>, u8)>,
    ) -> Option<usize> {
        let slot = &mut self.slots[self.count];
        (slot.to, slot.from, slot.traffic_class) = write(&mut slot.bytes)?;
        self.count += 1;
        Some(self.count - 1)
    }
}

impl OutSlot {
    /// Writes what the datagram's headers are to have; the length of it.
    fn write_control(&mut self, message: &libc::msghdr, wide: bool) -> usize {
        let mut length = 0;
        // SAFETY: the message has control data of CONTROL bytes.
        let mut at = unsafe { libc::CMSG_FIRSTHDR(message) };
        let mut add = |level, kind, value: &[u8]| {
            if at.is_null() {
                return;
            }
            let size = value.len() as libc::c_uint;
            // SAFETY: computes a length only.
            let whole = unsafe { libc::CMSG_LEN(size) } as usize;
            let header = libc::cmsghdr { cmsg_len: whole, cmsg_level: level, cmsg_type: kind };
            // SAFETY: not null, hence room for a header within the control data.
            unsafe { at.write(header) };
            // SAFETY: within the control data, which has room for all that is added here.
            let data = unsafe { libc::CMSG_DATA(at) };
            // SAFETY: as above; both are bytes and do not overlap.
            unsafe { ptr::copy_nonoverlapping(value.as_ptr(), data, value.len()) };
            // SAFETY: computes a length only.
            length += unsafe { libc::CMSG_SPACE(size) } as usize;
            // SAFETY: `at` is a header of this message's, whose length was just set.
            at = unsafe { libc::CMSG_NXTHDR(message, at) };
        };
        match self.from {
            Some(IpAddr::V4(from)) if !wide => {
                let mut info = [0; size_of::<libc::in_pktinfo>()];
                let local = mem::offset_of!(libc::in_pktinfo, ipi_spec_dst);
                info[local..local + 4].copy_from_slice(&from.octets());
                add(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            Some(from) => {
                let from = match from {
                    IpAddr::V4(from) => from.to_ipv6_mapped(),
                    IpAddr::V6(from) => from,
                };
                let mut info = [0; size_of::<libc::in6_pktinfo>()];
                let local = mem::offset_of!(libc::in6_pktinfo, ipi6_addr);
                info[local..local + 16].copy_from_slice(&from.octets());
                add(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
            None => {}
        }
        if self.traffic_class == 0 {
            // So it is without being told.
            return length;
        }
        let class = libc::c_int::from(self.traffic_class).to_ne_bytes();
        if self.to.ip().to_canonical().is_ipv4() {
            add(libc::IPPROTO_IP, libc::IP_TOS, &class);
        } else {
            add(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &class);
        }
        length
    }
}

/// Room for what is received with one system call.
pub struct Incoming {
    bytes: Box<[u8]>,
    each: usize,
    slots: Box<[InSlot]>,
    count: usize,
}

/// One datagram, or one time, but for its bytes.
#[derive(Clone, Copy)]
struct InSlot {
    length: usize,
    name: libc::sockaddr_storage,
    name_length: libc::socklen_t,
    control: Control,
    at_ns: Option<u64>,
    number: Option<u32>,
    to: Option<IpAddr>,
    ttl: u8,
    traffic_class: u8,
}

/// A datagram that was received.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The UDP payload.
    pub bytes: &'a [u8],
    /// Its sender.
    pub from: SocketAddr,
    /// Which of our addresses it came to; with [`StampedSocket::tell_headers`].
    pub to: Option<IpAddr>,
    /// When the kernel received it, nanoseconds since 1970.
    pub at_ns: Option<u64>,
    /// Its TTL or hop limit; 0 without [`StampedSocket::tell_headers`].
    pub ttl: u8,
    /// The byte of its IP header with DSCP and ECN; 0 without [`StampedSocket::tell_headers`].
    pub traffic_class: u8,
}

impl Incoming {
    /// Room for datagrams of up to `each` bytes; longer ones are cut.
    ///
    /// # Panics
    /// When `each` is 0.
    pub fn new(each: usize) -> Self {
        assert!(each > 0, "datagrams have bytes");
        let slot = InSlot {
            length: 0,
            // SAFETY: all zeros is a valid sockaddr_storage: an address of no family.
            name: unsafe { mem::zeroed() },
            name_length: 0,
            control: Control([0; CONTROL]),
            at_ns: None,
            number: None,
            to: None,
            ttl: 0,
            traffic_class: 0,
        };
        Self {
            bytes: vec![0; each * BATCH].into(),
            each,
            slots: vec![slot; BATCH].into(),
            count: 0,
        }
    }

    /// The datagrams received last.
    pub fn datagrams(&self) -> impl Iterator<Item = Datagram<'_>> {
        let rooms = self.bytes.chunks_exact(self.each);
        self.slots.iter().zip(rooms).take(self.count).filter_map(|(slot, room)| {
            Some(Datagram {
                bytes: &room[..slot.length],
                from: slot.sender()?,
                to: slot.to,
                at_ns: slot.at_ns,
                ttl: slot.ttl,
                traffic_class: slot.traffic_class,
            })
        })
    }

    fn fill(&mut self, socket: &Socket, flags: libc::c_int) -> io::Result<usize> {
        self.count = 0;
        // SAFETY: all zeros is a valid mmsghdr: null pointers and lengths of 0.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
        let mut vectors = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH];
        let rooms = self.bytes.chunks_exact_mut(self.each);
        for (((header, vector), room), slot) in
            headers.iter_mut().zip(&mut vectors).zip(rooms).zip(self.slots.iter_mut())
        {
            vector.iov_base = room.as_mut_ptr().cast();
            vector.iov_len = self.each;
            let header = &mut header.msg_hdr;
            header.msg_iov = vector;
            header.msg_iovlen = 1;
            header.msg_name = (&raw mut slot.name).cast();
            header.msg_namelen = size_of_val(&slot.name) as libc::socklen_t;
            header.msg_control = (&raw mut slot.control).cast();
            header.msg_controllen = CONTROL;
        }
        // SAFETY: each header points to a vector, a name and control data of the lengths given, no two to
        // the same, and all of it outlives the call.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT | flags,
                ptr::null_mut(),
            )
        };
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            let nothing =
                matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
            return if nothing { Ok(0) } else { Err(error) };
        };
        for (header, slot) in headers.iter().zip(self.slots.iter_mut()).take(count) {
            slot.length = (header.msg_len as usize).min(self.each);
            slot.name_length = header.msg_hdr.msg_namelen;
            slot.read_control(&header.msg_hdr);
        }
        self.count = count;
        Ok(count)
    }
}

impl InSlot {
    fn sender(&self) -> Option<SocketAddr> {
        let name = &raw const self.name;
        let length = self.name_length as usize;
        match libc::c_int::from(self.name.ss_family) {
            libc::AF_INET if length >= size_of::<libc::sockaddr_in>() => {
                // SAFETY: the kernel wrote a sockaddr_in; the storage is aligned for every address.
                let address = unsafe { *name.cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
                Some(SocketAddr::new(ip.into(), u16::from_be(address.sin_port)))
            }
            libc::AF_INET6 if length >= size_of::<libc::sockaddr_in6>() => {
                // SAFETY: the kernel wrote a sockaddr_in6; the storage is aligned for every address.
                let address = unsafe { *name.cast::<libc::sockaddr_in6>() };
                let ip = Ipv6Addr::from(address.sin6_addr.s6_addr);
                let port = u16::from_be(address.sin6_port);
                if let Some(ip) = ip.to_ipv4_mapped() {
                    return Some(SocketAddr::new(ip.into(), port));
                }
                Some(SocketAddrV6::new(ip, port, 0, address.sin6_scope_id).into())
            }
            _ => None,
        }
    }

    /// Takes out of the control data what is used here.
    fn read_control(&mut self, message: &libc::msghdr) {
        (self.at_ns, self.number, self.to) = (None, None, None);
        (self.ttl, self.traffic_class) = (0, 0);
        // SAFETY: the kernel has filled the control data and set its length.
        let mut at = unsafe { libc::CMSG_FIRSTHDR(message) };
        while !at.is_null() {
            // SAFETY: not null, hence a whole header within the control data.
            let header = unsafe { &*at };
            // SAFETY: within the control data, as the header before it is.
            let data = unsafe { libc::CMSG_DATA(at) };
            // SAFETY: computes a length only.
            let overhead = unsafe { libc::CMSG_LEN(0) } as usize;
            let length = header.cmsg_len.saturating_sub(overhead);
            // SAFETY: the header says that so many bytes follow it.
            let value = unsafe { std::slice::from_raw_parts(data, length) };
            self.note(header.cmsg_level, header.cmsg_type, value);
            // SAFETY: `at` is one of this message's headers.
            at = unsafe { libc::CMSG_NXTHDR(message, at) };
        }
    }

    fn note(&mut self, level: libc::c_int, kind: libc::c_int, value: &[u8]) {
        match (level, kind) {
            // Three timespecs, of which the first is of software.
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                let number = |at: usize| {
                    let field = value.get(at..at + 8)?;
                    field.try_into().ok().map(i64::from_ne_bytes)
                };
                if let (Some(seconds @ 1..), Some(rest)) = (number(0), number(8)) {
                    self.at_ns = Some(seconds as u64 * 1_000_000_000 + rest as u64);
                }
            }
            (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                self.ttl = low_byte(value);
            }
            // One byte of IPv4's, an int of IPv6's.
            (libc::IPPROTO_IP, libc::IP_TOS) => {
                self.traffic_class = value.first().map_or(0, |b| *b)
            }
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => self.traffic_class = low_byte(value),
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                let at = mem::offset_of!(libc::in_pktinfo, ipi_spec_dst);
                let field = value.get(at..).and_then(|rest| rest.first_chunk::<4>());
                self.to = field.map(|octets| Ipv4Addr::from(*octets).into());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let at = mem::offset_of!(libc::in6_pktinfo, ipi6_addr);
                let field = value.get(at..).and_then(|rest| rest.first_chunk::<16>());
                self.to = field.map(|octets| IpAddr::from(Ipv6Addr::from(*octets)).to_canonical());
            }
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                let origin = mem::offset_of!(libc::sock_extended_err, ee_origin);
                let number = mem::offset_of!(libc::sock_extended_err, ee_data);
                if value.get(origin) == Some(&libc::SO_EE_ORIGIN_TIMESTAMPING) {
                    let field = value.get(number..).and_then(|rest| rest.first_chunk::<4>());
                    self.number = field.map(|bytes| u32::from_ne_bytes(*bytes));
                }
            }
            _ => {}
        }
    }
}

/// Of an int in host byte order.
fn low_byte(value: &[u8]) -> u8 {
    value.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{SystemTime, UNIX_EPOCH};

    const PATIENCE: Duration = Duration::from_secs(10);

    fn now_ns() -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
    }

    /// Sends three datagrams from one socket to the other and looks at all that the kernel says of them.
    fn exchange(from: &str, to: &str, class: u8) {
        let mut sender = StampedSocket::bind(from.parse().unwrap()).unwrap();
        let receiver = StampedSocket::bind(to.parse().unwrap()).unwrap();
        receiver.tell_headers().unwrap();
        let local = |socket: &StampedSocket, from: &str| {
            let ip = from.parse::<SocketAddr>().unwrap().ip();
            let ip = if ip.is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { ip };
            SocketAddr::new(ip, socket.local_address().port())
        };
        let (source, target) = (local(&sender, from), local(&receiver, to));
        let mut incoming = Incoming::new(1500);
        // The kernel begins to stamp a moment after it was asked to.
        testbed::wait_until("a time of receipt", PATIENCE, || {
            let other = std::net::UdpSocket::bind((source.ip(), 0)).unwrap();
            other.send_to(b"?", target).unwrap();
            receiver.receive(&mut incoming).unwrap();
            incoming.datagrams().any(|datagram| datagram.at_ns.is_some())
        })
        .unwrap();
        while receiver.receive(&mut incoming).unwrap() > 0 {}
        let before = now_ns();
        let mut out = Outgoing::default();
        for byte in 0..3 {
            out.add(|bytes| {
                bytes.clear();
                bytes.extend([byte; 50]);
                Some((target, Some(source.ip()), class))
            });
        }
        let mut numbers = Vec::new();
        sender.send(&mut out, |place, number| numbers.push((place, number.unwrap())));
        assert_eq!(numbers, [(0, 0), (1, 1), (2, 2)]);
        assert!(out.is_empty());
        let mut sent = Vec::new();
        testbed::wait_until("times of sending", PATIENCE, || {
            sender.sent(&mut incoming, |number, at_ns| sent.push((number, at_ns))).unwrap();
            sent.len() == 3
        })
        .unwrap();
        let mut place = 0;
        testbed::wait_until("the datagrams", PATIENCE, || {
            receiver.receive(&mut incoming).unwrap();
            let after = now_ns();
            for datagram in incoming.datagrams() {
                assert_eq!(datagram.bytes, [place as u8; 50]);
                assert_eq!((datagram.from, datagram.to), (source, Some(target.ip())));
                assert_eq!((datagram.ttl, datagram.traffic_class), (255, class));
                let (number, left) = sent[place];
                let came = datagram.at_ns.unwrap();
                assert_eq!(number as usize, place);
                assert!(before <= left && left <= came && came <= after, "{left} {came}");
                place += 1;
            }
            place == 3
        })
        .unwrap();
        assert_eq!(receiver.receive(&mut incoming).unwrap(), 0);
    }

    #[test]
    fn the_kernel_says_when_datagrams_left_and_came() {
        exchange("127.0.0.1:0", "127.0.0.1:0", 0xb8);
        exchange("[::1]:0", "[::1]:0", 0x28);
        exchange("[::]:0", "127.0.0.1:0", 0);
        exchange("127.0.0.1:0", "[::]:0", 0x03);
    }

    #[test]
    fn a_refused_datagram_is_named_and_times_are_believed_again_later() {
        let mut sender = StampedSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let receiver = StampedSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let target = receiver.local_address();
        let mut out = Outgoing::default();
        for length in [1, 70_000, 1] {
            out.add(|bytes| {
                *bytes = vec![0; length];
                Some((target, None, 0))
            });
        }
        let mut outcome = Vec::new();
        sender.send(&mut out, |place, number| outcome.push((place, number.is_ok())));
        assert_eq!(outcome, [(0, true), (1, false), (2, true)]);
        let mut incoming = Incoming::new(100);
        sender.sent(&mut incoming, |number, _| panic!("a time of {number}")).unwrap();
        let mut came = 0;
        testbed::wait_until("the datagrams", PATIENCE, || {
            came += receiver.receive(&mut incoming).unwrap();
            came == 2
        })
        .unwrap();
        // As if the time of distrust had passed.
        sender.distrust = Some(Instant::now());
        sender.sent(&mut incoming, |number, _| panic!("a time of {number}")).unwrap();
        out.add(|bytes| {
            bytes.truncate(1);
            Some((target, None, 0))
        });
        sender.send(&mut out, |_, number| assert_eq!(number.unwrap(), 0));
        let mut numbers = Vec::new();
        testbed::wait_until("a time of sending", PATIENCE, || {
            sender.sent(&mut incoming, |number, _| numbers.push(number)).unwrap();
            numbers == [0]
        })
        .unwrap();
    }
}
