//! Many datagrams to a system call, by recvmmsg(2) and sendmmsg(2), each with its address and its
//! control data. [`mmsg`](crate::mmsg) answers requests with it, [`stamping`](crate::stamping) adds the
//! kernel's times, [`socket`](crate::socket) receives with it.
//!
//! The safe wrappers of crate nix give all messages of a `sendmmsg` the same control data, so they
//! cannot send each datagram from another address. Addresses and control data are read and written as
//! bytes here, in the layout of the kernel's ABI (`struct sockaddr_in`, `sockaddr_in6` and `cmsghdr`).

use std::{
    io, mem,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    ops::Range,
    os::fd::{AsRawFd, BorrowedFd},
    ptr,
};

/// Datagrams to a system call.
pub const BATCH: usize = 64;
/// Bytes of control data to a datagram. Received: three times (64), address and interface (40), TTL (24),
/// traffic class (24). By the queue of errors: three times, and what they belong to with an address (64).
const CONTROL: usize = 256;
/// Bytes of an address: the larger `sockaddr_in6` has 28.
const NAME: usize = 32;
/// Bytes of `struct cmsghdr`: a length of the size of a pointer, the level and the kind.
const CONTROL_HEADER: usize = size_of::<usize>() + 8;

/// The address and the control data of one datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    /// Bytes of the datagram.
    pub(crate) length: usize,
    name: [u8; NAME],
    name_length: usize,
    control: [u8; CONTROL],
    control_length: usize,
}

impl Default for Envelope {
    fn default() -> Self {
        let (name, control) = ([0; NAME], [0; CONTROL]);
        Self { length: 0, name, name_length: 0, control, control_length: 0 }
    }
}

impl Envelope {
    /// The address of the other end; none where it is of neither family of IP.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        let name = self.name.get(..self.name_length)?;
        let family = u16::from_ne_bytes(*name.first_chunk()?);
        let port = u16::from_be_bytes(*name.get(2..)?.first_chunk()?);
        match libc::c_int::from(family) {
            libc::AF_INET => {
                let ip: [u8; 4] = *name.get(4..)?.first_chunk()?;
                Some(SocketAddrV4::new(Ipv4Addr::from(ip), port).into())
            }
            libc::AF_INET6 => {
                let ip: [u8; 16] = *name.get(8..)?.first_chunk()?;
                let scope = u32::from_ne_bytes(*name.get(24..)?.first_chunk()?);
                Some(SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, scope).into())
            }
            _ => None,
        }
    }

    /// Sets the address that the datagram is sent to.
    pub(crate) fn set_address(&mut self, to: SocketAddr) {
        self.name = [0; NAME];
        self.name[2..4].copy_from_slice(&to.port().to_be_bytes());
        let family = match to {
            SocketAddr::V4(to) => {
                self.name[4..8].copy_from_slice(&to.ip().octets());
                self.name_length = size_of::<libc::sockaddr_in>();
                libc::AF_INET
            }
            SocketAddr::V6(to) => {
                self.name[4..8].copy_from_slice(&to.flowinfo().to_be_bytes());
                self.name[8..24].copy_from_slice(&to.ip().octets());
                self.name[24..28].copy_from_slice(&to.scope_id().to_ne_bytes());
                self.name_length = size_of::<libc::sockaddr_in6>();
                libc::AF_INET6
            }
        };
        self.name[..2].copy_from_slice(&(family as u16).to_ne_bytes());
    }

    /// The value of the first part of the control data of this level and kind.
    pub(crate) fn control(&self, level: libc::c_int, kind: libc::c_int) -> Option<&[u8]> {
        let mut at = 0;
        while let Some((its_level, its_kind, value)) = self.control_at(at) {
            if (its_level, its_kind) == (level, kind) {
                return self.control.get(value);
            }
            at = aligned(value.end);
        }
        None
    }

    /// Shows each part of the control data: its level, its kind and its value, which may be changed.
    pub(crate) fn each_control(&mut self, mut f: impl FnMut(libc::c_int, libc::c_int, &mut [u8])) {
        let mut at = 0;
        while let Some((level, kind, value)) = self.control_at(at) {
            at = aligned(value.end);
            f(level, kind, &mut self.control[value]);
        }
    }

    /// The part of the control data at an offset, if a whole one is there.
    fn control_at(&self, at: usize) -> Option<(libc::c_int, libc::c_int, Range<usize>)> {
        let control = self.control.get(at..self.control_length.min(CONTROL))?;
        let length = usize::from_ne_bytes(*control.first_chunk()?);
        let level = i32::from_ne_bytes(*control.get(size_of::<usize>()..)?.first_chunk()?);
        let kind = i32::from_ne_bytes(*control.get(size_of::<usize>() + 4..)?.first_chunk()?);
        let is_whole = (CONTROL_HEADER..=control.len()).contains(&length);
        is_whole.then_some((level, kind, at + CONTROL_HEADER..at + length))
    }

    /// Removes the control data.
    pub(crate) fn clear_control(&mut self) {
        self.control_length = 0;
    }

    /// Adds a part to the control data.
    ///
    /// # Panics
    /// When there is no room for it.
    pub(crate) fn add_control(&mut self, level: libc::c_int, kind: libc::c_int, value: &[u8]) {
        let start = self.control_length;
        let length = CONTROL_HEADER + value.len();
        let part = &mut self.control[start..start + aligned(length)];
        part.fill(0);
        part[..size_of::<usize>()].copy_from_slice(&length.to_ne_bytes());
        part[size_of::<usize>()..][..4].copy_from_slice(&level.to_ne_bytes());
        part[size_of::<usize>() + 4..][..4].copy_from_slice(&kind.to_ne_bytes());
        part[CONTROL_HEADER..length].copy_from_slice(value);
        self.control_length = start + aligned(length);
    }
}

