use super::*;
use crate::machine::Link;
use capture::{Item, pcapng};
use datapath::mask::Direction;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

fn head() -> Head {
    Head::new("masked for a test".to_owned(), Link::Ethernet, 65_535)
}

/// 2026-11-23 16:00:00 and so many seconds.
fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_795_449_600 + seconds)
}

fn packet(number: u8, bytes: &[u8]) -> Packet<'_> {
    Packet {
        at_ns: 1_000_000_000 + u64::from(number),
        length: 9000,
        direction: Direction::In,
        comment: None,
        bytes,
    }
}

/// The times of the packets in a file, which has the record, too.
fn times(path: &Path) -> Vec<u64> {
    let bytes = fs::read(path).expect("a file");
    assert!(bytes.windows(17).any(|it| it == b"masked for a test"));
    let mut times = Vec::new();
    let end = capture::read_all::<capture::ReadError>(&bytes[..], |item, _| {
        if let Item::Frame(frame) = item {
            assert_eq!((frame.link, frame.length), (capture::LinkType::ETHERNET, 9000));
            times.push(frame.at_ns - 1_000_000_000);
        }
        Ok(())
    });
    assert_eq!(end.expect("pcapng"), capture::End::Whole);
    times
}

/// The names in a folder with the times of their packets.
fn all(folder: &Path) -> Vec<(String, Vec<u64>)> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file"));
    let mut all: Vec<_> = entries
        .map(|entry| (entry.file_name().into_string().expect("a name"), times(&entry.path())))
        .collect();
    all.sort();
    all
}

#[test]
fn one_file_replaces_what_was_there_and_is_whole_when_it_is_flushed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out.pcapng");
    let mut files = Files::create(head(), &path, Rotation::default(), at(0)).expect("a file");
    assert!(times(&path).is_empty());
    files.packet(&packet(7, &[1; 60])).expect("written");
    assert!(times(&path).is_empty());
    files.flush(at(86_400)).expect("written");
    assert_eq!(times(&path), [7]);
    // Many: they are written without a flush.
    for _ in 0..10_000 {
        files.packet(&packet(8, &[2; 60])).expect("written");
    }
    assert!(times(&path).len() > 5000);
    let statistics = files.statistics();
    assert_eq!((statistics.packets, statistics.bytes), (10_001, 600_060));
    assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
    drop(Files::create(head(), &path, Rotation::default(), at(0)).expect("a file"));
    assert_eq!(all(folder.path()), [("out.pcapng".to_owned(), vec![])]);
}

#[test]
fn a_new_file_begins_before_one_is_too_large() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("campus.pcapng");
    let first = head().blocks().len() as u64;
    let mut block = Vec::new();
    head().packet(&mut block, &packet(0, &[0; 60]));
    let bytes = Some(first + 2 * block.len() as u64);
    let rotation = Rotation { bytes, ..Rotation::default() };
    let mut files = Files::create(head(), &path, rotation, at(0)).expect("a file");
    for number in 0..4 {
        files.packet(&packet(number, &[0; 60])).expect("written");
    }
    // One that is too large by itself has a file of its own.
    files.flush(at(1)).expect("written");
    files.packet(&packet(4, &[0; 5000])).expect("written");
    files.packet(&packet(5, &[0; 60])).expect("written");
    files.flush(at(2)).expect("written");
    let names = [
        ("campus-20261123T160000Z.pcapng", vec![0, 1]),
        ("campus-20261123T160000Z_002.pcapng", vec![2, 3]),
        ("campus-20261123T160001Z.pcapng", vec![4]),
        ("campus-20261123T160001Z_002.pcapng", vec![5]),
    ];
    assert_eq!(all(folder.path()), names.map(|(name, times)| (name.to_owned(), times)));
    for entry in fs::read_dir(folder.path()).expect("a folder") {
        let mode = entry.and_then(|it| it.metadata()).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn files_have_full_periods_of_the_clock_and_the_newest_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("campus");
    let rotation = Rotation { seconds: Some(60), keep: Some(2), ..Rotation::default() };
    let mut files = Files::create(head(), &path, rotation, at(50)).expect("a file");
    let mut note = |number, seconds| {
        files.packet(&packet(number, &[0; 60])).expect("written");
        files.flush(at(seconds)).expect("written");
    };
    note(1, 59);
    assert_eq!(all(folder.path()).len(), 1);
    note(2, 60);
    note(3, 119);
    note(4, 121);
    let names = ["campus-20261123T160100Z", "campus-20261123T160201Z"].map(str::to_owned);
    assert_eq!(all(folder.path()), names.into_iter().zip([vec![3, 4], vec![]]).collect::<Vec<_>>());
    // Files without packets go, so that each has the time of its packets in its name.
    files.flush(at(1000)).expect("written");
    files.packet(&packet(5, &[0; 60])).expect("written");
    files.flush(at(1001)).expect("written");
    let names = ["campus-20261123T160100Z", "campus-20261123T161640Z"].map(str::to_owned);
    assert_eq!(
        all(folder.path()),
        names.into_iter().zip([vec![3, 4], vec![5]]).collect::<Vec<_>>()
    );
    // Somebody has taken one away.
    fs::remove_file(folder.path().join("campus-20261123T160100Z")).expect("a file");
    files.flush(at(2000)).expect("written");
    assert_eq!(all(folder.path()).len(), 2);
}

