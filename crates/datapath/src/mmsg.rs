//! UDP requests and their replies, many to a system call.
//!
//! An [`Exchange`] has room for [`BATCH`] datagrams and a reply to each: `recvmmsg` fills it, the
//! caller answers, `sendmmsg` sends what is not empty to where its request came from. On a socket
//! that tells the address each datagram came to (`IP_PKTINFO`, `IPV6_RECVPKTINFO`), replies leave
//! from that address; without, the kernel chooses.
//!
//! The safe wrappers of crate nix give all messages of a `sendmmsg` the same control data, so they
//! cannot send each reply from another address.

use std::{
    io, mem,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    os::fd::{AsRawFd, BorrowedFd},
    ptr,
};

/// Datagrams to a system call.
pub const BATCH: usize = 64;
/// Bytes of control data to a datagram: the larger `in6_pktinfo` takes 40.
const CONTROL: usize = 64;

/// Control data of one datagram, aligned as its header must be.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// Room for the requests of one system call and their replies.
pub struct Exchange {
    requests: Box<[u8]>,
    each: usize,
    replies: Box<[Vec<u8>]>,
    slots: Box<[Slot; BATCH]>,
    count: usize,
}

/// One datagram but for its bytes.
#[derive(Clone, Copy)]
struct Slot {
    length: usize,
    name: libc::sockaddr_storage,
    name_length: libc::socklen_t,
    control: Control,
    control_length: usize,
}

impl Exchange {
    /// Room for requests of up to `each` bytes; longer ones are cut.
    ///
    /// # Panics
    /// When `each` is 0.
    pub fn new(each: usize) -> Self {
        assert!(each > 0, "requests have bytes");
        // SAFETY: all zeros is a valid sockaddr_storage: an address of no family.
        let name = unsafe { mem::zeroed() };
        let control = Control([0; CONTROL]);
        let slot = Slot { length: 0, name, name_length: 0, control, control_length: 0 };
        Self {
            requests: vec![0; each * BATCH].into(),
            each,
            replies: vec![Vec::new(); BATCH].into(),
            slots: Box::new([slot; BATCH]),
            count: 0,
        }
    }

    /// Receives what is there, up to [`BATCH`] datagrams, and says how many; does not wait.
    ///
    /// # Errors
    /// When the kernel reports one for the socket; that nothing is there is `WouldBlock`.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.count = 0;
        // SAFETY: all zeros is a valid mmsghdr: null pointers and lengths of 0.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
        let mut vectors = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH];
        let rooms = self.requests.chunks_exact_mut(self.each);
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
        // SAFETY: each header points to a vector, a name and control data of the lengths given, no
        // two to the same, and all of it outlives the call.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        for (header, slot) in headers.iter().zip(self.slots.iter_mut()).take(count) {
            slot.length = (header.msg_len as usize).min(self.each);
            slot.name_length = header.msg_hdr.msg_namelen;
            slot.control_length = header.msg_hdr.msg_controllen;
            turn(&header.msg_hdr);
        }
        self.count = count;
        Ok(count)
    }

    /// Gives each datagram received, with its place and sender, to be answered; the reply's buffer
    /// holds whatever it held before. What it holds afterwards is sent, unless it is empty.
    pub fn answer(&mut self, mut f: impl FnMut(usize, &[u8], SocketAddr, &mut Vec<u8>)) {
        let requests = self.requests.chunks_exact(self.each);
        let all = requests.zip(self.slots.iter()).zip(self.replies.iter_mut());
        for (place, ((room, slot), reply)) in all.enumerate().take(self.count) {
            match slot.sender() {
                Some(sender) => f(place, &room[..slot.length], sender, reply),
                // No address to send to: UDP sockets of these families always give one.
                None => reply.clear(),
            }
        }
    }

    /// Sends the replies. Those that the kernel does not take are named by the place of their
    /// request, and are not tried again.
    pub fn send(&mut self, socket: BorrowedFd<'_>, mut failed: impl FnMut(usize, io::Error)) {
        // SAFETY: all zeros is a valid mmsghdr: null pointers and lengths of 0.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
        let mut vectors = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH];
        let mut places = [0; BATCH];
        let all = self.replies.iter_mut().zip(self.slots.iter_mut()).take(self.count).enumerate();
        let mut count = 0;
        for ((place, (reply, slot)), (header, vector)) in all
            .filter(|(_, (reply, _))| !reply.is_empty())
            .zip(headers.iter_mut().zip(&mut vectors))
        {
            vector.iov_base = reply.as_mut_ptr().cast();
            vector.iov_len = reply.len();
            let header = &mut header.msg_hdr;
            header.msg_iov = vector;
            header.msg_iovlen = 1;
            header.msg_name = (&raw mut slot.name).cast();
            header.msg_namelen = slot.name_length;
            if slot.control_length > 0 {
                header.msg_control = (&raw mut slot.control).cast();
                header.msg_controllen = slot.control_length;
            }
            places[count] = place;
            count += 1;
        }
        let mut done = 0;
        while done < count {
            let rest = &mut headers[done..count];
            // SAFETY: each header points to a vector, a name and, if it has a length, control data of
            // the lengths given; the kernel only reads them, and all of it outlives the call.
            let sent = unsafe {
                libc::sendmmsg(
                    socket.as_raw_fd(),
                    rest.as_mut_ptr(),
                    rest.len() as libc::c_uint,
                    libc::MSG_DONTWAIT,
                )
            };
            match usize::try_from(sent) {
                Ok(sent) => done += sent,
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        failed(places[done], error);
                        done += 1;
                    }
                }
            }
        }
    }
}

