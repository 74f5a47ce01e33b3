//! The responder and its announcement as one service that the daemon starts, queries and stops.
//!
//! [`Service`] is a handle. Behind it one task, `worker::Worker`, owns everything that changes: the
//! attached program, the interfaces, the checks, the sessions. It publishes its state as an
//! immutable [`Status`] behind an atomic pointer; the program's counters are read from its maps on
//! request.

mod change;
mod collect;
mod command;
mod force;
mod kernel;
mod loopback;
mod port;
mod probe;
mod read;
mod upstreams;
mod wanted;
mod worker;

use crate::{
    config::Config,
    control::Request,
    status::{self, Status},
};
use arc_swap::{ArcSwap, ArcSwapOption};
use datapath::echo::{AttachError, ConfigureError, EchoProgram, LedgerError, LoadError};
use job::{Error, Metrics, Pulse};
use std::{io, sync::Arc};
use tokio::sync::{mpsc, oneshot};

pub use kernel::KernelError;
pub use loopback::LoopbackError;

/// The service did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Netlink is not available.
    #[error("no netlink socket: {0}")]
    Netlink(#[from] io::Error),
    /// Netlink gave no answer.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The configured mode is not available.
    #[error("echo.mode = {mode:?}: {error}")]
    Load {
        /// The mode.
        mode: crate::config::Mode,
        /// Why.
        error: LoadError,
    },
    /// The program cannot be attached.
    #[error("interface {interface}: {error}")]
    Attach {
        /// Name of the interface.
        interface: String,
        /// Why.
        error: AttachError,
    },
    /// The program refuses the settings.
    #[error(transparent)]
    Configure(#[from] ConfigureError),
    /// The service addresses cannot be put on `lo`.
    #[error(transparent)]
    Loopback(#[from] LoopbackError),
    /// An upstream cannot be started.
    #[error(transparent)]
    Upstream(#[from] bgp::announcer::StartError),
}

/// A changed configuration could not be applied; the old one stays in force.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// Something that it needs is not available.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It needs a program, but the capability to load one is gone
    /// (docs/decisions/050-capabilities.md).
    #[error(
        "echo.mode: `kernel` was in force and the right to load a program was given up: restart the \
         daemon to apply"
    )]
    Mode,
    /// The service was stopped.
    #[error("the service was stopped")]
    Stopped,
}

/// A request on the control socket could not be answered.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The kernel itself answers.
    #[error("no program is attached, the kernel itself answers: there is nothing to {0}")]
    NoProgram(&'static str),
    /// The new values are not valid.
    #[error("{0}")]
    Values(String),
    /// A prefix to remove from a list is not in it.
    #[error("{prefix} is not in the list {list}")]
    NotListed {
        /// The prefix.
        prefix: ipnet::IpNet,
        /// `allow` or `deny`.
        list: &'static str,
    },
    /// The program refuses the settings.
    #[error(transparent)]
    Configure(#[from] ConfigureError),
    /// The program's counters cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The service was stopped.
    #[error("the service was stopped")]
    Stopped,
}

/// What the worker publishes.
#[derive(Debug)]
struct Shared {
    /// The loaded program; none while the kernel itself answers.
    program: ArcSwapOption<EchoProgram>,
    /// Everything except the program's counters.
    status: ArcSwap<Status>,
}

impl Shared {
    /// The status with the program's current counters.
    fn status(&self) -> Status {
        let mut status = Status::clone(&self.status.load());
        if let Some(program) = &*self.program.load() {
            match (read::ledger(program), read::latency(program)) {
                (Ok(ledger), Ok(latency)) => {
                    (status.ledger, status.latency) = (ledger, latency);
                }
                (Err(error), _) | (_, Err(error)) => status.problems.push(error.to_string()),
            }
        }
        status
    }
}

/// Requests to the worker, each with the channel for its answer.
#[derive(Debug)]
enum Ask {
    /// The first step of a reload; the worker keeps what it has prepared.
    Prepare(Box<Config>, oneshot::Sender<Result<(), ReloadError>>),
    Commit(oneshot::Sender<Result<(), ReloadError>>),
    Finish(oneshot::Sender<()>),
    RollBack(oneshot::Sender<()>),
    Control(Request, oneshot::Sender<Result<serde_json::Value, ControlError>>),
    Drain(oneshot::Sender<()>),
    Undrain(oneshot::Sender<()>),
    Stop(oneshot::Sender<()>),
}

/// A running responder with its announcer; clones are handles on the same one (`Send + Sync`, for
/// the HTTP server shares them).
#[derive(Clone, Debug)]
pub struct Service {
    shared: Arc<Shared>,
    asks: mpsc::Sender<Ask>,
    pulse: Pulse,
}

impl Service {
    /// Opens what the configuration names: programs are attached and sessions begin before this
    /// returns. Nothing is announced before all checks have succeeded.
    ///
    /// With `drained` it starts as after a drain: it answers, but nothing is announced
    /// before `undrain`. A node that an operator drained stays drained over a restart.
    ///
    /// # Errors
    /// Something that it names is not available; what was done until then is undone.
    pub async fn start(config: Config, drained: bool) -> Result<Self, StartError> {
        let (asks, asked) = mpsc::channel(16);
        let worker = worker::Worker::start(config, drained).await?;
        let shared = worker.shared();
        let pulse = Pulse::default();
        panics::spawn(worker.run(asked, pulse.beat("worker")));
        Ok(Self { shared, asks, pulse })
    }

    /// Sends a request to the worker; `None` if it has been stopped.
    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.asks.send(ask(answer)).await.ok()?;
        answered.await.ok()
    }
}

