//! The files of the topology: their content, and whether they have changed since.

use crate::config::{MrtConfig, TopologyConfig};
use std::{fs, path::Path, time::SystemTime};
use topo::{
    Change, RouterId,
    load::{self, Notices, Progress, mrt},
};
use tracing::{info, warn};

pub use topo::load::LoadError;

/// A dump of an exit router's routes, as it was when it was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dump {
    pub(super) config: MrtConfig,
    /// Size in bytes and time of the last change; none where there is no such file, or it could not
    /// be read.
    version: Option<(u64, Option<SystemTime>)>,
}

impl Dump {
    /// The dump as it is now.
    pub(super) fn look(config: &MrtConfig) -> Self {
        let metadata = fs::metadata(&config.file).ok();
        let version = metadata.map(|metadata| (metadata.len(), metadata.modified().ok()));
        Self { config: config.clone(), version }
    }

    /// Makes the dump differ from any other, because it could not be read.
    pub(super) fn forget(&mut self) {
        self.version = None;
    }

    /// The name of the feed.
    pub(super) fn name(&self) -> String {
        format!("mrt {} {}", self.config.router, self.config.file.display())
    }

    /// Hands all routes to `each`; returns what is wrong with the dump, in a few words.
    pub(super) fn read(&self, each: &mut dyn FnMut(Change)) -> Result<String, LoadError> {
        let exits = mrt::Exits::One(RouterId(self.config.router));
        let file = &self.config.file;
        let summary = mrt::load(file, &exits, each, &mut |progress| report(file, progress))?;
        warn_of(&summary.notices);
        Ok(match summary.broken {
            0 => String::new(),
            broken => {
                format!("{broken} of {} records were broken and skipped", summary.records)
            }
        })
    }
}

/// Logs how far a file has been read.
fn report(file: &Path, progress: Progress) {
    let percent = progress.of.filter(|of| *of > 0).map(|of| 100 * progress.read / of);
    info!(file = %file.display(), changes = progress.changes, percent, "reading");
}

fn warn_of(notices: &Notices) {
    for notice in &notices.first {
        warn!("{notice}");
    }
}

/// The content of the files of the topology.
#[derive(Debug)]
pub(super) struct Files {
    /// The changes of the configuration's own files.
    pub(super) configuration: Vec<Change>,
    /// Dumps, which the builder reads itself where they are not in force yet.
    pub(super) dumps: Vec<Dump>,
}

impl Files {
    /// Reads the configuration's own files and checks the dumps.
    pub(super) fn read(config: &TopologyConfig) -> Result<Self, LoadError> {
        let dumps = config.mrt.iter().map(Dump::look).collect();
        Ok(Self { configuration: configuration(config)?, dumps })
    }
}

fn configuration(config: &TopologyConfig) -> Result<Vec<Change>, LoadError> {
    let mut changes = Vec::new();
    if let Some(file) = &config.oracle_conf {
        let each = &mut |change| changes.push(change);
        warn_of(&load::oracle_conf::load(file, None, each, &mut |progress| {
            report(file, progress)
        })?);
    }
    if let Some(file) = &config.file {
        let each = &mut |change| changes.push(change);
        warn_of(&load::toml::load(file, each, &mut |progress| report(file, progress))?);
    }
    Ok(changes)
}
