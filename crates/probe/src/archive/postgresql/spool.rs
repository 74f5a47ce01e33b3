//! What is still to be sent: the records of our own database beyond a mark.

use rusqlite::{Connection, OpenFlags, OptionalExtension};
use std::{fmt::Write as _, path::Path, time::Duration};

/// How long a statement waits for the writer.
const BUSY: Duration = Duration::from_secs(10);

/// Our own database, read, and its mark written.
pub(super) struct Spool {
    connection: Connection,
    /// Identifies this database.
    pub(super) archive: i64,
}

/// Records as COPY takes them in text format.
pub(super) struct Batch {
    pub(super) text: String,
    pub(super) count: usize,
    /// The number of the last.
    pub(super) through: i64,
}

impl Spool {
    pub(super) fn open(path: &Path) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "synchronous", "full")?;
        let archive = connection.query_row("SELECT id FROM archive", (), |row| row.get(0))?;
        Ok(Self { connection, archive })
    }

    /// Up to which record all were sent.
    pub(super) fn mark(&self) -> rusqlite::Result<i64> {
        let sql = "SELECT through FROM mark WHERE name = 'postgresql'";
        self.connection.prepare_cached(sql)?.query_row((), |row| row.get(0))
    }

    pub(super) fn set_mark(&self, through: i64) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO mark (name, through) VALUES ('postgresql', ?1)";
        self.connection.prepare_cached(sql)?.execute([through]).map(drop)
    }

    /// The highest number that was ever given to a record.
    pub(super) fn last(&self) -> rusqlite::Result<i64> {
        let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'record'";
        let last = self.connection.prepare_cached(sql)?.query_row((), |row| row.get(0));
        Ok(last.optional()?.unwrap_or(0))
    }

    /// Numbers up to this one are not given again.
    pub(super) fn skip_to(&self, number: i64) -> rusqlite::Result<()> {
        let sql = "UPDATE sqlite_sequence SET seq = ?1 WHERE name = 'record'";
        if self.connection.execute(sql, [number])? == 0 {
            let sql = "INSERT INTO sqlite_sequence (name, seq) VALUES ('record', ?1)";
            self.connection.execute(sql, [number])?;
        }
        Ok(())
    }

    /// The next records after a mark; `None` when there are none.
    pub(super) fn batch(&self, mark: i64, most: usize) -> rusqlite::Result<Option<Batch>> {
        let sql = "SELECT record.id, at_ns, lasted_ns, station, target, test, kind, figures \
                   FROM record JOIN series ON series.id = record.series \
                   WHERE record.id > ?1 ORDER BY record.id LIMIT ?2";
        let mut select = self.connection.prepare_cached(sql)?;
        let mut rows = select.query((mark, i64::try_from(most).unwrap_or(i64::MAX)))?;
        let mut batch = Batch { text: String::new(), count: 0, through: mark };
        while let Some(row) = rows.next()? {
            batch.through = row.get(0)?;
            batch.count += 1;
            let [at_ns, lasted_ns]: [i64; 2] = [row.get(1)?, row.get(2)?];
            let _ = write!(batch.text, "{}\t{}", self.archive, batch.through);
            for column in 3..7 {
                batch.text.push('\t');
                escape(&mut batch.text, row.get_ref(column)?.as_str()?);
            }
            let _ = write!(batch.text, "\t{}\t{at_ns}\t{lasted_ns}\t", time(at_ns));
            escape(&mut batch.text, row.get_ref(7)?.as_str()?);
            batch.text.push('\n');
        }
        Ok((batch.count > 0).then_some(batch))
    }
}

/// A value in COPY's text format (PostgreSQL, COPY, "Text Format").
fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
}

/// A time as PostgreSQL reads it, UTC, microseconds rounded down. Before 1970 it is 1970; `at_ns` is exact.
fn time(at_ns: i64) -> String {
    let at = Duration::from_nanos(u64::try_from(at_ns).unwrap_or(0));
    humantime::format_rfc3339_micros(std::time::SystemTime::UNIX_EPOCH + at).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_times_are_written_as_copy_takes_them() {
        let mut out = String::new();
        escape(&mut out, "a\\b\tc\nd\r\u{e9}");
        assert_eq!(out, "a\\\\b\\tc\\nd\\r\u{e9}");
        assert_eq!(time(1_767_225_600_123_456_789), "2026-01-01T00:00:00.123456Z");
        assert_eq!(time(-5), "1970-01-01T00:00:00.000000Z");
        assert_eq!(time(i64::MAX), "2262-04-11T23:47:16.854775Z");
    }
}
