//! UDP and ICMP sockets that hear what routers say of their packets: ip(7) `IP_RECVERR`.
//!
//! The kernel matches an ICMP error to the socket whose packet it quotes and keeps it in the socket's
//! error queue, with its sender, type and code, what it quotes behind the UDP header (of ICMP: from its
//! header on), and the time when it came in. That takes no rights, and costs nothing when others are
//! talked about; a raw socket would hear everything. Echo goes by a ping socket, or by a raw one where
//! `net.ipv4.ping_group_range` leaves this process out and it has CAP_NET_RAW.

use super::icmp::Family;
use crate::{clock::Clocks, interval::drift_ns, record::Bounded};
use datapath::{clock::unix_ns, path_option};
use nix::{
    errno::Errno,
    libc,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::socket::{
        ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt,
        sockopt::{Ipv4RecvErr, Ipv6RecvErr, ReceiveTimestampns},
    },
};
use serde::{Deserialize, Serialize};
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    io::{self, IoSliceMut},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::{AsFd, AsRawFd},
    time::Duration,
};

/// Room for control data: a timestamp and an error with its sender, twice what they need.
const CONTROL: usize = 512;
/// Errors of earlier packets that a sending tolerates: more than there are packets on the path.
const ERRORS: u32 = 64;
/// Longest packet that is read whole.
pub(crate) const LONGEST: usize = 65_536;

/// What is sent to find the path.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Datagrams to a port that nobody uses.
    #[default]
    Udp,
    /// ICMP echo requests.
    Icmp,
}

/// A connected socket of one family that never blocks.
#[derive(Debug)]
pub(crate) struct Hearing {
    socket: Socket,
    to: SocketAddr,
    /// The ICMP identifier that the caller must use and look for; the kernel does both for a ping
    /// socket.
    raw: Option<u16>,
    buffer: Vec<u8>,
    control: Vec<u8>,
}

/// When a packet was sent, as far as this process knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    before: Clocks,
    before_ns: u64,
    after_ns: u64,
}

/// Something that came.
#[derive(Clone, Debug)]
pub(crate) struct Message<'a> {
    /// The payload; of an error what it quotes, and its extensions.
    pub(crate) bytes: &'a [u8],
    /// What a router, the destination or this machine says of a packet.
    pub(crate) error: Option<Report>,
    /// When.
    pub(crate) at: Arrival,
}

/// When something came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    seen: Clocks,
    /// The kernel's stamp, nanoseconds since 1970.
    stamp_ns: Option<u64>,
}

/// An error that the kernel kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// Who sent it; `None` when this machine itself.
    pub(crate) from: Option<IpAddr>,
    /// ICMP type.
    pub(crate) kind: u8,
    /// ICMP code.
    pub(crate) code: u8,
    /// The MTU that it names, where it names one.
    pub(crate) mtu: Option<u32>,
    /// Where the extensions begin in the message's bytes.
    pub(crate) extensions: Option<usize>,
}

