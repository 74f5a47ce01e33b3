//! The jobs that a file configures.

use crate::{Capability, User, erased::AnyConfig};
use config::Problem;
use std::{collections::BTreeSet, fmt};

/// The jobs that a file configures, each with its sections.
#[derive(Default)]
pub struct Configured(pub(crate) Vec<Box<dyn AnyConfig>>);

impl fmt::Debug for Configured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|config| config.name())).finish()
    }
}

impl Configured {
    /// The sections of a job, by their type.
    pub fn get<C: 'static>(&self) -> Option<&C> {
        self.0.iter().find_map(|config| config.config().downcast_ref())
    }

    /// Everything that is wrong with the values; empty if they are valid.
    pub fn problems(&self) -> Vec<Problem> {
        self.0.iter().flat_map(|config| config.problems()).collect()
    }

    /// Warnings: what is allowed but rarely intended.
    pub fn warnings(&self) -> Vec<Problem> {
        self.0.iter().flat_map(|config| config.warnings()).collect()
    }

    /// The interfaces that the configuration names for a job; none if it has not this job.
    pub(crate) fn interfaces(&self, job: &str) -> Option<Vec<String>> {
        self.0.iter().find(|config| config.name() == job).map(|config| config.interfaces())
    }

    /// All interfaces that the configuration names, each once.
    pub fn all_interfaces(&self) -> Vec<String> {
        let all: BTreeSet<_> = self.0.iter().flat_map(|config| config.interfaces()).collect();
        all.into_iter().collect()
    }

    /// Does what must come before the first capability is dropped, for the user that the daemon becomes then.
    pub fn privileged(&self, becomes: Option<&User>) {
        self.0.iter().for_each(|config| config.privileged(becomes));
    }

    /// The capabilities that these jobs need to open.
    pub fn start_capabilities(&self) -> Vec<Capability> {
        self.capabilities(|of| of.start)
    }

    /// Those that they need while they run.
    pub fn kept_capabilities(&self) -> Vec<Capability> {
        self.capabilities(|of| of.keep)
    }

    fn capabilities(
        &self,
        get: impl Fn(crate::Capabilities) -> &'static [Capability],
    ) -> Vec<Capability> {
        let mut all = Vec::new();
        for capability in self.0.iter().flat_map(|config| get(config.capabilities())) {
            if !all.contains(capability) {
                all.push(*capability);
            }
        }
        all
    }
}
