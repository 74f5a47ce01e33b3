//! Streams over loopback: what is written is what is read, whichever interface is used.

use crate::common::{LIMIT, key, listen, pair, plain, read, read_to_error, read_up_to, to, write};
use psock::{
    AsyncPsockListener, AsyncPsockStream, ConnectionState, DriverName, EndReason, PsockListener,
    PsockStream, SessionError,
};
use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr},
    thread,
};
use testbed::wait_until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[test]
fn each_driver_brings_both_streams_at_a_time() {
    for driver in DriverName::ALL {
        let config = psock::Config { driver, connections_per_path: 3, ..key() };
        let (one, other) = pair(&config);
        thread::scope(|scope| {
            for (stream, ours, theirs) in [(&one, 1, 2), (&other, 2, 1)] {
                scope.spawn(move || {
                    write(stream, ours, 5_000_000).unwrap();
                    stream.shutdown(Shutdown::Write).unwrap();
                });
                scope.spawn(move || {
                    assert_eq!(read(stream, theirs).unwrap(), 5_000_000, "{driver}");
                });
            }
        });
        assert_eq!(other.counters().session.driver, driver.to_string());
        one.close().unwrap();
        other.close().unwrap();
    }
}

#[test]
fn plain_connections_bring_the_same() {
    let (one, other) = pair(&plain());
    thread::scope(|scope| {
        scope.spawn(|| {
            write(&one, 3, 3_000_001).unwrap();
            one.shutdown(Shutdown::Write).unwrap();
        });
        assert_eq!(read(&other, 3).unwrap(), 3_000_001);
    });
}

#[tokio::test]
async fn an_echo_in_tokio_returns_every_byte() {
    let addresses = [SocketAddr::from(([127, 0, 0, 1], 0))];
    let listener = AsyncPsockListener::bind(&addresses, &key()).await.unwrap();
    let config = to(&listener.local_addresses(), &key());
    let echo = tokio::spawn(async move {
        let (stream, peer) = listener.accept().await.unwrap();
        assert_eq!(peer, stream.peer());
        let (mut reader, mut writer) = tokio::io::split(stream);
        tokio::io::copy(&mut reader, &mut writer).await.unwrap();
        reader.unsplit(writer).close().await.unwrap();
    });
    let stream = AsyncPsockStream::connect(&config).await.unwrap();
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut bytes = vec![0; 2_000_000];
    crate::common::fill(4, 0, &mut bytes);
    let sent = bytes.clone();
    let writing = tokio::spawn(async move {
        writer.write_all(&sent).await.unwrap();
        writer.shutdown().await.unwrap();
        writer
    });
    let mut back = Vec::new();
    reader.read_to_end(&mut back).await.unwrap();
    assert!(back == bytes, "{} of {} bytes came back", back.len(), bytes.len());
    let stream = reader.unsplit(writing.await.unwrap());
    stream.into_blocking().unwrap().close().unwrap();
    echo.await.unwrap();
}

#[test]
fn after_a_half_close_the_other_half_goes_on() {
    let (one, other) = pair(&key());
    (&one).write_all(b"question").unwrap();
    one.shutdown(Shutdown::Write).unwrap();
    let mut text = String::new();
    (&other).read_to_string(&mut text).unwrap();
    assert_eq!(text, "question");
    assert_eq!((&one).write(b"more").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    write(&other, 5, 1_000_000).unwrap();
    other.close().unwrap();
    assert_eq!(read(&one, 5).unwrap(), 1_000_000);
    one.close().unwrap();
}

#[test]
fn what_was_written_arrives_after_the_stream_was_dropped() {
    let (one, other) = pair(&key());
    write(&one, 6, 100_000).unwrap();
    drop(one);
    assert_eq!(read(&other, 6).unwrap(), 100_000);
}

#[test]
fn an_abort_is_an_error_at_both_ends() {
    let (one, other) = pair(&key());
    (&one).write_all(b"the beginning of something").unwrap();
    one.abort();
    let error = read_to_error(&other);
    let expected = SessionError::Peer(EndReason::Aborted);
    assert_eq!(error.get_ref().unwrap().downcast_ref::<SessionError>(), Some(&expected));
    assert_eq!(other.close(), Err(expected));
}

#[test]
fn a_writer_that_panics_leaves_an_error_and_no_short_stream() {
    let (one, other) = pair(&key());
    let writer = thread::spawn(move || {
        (&one).write_all(b"the beginning of something").unwrap();
        std::panic::resume_unwind(Box::new("the writer has failed"));
    });
    let error = read_to_error(&other);
    let expected = SessionError::Peer(EndReason::Aborted);
    assert_eq!(error.get_ref().unwrap().downcast_ref::<SessionError>(), Some(&expected));
    writer.join().unwrap_err();
}

#[test]
fn a_stream_that_cannot_be_turned_leaves_an_error_and_no_short_stream() {
    let (one, other) = pair(&key());
    write(&one, 12, 1000).unwrap();
    // There is no tokio runtime here.
    let turned = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| one.into_async()));
    assert!(turned.is_err());
    let error = read_to_error(&other);
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
}

#[test]
fn a_peer_that_closes_without_reading_ends_the_session() {
    let (one, other) = pair(&key());
    (&one).write_all(b"never read").unwrap();
    // It is in the application's socket when it can be read.
    other.set_read_timeout(Some(LIMIT)).unwrap();
    (&other).read_exact(&mut [0; 1]).unwrap();
    drop(other);
    let error = read_to_error(&one);
    let expected = SessionError::Peer(EndReason::Aborted);
    assert_eq!(error.get_ref().unwrap().downcast_ref::<SessionError>(), Some(&expected));
}

