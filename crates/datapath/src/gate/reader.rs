//! Packets that the gate's programs have copied out or held, and flows that ended.

use super::record::Record;
use crate::ring::{Pace, Ring};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

/// Reads the records in the order in which they were made. There must be no more than one.
#[derive(Debug)]
pub struct Reader(Ring);

impl Reader {
    /// Of a ring of `size` bytes.
    pub(super) fn new(ring: OwnedFd, size: usize) -> io::Result<Self> {
        Ring::new(ring, size).map(Self)
    }

    /// Hands over all records that are there, and waits for at most `timeout` if there is none.
    /// Returns how many there were.
    ///
    /// # Errors
    /// When the system refuses to wait.
    pub fn poll(&mut self, timeout: Duration, each: impl FnMut(Record<'_>)) -> io::Result<usize> {
        self.read(Pace { timeout, gather: Duration::ZERO, most: usize::MAX }, each)
    }

    /// Hands over records that are there, and waits if there is none. Returns how many there were.
    ///
    /// # Errors
    /// When the system refuses to wait.
    pub fn read(&mut self, pace: Pace, mut each: impl FnMut(Record<'_>)) -> io::Result<usize> {
        self.0.read(pace, |bytes| {
            if let Some(record) = Record::of(bytes) {
                each(record);
            }
        })
    }
}

impl AsFd for Reader {
    /// To wait until there is something to read.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
