//! The jobs of this daemon, a line each, and the data that one gets from another.

mod live;

use crate::mapping;
use echo::Echo;
use gate::Gate;
use job::{Registry, Running};
use oracle::Oracle;
use probe::Probe;
use tokio::task::JoinHandle;

/// The jobs, in the order in which they are shown and started; they stop the other way round. A new job
/// comes last.
pub fn registry() -> Registry {
    Registry::default().with(Echo).with(Oracle).with(Probe).with(Gate { mapping: mapping::mapping })
}

/// A connection from one job to another, for as long as this is held.
#[derive(Debug, Default)]
pub struct Joined(Vec<JoinHandle<()>>);

impl Joined {
    /// Connects running jobs: the oracle gets the links that the station measures.
    pub fn join(jobs: &Running) -> Self {
        let links = jobs.get().zip(jobs.get()).map(live::join);
        Self(links.into_iter().collect())
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}
