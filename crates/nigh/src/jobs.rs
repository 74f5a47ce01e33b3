//! The jobs of this daemon, a line each, and the data that one gets from another.

mod live;

use crate::mapping;
use echo::Echo;
use gate::Gate;
use job::{Configured, Registry, Running};
use oracle::Oracle;
use probe::Probe;
use std::path::Path;
use tokio::task::JoinHandle;

/// The jobs, in the order in which they are shown and started; they stop the other way round. A new job
/// comes last.
pub fn registry() -> Registry {
    Registry::default().with(Echo).with(Oracle).with(Probe).with(Gate { mapping: mapping::mapping })
}

/// Ends what an earlier process left in force for a job that is not configured any more: the gate's kernel
/// part outlives its process.
pub fn end_earlier(jobs: &Configured, state: &Path) {
    if jobs.get::<gate::config::Config>().is_none() {
        gate::service::take_off_earlier(state);
    }
}

/// A connection from one job to another, for as long as this is held.
#[derive(Debug, Default)]
pub struct Joined(Vec<JoinHandle<()>>);

impl Joined {
    /// Connects running jobs: the oracle gets the links that the station measures.
    pub fn join(jobs: &Running) -> Self {
        let probe = jobs.get::<probe::service::Service>();
        let services = probe.zip(jobs.get::<oracle::service::Service>());
        let links = services.and_then(|(probe, oracle)| {
            let links = probe.call(|probe| probe.links()).ok()?;
            oracle.call(|oracle| live::join(links, oracle.clone())).ok()
        });
        Self(links.into_iter().collect())
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}
