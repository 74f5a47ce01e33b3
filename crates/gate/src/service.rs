//! The running gate: names flows by their first packets, decides them, and keeps the kernel's table.
//!
//! ```text
//!   kernel: packets ──► table of flows ──► pass, drop, reset, queue
//!              │ first packets, managed ones        ▲
//!              ▼ (ring)                             │ verdicts
//!   worker: read ──► engines ──► label ──► policy ──┘
//!              ▲
//!   control ───┘  requests between packets
//! ```
//!
//! [`Service`] is a handle. One thread (`worker`) owns all that is known of flows, so nothing is locked;
//! what it publishes once a second is immutable and behind an atomic pointer. While that thread does not
//! run, decided flows go on with their verdicts: maps and links are pinned, and the next process takes
//! them over.
//!
//! The start has two steps, because rights belong to threads and are given up in between:
//! [`Opened::open`] opens what needs a right and starts no thread, [`Opened::start`] does the rest.

mod answer;
mod attempts;
mod beat;
mod classes;
mod clock;
mod collect;
mod core;
mod counters;
mod error;
mod id;
mod internal;
mod kernel;
mod labels;
mod managed;
mod namer;
mod orders;
mod problems;
mod records;
mod rounds;
mod seen;
mod shape;
mod worker;

pub use datapath::gate::mount;
pub use error::{ControlError, ReloadError, StartError, TakeOffError};

use crate::{
    audit::{Audit, Mapping},
    config::Config,
    control::Request,
    parser::{
        contents::Contents,
        link::{Link, Program},
        names::Names,
    },
    policy::Policy,
    scan::{Report, Scanner},
    status::{self, Status},
};
use arc_swap::ArcSwap;
use attempts::Attempts;
use core::Core;
use datapath::gate::{Found, Gate, Injector, Reader, Settings};
use internal::Internal;
use job::Pulse;
use labels::Labels;
use managed::Managers;
use namer::Namer;
use records::Log;
use serde_json::Value;
use shape::Shapers;
use std::{
    fmt,
    path::Path,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::JoinHandle,
};
use tokio::sync::oneshot;
use tracing::info;
use worker::{Ask, Worker};

/// The gate's folder in the state directory.
const FOLDER: &str = "gate";
/// The file of labels in it.
const LABELS: &str = "labels.jsonl";

/// A gate that holds what needs a right, and has no thread yet.
pub struct Opened {
    config: Config,
    gate: Gate,
    reader: Reader,
    shapers: Shapers,
    internal: Internal,
    labels: Labels,
    names: Link<Names>,
    contents: Link<Contents>,
    program: Program,
    injector: Injector,
    mapping: Option<Arc<dyn Mapping>>,
}

