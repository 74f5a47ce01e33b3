//! The STAMP reflector in the driver, `bpf/stamp.bpf.c`: loading, attaching, sessions, its clock,
//! counters.
//!
//! All methods take `&self`; one program may be shared by threads. What is done after loading needs no
//! capability but NET_ADMIN for attaching, and BPF for sessions.

mod generator;
mod skeleton;

pub use crate::attach::{AttachError, AttachMode, Attachment};
pub use crate::limit::{Limit, LimitError};
pub use crate::load::LoadError;
pub use crate::run::{RunError, Verdict};
pub use generator::Generator;

use crate::limit::{UNITS_PER_NS, rate};
use crate::load::{Object, log_to_tracing, tick_ns, undisturbed, wait_for_readers};
use crate::{attach, run};
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{MapCore as _, MapFlags};
use nix::time::{ClockId, clock_gettime};
use skeleton::{StampSkel, StampSkelBuilder, types};
use std::io;
use std::mem::{MaybeUninit, offset_of};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is loaded.
const OBJECT: Object = Object { name: "STAMP" };

/// After so long nobody reads any more what is no longer in force: a packet takes microseconds.
const READERS: Duration = Duration::from_millis(100);

/// A step of the clock by less than this is not noticed.
pub const SLACK: Duration = Duration::from_nanos(types::stamp_limits::STAMP_SLACK.0 as u64);

/// Readings of the clocks of which the best counts.
const TRIES: u32 = 3;

/// Packets since the program was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// For no address and port of the reflector: to the kernel.
    pub other: u64,
    /// Reflected in the driver.
    pub reflected: u64,
    /// To the sockets: no session of this program has its sender and SSID.
    pub passed_sender: u64,
    /// To the sockets: fragments, options, lengths that do not fit.
    pub passed_form: u64,
    /// Dropped: it ends before the base packet does.
    pub too_short: u64,
    /// Dropped: a checksum is wrong.
    pub bad_checksum: u64,
    /// Dropped: the multiplier of its Error Estimate is zero.
    pub corrupt: u64,
    /// Dropped: more than its session may send.
    pub over_rate: u64,
}

/// A session cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The rate cannot be kept.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// There is no room, or the kernel refuses otherwise.
    #[error("the kernel refuses a session with {who}: {source}")]
    Kernel {
        /// With whom.
        who: String,
        /// The kernel's answer.
        source: libbpf_rs::Error,
    },
}

/// The ledger could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the STAMP program's counters: {0}")]
pub struct LedgerError(#[from] libbpf_rs::Error);

/// Readings of the machine's clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// CLOCK_TAI.
    pub tai: Duration,
    /// CLOCK_REALTIME.
    pub system: Duration,
    /// CLOCK_BOOTTIME.
    pub boot: Duration,
}

impl Clocks {
    /// Now.
    ///
    /// # Errors
    /// When a clock cannot be read.
    pub fn read() -> io::Result<Self> {
        let read = |clock| clock_gettime(clock).map(Duration::from);
        let once = || -> io::Result<_> {
            let before = read(ClockId::CLOCK_BOOTTIME)?;
            let tai = read(ClockId::CLOCK_TAI)?;
            let took = read(ClockId::CLOCK_BOOTTIME)?.saturating_sub(before);
            let boot = before + took / 2;
            Ok((took, Self { tai, system: read(ClockId::CLOCK_REALTIME)?, boot }))
        };
        // Of several, that which nothing interrupted.
        let mut best = once()?;
        for _ in 1..TRIES {
            let next = once()?;
            if next.0 < best.0 {
                best = next;
            }
        }
        Ok(best.1)
    }
}

/// The clocks that the program reads, and when another one was last applied.
struct Clock {
    data: &'static mut types::bss,
    changed: Instant,
}

/// The loaded program. Dropping this unloads it, unless it is still attached.
pub struct StampProgram {
    // Before the skeleton: its memory is mapped there.
    clock: Mutex<Clock>,
    skeleton: StampSkel<'static>,
    tick_ns: u64,
}

impl std::fmt::Debug for StampProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StampProgram").field("tick_ns", &self.tick_ns).finish_non_exhaustive()
    }
}

