//! The scanner against clamd itself and against servers that misbehave.

use super::*;
use ::config::Size;
use clamd::Failure;
use std::{
    io::{Read, Write},
    net::TcpListener,
    os::unix::net::UnixListener,
    sync::mpsc::{Receiver, channel},
    time::Duration,
};
use testbed::{
    Namespace,
    clients::{Clamd, eicar},
    wait_until,
};

/// How long a report is waited for: far longer than it takes.
const LONG: Duration = Duration::from_secs(60);

fn scanner(config: &Config) -> (Scanner, Receiver<Report>) {
    let (sender, reports) = channel();
    let deliver = move |report| {
        let _ = sender.send(report);
    };
    (Scanner::new(config, deliver), reports)
}

fn at(clamd: Address) -> Config {
    Config { clamd, connections: 4, timeout: Duration::from_secs(20), ..Config::default() }
}

fn found(job: u64, bytes: usize) -> Report {
    let verdict = ScanResult::Found("Nigh.Test.EICAR.UNOFFICIAL".into());
    Report { job, bytes: bytes as u64, pause: None, verdict }
}

fn clean(job: u64, bytes: usize) -> Report {
    Report { job, bytes: bytes as u64, pause: None, verdict: ScanResult::Clean }
}

mod root {
    use super::*;
    use crate::scan::limits::alerts;
    use testbed::wait_until;

    #[test]
    fn clamd_is_asked_what_it_says_of_archives_beyond_its_limits() {
        let namespace = Namespace::new("scan").unwrap();
        for (more, expected) in [("AlertExceedsMax yes\n", true), ("", false)] {
            let clamd = Clamd::with(&namespace, None, more).unwrap();
            let config = at(Address::Unix(clamd.socket()));
            assert_eq!(alerts(&config), Ok(expected), "{more}");
            let (scanner, _reports) = scanner(&config);
            scanner.ask().unwrap();
            wait_until("clamd's answer", LONG, || scanner.alerts() == Some(expected)).unwrap();
        }
    }

