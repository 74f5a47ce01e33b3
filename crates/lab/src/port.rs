//! Ports: where frames of real hosts come in and leave.

use crate::pool::{Frame, Pool};
use datapath::tap::Tap;
use std::{
    io::{self, ErrorKind},
    os::fd::{AsFd, BorrowedFd},
};

/// A port's device.
#[derive(Debug)]
pub(crate) enum Port {
    /// A TAP device: frames with virtio header, super-packets among them.
    Tap(Tap),
}

impl Port {
    /// Takes the next frame that has arrived; false when there is none.
    pub(crate) fn receive(&mut self, pool: &mut Pool, frame: &mut Frame) -> io::Result<bool> {
        match self {
            Self::Tap(tap) => {
                let Some(length) = tap.receive(&mut pool.buffers(frame))? else {
                    pool.filled(frame, 0);
                    return Ok(false);
                };
                pool.filled(frame, length);
                Ok(true)
            }
        }
    }

    /// Lets a frame out. False when the host did not take it: its interface is down or gone.
    pub(crate) fn send(&mut self, pool: &Pool, frame: &Frame) -> io::Result<bool> {
        match self {
            Self::Tap(tap) => match tap.send(&pool.slices(frame)) {
                Ok(()) => Ok(true),
                // EIO: the interface is down.
                Err(error) if error.raw_os_error() == Some(nix::libc::EIO) => Ok(false),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
                Err(error) => Err(error),
            },
        }
    }

    /// To wait until there is something to receive.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tap(tap) => tap.as_fd(),
        }
    }
}
