//! The in-kernel sender and receiver of `nigh blast`: `bpf/blast.bpf.c` from Rust.
//!
//! A [`Sender`] for each thread makes frames and sends them out of an interface. A [`Receiver`] is
//! attached to the same interface and counts what comes back. [`Transmissions`] says how many of the
//! frames the driver took. All of them act in the network namespace of the calling thread.
//!
//! The kernel sends live frames through the driver's XDP transmit function. That of a veth wakes the
//! other end only if it has an XDP program: see [`PassGuard`].

mod receiver;

use std::{
    fs::File,
    io, mem,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    panic::resume_unwind,
    thread,
    time::{Duration, Instant},
};

use libbpf_rs::{
    Link, OpenObject,
    libbpf_sys::{self, XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE},
    skel::{OpenSkel, SkelBuilder},
};
use wire::{EmitError, IpProtocol, checksum::Sum, echo_frame::EchoFrame};

pub use crate::run::{RunError, Verdict};
use crate::{
    clock::monotonic_ns,
    load::{LoadError, Object, undisturbed},
    xdp_link,
};
pub use receiver::{Receiver, Tally};

#[allow(missing_docs, unreachable_pub, clippy::all, clippy::undocumented_unsafe_blocks)]
#[allow(clippy::multiple_unsafe_ops_per_block, dead_code)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/blast.skel.rs"));
}
use skel::{BlastSkel, BlastSkelBuilder, OpenBlastSkel, types};

/// What is loaded.
const OBJECT: Object = Object { name: "blast" };

/// Bytes of the probe behind the ICMP header: magic, nonce, time of sending.
pub const PROBE: usize = 16;
/// Bytes of the ICMP header.
const ICMP: usize = 8;
/// The sum is over a range of the head, whose size the ABI header gives.
const HEAD: usize = 88;
/// As in `bpf/abi/blast.h`.
const REST: usize = 4096;
/// Most frames of a run: a bit of memory for each.
pub const MAX_TOTAL: u32 = 1 << 30;
/// Frames that the kernel makes before it sends them; fewer than a veth's ring of 256 holds.
const BATCH: u32 = 64;

const _: () = assert!(mem::size_of::<types::blast_plan>() == HEAD + 40);

