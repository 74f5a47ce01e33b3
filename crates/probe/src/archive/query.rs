//! What is asked of the archive, and who reads it.

use super::{error::QueryError, schema, span::Span};
use crate::record::{Kind, Record};
use rusqlite::{Connection, OpenFlags, Row, ToSql, params_from_iter};
use serde::{Deserialize, Serialize};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// How long a statement waits for a database that is just being made.
const BUSY: Duration = Duration::from_secs(5);

/// Which entries are meant. What is `None` is not asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// From this time on, nanoseconds since 1970-01-01 UTC.
    pub since_ns: Option<i64>,
    /// Before this time.
    pub until_ns: Option<i64>,
    /// The station that measured.
    pub from: Option<String>,
    /// What was measured.
    pub to: Option<String>,
    /// The test's name.
    pub test: Option<String>,
    /// One of these kinds; empty is any.
    pub kinds: Vec<Kind>,
    /// At most this many, which are the newest.
    pub limit: Option<usize>,
}

/// An entry of the archive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Entry {
    /// An hour or a day of records that are no longer kept one by one.
    Span(Span),
    /// As it was measured.
    Record(Record),
}

impl Entry {
    /// When it begins, nanoseconds since 1970-01-01 UTC.
    pub fn at_ns(&self) -> i64 {
        match self {
            Self::Record(record) => record.at_ns,
            Self::Span(span) => span.at_ns,
        }
    }

    /// How long it took, in nanoseconds.
    pub fn lasted_ns(&self) -> u64 {
        match self {
            Self::Record(record) => record.lasted_ns,
            Self::Span(span) => span.lasted_ns,
        }
    }

    /// The station that measured.
    pub fn from(&self) -> &str {
        match self {
            Self::Record(record) => &record.from,
            Self::Span(span) => &span.from,
        }
    }

    /// What was measured.
    pub fn to(&self) -> &str {
        match self {
            Self::Record(record) => &record.to,
            Self::Span(span) => &span.to,
        }
    }

    /// The test's name.
    pub fn test(&self) -> &str {
        match self {
            Self::Record(record) => &record.test,
            Self::Span(span) => &span.test,
        }
    }
}

/// Reads an archive, also one that a running station writes.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    connection: Connection,
    /// Returns which of the databases it read at this path.
    pub(super) begun: usize,
}

