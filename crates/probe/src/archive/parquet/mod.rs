//! Files in Parquet for each day that has passed, one a kind: `FOLDER/delay/2026-01-31.parquet`.
//!
//! A day's files are written an hour after its end. What comes later goes into a further file of the day,
//! named after the number of the last record that is in those before; so no file is written twice but for
//! one that a crash kept from being counted, and no record is in two files. A file is written under
//! another name and renamed when it is whole and on the disk.

mod columns;
mod request;
#[cfg(test)]
mod tests;

pub use request::{Day, DayError, ExportArgs, ExportError, Exported, render, run as export_days};

use super::status::Counters;
use crate::record::Kind;
use columns::Group;
use config::{Problem, Report};
use datapath::clock::unix_ns;
use parquet::{
    basic::Compression, errors::ParquetError, file::properties::WriterProperties,
    file::writer::SerializedFileWriter,
};
use rusqlite::{Connection, OpenFlags};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

/// Nanoseconds of a day.
const DAY_NS: i64 = 86_400_000_000_000;
/// How long after a day's end its files are written.
const GRACE_NS: i64 = 3_600_000_000_000;
/// How often it is looked for days to write.
const LOOK: Duration = Duration::from_secs(600);
/// Rows of a row group: what is in memory at once.
const ROWS: usize = 10_000;
/// How long a statement waits for the writer.
const BUSY: Duration = Duration::from_secs(10);

/// Export to Parquet files by day.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParquetConfig {
    /// Folder for the files, an absolute path.
    pub folder: PathBuf,
}

impl ParquetConfig {
    /// Everything that is wrong with the values, each key as in the table; empty if they are valid.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if !self.folder.is_absolute() {
            let text = format!("{} does not begin with /", self.folder.display());
            Report::new(&mut problems, "").add("folder", text);
        }
        problems
    }
}

/// A day cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file or its folder.
    #[error("cannot write {}: {source}", .path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file's content.
    #[error("cannot write {}: {source}", .path.display())]
    Parquet {
        /// Which file.
        path: PathBuf,
        /// The error.
        source: ParquetError,
    },
    /// The archive.
    #[error("cannot read the archive: {0}")]
    Database(#[from] rusqlite::Error),
}

/// Writes days in a thread of its own until it is dropped.
#[derive(Debug)]
pub(super) struct Exporter {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    pub(super) fn start(
        path: &Path,
        config: &ParquetConfig,
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        counters.exporting();
        let (stop, stopped) = channel();
        let (path, folder) = (path.to_owned(), config.folder.clone());
        let thread =
            panics::thread("archive-export", move || run(&path, &folder, &counters, &stopped))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic was reported by its thread.
            let _ = thread.join();
        }
    }
}

fn run(path: &Path, folder: &Path, counters: &Counters, stopped: &Receiver<()>) {
    loop {
        panics::point("archive-export");
        let now_ns = unix_ns().cast_signed();
        let stop = || stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Disconnected);
        match export(path, folder, now_ns, counters, stop) {
            Ok(()) => counters.exporting_well(),
            Err(error) => counters.exporting_error(error.to_string()),
        }
        if stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

/// Writes the files of all days that are over and not yet in files.
///
/// # Errors
/// See [`WriteError`]; days before the one that failed are written.
pub(super) fn export(
    path: &Path,
    folder: &Path,
    now_ns: i64,
    counters: &Counters,
    stop: impl Fn() -> bool,
) -> Result<(), WriteError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    let over = now_ns.saturating_sub(GRACE_NS).div_euclid(DAY_NS);
    let sql = "SELECT at_ns / 86400000000000 AS day, max(record.id), \
               coalesce((SELECT through FROM exported WHERE exported.day = record.at_ns / 86400000000000), 0) \
               FROM record WHERE at_ns >= 0 AND at_ns < ?1 GROUP BY 1 ORDER BY 1";
    let mut select = connection.prepare(sql)?;
    let days = select.query_map([over.saturating_mul(DAY_NS)], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
    })?;
    let days = days.collect::<Result<Vec<_>, _>>()?;
    for (day, last, through) in days.into_iter().filter(|(_, last, through)| last > through) {
        let part = Part { day: Day(day), after: through, through: last };
        for kind in Kind::ALL {
            if stop() {
                return Ok(());
            }
            let count = part.write(&connection, folder, kind)?;
            if count > 0 {
                counters.exported(count);
            }
        }
        let sql = "INSERT OR REPLACE INTO exported (day, through) VALUES (?1, ?2)";
        connection.execute(sql, [day, last])?;
    }
    Ok(())
}

