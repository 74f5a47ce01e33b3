//! What is put comes back; nothing that happens to the file stops the archive.

use super::*;
use crate::record::{Bounded, Delay, Figures, Kind, Series};
use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
};
use rand::{RngExt, SeedableRng};
use std::{fs, io::Write};
use tempfile::TempDir;

/// 2026-01-01 00:00 UTC.
const BEGIN_NS: i64 = 1_767_225_600_000_000_000;
const SECOND: i64 = 1_000_000_000;

fn bounded(estimate_ns: i64) -> Bounded {
    Bounded { estimate_ns, low_ns: Some(estimate_ns - 100), high_ns: Some(estimate_ns + 100) }
}

fn delay(seconds: i64, from: &str, to: &str) -> Record {
    let forward = Series {
        sent: 10,
        lost: 1,
        minimum: Some(bounded(1000)),
        median: Some(bounded(2000)),
        maximum: Some(bounded(3000)),
        ..Series::default()
    };
    let round_trip = Series { sent: 10, lost: 1, median: Some(bounded(4000)), ..Series::default() };
    Record {
        at_ns: BEGIN_NS + seconds * SECOND,
        lasted_ns: 1_000_000_000,
        from: from.to_owned(),
        to: to.to_owned(),
        test: "mesh".to_owned(),
        figures: Figures::Delay(Delay {
            forward: Some(forward),
            reverse: None,
            counted: true,
            round_trip,
        }),
    }
}

fn failed(seconds: i64, from: &str, to: &str) -> Record {
    let figures = Figures::Failed { reason: "no route".to_owned() };
    Record { figures, ..delay(seconds, from, to) }
}

/// Records are kept for ever, whatever the clock says.
fn config() -> ArchiveConfig {
    let keep = Duration::ZERO;
    ArchiveConfig { keep, keep_hours: keep, keep_days: keep, ..ArchiveConfig::default() }
}

fn open(folder: &TempDir) -> Archive {
    Archive::open(folder.path(), &config()).expect("an archive")
}

fn records(entries: Vec<Entry>) -> Vec<Record> {
    entries
        .into_iter()
        .map(|entry| match entry {
            Entry::Record(record) => record,
            Entry::Span(span) => panic!("{span:?}"),
        })
        .collect()
}

#[test]
fn what_is_put_comes_back_by_time_station_test_and_kind_also_after_a_restart() {
    let folder = TempDir::new().expect("a folder");
    let all = [
        delay(0, "prague", "brno"),
        failed(5, "prague", "brno"),
        delay(10, "brno", "prague"),
        Record { test: "request".to_owned(), ..delay(20, "prague", "brno") },
    ];
    let archive = open(&folder);
    // Not in the order of time, as tests of different lengths end.
    for record in all.iter().rev() {
        archive.put(record);
    }
    assert!(archive.flush());
    let status = archive.status();
    assert_eq!((status.put, status.written, status.waiting), (4, 4, 0));
    drop(archive);
    let archive = open(&folder);
    let ask = |query: Query| records(archive.query(&query).expect("an answer"));
    let query = Query::default();
    assert_eq!(ask(query.clone()), all);
    let since_ns = Some(BEGIN_NS + 5 * SECOND);
    assert_eq!(ask(Query { since_ns, ..query.clone() }), all[1..]);
    assert_eq!(ask(Query { until_ns: since_ns, ..query.clone() }), all[..1]);
    assert_eq!(ask(Query { from: Some("brno".to_owned()), ..query.clone() }), all[2..3]);
    assert_eq!(ask(Query { to: Some("prague".to_owned()), ..query.clone() }), all[2..3]);
    assert_eq!(ask(Query { test: Some("request".to_owned()), ..query.clone() }), all[3..]);
    assert_eq!(ask(Query { kinds: vec![Kind::Failed], ..query.clone() }), all[1..2]);
    assert_eq!(ask(Query { kinds: Kind::ALL.to_vec(), ..query.clone() }), all);
    assert_eq!(ask(Query { limit: Some(2), ..query.clone() }), all[2..]);
    assert_eq!(ask(Query { from: Some("vienna".to_owned()), ..query }), []);
    // A reader of its own, as the command line has.
    let reader = Reader::open(folder.path()).expect("a reader");
    assert_eq!(records(reader.query(&Query::default()).expect("an answer")), all);
}

