//! Sessions joined with sockets of the process: what the sockets' other ends see.

use crate::common::{pair, plain};
use psock::splice;
use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    thread,
};

/// Both ends of a TCP connection.
fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (one, listener.accept().unwrap().0)
}

#[test]
fn two_splices_carry_a_connection_with_its_half_close() {
    let (one, other) = pair(&plain());
    let ((client, here), (there, server)) = (sockets(), sockets());
    let here = splice(one, here.into()).unwrap();
    let there = splice(other, there.into()).unwrap();
    let echo = thread::spawn(move || {
        let mut text = Vec::new();
        (&server).read_to_end(&mut text).unwrap();
        (&server).write_all(&text).unwrap();
    });
    let mut sent = vec![0; 1_000_000];
    crate::common::fill(1, 0, &mut sent);
    let mut back = Vec::new();
    (&client).write_all(&sent).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    (&client).read_to_end(&mut back).unwrap();
    assert!(back == sent, "{} of {} bytes came back", back.len(), sent.len());
    echo.join().unwrap();
    here.wait().unwrap();
    there.wait().unwrap();
}

#[test]
fn a_session_that_breaks_resets_the_socket() {
    let (one, other) = pair(&plain());
    let (client, here) = sockets();
    let here = splice(one, here.into()).unwrap();
    (&other).write_all(b"the beginning").unwrap();
    let mut text = [0; 13];
    (&client).read_exact(&mut text).unwrap();
    assert_eq!(&text, b"the beginning");
    other.abort();
    let error = (&client).read(&mut text).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    here.wait().unwrap_err();
}

#[test]
fn a_socket_that_is_reset_breaks_the_session() {
    let (one, other) = pair(&plain());
    let (client, here) = sockets();
    let here = splice(one, here.into()).unwrap();
    (&client).write_all(b"the beginning").unwrap();
    let mut text = [0; 13];
    (&other).read_exact(&mut text).unwrap();
    socket2::SockRef::from(&client).set_linger(Some(std::time::Duration::ZERO)).unwrap();
    drop(client);
    (&other).read(&mut text).unwrap_err();
    here.wait().unwrap_err();
}

#[test]
fn what_is_no_socket_breaks_the_session() {
    let (one, other) = pair(&plain());
    splice(one, std::fs::File::open("/dev/null").unwrap().into()).unwrap_err();
    // It must not look like a stream without bytes.
    (&other).read(&mut [0; 1]).unwrap_err();
}
