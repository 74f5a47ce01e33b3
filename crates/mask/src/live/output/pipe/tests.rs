use super::*;
use crate::machine::Link;
use capture::Item;
use datapath::mask::Direction;
use std::{io::Read, os::unix::fs::PermissionsExt, thread};

/// Bytes of an IP packet.
const BYTES: [u8; 100] = [0x45; 100];

fn head() -> Head {
    Head::new("masked for a test".to_owned(), Link::Ip, 65_535)
}

fn packet(at_ns: u64) -> Packet<'static> {
    Packet { at_ns, length: 1500, direction: Direction::In, comment: None, bytes: &BYTES }
}

/// Opens the pipe for reading without waiting for its writer.
fn reader(path: &Path) -> File {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).expect("a pipe")
}

/// The times of the packets that have come; how the stream ends.
fn times(mut reader: &File) -> (Vec<u64>, capture::End) {
    let mut bytes = Vec::new();
    if let Err(error) = reader.read_to_end(&mut bytes) {
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }
    // Each reader has the record first.
    assert!(bytes[..200].windows(17).any(|it| it == b"masked for a test"));
    let mut times = Vec::new();
    let end = capture::read_all::<capture::ReadError>(&bytes[..], |item, _| {
        if let Item::Frame(frame) = item {
            assert_eq!(frame.bytes[4..], BYTES);
            times.push(frame.at_ns);
        }
        Ok(())
    });
    (times, end.expect("pcapng"))
}

/// What happened to the packets, when all went well.
fn ended(pipe: Pipe) -> Statistics {
    let (statistics, sent) = pipe.end();
    sent.expect("an end");
    statistics
}

#[test]
fn readers_come_and_go_and_each_begins_with_a_header() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pipe");
    let mut pipe = Pipe::open(head(), &path).expect("a pipe");
    let mode = fs::metadata(&path).expect("a pipe").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    pipe.packet(&packet(1)).expect("nobody");
    let first = reader(&path);
    // It is seen at the next flush.
    pipe.packet(&packet(2)).expect("nobody");
    pipe.flush().expect("a reader");
    pipe.packet(&packet(3)).expect("waits");
    pipe.flush().expect("written");
    assert_eq!(times(&first), (vec![3], capture::End::Whole));
    // The next one comes right behind the first, before anybody has noticed, and does not read what was its.
    pipe.packet(&packet(4)).expect("waits");
    drop(first);
    let second = reader(&path);
    pipe.flush().expect("another reader");
    pipe.packet(&packet(5)).expect("waits");
    pipe.packet(&packet(6)).expect("waits");
    pipe.flush().expect("written");
    assert_eq!(times(&second), (vec![5, 6], capture::End::Whole));
    assert_eq!(
        ended(pipe),
        Statistics { packets: 3, bytes: 300, no_reader: 3, ..Statistics::default() }
    );
    assert!(!path.exists());
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn a_slow_reader_loses_packets_but_no_part_of_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pipe");
    let mut pipe = Pipe::open(head(), &path).expect("a pipe");
    let slow = reader(&path);
    pipe.flush().expect("a reader");
    let packets = 200_000;
    for number in 0..packets {
        pipe.packet(&packet(number)).expect("counted");
    }
    let lost = pipe.statistics().slow_reader;
    assert!((10_000..150_000).contains(&lost), "{lost}");
    // It takes what waited, up to the last packet.
    let (got, statistics) = thread::scope(|scope| {
        let read = scope.spawn(|| {
            let mut bytes = Vec::new();
            let blocking = fcntl(&slow, FcntlArg::F_SETFL(nix::fcntl::OFlag::empty()));
            blocking.expect("a reader that waits");
            (&slow).read_to_end(&mut bytes).expect("all");
            let mut count = 0;
            let end = capture::read_all::<capture::ReadError>(&bytes[..], |item, _| {
                count += u64::from(matches!(item, Item::Frame(_)));
                Ok(())
            });
            assert_eq!(end.expect("pcapng"), capture::End::Whole);
            count
        });
        let statistics = ended(pipe);
        (read.join().expect("a count"), statistics)
    });
    assert_eq!((statistics.packets, statistics.slow_reader), (got, lost));
    assert_eq!(got + lost, packets);
}

/// What is beside packets is true of those that follow, so it is not lost with its packet.
#[test]
fn a_key_named_at_a_lost_packet_is_named_at_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pipe");
    let mut pipe = Pipe::open(head(), &path).expect("a pipe");
    let comments = |mut reader: &File| {
        let mut bytes = Vec::new();
        let _ = reader.read_to_end(&mut bytes);
        ["key one", "key two"]
            .map(|key| bytes.windows(7).filter(|it| *it == key.as_bytes()).count())
    };
    let keyed = |key| Packet { comment: Some(key), ..packet(1) };
    pipe.packet(&keyed("key one")).expect("nobody");
    let reader = reader(&path);
    pipe.flush().expect("a reader");
    pipe.packet(&packet(2)).expect("waits");
    pipe.packet(&packet(3)).expect("waits");
    pipe.flush().expect("written");
    assert_eq!(comments(&reader), [1, 0]);
    // Too slow a reader.
    while pipe.statistics().slow_reader == 0 {
        pipe.packet(&packet(4)).expect("waits");
    }
    pipe.packet(&keyed("key two")).expect("lost");
    assert_eq!(pipe.statistics().slow_reader, 2);
    let mut counts = [0; 2];
    for _ in 0..20 {
        let more = comments(&reader);
        counts = [counts[0] + more[0], counts[1] + more[1]];
        pipe.flush().expect("written");
    }
    assert_eq!(counts, [0, 0]);
    pipe.packet(&packet(5)).expect("waits");
    pipe.packet(&packet(6)).expect("waits");
    pipe.flush().expect("written");
    assert_eq!(comments(&reader), [0, 1]);
}

#[test]
fn the_end_does_not_wait_for_who_reads_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pipe");
    let mut pipe = Pipe::open(head(), &path).expect("a pipe");
    let _idle = reader(&path);
    pipe.flush().expect("a reader");
    for number in 0..20_000 {
        pipe.packet(&packet(number)).expect("waits");
    }
    let begin = Instant::now();
    let statistics = ended(pipe);
    assert!(begin.elapsed() < 5 * LAST);
    assert!(statistics.slow_reader > 0);
    assert_eq!(statistics.packets + statistics.slow_reader, 20_000);
}

#[test]
fn a_pipe_that_is_there_stays_with_its_rights_and_nothing_else_is_taken_for_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pipe");
    mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).expect("a pipe");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("rights");
    let _reader = reader(&path);
    drop(Pipe::open(head(), &path).expect("a pipe"));
    let there = fs::metadata(&path).expect("a pipe");
    assert!(there.file_type().is_fifo());
    assert_eq!(there.permissions().mode() & 0o777, 0o640);
    let file = folder.path().join("file");
    fs::write(&file, "text").expect("a file");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    for path in [&file, &link] {
        let error = Pipe::open(head(), path).expect_err("no pipe").to_string();
        assert!(error.contains("is not a pipe"), "{error}");
    }
    assert_eq!(fs::read(&file).expect("a file"), b"text");
    let error = Pipe::open(head(), Path::new("/nonexistent/pipe")).expect_err("no folder");
    assert!(error.to_string().starts_with("/nonexistent/pipe: "), "{error}");
}
