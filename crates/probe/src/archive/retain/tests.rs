//! Records become hours and days at their time; nothing is missing and nothing is there twice.

use super::super::{Entry, FILE, Query, Reader, Span, status::Counters};
use super::*;
use crate::record::{Bounded, Record, Series};
use rusqlite::Connection;
use tempfile::TempDir;

/// 2026-01-01 00:00 UTC.
const BEGIN_NS: i64 = 1_767_225_600_000_000_000;

fn ping(at_ns: i64, to: &str, median: i64) -> Record {
    let bounded =
        Bounded { estimate_ns: median, low_ns: Some(median - 1), high_ns: Some(median + 1) };
    let series = Series { sent: 10, lost: 1, median: Some(bounded), ..Series::default() };
    Record {
        at_ns,
        lasted_ns: 1,
        from: "prague".to_owned(),
        to: to.to_owned(),
        test: "mesh".to_owned(),
        figures: Figures::Ping(series),
    }
}

/// A folder, its database and settings: records for a day, hours for ten, days for a hundred.
fn begin() -> (TempDir, Database, ArchiveConfig) {
    let folder = TempDir::new().expect("a folder");
    let database =
        super::super::database::open_or_begin(&folder.path().join(FILE), &Counters::default());
    let day = Duration::from_secs(86_400);
    let config = ArchiveConfig {
        keep: day,
        keep_hours: 10 * day,
        keep_days: 100 * day,
        ..ArchiveConfig::default()
    };
    (folder, database.expect("a database"), config)
}

/// A whole pass; returns how many steps it took.
fn pass(database: &mut Database, config: &ArchiveConfig, now_ns: i64) -> usize {
    let mut pass = Pass::default();
    let mut steps = 1;
    while step(database, &mut pass, config, now_ns).expect("a step") == Step::More {
        steps += 1;
    }
    steps
}

/// Everything that is kept: records, then the spans by width.
fn kept(folder: &TempDir) -> (Vec<Record>, Vec<Span>, Vec<Span>) {
    let reader = Reader::open(folder.path()).expect("a reader");
    let (mut records, mut hours, mut days) = (Vec::new(), Vec::new(), Vec::new());
    for entry in reader.query(&Query::default()).expect("an answer") {
        match entry {
            Entry::Record(record) => records.push(record),
            Entry::Span(span) if span.lasted_ns == HOUR_NS as u64 => hours.push(span),
            Entry::Span(span) => days.push(span),
        }
    }
    (records, hours, days)
}

fn sent(spans: &[Span]) -> (u64, u64) {
    let sent = spans.iter().map(|span| match &span.figures {
        Summary::Ping(series) => series.sent,
        other => panic!("{other:?}"),
    });
    (spans.iter().map(|span| span.records).sum(), sent.sum())
}

#[test]
fn records_become_hours_then_days_then_go() {
    let (folder, mut database, config) = begin();
    // Every ten minutes for two days, to two targets: 2 * 288 records.
    let records: Vec<_> = (0..288)
        .flat_map(|n| ["brno", "vienna"].map(|to| ping(BEGIN_NS + n * HOUR_NS / 6, to, 1000 + n)))
        .collect();
    database.insert(&records).expect("written");
    // 25 hours and a half after the beginning: the first hour is older than a day.
    pass(&mut database, &config, BEGIN_NS + DAY_NS + 3 * HOUR_NS / 2);
    let (left, hours, days) = kept(&folder);
    assert_eq!((left.len(), hours.len(), days.len()), (576 - 12, 2, 0));
    assert_eq!((hours[0].at_ns, sent(&hours)), (BEGIN_NS, (12, 120)));
    let Summary::Ping(series) = &hours[0].figures else { panic!("{hours:?}") };
    let median = series.median.expect("a median");
    assert_eq!((median.low_ns, median.high_ns), (Some(999), Some(1006)));
    // Again: there is nothing to do.
    pass(&mut database, &config, BEGIN_NS + DAY_NS + 3 * HOUR_NS / 2);
    assert_eq!(kept(&folder).1, hours);
    // All are older than a day.
    pass(&mut database, &config, BEGIN_NS + 4 * DAY_NS);
    let (left, hours, days) = kept(&folder);
    assert_eq!((left.len(), hours.len(), days.len()), (0, 96, 0));
    assert_eq!(sent(&hours), (576, 5760));
    // The first day is older than ten.
    pass(&mut database, &config, BEGIN_NS + 11 * DAY_NS + 5);
    let (_, hours, days) = kept(&folder);
    assert_eq!((hours.len(), days.len()), (48, 2));
    assert_eq!((days[0].at_ns, sent(&days), sent(&hours)), (BEGIN_NS, (288, 2880), (288, 2880)));
    // A time within a day or an hour finds what has a part in it.
    let reader = Reader::open(folder.path()).expect("a reader");
    let since_ns = Some(BEGIN_NS + DAY_NS - 1);
    let until_ns = Some(BEGIN_NS + DAY_NS + 1);
    let found = reader.query(&Query { since_ns, until_ns, ..Query::default() });
    assert_eq!(found.expect("an answer").len(), 4);
    // Days go too, and the series with the last of them.
    pass(&mut database, &config, BEGIN_NS + 103 * DAY_NS);
    assert_eq!(kept(&folder), (Vec::new(), Vec::new(), Vec::new()));
    let count = |sql| database.connection.query_row(sql, (), |row| row.get::<_, i64>(0));
    assert_eq!(count("SELECT count(*) FROM series"), Ok(0));
    // Its number is not remembered where it is gone.
    database.insert(&records[..1]).expect("written");
    assert_eq!(kept(&folder).0, records[..1]);
}

