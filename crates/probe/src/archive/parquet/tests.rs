//! Files hold what the archive holds, each record once.

use super::{
    super::{Archive, ArchiveConfig, FILE},
    *,
};
use crate::record::{
    Bounded, Clock, Delay, Dns, Figures, Hop, Http, Record, Series, Throughput, Trace,
};
use parquet::{
    file::reader::{FileReader, SerializedFileReader},
    record::{Field, Row},
};
use tempfile::TempDir;

/// 2026-01-01 00:00 UTC.
const BEGIN_NS: i64 = 1_767_225_600_000_000_000;

fn series(estimate_ns: i64) -> Series {
    let bounded = Bounded { estimate_ns, low_ns: Some(estimate_ns - 1), high_ns: None };
    Series { sent: 10, lost: 1, median: Some(bounded), ..Series::default() }
}

/// One of each kind.
fn kinds() -> [Figures; 8] {
    let forward = Some(series(-5));
    let hop = Hop { address: Some([192, 0, 2, 1].into()), ..Hop::default() };
    [
        Figures::Delay(Delay { forward, round_trip: series(7), ..Delay::default() }),
        Figures::Throughput(Throughput {
            transport: "tcp".to_owned(),
            bytes: 1,
            bytes_per_second: 1.5,
            ..Throughput::default()
        }),
        Figures::Trace(Trace { hops: vec![hop], reached: true, mtu_bytes: Some(1500) }),
        Figures::Ping(series(9)),
        Figures::Http(Http { status: 200, whole_ns: 5, ..Http::default() }),
        Figures::Dns(Dns { code: "NOERROR".to_owned(), answers: 1, took_ns: 3 }),
        Figures::Clock(Clock { offset_ns: Some(-3), holdover: true, ..Clock::default() }),
        Figures::Failed { reason: "no route".to_owned() },
    ]
}

fn record(at_ns: i64, figures: Figures) -> Record {
    let [from, to, test] = ["prague", "brno", "mesh"].map(str::to_owned);
    Record { at_ns, lasted_ns: 5, from, to, test, figures }
}

fn put(folder: &TempDir, records: &[Record]) {
    let keep = Duration::ZERO;
    let config =
        ArchiveConfig { keep, keep_hours: keep, keep_days: keep, ..ArchiveConfig::default() };
    let archive = Archive::open(folder.path(), &config).expect("an archive");
    records.iter().for_each(|record| archive.put(record));
    assert!(archive.flush());
}

fn run(folder: &TempDir, now_ns: i64) {
    let (path, out) = (folder.path().join(FILE), folder.path().join("out"));
    export(&path, &out, now_ns, &Counters::default(), || false).expect("files");
}

/// Names of files, and rows of one of them.
fn names(folder: &TempDir) -> Vec<String> {
    let out = folder.path().join("out");
    let mut names = Vec::new();
    for kind in Kind::ALL {
        let Ok(files) = fs::read_dir(out.join(kind.name())) else { continue };
        let files = files.flatten().map(|file| file.file_name().to_string_lossy().into_owned());
        names.extend(files.map(|name| format!("{kind}/{name}")));
    }
    names.sort();
    names
}

fn rows(folder: &TempDir, name: &str) -> Vec<Row> {
    let file = File::open(folder.path().join("out").join(name)).expect("a file");
    let reader = SerializedFileReader::new(file).expect("Parquet");
    reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row")).collect()
}

fn field(row: &Row, name: &str) -> Field {
    let found = row.get_column_iter().find(|column| column.0 == name);
    found.unwrap_or_else(|| panic!("{name} in {row:?}")).1.clone()
}

#[test]
fn a_day_that_is_over_has_a_file_for_each_kind_with_all_columns() {
    let folder = TempDir::new().expect("a folder");
    let records: Vec<_> =
        kinds().into_iter().map(|figures| record(BEGIN_NS + 123, figures)).collect();
    put(&folder, &records);
    // Not before an hour after the day's end.
    run(&folder, BEGIN_NS + DAY_NS + GRACE_NS - 1);
    assert_eq!(names(&folder), Vec::<String>::new());
    run(&folder, BEGIN_NS + DAY_NS + GRACE_NS);
    let expected = Kind::ALL.map(|kind| format!("{kind}/2026-01-01.parquet"));
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(names(&folder), expected);
    let row = |kind: Kind| {
        let rows = rows(&folder, &format!("{kind}/2026-01-01.parquet"));
        assert_eq!(rows.len(), 1);
        rows.into_iter().next().expect("a row")
    };
    let delay = row(Kind::Delay);
    assert_eq!(delay.len(), 6 + 3 * 23);
    let is = |row: &Row, name: &str, value: &str| {
        assert_eq!(field(row, name).to_string(), value, "{name}");
    };
    for (name, value) in [
        ("lasted_ns", "5"),
        ("station", "\"prague\""),
        ("target", "\"brno\""),
        ("test", "\"mesh\""),
        ("forward_median_ns", "-5"),
        ("forward_median_low_ns", "-6"),
        ("forward_median_high_ns", "null"),
        ("reverse_sent", "null"),
        ("round_trip_median_ns", "7"),
        ("round_trip_lost", "1"),
    ] {
        is(&delay, name, value);
    }
    is(&row(Kind::Throughput), "bytes_per_second", "1.5");
    assert!(field(&row(Kind::Trace), "hops").to_string().contains("192.0.2.1"));
    is(&row(Kind::Ping), "median_ns", "9");
    is(&row(Kind::Http), "status", "200");
    is(&row(Kind::Dns), "code", "\"NOERROR\"");
    is(&row(Kind::Clock), "offset_ns", "-3");
    is(&row(Kind::Clock), "holdover", "true");
    is(&row(Kind::Failed), "reason", "\"no route\"");
}

