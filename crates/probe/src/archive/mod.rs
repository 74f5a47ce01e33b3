//! What was measured, kept: SQLite in the state directory.
//!
//! ```text
//!   put ──> bounded queue ──> writer thread ──> archive.sqlite (WAL)
//!                                                   │
//!   query <── connections that only read ───────────┘
//! ```
//!
//! Measuring never waits for a disk: [`Archive::put`] hands a record to the queue, and what does not fit
//! is counted. The writer gathers what comes within a second into one transaction. It goes on whatever
//! the disk does: a full one is logged once, the records wait in memory, and what finds no room there is
//! counted; a damaged database is set aside under another name and a new one begun.
//!
//! Records that are old become hours, hours become days (`retain`, `span`), in steps between the batches.
//!
//! With `[probe.archive.postgresql]` all records go to a shared archive as well (`postgresql`),
//! with `[probe.archive.parquet]` into files by day (`parquet`).
//!
//! The tables are described in docs/probe-archive.md, the choice in docs/decisions/156-archive.md.

mod collect;
mod config;
mod database;
mod error;
mod parquet;
mod postgresql;
mod query;
mod queue;
mod retain;
mod schema;
mod span;
mod status;
#[cfg(test)]
mod tests;
mod writer;

pub use config::ArchiveConfig;
pub use error::{OpenError, QueryError};
pub use parquet::{
    Day, DayError, ExportArgs, ExportError, Exported, ParquetConfig, WriteError, export_days,
    render as render_exported,
};
pub use postgresql::PostgresqlConfig;
pub use query::{Entry, Query, Reader};
pub use schema::{SchemaError, VERSION};
pub use span::{ClockSummary, NetworkPath, Span, Spread, Summary};
pub use status::{Exporting, Sending, Status};

use crate::record::Record;
use parquet::Exporter;
use postgresql::Sender;
use queue::Queue;
use status::Counters;
use std::{
    fmt,
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};
use writer::Writer;

/// The database's name in the folder.
pub const FILE: &str = "archive.sqlite";
/// How long [`Archive::flush`] waits before it gives up.
const FLUSH: Duration = Duration::from_secs(30);

/// The archive of a station. Dropping it writes what is in the queue, as far as the disk takes it.
pub struct Archive {
    path: PathBuf,
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    writer: Option<JoinHandle<()>>,
    /// They end after the writer.
    _sender: Option<Sender>,
    _exporter: Option<Exporter>,
    /// Made at the first query; made again when the database was set aside.
    reader: Mutex<Option<Reader>>,
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Archive {
    /// Opens the archive in a folder, which is made when it is not there. A damaged database is set
    /// aside, which is logged and in the status.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(folder: &Path, config: &ArchiveConfig) -> Result<Self, OpenError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o750)
            .create(folder)
            .map_err(|source| OpenError::Folder { path: folder.to_owned(), source })?;
        let path = folder.join(FILE);
        let counters = Arc::new(Counters::default());
        let database = database::open_or_begin(&path, &counters)?;
        let queue = Arc::new(Queue::new(config.queue, writer::BATCH, writer::GATHER));
        let sender =
            config.postgresql.as_ref().map(|to| Sender::start(&path, to, counters.clone()));
        let sender = sender.transpose().map_err(|source| OpenError::Thread { source })?;
        let exporter =
            config.parquet.as_ref().map(|to| Exporter::start(&path, to, counters.clone()));
        let exporter = exporter.transpose().map_err(|source| OpenError::Thread { source })?;
        let wake = sender.as_ref().map(Sender::waker);
        let writer = Writer::new(path.clone(), config.clone(), database, counters.clone(), wake);
        let source = queue.clone();
        let writer = panics::thread("archive", move || writer.run(&source))
            .map_err(|source| OpenError::Thread { source })?;
        let reader = Mutex::new(None);
        Ok(Self {
            path,
            queue,
            counters,
            writer: Some(writer),
            _sender: sender,
            _exporter: exporter,
            reader,
        })
    }

    /// Keeps a record. Never waits: where the queue is full the record is counted as lost.
    pub fn put(&self, record: &Record) {
        self.counters.put();
        if !self.queue.put(record.clone()) {
            self.counters.lost_queue();
        }
    }

    /// Waits until all that was put before is in the database; false when the disk did not take it.
    pub fn flush(&self) -> bool {
        self.queue.flush(FLUSH)
    }

    /// What was kept.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn query(&self, query: &Query) -> Result<Vec<Entry>, QueryError> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = self.counters.begun();
        if reader.as_ref().is_none_or(|reader| reader.begun != begun) {
            *reader = Some(Reader::open_file(&self.path, begun)?);
        }
        let Some(reader) = reader.as_ref() else { return Ok(Vec::new()) };
        reader.query(query)
    }

    /// How it is.
    pub fn status(&self) -> Status {
        self.counters.status(&self.path)
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(writer) = self.writer.take() {
            // A panic of the writer was reported by its thread.
            let _ = writer.join();
        }
    }
}
