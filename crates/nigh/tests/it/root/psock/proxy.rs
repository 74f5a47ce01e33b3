//! `nigh psock proxy` at both ends, with programs that know TCP only.

use super::stage::{LIMIT, LISTEN, PATHS, Stage, noise};
use serde_json::Value;
use std::{
    fs,
    io::{self, ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
};
use testbed::{Process, wait_until};

/// Forwarders from 127.0.0.1:8080 at `left` to 127.0.0.1:80 at `right`: the near and the far one.
fn forwarders(stage: &Stage, more: &[&str]) -> (Process, Process) {
    let key = stage.file("key");
    let more = [&["--key", &key, "--json"], more].concat();
    let far = stage.spawn("right", &[&["proxy", "--to", "127.0.0.1:80"], &more, &LISTEN]);
    stage.listening("right", 7000);
    let near = stage.spawn("left", &[&["proxy", "--from", "127.0.0.1:8080"], &more, &PATHS]);
    stage.listening("left", 8080);
    (near, far)
}

/// A client at `left` and its server at `right`, through the forwarders.
fn connected(stage: &Stage, server: &TcpListener) -> (TcpStream, TcpStream) {
    let client = stage.lab.enter("left", || TcpStream::connect("127.0.0.1:8080")).unwrap().unwrap();
    let (served, _) = server.accept().unwrap();
    for socket in [&client, &served] {
        socket.set_read_timeout(Some(LIMIT)).unwrap();
    }
    (client, served)
}

fn server(stage: &Stage) -> TcpListener {
    stage.lab.enter("right", || TcpListener::bind("127.0.0.1:80")).unwrap().unwrap()
}

/// Reads to the error that must come instead of an end.
fn reads_to_a_reset(mut socket: &TcpStream) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => panic!("a stream that was cut looks whole"),
            Ok(_) => {}
            Err(error) => return assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
}

/// Writes until the peer closes.
fn write_until_refused(mut socket: TcpStream) {
    let chunk = vec![7; 64 << 10];
    while socket.write_all(&chunk).is_ok() {}
}

#[test]
fn pages_cross_both_forwarders() {
    let stage = Stage::new();
    let page = noise(6_000_000);
    fs::write(stage.path("page"), &page).unwrap();
    let folder = stage.file("");
    let words = ["python3", "-m", "http.server", "-b", "127.0.0.1", "-d", &folder, "80"];
    let _server = stage.lab.spawn("right", &words).unwrap();
    stage.listening("right", 80);
    let (near, far) = forwarders(&stage, &[]);
    let copy = stage.file("copy");
    for _ in 0..2 {
        stage
            .lab
            .check("left", &["curl", "-sS", "-o", &copy, "http://127.0.0.1:8080/page"])
            .unwrap();
        assert!(fs::read(&copy).unwrap() == page, "not the same bytes");
    }
    let words = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}"];
    let words = [&words[..], &["http://127.0.0.1:8080/nothing"]].concat();
    assert_eq!(stage.lab.check("left", &words).unwrap(), "404");
    // Each connection was a session that ended well.
    for forwarder in [&near, &far] {
        wait_until("three lines", LIMIT, || forwarder.stdout().lines().count() == 3).unwrap();
    }
    let lines = far.stdout();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    for line in lines {
        assert!(line["error"].is_null(), "{line:#}");
        assert!(line["client"].as_str().unwrap().starts_with("10.1."), "{line:#}");
        let connections = line["counters"]["connections"].as_array().unwrap();
        let sent = connections.iter().map(|one| one["bytes_acknowledged"].as_u64().unwrap());
        assert!(sent.sum::<u64>() > 100, "{line:#}");
    }
}

#[test]
fn a_forwarder_that_is_killed_resets_its_clients() {
    let stage = Stage::new();
    let server = server(&stage);
    let (mut near, _far) = forwarders(&stage, &["--survive", "2s"]);
    let (client, served) = connected(&stage, &server);
    // One that waits for an answer, and one in the middle of one.
    let (waiting, _quiet) = connected(&stage, &server);
    let writer = thread::spawn(move || write_until_refused(served));
    (&client).read_exact(&mut vec![0; 1_000_000]).unwrap();
    near.kill();
    reads_to_a_reset(&client);
    reads_to_a_reset(&waiting);
    // The far one gives the session up, and the server sees that its client is gone.
    writer.join().unwrap();
}

#[test]
fn a_far_forwarder_that_is_killed_resets_clients_too() {
    let stage = Stage::new();
    let server = server(&stage);
    let (_near, mut far) = forwarders(&stage, &["--survive", "2s"]);
    let (client, served) = connected(&stage, &server);
    let writer = thread::spawn(move || write_until_refused(served));
    (&client).read_exact(&mut vec![0; 1_000_000]).unwrap();
    far.kill();
    reads_to_a_reset(&client);
    writer.join().unwrap();
}

#[test]
fn clients_are_reset_where_nobody_serves() {
    let stage = Stage::new();
    let (near, far) = forwarders(&stage, &["--connect-timeout", "2s"]);
    let reset = || {
        let connect = || TcpStream::connect("127.0.0.1:8080");
        let client = stage.lab.enter("left", connect).unwrap().unwrap();
        client.set_read_timeout(Some(LIMIT)).unwrap();
        reads_to_a_reset(&client);
    };
    // There is a forwarder, but no server behind it.
    reset();
    let logs = |process: &Process, text: &str| {
        wait_until(text, LIMIT, || process.stderr().contains(text)).unwrap();
    };
    logs(&far, "connecting to 127.0.0.1:80: ");
    // There is no forwarder either.
    drop(far);
    reset();
    logs(&near, "no path works; ");
}

/// What a half-closed connection needs: the request ends, then the answer comes, then it ends.
#[test]
fn half_closed_connections_go_on() -> io::Result<()> {
    let stage = Stage::new();
    let server = server(&stage);
    let _both = forwarders(&stage, &[]);
    let (mut client, mut served) = connected(&stage, &server);
    let (request, answer) = (noise(300_000), noise(700_000));
    client.write_all(&request)?;
    client.shutdown(std::net::Shutdown::Write)?;
    let mut got = Vec::new();
    served.read_to_end(&mut got)?;
    assert!(got == request, "{} bytes", got.len());
    served.write_all(&answer)?;
    drop(served);
    got.clear();
    client.read_to_end(&mut got)?;
    assert!(got == answer, "{} bytes", got.len());
    Ok(())
}