/// The nanoseconds since 1970 of a timespec in control data; none where there is no time.
pub(crate) fn timespec_ns(value: &[u8]) -> Option<u64> {
    let (seconds, rest) = value.split_first_chunk()?;
    let nanoseconds = i64::from_ne_bytes(*rest.first_chunk()?);
    match i64::from_ne_bytes(*seconds) {
        seconds @ 1.. => Some(seconds as u64 * 1_000_000_000 + nanoseconds as u64),
        _ => None,
    }
}

/// Where the next part of control data begins (`CMSG_ALIGN`).
fn aligned(length: usize) -> usize {
    length.next_multiple_of(size_of::<usize>())
}

/// Room for the datagrams of one system call.
pub(crate) struct Received {
    bytes: Box<[u8]>,
    each: usize,
    envelopes: Box<[Envelope]>,
    count: usize,
}

impl Received {
    /// Room for datagrams of up to `each` bytes; longer ones are cut.
    ///
    /// # Panics
    /// When `each` is 0.
    pub(crate) fn new(each: usize) -> Self {
        assert!(each > 0, "datagrams have bytes");
        let bytes = vec![0; each * BATCH].into();
        Self { bytes, each, envelopes: vec![Envelope::default(); BATCH].into(), count: 0 }
    }

    /// The datagrams received last.
    pub(crate) fn datagrams(&self) -> impl Iterator<Item = (&[u8], &Envelope)> {
        let rooms = self.bytes.chunks_exact(self.each);
        let all = rooms.zip(&self.envelopes).take(self.count);
        all.map(|(room, envelope)| (&room[..envelope.length], envelope))
    }

    /// The envelopes of the datagrams received last.
    pub(crate) fn envelopes(&mut self) -> impl Iterator<Item = &mut Envelope> {
        self.envelopes.iter_mut().take(self.count)
    }

    /// Receives up to [`BATCH`] datagrams and returns how many; whether it waits is in the flags of recvmmsg(2).
    ///
    /// # Errors
    /// When the kernel reports one for the socket; that nothing is there is `WouldBlock`.
    pub(crate) fn fill(&mut self, socket: BorrowedFd<'_>, flags: libc::c_int) -> io::Result<usize> {
        self.count = 0;
        // SAFETY: all zeros is a valid mmsghdr: null pointers and lengths of 0.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
        let mut vectors = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH];
        let rooms = self.bytes.chunks_exact_mut(self.each);
        for (((header, vector), room), envelope) in
            headers.iter_mut().zip(&mut vectors).zip(rooms).zip(&mut self.envelopes)
        {
            vector.iov_base = room.as_mut_ptr().cast();
            vector.iov_len = room.len();
            let header = &mut header.msg_hdr;
            header.msg_iov = vector;
            header.msg_iovlen = 1;
            header.msg_name = envelope.name.as_mut_ptr().cast();
            header.msg_namelen = NAME as libc::socklen_t;
            header.msg_control = envelope.control.as_mut_ptr().cast();
            header.msg_controllen = CONTROL;
        }
        // SAFETY: each header points to a vector, a name and control data of the lengths given, no two to
        // the same, and all of it outlives the call.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                flags,
                ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        for (header, envelope) in headers.iter().zip(&mut self.envelopes).take(count) {
            envelope.length = (header.msg_len as usize).min(self.each);
            envelope.name_length = (header.msg_hdr.msg_namelen as usize).min(NAME);
            envelope.control_length = header.msg_hdr.msg_controllen.min(CONTROL);
        }
        self.count = count;
        Ok(count)
    }
}

