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

#[test]
fn a_step_that_fails_changes_nothing() {
    let folder = of_version(1);
    let connection = Connection::open(folder.path().join(FILE)).expect("the database");
    // In the way of version 2.
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