impl StampProgram {
    /// Loads the program: it serves nowhere, has no session, and its clock's error is what
    /// `error_estimate` says (RFC 4656, section 4.1.2) until it is set again.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn load(error_estimate: u16) -> Result<Self, LoadError> {
        log_to_tracing();
        let tick_ns = tick_ns().map_err(LoadError::Tick)?;
        // The skeleton borrows this storage, a pointer's width, for as long as it lives; it is given up
        // so that no struct has to borrow from itself.
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let error = |error| OBJECT.error(error);
        let mut open = StampSkelBuilder::default().open(storage).map_err(error)?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.stamp_tick = tick_ns * UNITS_PER_NS;
        }
        let mut skeleton = undisturbed(|| open.load()).map_err(error)?;
        let data = skeleton.maps.bss_data.take().expect("the skeleton maps .bss");
        let clock = Mutex::new(Clock { data, changed: Instant::now() });
        let program = Self { clock, skeleton, tick_ns };
        let clocks = Clocks::read().map_err(LoadError::Tick)?;
        program.set_clock(&clocks, error_estimate, Duration::MAX);
        Ok(program)
    }

    /// Says how far the clock may be off, for so long from these readings on: to be called again before that
    /// time is over, after which replies say that it is not known. They say so as well when the clock was
    /// stepped by more than [`SLACK`], so the error must have room for that much.
    pub fn set_clock(&self, now: &Clocks, error_estimate: u16, good_for: Duration) {
        // The difference is of whole seconds; the second reading was a little later.
        let ahead = now.tai.saturating_sub(now.system) + Duration::from_millis(500);
        let good_for = u64::try_from(good_for.as_nanos()).unwrap_or(u64::MAX);
        let [tai_ns, boot_ns] = [now.tai, now.boot].map(|at| at.as_nanos() as u64);
        let clock = types::stamp_clock {
            tai_ahead_ns: ahead.as_secs() * 1_000_000_000,
            boot_behind_ns: tai_ns.wrapping_sub(boot_ns),
            until_ns: boot_ns.saturating_add(good_for),
            error: error_estimate.to_be(),
            ..Default::default()
        };
        let mut state = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        if state.changed.elapsed() < READERS {
            wait_for_readers();
        }
        let idle = state.active().load(Ordering::Relaxed) ^ 1;
        state.data.stamp_clocks[idle as usize & 1] = clock;
        state.active().store(idle, Ordering::Release);
        state.changed = Instant::now();
    }

    /// Reflects at an address and port from now on.
    ///
    /// # Errors
    /// When the kernel refuses, as when there are too many.
    pub fn serve(&self, at: SocketAddr) -> Result<(), SessionError> {
        let map = &self.skeleton.maps.stamp_services;
        map.update(&service(at), &[0; 4], MapFlags::ANY)
            .map_err(|source| SessionError::Kernel { who: at.to_string(), source })
    }

    /// Reflects the packets of a session from now on: those from this address with this SSID, zero where
    /// there is none. One that is there already begins again.
    ///
    /// # Errors
    /// When the rate cannot be kept, or the kernel refuses.
    pub fn admit(&self, with: IpAddr, ssid: u16, limit: Limit) -> Result<(), SessionError> {
        limit.check(self.tick_ns)?;
        let crate::limit::Rate { interval, tolerance } = rate(limit.rate, limit.burst);
        let mut session = [0; size_of::<types::stamp_session>()];
        let at = offset_of!(types::stamp_session, rate);
        session[at..at + 8].copy_from_slice(&interval.to_ne_bytes());
        session[at + 8..at + 16].copy_from_slice(&tolerance.to_ne_bytes());
        let map = &self.skeleton.maps.stamp_sessions;
        map.update(&sender(with, ssid), &session, MapFlags::ANY)
            .map_err(|source| SessionError::Kernel { who: format!("{with}, SSID {ssid}"), source })
    }

    /// No longer; whether it did.
    pub fn remove(&self, with: IpAddr, ssid: u16) -> bool {
        self.skeleton.maps.stamp_sessions.delete(&sender(with, ssid)).is_ok()
    }

    /// Attaches the program to an interface of the calling thread's network namespace. The same program may
    /// be attached to several interfaces.
    ///
    /// # Errors
    /// When the kernel or the driver refuses.
    pub fn attach(&self, ifindex: u32, mode: AttachMode) -> Result<Attachment, AttachError> {
        attach::attach(self.fd(), ifindex, mode)
    }

    /// The program's file descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.skeleton.progs.stamp.as_fd()
    }

    /// Runs one frame of at least 14 bytes through the program with what is in force and gives the verdict
    /// and the frame as it would leave. It counts like any other frame.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn run(&self, frame: &[u8]) -> Result<(Verdict, Vec<u8>), RunError> {
        run::once(&self.skeleton.progs.stamp, None, frame)
    }

    /// All counters, summed over CPUs.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn ledger(&self) -> Result<Ledger, LedgerError> {
        use types::stamp_count as c;
        let map = &self.skeleton.maps.stamp_ledger;
        let copies = map.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
        let mut counts = [0; c::STAMP_COUNTS.0 as usize];
        for copy in &copies {
            for (sum, word) in counts.iter_mut().zip(copy.as_chunks().0) {
                *sum += u64::from_ne_bytes(*word);
            }
        }
        let count = |what: c| counts[what.0 as usize];
        Ok(Ledger {
            other: count(c::STAMP_OTHER),
            reflected: count(c::STAMP_REFLECTED),
            passed_sender: count(c::STAMP_PASS_SENDER),
            passed_form: count(c::STAMP_PASS_FORM),
            too_short: count(c::STAMP_TOO_SHORT),
            bad_checksum: count(c::STAMP_BAD_CHECKSUM),
            corrupt: count(c::STAMP_CORRUPT),
            over_rate: count(c::STAMP_OVER_RATE),
        })
    }
}

impl Clock {
    fn active(&mut self) -> &AtomicU32 {
        // SAFETY: the word is aligned, lives as long as the borrow and is otherwise only read by the
        // program, with single loads.
        unsafe { AtomicU32::from_ptr(&raw mut self.data.stamp_active) }
    }
}

/// Key of `stamp_services`.
fn service(at: SocketAddr) -> [u8; size_of::<types::stamp_service>()] {
    key(at.ip(), at.port())
}

/// Key of `stamp_sessions`.
fn sender(with: IpAddr, ssid: u16) -> [u8; size_of::<types::stamp_sender>()] {
    key(with, ssid)
}

/// An address as IPv6 writes it, then a number, as on the wire.
fn key(address: IpAddr, number: u16) -> [u8; 20] {
    let address = match address {
        IpAddr::V4(four) => four.to_ipv6_mapped(),
        IpAddr::V6(six) => six,
    };
    let mut key = [0; 20];
    key[..16].copy_from_slice(&address.octets());
    key[16..18].copy_from_slice(&number.to_be_bytes());
    key
}

const _: () = {
    assert!(size_of::<types::stamp_service>() == 20);
    assert!(size_of::<types::stamp_sender>() == 20);
    assert!(size_of::<types::stamp_session>() == 48);
    assert!(size_of::<types::stamp_clock>() == 32);
};