#[test]
fn what_comes_late_has_a_file_of_its_own_and_no_record_is_in_two() {
    let folder = TempDir::new().expect("a folder");
    let ping = |n: i64| record(BEGIN_NS + n, Figures::Ping(series(n)));
    // More than a row group.
    put(&folder, &(0..12_000).map(ping).collect::<Vec<_>>());
    let later = BEGIN_NS + 2 * DAY_NS;
    run(&folder, later);
    run(&folder, later);
    assert_eq!(names(&folder), ["ping/2026-01-01.parquet"]);
    put(&folder, &[ping(12_000), record(BEGIN_NS + DAY_NS, Figures::Ping(series(1)))]);
    run(&folder, later);
    assert_eq!(names(&folder), ["ping/2026-01-01-12000.parquet", "ping/2026-01-01.parquet"]);
    // As if the power had failed before the day was counted: the same file, with what came meanwhile.
    let connection = Connection::open(folder.path().join(FILE)).expect("the database");
    connection.execute("UPDATE exported SET through = 12000", ()).expect("an old state");
    put(&folder, &[ping(12_001)]);
    run(&folder, later + GRACE_NS);
    let names = names(&folder);
    assert_eq!(
        names,
        ["ping/2026-01-01-12000.parquet", "ping/2026-01-01.parquet", "ping/2026-01-02.parquet"]
    );
    let rows: Vec<_> = names[..2].iter().flat_map(|name| rows(&folder, name)).collect();
    let mut values: Vec<_> = rows.iter().map(|row| field(row, "median_ns").to_string()).collect();
    values.sort();
    values.dedup();
    assert_eq!((rows.len(), values.len()), (12_002, 12_002));
}

#[test]
fn a_folder_that_cannot_be_written_is_reported_and_tried_again() {
    let folder = TempDir::new().expect("a folder");
    put(&folder, &[record(BEGIN_NS, Figures::Ping(series(1)))]);
    let in_the_way = folder.path().join("out");
    fs::write(&in_the_way, "a file").expect("a file");
    let now = BEGIN_NS + 2 * DAY_NS;
    let path = folder.path().join(FILE);
    let error = export(&path, &in_the_way, now, &Counters::default(), || false);
    assert!(error.expect_err("refused").to_string().contains("out/ping"));
    fs::remove_file(&in_the_way).expect("removed");
    run(&folder, now);
    assert_eq!(names(&folder), ["ping/2026-01-01.parquet"]);
}

/// Asks for days, all where none is named.
fn request(folder: &TempDir, days: &[&str]) -> Result<Vec<Exported>, ExportError> {
    let args = ExportArgs {
        folder: folder.path().join("out"),
        days: days.iter().map(|day| day.parse().expect("a day")).collect(),
        archive: None,
    };
    export_days(&args, folder.path())
}

#[test]
fn days_on_request_are_written_whole_and_never_over_others() {
    let folder = TempDir::new().expect("a folder");
    assert!(matches!(request(&folder, &[]), Err(ExportError::Query(_))), "no archive yet");
    let on = |day: i64, figures| record(BEGIN_NS + day * DAY_NS, figures);
    let ping = || Figures::Ping(series(1));
    let failed = Figures::Failed { reason: "no route".to_owned() };
    put(&folder, &[on(0, ping()), on(0, ping()), on(0, failed), on(1, ping()), on(3, ping())]);
    // What the station exports by itself does not matter.
    run(&folder, BEGIN_NS + 2 * DAY_NS);
    fs::remove_dir_all(folder.path().join("out")).expect("files");
    let files = request(&folder, &["2026-01-01"]).expect("files");
    let reported: Vec<_> =
        files.iter().map(|file| (file.day.to_string(), file.kind, file.records)).collect();
    let day = "2026-01-01".to_owned();
    assert_eq!(reported, [(day.clone(), Kind::Ping, 2), (day, Kind::Failed, 1)]);
    assert_eq!(names(&folder), ["failed/2026-01-01.parquet", "ping/2026-01-01.parquet"]);
    assert_eq!(rows(&folder, "ping/2026-01-01.parquet").len(), 2);
    assert!(render(&files).contains("2 records  "), "{}", render(&files));
    assert!(matches!(request(&folder, &["2026-01-03"]), Err(ExportError::NoRecords(_))));
    assert!(matches!(request(&folder, &[]), Err(ExportError::There(_))));
    assert_eq!(names(&folder).len(), 2, "nothing was written");
    let rest = request(&folder, &["2026-01-02", "2026-01-04"]).expect("files");
    assert_eq!(rest.len(), 2);
    for text in ["", "2026-02-30", "2026-1-1", "yesterday", "1969-12-31"] {
        assert!(text.parse::<Day>().is_err(), "{text}");
    }
}
