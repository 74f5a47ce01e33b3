//! Sends on what was held.
//!
//! A packet goes out of the internal interface by a packet socket (packet(7)) with the header of
//! virtio (virtio 1.2, section 5.1.6) that says which checksum is still to be filled in and how a
//! super-packet is cut, and with a mark that the program there knows. One to internal hosts passes the
//! program and is in flight. One from internal hosts is turned round by the program: it
//! comes in by that interface, passes the other program by its mark, and meets routing and NAT as if it
//! had just arrived. Either loses its mark.

use super::held::Held;
use super::record::Direction;
use super::skeleton::types;
use socket2::{Domain, Socket, Type};
use std::{
    io::{self, IoSlice},
    os::fd::AsRawFd as _,
};

/// Bytes that may wait in queues: those of limited flows are long.
const BUFFER: usize = 16 << 20;

/// A packet could not be sent on.
#[derive(Debug, thiserror::Error)]
#[error("cannot send on a held packet of {bytes} bytes at interface {ifindex}: {source}")]
pub struct ReleaseError {
    /// Its length.
    bytes: usize,
    /// The internal interface.
    ifindex: u32,
    /// The system's answer.
    source: io::Error,
}

/// Sends on what was held.
#[derive(Debug)]
pub struct Injector {
    to_internal: Socket,
    from_internal: Socket,
}

impl Injector {
    /// In the calling thread's network namespace.
    ///
    /// # Errors
    /// When there is no CAP_NET_RAW or CAP_NET_ADMIN.
    pub fn open() -> io::Result<Self> {
        use types::gate_limits as l;
        let open = |mark: l| {
            // Of protocol 0: it receives nothing.
            let socket = Socket::new(Domain::PACKET, Type::RAW, None)?;
            socket.set_mark(mark.0)?;
            socket.set_nonblocking(true)?;
            option(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
            option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, BUFFER as libc::c_int)?;
            Ok::<_, io::Error>(socket)
        };
        Ok(Self { to_internal: open(l::GATE_MARK)?, from_internal: open(l::GATE_MARK_BACK)? })
    }

    /// Sends a packet on: it goes where it was going when it was held. Those of one direction keep the
    /// order in which they are released.
    ///
    /// # Errors
    /// When the interface is gone or down, or too much waits there; the packet is lost then, as it
    /// might be anywhere else.
    pub fn release(&self, held: &Held) -> Result<(), ReleaseError> {
        let socket = match held.direction {
            Direction::FromInternal => &self.from_internal,
            Direction::ToInternal => &self.to_internal,
        };
        send(socket, held).map_err(|source| ReleaseError {
            bytes: held.bytes(),
            ifindex: held.ifindex,
            source,
        })
    }
}

fn option(socket: &Socket, level: i32, name: i32, value: libc::c_int) -> io::Result<()> {
    let length = size_of_val(&value) as libc::socklen_t;
    let pointer = (&raw const value).cast();
    // SAFETY: the option's value is one int, which lives through the call.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, pointer, length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn send(socket: &Socket, held: &Held) -> io::Result<()> {
    // SAFETY: a struct of integers, of which zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex =
        i32::try_from(held.ifindex).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    let header = held.header();
    let mut parts = [IoSlice::new(&header), IoSlice::new(&held.frame)];
    // SAFETY: as above, with null pointers.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = (&raw mut address).cast();
    message.msg_namelen = size_of_val(&address) as libc::socklen_t;
    message.msg_iov = parts.as_mut_ptr().cast();
    message.msg_iovlen = parts.len();
    // SAFETY: `IoSlice` has the form of `iovec`; everything that is pointed to lives through the call.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, 0) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
