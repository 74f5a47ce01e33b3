//! What is old becomes hours, then days, then goes.
//!
//! The writer does a step of this between its batches. A step takes whole series until it has seen some
//! thousand rows, in one transaction, so records never wait long; a pass over all series is done when a
//! step says so. What an hour stands for goes in the transaction that makes the hour: nothing is there
//! twice and nothing is missing, whenever the power fails.

#[cfg(test)]
mod tests;

use super::{config::ArchiveConfig, database::Database, span::Summary};
use crate::record::Figures;
use job::retention;
use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};
use std::{collections::BTreeMap, time::Duration};

/// Nanoseconds of an hour and of a day.
const HOUR_NS: i64 = 3_600_000_000_000;
const DAY_NS: i64 = 24 * HOUR_NS;
/// Rows after which a step ends, and the most rows of one series that are taken at once.
const ROWS: usize = 4000;
/// Series after which a step ends.
const SERIES: usize = 2000;
/// Pages that a step gives back to the disk: 8 MB.
const PAGES: u32 = 2048;

/// How far a pass is.
#[derive(Debug, Default)]
pub(super) struct Pass {
    /// The last series that is done.
    series: i64,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// There is more to do.
    More,
    /// All series are done.
    Done,
}

/// The times before which something must go.
#[derive(Clone, Copy, Debug)]
struct Limits {
    records: Option<i64>,
    hours: Option<i64>,
    days: Option<i64>,
    /// Records that are still to be sent stay.
    unsent_stay: bool,
    /// Records that are not yet in files stay.
    unexported_stay: bool,
}

impl Limits {
    fn new(config: &ArchiveConfig, now_ns: i64) -> Self {
        let before = |keep: Duration, width: i64| {
            let keep = i64::try_from(keep.as_nanos()).unwrap_or(i64::MAX);
            (keep > 0).then(|| floor(now_ns.saturating_sub(keep), width))
        };
        Self {
            records: before(config.keep, HOUR_NS),
            hours: before(config.keep_hours, DAY_NS),
            days: before(config.keep_days, DAY_NS),
            unsent_stay: config.postgresql.is_some(),
            unexported_stay: config.parquet.is_some(),
        }
    }
}

/// The last multiple of `width` that is not after a time.
fn floor(at_ns: i64, width: i64) -> i64 {
    at_ns.saturating_sub(at_ns.rem_euclid(width))
}

/// The time by which age is counted ([`retention::now`]), `elapsed` after the last call; before the first, that of the
/// latest record.
///
/// # Errors
/// When SQLite refuses.
pub(super) fn now(database: &Database, clock_ns: i64, elapsed: Duration) -> rusqlite::Result<i64> {
    let connection = &database.connection;
    let sql = "SELECT coalesce((SELECT through FROM mark WHERE name = 'retained'),
                               (SELECT max(at_ns) FROM (SELECT max(at_ns) AS at_ns FROM record
                                                        UNION ALL SELECT max(at_ns) FROM span)))";
    let before: Option<i64> = connection.prepare_cached(sql)?.query_row((), |row| row.get(0))?;
    let time = |ns: i64| Duration::from_nanos(ns.max(0).unsigned_abs());
    let now = retention::now(time(clock_ns), before.map(time), elapsed);
    let now = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
    let sql = "INSERT OR REPLACE INTO mark (name, through) VALUES ('retained', ?1)";
    connection.prepare_cached(sql)?.execute([now])?;
    Ok(now)
}

/// Does the next step of a pass; at its end the next call begins a new one.
///
/// # Errors
/// When SQLite refuses; the step is then undone and done again by the next call.
pub(super) fn step(
    database: &mut Database,
    pass: &mut Pass,
    config: &ArchiveConfig,
    now_ns: i64,
) -> rusqlite::Result<Step> {
    let limits = Limits::new(config, now_ns);
    let transaction =
        database.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (mut rows, mut last, mut done) = (0, pass.series, false);
    for _ in 0..SERIES {
        let sql = "SELECT min(id) FROM series WHERE id > ?1";
        let next = transaction.prepare_cached(sql)?.query_row([last], |row| row.get(0))?;
        let Some(series) = next else {
            done = true;
            break;
        };
        let taken = fold(&transaction, series, limits)?;
        rows += taken;
        // One that has more is taken up again by the next step.
        if taken < ROWS {
            last = series;
        }
        if rows >= ROWS {
            break;
        }
    }
    if done {
        forget(&transaction)?;
    }
    transaction.commit()?;
    if done {
        // Numbers of series may have gone.
        database.forget_series();
        last = 0;
    }
    pass.series = last;
    let vacuum = format!("PRAGMA incremental_vacuum({PAGES})");
    database.connection.query_row(&vacuum, (), |_| Ok(())).optional()?;
    Ok(if done { Step::Done } else { Step::More })
}

