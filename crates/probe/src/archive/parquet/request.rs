//! Days in Parquet on request: `nigh probe export`.
//!
//! It reads the archive as `nigh probe show` does, beside a running station, and knows nothing of which days
//! that has exported by itself: so it writes no file that is there already.

use super::{DAY_NS, Part, WriteError};
use crate::{
    archive::{FILE, QueryError, Reader},
    record::Kind,
};
use clap::Args;
use rusqlite::Connection;
use serde::{Serialize, Serializer};
use std::{
    collections::BTreeSet,
    fmt::{self, Write},
    path::{Path, PathBuf},
    str::FromStr,
    time::{Duration, SystemTime},
};

/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// A day in UTC, since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(pub(super) i64);

/// A text is not a day.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a day: write it as 2026-01-31")]
pub struct DayError(String);

impl FromStr for Day {
    type Err = DayError;

    fn from_str(text: &str) -> Result<Self, DayError> {
        let error = || DayError(text.to_owned());
        let at = humantime::parse_rfc3339(&format!("{text}T00:00:00Z")).map_err(|_| error())?;
        let since = at.duration_since(SystemTime::UNIX_EPOCH).map_err(|_| error())?;
        i64::try_from(since.as_secs() / DAY_S).map(Self).map_err(|_| error())
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = u64::try_from(self.0).unwrap_or(0).saturating_mul(DAY_S);
        let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        let text = humantime::format_rfc3339_seconds(at.unwrap_or(SystemTime::UNIX_EPOCH));
        f.pad(text.to_string().get(..10).unwrap_or_default())
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Arguments of `nigh probe export`.
#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// The folder for the files: DIR/KIND/DAY.parquet
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// A day in UTC, such as 2026-01-31; can be given several times [default: all days]
    #[arg(long = "day", value_name = "DAY")]
    pub days: Vec<Day>,
    /// The folder of the archive [default: probe in node.state of the configuration file]
    #[arg(long, value_name = "DIR")]
    pub archive: Option<PathBuf>,
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// The day.
    pub day: Day,
    /// What its records are.
    pub kind: Kind,
    /// How many there are.
    pub records: usize,
    /// Where it is.
    pub file: PathBuf,
}

/// Days cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The archive cannot be read.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Files are not written twice.
    #[error("{} is there already: nothing was written; remove it, or name another folder", .0.display())]
    There(PathBuf),
    /// Nothing is known of this day.
    #[error("the archive has no records of {0}: nothing was written")]
    NoRecords(Day),
}

impl From<rusqlite::Error> for ExportError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Write(error.into())
    }
}

/// Writes the files of an archive's days; of that in progress as far as it is.
///
/// # Errors
/// See [`ExportError`]; files before the one that failed are written.
pub fn run(args: &ExportArgs, archive: &Path) -> Result<Vec<Exported>, ExportError> {
    // It says what a file is that is no archive.
    drop(Reader::open(archive)?);
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags(archive.join(FILE), flags)?;
    connection.busy_timeout(super::BUSY)?;
    // One look: records that come meanwhile are in none of the files.
    let look = connection.unchecked_transaction()?;
    let wanted: BTreeSet<Day> = args.days.iter().copied().collect();
    let mut files = there_is(&look, &args.folder)?;
    if let Some(none) = wanted.iter().find(|day| files.iter().all(|file| file.day != **day)) {
        return Err(ExportError::NoRecords(*none));
    }
    files.retain(|file| wanted.is_empty() || wanted.contains(&file.day));
    if let Some(there) = files.iter().find(|file| file.file.exists()) {
        return Err(ExportError::There(there.file.clone()));
    }
    for file in &mut files {
        let part = Part { day: file.day, after: 0, through: i64::MAX };
        file.records = part.write(&look, &args.folder, file.kind)?;
    }
    Ok(files)
}

/// The files that all days have.
fn there_is(connection: &Connection, folder: &Path) -> Result<Vec<Exported>, ExportError> {
    let mut files = Vec::new();
    for kind in Kind::ALL {
        let sql = "SELECT DISTINCT at_ns / ?1 FROM record JOIN series ON series.id = record.series \
                   WHERE kind = ?2 AND at_ns >= 0";
        let mut select = connection.prepare_cached(sql)?;
        let days = select.query_map(rusqlite::params![DAY_NS, kind.name()], |row| row.get(0))?;
        for day in days {
            let day = Day(day?);
            let file = folder.join(kind.name()).join(format!("{day}.parquet"));
            files.push(Exported { day, kind, records: 0, file });
        }
    }
    files.sort_by_key(|file| (file.day, file.kind));
    Ok(files)
}

/// What was written as text for people.
pub fn render(files: &[Exported]) -> String {
    if files.is_empty() {
        return "the archive has no records: nothing was written\n".to_owned();
    }
    let mut text = String::new();
    for Exported { records, file, .. } in files {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{records:>9} records  {}", file.display());
    }
    text
}