impl Hearing {
    /// A UDP socket to a port.
    ///
    /// # Errors
    /// When the kernel refuses, or has no route.
    pub(crate) fn udp(to: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP))?;
        Self::prepare(socket, to, None)
    }

    /// A socket for ICMP echo; `identifier` is used where the kernel chooses none.
    ///
    /// # Errors
    /// When the kernel refuses, or has no route.
    pub(crate) fn echo(to: IpAddr, identifier: u16) -> io::Result<Self> {
        let (domain, protocol) = match to {
            IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
            IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
        };
        let to = SocketAddr::new(to, 0);
        match Socket::new(domain, Type::DGRAM, Some(protocol)) {
            Ok(socket) => Self::prepare(socket, to, None),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                // The ping socket's error is more useful than that a raw one is refused as well.
                let socket = Socket::new(domain, Type::RAW, Some(protocol)).map_err(|_| error)?;
                Self::prepare(socket, to, Some(identifier))
            }
            Err(error) => Err(error),
        }
    }

    fn prepare(socket: Socket, to: SocketAddr, raw: Option<u16>) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        match to {
            SocketAddr::V4(_) => setsockopt(&socket, Ipv4RecvErr, &true)?,
            SocketAddr::V6(_) => setsockopt(&socket, Ipv6RecvErr, &true)?,
        }
        setsockopt(&socket, ReceiveTimestampns, &true)?;
        // Before Linux 5.9 there is no such option, and no extensions are shown.
        let _ = path_option::tell_extensions(socket.as_fd(), to.ip());
        socket.connect(&to.into())?;
        Ok(Self { socket, to, raw, buffer: vec![0; LONGEST], control: vec![0; CONTROL] })
    }

    pub(crate) fn family(&self) -> Family {
        Family::of(self.to.ip())
    }

    /// The identifier to put into requests and to look for in replies, of a raw socket.
    pub(crate) fn identifier(&self) -> Option<u16> {
        self.raw
    }

    /// Sets the TTL or hop limit of packets to come.
    pub(crate) fn set_ttl(&self, ttl: u8) -> io::Result<()> {
        match self.to {
            SocketAddr::V4(_) => self.socket.set_ttl_v4(ttl.into()),
            SocketAddr::V6(_) => self.socket.set_unicast_hops_v6(ttl.into()),
        }
    }

    /// See [`path_option::never_fragment`].
    pub(crate) fn never_fragment(&self) -> io::Result<()> {
        path_option::never_fragment(self.socket.as_fd(), self.to.ip())
    }

    /// Sends a packet.
    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<Sent> {
        let once = || {
            let (before, before_ns) = (Clocks::read(), unix_ns());
            self.socket.send(bytes)?;
            Ok(Sent { before, before_ns, after_ns: unix_ns() })
        };
        // An error of an earlier packet is reported at the next call, whatever that is, and only once; while
        // this one is being made, that of another one may have come.
        let mut left = ERRORS;
        loop {
            let _ = self.socket.take_error();
            match once() {
                Err(_) if left > 0 => left -= 1,
                result => return result,
            }
        }
    }

    /// Waits until something has come, for at most `limit`.
    pub(crate) fn wait(&self, limit: Duration) -> io::Result<()> {
        // Rounded up, so that nobody turns round and round for the last part of a millisecond.
        let limit = limit.as_millis().saturating_add(1).min(1000);
        let limit = PollTimeout::try_from(limit).unwrap_or(PollTimeout::ZERO);
        let mut ready = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, limit) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes what has come, errors first; `None` when there is nothing.
    pub(crate) fn receive(&mut self) -> io::Result<Option<Message<'_>>> {
        let descriptor = self.socket.as_raw_fd();
        for flags in [MsgFlags::MSG_ERRQUEUE, MsgFlags::empty()] {
            let mut room = [IoSliceMut::new(&mut self.buffer)];
            let received = recvmsg::<SockaddrStorage>(
                descriptor,
                &mut room,
                Some(&mut self.control),
                flags | MsgFlags::MSG_DONTWAIT,
            );
            let received = match received {
                Ok(received) => received,
                // An error of an earlier packet that was reported here; it is in the error queue as well.
                Err(error) if error == Errno::EAGAIN || is_report(error) => continue,
                Err(error) => return Err(error.into()),
            };
            let mut at = Arrival { seen: Clocks::read(), stamp_ns: None };
            let mut error = None;
            for control in received.cmsgs()? {
                match control {
                    ControlMessageOwned::ScmTimestampns(time) => at.stamp_ns = stamp_ns(time),
                    ControlMessageOwned::Ipv4RecvErr(report, from) => {
                        let from = from.map(|a| Ipv4Addr::from(u32::from_be(a.sin_addr.s_addr)));
                        error = Some(Report::new(&report, from.map(Into::into)));
                    }
                    ControlMessageOwned::Ipv6RecvErr(report, from) => {
                        let from = from.map(|a| Ipv6Addr::from(a.sin6_addr.s6_addr));
                        error = Some(Report::new(&report, from.map(|a| a.to_canonical())));
                    }
                    _ => {}
                }
            }
            let length = received.bytes.min(LONGEST);
            let bytes = self.buffer.get(..length).unwrap_or_default();
            return Ok(Some(Message { bytes, error, at }));
        }
        Ok(None)
    }
}

impl Report {
    fn new(report: &libc::sock_extended_err, from: Option<IpAddr>) -> Self {
        let local = report.ee_origin == libc::SO_EE_ORIGIN_LOCAL;
        // linux/errqueue.h: sock_ee_data_rfc4884 is a 16-bit length, flags (1: invalid) and a spare byte.
        let [low, high, flags, _] = report.ee_data.to_ne_bytes();
        let at = usize::from(u16::from_ne_bytes([low, high]));
        Self {
            from: if local { None } else { from },
            kind: report.ee_type,
            code: report.ee_code,
            mtu: (report.ee_errno == libc::EMSGSIZE as u32).then_some(report.ee_info),
            extensions: (!local && at > 0 && flags & 1 == 0).then_some(at),
        }
    }
}

impl Sent {
    /// The round trip to an arrival.
    ///
    /// The packet left between the moments before and after the call that sent it. The kernel's stamp of the
    /// arrival is by the same clock; by as much as that was stepped or slewed in between, which a clock shows
    /// that nobody steers, the interval is wider. It never reaches beyond the time until this process saw the
    /// packet, by that other clock, which replaces the stamp where that is none or cannot be right.
    pub(crate) fn round_trip(&self, arrival: &Arrival) -> Bounded {
        let steady = arrival.seen.raw_ns().saturating_sub(self.before.raw_ns());
        let moved = arrival.seen.steered().moved_since(self.before.steered());
        let steady = steady.max(0).unsigned_abs();
        bounded(steady, moved, self.before_ns, self.after_ns, arrival.stamp_ns)
    }
}