impl job::Service for Service {
    type Config = Config;
    type Request = Request;
    /// The worker has it.
    type Prepared = ();

    fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    fn status(&self) -> serde_json::Value {
        serde_json::to_value(self.shared.status()).unwrap_or_default()
    }

    fn render(&self) -> String {
        status::render_status(&self.shared.status())
    }

    /// A drained node is healthy: the operator asked for that.
    fn problems(&self) -> Vec<String> {
        self.shared.status.load().problems.clone()
    }

    async fn control(&self, request: Request) -> Result<serde_json::Value, Error> {
        let program = self.shared.program.load_full();
        Ok(match (request, program) {
            // What only reads does not wait for the worker.
            (Request::Ledger, _) => {
                let ledger = self.shared.status().ledger;
                serde_json::to_value(ledger).unwrap_or_default()
            }
            (Request::Top { count }, Some(program)) => {
                let top = read::top(&program, count)?;
                serde_json::to_value(top).unwrap_or_default()
            }
            (Request::Top { .. }, None) => return Err(ControlError::NoProgram("count").into()),
            (request, _) => self
                .ask(|answer| Ask::Control(request, answer))
                .await
                .unwrap_or(Err(ControlError::Stopped))?,
        })
    }

    /// Metrics have the prefixes `nigh_echo_` and `nigh_anycast_`.
    fn collect(&self, metrics: &mut Metrics<'_>) -> std::fmt::Result {
        let program = self.shared.program.load_full();
        collect::collect(&self.shared.status(), program.as_deref(), metrics)
    }

    /// Loads the program and starts sessions, which announce nothing yet.
    async fn prepare(&self, config: Config) -> Result<(), Error> {
        let prepared = self.ask(|answer| Ask::Prepare(Box::new(config), answer)).await;
        Ok(prepared.unwrap_or(Err(ReloadError::Stopped))?)
    }

    /// Adds what the new configuration has in addition: addresses, interfaces, settings.
    async fn commit(&self, _: &mut ()) -> Result<(), Error> {
        Ok(self.ask(Ask::Commit).await.unwrap_or(Err(ReloadError::Stopped))?)
    }

    /// Removes what the new configuration no longer has.
    async fn finish(&self, _: ()) {
        self.ask(Ask::Finish).await;
    }

    async fn roll_back(&self, _: ()) {
        self.ask(Ask::RollBack).await;
    }

    /// Drains: GRACEFUL_SHUTDOWN first, then withdraws, then returns when no more requests arrive, or when
    /// the drain was ended by `undrain`.
    async fn drain(&self) {
        self.ask(Ask::Drain).await;
    }

    /// Ends a drain: the prefixes are announced again as soon as health allows it.
    async fn undrain(&self) {
        self.ask(Ask::Undrain).await;
    }

    /// Withdraws, ends sessions, detaches programs and removes the addresses from `lo`. Drain first for
    /// a stop without loss.
    async fn stop(&self) {
        self.ask(Ask::Stop).await;
    }
}
