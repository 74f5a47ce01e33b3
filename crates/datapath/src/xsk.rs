//! AF_XDP: the frames of an interface, past the kernel's network stack (af_xdp.rst of the kernel's
//! documentation).
//!
//! A [`Tap`](crate::tap)'s counterpart for interfaces that are there already. `bpf/xsk.bpf.c` hands all
//! frames of the interface to sockets, one a receive queue, each with memory of its own (a "UMEM") in
//! which the kernel puts frames and takes them from. Whether the driver does that without copying is
//! up to it; veth copies.
//!
//! A frame is copied once on entry, out of that memory, and once on exit: it then waits
//! where all other frames wait, and the kernel always has memory to put the next one into.

mod ring;

use crate::{
    attach::{AttachError, AttachMode, Attachment, attach},
    ethtool,
    load::{LoadError, Object, log_to_tracing, undisturbed},
};
use libbpf_rs::{
    MapCore as _, MapFlags,
    skel::{OpenSkel as _, SkelBuilder as _},
};
use nix::{
    libc,
    sys::mman::{MapFlags as Map, ProtFlags, mmap_anonymous, munmap},
};
use ring::Ring;
use std::{
    ffi::c_void,
    io, mem,
    mem::MaybeUninit,
    num::NonZeroUsize,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr::{self, NonNull},
};

#[allow(missing_docs, unreachable_pub, clippy::all, clippy::undocumented_unsafe_blocks)]
#[allow(clippy::multiple_unsafe_ops_per_block, dead_code)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/xsk.skel.rs"));
}
use skeleton::{XskSkel, XskSkelBuilder};

const OBJECT: Object = Object { name: "xsk" };

/// Entries of each ring, and frames that a socket has for each direction.
const RING: u32 = 2048;
/// Bytes of a frame's slot: a page, as every driver takes it.
const CHUNK: usize = 4096;
/// Bytes before a received frame that the kernel keeps for programs (XDP_PACKET_HEADROOM).
const HEADROOM: usize = 256;
/// The longest frame.
pub const LONGEST: usize = CHUNK - HEADROOM;
/// Most receive queues: the entries of the program's map.
const MOST_QUEUES: u32 = 64;

/// An interface could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is none of this name.
    #[error("there is no interface {0} in this network namespace")]
    NoInterface(String),
    /// It has more queues than the program's map.
    #[error(
        "interface {0} has {1} receive queues, more than {MOST_QUEUES}: set fewer with `ethtool -L {0} combined N`"
    )]
    Queues(String, u32),
    /// The program cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The program cannot be attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// A socket cannot be made.
    #[error("AF_XDP socket on queue {queue} of {name}: {what}: {source}")]
    Socket {
        /// The interface.
        name: String,
        /// The receive queue.
        queue: u32,
        /// What was tried.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

/// An interface whose frames all come here, until this is dropped.
pub struct Interface {
    queues: Vec<Queue>,
    /// The queue that is asked first for the next frame.
    next: usize,
    _skeleton: XskSkel<'static>,
    _attachment: Attachment,
    mode: AttachMode,
}

impl std::fmt::Debug for Interface {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interface").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Interface {
    /// Takes over an interface of the calling thread's network namespace: natively if its driver can,
    /// else in the kernel's receive path.
    ///
    /// # Errors
    /// See [`OpenError`]; the interface is as it was then.
    pub fn open(name: &str) -> Result<Self, OpenError> {
        log_to_tracing();
        let missing = |_| OpenError::NoInterface(name.to_owned());
        let index = nix::net::if_::if_nametoindex(name).map_err(missing)?;
        // One where the driver does not say.
        let queues = ethtool::queues(name).unwrap_or(1).max(1);
        if queues > MOST_QUEUES {
            return Err(OpenError::Queues(name.to_owned(), queues));
        }
        // The skeleton borrows this storage, a pointer's width, for as long as it lives.
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let load = |error| OpenError::Load(OBJECT.error(error));
        let skeleton = XskSkelBuilder::default().open(storage).map_err(load)?;
        let skeleton = undisturbed(|| skeleton.load()).map_err(load)?;
        let program = skeleton.progs.xsk_take.as_fd();
        let attachment = match attach(program, index, AttachMode::Native) {
            Err(AttachError::Unsupported { .. } | AttachError::SetUp { .. }) => {
                attach(program, index, AttachMode::Generic)
            }
            result => result,
        }?;
        let mode = attachment.mode();
        let mut open = Vec::new();
        for queue in 0..queues {
            let failed =
                |(what, source)| OpenError::Socket { name: name.to_owned(), queue, what, source };
            let socket = Queue::open(index, queue).map_err(failed)?;
            let (key, value) = (queue.to_ne_bytes(), socket.socket.as_raw_fd().to_ne_bytes());
            let map = &skeleton.maps.xsk_sockets;
            map.update(&key, &value, MapFlags::ANY)
                .map_err(|error| failed(("telling the program", io::Error::other(error))))?;
            open.push(socket);
        }
        Ok(Self { queues: open, next: 0, _skeleton: skeleton, _attachment: attachment, mode })
    }

    /// Where the program runs.
    pub fn mode(&self) -> AttachMode {
        self.mode
    }

    /// Takes the next frame that has arrived at any queue into the buffers, one after the other; `None`
    /// when there is none. Returns its length; what does not fit is lost. The queues take turns.
    pub fn receive(&mut self, buffers: &mut [&mut [u8]]) -> Option<usize> {
        in_turn(&mut self.queues, &mut self.next, |queue| queue.receive(buffers))
    }

    /// Lets a frame out, which may lie in pieces. False when it is too long or the interface does not
    /// keep up.
    ///
    /// # Errors
    /// The system's error, such as `ENETDOWN` when the interface is down.
    pub fn send(&mut self, pieces: &[&[u8]]) -> io::Result<bool> {
        // One queue keeps frames in order; the driver may use the cores of all for it.
        match self.queues.first_mut() {
            Some(queue) => queue.send(pieces),
            None => Ok(false),
        }
    }

    /// To wait until there is something to receive: the sockets of all queues.
    pub fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.queues.iter().map(|queue| queue.socket.as_fd())
    }
}

