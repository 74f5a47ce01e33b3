//! Our own gate: the kernel's part alone, and the daemon with several configurations.

use crate::{
    Failure, NIGH,
    stage::{INTERNAL, Stage},
    variants::Variant,
};
use datapath::gate::{FlowVerdict, Gate, Pace, PacketAction, Rules, Settings};
use nix::{net::if_::if_nametoindex, sys::signal::Signal};
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use testbed::{Nigh, clients::Clamd, wait_until};

/// First packets that are copied of each flow.
const PACKETS: u32 = 8;
/// How records are read, as the daemon does.
const PACE: Pace =
    Pace { timeout: Duration::from_millis(50), gather: Duration::from_millis(1), most: usize::MAX };
/// Time from one heartbeat to the next, as the daemon's.
const BEAT: Duration = Duration::from_millis(100);
/// How long the daemon may take to end.
const END: Duration = Duration::from_secs(10);

/// The kernel's part: the first packets of each flow are copied out, and when all of them have been read
/// the flow is passed without anybody having inspected them.
pub(crate) struct CopyOut {
    stop: Arc<AtomicBool>,
    copied: Arc<AtomicU64>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl CopyOut {
    pub(crate) fn start(stage: &Stage) -> Result<Self, Failure> {
        let rules = Rules { packets: PACKETS, ..Rules::default() };
        let gate = Gate::open(&Settings { pin: None, rules, ..Settings::default() })?;
        stage.gate.enter(|| -> Result<(), Failure> {
            gate.attach(if_nametoindex(INTERNAL)?)?;
            Ok(())
        })?;
        let (mut reader, table) = (gate.reader()?, gate.table());
        let (stop, copied) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&copied));
        let read = move || -> std::io::Result<()> {
            let pass = FlowVerdict { action: PacketAction::Pass, ..FlowVerdict::default() };
            let mut beaten = None;
            while !stopped.load(Ordering::Relaxed) {
                if beaten.is_none_or(|last: Instant| last.elapsed() >= BEAT) {
                    gate.heartbeat().map_err(std::io::Error::other)?;
                    beaten = Some(Instant::now());
                }
                reader.read(PACE, |record| {
                    count.fetch_add(1, Ordering::Relaxed);
                    if record.number + 1 >= PACKETS {
                        // A full table is no reason to end: the flow stays undecided.
                        let _ = table.decide(&record.key, &pass);
                    }
                })?;
            }
            gate.close()
        };
        Ok(Self { stop, copied, thread: Some(thread::spawn(read)) })
    }

    /// Stops it and returns what it reports.
    pub(crate) fn end(mut self) -> Result<String, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().map_err(|_| "the reader died")??;
        }
        Ok(format!("{} packets copied out", self.copied.load(Ordering::Relaxed)))
    }
}

impl Drop for CopyOut {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The daemon with a section `[gate]`, and the scanner that it asks.
pub(crate) struct Daemon {
    nigh: Nigh,
    clamd: Option<Clamd>,
    /// Where what outlives the daemon is pinned.
    pins: PathBuf,
}

impl Daemon {
    /// Starts it as this variant has it.
    pub(crate) fn start(stage: &Stage, variant: Variant) -> Result<Self, Failure> {
        let clamd = variant.scans().then(|| Clamd::start(&stage.gate, None)).transpose()?;
        let socket = clamd.as_ref().map(Clamd::socket);
        let words = variant.section(&stage.folder.path().join("audit"), socket.as_deref());
        let section = format!("[gate]\ninternal = [\"{INTERNAL}\"]\n{words}");
        let nigh = Nigh::start(&stage.gate, Path::new(NIGH), "gate", &section)?;
        let pins = stage.gate.enter(datapath::gate::home)?;
        Ok(Self { nigh, clamd, pins })
    }

    pub(crate) fn pid(&mut self) -> u32 {
        self.nigh.process().pid()
    }

    /// Stops it as an operator does, and takes off what stays in force; returns its counters.
    pub(crate) fn end(mut self) -> Result<String, Failure> {
        let status = self.nigh.control(&json!({"do": "status"}))?;
        self.nigh.process().signal(Signal::SIGTERM)?;
        wait_until("the gate's end", END, || self.nigh.process().ended().is_some())?;
        std::fs::remove_dir_all(&self.pins)?;
        let packets = status.pointer("/gate/packets");
        let files = status.pointer("/gate/files").filter(|_| self.clamd.is_some());
        Ok(files.or(packets).map(ToString::to_string).unwrap_or_default())
    }
}
