//! The running jobs: queried, reloaded and stopped together.

use crate::{
    Configured, Error, Guarded, Metrics,
    erased::{AnyChange, AnyService},
};
use futures_util::future::join_all;
use serde_json::{Map, Value};
use std::fmt;
use tokio::sync::Mutex;

/// The new configuration was not applied; the old one stays in force.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// A section was added or removed, and the capabilities for the start of a job are gone.
    #[error("[{0}] was added or removed: restart the daemon to apply")]
    Section(&'static str),
    /// A job refuses it.
    #[error("{0}")]
    Refused(Error),
}

/// A request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The job is not configured.
    #[error("there is no section [{0}] in the configuration of this node")]
    Absent(String),
    /// The job does not know such a request.
    #[error("this is not a request: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The job refuses it.
    #[error("{0}")]
    Refused(Error),
}

/// The running jobs.
pub struct Running {
    services: Vec<Box<dyn AnyService>>,
    /// The names of all known jobs.
    known: Vec<&'static str>,
    /// Held during a reload and during the stop, so that they do not mix.
    reload: Mutex<()>,
}

/// The state of one job.
pub struct State<'a>(&'a dyn AnyService);

impl State<'_> {
    /// For programs: what the job says of itself, with `healthy` and `problems`.
    pub fn status(&self) -> Value {
        let mut status = self.0.status();
        if let Some(status) = status.as_object_mut() {
            let problems = self.0.problems();
            status.insert("healthy".into(), problems.is_empty().into());
            status.insert("problems".into(), problems.into());
        }
        status
    }

    /// For people: what the job says of itself, with a line for each problem.
    pub fn render(&self) -> String {
        self.0.render()
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.services.iter().map(|service| service.name())).finish()
    }
}

impl Running {
    pub(crate) fn new(services: Vec<Box<dyn AnyService>>, known: Vec<&'static str>) -> Self {
        Self { services, known, reload: Mutex::default() }
    }