/// The first answer of those that are asked one after the other, beginning with number `next`. That
/// becomes the one after who answered.
fn in_turn<T, R>(
    all: &mut [T],
    next: &mut usize,
    mut ask: impl FnMut(&mut T) -> Option<R>,
) -> Option<R> {
    let (before, from) = all.split_at_mut((*next).min(all.len()));
    let first = before.len();
    let order = from.iter_mut().zip(first..).chain(before.iter_mut().zip(0..));
    let (answer, number) = order.into_iter().find_map(|(one, number)| Some((ask(one)?, number)))?;
    *next = (number + 1) % all.len();
    Some(answer)
}

/// The socket of one receive queue.
struct Queue {
    // Before the memory: the kernel stops using it when the socket is closed.
    socket: OwnedFd,
    fill: Ring<u64>,
    received: Ring<libc::xdp_desc>,
    transmit: Ring<libc::xdp_desc>,
    completed: Ring<u64>,
    /// Slots of frames that can be sent next.
    free: Vec<u64>,
    memory: Memory,
}

impl Queue {
    fn open(interface: u32, queue: u32) -> Result<Self, (&'static str, io::Error)> {
        let name = |what| move |source: io::Error| (what, source);
        // SAFETY: the call takes three integers.
        let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(("socket (needs CAP_NET_RAW)", io::Error::last_os_error()));
        }
        // SAFETY: the call succeeded, so this is a new descriptor that nobody else owns.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        let memory = Memory::new(2 * RING as usize * CHUNK).map_err(name("memory"))?;
        // SAFETY: all zeros is a valid value of it: numbers only.
        let mut registration: libc::xdp_umem_reg = unsafe { mem::zeroed() };
        registration.addr = memory.begin.as_ptr() as u64;
        registration.len = memory.length as u64;
        registration.chunk_size = CHUNK as u32;
        set(&socket, libc::XDP_UMEM_REG, &registration)
            .map_err(name("its 16 MB of memory (CAP_IPC_LOCK or `ulimit -l` permits it)"))?;
        for ring in [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
            libc::XDP_TX_RING,
        ] {
            set(&socket, ring, &RING).map_err(name("its rings"))?;
        }
        let offsets = offsets(&socket).map_err(name("where its rings are"))?;
        let map = |offset: u64, offsets| Ring::map(socket.as_fd(), offset, offsets, RING);
        let mut fill =
            map(libc::XDP_UMEM_PGOFF_FILL_RING, offsets.fr).map_err(name("the fill ring"))?;
        let completed = map(libc::XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr)
            .map_err(name("the completion ring"))?;
        let map =
            |offset: libc::off_t, offsets| Ring::map(socket.as_fd(), offset as u64, offsets, RING);
        let received = map(libc::XDP_PGOFF_RX_RING, offsets.rx).map_err(name("the RX ring"))?;
        let transmit = map(libc::XDP_PGOFF_TX_RING, offsets.tx).map_err(name("the TX ring"))?;
        let slot = |number: u32| u64::from(number) * CHUNK as u64;
        for number in 0..RING {
            fill.push(slot(number));
        }
        let free = (RING..2 * RING).map(slot).collect();
        bind(&socket, interface, queue).map_err(name("binding it to the queue"))?;
        Ok(Self { socket, fill, received, transmit, completed, free, memory })
    }

    fn receive(&mut self, buffers: &mut [&mut [u8]]) -> Option<usize> {
        let frame = self.received.pop()?;
        let mut rest = self.memory.bytes(frame.addr, frame.len as usize);
        let length = rest.len();
        for buffer in buffers {
            let (now, later) = rest.split_at(rest.len().min(buffer.len()));
            buffer[..now.len()].copy_from_slice(now);
            rest = later;
        }
        // The address is anywhere in the frame's slot; the ring has room for all slots.
        self.fill.push(frame.addr - frame.addr % CHUNK as u64);
        if self.fill.needs_wakeup() {
            self.wake_receiver();
        }
        Some(length)
    }

    fn send(&mut self, pieces: &[&[u8]]) -> io::Result<bool> {
        while let Some(slot) = self.completed.pop() {
            self.free.push(slot);
        }
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        if length > CHUNK {
            return Ok(false);
        }
        let Some(slot) = self.free.pop() else { return Ok(false) };
        let mut at = 0;
        let bytes = self.memory.bytes_mut(slot, length);
        for piece in pieces {
            bytes[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        }
        self.transmit.push(libc::xdp_desc { addr: slot, len: length as u32, options: 0 });
        if self.transmit.needs_wakeup() { self.wake_sender() } else { Ok(true) }
    }

    /// Tells the kernel that there is memory for frames again.
    fn wake_receiver(&self) {
        // SAFETY: no memory of ours is passed.
        unsafe {
            libc::recvfrom(
                self.socket.as_raw_fd(),
                ptr::null_mut(),
                0,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
    }

    /// Tells the kernel that there are frames to send.
    fn wake_sender(&self) -> io::Result<bool> {
        let fd = self.socket.as_raw_fd();
        // SAFETY: no memory of ours is passed.
        let sent = unsafe { libc::sendto(fd, ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) };
        if sent >= 0 {
            return Ok(true);
        }
        match io::Error::last_os_error() {
            // It is busy, or is notified again with the next frame.
            error
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS)
                ) =>
            {
                Ok(true)
            }
            error => Err(error),
        }
    }
}

