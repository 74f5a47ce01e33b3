//! The XDP echo responder, `bpf/echo.bpf.c`: loading, attaching, configuring, reading its counters.
//!
//! [`EchoProgram`] is one loaded program with its maps. Its configuration lies in memory that the
//! program reads without a system call: two copies and a word that says which one is in force.
//! [`EchoProgram::configure`] writes the other copy, changes that word in one store and waits until
//! no packet can still be reading the old copy (`membarrier`, which waits for an RCU grace period),
//! so that it may be written the next time. A packet therefore sees one whole configuration.
//!
//! All methods take `&self`; one program may be shared by threads.

mod attach;
mod ledger;
mod lists;
mod run;
mod settings;
mod skeleton;
mod slots;

pub use attach::{AttachError, AttachMode, Attachment};
pub use ledger::{Counters, DropReason, Latency, Ledger, LedgerError, Row, Source};
pub use run::{RunError, Verdict};
pub use settings::{
    ConfigureError, Fragments, Limit, MAX_ADDRESSES, MAX_LIST, ReturnPath, Settings, SourceLimit,
};

use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{ErrorKind, PrintLevel};
use skeleton::{EchoSkel, EchoSkelBuilder, types};
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::{fs, io, io::Read as _};

/// The program could not be loaded into the kernel.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The process lacks the rights.
    #[error(
        "the kernel refuses to load the echo program: not permitted; run as root or with the capabilities CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"
    )]
    NotPermitted,
    /// The kernel's verifier or loader refused it.
    #[error(
        "the kernel refuses the echo program: {0}; it needs Linux 5.15 or later with CONFIG_BPF_SYSCALL and CONFIG_BPF_JIT, and its log has the details"
    )]
    Refused(libbpf_rs::Error),
    /// No random numbers for the secrets.
    #[error("cannot read /dev/urandom: {0}")]
    Random(io::Error),
    /// The length of a clock tick is unknown.
    #[error("cannot read the length of a clock tick (clock_getres): {0}")]
    Tick(io::Error),
}

/// What the program's configuration is made of and where it lies.
struct State {
    settings: Settings,
    rows: HashMap<IpAddr, Place>,
    generation: u32,
    /// The two copies that the program reads. Written only where it does not read.
    data: &'static mut types::bss,
}

/// An address's row in the ledger, and what it counted before it was this address's.
#[derive(Clone, Copy, Debug)]
struct Place {
    row: u32,
    before: Counters,
}

/// The loaded echo program. Dropping it unloads it, unless it is still attached.
pub struct EchoProgram {
    skeleton: EchoSkel<'static>,
    state: Mutex<State>,
    tick_ns: u64,
}

impl std::fmt::Debug for EchoProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EchoProgram").field("tick_ns", &self.tick_ns).finish_non_exhaustive()
    }
}

/// The limiter counts in 1/64 ns (bpf/include/limit.h).
const UNITS_PER_NS: u64 = 64;

impl EchoProgram {
    /// Loads the program with [`Settings::default`]: no addresses, every frame goes to the kernel.
    pub fn load() -> Result<Self, LoadError> {
        log_to_tracing();
        let tick_ns = tick_ns().map_err(LoadError::Tick)?;
        // The skeleton borrows this place for as long as it lives, which is as long as `EchoProgram`;
        // the place (a pointer's width) is given up so that no struct has to borrow from itself.
        let place = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = EchoSkelBuilder::default().open(place).map_err(load_error)?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.echo_tick = tick_ns * UNITS_PER_NS;
            for row in rodata.echo_secret.multiplier.iter_mut() {
                for multiplier in row.iter_mut() {
                    *multiplier = random().map_err(LoadError::Random)? | 1;
                }
            }
            for offset in rodata.echo_secret.offset.iter_mut() {
                *offset = random().map_err(LoadError::Random)?;
            }
        }
        let mut skeleton = open.load().map_err(load_error)?;
        let data = skeleton.maps.bss_data.take().expect("the skeleton maps .bss");
        let settings = Settings::default();
        put_alone(&mut data.echo_configs[0], &settings);
        let state = State { settings, rows: HashMap::new(), generation: 0, data };
        Ok(Self { skeleton, state: Mutex::new(state), tick_ns })
    }

    /// Puts settings in force for every packet that arrives after this returns, all at once; an
    /// error leaves the old ones in force. Addresses that stay keep their counters.
    ///
    /// Blocks for an RCU grace period, which is some milliseconds.
    pub fn configure(&self, settings: &Settings) -> Result<(), ConfigureError> {
        settings.check(self.tick_ns)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = 1 - state.generation;
        let rows = self.assign_rows(&state, settings)?;
        self.write_lists(generation, settings)?;
        let config = settings.compile(&rows, generation)?;

        let active = Self::active(&mut state).load(Ordering::Relaxed) as usize / CONFIG_SIZE;
        state.data.echo_configs[1 - active] = *config;
        Self::active(&mut state).store(((1 - active) * CONFIG_SIZE) as u32, Ordering::Release);
        wait_for_readers();

        self.clear_lists(state.generation)?;
        state.generation = generation;
        state.rows = rows;
        state.settings = settings.clone();
        Ok(())
    }

    /// The settings in force.
    pub fn settings(&self) -> Settings {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).settings.clone()
    }

    /// The granularity of the rate limits' clock in nanoseconds (1/CONFIG_HZ).
    pub fn tick_ns(&self) -> u64 {
        self.tick_ns
    }

    /// The kernel's number of this program.
    pub fn id(&self) -> io::Result<u32> {
        libbpf_rs::Program::id_from_fd(self.fd()).map_err(io::Error::other)
    }

    /// The program's file descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.skeleton.progs.echo.as_fd()
    }

    fn active(state: &mut State) -> &AtomicU32 {
        // SAFETY: the word is aligned, lives as long as the borrow and is otherwise only read by the
        // program, with single loads.
        unsafe { AtomicU32::from_ptr(&raw mut state.data.echo_active) }
    }

    /// A row of the ledger for each address: the one that it has, else a free one. No packet counts
    /// in a free row, so what others left in it is read at leisure and subtracted from then on.
    fn assign_rows(
        &self,
        state: &State,
        settings: &Settings,
    ) -> Result<HashMap<IpAddr, Place>, ConfigureError> {
        let first = types::echo_rows::ECHO_ROW_FIRST.0;
        let last = types::echo_rows::ECHO_ROWS.0;
        let used = |row: &u32| state.rows.values().any(|place| place.row == *row);
        let mut free = (first..last).filter(|row| !used(row));
        let mut rows = HashMap::new();
        for address in &settings.addresses {
            let place = match state.rows.get(address) {
                Some(place) => *place,
                None => {
                    let row = free.next().expect("there are two rows for each address");
                    let before = self.read_rows(&[row])?[0];
                    Place { row, before }
                }
            };
            rows.insert(*address, place);
        }
        Ok(rows)
    }
}

