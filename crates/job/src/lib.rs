//! One contract for all jobs of the daemon.
//!
//! A job has one name for its crate, its section of the configuration, its sub-command and the prefix of
//! its metrics. Two traits define it:
//!
//! - [`Job`]: the job before anything runs. It reads its sections, opens what needs a capability,
//!   and starts.
//! - [`Service`]: the running job. It reports its state, answers requests, reloads its
//!   configuration, drains and stops.
//!
//! ```text
//!            read          open               start            stop
//!  file ──► Config ──► Opened ──► capabilities ──► Service ──►
//!                                  dropped           │  ▲
//!                          prepare, commit, then ◄───┘  │
//!                          finish or roll back ─────────┘
//! ```
//!
//! [`Registry`] has all known jobs, [`Running`] the running ones; a reload applies to all of them or to
//! none. [`mod@file`] reads and checks configuration files; [`command`] is how commands end and ask the daemon.
#![forbid(unsafe_code)]

pub mod ability;
pub mod command;
mod configured;
mod erased;
pub mod file;
mod guarded;
pub mod metrics;
pub mod pulse;
mod registry;
pub mod retention;
mod running;
mod section;

pub use ability::{Ability, How};
pub use configured::Configured;
pub use datapath::{capabilities::Capability, kernel::Interface, user::User};
pub use file::Renamed;
pub use guarded::{Failed, Guarded};
pub use metrics::Metrics;
pub use pulse::Pulse;
pub use registry::{Opened, Registry};
pub use running::{ControlError, ReloadError, Running, State};
pub use section::Section;

use config::Problem;
use file::Reader;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{fmt, future::Future, path::PathBuf};

/// Why a job refuses or fails: one sentence for the operator.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// The keys of `[node]` that jobs use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// `node.name`, shown in the status.
    pub name: String,
    /// `node.state`, the directory for state that must survive a restart.
    pub state: PathBuf,
}

/// The capabilities that a job needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Until it has opened everything.
    pub start: &'static [Capability],
    /// While it runs.
    pub keep: &'static [Capability],
}

/// A job that the daemon can run.
pub trait Job: Send + Sync + 'static {
    /// Its sections of the configuration.
    type Config: Send + Sync + 'static;
    /// Holds everything that needs a capability, and has no thread yet: a thread that is started
    /// before capabilities are dropped keeps them.
    type Opened: Send + 'static;
    /// The running job.
    type Service: Service<Config = Self::Config>;

    /// Its name, such as `echo`.
    fn name(&self) -> &'static str;

    /// The sections that it reads, each with its type, which gives the schema: `nigh check --schema` and
    /// nigh.toml(5) are made from it. The first is the one that makes a node run this job.
    fn sections(&self) -> Vec<Section>;

    /// The renamed keys of its sections.
    fn renamed(&self) -> Renamed {
        &[]
    }

    /// Capabilities that it needs. A reload runs with those of `keep` only: without
    /// `CAP_NET_BIND_SERVICE` there, no port below 1024 can be bound by it.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Reads its sections, each as the type that [`Job::sections`] names; `None` if they are
    /// missing or cannot be read; the reader keeps the errors.
    fn read(&self, file: &mut Reader<'_, '_>, node: &Node) -> Option<Self::Config>;

    /// Everything that is wrong with values that could be read; empty if they are valid.
    fn problems(&self, config: &Self::Config) -> Vec<Problem>;

    /// Warnings: what is allowed but rarely intended.
    fn warnings(&self, _: &Self::Config) -> Vec<Problem> {
        Vec::new()
    }

    /// The interfaces that the configuration names.
    fn interfaces(&self, _: &Self::Config) -> Vec<String> {
        Vec::new()
    }

    /// What it can do on this kernel with these interfaces, found out by trying and without a trace.
    fn ability(&self, _: &[Interface]) -> Ability {
        Ability::works("needs nothing special of the kernel")
    }

    /// Does what must come before the first capability is dropped, for the user that the daemon becomes then.
    fn privileged(&self, _: &Self::Config, _becomes: Option<&User>) {}

    /// Opens what the configuration names. With `drained` the node starts out of service, until
    /// [`Service::undrain`].
    ///
    /// # Errors
    ///
    /// Something that the configuration names is not available; what was done until then is undone.
    fn open(
        &self,
        config: Self::Config,
        drained: bool,
    ) -> impl Future<Output = Result<Self::Opened, Error>> + Send;

    /// Starts what was opened, after capabilities were dropped.
    ///
    /// # Errors
    ///
    /// It cannot start; what was opened is closed again.
    fn start(
        &self,
        opened: Self::Opened,
    ) -> impl Future<Output = Result<Self::Service, Error>> + Send;

    /// Closes what was opened and will not be started. What an earlier process left in force stays so.
    fn close(&self, opened: Self::Opened) -> impl Future<Output = ()> + Send {
        drop(opened);
        std::future::ready(())
    }
}

