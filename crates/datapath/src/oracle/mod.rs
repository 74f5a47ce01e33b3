//! The oracle in the driver, `bpf/oracle.bpf.c`: loading, attaching, tables, limits, counters.
//!
//! [`OracleProgram`] is two programs and what they share: an XDP program that answers the plain
//! request, and a filter for the UDP sockets, which drops what is over its rate before it is queued.
//! A packet is charged by exactly one of them. The XDP program needs Linux 6.9 ([`lacks`]); on older
//! kernels the filter is loaded alone, and sockets answer everything.
//!
//! Settings and tables exist twice each, in memory that the programs read without a system call. A
//! word says which of them are in force. [`OracleProgram::configure`] and [`OracleProgram::publish`]
//! write the other copy, change that word in one store and wait until no packet can still be reading
//! the old copy; a packet sees one word, so one whole copy of each.
//!
//! All methods take `&self`; one program may be shared by threads. What is done after loading needs
//! no capability but NET_ADMIN for attaching.

mod arena;
mod ledger;
mod limits;
mod paint;
mod publish;
mod settings;
mod skeleton;

pub use crate::attach::{AttachError, AttachMode, Attachment};
pub use crate::limit::{Limit, LimitError, SourceLimit};
pub use crate::load::LoadError;
pub use crate::run::{RunError, Verdict};
pub use ledger::{Ledger, LedgerError};
pub use limits::{MAX_BLOCKS, MAX_GROUPS, MAX_METRICS, MAX_RANKS, PublishError};
pub use publish::{MetricRows, Published, UNKNOWN};
pub use settings::{ConfigureError, MAX_SERVICES, Settings};

use crate::limit::UNITS_PER_NS;
use crate::load::{Object, draw_secret, log_to_tracing, tick_ns, undisturbed, wait_for_readers};
use crate::{attach, kernel, run};
use arena::Arena;
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use skeleton::{OracleSkel, OracleSkelBuilder, types};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// What is loaded.
const OBJECT: Object = Object { name: "oracle" };

/// What the XDP program needs and this kernel has not. The filter of the sockets needs none of it.
pub fn lacks() -> Option<&'static str> {
    if !kernel::arena() {
        Some("eBPF arenas (Linux 6.9)")
    } else if !kernel::may_goto() {
        Some("the eBPF instruction may_goto (Linux 6.9)")
    } else {
        None
    }
}

/// What is in force.
struct State {
    settings: Settings,
    /// The copies that the programs read, and the word that selects which. Written only where they do
    /// not read.
    data: &'static mut types::bss,
    /// The tables of the XDP program, if that is loaded.
    arena: Option<Arena>,
}

/// The loaded programs. Dropping this unloads them, unless they are still attached.
pub struct OracleProgram {
    // Before the skeleton: its memory is mapped there.
    state: Mutex<State>,
    skeleton: OracleSkel<'static>,
    tick_ns: u64,
}

impl std::fmt::Debug for OracleProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OracleProgram").field("tick_ns", &self.tick_ns).finish_non_exhaustive()
    }
}

impl OracleProgram {
    /// Loads the programs with [`Settings::default`] and no tables: every frame goes to the kernel.
    /// Where the kernel [`lacks`] what the XDP program needs, the filter alone.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn load() -> Result<Self, LoadError> {
        log_to_tracing();
        let tick_ns = tick_ns().map_err(LoadError::Tick)?;
        // The skeleton borrows this storage, a pointer's width, for as long as it lives; it is given up
        // so that no struct has to borrow from itself.
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let error = |error| OBJECT.error(error);
        let mut open = OracleSkelBuilder::default().open(storage).map_err(error)?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.oracle_tick = tick_ns * UNITS_PER_NS;
            let secret = &mut rodata.oracle_secret;
            draw_secret(&mut secret.multiplier, &mut secret.offset).map_err(LoadError::Random)?;
        }
        let whole = lacks().is_none();
        open.progs.oracle.set_autoload(whole);
        open.maps.oracle_arena.set_autocreate(whole).map_err(error)?;
        let mut skeleton = undisturbed(|| open.load()).map_err(error)?;
        let data = skeleton.maps.bss_data.take().expect("the skeleton maps .bss");
        let arena = whole.then(|| Arena::of(&skeleton.maps.oracle_arena));
        let settings = Settings::default();
        let state = Mutex::new(State { settings, data, arena });
        Ok(Self { state, skeleton, tick_ns })
    }

    /// Puts settings in force for every packet that arrives after this returns, all at once; an
    /// error leaves the old ones in force. Blocks for an RCU grace period, some milliseconds.
    ///
    /// # Errors
    /// When the settings cannot be kept.
    pub fn configure(&self, settings: &Settings) -> Result<(), ConfigureError> {
        settings.check(self.tick_ns)?;
        let config = settings.compile()?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let active = state.active().load(Ordering::Relaxed);
        let bit = types::oracle_state::ORACLE_CONFIG.0;
        state.data.oracle_configs[usize::from(active & bit == 0)] = config;
        state.activate(active ^ bit);
        state.settings = settings.clone();
        Ok(())
    }

    /// The settings in force.
    pub fn settings(&self) -> Settings {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).settings.clone()
    }

    /// Leaves all questions to the sockets until tables are published again.
    pub fn withdraw(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let active = state.active().load(Ordering::Relaxed);
        state.activate(active & !types::oracle_state::ORACLE_READY.0);
    }

    /// Attaches the XDP program to an interface of the calling thread's network namespace. The same
    /// program may be attached to several interfaces.
    ///
    /// # Errors
    /// When the kernel or the driver refuses, or the kernel [`lacks`] something.
    pub fn attach(&self, ifindex: u32, mode: AttachMode) -> Result<Attachment, AttachError> {
        match lacks() {
            Some(lacks) => Err(AttachError::Lacks { lacks }),
            None => attach::attach(self.skeleton.progs.oracle.as_fd(), ifindex, mode),
        }
    }

    /// Puts the filter before a UDP socket, for as long as the socket lives.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn attach_filter(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let program = self.skeleton.progs.oracle_limit.as_fd().as_raw_fd();
        // SAFETY: the option's value is one int, which lives through the call; both descriptors are
        // open for as long as their borrows.
        let result = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_BPF,
                (&raw const program).cast(),
                size_of_val(&program) as libc::socklen_t,
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The granularity of the rate limits' clock in nanoseconds (1/CONFIG_HZ).
    pub fn tick_ns(&self) -> u64 {
        self.tick_ns
    }

    /// Runs one frame of at least 14 bytes through the XDP program with what is in force and gives
    /// the verdict and the frame as it would leave. It counts like any other frame. Only for kernels that
    /// lack nothing.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn run(&self, frame: &[u8]) -> Result<(Verdict, Vec<u8>), RunError> {
        run::once(&self.skeleton.progs.oracle, None, frame)
    }
}

impl State {
    fn active(&mut self) -> &AtomicU32 {
        // SAFETY: the word is aligned, lives as long as the borrow and is otherwise only read by the
        // programs, with single loads.
        unsafe { AtomicU32::from_ptr(&raw mut self.data.oracle_active) }
    }

    /// Says what is in force from now on and waits until nobody reads what was before.
    fn activate(&mut self, active: u32) {
        self.active().store(active, Ordering::Release);
        wait_for_readers();
    }
}

const _: () = {
    assert!(size_of::<types::oracle_config>() == 2112);
    assert!(size_of::<types::oracle_line>() == 64);
    assert!(size_of::<types::oracle_tables>() == 64);
    assert!(size_of::<types::limit_secret>() == 80);
};