/// The memory in which a socket and the kernel exchange frames.
struct Memory {
    begin: NonNull<c_void>,
    length: usize,
}

// SAFETY: the memory belongs to the process, and whoever has this has it alone.
unsafe impl Send for Memory {}

impl Memory {
    fn new(length: usize) -> io::Result<Self> {
        let size = NonZeroUsize::new(length).ok_or(io::ErrorKind::InvalidInput)?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the kernel chooses a free range.
        let begin = unsafe { mmap_anonymous(None, size, protection, Map::MAP_PRIVATE) }?;
        Ok(Self { begin, length })
    }

    /// A frame that the kernel has put there and leaves alone until its slot is given back.
    fn bytes(&self, address: u64, length: usize) -> &[u8] {
        let address = (address as usize).min(self.length);
        let length = length.min(self.length - address);
        // SAFETY: the bytes lie within the mapping.
        let begin = unsafe { self.begin.as_ptr().byte_add(address).cast::<u8>() };
        // SAFETY: they are readable, and the kernel does not write to a frame that it has handed over.
        unsafe { std::slice::from_raw_parts(begin, length) }
    }

    /// A slot that is free to write a frame of at most [`CHUNK`] bytes to.
    fn bytes_mut(&mut self, address: u64, length: usize) -> &mut [u8] {
        let address = (address as usize).min(self.length);
        let length = length.min(self.length - address);
        // SAFETY: the bytes lie within the mapping.
        let begin = unsafe { self.begin.as_ptr().byte_add(address).cast::<u8>() };
        // SAFETY: they are writable, and the kernel has given the slot back.
        unsafe { std::slice::from_raw_parts_mut(begin, length) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: nothing points into the mapping any more, and the socket is closed.
        let _ = unsafe { munmap(self.begin, self.length) };
    }
}

/// Sets an option of an AF_XDP socket.
fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let value = ptr::from_ref(value).cast();
    // SAFETY: the kernel reads `length` bytes of the value.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_XDP, option, value, length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Where the words and entries of each ring are in its mapping.
fn offsets(socket: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: all zeros is a valid value of it: numbers only.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { mem::zeroed() };
    let mut length = size_of_val(&offsets) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into it.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            libc::XDP_MMAP_OFFSETS,
            (&raw mut offsets).cast(),
            &raw mut length,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(offsets) }
}

/// Binds a socket to a receive queue: without copying if the driver can, as the kernel tries that first.
fn bind(socket: &OwnedFd, interface: u32, queue: u32) -> io::Result<()> {
    // SAFETY: all zeros is a valid value of it: numbers only.
    let mut address: libc::sockaddr_xdp = unsafe { mem::zeroed() };
    address.sxdp_family = libc::AF_XDP as u16;
    address.sxdp_flags = libc::XDP_USE_NEED_WAKEUP;
    address.sxdp_ifindex = interface;
    address.sxdp_queue_id = queue;
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of the address.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::in_turn;

    /// A queue that always has frames must not keep those of the others waiting.
    #[test]
    fn queues_take_turns() {
        let mut waiting = [5, 0, 3, 1];
        let mut next = 0;
        let mut served = Vec::new();
        while let Some(frame) = in_turn(&mut waiting, &mut next, |frames: &mut u32| {
            *frames = frames.checked_sub(1)?;
            Some(*frames)
        }) {
            served.push(frame);
        }
        assert_eq!(served, [4, 2, 0, 3, 1, 2, 0, 1, 0]);
        assert_eq!(waiting, [0; 4]);
        assert_eq!(in_turn(&mut [], &mut next, |(): &mut ()| Some(())), None);
    }
}
