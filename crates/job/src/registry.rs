//! All known jobs, and their start.

use crate::{
    Ability, Configured, Error, Interface, Job, Node, Renamed, Running, Section,
    erased::{AnyJob, AnyOpened, JobOf},
    file::Reader,
    section,
};
use schemars::Schema;
use std::sync::Arc;

/// All jobs that the daemon can run, in the order in which they are shown.
#[derive(Default)]
pub struct Registry(Vec<Box<dyn AnyJob>>);

impl Registry {
    /// Adds a job.
    #[must_use]
    pub fn with(mut self, job: impl Job) -> Self {
        self.0.push(Box::new(JobOf(Arc::new(job))));
        self
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|job| job.name())
    }

    /// What each can do on this kernel: with the interfaces that it is configured with, else with all.
    pub fn abilities(
        &self,
        configured: Option<&Configured>,
        interfaces: &[Interface],
    ) -> Vec<(&'static str, Ability)> {
        let mut abilities = Vec::new();
        for job in &self.0 {
            let own = configured.and_then(|configured| configured.interfaces(job.name()));
            let own = own.map(|names| names.iter().map(|name| Interface::of(name)).collect());
            let own: Vec<_> = own.unwrap_or_else(|| interfaces.to_vec());
            abilities.push((job.name(), job.ability(&own)));
        }
        abilities
    }

    /// All sections that they read.
    pub fn sections(&self) -> impl Iterator<Item = Section> {
        self.0.iter().flat_map(|job| job.sections())
    }

    /// The JSON Schema of a file: `others`, which no job reads, and the sections of all jobs.
    pub fn schema(&self, others: &[Section]) -> Schema {
        section::file(others.iter().copied().chain(self.sections()))
    }

    /// All renamed keys.
    pub fn renamed(&self) -> Vec<Renamed> {
        self.0.iter().map(|job| job.renamed()).collect()
    }

    /// Reads the sections of all jobs that the file has.
    pub fn read(&self, file: &mut Reader<'_, '_>, node: &Node) -> Configured {
        let mut configured = Configured::default();
        file.take_reads();
        for job in &self.0 {
            configured.0.extend(job.read(file, node));
            section::check_reads(job.name(), &job.sections(), &file.take_reads());
        }
        let any = self.sections().any(|section| file.has(section.name));
        if !any && !file.found_unknown_section() {
            let names: Vec<String> = self.names().map(|name| format!("`[{name}]`")).collect();
            let list = match names.as_slice() {
                [first @ .., last] if !first.is_empty() => {
                    format!("{} or {last}", first.join(", "))
                }
                _ => names.join(""),
            };
            file.error_at_end("", format!("no job is configured: add a section {list}"));
        }
        configured
    }
}

impl Configured {
    /// Opens everything that the sections name, the first job last: it is the one that neighbours
    /// notice.
    ///
    /// # Errors
    ///
    /// Something that the configuration names is not available; what was done until then is undone.
    pub async fn open(self, drained: bool) -> Result<Opened, Error> {
        let mut opened = Vec::new();
        for config in self.0.into_iter().rev() {
            match config.open(drained).await {
                Ok(job) => opened.insert(0, job),
                Err(error) => {
                    Opened(opened).close().await;
                    return Err(error);
                }
            }
        }
        Ok(Opened(opened))
    }
}

/// Jobs that hold what needs a capability, and have no thread yet.
pub struct Opened(Vec<Box<dyn AnyOpened>>);

impl Opened {
    /// Starts what was opened, after capabilities were dropped.
    ///
    /// # Errors
    ///
    /// A job cannot start; what runs is stopped, the rest is closed.
    pub async fn start(self, registry: &Registry) -> Result<Running, Error> {
        let known: Vec<_> = registry.names().collect();
        let mut services = Vec::new();
        let mut rest = self.0.into_iter();
        while let Some(job) = rest.next() {
            match job.start().await {
                Ok(service) => services.push(service),
                Err(error) => {
                    Running::new(services, known).stop().await;
                    Self(rest.collect()).close().await;
                    return Err(error);
                }
            }
        }
        Ok(Running::new(services, known))
    }

    /// Closes what was opened, the last first.
    pub async fn close(self) {
        for job in self.0 {
            job.close().await;
        }
    }
}
