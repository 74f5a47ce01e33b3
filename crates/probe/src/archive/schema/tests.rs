//! An archive of every earlier version opens, and what is in it stays.

use super::*;
use crate::{
    archive::{Archive, ArchiveConfig, Entry, FILE, OpenError, Query},
    record::Figures,
};
use std::time::Duration;
use tempfile::TempDir;

/// An archive as a nigh of that version left it, with two records.
fn of_version(version: usize) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let mut connection = Connection::open(folder.path().join(FILE)).expect("a database");
    let transaction = connection.transaction().expect("a transaction");
    step(&transaction, 0, version).expect("tables");
    let sql = r#"
        INSERT INTO series VALUES (1, 'prague', 'brno', 'mesh', 'failed');
        INSERT INTO record VALUES (5, 1, 1000, 10, '{"kind":"failed","reason":"first"}');
        INSERT INTO record VALUES (7, 1, 2000, 10, '{"kind":"failed","reason":"second"}');
    "#;
    transaction.execute_batch(sql).expect("records");
    transaction.commit().expect("written");
    folder
}

fn open(folder: &TempDir) -> Result<Archive, OpenError> {
    let keep = Duration::ZERO;
    let config =
        ArchiveConfig { keep, keep_hours: keep, keep_days: keep, ..ArchiveConfig::default() };
    Archive::open(folder.path(), &config)
}

#[test]
fn archives_of_all_versions_are_brought_up_to_date_with_all_that_is_in_them() {
    for version in 1..=VERSION {
        let folder = of_version(version);
        let archive = open(&folder).expect("an archive");
        let found = archive.query(&Query::default()).expect("an answer");
        let reasons = found.iter().map(|entry| match entry {
            Entry::Record(record) => match &record.figures {
                Figures::Failed { reason } => reason.as_str(),
                other => panic!("{other:?}"),
            },
            Entry::Span(span) => panic!("{span:?}"),
        });
        assert_eq!(reasons.collect::<Vec<_>>(), ["first", "second"], "version {version}");
        if let Some(Entry::Record(record)) = found.first() {
            archive.put(record);
        }
        assert!(archive.flush());
        drop(archive);
        let connection = Connection::open(folder.path().join(FILE)).expect("the database");
        assert_eq!(super::version(&connection).expect("a version"), VERSION);
        let last = connection.query_row("SELECT max(id) FROM record", (), |row| row.get(0));
        assert_eq!(last, Ok(8), "ids go on");
    }
}

/// Figures of before version 5 of every kind whose names changed.
const NAMES_OF_4: &str = r#"
    INSERT INTO series VALUES (2, 'prague', 'brno', 'mesh', 'delay');
    INSERT INTO series VALUES (3, 'prague', 'brno', 'bulk', 'throughput');
    INSERT INTO series VALUES (4, 'prague', 'brno', 'path', 'trace');
    INSERT INTO record VALUES (10, 2, 3000, 10, '{"kind":"delay","forth":{"sent":1,"lost":0,
        "duplicated":0,"reordered":0},"back":null,"counted":true,"round_trip":{"sent":1,"lost":0,"duplicated":0,
        "reordered":0}}');
    INSERT INTO record VALUES (11, 3, 4000, 10, '{"kind":"throughput","means":"tcp","bytes":7,
        "bytes_per_second":1.0,"lost":null,"course":[{"at_ns":5,"bytes":7,"window_bytes":1,"srtt_ns":2,
        "retransmits":0}]}');
    INSERT INTO record VALUES (12, 4, 5000, 10, '{"kind":"trace","hops":[{"address":"192.0.2.1",
        "round_trips_ns":[1],"said":"the \"said\": prohibited"}],"reached":false,"mtu_bytes":null}');
    INSERT INTO span VALUES (2, 3600, 0, 1, '{"kind":"delay","forth":null,"back":{"sent":2,"lost":0,
        "duplicated":0,"reordered":0},"counted":true,"round_trip":{"sent":2,"lost":0,"duplicated":0,
        "reordered":0}}');
    INSERT INTO span VALUES (3, 3600, 0, 1, '{"kind":"throughput","means":"udp","bytes":7,
        "bytes_per_second":{"count":1,"minimum":1.0,"median":1.0,"maximum":1.0},"lost":null}');
    INSERT INTO span VALUES (4, 3600, 0, 1, '{"kind":"trace","reached":1,"ways":[{"hops":["192.0.2.1"],
        "times":3}],"other_ways":9,"mtu_bytes":null}');
