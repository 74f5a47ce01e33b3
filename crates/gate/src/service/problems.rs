//! What goes wrong, for logs and the status.

use std::{
    collections::BTreeMap,
    fmt::Display,
    time::{Duration, Instant},
};

/// How long a problem is reported after it was last seen.
const REPORTED_FOR: Duration = Duration::from_secs(60);

/// Recent problems, one sentence each.
#[derive(Debug, Default)]
pub(super) struct Problems {
    reported: BTreeMap<&'static str, (String, Instant)>,
    full: u64,
    missed: u64,
    shared: u64,
    unscanned: u64,
    lost: u64,
    parser: u64,
}

impl Problems {
    /// Something went wrong; it is logged when it is new.
    pub(super) fn report(&mut self, what: &'static str, why: &impl Display) {
        let sentence = format!("{what}: {why}");
        let known = self.reported.insert(what, (sentence.clone(), Instant::now()));
        if known.is_none() {
            tracing::warn!("{sentence}");
        }
    }

    /// A counter whose growth is a problem; a minute after it has grown last it is well.
    pub(super) fn grows(&mut self, what: &'static str, why: &str, count: u64) {
        let before = match what {
            FULL => &mut self.full,
            MISSED => &mut self.missed,
            SCANNER => &mut self.unscanned,
            LOST => &mut self.lost,
            PARSER => &mut self.parser,
            _ => &mut self.shared,
        };
        if count > std::mem::replace(before, count) {
            self.report(what, &why);
        }
    }

    pub(super) fn list(&mut self) -> Vec<String> {
        self.reported.retain(|_, (_, seen)| seen.elapsed() < REPORTED_FOR);
        self.reported.values().map(|(sentence, _)| sentence.clone()).collect()
    }
}

pub(super) const FULL: &str = "the table of decided flows is full";
pub(super) const MISSED: &str = "packets were not inspected";
pub(super) const SCANNER: &str = "files were not scanned";
pub(super) const LOST: &str = "records of the audit log are lost";
pub(super) const PARSER: &str = "a process that reads packets failed";
pub(super) const SHARED: &str = "all classes of limits are in use";
