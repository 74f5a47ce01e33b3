//! The gate's programs, `bpf/gate.bpf.c`: loading, taking over, attaching, settings.
//!
//! - [`Gate`]: the programs and their maps.
//! - [`Reader`]: packets that were copied out or held, and flows that ended.
//! - [`Injector`]: sends on what was held.
//! - [`Table`]: verdicts on flows, and refusals.
//! - [`Ledger`]: the outcomes of all packets.
//!
//! User space calls [`Gate::heartbeat`] several times a second; when it is silent for two seconds,
//! packets of undecided flows follow [`OnFailure`].

mod flow;
mod held;
mod injector;
mod interfaces;
mod ledger;
mod pin;
mod reader;
mod record;
mod run;
mod settings;
mod skeleton;
mod table;
mod walk;

pub use crate::attach::AttachMode;
pub use crate::link::HookKind;
pub use crate::load::LoadError;
pub use crate::ring::Pace;
pub use flow::{
    CacheKey, Flow, FlowVerdict, Key, Manage, PacketAction, Protocol, Sent, Side, WINDOW,
};
pub use held::Held;
pub use injector::{Injector, ReleaseError};
pub use interfaces::{AttachError, INTERFACES};
pub use ledger::{Counts, Ledger, LedgerError};
pub use pin::{home, mount, purge, take_off};
pub use reader::Reader;
pub use record::{Direction, Reason, Record};
pub use run::{Meta, RunError, TcVerdict};
pub use settings::{OnFailure, Rules, Settings};
pub use table::{Table, TableError};
pub use walk::Walk;

use crate::load::{Object, log_to_tracing, undisturbed};
use interfaces::Links;
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{MapCore as _, MapFlags, OpenMapMut};
use nix::time::{ClockId, clock_gettime};
use skeleton::{GateSkel, GateSkelBuilder, OpenGateSkel, types};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is loaded.
const OBJECT: Object = Object { name: "gate" };

/// A gate could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The programs could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A size that cannot be.
    #[error("the gate's {what} cannot be {value}: {why}")]
    Size {
        /// What of.
        what: &'static str,
        /// What was asked for.
        value: u32,
        /// What it can be.
        why: &'static str,
    },
    /// What is pinned could not be read, made or removed.
    #[error(
        "cannot keep the gate's maps in {path}: {source}; it needs a folder of a BPF file system that this user may write to: `mount -t bpf bpf /sys/fs/bpf`, or, for a user other than root, one at /run/nigh-bpf that belongs to that user (contrib/nigh.service)"
    )]
    Pin {
        /// The folder.
        path: String,
        /// The system's answer.
        source: io::Error,
    },
    /// Another process has this gate.
    #[error(
        "another process runs a gate in this network namespace and keeps its maps in {path}: end it first"
    )]
    Held {
        /// The folder.
        path: String,
    },
    /// The settings could not be written.
    #[error("cannot set the rules of the gate's programs: {0}")]
    Control(libbpf_rs::Error),
    /// There is no way to the queue.
    #[error(
        "cannot send limited packets of interface {ifindex} through their queues: {source}; without TCX this needs the kernel's action mirred (CONFIG_NET_ACT_MIRRED)"
    )]
    Queue {
        /// The interface.
        ifindex: u32,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// What the maps were found to be when the gate was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing was pinned.
    Nothing,
    /// Maps and links of a process before were taken over, with their flows.
    TakenOver,
    /// What was pinned did not fit and was removed: flows are as new.
    Replaced,
}

/// What all handles share.
pub(super) struct Inner {
    skeleton: GateSkel<'static>,
    control: Mutex<types::gate_control>,
    /// Flows that were decided since the last heartbeat, and since the one before.
    settling: Mutex<(Vec<Key>, Vec<Key>)>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("control", &self.control).finish_non_exhaustive()
    }
}

/// The gate. When this is dropped, what is pinned stays in force; see [`Gate::close`].
#[derive(Debug)]
pub struct Gate {
    inner: Arc<Inner>,
    links: Mutex<Links>,
    hook_kind: HookKind,
    /// [`Rules::queue`].
    queue: Mutex<Option<u32>>,
    settings: Settings,
    found: Found,
    _lock: Option<pin::Lock>,
}

