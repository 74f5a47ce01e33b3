//! One of the four rings between a socket and the kernel: a power of two of entries in shared memory,
//! a producer's and a consumer's counter. One side writes entries and advances `producer`, the other
//! reads them and advances `consumer`; each counter has one writer (af_xdp.rst, "Rings").

use nix::{
    libc,
    sys::mman::{MapFlags, ProtFlags, mmap, munmap},
};
use std::{
    ffi::c_void,
    io,
    marker::PhantomData,
    num::NonZeroUsize,
    os::fd::BorrowedFd,
    ptr::NonNull,
    sync::atomic::{AtomicU32, Ordering},
};

/// A ring of plain entries.
pub(super) struct Ring<T: Copy> {
    base: NonNull<c_void>,
    bytes: usize,
    offsets: libc::xdp_ring_offset,
    /// How many entries it has, less one.
    mask: u32,
    /// Our own counter.
    own: u32,
    entries: PhantomData<T>,
}

// SAFETY: the mapping belongs to the process, and whoever has the ring has it alone.
unsafe impl<T: Copy + Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Maps a ring of `size` entries, a power of two, that the socket was set to make.
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        offset: u64,
        offsets: libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        let bytes = offsets.desc as usize + size as usize * size_of::<T>();
        let length = NonZeroUsize::new(bytes).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: the kernel chooses the address; only this ring uses the mapping.
        let base = unsafe {
            mmap(
                None,
                length,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE,
                socket,
                offset as libc::off_t,
            )
        }?;
        Ok(Self { base, bytes, offsets, mask: size - 1, own: 0, entries: PhantomData })
    }

    /// A word of the ring's head.
    fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: the kernel says where its words are in the mapping, which lives as long as `self`.
        let field = unsafe { self.base.as_ptr().byte_add(offset as usize) };
        // SAFETY: they are aligned, and both sides access them atomically.
        unsafe { AtomicU32::from_ptr(field.cast()) }
    }

    /// Where entry number `counter` is.
    fn entry(&self, counter: u32) -> *mut T {
        let at = self.offsets.desc as usize + (counter & self.mask) as usize * size_of::<T>();
        // SAFETY: the mapping has room for `mask + 1` entries from `desc` on.
        unsafe { self.base.as_ptr().byte_add(at).cast() }
    }

    /// As producer: writes an entry; false when the ring is full.
    pub(super) fn push(&mut self, entry: T) -> bool {
        let consumer = self.word(self.offsets.consumer).load(Ordering::Acquire);
        if self.own.wrapping_sub(consumer) > self.mask {
            return false;
        }
        // SAFETY: the entry is free: the consumer is past it.
        unsafe { self.entry(self.own).write(entry) };
        self.own = self.own.wrapping_add(1);
        self.word(self.offsets.producer).store(self.own, Ordering::Release);
        true
    }

    /// As consumer: the next entry, if there is one.
    pub(super) fn pop(&mut self) -> Option<T> {
        let producer = self.word(self.offsets.producer).load(Ordering::Acquire);
        if producer == self.own {
            return None;
        }
        // SAFETY: the producer has written it and leaves it alone until we are past it.
        let entry = unsafe { self.entry(self.own).read() };
        self.own = self.own.wrapping_add(1);
        self.word(self.offsets.consumer).store(self.own, Ordering::Release);
        Some(entry)
    }

    /// Whether the kernel must be notified of new entries.
    pub(super) fn needs_wakeup(&self) -> bool {
        let flags = self.word(self.offsets.flags).load(Ordering::Relaxed);
        flags & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

impl<T: Copy> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: nothing points into the mapping any more.
        let _ = unsafe { munmap(self.base, self.bytes) };
    }
}
