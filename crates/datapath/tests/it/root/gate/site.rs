//! A [`Gateway`] with a gate.

use datapath::gate::{Gate, HookKind, Manage, Settings, Side};
use datapath::kernel;
use std::{
    ops::Deref,
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::Duration,
};
use testbed::{End, Gateway, Namespace};

pub(crate) struct Site {
    pub(crate) client: Namespace,
    pub(crate) router: Namespace,
    pub(crate) server: Namespace,
    /// By what its gates are attached.
    pub(crate) kind: HookKind,
}

/// Addresses of the external host.
pub(crate) const SERVER: [&str; 2] = Gateway::EXTERNAL;
/// Addresses of the internal host.
pub(crate) const CLIENT: [&str; 2] = Gateway::INTERNAL;

impl Site {
    pub(crate) fn new() -> Self {
        Self::with(HookKind::of_kernel(), |end| end)
    }

    /// One for each way in which this kernel attaches programs.
    pub(crate) fn each() -> impl Iterator<Item = Self> {
        kinds().map(|kind| Self::with(kind, |end| end))
    }

    /// The same with offloads and without.
    pub(crate) fn each_offloads() -> impl Iterator<Item = (bool, Self)> {
        let both = |kind| [(kind, true), (kind, false)];
        kinds().flat_map(both).map(|(kind, offloads)| {
            (offloads, Self::with(kind, |end| if offloads { end } else { end.no_offloads() }))
        })
    }

    fn with(kind: HookKind, change: impl Fn(End<'_>) -> End<'_>) -> Self {
        let Gateway { internal: client, router, external: server } =
            Gateway::new(true, change).unwrap();
        Self { client, router, server, kind }
    }

    /// The internal interface's index.
    pub(crate) fn internal(&self) -> u32 {
        self.router.enter(|| nix::net::if_::if_nametoindex("lan0")).unwrap()
    }

    /// A gate on it that goes with the test.
    pub(crate) fn gate(&self) -> Alive {
        let gate = Gate::open(&self.settings()).unwrap();
        self.attach(&gate);
        Alive::new(gate)
    }

    /// Checks that neither programs nor a qdisc of the gate's are at the internal interface.
    pub(crate) fn shows_nothing(&self) {
        let qdiscs = self.router.check(&["tc", "qdisc", "show", "dev", "lan0"]).unwrap();
        assert!(!qdiscs.contains("clsact"), "{qdiscs}");
        let programs = self.router.check(&["bpftool", "net", "show", "dev", "lan0"]).unwrap();
        assert!(!programs.contains("gate"), "{programs}");
    }

    /// Small tables, nothing pinned.
    pub(crate) fn settings(&self) -> Settings {
        Settings { hook_kind: Some(self.kind), ..settings() }
    }

    pub(crate) fn attach(&self, gate: &Gate) {
        let internal = self.internal();
        self.router.enter(|| gate.attach(internal)).unwrap();
    }
}

/// A gate that gets heartbeats several times a second.
pub(crate) struct Alive {
    gate: Arc<Gate>,
    /// Dropping it ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Alive {
    pub(crate) fn new(gate: Gate) -> Self {
        let (stop, stopped) = channel();
        let gate = Arc::new(gate);
        let beating = Arc::clone(&gate);
        let thread = std::thread::spawn(move || {
            let pause = Duration::from_millis(100);
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                beating.heartbeat().unwrap();
            }
        });
        Self { gate, stop: Some(stop), thread: Some(thread) }
    }
}

impl Deref for Alive {
    type Target = Gate;

    fn deref(&self) -> &Gate {
        &self.gate
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.stop = None;
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || !matches!(ended, Some(Err(_))), "heartbeats failed");
    }
}

/// By what this kernel can attach programs.
pub(crate) fn kinds() -> impl Iterator<Item = HookKind> {
    [HookKind::Clsact].into_iter().chain(kernel::tcx().then_some(HookKind::Tcx))
}

/// Small tables, nothing pinned.
pub(crate) fn settings() -> Settings {
    Settings {
        pin: None,
        max_flows: 4096,
        fresh_flows: 4096,
        refusals: 1024,
        ring_bytes: 4 << 20,
        ..Settings::default()
    }
}

/// What is wanted of one side of a flow alone, as [`Table::manage`](datapath::gate::Table::manage) takes it.
pub(crate) fn of_side(side: Side, manage: Manage) -> [Manage; 2] {
    match side {
        Side::Lower => [manage, Manage::default()],
        Side::Higher => [Manage::default(), manage],
    }
}
