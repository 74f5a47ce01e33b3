//! The consumer's end of the ring buffer (ringbuf.rst of the kernel's documentation): one page with
//! the consumer's position, which is ours to write; one with the producer's; then the data, mapped
//! twice in a row so that no record is cut. Each record has eight bytes before it: its length with
//! two bits, and a number of the kernel's. Positions only grow; they live in the kernel, so a process
//! that takes the ring over goes on where the one before it stopped.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use std::{
    ffi::c_void,
    io,
    num::NonZeroUsize,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEADER: usize = 8;
/// Bytes after which the read position is published to the kernel.
const PUBLISH_AFTER: u64 = 64 << 10;

/// How a ring is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How long to wait at most if there is nothing.
    pub timeout: Duration,
    /// Least time between two looks at the ring if there was nothing: to be woken for each record costs
    /// more than to read it.
    pub gather: Duration,
    /// Records that are handed over at most.
    pub most: usize,
}

/// Part of the ring in memory.
#[derive(Debug)]
struct Mapping {
    begin: NonNull<c_void>,
    length: usize,
}

// SAFETY: the mapping belongs to the whole process; what is read through it is either ours alone or
// accessed atomically.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(ring: BorrowedFd<'_>, length: usize, offset: usize, write: bool) -> io::Result<Self> {
        let size = NonZeroUsize::new(length).ok_or(io::ErrorKind::InvalidInput)?;
        let mut protection = ProtFlags::PROT_READ;
        protection.set(ProtFlags::PROT_WRITE, write);
        let offset = offset as libc::off_t;
        // SAFETY: the kernel chooses a free range.
        let begin = unsafe { mmap(None, size, protection, MapFlags::MAP_SHARED, ring, offset) }?;
        Ok(Self { begin, length })
    }

    /// The position at the mapping's begin.
    fn position(&self) -> &AtomicU64 {
        // SAFETY: both positions are the first word of a page that is mapped for as long as this
        // lives, and both sides access them atomically.
        unsafe { AtomicU64::from_ptr(self.begin.as_ptr().cast()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nothing can refer to the mapping any more.
        let _ = unsafe { munmap(self.begin, self.length) };
    }
}

/// Reads the records in the order in which they were made. There must be no more than one of a ring.
#[derive(Debug)]
pub(crate) struct Ring {
    ring: OwnedFd,
    consumer: Mapping,
    producer: Mapping,
    page: usize,
    size: usize,
    /// The last look at the ring after there was nothing.
    looked: Instant,
}

impl Ring {
    /// Of a ring of `size` bytes.
    pub(crate) fn new(ring: OwnedFd, size: usize) -> io::Result<Self> {
        // SAFETY: the call has no memory of ours.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).map_err(|_| io::Error::last_os_error())?;
        let consumer = Mapping::new(ring.as_fd(), page, 0, true)?;
        let producer = Mapping::new(ring.as_fd(), page + 2 * size, page, false)?;
        Ok(Self { ring, consumer, producer, page, size, looked: Instant::now() })
    }

    /// Hands over records that are there, and waits if there is none. Returns how many there were.
    ///
    /// # Errors
    /// When the system refuses to wait.
    pub(crate) fn read(&mut self, pace: Pace, mut each: impl FnMut(&[u8])) -> io::Result<usize> {
        let count = self.consume(pace.most, &mut each);
        if count > 0 || pace.timeout.is_zero() {
            return Ok(count);
        }
        let mut ready = [PollFd::new(self.ring.as_fd(), PollFlags::POLLIN)];
        let limit = PollTimeout::try_from(pace.timeout).unwrap_or(PollTimeout::MAX);
        match poll(&mut ready, limit) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => {}
            // The kernel wakes nobody again until something was consumed.
            Ok(_) => thread::sleep(pace.gather.saturating_sub(self.looked.elapsed())),
            Err(error) => return Err(error.into()),
        }
        self.looked = Instant::now();
        Ok(self.consume(pace.most, &mut each))
    }

    /// Hands over what is there now; the ring may be refilled meanwhile, so no more than it holds. The
    /// kernel gets the position now and then: it wakes the reader for the record that the position is
    /// at, and there is no need to wake one that is awake.
    fn consume(&mut self, most: usize, each: &mut impl FnMut(&[u8])) -> usize {
        let mut published = self.consumer.position().load(Ordering::Relaxed);
        let mut at = published;
        let end = self.producer.position().load(Ordering::Acquire);
        let mut count = 0;
        while at < end && count < most {
            let start = self.page + (at as usize & (self.size - 1));
            // SAFETY: the mapping has two times `size` bytes behind its first page, and the record's
            // header is within the first half.
            let header = unsafe { self.producer.begin.as_ptr().byte_add(start) };
            // SAFETY: records begin at multiples of eight, and both sides access this atomically.
            let word = unsafe { AtomicU32::from_ptr(header.cast()) }.load(Ordering::Acquire);
            if word & BUSY != 0 {
                break;
            }
            let length = (word & !DISCARDED) as usize;
            if word & DISCARDED == 0 {
                // SAFETY: the record lies behind its header, within the second half at the latest.
                let begin = unsafe { header.cast::<u8>().add(HEADER) };
                // SAFETY: as above; the program has written it and leaves it alone until the
                // consumer's position is past.
                let bytes = unsafe { std::slice::from_raw_parts(begin, length) };
                count += 1;
                each(bytes);
            }
            at += (length + HEADER).next_multiple_of(8) as u64;
            if at - published >= PUBLISH_AFTER {
                self.consumer.position().store(at, Ordering::Release);
                published = at;
            }
        }
        if at != published {
            self.consumer.position().store(at, Ordering::Release);
        }
        count
    }
}

impl AsFd for Ring {
    /// To wait until there is something to read.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}