/// Records of a day by their numbers.
#[derive(Clone, Copy)]
struct Part {
    day: Day,
    after: i64,
    through: i64,
}

impl Part {
    /// The file's name.
    fn name(&self) -> String {
        match self.after {
            0 => format!("{}.parquet", self.day),
            after => format!("{}-{after}.parquet", self.day),
        }
    }

    /// Writes the records of a kind, and returns how many; no file where there are none.
    fn write(
        &self,
        connection: &Connection,
        folder: &Path,
        kind: Kind,
    ) -> Result<usize, WriteError> {
        let sql = "SELECT at_ns, lasted_ns, station, target, test, figures \
                   FROM record JOIN series ON series.id = record.series \
                   WHERE kind = ?1 AND at_ns >= ?2 AND at_ns < ?3 \
                   AND record.id > ?4 AND record.id <= ?5 ORDER BY at_ns, record.id";
        let mut select = connection.prepare_cached(sql)?;
        let begin = self.day.0.saturating_mul(DAY_NS);
        let end = begin.saturating_add(DAY_NS);
        let values = rusqlite::params![kind.name(), begin, end, self.after, self.through];
        let mut rows = select.query(values)?;
        let mut file: Option<Output> = None;
        let mut group = Group::default();
        let mut count = 0;
        loop {
            let row = rows.next()?;
            let more = row.is_some();
            if let Some(row) = row {
                match super::query::record(row) {
                    Ok(record) => group.push(&record),
                    Err(error) => tracing::warn!(%error, "a record cannot be read and is skipped"),
                }
            }
            if group.rows() >= ROWS || (!more && group.rows() > 0) {
                let output = match &mut file {
                    Some(output) => output,
                    None => file.insert(Output::new(folder, kind, &self.name(), &group)?),
                };
                count += group.rows();
                output.write(&mut group)?;
            }
            if !more {
                break;
            }
        }
        if let Some(file) = file {
            file.finish()?;
        }
        Ok(count)
    }
}

/// A file that is being written.
struct Output {
    path: PathBuf,
    unfinished: PathBuf,
    writer: SerializedFileWriter<File>,
}

impl Output {
    fn new(folder: &Path, kind: Kind, name: &str, group: &Group) -> Result<Self, WriteError> {
        let folder = folder.join(kind.name());
        let path = folder.join(name);
        let unfinished = folder.join(format!(".{name}.unfinished"));
        let error = |source| WriteError::File { path: unfinished.clone(), source };
        fs::create_dir_all(&folder).map_err(error)?;
        let file = File::create(&unfinished).map_err(error)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("nigh ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let parquet = |source| WriteError::Parquet { path: unfinished.clone(), source };
        let schema = group.schema(kind).map_err(parquet)?;
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties));
        let writer = writer.map_err(parquet)?;
        Ok(Self { path, unfinished, writer })
    }

    /// Writes a row group and empties it.
    fn write(&mut self, group: &mut Group) -> Result<(), WriteError> {
        let path = self.unfinished.clone();
        group.write(&mut self.writer).map_err(|source| WriteError::Parquet { path, source })
    }

    /// Gives the file its name when all of it is on the disk.
    fn finish(self) -> Result<(), WriteError> {
        let Self { path, unfinished, writer } = self;
        let parquet = |source| WriteError::Parquet { path: unfinished.clone(), source };
        let error = |source| WriteError::File { path: unfinished.clone(), source };
        let file = writer.into_inner().map_err(parquet)?;
        file.sync_all().map_err(error)?;
        fs::rename(&unfinished, &path).map_err(error)?;
        if let Some(folder) = path.parent() {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(error)?;
        }
        Ok(())
    }
}