#[test]
fn what_the_queue_does_not_hold_is_counted_and_the_sum_is_exact() {
    let folder = TempDir::new().expect("a folder");
    let config = ArchiveConfig { queue: 1, ..config() };
    let archive = Archive::open(folder.path(), &config).expect("an archive");
    for second in 0..10_000 {
        archive.put(&delay(second, "a", "b"));
    }
    assert!(archive.flush());
    let status = archive.status();
    assert_eq!(status.put, 10_000);
    assert_eq!(status.written + status.lost["queue-full"], 10_000);
    let kept = archive.query(&Query::default()).expect("an answer").len();
    assert_eq!(kept as u64, status.written);
}

#[test]
fn a_damaged_database_is_set_aside_and_a_new_one_begun() {
    type Damage = fn(&mut Vec<u8>);
    let cases: [(&str, Damage); 4] = [
        ("no database at all", |bytes| *bytes = b"not a database, but long enough ".repeat(200)),
        ("cut off", |bytes| bytes.truncate(5000)),
        ("overwritten behind the first page", |bytes| bytes[4096..].fill(0x5a)),
        ("overwritten in the first page", |bytes| bytes[100..4000].fill(0xff)),
    ];
    for (what, damage) in cases {
        let folder = TempDir::new().expect("a folder");
        let archive = open(&folder);
        for second in 0..100 {
            archive.put(&delay(second, "a", "b"));
        }
        drop(archive);
        let file = folder.path().join(FILE);
        let mut bytes = fs::read(&file).expect("the database");
        damage(&mut bytes);
        fs::write(&file, &bytes).expect("written");
        let archive = open(&folder);
        let status = archive.status();
        assert_eq!(status.set_aside.len(), 1, "{what}");
        let aside = fs::read(&status.set_aside[0]).expect("the damaged one");
        assert!(aside == bytes, "{what}: changed");
        archive.put(&delay(1, "a", "b"));
        assert!(archive.flush(), "{what}");
        assert_eq!(archive.query(&Query::default()).expect("an answer").len(), 1, "{what}");
    }
}

#[test]
fn damage_while_it_is_written_is_met_in_the_same_way_and_loses_no_new_record() {
    let folder = TempDir::new().expect("a folder");
    let archive = open(&folder);
    archive.put(&delay(0, "a", "b"));
    assert!(archive.flush());
    assert_eq!(archive.query(&Query::default()).expect("an answer").len(), 1);
    // With nothing left in the log, the pages in the file are what is read.
    let file = fs::OpenOptions::new().write(true).open(folder.path().join(FILE));
    let connection = rusqlite::Connection::open(folder.path().join(FILE)).expect("the database");
    connection.pragma_update(None, "wal_checkpoint", "truncate").expect("a checkpoint");
    file.expect("the file").write_all(&[0x5a; 16384]).expect("written");
    archive.put(&delay(1, "a", "b"));
    let settled = testbed::wait_until("a new database", Duration::from_secs(30), || {
        archive.status().written == 2
    });
    settled.expect("the record is written");
    assert_eq!(archive.status().set_aside.len(), 1);
    let kept = records(archive.query(&Query::default()).expect("an answer"));
    assert_eq!(kept, [delay(1, "a", "b")]);
}