/// Sends datagrams, up to [`BATCH`], without waiting. `result` gets the number of each one, in order, with
/// the error of one that the kernel did not take; such a one is not tried again.
pub(crate) fn send<'a>(
    socket: BorrowedFd<'_>,
    datagrams: impl Iterator<Item = (usize, &'a [u8], &'a Envelope)>,
    mut result: impl FnMut(usize, io::Result<()>),
) {
    // SAFETY: all zeros is a valid mmsghdr: null pointers and lengths of 0.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
    let mut vectors = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH];
    let mut numbers = [0; BATCH];
    let mut count = 0;
    for (((number, bytes, envelope), (header, vector)), slot) in
        datagrams.zip(headers.iter_mut().zip(&mut vectors)).zip(&mut numbers)
    {
        vector.iov_base = bytes.as_ptr().cast_mut().cast();
        vector.iov_len = bytes.len();
        let header = &mut header.msg_hdr;
        header.msg_iov = vector;
        header.msg_iovlen = 1;
        header.msg_name = envelope.name.as_ptr().cast_mut().cast();
        header.msg_namelen = envelope.name_length as libc::socklen_t;
        if envelope.control_length > 0 {
            header.msg_control = envelope.control.as_ptr().cast_mut().cast();
            header.msg_controllen = envelope.control_length;
        }
        *slot = number;
        count += 1;
    }
    let mut done = 0;
    while done < count {
        let rest = &mut headers[done..count];
        // SAFETY: each header points to a vector, a name and, if it has a length, control data of the
        // lengths given; the kernel only reads them, and all of it outlives the call.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                rest.as_mut_ptr(),
                rest.len() as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        };
        match usize::try_from(sent) {
            Ok(sent) => {
                numbers[done..done + sent].iter().for_each(|number| result(*number, Ok(())));
                done += sent;
            }
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    result(numbers[done], Err(error));
                    done += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_back() {
        for text in ["192.0.2.1:9", "[2001:db8::1]:53", "[fe80::1%7]:65535", "0.0.0.0:0"] {
            let mut envelope = Envelope::default();
            assert_eq!(envelope.address(), None);
            let address: SocketAddr = text.parse().unwrap();
            envelope.set_address(address);
            assert_eq!(envelope.address(), Some(address));
            envelope.name_length = 7;
            assert_eq!(envelope.address(), None);
        }
    }

    #[test]
    fn control_data_reads_back_and_what_is_cut_is_not_there() {
        let mut envelope = Envelope::default();
        let parts: [(i32, i32, &[u8]); 3] = [(1, 2, &[3]), (4, 5, &[6; 12]), (7, 8, &[])];
        parts.iter().for_each(|(level, kind, value)| envelope.add_control(*level, *kind, value));
        let read = |envelope: &mut Envelope| {
            let mut all = Vec::new();
            envelope.each_control(|level, kind, value| all.push((level, kind, value.to_vec())));
            all
        };
        let wanted = parts.map(|(level, kind, value)| (level, kind, value.to_vec()));
        assert_eq!(read(&mut envelope), wanted);
        assert_eq!(envelope.control(4, 5), Some(&[6; 12][..]));
        assert_eq!(envelope.control(4, 6), None);
        for (cut, left) in [(1, 2), (CONTROL_HEADER, 2), (CONTROL_HEADER + 5, 1), (60, 0)] {
            let mut envelope = envelope;
            envelope.control_length -= cut;
            assert_eq!(read(&mut envelope), wanted[..left], "{cut}");
        }
        // A length that is less than a header's, or more than there is.
        for length in [0, CONTROL_HEADER - 1, CONTROL, usize::MAX] {
            let mut envelope = envelope;
            envelope.control[..size_of::<usize>()].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(read(&mut envelope), []);
        }
        envelope.clear_control();
        assert_eq!(read(&mut envelope), []);
    }
}