/// Live frames cannot be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The frame is none that the program can send.
    #[error("the in-kernel engine cannot send this frame: {0}")]
    Frame(&'static str),
    /// The program was not loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The receiving program was not attached.
    #[error(
        "attaching to interface {interface} in native mode: {source}; the in-kernel engine needs \
         a driver with native XDP (so not `lo`) and no other program on the interface"
    )]
    Attach {
        /// Index of the interface.
        interface: u32,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel did not run the sending program.
    #[error("sending live frames out of interface {interface}: {source}")]
    Send {
        /// Index of the interface.
        interface: u32,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Counters could not be read.
    #[error("reading the counters of the in-kernel engine: {0:#}")]
    Read(#[source] libbpf_rs::Error),
    /// A network namespace could not be made or named.
    #[error("making or naming a network namespace: {0}; run as root")]
    Namespace(#[source] io::Error),
}

/// What a run sends. Frame `n` has identifier and sequence `base + n`, as one 32-bit number.
#[derive(Clone, Debug)]
pub struct Request {
    /// The frame, without check sequence: an echo request whose payload begins with a probe; its
    /// first 8 bytes are fixed, the other 8 are written at sending.
    pub frame: Vec<u8>,
    /// Where the ICMP header begins, in bytes.
    pub icmp: usize,
    /// Whether the frame is IPv6.
    pub ipv6: bool,
    /// Identifier and sequence of frame 0, as one number.
    pub base: u32,
    /// Frames of the run, at most [`MAX_TOTAL`].
    pub total: u32,
    /// Frames of each thread that sends; the last thread may send more.
    pub per_stream: u32,
    /// Only every `stamp_every`-th frame reads the clock; a power of two.
    pub stamp_every: u32,
}

impl Request {
    /// A run of a frame's copies, sent by one thread, of which only every 1,024th reads the clock.
    /// Identifier and sequence of the frame are those of the first copy; the first 8 bytes of its
    /// payload come back as they are, the other 8 bytes of the probe are written at sending.
    ///
    /// # Errors
    /// When the frame cannot be built.
    pub fn copies(frame: &EchoFrame, total: u32) -> Result<Self, EmitError> {
        let ipv6 = frame.source.is_ipv6();
        Ok(Self {
            frame: frame.to_bytes()?,
            icmp: frame.ethernet_len() + if ipv6 { 40 } else { 20 },
            ipv6,
            base: u32::from(frame.identifier.0) << 16 | u32::from(frame.sequence.0),
            total,
            per_stream: total,
            stamp_every: 1024,
        })
    }

    /// The settings of the programs, for the thread whose frames begin with index `first`.
    fn plan(&self, first: u32) -> Result<types::blast_plan, LiveError> {
        let head_len = self.icmp + ICMP + PROBE;
        let ip = if self.ipv6 { 40 } else { 20 };
        let problem = if self.frame.len() < head_len {
            Some("it is too short for a probe")
        } else if head_len > HEAD || self.icmp < 14 + ip {
            Some("its headers have an unusual length")
        } else if self.frame.len() > head_len + REST {
            Some("it is longer than a page")
        } else if !head_len.is_multiple_of(2) {
            Some("its headers have an odd length")
        } else if self.total == 0 || self.total > MAX_TOTAL || self.per_stream == 0 {
            Some("a run has 1 to 2^30 frames")
        } else if !self.stamp_every.is_power_of_two() {
            Some("the clock is read every 2^n frames")
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(LiveError::Frame(problem));
        }
        let mut head = [0; HEAD];
        head[..head_len].copy_from_slice(&self.frame[..head_len]);
        let icmp = &mut head[self.icmp..head_len];
        let reply_type = if self.ipv6 { 129 } else { 0 };
        let mut sum = |kind| {
            icmp[0] = kind;
            icmp[2..8].fill(0);
            icmp[16..24].fill(0);
            let sum = if self.ipv6 {
                let length = (self.frame.len() - self.icmp) as u32;
                Sum::default()
                    .bytes(&self.frame[self.icmp - 32..self.icmp])
                    .bytes(&length.to_be_bytes())
                    .word(u16::from(IpProtocol::ICMPV6.0))
            } else {
                Sum::default()
            };
            let sum = sum.bytes(icmp).bytes(&self.frame[head_len..]).fold();
            // A sum of words in another byte order is the sum in that order (RFC 1071, 2 (B)).
            u16::from_ne_bytes(sum.to_be_bytes())
        };
        let reply_sum = sum(reply_type);
        let request_sum = sum(self.frame[self.icmp]);
        Ok(types::blast_plan {
            head,
            head_len: head_len as u32,
            icmp: self.icmp as u32,
            frame_len: self.frame.len() as u32,
            base: self.base,
            total: self.total,
            first,
            per_stream: self.per_stream,
            stamp_mask: self.stamp_every - 1,
            ipv6: self.ipv6.into(),
            request_sum,
            reply_sum,
        })
    }
}

/// Which of the programs an object is opened for.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Send,
    Receive,
    Transmissions,
    Pass,
}

/// Opens the object with one program switched on.
fn open(role: Role) -> Result<OpenBlastSkel<'static>, LiveError> {
    // The skeleton borrows this cell for as long as it lives. The cell is one pointer and is not
    // given back; what it points to is freed when the skeleton is dropped.
    let cell: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
    let mut open = BlastSkelBuilder::default().open(cell).map_err(|error| OBJECT.error(error))?;
    open.progs.blast_send.set_autoload(role == Role::Send);
    open.progs.blast_receive.set_autoload(role == Role::Receive);
    open.progs.blast_transmit.set_autoload(role == Role::Transmissions);
    open.progs.blast_pass.set_autoload(role == Role::Pass);
    Ok(open)
}

/// [`xdp_link::attach`] with this module's error.
fn attach(program: BorrowedFd<'_>, interface: u32, mode: u32) -> Result<OwnedFd, LiveError> {
    xdp_link::attach(program, interface, mode)
        .map_err(|source| LiveError::Attach { interface, source })
}

/// Holds a program in the kernel's table of XDP programs that are in use.
///
/// A test run of a program that is not in that table enters it before the run and removes it after,
/// and either waits until every CPU has seen the change: 25 ms a call, far too long for a paced
/// sender. A program that is attached anywhere is in the table, so this attaches it where no packet
/// ever comes: to the loopback interface, which is down, of a network namespace of its own.
pub(crate) struct InUse {
    _link: OwnedFd,
    _namespace: File,
}

impl InUse {
    pub(crate) fn hold(program: BorrowedFd<'_>) -> Result<Self, LiveError> {
        // The namespace changes for the calling thread, hence a thread that ends right after.
        thread::scope(|scope| {
            let hold = scope.spawn(|| {
                nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)
                    .map_err(|error| LiveError::Namespace(error.into()))?;
                let namespace = File::open(NAMESPACE).map_err(LiveError::Namespace)?;
                let link = attach(program, LOOPBACK, XDP_FLAGS_SKB_MODE)?;
                Ok(Self { _link: link, _namespace: namespace })
            });
            hold.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }
}

/// The namespace of the calling thread.
const NAMESPACE: &str = "/proc/thread-self/ns/net";
/// The first interface of every namespace.
const LOOPBACK: u32 = 1;

/// Makes frames and sends them; one for each thread.
pub struct Sender {
    skel: BlastSkel<'static>,
    frame: Vec<u8>,
    interface: u32,
    _in_use: InUse,
}

impl Sender {
    /// Loads the program that sends the frames from index `first` on. `start` is the time, as
    /// [`monotonic_ns`] gives it, at which second 0 of the run begins.
    ///
    /// # Errors
    /// When the frame is none that the program can send, or the kernel refuses the program.
    pub fn load(
        interface: u32,
        request: &Request,
        first: u32,
        start: u64,
    ) -> Result<Self, LiveError> {
        let plan = request.plan(first)?;
        let mut open = open(Role::Send)?;
        if let Some(data) = &mut open.maps.rodata_data {
            data.plan = plan;
        }
        if let Some(data) = &mut open.maps.bss_data {
            data.sent.start = start;
        }
        let skel = undisturbed(|| open.load()).map_err(|error| OBJECT.error(error))?;
        let in_use = InUse::hold(skel.progs.blast_send.as_fd())?;
        Ok(Self { skel, frame: request.frame.clone(), interface, _in_use: in_use })
    }

    /// Makes `frames` frames and gives them to the driver; returns when it has them.
    ///
    /// How many the driver took, [`Transmissions`] says.
    ///
    /// # Errors
    /// When the kernel does not run the program.
    pub fn send(&self, frames: u32) -> Result<(), LiveError> {
        send_live(self.skel.progs.blast_send.as_fd(), self.interface, &self.frame, frames)
    }

    /// Frames made so far.
    pub fn made(&self) -> u64 {
        self.skel.maps.bss_data.as_ref().map_or(0, |data| data.sent.next)
    }

    /// Frames made in each second of the run; those after the first hour are in the last one.
    pub fn by_second(&self) -> Vec<u64> {
        trimmed(self.skel.maps.bss_data.as_ref().map_or(&[][..], |data| &data.sent.by_second))
    }
}

/// Runs a program that makes frames and sends them out of an interface; returns when the driver has
/// them.
pub(crate) fn send_live(
    program: BorrowedFd<'_>,
    interface: u32,
    frame: &[u8],
    frames: u32,
) -> Result<(), LiveError> {
    if frames == 0 {
        return Ok(());
    }
    let mut context = libbpf_sys::xdp_md {
        data_end: frame.len() as u32,
        ingress_ifindex: interface,
        ..Default::default()
    };
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: mem::size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
        data_in: frame.as_ptr().cast(),
        data_size_in: frame.len() as u32,
        ctx_in: (&raw mut context).cast(),
        ctx_size_in: mem::size_of::<libbpf_sys::xdp_md>() as u32,
        repeat: frames as i32,
        flags: libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES,
        batch_size: BATCH.min(frames),
        ..Default::default()
    };
    // SAFETY: frame and context live until the call returns and have the lengths given.
    let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &mut options) };
    if result < 0 {
        let source = io::Error::from_raw_os_error(-result);
        return Err(LiveError::Send { interface, source });
    }
    Ok(())
}