    #[test]
    fn clamd_finds_what_it_knows_and_passes_what_it_does_not() {
        let namespace = Namespace::new("scan").unwrap();
        let clamd = Clamd::start(&namespace, None).unwrap();
        let (scanner, reports) = scanner(&at(Address::Unix(clamd.socket())));
        let virus = eicar();

        // Whole, and in pieces as segments bring it.
        let mut job = scanner.begin(1).unwrap();
        job.content(virus.to_vec()).unwrap();
        job.end();
        assert_eq!(reports.recv_timeout(LONG), Ok(found(1, virus.len())));
        let mut job = scanner.begin(2).unwrap();
        let mut larger = vec![b'a'; 300_000];
        larger.extend(&virus);
        for piece in larger.chunks(1448) {
            job.content(piece.to_vec()).unwrap();
        }
        job.end();
        assert_eq!(reports.recv_timeout(LONG), Ok(found(2, larger.len())));

        // As large, but clean.
        let mut job = scanner.begin(3).unwrap();
        job.content(vec![b'a'; virus.len()]).unwrap();
        job.end();
        assert_eq!(reports.recv_timeout(LONG), Ok(clean(3, virus.len())));

        // A verdict on a part; what follows is inspected together with it.
        let mut job = scanner.begin(4).unwrap();
        let (first, second) = virus.split_at(40);
        job.content(first.to_vec()).unwrap();
        job.pause(7);
        assert_eq!(reports.recv_timeout(LONG), Ok(Report { pause: Some(7), ..clean(4, 40) }));
        job.content(second.to_vec()).unwrap();
        job.end();
        assert_eq!(reports.recv_timeout(LONG), Ok(found(4, virus.len())));

        // One that is forgotten reports nothing and holds nothing.
        let mut job = scanner.begin(5).unwrap();
        job.content(virus.to_vec()).unwrap();
        drop(job);
        scanner.begin(6).unwrap().end();
        assert_eq!(reports.recv_timeout(LONG), Ok(clean(6, 0)));
        assert_eq!(scanner.waiting_bytes(), 0);
        assert_eq!(scanner.counters().found.load(Ordering::Relaxed), 3);
        assert_eq!(scanner.counters().failed.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn where_nobody_listens_the_job_fails() {
    let folder = tempfile::tempdir().unwrap();
    let (scanner, reports) = scanner(&at(Address::Unix(folder.path().join("clamd"))));
    let mut job = scanner.begin(9).unwrap();
    job.content(b"content".to_vec()).unwrap();
    let report = reports.recv_timeout(LONG).unwrap();
    assert!(matches!(report.verdict, ScanResult::Failed(Failure::Unavailable(_))), "{report:?}");
    // Further content is taken and forgotten; no second report.
    job.content(b"more".to_vec()).unwrap();
    job.end();
    assert!(reports.try_recv().is_err());
    assert_eq!(scanner.counters().failed.load(Ordering::Relaxed), 1);
}

#[test]
fn clamd_may_end_the_stream_early_and_say_why() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (scanner, reports) = scanner(&at(Address::Tcp(listener.local_addr().unwrap())));
    let mut job = scanner.begin(1).unwrap();
    job.content(vec![0; 5000]).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    let mut command = [0; 10 + 4 + 5000];
    peer.read_exact(&mut command).unwrap();
    assert_eq!(&command[..14], b"zINSTREAM\0\0\0\x13\x88");
    peer.write_all(b"INSTREAM size limit exceeded. ERROR\0").unwrap();
    drop(peer);
    job.end();
    let verdict = ScanResult::Failed(Failure::TooLarge);
    assert_eq!(
        reports.recv_timeout(LONG),
        Ok(Report { job: 1, bytes: 5000, pause: None, verdict })
    );
}

#[test]
fn a_clamd_that_says_nothing_is_not_waited_for_longer_than_configured() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clamd");
    let _silent = UnixListener::bind(&path).unwrap();
    let config = Config { timeout: Duration::from_secs(1), ..at(Address::Unix(path)) };
    let (scanner, reports) = scanner(&config);
    let mut job = scanner.begin(1).unwrap();
    job.content(vec![0; 10]).unwrap();
    job.end();
    let verdict = ScanResult::Failed(Failure::TimedOut);
    assert_eq!(reports.recv_timeout(LONG), Ok(Report { job: 1, bytes: 10, pause: None, verdict }));
}

/// However many jobs bring however much while clamd takes nothing: no more waits than allowed.
#[test]
fn a_flood_of_content_stays_within_its_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clamd");
    let listener = UnixListener::bind(&path).unwrap();
    let config =
        Config { waiting: Size(100_000), max_size: Size(30_000), ..at(Address::Unix(path)) };
    let (scanner, reports) = scanner(&config);
    // All threads talk to a clamd that does not reply.
    let mut held = Vec::new();
    for number in 0..4 {
        let mut job = scanner.begin(number).unwrap();
        job.content(vec![0; 1]).unwrap();
        job.end();
        held.push(listener.accept().unwrap());
    }
    wait_until("what the threads took", LONG, || scanner.waiting_bytes() == 0).unwrap();
    let mut jobs: Vec<_> = (10..60).map(|number| scanner.begin(number).unwrap()).collect();
    let mut refused = Vec::new();
    for _ in 0..40 {
        for job in &mut jobs {
            if let Err(failure) = job.content(vec![7; 1000]) {
                refused.push(failure);
            }
            assert!(scanner.waiting_bytes() <= 100_000);
        }
    }
    // Those that went beyond the common bound; the rest kept within their own until they were too large.
    assert!(refused.contains(&Failure::Overloaded));
    assert_eq!(refused.len(), 50, "each job fails once");
    assert_eq!(scanner.waiting_bytes(), 0);
    drop(jobs);
    for (mut peer, _) in held {
        // The command, a chunk of one byte, the empty one.
        peer.read_exact(&mut [0; 10 + 5 + 4]).unwrap();
        peer.write_all(b"stream: OK\0").unwrap();
    }
    for _ in 0..4 {
        assert_eq!(reports.recv_timeout(LONG).unwrap().verdict, ScanResult::Clean);
    }
    assert!(reports.try_recv().is_err());
}