impl Slot {
    fn sender(&self) -> Option<SocketAddr> {
        let name = &raw const self.name;
        let length = self.name_length as usize;
        match libc::c_int::from(self.name.ss_family) {
            libc::AF_INET if length >= size_of::<libc::sockaddr_in>() => {
                // SAFETY: the kernel wrote a sockaddr_in, and the storage is aligned for every
                // address.
                let address = unsafe { *name.cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
                Some(SocketAddrV4::new(ip, u16::from_be(address.sin_port)).into())
            }
            libc::AF_INET6 if length >= size_of::<libc::sockaddr_in6>() => {
                // SAFETY: the kernel wrote a sockaddr_in6, and the storage is aligned for every
                // address.
                let address = unsafe { *name.cast::<libc::sockaddr_in6>() };
                let ip = Ipv6Addr::from(address.sin6_addr.s6_addr);
                let port = u16::from_be(address.sin6_port);
                Some(SocketAddrV6::new(ip, port, 0, address.sin6_scope_id).into())
            }
            _ => None,
        }
    }
}

/// Makes what a message's control data says about its way in into what is asked for its reply's way
/// out: the address stays, the interface is left to the routes. Only a link-local address says
/// nothing without its interface.
fn turn(message: &libc::msghdr) {
    // SAFETY: the kernel has filled the control data and set its length.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: not null, hence a whole header within the control data.
        let control = unsafe { &*header };
        let kind = (control.cmsg_level, control.cmsg_type);
        // SAFETY: within the control data, as the header before it is.
        let data = unsafe { libc::CMSG_DATA(header) };
        if kind == (libc::IPPROTO_IP, libc::IP_PKTINFO) {
            let info = data.cast::<libc::in_pktinfo>();
            // SAFETY: IP_PKTINFO carries an in_pktinfo; it may lie unaligned.
            let mut value = unsafe { ptr::read_unaligned(info) };
            value.ipi_ifindex = 0;
            // SAFETY: as above.
            unsafe { ptr::write_unaligned(info, value) };
        } else if kind == (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) {
            let info = data.cast::<libc::in6_pktinfo>();
            // SAFETY: IPV6_PKTINFO carries an in6_pktinfo; it may lie unaligned.
            let mut value = unsafe { ptr::read_unaligned(info) };
            if !Ipv6Addr::from(value.ipi6_addr.s6_addr).is_unicast_link_local() {
                value.ipi6_ifindex = 0;
                // SAFETY: as above.
                unsafe { ptr::write_unaligned(info, value) };
            }
        }
        // SAFETY: `header` is one of this message's.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
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
        exchange.answer(|place, request, sender, reply| {
            assert_eq!(request, [place as u8; 3]);
            assert_eq!(sender, clients[place].local_addr().unwrap());
            reply.clear();
            if place != 1 {
                reply.extend([place as u8 + 7; 2]);
            }
        });
        exchange.send(server.as_fd(), |place, error| panic!("{place}: {error}"));
        for (place, client) in clients.iter().enumerate() {
            client.set_nonblocking(true).unwrap();
            let mut buffer = [0; 8];
            match client.recv(&mut buffer) {
                Ok(length) => assert_eq!(buffer[..length], [place as u8 + 7; 2]),
                Err(error) => assert_eq!((place, error.kind()), (1, io::ErrorKind::WouldBlock)),
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
        exchange.answer(|place, request, _, reply| {
            assert_eq!(request, [place as u8; 16]);
            // More than a UDP datagram holds.
            *reply = vec![place as u8; if place == 1 { 70_000 } else { 1 }];
        });
        let mut failures = Vec::new();
        exchange.send(server.as_fd(), |place, error| failures.push((place, error.raw_os_error())));
        assert_eq!(failures, [(1, Some(libc::EMSGSIZE))]);
        for byte in [0, 2] {
            let mut buffer = [9; 4];
            assert_eq!((client.recv(&mut buffer).unwrap(), buffer[0]), (1, byte));
        }
    }
}