impl Gate {
    /// Loads the programs, or takes over what is pinned, in the network namespace of the interfaces.
    ///
    /// # Errors
    /// When a size cannot be, the kernel refuses, or the folder cannot be used.
    pub fn open(settings: &Settings) -> Result<Self, OpenError> {
        log_to_tracing();
        check(settings)?;
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |source| OpenError::Pin { path, source }
        };
        let mut found = Found::Nothing;
        let mut open = prepare(settings)?;
        let mut lock = None;
        if let Some(path) = &settings.pin {
            lock = pin::folder(path).map_err(failed(path))?;
            if lock.is_none() {
                return Err(OpenError::Held { path: path.display().to_string() });
            }
            let mut maps = pinned(&mut open);
            if path.read_dir().map_err(failed(path))?.next().is_some() {
                found = Found::TakenOver;
                let control = pin::first(path, "gate_control");
                let control = control.and_then(|bytes| read::<types::gate_control>(&bytes));
                let is_ours = control.is_some_and(|control| control.version == VERSION);
                if !is_ours || !maps.iter().all(|map| pin::fits(path, map)) {
                    found = Found::Replaced;
                    pin::clear(path).map_err(failed(path))?;
                }
            }
            for map in &mut maps {
                let file = path.join(map.name());
                map.set_pin_path(file).map_err(|error| OBJECT.error(error))?;
            }
        }
        let loaded = undisturbed(|| open.load()).map_err(|error| OBJECT.error(error));
        let inner =
            Inner { skeleton: loaded?, control: Mutex::default(), settling: Mutex::default() };
        let links = match (&settings.pin, found) {
            (Some(path), Found::TakenOver) => inner.take_over(path).map_err(failed(path))?,
            _ => Links::new(),
        };
        let gate = Self {
            inner: Arc::new(inner),
            links: Mutex::new(links),
            hook_kind: settings.hook_kind.unwrap_or_else(HookKind::of_kernel),
            queue: Mutex::default(),
            settings: settings.clone(),
            found,
            _lock: lock,
        };
        // Running programs get all settings at once: nothing is off for a moment.
        let bypass = gate.settings().map_err(OpenError::Control)?.bypass;
        let interfaces = gate.interfaces();
        gate.change(|control| {
            *control = types::gate_control { bypass, version: VERSION, ..Default::default() };
            put_rules(control, &settings.rules, gate.hook_kind);
            put_interfaces(control, &interfaces);
        })
        .map_err(OpenError::Control)?;
        gate.send_through(settings.rules.queue)?;
        Ok(gate)
    }

    /// What was found when it was opened.
    pub fn found(&self) -> Found {
        self.found
    }

    /// By what it gets to interfaces.
    pub fn hook_kind(&self) -> HookKind {
        self.hook_kind
    }

    /// Puts rules in force, and says that user space lives.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn configure(&self, rules: &Rules) -> Result<(), OpenError> {
        self.send_through(rules.queue)?;
        self.change(|control| put_rules(control, rules, self.hook_kind)).map_err(OpenError::Control)
    }

    /// The reading end of what is copied out. There must be one at most.
    ///
    /// # Errors
    /// When the ring cannot be mapped.
    pub fn reader(&self) -> io::Result<Reader> {
        let ring = self.inner.skeleton.maps.gate_ring.as_fd().try_clone_to_owned()?;
        Reader::new(ring, self.settings.ring_bytes as usize)
    }

    /// The tables of flows and refusals.
    pub fn table(&self) -> Table {
        Table { inner: Arc::clone(&self.inner) }
    }

    /// Switches the gate off at one stroke, so that everything passes, or on again.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn bypass(&self, on: bool) -> Result<(), libbpf_rs::Error> {
        self.change(|control| control.bypass = u32::from(on))
    }

    /// Whether it is switched off.
    pub fn is_bypassed(&self) -> bool {
        self.control().bypass != 0
    }

    /// Says that user space lives: to be called several times a second.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn heartbeat(&self) -> Result<(), libbpf_rs::Error> {
        self.change(|control| control.heartbeat_ns = coarse_ns())?;
        self.table().settle();
        Ok(())
    }

    fn control(&self) -> MutexGuard<'_, types::gate_control> {
        self.inner.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The settings in force, whichever process wrote them.
    fn settings(&self) -> Result<types::gate_control, libbpf_rs::Error> {
        let map = &self.inner.skeleton.maps.gate_control;
        let value = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?;
        Ok(value.and_then(|value| read(&value)).unwrap_or_default())
    }

    fn change(
        &self,
        change: impl FnOnce(&mut types::gate_control),
    ) -> Result<(), libbpf_rs::Error> {
        let mut control = self.control();
        change(&mut control);
        let map = &self.inner.skeleton.maps.gate_control;
        map.update(&0_u32.to_ne_bytes(), bytes_of(&*control), MapFlags::ANY)
    }
}

fn put_rules(control: &mut types::gate_control, rules: &Rules, kind: HookKind) {
    control.drop_on_failure = u32::from(rules.on_failure == OnFailure::Drop);
    control.budget = rules.packets;
    control.hold = u32::from(rules.hold);
    control.queue = match (rules.queue, kind) {
        (None, _) => 0,
        (Some(queue), HookKind::Tcx) => queue,
        (Some(_), HookKind::Clsact) => types::gate_limits::GATE_QUEUE_BEHIND.0,
    };
    control.heartbeat_ns = coarse_ns();
}

