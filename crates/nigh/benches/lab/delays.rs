//! By how much packets are later than the delay that was set.
//!
//! One way by the kernel's own times, from when a packet is handed to the device to when one is received:
//! what the network between adds, whatever hosts take. And round trips as ping sees them, from before the
//! system call to the reply's receipt, which contain what both hosts take.

use crate::ends::{Ends, Failure, within};
use nix::sys::{
    socket::{
        ControlMessageOwned, MsgFlags, SockaddrIn, TimestampingFlag, recvmsg, setsockopt, sockopt,
    },
    time::TimeSpec,
};
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    io::IoSliceMut,
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    os::fd::{AsFd, AsRawFd},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// By how much packets take longer than the delay that was set, in microseconds.
pub(crate) struct Times {
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Times {
    fn of(mut excess: Vec<f64>, count: u16) -> Result<Self, Failure> {
        if excess.len() < usize::from(count) * 9 / 10 {
            return Err(format!("{} of {count} packets came", excess.len()).into());
        }
        excess.sort_by(f64::total_cmp);
        let mean = excess.iter().sum::<f64>() / excess.len() as f64;
        let part = |percent| excess[excess.len() * percent / 100];
        Ok(Self { mean, p50: part(50), p99: part(99) })
    }
}

/// Between one packet's end and the next packet.
const PAUSE: Duration = Duration::from_millis(2);
/// Where the one-way packets go.
const PORT: u16 = 7;

impl Ends {
    /// UDP packets one after the other, from the left to the right.
    pub(crate) fn one_way(&self, count: u16, delay: Duration) -> Result<Times, Failure> {
        let right = within(&self.right, || {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
            socket.set_read_timeout(Some(Duration::from_secs(1)))?;
            setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
            Ok(socket)
        })?;
        let left = within(&self.left, || {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            socket.connect((self.to, PORT))?;
            let flags = TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
                | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
                | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY;
            setsockopt(&socket, sockopt::Timestamping, &flags)?;
            Ok(socket)
        })?;
        let mut excess = Vec::new();
        for number in 0..count {
            left.send(&number.to_be_bytes())?;
            while let Some((came, bytes)) = stamp(&right, MsgFlags::empty())? {
                if bytes.starts_with(&number.to_be_bytes()) {
                    let sent = stamp(&left, MsgFlags::MSG_ERRQUEUE)?.ok_or("no time of sending")?.0;
                    excess.push(
                        (came.as_secs_f64() - sent.as_secs_f64() - delay.as_secs_f64()) * 1e6,
                    );
                    break;
                }
            }
            thread::sleep(PAUSE);
        }
        Times::of(excess, count)
    }

    /// Echo requests one after the other; the kernel answers them.
    pub(crate) fn round_trips(&self, count: u16, delay: Duration) -> Result<Times, Failure> {
        let excess = within(&self.left, || {
            let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))?;
            socket.set_read_timeout(Some(Duration::from_secs(1)))?;
            socket.connect(&SocketAddrV4::new(self.to, 0).into())?;
            setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
            let mut excess = Vec::new();
            for sequence in 0..count {
                let sent = SystemTime::now().duration_since(UNIX_EPOCH)?;
                socket.send(&request(sequence))?;
                while let Some((came, bytes)) = stamp(&socket, MsgFlags::empty())? {
                    if is_reply(&bytes, sequence) {
                        excess.push(
                            (came.as_secs_f64() - sent.as_secs_f64() - delay.as_secs_f64()) * 1e6,
                        );
                        break;
                    }
                }
                thread::sleep(PAUSE);
            }
            Ok(excess)
        })?;
        Times::of(excess, count)
    }
}

/// An echo request of 64 bytes.
fn request(sequence: u16) -> [u8; 64] {
    let mut request = [0; 64];
    request[0] = 8;
    request[4..6].copy_from_slice(&IDENTIFIER.to_be_bytes());
    request[6..8].copy_from_slice(&sequence.to_be_bytes());
    let check = wire::checksum::checksum(&request);
    request[2..4].copy_from_slice(&check.to_be_bytes());
    request
}

const IDENTIFIER: u16 = 0x1ab5;

/// Whether a packet is the reply: an IPv4 header without options, then ICMP.
fn is_reply(bytes: &[u8], sequence: u16) -> bool {
    bytes.get(20..28).is_some_and(|header| {
        header[0] == 0
            && header[4..6] == IDENTIFIER.to_be_bytes()
            && header[6..8] == sequence.to_be_bytes()
    })
}

/// The kernel's time of the next message, and the message; `None` if none comes within a second.
fn stamp(socket: &impl AsFd, flags: MsgFlags) -> Result<Option<(Duration, Vec<u8>)>, Failure> {
    let mut bytes = [0; 256];
    // Room for three times and, in the queue of errors, for what they belong to.
    let mut control = nix::cmsg_space!([TimeSpec; 3], [u8; 64]);
    let mut buffers = [IoSliceMut::new(&mut bytes)];
    let fd = socket.as_fd().as_raw_fd();
    let (length, time) = match recvmsg::<SockaddrIn>(fd, &mut buffers, Some(&mut control), flags) {
        Ok(message) => {
            let time = message.cmsgs()?.find_map(|one| match one {
                ControlMessageOwned::ScmTimestampns(time) => Some(time),
                ControlMessageOwned::ScmTimestampsns(times) => Some(times.system),
                _ => None,
            });
            (message.bytes, time)
        }
        Err(nix::Error::EAGAIN) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let time = time.ok_or("a message without time")?;
    Ok(Some((time.into(), bytes[..length].to_vec())))
}
