//! Neighbours that do not behave: the session never hangs, grows or fails to stop.

use super::common::{ANNOUNCED, LIMIT, Node, Pair, session};
use bgp::{Desired, State};
use std::{
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};
use testbed::wait_until;

/// An OPEN of AS 4, hold time 90 s, IPv4 only and two octets; a KEEPALIVE behind it.
const HANDSHAKE: [u8; 48] = {
    let mut bytes = [0xff; 48];
    let open = [0, 29, 1, 4, 0, 4, 0, 90, 172, 16, 0, 29, 0];
    let keepalive = [0, 19, 4];
    let mut position = 0;
    while position < open.len() {
        bytes[16 + position] = open[position];
        position += 1;
    }
    position = 0;
    while position < keepalive.len() {
        bytes[45 + position] = keepalive[position];
        position += 1;
    }
    bytes
};

/// The longest UPDATE there is, full of withdrawals.
fn longest_update() -> Vec<u8> {
    let mut bytes = vec![0xff; 16];
    bytes.extend([16, 0, 2]);
    bytes.extend(4073u16.to_be_bytes());
    bytes.resize(4094, 0);
    bytes.extend([0, 0]);
    bytes
}

/// Memory of this process that is in RAM, in kilobytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Waits for the node's connection, for a limited time.
fn accept(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).unwrap();
    let mut stream = None;
    wait_until("a connection", LIMIT, || match listener.accept() {
        Ok((accepted, _)) => {
            stream = Some(accepted);
            true
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            false
        }
    })
    .unwrap();
    let stream = stream.unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    stream
}

/// A node, and its neighbour's end of the connection.
fn connect(pair: &Pair) -> (Node, TcpStream) {
    let listener = pair.router.enter(|| TcpListener::bind("172.16.0.29:179")).unwrap();
    let node = pair.start(&session(""));
    (node, accept(&listener))
}

#[test]
fn a_neighbour_that_floods_and_never_reads_takes_no_memory_and_no_stop() {
    flood(5_000);
}

#[test]
fn soak_a_neighbour_that_floods_with_80_megabytes_takes_no_memory_and_no_stop() {
    flood(20_000);
}

/// So many of the longest UPDATEs, each of 4 kilobytes.
fn flood(updates: u64) {
    let pair = Pair::new();
    let (node, mut stream) = connect(&pair);
    stream.write_all(&HANDSHAKE).unwrap();
    node.until("an established session", |seen| seen.state == State::Established);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let flood = longest_update().repeat(64);
            let mut begin = 0;
            while !done.load(Ordering::Relaxed) {
                // What was written partly goes on where it stopped.
                match stream.write(&flood[begin..]) {
                    Ok(count) => begin = (begin + count) % flood.len(),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        });
        node.until("the flood's beginning", |seen| seen.counters.updates_discarded > 1_000);
        let before = resident();
        // Orders are carried out all the while.
        let mut desired = ANNOUNCED;
        let enough = node.announcer().observed().counters.updates_discarded + updates;
        node.until("the rest of the flood", |seen| {
            node.announcer().set(desired);
            desired = if desired == ANNOUNCED { Desired::Withdrawn } else { ANNOUNCED };
            seen.counters.updates_discarded > enough && seen.counters.updates_out > 10
        });
        let grown = resident().saturating_sub(before);
        assert!(grown < 8_192, "{grown} kB more after {updates} UPDATEs");
        assert_eq!(node.announcer().observed().state, State::Established);
        assert!(node.announcer().observed().counters.updates_out > 10);
        let begin = Instant::now();
        node.stop();
        let time = begin.elapsed();
        done.store(true, Ordering::Relaxed);
        println!("{grown} kB more; stopped in {time:?}");
        assert!(time < LIMIT, "{time:?}");
    });
}

#[test]
fn a_neighbour_that_says_nothing_does_not_hold_up_a_stop() {
    let pair = Pair::new();
    let (node, mut stream) = connect(&pair);
    node.until("OPEN sent", |seen| seen.state == State::OpenSent);
    let begin = Instant::now();
    node.stop();
    assert!(begin.elapsed() < LIMIT, "{:?}", begin.elapsed());
    // It got our OPEN and, behind it, the reason for the end (RFC 9003).
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    assert_eq!((bytes[18], bytes[51 + 18]), (1, 3));
    assert!(bytes.ends_with(b"nigh is stopping"), "{bytes:?}");
}

#[test]
fn a_neighbour_that_is_no_router_gets_the_reason() {
    let pair = Pair::new();
    let (node, mut stream) = connect(&pair);
    stream.write_all(b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n").unwrap();
    node.until("the refusal", |seen| {
        seen.problem.as_ref().is_some_and(|problem| {
            problem.contains("Message Header Error / Connection Not Synchronized (1/1)")
        })
    });
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    assert!(bytes.ends_with(&[0, 21, 3, 1, 1]), "{bytes:?}");
}