fn put_interfaces(control: &mut types::gate_control, interfaces: &[u32]) {
    control.internal = Default::default();
    for (slot, ifindex) in control.internal.iter_mut().zip(interfaces) {
        *slot = *ifindex;
    }
}

/// What is pinned is taken over only by who means the same by it: a sum (FNV-1a) of the files that say
/// what it means.
const VERSION: u32 = {
    let files: [&[u8]; 2] = [
        include_bytes!("../../../../bpf/abi/gate.h"),
        include_bytes!("../../../../bpf/include/gate_state.h"),
    ];
    let (mut sum, mut file) = (0x811c_9dc5_u32, 0);
    while file < files.len() {
        let mut at = 0;
        while at < files[file].len() {
            sum = (sum ^ files[file][at] as u32).wrapping_mul(0x0100_0193);
            at += 1;
        }
        file += 1;
    }
    sum
};

fn check(settings: &Settings) -> Result<(), OpenError> {
    let sizes = [
        ("max_flows", settings.max_flows),
        ("fresh_flows", settings.fresh_flows),
        ("refusals", settings.refusals),
    ];
    for (what, value) in sizes {
        if !(1..=1 << 24).contains(&value) {
            return Err(OpenError::Size { what, value, why: "1 to 16,777,216" });
        }
    }
    let value = settings.ring_bytes;
    if !value.is_power_of_two() || !(1 << 18..=1 << 30).contains(&value) {
        let why = "a power of two, 256 KiB to 1 GiB";
        return Err(OpenError::Size { what: "ring_bytes", value, why });
    }
    Ok(())
}

/// Opens the programs with maps of the sizes that are wanted.
fn prepare(settings: &Settings) -> Result<OpenGateSkel<'static>, LoadError> {
    // The skeleton borrows this storage, a pointer's width, for as long as it lives; it is given up so
    // that no struct has to borrow from itself.
    let storage = Box::leak(Box::new(MaybeUninit::uninit()));
    let error = |error| OBJECT.error(error);
    let mut open = GateSkelBuilder::default().open(storage).map_err(error)?;
    let maps = &mut open.maps;
    maps.gate_decided.set_max_entries(settings.max_flows).map_err(error)?;
    maps.gate_fresh.set_max_entries(settings.fresh_flows).map_err(error)?;
    maps.gate_refusals.set_max_entries(settings.refusals).map_err(error)?;
    maps.gate_ring.set_max_entries(settings.ring_bytes).map_err(error)?;
    Ok(open)
}

/// The maps that outlive a process.
fn pinned<'a>(open: &'a mut OpenGateSkel<'static>) -> [&'a mut OpenMapMut<'static>; 8] {
    let maps = &mut open.maps;
    [
        &mut maps.gate_decided,
        &mut maps.gate_fresh,
        &mut maps.gate_refusals,
        &mut maps.gate_fragments,
        &mut maps.gate_ring,
        &mut maps.gate_ledger,
        &mut maps.gate_control,
        &mut maps.gate_filtered,
    ]
}

/// The clock that flows' times are of, to within some milliseconds.
fn coarse_ns() -> u64 {
    let now =
        clock_gettime(ClockId::CLOCK_MONOTONIC_COARSE).map(Duration::from).unwrap_or_default();
    now.as_nanos() as u64
}

/// Types of the ABI: every pattern of bytes is a value of them.
trait Plain: Copy {}
impl Plain for types::gate_key {}
impl Plain for types::gate_flow {}
impl Plain for types::gate_record {}
impl Plain for types::gate_refusal {}
impl Plain for types::gate_control {}

/// A struct of the ABI at the begin of some bytes, if there are so many.
fn read<T: Plain>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    // SAFETY: there are as many bytes as the type has, and any bytes are a value of it.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// The bytes of a struct of the ABI.
fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: as many bytes as the type has, which have no padding, for as long as the borrow.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

const _: () = {
    assert!(types::gate_limits::GATE_CLASSES.0 == (crate::shaper::MAJOR as u32) << 16);
    assert!(size_of::<types::gate_key>() == 40);
    assert!(size_of::<types::gate_side>() == 48);
    assert!(size_of::<types::gate_flow>() == 136);
    assert!(size_of::<types::gate_refusal_key>() == 40);
    assert!(size_of::<types::gate_refusal>() == 24);
    assert!(size_of::<types::gate_fragment_key>() == 40);
    assert!(size_of::<types::gate_fragment>() == 48);
    assert!(size_of::<types::gate_control>() == 64);
    assert!(size_of::<types::gate_record>() == 112);
    assert!(size_of::<types::gate_request>() == 80);
};
