//! The state of the archive: put = written + waiting + the sum of lost.

use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// How the archive is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The database.
    pub file: PathBuf,
    /// Its size with its log, in bytes.
    pub bytes: u64,
    /// Records that were put: written + waiting + the sum of lost.
    pub put: u64,
    /// Records that are in the database.
    pub written: u64,
    /// Records that are in the queue.
    pub waiting: u64,
    /// Records that were lost, by reason: `queue-full`, `refused` by the database, `not-written` when the
    /// archive was closed.
    pub lost: BTreeMap<String, u64>,
    /// The writer's error at the moment.
    pub error: Option<String>,
    /// Damaged databases that were set aside since the start.
    pub set_aside: Vec<PathBuf>,
    /// The shared archive; none where none is configured.
    pub postgresql: Option<Sending>,
    /// Files by day; none where none are configured.
    pub parquet: Option<Exporting>,
}

/// How files by day are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exporting {
    /// Files that were written since the start.
    pub files: u64,
    /// Records in them.
    pub records: u64,
    /// The error at the moment.
    pub error: Option<String>,
}

/// How the shared archive is served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sending {
    /// Records that it took since the start.
    pub sent: u64,
    /// Records that it refused: they stay here only.
    pub refused: u64,
    /// Records that are still to be sent.
    pub unsent: u64,
    /// The error at the moment.
    pub error: Option<String>,
}

/// What is counted, and its errors.
#[derive(Debug, Default)]
pub(super) struct Counters {
    put: AtomicU64,
    written: AtomicU64,
    queue_full: AtomicU64,
    refused: AtomicU64,
    not_written: AtomicU64,
    sent: AtomicU64,
    sending_refused: AtomicU64,
    unsent: AtomicU64,
    files: AtomicU64,
    exported: AtomicU64,
    words: Mutex<Words>,
}

/// Errors and files that the status shows.
#[derive(Debug, Default)]
struct Words {
    error: Option<String>,
    set_aside: Vec<PathBuf>,
    /// The error of sending to the shared archive.
    sending_error: Option<String>,
    /// Whether there is one.
    sending: bool,
    /// The same of files by day.
    exporting_error: Option<String>,
    exporting: bool,
}

impl Counters {
    pub(super) fn put(&self) {
        self.put.fetch_add(1, Relaxed);
    }

    pub(super) fn lost_queue(&self) {
        if self.queue_full.fetch_add(1, Relaxed) == 0 {
            tracing::warn!(
                "the archive's queue is full: records are lost, see nigh_probe_archive_lost"
            );
        }
    }

    pub(super) fn refused(&self, count: usize) {
        self.refused.fetch_add(count as u64, Relaxed);
    }

    pub(super) fn not_written(&self, count: usize) {
        self.not_written.fetch_add(count as u64, Relaxed);
    }

    pub(super) fn written(&self, count: usize) {
        self.written.fetch_add(count as u64, Relaxed);
    }

    fn words(&self) -> MutexGuard<'_, Words> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer fails; logged when this is new.
    pub(super) fn error(&self, what: String) {
        let mut words = self.words();
        if words.error.is_none() {
            tracing::error!(error = what, "the archive cannot be written: records wait in memory");
        }
        words.error = Some(what);
    }

    /// The writer works.
    pub(super) fn well(&self) {
        if self.words().error.take().is_some() {
            tracing::info!("the archive is written again");
        }
    }

    pub(super) fn set_aside(&self, path: PathBuf) {
        self.words().set_aside.push(path);
    }

    /// There is a shared archive.
    pub(super) fn sending(&self) {
        self.words().sending = true;
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    pub(super) fn sent_more(&self, count: usize) {
        self.sent.fetch_add(count as u64, Relaxed);
    }

    pub(super) fn sending_refused(&self) {
        self.sending_refused.fetch_add(1, Relaxed);
    }

    pub(super) fn unsent(&self, count: u64) {
        self.unsent.store(count, Relaxed);
    }

    /// Sending to the shared archive fails; logged when this is new.
    pub(super) fn sending_error(&self, what: String) {
        let mut words = self.words();
        if words.sending_error.is_none() {
            tracing::error!(error = what, "nothing can be sent to PostgreSQL: records wait here");
        }
        words.sending_error = Some(what);
    }

    /// Sending works.
    pub(super) fn sending_well(&self) {
        if self.words().sending_error.take().is_some() {
            tracing::info!("records are sent to PostgreSQL again");
        }
    }

    /// There are files by day.
    pub(super) fn exporting(&self) {
        self.words().exporting = true;
    }

    /// A file was written.
    pub(super) fn exported(&self, records: usize) {
        self.files.fetch_add(1, Relaxed);
        self.exported.fetch_add(records as u64, Relaxed);
    }

    /// No file can be written; it is logged when it is news.
    pub(super) fn exporting_error(&self, what: String) {
        let mut words = self.words();
        if words.exporting_error.is_none() {
            tracing::error!(error = what, "the archive cannot write files by day: records wait");
        }
        words.exporting_error = Some(what);
    }

    /// They can be written.
    pub(super) fn exporting_well(&self) {
        if self.words().exporting_error.take().is_some() {
            tracing::info!("the archive writes files by day again");
        }
    }

    /// How many databases were begun since the start, less one.
    pub(super) fn begun(&self) -> usize {
        self.words().set_aside.len()
    }

    pub(super) fn status(&self, file: &Path) -> Status {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.len());
        let mut log = file.as_os_str().to_owned();
        log.push("-wal");
        let words = self.words();
        // Read before what was put, so that the difference is never below zero.
        let written = self.written.load(Relaxed);
        let lost = [
            ("queue-full", &self.queue_full),
            ("refused", &self.refused),
            ("not-written", &self.not_written),
        ];
        let lost: BTreeMap<_, _> =
            lost.iter().map(|(name, count)| ((*name).to_owned(), count.load(Relaxed))).collect();
        let put = self.put.load(Relaxed);
        Status {
            file: file.to_owned(),
            bytes: size(file) + size(Path::new(&log)),
            put,
            written,
            waiting: put - written - lost.values().sum::<u64>(),
            lost,
            error: words.error.clone(),
            set_aside: words.set_aside.clone(),
            postgresql: words.sending.then(|| Sending {
                sent: self.sent.load(Relaxed),
                refused: self.sending_refused.load(Relaxed),
                unsent: self.unsent.load(Relaxed),
                error: words.sending_error.clone(),
            }),
            parquet: words.exporting.then(|| Exporting {
                files: self.files.load(Relaxed),
                records: self.exported.load(Relaxed),
                error: words.exporting_error.clone(),
            }),
        }
    }
}