/// Reads the command and chunks up to the empty one; answers that nothing was found.
fn answer(mut peer: std::os::unix::net::UnixStream) -> Vec<u8> {
    let mut command = [0; 10];
    peer.read_exact(&mut command).unwrap();
    let mut content = Vec::new();
    loop {
        let mut length = [0; 4];
        peer.read_exact(&mut length).unwrap();
        let begin = content.len();
        content.resize(begin + u32::from_be_bytes(length) as usize, 0);
        if content.len() == begin {
            peer.write_all(b"stream: OK\0").unwrap();
            return content;
        }
        peer.read_exact(&mut content[begin..]).unwrap();
    }
}

/// One connection, and a file that never ends: one that has ended is scanned all the same, and the
/// first goes on afterwards with what came before.
#[test]
fn a_slow_file_does_not_keep_others_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clamd");
    let listener = UnixListener::bind(&path).unwrap();
    let config = Config { connections: 1, ..at(Address::Unix(path)) };
    let (scanner, reports) = scanner(&config);
    let mut slow = scanner.begin(1).unwrap();
    slow.content(b"begin".to_vec()).unwrap();
    let (peer, _) = listener.accept().unwrap();
    let mut whole = scanner.begin(2).unwrap();
    whole.content(b"whole".to_vec()).unwrap();
    whole.end();
    assert_eq!(answer(peer), b"begin");
    assert_eq!(answer(listener.accept().unwrap().0), b"whole");
    assert_eq!(reports.recv_timeout(LONG), Ok(clean(2, 5)));
    slow.content(b"end".to_vec()).unwrap();
    slow.end();
    assert_eq!(answer(listener.accept().unwrap().0), b"beginend");
    assert_eq!(reports.recv_timeout(LONG), Ok(clean(1, 8)));
}

/// What is kept to be sent again is bounded over all jobs; a job without room for it fails when it
/// would need it, not before.
#[test]
fn what_is_kept_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clamd");
    let listener = UnixListener::bind(&path).unwrap();
    let config = Config { waiting: Size(1000), ..at(Address::Unix(path)) };
    let (scanner, reports) = scanner(&config);
    let mut job = scanner.begin(1).unwrap();
    job.content(vec![b'a'; 900]).unwrap();
    let (peer, _) = listener.accept().unwrap();
    wait_until("the first content", LONG, || scanner.waiting_bytes() == 0).unwrap();
    job.content(vec![b'b'; 900]).unwrap();
    job.pause(1800);
    assert_eq!(answer(peer).len(), 1800);
    let report = Report { pause: Some(1800), ..clean(1, 1800) };
    assert_eq!(reports.recv_timeout(LONG), Ok(report));
    job.content(vec![b'c'; 10]).unwrap();
    let verdict = ScanResult::Failed(Failure::Overloaded);
    assert_eq!(
        reports.recv_timeout(LONG),
        Ok(Report { job: 1, bytes: 1810, pause: None, verdict })
    );
}

/// A scanner that is dropped waits for nobody, even where clamd never answers.
#[test]
fn a_scanner_is_gone_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clamd");
    let listener = UnixListener::bind(&path).unwrap();
    let config = Config { timeout: LONG * 10, ..at(Address::Unix(path)) };
    let (scanner, reports) = scanner(&config);
    let mut job = scanner.begin(1).unwrap();
    job.content(vec![0; 10]).unwrap();
    job.end();
    let peer = listener.accept().unwrap();
    drop(scanner);
    // Its thread still waits for the answer.
    drop(peer);
    let report = reports.recv_timeout(LONG).unwrap();
    assert!(matches!(report.verdict, ScanResult::Failed(_)), "{report:?}");
}