/// A running job.
///
/// # Panics
///
/// When code of a job panics, on whatever thread, the job has failed: it is stopped, and nothing else of its
/// service is called. So every thread and task of a job is started by a function of the crate
/// [`panics`], which knows then whose it is; a panic on another thread ends the daemon.
///
/// # Reload
///
/// A new configuration is applied in three steps, each over all jobs before the next begins:
///
/// 1. [`prepare`](Service::prepare) reads, checks and builds beside what is in force. Nothing visible changes.
/// 2. [`commit`](Service::commit) does everything else that can fail, such as binding an address.
/// 3. [`finish`](Service::finish) cannot fail: the new configuration takes over, what it no longer has is removed.
///
/// When a step fails in one job, all are [rolled back](Service::roll_back).
pub trait Service: Send + Sync + 'static {
    /// Its sections of the configuration.
    type Config: Send + 'static;
    /// Its requests on the control socket.
    type Request: DeserializeOwned + Send;
    /// A prepared configuration that is not in force yet.
    type Prepared: Send;

    /// Where its loops beat: a thread or task that hangs stops the watchdog from being fed.
    fn pulse(&self) -> &Pulse;

    /// Why it is not healthy, a sentence each; empty when it is.
    fn problems(&self) -> Vec<String>;

    /// Its state, for programs: an object, to which `healthy` and `problems` are added.
    fn status(&self) -> Value;

    /// Brings what [`Service::status`] and [`Service::render`] show up to date, before the state of this
    /// job alone is shown. A job that publishes its state from time to time needs it.
    fn refresh(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Its state with its problems, for people; ends with a newline.
    fn render(&self) -> String;

    /// Adds its metrics, with the prefix `nigh_` and its name.
    ///
    /// # Errors
    ///
    /// A value does not format.
    fn collect(&self, metrics: &mut Metrics<'_>) -> fmt::Result;

    /// Answers a request of the control socket.
    ///
    /// # Errors
    ///
    /// The request is refused.
    fn control(&self, request: Self::Request) -> impl Future<Output = Result<Value, Error>> + Send;

    /// The first step of a reload: reads, checks and builds beside what is in force.
    ///
    /// # Errors
    ///
    /// The configuration cannot be applied; nothing has changed.
    fn prepare(
        &self,
        config: Self::Config,
    ) -> impl Future<Output = Result<Self::Prepared, Error>> + Send;

    /// The second step: everything else that can fail.
    ///
    /// # Errors
    ///
    /// It failed; what was done until then is undone by [`Service::roll_back`].
    fn commit(&self, _: &mut Self::Prepared) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// The last step: the prepared configuration is in force when this returns.
    fn finish(&self, prepared: Self::Prepared) -> impl Future<Output = ()> + Send;

    /// Undoes what [`Service::prepare`] and [`Service::commit`] did, however far they got.
    fn roll_back(&self, prepared: Self::Prepared) -> impl Future<Output = ()> + Send {
        drop(prepared);
        std::future::ready(())
    }

    /// Takes the job out of service; returns when that is done, or when [`Service::undrain`] ends it. All
    /// jobs drain at the same time. It may be called again meanwhile, and its future may be dropped.
    fn drain(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Takes the job into service again.
    fn undrain(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Stops it; nothing is left behind when this returns. It is called, too, when a part of the job has
    /// panicked: then it stops what is left.
    fn stop(&self) -> impl Future<Output = ()> + Send;
}
