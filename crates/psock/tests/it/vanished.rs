//! Peers that end or are killed: the streams stay exact, or end with an error.

use crate::common::{
    LIMIT, key, listen, read, read_to_error, read_up_to, session_error, to, write,
};
use psock::{Config, PsockStream, SessionError};
use std::{net::Shutdown, time::Duration};
use testbed::Process;

/// What the test below starts as a process of its own: it writes until it is killed.
#[test]
#[ignore = "another test starts it"]
fn a_process_that_writes_until_it_is_killed() {
    let address = std::env::var("PSOCK_TEST_WRITE_TO").unwrap();
    let stream = PsockStream::connect(&to(&[address.parse().unwrap()], &key())).unwrap();
    write(&stream, 1, u64::MAX).unwrap();
}

/// What the test below starts as a process of its own: it sends a stream, closes it, and ends.
#[test]
#[ignore = "another test starts it"]
fn a_process_that_sends_and_ends() {
    let address = std::env::var("PSOCK_TEST_SEND_TO").unwrap();
    let stream = PsockStream::connect(&to(&[address.parse().unwrap()], &key())).unwrap();
    write(&stream, 1, 100_000).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read(&stream, 2).unwrap(), 0);
    stream.close().unwrap();
    std::process::exit(0);
}

#[test]
fn a_process_may_end_when_it_has_closed_its_stream() {
    let listener = listen(&key());
    for _ in 0..20 {
        let mut command = testbed::itself(module_path!(), "a_process_that_sends_and_ends");
        command.env("PSOCK_TEST_SEND_TO", listener.local_addresses()[0].to_string());
        let peer = Process::start(command).unwrap();
        let (stream, _) = listener.accept().unwrap();
        assert_eq!(read(&stream, 1).unwrap(), 100_000);
        stream.close().unwrap();
        assert!(peer.finish(LIMIT).unwrap().success());
    }
}

#[test]
fn a_peer_that_is_killed_leaves_an_error_and_no_short_stream() {
    let config = Config { survive: Duration::from_secs(10), ..key() };
    let listener = listen(&config);
    let mut command = testbed::itself(module_path!(), "a_process_that_writes_until_it_is_killed");
    command.env("PSOCK_TEST_WRITE_TO", listener.local_addresses()[0].to_string());
    let mut peer = Process::start(command).unwrap();
    let (stream, _) = listener.accept().unwrap();
    assert_eq!(read_up_to(&stream, 1, 1_000_000).unwrap(), 1_000_000);
    peer.kill();
    let error = read_to_error(&stream);
    assert!(matches!(session_error(&error), Some(SessionError::AllPathsDead(_))), "{error}");
}
