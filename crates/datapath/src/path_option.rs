//! Socket options about the path of packets that no safe wrapper has: ip(7), ipv6(7).

use crate::socket::set;
use std::{io, net::IpAddr, os::fd::BorrowedFd};

/// `IP_RECVERR_RFC4884` and `IPV6_RECVERR_RFC4884` of linux/in.h and linux/in6.h.
const RECVERR_RFC4884: (libc::c_int, libc::c_int) = (26, 31);

/// Packets leave whole, never in fragments, whatever the kernel believes of the path's MTU; those
/// longer than the interface's MTU are refused with `EMSGSIZE`. Takes a UDP, ICMP or raw socket of
/// the family of `peer`.
///
/// # Errors
/// When the kernel refuses.
pub fn never_fragment(socket: BorrowedFd<'_>, peer: IpAddr) -> io::Result<()> {
    match peer {
        IpAddr::V4(_) => {
            set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)
        }
        IpAddr::V6(_) => {
            set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)
        }
    }
}

/// Errors in the socket's error queue show where the extensions of RFC 4884 begin in what they quote.
///
/// # Errors
/// When the kernel refuses, as one before Linux 5.9.
pub fn tell_extensions(socket: BorrowedFd<'_>, peer: IpAddr) -> io::Result<()> {
    match peer {
        IpAddr::V4(_) => set(socket, libc::IPPROTO_IP, RECVERR_RFC4884.0, 1),
        IpAddr::V6(_) => set(socket, libc::IPPROTO_IPV6, RECVERR_RFC4884.1, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{net::UdpSocket, os::fd::AsFd};

    #[test]
    fn a_packet_longer_than_the_interface_takes_is_refused() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let socket = UdpSocket::bind(address).unwrap();
            let own = socket.local_addr().unwrap();
            socket.connect(own).unwrap();
            never_fragment(socket.as_fd(), own.ip()).unwrap();
            tell_extensions(socket.as_fd(), own.ip()).unwrap();
            // lo's MTU is 65,536: the longest datagram over IPv6 does not fit, 1,000 bytes do.
            assert_eq!(socket.send(&[0; 1000]).unwrap(), 1000);
            if own.is_ipv6() {
                let error = socket.send(&[0; 65_527]).unwrap_err();
                assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
            }
        }
    }
}