const CONFIG_SIZE: usize = size_of::<types::echo_config>();

const _: () = {
    assert!(CONFIG_SIZE == 16384);
    assert!(size_of::<types::echo_row>() == 120);
    assert!(size_of::<types::echo_slot4>() == 8);
    assert!(size_of::<types::echo_slot6>() == 32);
    assert!(size_of::<types::echo_list_key>() == 24);
    assert!(size_of::<types::echo_source>() == 20);
    assert!(size_of::<types::limit_secret>() == 80);
};

/// What a benchmark needs before it loads the program in its own way: messages to the log; gives the
/// step of the limits' clock in their unit.
pub(crate) fn prepare() -> Result<u64, LoadError> {
    log_to_tracing();
    Ok(tick_ns().map_err(LoadError::Tick)? * UNITS_PER_NS)
}

/// Writes settings with one address into a configuration that no program is reading.
pub(crate) fn put_alone<T: Copy>(place: &mut T, settings: &Settings) {
    assert_eq!(size_of::<T>(), CONFIG_SIZE);
    let row = types::echo_rows::ECHO_ROW_FIRST.0;
    let at = Place { row, before: Counters::default() };
    let rows = settings.addresses.iter().map(|address| (*address, at)).collect();
    let config = settings.compile(&rows, 0).expect("one address always fits");
    let from = (&raw const *config).cast::<T>();
    // SAFETY: both are `struct echo_config`, generated from the same header into two modules; all
    // bits are valid values of it.
    *place = unsafe { from.read() };
}

pub(crate) fn load_error(error: libbpf_rs::Error) -> LoadError {
    match error.kind() {
        ErrorKind::PermissionDenied => LoadError::NotPermitted,
        _ => LoadError::Refused(error),
    }
}

/// libbpf's messages become events of this process, once for all programs.
fn log_to_tracing() {
    static ONCE: Once = Once::new();
    fn print(level: PrintLevel, message: String) {
        let message = message.trim_end();
        match level {
            PrintLevel::Warn => tracing::warn!(target: "libbpf", "{message}"),
            PrintLevel::Info => tracing::debug!(target: "libbpf", "{message}"),
            PrintLevel::Debug => tracing::trace!(target: "libbpf", "{message}"),
        }
    }
    ONCE.call_once(|| {
        libbpf_rs::set_print(Some((PrintLevel::Info, print)));
    });
}

/// How far the jiffy counter's step is: the resolution of the coarse clock is that, exactly.
fn tick_ns() -> io::Result<u64> {
    let step = nix::time::clock_getres(nix::time::ClockId::CLOCK_MONOTONIC_COARSE)?;
    Ok(step.tv_nsec() as u64 + step.tv_sec() as u64 * 1_000_000_000)
}

fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Returns when every program run that began before the call has ended: `membarrier` with
/// MEMBARRIER_CMD_GLOBAL waits for an RCU grace period, and programs run inside of one.
fn wait_for_readers() {
    const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;
    // SAFETY: the call takes three integers and touches no memory of ours.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if result != 0 {
        // Kernels with nohz_full do not offer it. A packet takes less than a millisecond.
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}