#[test]
fn files_of_before_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("campus.pcapng");
    let before = folder.path().join("campus-20261123T160000Z.pcapng");
    let mut section = Vec::new();
    pcapng::section(&mut section, "another", Some("masked for a test"));
    fs::write(&before, &section).expect("a file");
    let rotation = Rotation { bytes: Some(1), keep: Some(1), ..Rotation::default() };
    let mut files = Files::create(head(), &path, rotation, at(0)).expect("a file");
    for number in 0..3 {
        files.packet(&packet(number, &[0; 60])).expect("written");
    }
    files.write().expect("written");
    assert_eq!(fs::read(&before).expect("a file"), section);
    assert_eq!(
        all(folder.path())[1..],
        [("campus-20261123T160000Z_004.pcapng".to_owned(), vec![2])]
    );
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let rotation = Rotation { bytes: Some(1), ..Rotation::default() };
    let create = |path: &str, rotation| Files::create(head(), Path::new(path), rotation, at(0));
    let error = create("-", rotation).expect_err("stdout").to_string();
    assert_eq!(error, "stdout cannot be rotated: give a file");
    let error = create("/nonexistent/a.pcapng", rotation).expect_err("no folder").to_string();
    assert!(error.starts_with("/nonexistent/a-20261123T160000Z.pcapng: "), "{error}");
    let error = create("/dev/full", Rotation::default()).expect_err("no room").to_string();
    assert!(error.starts_with("/dev/full: No space left"), "{error}");
}

#[test]
fn each_file_says_under_which_key_its_first_packet_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out.pcapng");
    let rotation = Rotation { bytes: Some(500), ..Rotation::default() };
    let mut files = Files::create(head(), &path, rotation, at(0)).expect("a file");
    for number in 0..20 {
        let comment = [Some("from here on key a"), Some("from here on key b")]
            .into_iter()
            .zip([0, 12])
            .find_map(|(comment, first)| comment.filter(|_| number == first));
        files.packet(&Packet { comment, ..packet(number, &[1; 60]) }).expect("written");
    }
    files.write().expect("written");
    let mut keys = Vec::new();
    for entry in fs::read_dir(folder.path()).expect("a folder") {
        let bytes = fs::read(entry.expect("a file").path()).expect("a file");
        let names = bytes.windows(18).filter_map(|it| it.strip_prefix(b"from here on key "));
        let names: Vec<u8> = names.map(|key| key[0]).collect();
        // The one in which the key changes says both.
        assert!([&b"a"[..], b"b", b"ab"].contains(&&names[..]), "{names:?}");
        assert!(bytes.len() <= 500);
        keys.push(names);
    }
    assert!(keys.len() > 5 && keys.contains(&b"a".to_vec()) && keys.contains(&b"b".to_vec()));
}