/// Reads until the error that must come.
#[test]
fn a_listener_takes_paths_to_all_of_its_addresses_in_both_families() {
    let addresses: Vec<SocketAddr> =
        ["127.0.0.1:0", "127.0.0.2:0", "[::1]:0"].map(|a| a.parse().unwrap()).to_vec();
    let listener = PsockListener::bind(&addresses, &key()).unwrap();
    let mut config = to(&listener.local_addresses(), &key());
    config.paths[1].local = Some("127.0.0.3".parse().unwrap());
    config.paths[0].local = Some("%lo".parse().unwrap());
    let one = PsockStream::connect(&config).unwrap();
    let (other, peer) = listener.accept().unwrap();
    assert_eq!(peer, other.peer());
    assert_eq!(one.local(), other.peer());
    wait_until("all paths", LIMIT, || {
        let counters = other.counters();
        counters.connections.iter().filter(|c| c.state == ConnectionState::Open).count() == 3
    })
    .unwrap();
    let path = |part: &str| {
        other.counters().connections.iter().any(|connection| connection.path.contains(part))
    };
    assert!(path("127.0.0.2>127.0.0.3:") && path("::1>[::1]:"), "{:?}", other.counters());
    assert_eq!(listener.counters().joined, 3);
    assert_eq!(listener.counters().opened, 1);
    drop(listener);
    write(&one, 8, 3_000_000).unwrap();
    one.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read(&other, 8).unwrap(), 3_000_000);
}

#[test]
fn paths_to_announced_addresses_are_made_when_that_is_wanted() {
    let addresses: Vec<SocketAddr> =
        ["127.0.0.1:0", "127.0.0.2:0", "[::1]:0"].map(|a| a.parse().unwrap()).to_vec();
    let listener = PsockListener::bind(&addresses, &key()).unwrap();
    let mut config = to(&listener.local_addresses()[..1], &key());
    config.follow_announced = true;
    let one = PsockStream::connect(&config).unwrap();
    wait_until("three paths", LIMIT, || {
        let counters = one.counters();
        counters.connections.iter().filter(|c| c.state == ConnectionState::Open).count() == 3
    })
    .unwrap();
    let paths: Vec<_> = one.counters().connections.into_iter().map(|c| c.path).collect();
    let bound: Vec<_> = listener.local_addresses().iter().map(ToString::to_string).collect();
    assert_eq!(paths, bound);
}

#[test]
fn a_slow_reader_holds_the_writer_back() {
    let config = psock::Config { window_bytes: 1 << 20, send_bytes: 1 << 20, ..key() };
    let (one, other) = pair(&config);
    // What fits into both ends' memory and sockets, and not a byte more.
    const MOST: u64 = 8 << 20;
    one.set_nonblocking(true).unwrap();
    let buffer = vec![0; 64 * 1024];
    let mut written = 0;
    let mut still = 0;
    wait_until("the writer to be held back", LIMIT, || {
        match (&one).write(&buffer) {
            Ok(count) => (written, still) = (written + count as u64, 0),
            Err(_) => still += 1,
        }
        still == 100 || written > MOST
    })
    .unwrap();
    assert!(written <= MOST, "{written} bytes were taken and none was read");
    one.set_nonblocking(false).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| one.shutdown(Shutdown::Write).unwrap());
        let mut rest = Vec::new();
        (&other).read_to_end(&mut rest).unwrap();
        assert_eq!(rest.len() as u64, written);
    });
}

#[test]
fn a_listener_that_waits_can_be_polled() {
    let listener = listen(&key());
    listener.set_nonblocking(true);
    assert!(matches!(listener.accept(), Err(psock::AcceptError::WouldBlock)));
    let _one = PsockStream::connect(&to(&listener.local_addresses(), &key())).unwrap();
    let mut accepted = None;
    wait_until("a session", LIMIT, || {
        accepted = listener.accept().ok();
        accepted.is_some()
    })
    .unwrap();
}

#[test]
fn sums_of_the_counters_are_the_streams() {
    let (one, other) = pair(&psock::Config { connections_per_path: 2, ..key() });
    write(&one, 9, 2_000_000).unwrap();
    one.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_up_to(&other, 9, u64::MAX).unwrap(), 2_000_000);
    other.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read(&one, 0).unwrap(), 0);
    let there = other.counters();
    assert_eq!(there.session.bytes_delivered, 2_000_000);
    let received: u64 = there.connections.iter().map(|c| c.bytes_received).sum();
    assert!(received >= 2_000_000);
    let here = one.counters();
    assert_eq!(here.session.bytes_given, 2_000_000);
    let sent: u64 = here.connections.iter().map(|c| c.bytes_sent).sum();
    let again: u64 = here.connections.iter().map(|c| c.blocks_retransmitted).sum();
    assert!(sent >= received && (again > 0 || sent == 2_000_000), "{here:?}");
}

#[test]
fn a_session_that_does_not_survive_without_a_path_lives_as_long_as_it_has_one() {
    let (one, other) = pair(&psock::Config { survive: std::time::Duration::ZERO, ..key() });
    write(&one, 1, 3_000_000).unwrap();
    one.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read(&other, 1).unwrap(), 3_000_000);
    other.close().unwrap();
    one.close().unwrap();
}