fn bounded(steady: u64, moved: u64, before: u64, after: u64, stamp: Option<u64>) -> Bounded {
    let most = steady.saturating_add(drift_ns(steady));
    let of = |low: u64, estimate: u64, high: u64| Bounded {
        estimate_ns: estimate as i64,
        low_ns: Some(low as i64),
        high_ns: Some(high as i64),
    };
    match stamp.and_then(|stamp| Some((stamp, stamp.checked_sub(before)?))) {
        Some((stamp, trip)) if trip <= most => {
            let least = stamp.saturating_sub(after);
            let low = least.saturating_sub(drift_ns(least).saturating_add(moved));
            let high = trip.saturating_add(drift_ns(trip)).saturating_add(moved);
            of(low.min(trip), trip, high.min(most))
        }
        _ => of(0, steady, most),
    }
}

/// Whether this is what an ICMP error becomes.
fn is_report(error: Errno) -> bool {
    matches!(
        error,
        Errno::ECONNREFUSED
            | Errno::EHOSTUNREACH
            | Errno::ENETUNREACH
            | Errno::EACCES
            | Errno::EPROTO
            | Errno::EMSGSIZE
            | Errno::ENOPROTOOPT
            | Errno::EHOSTDOWN
            | Errno::ENONET
            | Errno::EOPNOTSUPP
    )
}

fn stamp_ns(time: nix::sys::time::TimeSpec) -> Option<u64> {
    let seconds = u64::try_from(time.tv_sec()).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(u64::try_from(time.tv_nsec()).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn a_closed_port_says_so_with_what_was_sent() {
        for own in ["127.0.0.1:0", "[::1]:0"] {
            let closed = UdpSocket::bind(own).unwrap().local_addr().unwrap();
            let mut socket = Hearing::udp(closed).unwrap();
            let sent = socket.send(b"who is there").unwrap();
            socket.wait(Duration::from_secs(10)).unwrap();
            let message = socket.receive().unwrap().unwrap();
            assert_eq!(message.bytes, b"who is there");
            let error = message.error.unwrap();
            assert_eq!(error.from, Some(closed.ip()));
            let port = if closed.is_ipv4() { (3, 3) } else { (1, 4) };
            assert_eq!((error.kind, error.code), port);
            assert!(message.at.stamp_ns.is_some());
            let trip = sent.round_trip(&message.at);
            assert!(
                trip.low_ns <= Some(trip.estimate_ns) && Some(trip.estimate_ns) <= trip.high_ns
            );
            assert!(socket.receive().unwrap().is_none());
        }
    }

    #[test]
    fn a_clock_that_was_set_gives_the_steady_time_and_an_interval_from_nothing_to_it() {
        let second = 1_000_000_000;
        // Sent at 100 s, gone at 100.1 s, there at 101 s.
        let trip = bounded(second, 0, 100 * second, 100 * second + second / 10, Some(101 * second));
        assert_eq!(trip.estimate_ns, second as i64);
        let (low, high) = (trip.low_ns.unwrap(), trip.high_ns.unwrap());
        assert!((899_000_000..=900_000_000).contains(&low), "{low}");
        assert!((1_000_000_000..=1_001_000_000).contains(&high), "{high}");
        // Set forward by an hour, back by an hour, no stamp.
        for stamp in [Some(3700 * second), Some(second), None] {
            let moved = 3600 * second;
            let trip = bounded(second, moved, 100 * second, 100 * second, stamp);
            assert_eq!((trip.estimate_ns, trip.low_ns), (second as i64, Some(0)));
            assert!(trip.high_ns >= Some(second as i64));
        }
    }

    #[test]
    fn a_clock_that_was_set_by_less_than_the_trip_took_is_noticed_and_its_pace_is_in_each() {
        let (second, half) = (1_000_000_000, 500_000_000);
        let sent = 100 * second;
        // Back by half a second, and forward by it.
        let back = bounded(second, half, sent, sent, Some(sent + half));
        assert!(back.high_ns >= Some(second as i64), "{back:?}");
        let forward = bounded(second, half, sent, sent, Some(sent + second));
        assert!(forward.low_ns <= Some(half as i64), "{forward:?}");
        // Less than a millisecond has its part of the pace as well.
        let short = bounded(second, 0, sent, sent, Some(sent + 999_999));
        assert!(short.high_ns >= Some(1_000_499) && short.low_ns <= Some(999_500), "{short:?}");
    }
}