"#;

#[test]
fn names_of_before_version_5_become_those_of_today() {
    let folder = of_version(4);
    let connection = Connection::open(folder.path().join(FILE)).expect("the database");
    connection.execute_batch(NAMES_OF_4).expect("records");
    drop(connection);
    let archive = open(&folder).expect("an archive");
    let entries = archive.query(&Query::default()).expect("an answer");
    assert_eq!(entries.len(), 8, "{entries:?}");
    for entry in &entries {
        let Entry::Record(record) = entry else { continue };
        match &record.figures {
            Figures::Delay(delay) => assert!(delay.forward.is_some()),
            Figures::Throughput(it) => {
                assert_eq!((it.transport.as_str(), it.samples.len()), ("tcp", 1));
            }
            Figures::Trace(trace) => {
                assert_eq!(trace.hops[0].answer.as_deref(), Some("the \"said\": prohibited"));
            }
            _ => {}
        }
    }
    drop(archive);
    let connection = Connection::open(folder.path().join(FILE)).expect("the database");
    let old = r#"SELECT count(*) FROM (SELECT figures FROM record UNION ALL SELECT figures FROM span)
        WHERE coalesce(figures -> '$.forth', figures -> '$.back', figures -> '$.means',
        figures -> '$.course', figures -> '$.hops[0].said', figures -> '$.ways') IS NOT NULL"#;
    assert_eq!(connection.query_row(old, (), |row| row.get::<_, i64>(0)), Ok(0));
    let new = r#"SELECT count(*) FROM (SELECT figures FROM record UNION ALL SELECT figures FROM span)
        WHERE coalesce(figures -> '$.forward', figures -> '$.transport', figures -> '$.hops[0].answer',
        figures -> '$.paths') IS NOT NULL"#;
    assert_eq!(connection.query_row(new, (), |row| row.get::<_, i64>(0)), Ok(6));
}

#[test]
fn a_step_that_fails_changes_nothing() {
    let folder = of_version(1);
    let connection = Connection::open(folder.path().join(FILE)).expect("the database");
    // As in version 2.
    connection.execute_batch("CREATE TABLE span (x)").expect("a table");
    drop(connection);
    let error = open(&folder).expect_err("refused");
    assert!(error.to_string().contains("already exists"), "{error}");
    let connection = Connection::open(folder.path().join(FILE)).expect("the database");
    assert_eq!(version(&connection).expect("a version"), 1);
}

#[test]
fn every_archive_has_a_number_of_its_own() {
    let number = |folder: &TempDir| {
        let connection = Connection::open(folder.path().join(FILE)).expect("the database");
        let sql = "SELECT id FROM archive";
        connection.query_row(sql, (), |row| row.get::<_, i64>(0)).expect("a number")
    };
    let folders = [of_version(1), of_version(1)];
    let numbers = folders.each_ref().map(number);
    assert_ne!(numbers[0], numbers[1]);
    drop(open(&folders[0]).expect("an archive"));
    assert_eq!(number(&folders[0]), numbers[0]);
}

/// The page that describes the tables.
const MANUAL: &str = include_str!("../../../../../docs/probe-archive.md");

#[test]
fn the_manual_has_every_table_and_column() {
    let folder = of_version(VERSION);
    let connection = Connection::open(folder.path().join(FILE)).expect("the database");
    let sql = "SELECT tables.name, columns.name FROM sqlite_schema AS tables
        JOIN pragma_table_info(tables.name) AS columns
        WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite_%'";
    let mut query = connection.prepare(sql).expect("a query");
    let rows = query
        .query_map((), |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))
        .expect("rows");
    let mut columns: Vec<_> = rows.map(|row| row.expect("a row")).collect();
    let (_, table) =
        MANUAL.split_once("| table | column | |\n| --- | --- | --- |\n").expect("the table");
    let (mut listed, mut of) = (Vec::new(), String::new());
    for row in table.lines().take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let spans =
            |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        of = spans(cells[1]).pop().unwrap_or(of);
        listed.extend(spans(cells[2]).into_iter().map(|column| (of.clone(), column)));
    }
    columns.sort();
    listed.sort();
    assert_eq!(listed, columns);
}