#[test]
fn what_comes_late_joins_the_hour_that_is_there_and_many_rows_take_many_steps() {
    let (folder, mut database, config) = begin();
    let many: Vec<_> = (0..9000).map(|n| ping(BEGIN_NS + n * 1000, "brno", 1000)).collect();
    database.insert(&many).expect("written");
    assert!(pass(&mut database, &config, BEGIN_NS + 3 * DAY_NS) >= 3);
    let (left, hours, _) = kept(&folder);
    assert_eq!((left.len(), hours.len(), sent(&hours)), (0, 1, (9000, 90_000)));
    database.insert(&[ping(BEGIN_NS + HOUR_NS - 1, "brno", 500)]).expect("written");
    pass(&mut database, &config, BEGIN_NS + 3 * DAY_NS);
    let (left, hours, _) = kept(&folder);
    assert_eq!((left.len(), hours.len(), sent(&hours)), (0, 1, (9001, 90_010)));
    let Summary::Ping(series) = &hours[0].figures else { panic!("{hours:?}") };
    let median = series.median.expect("a median");
    assert_eq!((median.estimate_ns, median.low_ns, median.high_ns), (1000, Some(499), Some(1001)));
}

#[test]
fn what_is_kept_for_ever_stays_and_unreadable_rows_stop_nothing() {
    let (folder, mut database, config) = begin();
    database.insert(&[ping(BEGIN_NS, "brno", 1), ping(BEGIN_NS, "vienna", 1)]).expect("written");
    let keep = Duration::ZERO;
    let forever = ArchiveConfig { keep, keep_hours: keep, keep_days: keep, ..config.clone() };
    pass(&mut database, &forever, i64::MAX);
    assert_eq!(kept(&folder).0.len(), 2);
    let connection = Connection::open(folder.path().join(FILE)).expect("the database");
    connection.execute("UPDATE record SET figures = '{' WHERE id = 1", ()).expect("spoiled");
    assert_eq!(kept(&folder).0.len(), 1);
    pass(&mut database, &config, BEGIN_NS + 3 * DAY_NS);
    let (left, hours, _) = kept(&folder);
    assert_eq!((left.len(), hours.len()), (0, 1));
}

#[test]
fn a_clock_that_jumps_makes_nothing_old() {
    let (folder, mut database, config) = begin();
    let hour = Duration::from_secs(3600);
    let age = |database: &mut Database, clock_ns: i64, elapsed: Duration| {
        let now_ns = now(database, clock_ns, elapsed).expect("a time");
        pass(database, &config, now_ns);
        now_ns - BEGIN_NS
    };
    // Nothing is known of an empty archive's time but what the clock says.
    assert_eq!(age(&mut database, BEGIN_NS, Duration::ZERO), 0);
    database.insert(&[ping(BEGIN_NS, "a", 1000)]).expect("written");
    // A month ahead, then right again, then a month late.
    assert_eq!(age(&mut database, BEGIN_NS + 31 * DAY_NS, hour), 2 * HOUR_NS);
    assert_eq!(kept(&folder).0.len(), 1, "the record is still there");
    assert_eq!(age(&mut database, BEGIN_NS + 3 * HOUR_NS, hour), 3 * HOUR_NS);
    assert_eq!(age(&mut database, BEGIN_NS - 31 * DAY_NS, hour), -31 * DAY_NS);
    // A day that has passed is a day.
    let day = 24 * hour;
    for days in 1..=40 {
        age(&mut database, BEGIN_NS + days * DAY_NS, day);
    }
    assert_eq!(age(&mut database, BEGIN_NS + 41 * DAY_NS, day), 41 * DAY_NS);
    assert!(kept(&folder).0.is_empty(), "it has become a day");
}

#[test]
fn an_archive_of_an_earlier_version_begins_at_its_newest_record() {
    let (_folder, mut database, _) = begin();
    database.insert(&[ping(BEGIN_NS, "a", 1000)]).expect("written");
    let late = now(&database, BEGIN_NS + 31 * DAY_NS, Duration::ZERO).expect("a time");
    assert_eq!(late, BEGIN_NS);
}