/// What of a series is too old; returns how many rows that were, at most [`ROWS`] of each sort.
fn fold(transaction: &Transaction<'_>, series: i64, limits: Limits) -> rusqlite::Result<usize> {
    let mut taken = 0;
    if let Some(before) = limits.records {
        taken = taken.max(fold_records(transaction, series, before, limits)?);
    }
    if let Some(before) = limits.hours {
        taken = taken.max(fold_hours(transaction, series, before)?);
    }
    if let Some(before) = limits.days {
        let sql = "DELETE FROM span WHERE series = ?1 AND width_s = 86400 AND at_ns < ?2";
        transaction.prepare_cached(sql)?.execute([series, before])?;
    }
    Ok(taken)
}

/// Summaries by the beginning of their hour or day, each with its number of records.
type Parts = BTreeMap<i64, (Vec<Summary>, u64)>;

fn fold_records(
    transaction: &Transaction<'_>,
    series: i64,
    before: i64,
    limits: Limits,
) -> rusqlite::Result<usize> {
    let exported = "AND id <= (SELECT through FROM exported WHERE day = at_ns / 86400000000000)";
    let sent = "AND id <= (SELECT through FROM mark WHERE name = 'postgresql')";
    let sql = format!(
        "SELECT id, at_ns, figures FROM record WHERE series = ?1 AND at_ns < ?2 {} {} \
         ORDER BY at_ns LIMIT {ROWS}",
        if limits.unsent_stay { sent } else { "" },
        if limits.unexported_stay { exported } else { "" },
    );
    let mut parts = Parts::new();
    let mut ids: Vec<i64> = Vec::new();
    {
        let mut select = transaction.prepare_cached(&sql)?;
        let mut rows = select.query([series, before])?;
        while let Some(row) = rows.next()? {
            ids.push(row.get(0)?);
            let Ok(figures) = serde_json::from_str::<Figures>(row.get_ref(2)?.as_str()?) else {
                tracing::warn!(
                    id = row.get::<_, i64>(0)?,
                    "a record cannot be read and is skipped"
                );
                continue;
            };
            let (summaries, count) = parts.entry(floor(row.get(1)?, HOUR_NS)).or_default();
            summaries.push(Summary::of(&figures));
            *count += 1;
        }
    }
    put(transaction, series, 3600, parts)?;
    let mut delete = transaction.prepare_cached("DELETE FROM record WHERE id = ?1")?;
    for id in &ids {
        delete.execute([id])?;
    }
    Ok(ids.len())
}

fn fold_hours(transaction: &Transaction<'_>, series: i64, before: i64) -> rusqlite::Result<usize> {
    let sql = format!(
        "SELECT at_ns, figures, records FROM span \
         WHERE series = ?1 AND width_s = 3600 AND at_ns < ?2 ORDER BY at_ns LIMIT {ROWS}"
    );
    let mut parts = Parts::new();
    let mut times: Vec<i64> = Vec::new();
    {
        let mut select = transaction.prepare_cached(&sql)?;
        let mut rows = select.query([series, before])?;
        while let Some(row) = rows.next()? {
            let at_ns = row.get(0)?;
            times.push(at_ns);
            let Ok(summary) = serde_json::from_str::<Summary>(row.get_ref(1)?.as_str()?) else {
                tracing::warn!(at_ns, "an hour cannot be read and is skipped");
                continue;
            };
            let (summaries, count) = parts.entry(floor(at_ns, DAY_NS)).or_default();
            summaries.push(summary);
            *count += row.get::<_, i64>(2)?.unsigned_abs();
        }
    }
    put(transaction, series, 86_400, parts)?;
    let sql = "DELETE FROM span WHERE series = ?1 AND width_s = 3600 AND at_ns = ?2";
    let mut delete = transaction.prepare_cached(sql)?;
    for at_ns in &times {
        delete.execute([series, *at_ns])?;
    }
    Ok(times.len())
}

/// Puts hours or days beside what there is of them already: records can come late.
fn put(
    transaction: &Transaction<'_>,
    series: i64,
    width_s: i64,
    parts: Parts,
) -> rusqlite::Result<()> {
    let sql = "SELECT figures, records FROM span WHERE (series, width_s, at_ns) = (?1, ?2, ?3)";
    let mut select = transaction.prepare_cached(sql)?;
    let sql = "INSERT OR REPLACE INTO span (series, width_s, at_ns, records, figures) \
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut insert = transaction.prepare_cached(sql)?;
    for (at_ns, (mut summaries, mut count)) in parts {
        let there = select.query_row([series, width_s, at_ns], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        });
        if let Some((figures, records)) = there.optional()?
            && let Ok(summary) = serde_json::from_str(&figures)
        {
            summaries.insert(0, summary);
            count += records.unsigned_abs();
        }
        let Some(summary) = Summary::join(&summaries) else { continue };
        let figures = serde_json::to_string(&summary).unwrap_or_default();
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        insert.execute(params![series, width_s, at_ns, count, figures])?;
    }
    Ok(())
}

/// Series of which nothing is left.
fn forget(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let sql = "DELETE FROM series WHERE \
               NOT EXISTS (SELECT 1 FROM record WHERE record.series = series.id) AND \
               NOT EXISTS (SELECT 1 FROM span WHERE span.series = series.id)";
    transaction.execute(sql, ())?;
    Ok(())
}