fn trimmed(seconds: &[u64]) -> Vec<u64> {
    let used = seconds.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
    seconds[..used].to_vec()
}

/// Counts the live frames that the driver of an interface took and refused.
pub struct Transmissions {
    skel: BlastSkel<'static>,
    _link: Link,
}

impl Transmissions {
    /// Counts from now on, for as long as the value lives.
    ///
    /// # Errors
    /// When the kernel refuses the program, for instance as it was built without tracepoints.
    pub fn watch(interface: u32) -> Result<Self, LiveError> {
        let namespace =
            std::fs::metadata("/proc/thread-self/ns/net").map_err(LiveError::Namespace)?.ino();
        let mut open = open(Role::Transmissions)?;
        if let Some(data) = &mut open.maps.rodata_data {
            data.watched_interface = interface;
            data.watched_namespace = namespace as u32; // The kernel has it as 32 bits.
        }
        let skel = undisturbed(|| open.load()).map_err(|error| OBJECT.error(error))?;
        let link = skel.progs.blast_transmit.attach_trace().map_err(|error| OBJECT.error(error))?;
        Ok(Self { skel, _link: link })
    }

    /// Frames that the driver took, and frames that it refused because its ring was full.
    pub fn counts(&self) -> (u64, u64) {
        let data = self.skel.maps.bss_data.as_ref();
        data.map_or((0, 0), |data| (data.transmitted.taken, data.transmitted.refused))
    }
}

