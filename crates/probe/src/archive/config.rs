//! The section `[probe.archive]` of the configuration.

use serde::Deserialize;
use wire::config::{Problem, Report};

/// Most records that wait to be written.
const MAX_QUEUE: usize = 10_000_000;

/// The section `[probe.archive]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ArchiveConfig {
    /// Records that may wait to be written; what comes beyond is counted as lost.
    pub queue: usize,
}

impl Default for ArchiveConfig {
    fn default() -> Self {
        Self { queue: 20_000 }
    }
}

impl ArchiveConfig {
    /// Everything that is wrong with the values, each key as in the section; empty when all is well.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let report = &mut Report::new(&mut problems, "");
        if !(1..=MAX_QUEUE).contains(&self.queue) {
            report.add("queue", format!("{} is not from 1 to {MAX_QUEUE} records", self.queue));
        }
        problems
    }
}