    /// A running job, by the type of its service.
    pub fn get<S: 'static>(&self) -> Option<&Guarded<S>> {
        self.services.iter().find_map(|service| service.guarded().downcast_ref())
    }

    /// Stops each job that fails as soon as it has; returns when all have failed and stopped.
    pub async fn contain(&self) {
        join_all(self.services.iter().map(|service| service.stop_when_failed())).await;
    }

    /// The state of the job of this name, as it is now.
    ///
    /// # Errors
    ///
    /// It is not configured.
    pub async fn of(&self, name: &str) -> Result<State<'_>, ControlError> {
        let service = self.service(name)?;
        service.refresh().await;
        Ok(State(service))
    }

    fn service(&self, name: &str) -> Result<&dyn AnyService, ControlError> {
        let service = self.services.iter().find(|service| service.name() == name);
        Ok(&**service.ok_or_else(|| ControlError::Absent(name.to_owned()))?)
    }

    /// Whether there is a job of this name, configured or not.
    pub fn knows(&self, name: &str) -> bool {
        self.known.contains(&name)
    }

    /// Whether all loops of all jobs that have not failed have gone round since this last was so; empty then,
    /// else the job and name of each loop that has not. The service manager's watchdog is fed when this is empty.
    pub fn silent(&self) -> Vec<String> {
        let going = || self.services.iter().filter(|service| service.failed().is_none());
        let pulses = || going().map(|service| (service.name(), service.pulse()));
        let silent: Vec<_> = pulses()
            .flat_map(|(job, pulse)| {
                pulse.silent().into_iter().map(move |of| format!("{job} ({of})"))
            })
            .collect();
        if silent.is_empty() {
            pulses().for_each(|(_, pulse)| pulse.feed());
        }
        silent
    }

    /// The health of each job in one line, for the service manager.
    pub fn summary(&self) -> String {
        let health = self.services.iter().map(|service| {
            let name = service.name();
            match service.problems().as_slice() {
                [] => format!("{name} is healthy"),
                [one] => format!("{name}: {}", one.trim_start_matches(&format!("{name}: "))),
                [one, more @ ..] => {
                    let one = one.trim_start_matches(&format!("{name}: "));
                    format!("{name}: {one} (and {} more)", more.len())
                }
            }
        });
        health.collect::<Vec<_>>().join("; ")
    }

    /// Why the node is not healthy, a sentence each; empty when it is.
    pub fn problems(&self) -> Vec<String> {
        self.services.iter().flat_map(|service| service.problems()).collect()
    }

    /// Adds each job's state under its name.
    pub fn status(&self, state: &mut Map<String, Value>) {
        for service in &self.services {
            state.insert(service.name().to_owned(), State(&**service).status());
        }
    }

    /// The same for people.
    pub fn render(&self) -> String {
        self.services.iter().map(|service| service.render()).collect::<Vec<_>>().join("\n")
    }

    /// Adds all metrics.
    ///
    /// # Errors
    ///
    /// A value does not format.
    pub fn collect(&self, metrics: &mut Metrics<'_>) -> fmt::Result {
        metrics.counters(
            "nigh_job_panics",
            "Panics in a job's code: the job has failed at the first",
            self.services.iter().map(|service| {
                let panics = panics::failure(service.name()).map_or(0, |failure| failure.panics);
                ([("job", service.name())], panics)
            }),
        )?;
        self.services.iter().try_for_each(|service| service.collect(metrics))
    }

    /// Sends a request to the job of this name.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn control(&self, name: &str, request: Value) -> Result<Value, ControlError> {
        self.service(name)?.control(request)?.await.map_err(ControlError::Refused)
    }

    /// Applies a new configuration, in all jobs or in none; what did not change keeps its
    /// counters and sessions. Returns the names of jobs that have failed: theirs is not applied.
    ///
    /// # Errors
    ///
    /// See [`ReloadError`].
    pub async fn reload(&self, configured: Configured) -> Result<Vec<&'static str>, ReloadError> {
        let _alone = self.reload.lock().await;
        for name in &self.known {
            let wanted = configured.0.iter().any(|config| config.name() == *name);
            if wanted != self.services.iter().any(|service| service.name() == *name) {
                return Err(ReloadError::Section(name));
            }
        }
        let mut changes: Vec<Box<dyn AnyChange + '_>> = Vec::new();
        if let Err(error) = self.try_reload(configured, &mut changes).await {
            for change in changes.into_iter().rev() {
                change.roll_back().await;
            }
            return Err(ReloadError::Refused(error));
        }
        for change in changes {
            change.finish().await;
        }
        let failed = self.services.iter().filter(|service| service.failed().is_some());
        Ok(failed.map(|service| service.name()).collect())
    }

    /// Does the part of a reload that can fail; `changes` is what was done.
    async fn try_reload<'s>(
        &'s self,
        configured: Configured,
        changes: &mut Vec<Box<dyn AnyChange + 's>>,
    ) -> Result<(), Error> {
        for config in configured.0 {
            let name = config.name();
            let service = self.services.iter().find(|service| service.name() == name);
            if let Some(service) = service.filter(|service| service.failed().is_none()) {
                changes.push(service.prepare(config).await?);
            }
        }
        for change in changes {
            change.commit().await?;
        }
        Ok(())
    }

    /// Takes all jobs out of service, all at once; returns when they are. One after the other, a job
    /// would be drained after an `undrain` that ended the drain of the job before it.
    pub async fn drain(&self) {
        join_all(self.services.iter().map(|service| service.drain())).await;
    }

    /// Takes all jobs into service again.
    pub async fn undrain(&self) {
        for service in &self.services {
            service.undrain().await;
        }
    }

    /// Stops all jobs, the last first; a reload that has begun ends before that.
    pub async fn stop(&self) {
        let _alone = self.reload.lock().await;
        for service in self.services.iter().rev() {
            service.stop().await;
        }
    }
}
