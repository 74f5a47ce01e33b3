//! Files about the network: the format `oracle.conf`, TOML, and dumps of routing tables.
//!
//! A loader calls back with one [`Change`](crate::Change) after the other, and now and then with its
//! [`Progress`]. What is odd but does not spoil the rest is a warning; if anything is wrong the load fails,
//! and the changes are to be discarded. Nothing in a file can make a loader take memory without
//! bound: what it keeps is bounded by limits that are named in each loader.

pub mod mrt;
pub mod oracle_conf;
pub mod toml;

use serde::Serialize;
use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// Most notices that are kept; what comes after rarely helps.
const NOTICES: usize = 100;
/// So many changes from one report of progress to the next.
const STEP: u64 = 1 << 16;

/// How far a load has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the file that have been read.
    pub read: u64,
    /// Bytes of the file, where that is known.
    pub of: Option<u64>,
    /// Changes so far.
    pub changes: u64,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file is accepted, but an operator should know.
    Warning,
}

/// One thing that a loader noticed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Notice {
    /// How bad it is.
    pub severity: Severity,
    /// The file.
    pub file: PathBuf,
    /// Line, from 1; 0 where it is about the file as a whole.
    pub line: usize,
    /// The word or dotted key that it is about; empty where there is none.
    pub key: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// All that a loader noticed: the first hundred, and how many more there were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Notices {
    /// The first ones, in the order of the files.
    pub first: Vec<Notice>,
    /// How many were omitted.
    pub more: usize,
    /// How many of all are errors.
    pub errors: usize,
}

impl Notices {
    fn push(&mut self, notice: Notice) {
        let is_error = notice.severity == Severity::Error;
        self.errors += usize::from(is_error);
        if self.first.len() < NOTICES {
            self.first.push(notice);
            return;
        }
        self.more += 1;
        // An error is worth more than a warning.
        if is_error
            && let Some(last) = self.first.last_mut()
            && last.severity == Severity::Warning
        {
            *last = notice;
        }
    }

    /// Whether nothing was noticed.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }
}

impl fmt::Display for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, notice) in self.first.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            notice.fmt(f)?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

/// A file could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It cannot be read.
    #[error("cannot open {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Its content is wrong.
    #[error("{0}")]
    Bad(Notices),
}

/// Notices about one file.
struct About<'a> {
    file: &'a Path,
    notices: &'a mut Notices,
}

impl About<'_> {
    fn note(&mut self, severity: Severity, line: usize, key: &str, message: String) {
        let file = self.file.to_owned();
        self.notices.push(Notice { severity, file, line, key: key.to_owned(), message });
    }

    fn error(&mut self, line: usize, key: &str, message: impl Into<String>) {
        self.note(Severity::Error, line, key, message.into());
    }

    fn warn(&mut self, line: usize, key: &str, message: impl Into<String>) {
        self.note(Severity::Warning, line, key, message.into());
    }
}

/// Counts changes in flight, and reports progress.
struct Out<'a> {
    each: &'a mut dyn FnMut(crate::Change),
    progress: &'a mut dyn FnMut(Progress),
    so_far: Progress,
}

impl Out<'_> {
    fn change(&mut self, change: crate::Change) {
        (self.each)(change);
        self.so_far.changes += 1;
        if self.so_far.changes.is_multiple_of(STEP) {
            (self.progress)(self.so_far);
        }
    }
}
