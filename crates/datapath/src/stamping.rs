//! UDP sockets that say when each datagram was received and sent, by the kernel's clock
//! (Documentation/networking/timestamping.rst), many to a system call.
//!
//! The time of receiving comes with the datagram. The time of sending is taken where the driver is handed
//! the datagram and comes later, by the socket's queue of errors, with the datagram's number: the kernel
//! numbers what is sent on a socket from zero. [`StampedSocket::send`] counts along. When the kernel
//! refuses a datagram it may have counted it or not, so times are not believed until all that may still
//! come under wrong numbers has come; then both begin at zero again.

use crate::{
    datagrams::{self, Envelope, Received},
    socket::set,
};
use nix::libc;
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    io, mem,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

pub use crate::datagrams::BATCH;

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
    /// The system's error, such as that the port is taken or needs the right to bind to it.
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

    /// From now on datagrams come with fields of their IP headers: [`Datagram::to`],
    /// [`Datagram::ttl`] and [`Datagram::traffic_class`]. That costs some of the time of receiving.
    ///
    /// # Errors
    /// The system's error.
    pub fn report_headers(&self) -> io::Result<()> {
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
    /// The system's error.
    pub fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        let size = bytes as libc::c_int;
        set(&self.socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, size)
            .or_else(|_| self.socket.set_recv_buffer_size(bytes))
    }

    /// The address that it is bound to.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Receives what is there, up to [`BATCH`] datagrams, and returns how many.
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
        let slots = &mut outgoing.slots[..outgoing.count];
        slots.iter_mut().for_each(|slot| slot.address(wide));
        let all = slots.iter().enumerate();
        let all = all.map(|(index, slot)| (index, slot.bytes.as_slice(), &slot.envelope));
        let (next, distrust) = (&mut self.next, &mut self.distrust);
        datagrams::send(self.socket.as_fd(), all, |index, result| match result {
            Ok(()) => {
                number(index, Ok(*next));
                *next = next.wrapping_add(1);
            }
            Err(error) => {
                *distrust = Some(Instant::now() + DISTRUST);
                number(index, Err(error));
            }
        });
        outgoing.count = 0;
    }

    /// Gives the times at which datagrams were sent, with their numbers, as far as they are there.
    ///
    /// # Errors
    /// When the kernel reports one for the socket.
    pub fn sent(&mut self, stamps: &mut Incoming, mut f: impl FnMut(u32, u64)) -> io::Result<()> {
        loop {
            let count = stamps.fill(&self.socket, libc::MSG_ERRQUEUE)?;
            for notes in stamps.notes.iter().take(count) {
                let Notes { number, at_ns, .. } = *notes;
                if let (Some(number), Some(at_ns), None) = (number, at_ns, self.distrust) {
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

/// Room for datagrams to send with one system call.
pub struct Outgoing {
    slots: Box<[OutSlot]>,
    count: usize,
}

struct OutSlot {
    bytes: Vec<u8>,
    to: SocketAddr,
    from: Option<IpAddr>,
    traffic_class: u8,
    envelope: Envelope,
}

impl Default for Outgoing {
    fn default() -> Self {
        let nowhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let slot = || OutSlot {
            bytes: Vec::new(),
            to: nowhere,
            from: None,
            traffic_class: 0,
            envelope: Envelope::default(),
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
    /// ECN. Gives its index, for [`StampedSocket::send`].
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
    /// Writes the address and what the datagram's headers are to have; `wide` for an IPv6 socket.
    fn address(&mut self, wide: bool) {
        let envelope = &mut self.envelope;
        envelope.set_address(if wide { widened(self.to) } else { self.to });
        envelope.clear_control();
        match self.from {
            Some(IpAddr::V4(from)) if !wide => {
                let mut info = [0; size_of::<libc::in_pktinfo>()];
                let local = mem::offset_of!(libc::in_pktinfo, ipi_spec_dst);
                info[local..local + 4].copy_from_slice(&from.octets());
                envelope.add_control(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            Some(from) => {
                let from = match from {
                    IpAddr::V4(from) => from.to_ipv6_mapped(),
                    IpAddr::V6(from) => from,
                };
                let mut info = [0; size_of::<libc::in6_pktinfo>()];
                let local = mem::offset_of!(libc::in6_pktinfo, ipi6_addr);
                info[local..local + 16].copy_from_slice(&from.octets());
                envelope.add_control(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
            None => {}
        }
        // Without control data it is zero.
        if self.traffic_class != 0 {
            let class = libc::c_int::from(self.traffic_class).to_ne_bytes();
            let (level, kind) = match self.to.ip().to_canonical() {
                IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
                IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
            };
            envelope.add_control(level, kind, &class);
        }
    }
}

/// Room for what is received with one system call.
pub struct Incoming {
    received: Received,
    notes: Box<[Notes]>,
}

/// What the control data of one datagram, or of one time, says.
#[derive(Clone, Copy, Debug, Default)]
struct Notes {
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
    /// Which of our addresses it came to; with [`StampedSocket::report_headers`].
    pub to: Option<IpAddr>,
    /// When the kernel received it, nanoseconds since 1970.
    pub at_ns: Option<u64>,
    /// Its TTL or hop limit; 0 without [`StampedSocket::report_headers`].
    pub ttl: u8,
    /// The byte of its IP header with DSCP and ECN; 0 without [`StampedSocket::report_headers`].
    pub traffic_class: u8,
}

impl Incoming {
    /// Room for datagrams of up to `each` bytes; longer ones are cut.
    ///
    /// # Panics
    /// When `each` is 0.
    pub fn new(each: usize) -> Self {
        Self { received: Received::new(each), notes: vec![Notes::default(); BATCH].into() }
    }

    /// The datagrams received last.
    pub fn datagrams(&self) -> impl Iterator<Item = Datagram<'_>> {
        self.received.datagrams().zip(&self.notes).filter_map(|((bytes, envelope), notes)| {
            let from = envelope.address()?;
            let Notes { at_ns, to, ttl, traffic_class, .. } = *notes;
            // An IPv6 socket has the addresses of the IPv4 that it serves as mapped ones.
            let from = match from.ip().to_canonical() {
                ip @ IpAddr::V4(_) => SocketAddr::new(ip, from.port()),
                IpAddr::V6(_) => from,
            };
            Some(Datagram { bytes, from, to, at_ns, ttl, traffic_class })
        })
    }

    fn fill(&mut self, socket: &Socket, flags: libc::c_int) -> io::Result<usize> {
        let count = match self.received.fill(socket.as_fd(), libc::MSG_DONTWAIT | flags) {
            Ok(count) => count,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                0
            }
            Err(error) => return Err(error),
        };
        for (envelope, notes) in self.received.envelopes().zip(&mut self.notes) {
            *notes = Notes::default();
            envelope.each_control(|level, kind, value| notes.note(level, kind, value));
        }
        Ok(count)
    }
}

impl Notes {
    fn note(&mut self, level: libc::c_int, kind: libc::c_int, value: &[u8]) {
        match (level, kind) {
            // Three timespecs, of which the first is of software.
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                if let Some(at_ns) = datagrams::timespec_ns(value) {
                    self.at_ns = Some(at_ns);
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
    use crate::clock::unix_ns;

    const TIMEOUT: Duration = Duration::from_secs(10);

    /// Sends three datagrams from one socket to the other and looks at all that the kernel says of them.
    fn exchange(from: &str, to: &str, class: u8) {
        let mut sender = StampedSocket::bind(from.parse().unwrap()).unwrap();
        let receiver = StampedSocket::bind(to.parse().unwrap()).unwrap();
        receiver.report_headers().unwrap();
        let local = |socket: &StampedSocket, from: &str| {
            let ip = from.parse::<SocketAddr>().unwrap().ip();
            let ip = if ip.is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { ip };
            SocketAddr::new(ip, socket.local_address().port())
        };
        let (source, target) = (local(&sender, from), local(&receiver, to));
        let mut incoming = Incoming::new(1500);
        // The kernel begins to stamp a moment after it was asked to.
        testbed::wait_until("a time of receipt", TIMEOUT, || {
            let other = std::net::UdpSocket::bind((source.ip(), 0)).unwrap();
            other.send_to(b"?", target).unwrap();
            receiver.receive(&mut incoming).unwrap();
            incoming.datagrams().any(|datagram| datagram.at_ns.is_some())
        })
        .unwrap();
        while receiver.receive(&mut incoming).unwrap() > 0 {}
        let before = unix_ns();
        let mut out = Outgoing::default();
        for byte in 0..3 {
            out.add(|bytes| {
                bytes.clear();
                bytes.extend([byte; 50]);
                Some((target, Some(source.ip()), class))
            });
        }
        let mut numbers = Vec::new();
        sender.send(&mut out, |index, number| numbers.push((index, number.unwrap())));
        assert_eq!(numbers, [(0, 0), (1, 1), (2, 2)]);
        assert!(out.is_empty());
        let mut sent = Vec::new();
        testbed::wait_until("times of sending", TIMEOUT, || {
            sender.sent(&mut incoming, |number, at_ns| sent.push((number, at_ns))).unwrap();
            sent.len() == 3
        })
        .unwrap();
        let mut index = 0;
        testbed::wait_until("the datagrams", TIMEOUT, || {
            receiver.receive(&mut incoming).unwrap();
            let after = unix_ns();
            for datagram in incoming.datagrams() {
                assert_eq!(datagram.bytes, [index as u8; 50]);
                assert_eq!((datagram.from, datagram.to), (source, Some(target.ip())));
                assert_eq!((datagram.ttl, datagram.traffic_class), (255, class));
                let (number, left) = sent[index];
                let came = datagram.at_ns.unwrap();
                assert_eq!(number as usize, index);
                assert!(before <= left && left <= came && came <= after, "{left} {came}");
                index += 1;
            }
            index == 3
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
        sender.send(&mut out, |index, number| outcome.push((index, number.is_ok())));
        assert_eq!(outcome, [(0, true), (1, false), (2, true)]);
        let mut incoming = Incoming::new(100);
        sender.sent(&mut incoming, |number, _| panic!("a time of {number}")).unwrap();
        let mut came = 0;
        testbed::wait_until("the datagrams", TIMEOUT, || {
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
        testbed::wait_until("a time of sending", TIMEOUT, || {
            sender.sent(&mut incoming, |number, _| numbers.push(number)).unwrap();
            numbers == [0]
        })
        .unwrap();
    }
}