impl Opened {
    /// Loads the programs, or takes over those of an earlier process, and puts them on the interfaces.
    /// The audit writes addresses as `mapping` has them; parsers are processes of `program`.
    ///
    /// # Errors
    /// See [`StartError`]. What was attached then is taken off, unless an earlier process had attached it.
    pub fn open(
        config: Config,
        mapping: Option<Arc<dyn Mapping>>,
        program: Program,
    ) -> Result<Self, StartError> {
        datapath::gate::purge();
        let internal = Internal::find(&config.gate);
        let names = namer::open(&program, &config.gate)?;
        let contents = Link::open(program.clone(), ())?;
        let path = config.state.join(FOLDER).join(LABELS);
        let labels = Labels::open(&path).map_err(|source| StartError::Labels { path, source })?;
        let injector = Injector::open().map_err(StartError::Injector)?;
        let pin = datapath::gate::home()?;
        let is_new = !pin.exists();
        let mut shapers = Shapers::new(internal.indices());
        if !config.gate.limits.is_empty() {
            shapers.open()?;
        }
        let settings = Settings {
            pin: Some(pin),
            max_flows: config.gate.max_flows,
            fresh_flows: worker::undecided(config.gate.max_flows),
            rules: worker::rules(&config.gate, shapers.queue()),
            ..Settings::default()
        };
        let opened = Gate::open(&settings).map_err(StartError::from).and_then(|gate| {
            match put_in_place(&config, &gate, &internal, &mut shapers) {
                Ok(reader) => Ok((gate, reader)),
                Err(error) => {
                    if gate.found() != Found::TakenOver {
                        close(gate);
                    }
                    Err(error)
                }
            }
        });
        match opened {
            Ok((gate, reader)) => Ok(Self {
                config,
                gate,
                reader,
                shapers,
                internal,
                labels,
                names,
                contents,
                program,
                injector,
                mapping,
            }),
            Err(error) => {
                if is_new {
                    shapers.close();
                }
                Err(error)
            }
        }
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// See [`StartError`]; what was opened is given back then.
    pub fn start(self) -> Result<Service, StartError> {
        let (asks, receiver) = mpsc::channel();
        let audit = self.config.gate.audit.clone();
        let mapping = self.mapping.clone();
        let audit = match audit.map(|audit| Audit::start(audit, mapping)).transpose() {
            Ok(audit) => audit,
            Err(error) => {
                self.give_back();
                return Err(error.into());
            }
        };
        let Self { config, gate, reader, shapers, internal, labels, names, contents, .. } = self;
        let (program, injector) = (self.program, self.injector);
        let log = Log::new(audit.as_ref().map(Audit::sender), datapath::clock::monotonic_ns());
        let scanner = managed::scanner(&config.gate, deliver(asks.clone()));
        let policy = Arc::new(Policy::new(&config.gate, &[]));
        let bounds = worker::bounds(&config.gate);
        let published = Arc::new(ArcSwap::from_pointee(Status::default()));
        let table = gate.table();
        let rounds = rounds::Rounds::new(table.walk());
        let mut worker = Worker {
            table,
            gate,
            core: Core::new(
                Namer::new(names),
                policy,
                bounds,
                labels,
                clock::moment(),
                log.is_on(),
            ),
            managers: Managers::new(
                &config.gate,
                scanner,
                config.state.join(FOLDER).join("torrents"),
                contents,
            ),
            log,
            audit,
            injector,
            shapers,
            internal,
            config: config.clone(),
            runtime_rules: Vec::new(),
            rounds,
            beat: beat::Beat::default(),
            numbered: 0,
            published: published.clone(),
            problems: problems::Problems::default(),
            attempts: Attempts::default(),
        };
        worker.begin();
        let pulse = Pulse::default();
        let alive = pulse.beat("worker");
        let thread = panics::thread("gate", move || worker.run(reader, &receiver, &alive))
            .map_err(StartError::Thread)?;
        info!(internal = %config.gate.internal.join(", "), "gate");
        Ok(Service {
            asks,
            published,
            config: Arc::new(Mutex::new(config)),
            program,
            thread: Arc::new(Mutex::new(Some(thread))),
            pulse,
        })
    }

    /// Takes back what was opened as the start goes no further; what an earlier process had left in force
    /// stays so.
    pub fn give_back(self) {
        let Self { gate, mut shapers, .. } = self;
        if gate.found() != Found::TakenOver {
            // No packet is sent to queue where no queue is any more.
            close(gate);
            shapers.close();
        }
    }
}

/// Takes off the gate that a process which has ended left in force in this network namespace, with its
/// limits. Returns whether there was one.
///
/// # Errors
/// A process runs it, or it cannot be removed.
pub fn take_off() -> Result<bool, TakeOffError> {
    let interfaces = datapath::gate::take_off()?;
    let was_on = !interfaces.is_empty();
    let mut shapers = Shapers::new(interfaces);
    if Shapers::are_left() {
        shapers.open()?;
        shapers.close();
    }
    Ok(was_on)
}

/// What an earlier process of the node with this state directory left in force goes, for the node has no
/// gate any more.
pub fn take_off_earlier(state: &Path) {
    if !state.join(FOLDER).join(LABELS).exists() {
        return;
    }
    match take_off() {
        Ok(true) => info!("there is no [gate] any more: the gate is off"),
        Ok(false) => {}
        Err(error) => tracing::warn!("there is no [gate] any more, but it is in force: {error}"),
    }
}

/// Removes what is pinned.
fn close(gate: Gate) {
    if let Err(error) = gate.close() {
        tracing::warn!(%error, "what the gate had pinned was not removed");
    }
}

/// Puts the gate on its interfaces; what an earlier process has left beside its flows goes.
fn put_in_place(
    config: &Config,
    gate: &Gate,
    internal: &Internal,
    shapers: &mut Shapers,
) -> Result<Reader, StartError> {
    if gate.found() == Found::TakenOver {
        info!("takes over the flows of an earlier process");
        // It may have had another policy.
        gate.table().forget_refusals();
        if !shapers.is_open() && Shapers::are_left() && shapers.open().is_ok() {
            shapers.close();
        }
    }
    if config.gate.bypass {
        gate.bypass(true).map_err(datapath::gate::OpenError::Control)?;
    }
    internal.attach(gate)?;
    gate.reader().map_err(StartError::Reader)
}

/// A configuration that was found good, and that is not in force yet.
#[derive(Debug)]
pub struct Prepared {
    config: Config,
    /// Where they are to be others.
    names: Option<Link<Names>>,
    /// The same, and whether there is one.
    scanner: Option<Option<Scanner>>,
}

/// Brings the scanner's reports to the thread.
fn deliver(asks: mpsc::Sender<Ask>) -> impl Fn(Report) + Send + Sync + 'static {
    move |report| {
        // A gate that has stopped has no use for it.
        let _ = asks.send(Ask::Report(report));
    }
}

