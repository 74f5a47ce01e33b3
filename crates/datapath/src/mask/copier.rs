//! A packet socket whose filter copies packets into the mask's ring. It gets none itself, so that nothing has
//! to be read from it.

use super::Direction;
use crate::socket::{link_address, set};
use socket2::{Domain, Socket, Type};
use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd},
};

/// The filter is on the interface for as long as this lives.
#[derive(Debug)]
pub(super) struct Copier(Socket);

impl Copier {
    /// On an interface of the calling thread's network namespace.
    pub(super) fn attach(
        program: BorrowedFd<'_>,
        ifindex: u32,
        direction: Direction,
    ) -> io::Result<Self> {
        // With protocol 0 it gets nothing before it is bound, when the filter is there.
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(0.into()))?;
        if direction == Direction::In {
            set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        }
        set(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_BPF, program.as_raw_fd())?;
        socket.bind(&link_address(ifindex, (libc::ETH_P_ALL as u16).to_be()))?;
        Ok(Self(socket))
    }

    /// Whether its interface is there.
    pub(super) fn is_attached(&self) -> bool {
        let Ok(address) = self.0.local_addr() else { return false };
        // SAFETY: the kernel gave the address of a packet socket, and the storage is larger than that.
        let interface = unsafe { (*address.as_ptr().cast::<libc::sockaddr_ll>()).sll_ifindex };
        interface > 0
    }
}