#[test]
fn a_later_nighs_archive_and_a_foreign_database_are_left_alone() {
    let folder = TempDir::new().expect("a folder");
    drop(open(&folder));
    let file = folder.path().join(FILE);
    let connection = rusqlite::Connection::open(&file).expect("the database");
    connection.pragma_update(None, "user_version", 999).expect("set");
    drop(connection);
    let error = Archive::open(folder.path(), &config()).expect_err("refused");
    assert!(error.to_string().contains("version 999"), "{error}");
    let error = Reader::open(folder.path()).expect_err("refused");
    assert!(error.to_string().contains("version 999"), "{error}");
    fs::remove_file(&file).expect("removed");
    let connection = rusqlite::Connection::open(&file).expect("a database");
    connection.execute_batch("CREATE TABLE theirs (x)").expect("a table");
    drop(connection);
    let before = fs::read(&file).expect("the file");
    let error = Archive::open(folder.path(), &config()).expect_err("refused");
    assert!(error.to_string().contains("another program's"), "{error}");
    let tables = rusqlite::Connection::open(&file).expect("theirs");
    tables.query_row("SELECT count(*) FROM theirs", (), |_| Ok(())).expect("their table");
    assert!(!before.is_empty());
}

mod root {
    use super::*;

    /// A small disk in a mount namespace that only this thread and its children have.
    struct Disk {
        path: PathBuf,
        _folder: TempDir,
    }

    impl Disk {
        fn new(size: &str) -> Self {
            testbed::need_root();
            unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS).expect("a mount namespace");
            let none: Option<&str> = None;
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(none, "/", none, private, none).expect("private mounts");
            let folder = TempDir::new().expect("a folder");
            let path = folder.path().join("disk");
            fs::create_dir(&path).expect("a folder");
            let flags = MsFlags::empty();
            mount(Some("disk"), &path, Some("tmpfs"), flags, Some(size)).expect("a disk");
            Self { path, _folder: folder }
        }

        fn resize(&self, size: &str) {
            let flags = MsFlags::MS_REMOUNT;
            mount(Some("disk"), &self.path, Some("tmpfs"), flags, Some(size))
                .expect("another size");
        }
    }

    impl Drop for Disk {
        fn drop(&mut self) {
            // The folder can then be removed.
            let _ = nix::mount::umount2(&self.path, nix::mount::MntFlags::MNT_DETACH);
        }
    }

    #[test]
    fn an_archive_on_a_full_disk_can_be_closed() {
        let disk = Disk::new("size=256k");
        let archive = Archive::open(&disk.path, &config()).expect("an archive");
        for second in 0..5000 {
            archive.put(&delay(second, "a", "b"));
        }
        assert!(!archive.flush());
        let counters = archive.counters.clone();
        drop(archive);
        let status = counters.status(&disk.path.join(FILE));
        assert_eq!(status.put, 5000);
        assert_eq!(status.waiting, 0);
        assert!(status.lost["not-written"] > 0);
    }

    #[test]
    fn records_wait_while_the_disk_is_full_and_what_finds_no_room_is_counted() {
        let disk = Disk::new("size=512k");
        let config = ArchiveConfig { queue: 100, ..config() };
        let archive = Archive::open(&disk.path, &config).expect("an archive");
        archive.put(&delay(0, "a", "b"));
        assert!(archive.flush());
        let mut second = 0;
        while archive.status().error.is_none() {
            second += 1;
            archive.put(&delay(second, "a", "b"));
            std::thread::yield_now();
        }
        // A failed write is reported to the caller, and the writer goes on.
        assert!(!archive.flush());
        for _ in 0..5000 {
            second += 1;
            archive.put(&delay(second, "a", "b"));
        }
        let status = archive.status();
        assert!(status.error.is_some_and(|why| why.contains("full")), "says why");
        assert!(status.lost["queue-full"] > 0);
        disk.resize("size=64m");
        let settled = testbed::wait_until("all is written", Duration::from_secs(60), || {
            archive.flush() && archive.status().waiting == 0
        });
        settled.expect("the archive goes on");
        let status = archive.status();
        assert_eq!(status.error, None);
        assert_eq!(status.put, second as u64 + 1);
        assert_eq!(status.written + status.lost["queue-full"], status.put);
        assert_eq!(status.set_aside, Vec::<PathBuf>::new());
        let kept = archive.query(&Query::default()).expect("an answer").len();
        assert_eq!(kept as u64, status.written);
    }
}