/// What a burst showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Frames that were made.
    pub made: u64,
    /// Frames that the driver took; the others met a full ring.
    pub sent: u64,
    /// Frames to which an undamaged reply came.
    pub received: u64,
    /// Time from the first frame to the last reply.
    pub elapsed: Duration,
}

/// Sends all frames of a request out of an interface as fast as it goes, from the calling thread,
/// and counts the replies until all are in or none came for `timeout`.
///
/// Who answers is the peer's business: an XDP program there, or its kernel, which on a veth gets
/// the frames only behind an XDP program such as that of [`PassGuard`].
///
/// # Errors
/// When the kernel refuses the programs, or the interface has no native XDP.
pub fn burst(interface: u32, request: &Request, timeout: Duration) -> Result<Burst, LiveError> {
    let start = monotonic_ns();
    let receiver = Receiver::attach(interface, request, start)?;
    let watch = Transmissions::watch(interface)?;
    let sender = Sender::load(interface, request, 0, start)?;
    let begin = Instant::now();
    let mut left = request.total;
    while left > 0 {
        let frames = left.min(CALL);
        sender.send(frames)?;
        left -= frames;
    }
    let (mut received, mut elapsed) = (receiver.received()?, begin.elapsed());
    let mut quiet = Instant::now();
    while received < watch.counts().0 && quiet.elapsed() < timeout {
        thread::sleep(Duration::from_micros(100));
        let now = receiver.received()?;
        if now > received {
            (received, elapsed, quiet) = (now, begin.elapsed(), Instant::now());
        }
    }
    Ok(Burst { made: sender.made(), sent: watch.counts().0, received, elapsed })
}

/// Frames of a burst to a call: a few milliseconds.
const CALL: u32 = 8_192;

/// Holds a program on an interface that lets everything through, so that live frames reach the
/// kernel behind it: a veth takes them only while its peer has a program.
pub struct PassGuard {
    _skel: BlastSkel<'static>,
    _link: OwnedFd,
}

impl PassGuard {
    /// Attaches in native mode.
    ///
    /// # Errors
    /// When the kernel refuses the program, or the driver has no native XDP.
    pub fn attach(interface: u32) -> Result<Self, LiveError> {
        let open = open(Role::Pass)?;
        let skel = undisturbed(|| open.load()).map_err(|error| OBJECT.error(error))?;
        let link = attach(skel.progs.blast_pass.as_fd(), interface, XDP_FLAGS_DRV_MODE)?;
        Ok(Self { _skel: skel, _link: link })
    }
}