/// A running gate; clones are handles on the same one.
#[derive(Clone, Debug)]
pub struct Service {
    asks: mpsc::Sender<Ask>,
    published: Arc<ArcSwap<Status>>,
    config: Arc<Mutex<Config>>,
    program: Program,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
    pulse: Pulse,
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Control(..) => "Control",
            Self::Refresh(..) => "Refresh",
            Self::Prepare(..) => "Prepare",
            Self::Reload(..) => "Reload",
            Self::Report(..) => "Report",
            Self::Stop => "Stop",
        })
    }
}

impl Service {
    /// Asks the thread; none when it has ended.
    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.asks.send(ask(reply)).ok()?;
        answer.await.ok()
    }
}

impl job::Service for Service {
    type Config = Config;
    type Request = Request;
    type Prepared = Prepared;

    fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    fn problems(&self) -> Vec<String> {
        self.published.load().problems.clone()
    }

    fn status(&self) -> Value {
        serde_json::to_value(&**self.published.load()).unwrap_or_default()
    }

    async fn refresh(&self) {
        // A gate that has stopped has nothing newer.
        let _ = self.ask(Ask::Refresh).await;
    }

    fn render(&self) -> String {
        status::render(&self.published.load())
    }

    fn collect(&self, metrics: &mut job::Metrics<'_>) -> fmt::Result {
        collect::collect(&self.published.load(), metrics)
    }

    async fn control(&self, request: Request) -> Result<Value, job::Error> {
        let answer = self.ask(|reply| Ask::Control(request, reply)).await;
        Ok(answer.ok_or(ControlError::Stopped)??)
    }

    /// Starts a parser and builds the scanner where they are to be others.
    async fn prepare(&self, config: Config) -> Result<Prepared, job::Error> {
        let old = self.config.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (differs, key) in [
            (config.gate.internal != old.gate.internal, "internal"),
            (config.gate.refuse_at != old.gate.refuse_at, "refuse_at"),
            (config.gate.max_flows != old.gate.max_flows, "max_flows"),
            (config.gate.audit != old.gate.audit, "audit"),
        ] {
            if differs {
                return Err(ReloadError::Restart(key).into());
            }
        }
        let differ = config.gate.packets != old.gate.packets
            || config.gate.signatures != old.gate.signatures;
        // A parser takes seconds to read many signatures.
        let (program, gate) = (self.program.clone(), config.gate.clone());
        let names = match differ {
            true => Some(
                panics::spawn_blocking(move || namer::open(&program, &gate))
                    .await
                    .map_err(|_| ReloadError::Stopped)??,
            ),
            false => None,
        };
        let scanner = managed::differs(old.gate.scan.as_ref(), config.gate.scan.as_ref())
            .then(|| managed::scanner(&config.gate, deliver(self.asks.clone())));
        Ok(Prepared { config, names, scanner })
    }

    /// Puts up the shapers that limits need.
    async fn commit(&self, prepared: &mut Prepared) -> Result<(), job::Error> {
        let limits = !prepared.config.gate.limits.is_empty();
        let done = self.ask(|reply| Ask::Prepare(limits, reply)).await;
        Ok(done.ok_or(ReloadError::Stopped)??)
    }

    /// Flows keep their labels and are judged again; rules that the operator gave end.
    async fn finish(&self, prepared: Prepared) {
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = prepared.config.clone();
        // A gate that has stopped meanwhile has nothing to put in force.
        let _ = self.ask(|reply| Ask::Reload(Box::new(prepared), reply)).await;
    }

    /// Shapers that no limit needs go with the thread's next round.
    async fn roll_back(&self, _: Prepared) {}

    /// Ends the thread. What the kernel has stays in force: decided flows keep their verdicts and limits,
    /// others follow `on_failure`, until the next process takes over or [`take_off`] ends it.
    async fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // It may have ended.
        let _ = self.asks.send(Ask::Stop);
        if let Some(thread) = thread {
            let _ = panics::spawn_blocking(move || thread.join()).await;
        }
    }
}