#[test]
fn metrics_say_what_the_status_says() {
    let folder = TempDir::new().expect("a folder");
    let archive = open(&folder);
    archive.put(&delay(0, "a", "b"));
    assert!(archive.flush());
    let status = Status {
        postgresql: Some(Sending { unsent: 3, ..Sending::default() }),
        parquet: Some(Exporting { files: 2, ..Exporting::default() }),
        ..archive.status()
    };
    let text = job::metrics::text(move |metrics| status.collect(metrics)).expect("metrics");
    for line in [
        "nigh_probe_archive_put_total 1\n",
        "nigh_probe_archive_written_total 1\n",
        "nigh_probe_archive_lost_total{reason=\"queue-full\"} 0\n",
        "nigh_probe_archive_set_aside_total 0\n",
        "nigh_probe_archive_healthy 1.0\n",
        "nigh_probe_archive_unsent 3.0\n",
        "nigh_probe_archive_files_total 2\n",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
}

#[test]
fn whatever_bytes_are_wrong_the_archive_opens_or_says_why_not() {
    let whole = TempDir::new().expect("a folder");
    let archive = open(&whole);
    for second in 0..300 {
        archive.put(&delay(second, "a", "b"));
    }
    drop(archive);
    let bytes = fs::read(whole.path().join(FILE)).expect("the database");
    let mut random = rand::rngs::SmallRng::seed_from_u64(156);
    for _ in 0..40 {
        let mut bytes = bytes.clone();
        for _ in 0..random.random_range(1..200) {
            // Most of them in the head and the tables' roots.
            let most = if random.random_bool(0.5) { 4096 * 12 } else { bytes.len() };
            let at = random.random_range(0..most.min(bytes.len()));
            bytes[at] = random.random();
        }
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join(FILE), &bytes).expect("written");
        let Ok(archive) = Archive::open(folder.path(), &config()) else { continue };
        // What can be read is read; what cannot is an error or skipped.
        let _ = archive.query(&Query::default());
        archive.put(&delay(0, "a", "b"));
        archive.flush();
        let settled = testbed::wait_until("it is written", Duration::from_secs(60), || {
            let status = archive.status();
            status.written + status.lost["refused"] == 1
        });
        settled.unwrap_or_else(|error| panic!("{error}: {:?}", archive.status()));
    }
}

#[test]
fn a_record_that_is_refused_costs_no_other() {
    let folder = TempDir::new().expect("a folder");
    let archive = open(&folder);
    let other = rusqlite::Connection::open(folder.path().join(FILE)).expect("the database");
    let trigger = "CREATE TRIGGER odd BEFORE INSERT ON record \
                   WHEN (NEW.at_ns / 1000000000) % 100 = 70 BEGIN SELECT RAISE(ABORT, 'odd'); END";
    other.execute_batch(trigger).expect("a trigger");
    for second in 0..300 {
        archive.put(&delay(second, "a", "b"));
    }
    assert!(archive.flush());
    let status = archive.status();
    assert_eq!((status.written, status.lost["refused"]), (297, 3));
    let found = archive.query(&Query::default()).expect("an answer");
    assert_eq!(found.len(), 297);
}

#[test]
fn the_query_of_the_manual_finds_a_delay() {
    let manual = include_str!("../../../../docs/probe-archive.md");
    let (_, sql) = manual.split_once("archive.sqlite \"\n").expect("the command");
    let (sql, _) = sql.split_once('"').expect("its end");
    let folder = TempDir::new().expect("a folder");
    let archive = open(&folder);
    archive.put(&delay(5, "prague", "brno"));
    archive.put(&delay(6, "brno", "prague"));
    assert!(archive.flush());
    let connection = rusqlite::Connection::open(folder.path().join(FILE)).expect("the database");
    let mut query = connection.prepare(sql).expect("a query");
    let rows = query
        .query_map((), |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))
        .expect("rows");
    let rows: Vec<_> = rows.map(|row| row.expect("a row")).collect();
    assert_eq!(rows, [("2026-01-01 00:00:05".to_owned(), 2000)]);
}
