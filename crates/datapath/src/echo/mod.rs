//! The XDP echo responder, `bpf/echo.bpf.c`: loading, attaching, configuring, reading its counters.
//!
//! [`EchoProgram`] is one loaded program with its maps. Its configuration lies in memory that the
//! program reads without a system call: two copies and a word that selects which one is in force.
//! [`EchoProgram::configure`] writes the other copy, changes that word in one store and waits until
//! no packet can still be reading the old copy (`membarrier`, which waits for an RCU grace period),
//! so that it may be written the next time. A packet therefore sees one whole configuration.
//!
//! All methods take `&self`; one program may be shared by threads.

mod ledger;
mod lists;
mod run;
mod settings;
mod skeleton;

pub use crate::attach::{AttachError, AttachMode, Attachment};
pub use crate::limit::{Limit, LimitError, SourceLimit};
pub use crate::load::LoadError;
pub use ledger::{Counters, DropReason, Latency, Ledger, LedgerError, Row, Source};
pub use run::{RunError, Verdict};
pub use settings::{ConfigureError, Fragments, MAX_ADDRESSES, MAX_LIST, ReturnPath, Settings};

use crate::attach;
use crate::limit::UNITS_PER_NS;
use crate::load::{Object, draw_secret, log_to_tracing, tick_ns, undisturbed, wait_for_readers};
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use skeleton::{EchoSkel, EchoSkelBuilder, types};
use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// What the program's configuration is made of and where it lies.
struct State {
    settings: Settings,
    rows: HashMap<IpAddr, Assigned>,
    generation: u32,
    /// The two copies that the program reads. Written only where it does not read.
    data: &'static mut types::bss,
}

/// An address's row in the ledger, and what it counted before it was this address's.
#[derive(Clone, Copy, Debug)]
struct Assigned {
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

/// What is loaded.
const OBJECT: Object = Object { name: "echo" };

impl EchoProgram {
    /// Loads the program with [`Settings::default`]: no addresses, every frame goes to the kernel.
    pub fn load() -> Result<Self, LoadError> {
        log_to_tracing();
        let tick_ns = tick_ns().map_err(LoadError::Tick)?;
        // The skeleton borrows this storage for as long as it lives, which is as long as `EchoProgram`;
        // the storage (a pointer's width) is given up so that no struct has to borrow from itself.
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open =
            EchoSkelBuilder::default().open(storage).map_err(|error| OBJECT.error(error))?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.echo_tick = tick_ns * UNITS_PER_NS;
            let secret = &mut rodata.echo_secret;
            draw_secret(&mut secret.multiplier, &mut secret.offset).map_err(LoadError::Random)?;
        }
        let mut skeleton = undisturbed(|| open.load()).map_err(|error| OBJECT.error(error))?;
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

    /// Attaches the program to an interface of the calling thread's network namespace. The same
    /// program may be attached to several interfaces.
    ///
    /// # Errors
    /// When the kernel or the driver refuses.
    pub fn attach(&self, ifindex: u32, mode: AttachMode) -> Result<Attachment, AttachError> {
        attach::attach(self.fd(), ifindex, mode)
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
    ) -> Result<HashMap<IpAddr, Assigned>, ConfigureError> {
        let first = types::echo_rows::ECHO_ROW_FIRST.0;
        let last = types::echo_rows::ECHO_ROWS.0;
        let used = |row: &u32| state.rows.values().any(|assigned| assigned.row == *row);
        let mut free = (first..last).filter(|row| !used(row));
        let mut rows = HashMap::new();
        for address in &settings.addresses {
            let assigned = match state.rows.get(address) {
                Some(assigned) => *assigned,
                None => {
                    let row = free.next().expect("there are two rows for each address");
                    let before = self.read_rows(&[row])?[0];
                    Assigned { row, before }
                }
            };
            rows.insert(*address, assigned);
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

/// What a benchmark needs before it loads the program itself: messages to the log; gives the
/// step of the limits' clock in their unit.
pub(crate) fn prepare() -> Result<u64, LoadError> {
    log_to_tracing();
    Ok(tick_ns().map_err(LoadError::Tick)? * UNITS_PER_NS)
}

/// Writes settings with one address into a configuration that no program is reading.
pub(crate) fn put_alone<T: Copy>(field: &mut T, settings: &Settings) {
    assert_eq!(size_of::<T>(), CONFIG_SIZE);
    let row = types::echo_rows::ECHO_ROW_FIRST.0;
    let at = Assigned { row, before: Counters::default() };
    let rows = settings.addresses.iter().map(|address| (*address, at)).collect();
    let config = settings.compile(&rows, 0).expect("one address always fits");
    let from = (&raw const *config).cast::<T>();
    // SAFETY: both are `struct echo_config`, generated from the same header into two modules; all
    // bits are valid values of it.
    *field = unsafe { from.read() };
}
