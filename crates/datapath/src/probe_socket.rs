//! A socket on one interface that sends whole frames and receives one kind of echo reply: packet(7).
//!
//! A health probe must leave by the interface and be seen when it comes back by it, even though its
//! source is one of our own addresses and IP would refuse it. The kernel filters what is received
//! (classic BPF, socket(7) SO_ATTACH_FILTER), so a flood on the interface costs this socket nothing.

use nix::libc;
use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, SockFilter, Socket, Type};
use std::{
    io::{self, Read},
    mem,
};

/// Which echo replies are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// ICMPv4 in untagged frames.
    V4,
    /// ICMPv6 in untagged frames, without extension headers.
    V6,
}

/// The socket. It never blocks.
#[derive(Debug)]
pub struct ProbeSocket {
    socket: Socket,
}

impl ProbeSocket {
    /// Opens the socket on an interface, for echo replies with this identifier.
    ///
    /// # Errors
    /// The system's error; opening needs the capability NET_RAW.
    pub fn open(interface: u32, family: Family, identifier: u16) -> io::Result<Self> {
        // Protocol 0 receives nothing: the filter is in place before the socket is bound to one.
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0)))?;
        socket.set_nonblocking(true)?;
        let ether_type = match family {
            Family::V4 => {
                socket.attach_filter(&filter4(identifier))?;
                libc::ETH_P_IP
            }
            Family::V6 => {
                socket.attach_filter(&filter6(identifier))?;
                libc::ETH_P_IPV6
            }
        };
        socket.bind(&link_address(interface, ether_type as u16))?;
        Ok(Self { socket })
    }

    /// Sends a whole Ethernet frame.
    ///
    /// # Errors
    /// The system's error, such as `ENETDOWN` when the interface is down.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.socket.send(frame).map(drop)
    }

    /// Takes the next frame that has arrived into `buffer`; `None` when there is none.
    ///
    /// # Errors
    /// The system's error, such as `ENETDOWN` once after the interface went down.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.socket).read(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The address of all frames with this EtherType on an interface (packet(7), struct sockaddr_ll).
fn link_address(interface: u32, ether_type: u16) -> SockAddr {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: sockaddr_ll is one of the address types that the storage is made for, it is not larger
    // than it, and every bit pattern is a valid value of it.
    let address = unsafe { storage.view_as::<libc::sockaddr_ll>() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ether_type.to_be();
    address.sll_ifindex = interface as i32;
    let length = mem::size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the storage holds a sockaddr_ll of this length, with its family set.
    unsafe { SockAddr::new(storage, length) }
}

const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const LOAD_BYTE_AT_X: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_IND) as u16;
const LOAD_HALF_AT_X: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_IND) as u16;
const X_IS_HEADER_LENGTH: u16 = (libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

const fn op(code: u16, value: u32) -> SockFilter {
    SockFilter::new(code, 0, 0, value)
}

/// Goes on when equal, else skips so many instructions.
const fn unless(value: u32, skip: u8) -> SockFilter {
    SockFilter::new(IF_EQUAL, 0, skip, value)
}

/// Echo replies (type 0, RFC 792); the Ethernet header is 14 bytes, the protocol at byte 9 of IPv4's.
fn filter4(identifier: u16) -> [SockFilter; 9] {
    [
        op(LOAD_BYTE, 14 + 9),
        unless(libc::IPPROTO_ICMP as u32, 6),
        op(X_IS_HEADER_LENGTH, 14),
        op(LOAD_BYTE_AT_X, 14),
        unless(0, 3),
        op(LOAD_HALF_AT_X, 14 + 4),
        unless(identifier.into(), 1),
        op(RETURN, u32::MAX),
        op(RETURN, 0),
    ]
}

/// Echo replies (type 129, RFC 4443 section 4.2) right behind the IPv6 header of 40 bytes.
fn filter6(identifier: u16) -> [SockFilter; 8] {
    [
        op(LOAD_BYTE, 14 + 6),
        unless(libc::IPPROTO_ICMPV6 as u32, 5),
        op(LOAD_BYTE, 14 + 40),
        unless(129, 3),
        op(LOAD_HALF, 14 + 40 + 4),
        unless(identifier.into(), 1),
        op(RETURN, u32::MAX),
        op(RETURN, 0),
    ]
}
