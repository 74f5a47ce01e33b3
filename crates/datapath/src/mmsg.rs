//! UDP requests and their replies, many to a system call.
//!
//! An [`Exchange`] has room for [`BATCH`] datagrams and a reply to each: `recvmmsg` fills it, the
//! caller answers, `sendmmsg` sends what is not empty to where its request came from. On a socket
//! that reports the address each datagram came to (`IP_PKTINFO`, `IPV6_RECVPKTINFO`), replies leave
//! from that address; without, the kernel chooses.

use crate::datagrams::{self, Received};
use std::{
    io, mem,
    net::{Ipv6Addr, SocketAddr},
    os::fd::BorrowedFd,
};

pub use crate::datagrams::BATCH;

/// Room for the requests of one system call and their replies.
pub struct Exchange {
    requests: Received,
    replies: Box<[Vec<u8>]>,
}

impl Exchange {
    /// Room for requests of up to `each` bytes; longer ones are cut.
    ///
    /// # Panics
    /// When `each` is 0.
    pub fn new(each: usize) -> Self {
        Self { requests: Received::new(each), replies: vec![Vec::new(); BATCH].into() }
    }

    /// Receives what is there, up to [`BATCH`] datagrams, and returns how many; does not wait.
    ///
    /// # Errors
    /// When the kernel reports one for the socket; that nothing is there is `WouldBlock`.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let count = self.requests.fill(socket, libc::MSG_DONTWAIT)?;
        self.requests.envelopes().for_each(|envelope| envelope.each_control(turn));
        Ok(count)
    }

    /// Gives each datagram received, with its index and sender, to be answered; the reply's buffer
    /// holds whatever it held before. What it holds afterwards is sent, unless it is empty.
    pub fn answer(&mut self, mut f: impl FnMut(usize, &[u8], SocketAddr, &mut Vec<u8>)) {
        let all = self.requests.datagrams().zip(&mut self.replies).enumerate();
        for (index, ((request, envelope), reply)) in all {
            match envelope.address() {
                Some(sender) => f(index, request, sender, reply),
                // No address to send to: UDP sockets of these families always give one.
                None => reply.clear(),
            }
        }
    }

    /// Sends the replies. Those that the kernel does not take are named by the index of their
    /// request, and are not tried again.
    pub fn send(&mut self, socket: BorrowedFd<'_>, mut failed: impl FnMut(usize, io::Error)) {
        let all = self.requests.datagrams().zip(&self.replies).enumerate();
        let replies = all
            .filter(|(_, (_, reply))| !reply.is_empty())
            .map(|(index, ((_, envelope), reply))| (index, reply.as_slice(), envelope));
        datagrams::send(socket, replies, |index, result| {
            if let Err(error) = result {
                failed(index, error);
            }
        });
    }
}

/// Turns the local address of a request into the source of its reply: the address stays, the interface
/// is left to the routes. Only a link-local address means nothing without its interface.
fn turn(level: libc::c_int, kind: libc::c_int, value: &mut [u8]) {
    let interface = match (level, kind) {
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => mem::offset_of!(libc::in_pktinfo, ipi_ifindex),
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
            let at = mem::offset_of!(libc::in6_pktinfo, ipi6_addr);
            let address = value.get(at..).and_then(|rest| rest.first_chunk::<16>());
            if address.is_none_or(|octets| Ipv6Addr::from(*octets).is_unicast_link_local()) {
                return;
            }
            mem::offset_of!(libc::in6_pktinfo, ipi6_ifindex)
        }
        _ => return,
    };
    if let Some(index) = value.get_mut(interface..interface + 4) {
        index.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{net::UdpSocket, os::fd::AsFd};

    #[test]
    fn replies_go_back_to_their_senders_and_empty_ones_do_not() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let clients = [0u8, 1, 2].map(|number| {
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.send_to(&[number; 3], server.local_addr().unwrap()).unwrap();
            client
        });
        let mut exchange = Exchange::new(1536);
        assert_eq!(exchange.receive(server.as_fd()).unwrap(), 3);
        exchange.answer(|index, request, sender, reply| {
            assert_eq!(request, [index as u8; 3]);
            assert_eq!(sender, clients[index].local_addr().unwrap());
            reply.clear();
            if index != 1 {
                reply.extend([index as u8 + 7; 2]);
            }
        });
        exchange.send(server.as_fd(), |index, error| panic!("{index}: {error}"));
        for (index, client) in clients.iter().enumerate() {
            client.set_nonblocking(true).unwrap();
            let mut buffer = [0; 8];
            match client.recv(&mut buffer) {
                Ok(length) => assert_eq!(buffer[..length], [index as u8 + 7; 2]),
                Err(error) => assert_eq!((index, error.kind()), (1, io::ErrorKind::WouldBlock)),
            }
        }
        let nothing = exchange.receive(server.as_fd()).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_longer_request_is_cut_and_a_failed_reply_is_named() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        for byte in 0..3 {
            client.send_to(&[byte; 20], server.local_addr().unwrap()).unwrap();
        }
        let mut exchange = Exchange::new(16);
        assert_eq!(exchange.receive(server.as_fd()).unwrap(), 3);
        exchange.answer(|index, request, _, reply| {
            assert_eq!(request, [index as u8; 16]);
            // More than a UDP datagram holds.
            *reply = vec![index as u8; if index == 1 { 70_000 } else { 1 }];
        });
        let mut failures = Vec::new();
        exchange.send(server.as_fd(), |index, error| failures.push((index, error.raw_os_error())));
        assert_eq!(failures, [(1, Some(libc::EMSGSIZE))]);
        for byte in [0, 2] {
            let mut buffer = [9; 4];
            assert_eq!((client.recv(&mut buffer).unwrap(), buffer[0]), (1, byte));
        }
    }
}
