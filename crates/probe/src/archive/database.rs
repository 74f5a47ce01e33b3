//! The database file: opened, found damaged and set aside, written.

use super::{
    error::OpenError,
    schema::{self, SchemaError},
    status::Counters,
};
use crate::record::{Kind, Record};
use rusqlite::{
    CachedStatement, Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, params,
};
use rustc_hash::FxHashMap;
use std::{
    fs::OpenOptions,
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// How long a statement waits for another process that writes.
const BUSY: Duration = Duration::from_secs(5);
/// Databases up to this size are checked from end to end when they are opened: that takes a second.
/// Damage in a larger one is found when it is met.
const CHECKED_BYTES: u64 = 256 << 20;
/// Series whose numbers are remembered.
const SERIES: usize = 50_000;

/// A series: station, target, test, kind.
type Series = (String, String, String, Kind);

/// The database, open for writing.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) connection: Connection,
    series: FxHashMap<Series, i64>,
}

/// What an error of SQLite means for the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The file is not, or no longer, a good database.
    Damaged,
    /// The disk or another process prevents it; later it may work.
    Later,
    /// Neither; trying again does not help.
    Refused,
}

/// What an error of SQLite means for the archive.
pub(super) fn failure(error: &rusqlite::Error) -> Failure {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Failure::Damaged,
        Some(
            ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::OutOfMemory
            | ErrorCode::FileLockingProtocolFailed,
        ) => Failure::Later,
        _ => Failure::Refused,
    }
}

/// Opens the database, or sets it aside where it is damaged and begins a new one.
pub(super) fn open_or_begin(path: &Path, counters: &Counters) -> Result<Database, OpenError> {
    let damage = match Database::open(path) {
        Err(OpenError::Database { source, .. }) if failure(&source) == Failure::Damaged => source,
        Err(OpenError::Schema { source: SchemaError::Database(source), .. })
            if failure(&source) == Failure::Damaged =>
        {
            source
        }
        other => return other,
    };
    set_aside(path, &damage.to_string(), counters)?;
    Database::open(path)
}

/// Gives a damaged database another name, with the files that belong to it.
pub(super) fn set_aside(path: &Path, damage: &str, counters: &Counters) -> Result<(), OpenError> {
    let error =
        |source| OpenError::Aside { path: path.to_owned(), damage: damage.to_owned(), source };
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
    let with = |path: &Path, end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let free = |path: &PathBuf| !path.exists();
    let aside = (0..u64::MAX).map(|more| with(path, &format!(".damaged-{}", since + more)));
    let Some(aside) = { aside }.find(free) else { return Ok(()) };
    std::fs::rename(path, &aside).map_err(error)?;
    for end in ["-wal", "-shm"] {
        match std::fs::rename(with(path, end), with(&aside, end)) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(error(source)),
            _ => {}
        }
    }
    tracing::error!(
        archive = %path.display(), aside = %aside.display(), damage,
        "the archive is damaged: it is set aside and a new one begun"
    );
    counters.set_aside(aside);
    Ok(())
}

impl Database {
    /// Opens it, makes it where it is not there, and brings its tables up to date.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let error = |source| OpenError::Database { path: path.to_owned(), source };
        // What was measured is nobody's business but the operator's.
        let made = OpenOptions::new().create(true).append(true).mode(0o640).open(path);
        let size = made.and_then(|file| file.metadata());
        let size =
            size.map_err(|source| OpenError::Folder { path: path.to_owned(), source })?.len();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(error)?;
        settle(&connection, size).map_err(error)?;
        let version = schema::version(&connection);
        version.map_err(|source| OpenError::Schema { path: path.to_owned(), source })?;
        if size <= CHECKED_BYTES {
            check(&connection).map_err(error)?;
        }
        schema::migrate(&mut connection)
            .map_err(|source| OpenError::Schema { path: path.to_owned(), source })?;
        Ok(Self { connection, series: FxHashMap::default() })
    }

    /// The numbers of series are looked up again.
    pub(super) fn forget_series(&mut self) {
        self.series.clear();
    }

    /// Writes all of them or none.
    pub(super) fn insert(&mut self, records: &[Record]) -> rusqlite::Result<()> {
        if self.series.len() > SERIES {
            self.series.clear();
        }
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Numbers of a transaction that comes to nothing must not be remembered.
        let mut new = FxHashMap::default();
        {
            let mut insert = transaction.prepare_cached(
                "INSERT INTO record (series, at_ns, lasted_ns, figures) VALUES (?1, ?2, ?3, ?4)",
            )?;
            for record in records {
                let key = (
                    record.from.clone(),
                    record.to.clone(),
                    record.test.clone(),
                    record.figures.kind(),
                );
                let known = self.series.get(&key).or_else(|| new.get(&key)).copied();
                let series = match known {
                    Some(series) => series,
                    None => {
                        let series = series(&transaction, &key)?;
                        new.insert(key, series);
                        series
                    }
                };
                let lasted = i64::try_from(record.lasted_ns).unwrap_or(i64::MAX);
                insert.execute(params![series, record.at_ns, lasted, json(record)])?;
            }
        }
        transaction.commit()?;
        self.series.extend(new);
        Ok(())
    }
}

/// The number of a series, which is a new one where it has none.
fn series(transaction: &Transaction<'_>, key: &Series) -> rusqlite::Result<i64> {
    let (station, target, test, kind) = key;
    let key = params![station, target, test, kind.name()];
    let sql = "INSERT INTO series (station, target, test, kind) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT DO NOTHING";
    transaction.prepare_cached(sql)?.execute(key)?;
    let sql = "SELECT id FROM series WHERE (station, target, test, kind) = (?1, ?2, ?3, ?4)";
    let mut select: CachedStatement<'_> = transaction.prepare_cached(sql)?;
    select.query_row(key, |row| row.get(0))
}

/// A record's figures as they are stored. Every value of the type can be written as JSON.
fn json(record: &Record) -> String {
    serde_json::to_string(&record.figures).unwrap_or_default()
}

/// The settings of a connection that writes.
fn settle(connection: &Connection, size: u64) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    if size == 0 {
        // Before the first table. Room that is freed can go back to the disk.
        connection.pragma_update(None, "auto_vacuum", "incremental")?;
    }
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    // What was handed on to others by its number must not be lost by a power cut: its number would be
    // given to another record.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)
}

/// Reads all pages and says what is wrong with them.
fn check(connection: &Connection) -> rusqlite::Result<()> {
    let found: String = connection.query_row("PRAGMA quick_check(1)", (), |row| row.get(0))?;
    if found == "ok" {
        return Ok(());
    }
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    Err(rusqlite::Error::SqliteFailure(code, Some(found)))
}