impl Reader {
    /// Reads the archive in a folder.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn open(folder: &Path) -> Result<Self, QueryError> {
        Self::open_file(&folder.join(super::FILE), 0)
    }

    pub(super) fn open_file(path: &Path, begun: usize) -> Result<Self, QueryError> {
        if !path.exists() {
            return Err(QueryError::Missing(path.to_owned()));
        }
        let error = |source| QueryError::Database { path: path.to_owned(), source };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(error)?;
        connection.busy_timeout(BUSY).map_err(error)?;
        match schema::version(&connection) {
            Ok(schema::VERSION) => Ok(Self { path: path.to_owned(), connection, begun }),
            Ok(version) => Err(QueryError::Older { path: path.to_owned(), version }),
            Err(source) => Err(QueryError::Schema { path: path.to_owned(), source }),
        }
    }

    /// What was kept, the oldest first. An entry that cannot be read is skipped and logged.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn query(&self, query: &Query) -> Result<Vec<Entry>, QueryError> {
        let error = |source| QueryError::Database { path: self.path.clone(), source };
        let mut entries = self.records(query).map_err(error)?;
        entries.extend(self.spans(query).map_err(error)?);
        // Both are in order, which the sort makes use of; of equals it keeps the order.
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.at_ns()));
        entries.truncate(query.limit.unwrap_or(usize::MAX));
        entries.reverse();
        Ok(entries)
    }

    /// Hours and days that have a part in the time asked about, the newest first.
    fn spans(&self, query: &Query) -> rusqlite::Result<Vec<Entry>> {
        let (terms, values) = query.terms("at_ns + width_s * 1000000000 > ?");
        let limit = query.sql_limit();
        let sql = format!(
            "SELECT at_ns, width_s, station, target, test, figures, records \
             FROM span JOIN series ON series.id = span.series {terms} \
             ORDER BY at_ns DESC LIMIT {limit}"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        let mut rows = select.query(params_from_iter(values))?;
        let mut entries = Vec::new();
        while let Some(row) = rows.next()? {
            match span(row) {
                Ok(span) => entries.push(Entry::Span(span)),
                Err(error) => tracing::warn!(%error, "a span of the archive cannot be read"),
            }
        }
        Ok(entries)
    }

    /// Records, the newest first.
    fn records(&self, query: &Query) -> rusqlite::Result<Vec<Entry>> {
        let (terms, values) = query.terms("at_ns >= ?");
        let limit = query.sql_limit();
        let sql = format!(
            "SELECT at_ns, lasted_ns, station, target, test, figures \
             FROM record JOIN series ON series.id = record.series {terms} \
             ORDER BY at_ns DESC, record.id DESC LIMIT {limit}"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        let mut rows = select.query(params_from_iter(values))?;
        let mut entries = Vec::new();
        while let Some(row) = rows.next()? {
            match record(row) {
                Ok(record) => entries.push(Entry::Record(record)),
                Err(error) => tracing::warn!(%error, "an entry of the archive cannot be read"),
            }
        }
        Ok(entries)
    }
}

impl Query {
    /// As SQLite has it: none is -1.
    fn sql_limit(&self) -> i64 {
        self.limit.and_then(|limit| i64::try_from(limit).ok()).unwrap_or(-1)
    }

    /// The condition in SQL, in which `since` stands for the first time, and the values in it.
    fn terms(&self, since: &'static str) -> (String, Vec<Box<dyn ToSql>>) {
        let mut terms = Vec::new();
        let mut values: Vec<Box<dyn ToSql>> = Vec::new();
        let mut add = |term: &'static str, value: Option<Box<dyn ToSql>>| {
            if let Some(value) = value {
                values.push(value);
                terms.push(term);
            }
        };
        let text =
            |text: &Option<String>| text.clone().map(|text| Box::new(text) as Box<dyn ToSql>);
        let number = |number: Option<i64>| number.map(|number| Box::new(number) as Box<dyn ToSql>);
        add(since, number(self.since_ns));
        add("at_ns < ?", number(self.until_ns));
        add("station = ?", text(&self.from));
        add("target = ?", text(&self.to));
        add("test = ?", text(&self.test));
        let kinds = (!self.kinds.is_empty()).then(|| serde_json::to_string(&self.kinds));
        add("kind IN (SELECT value FROM json_each(?))", text(&kinds.and_then(Result::ok)));
        let terms =
            if terms.is_empty() { String::new() } else { format!("WHERE {}", terms.join(" AND ")) };
        (terms, values)
    }
}

/// A row's record.
pub(super) fn record(row: &Row<'_>) -> Result<Record, Box<dyn std::error::Error>> {
    let lasted: i64 = row.get(1)?;
    Ok(Record {
        at_ns: row.get(0)?,
        lasted_ns: u64::try_from(lasted)?,
        from: row.get(2)?,
        to: row.get(3)?,
        test: row.get(4)?,
        figures: serde_json::from_str(row.get_ref(5)?.as_str()?)?,
    })
}

/// A row's span.
fn span(row: &Row<'_>) -> Result<Span, Box<dyn std::error::Error>> {
    let [width, records]: [i64; 2] = [row.get(1)?, row.get(6)?];
    Ok(Span {
        at_ns: row.get(0)?,
        lasted_ns: u64::try_from(width)?.saturating_mul(1_000_000_000),
        from: row.get(2)?,
        to: row.get(3)?,
        test: row.get(4)?,
        records: u64::try_from(records)?,
        figures: serde_json::from_str(row.get_ref(5)?.as_str()?)?,
    })
}
