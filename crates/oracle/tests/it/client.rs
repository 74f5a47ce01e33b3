//! The clients against servers on loopback that answer, lose and refuse on purpose.

use clap::Parser;
use oracle::{
    client::{ClientError, Command, flood, load},
    proxidor::{Header, Rcode, message},
};
use std::{
    net::UdpSocket,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::Duration,
};

/// `oracle ...` as on a command line.
#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

fn line(words: &str) -> Command {
    Line::parse_from(std::iter::once("oracle").chain(words.split(' '))).command
}

fn load_of(words: &str) -> Result<load::Report, ClientError> {
    match line(words) {
        Command::Load(args) => load::load(&args),
        other => panic!("{other:?}"),
    }
}

/// A server that answers what a function returns; it ends when it is dropped.
struct Server {
    port: u16,
    seen: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(answer: impl Fn(u64, &Header) -> Option<Rcode> + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (port, seen) = (socket.local_addr().unwrap().port(), Arc::new(AtomicU64::new(0)));
        let count = Arc::clone(&seen);
        let thread = std::thread::spawn(move || {
            let (mut buffer, mut reply) = ([0; 2048], Vec::new());
            loop {
                let (bytes, client) = socket.recv_from(&mut buffer).unwrap();
                if bytes == 0 {
                    return;
                }
                let request = message::Request::parse(&buffer[..bytes]).unwrap();
                let number = count.fetch_add(1, Relaxed);
                let Some(rcode) = answer(number, &request.header) else { continue };
                if rcode.has_ranking() {
                    message::begin_reply(&mut reply, &request.header, 1, 60);
                    let kind = request.lists.only().unwrap();
                    message::push_one_list(&mut reply, kind, &request.lists);
                } else {
                    reply = Header::reply(request.header.identification, rcode, 1).emit().to_vec();
                }
                socket.send_to(&reply, client).unwrap();
            }
        });
        Self { port, seen, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An empty datagram ends it.
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(&[], ("127.0.0.1", self.port)).unwrap();
        self.thread.take().map(JoinHandle::join);
    }
}

#[test]
fn every_request_of_every_client_is_accounted_for() {
    let server = Server::start(|number, _| match number % 10 {
        0 => None,
        1 => Some(Rcode::BUSY),
        _ => Some(Rcode::NO_ERROR),
    });
    let port = server.port;
    let report =
        load_of(&format!("load --port {port} --clients 4 --count 25 --timeout 100ms --sync-start"))
            .unwrap();
    assert_eq!(report.clients.len(), 4);
    assert!(report.clients.iter().all(|client| client.sent == 25));
    let total = report.total;
    assert_eq!((total.sent, server.seen.load(Relaxed)), (100, 100));
    assert_eq!((total.replies, total.errors, total.lost), (80, 10, 10));
    assert!(total.rtt_ms.is_some());
    let text = report.to_string();
    assert!(text.contains("100 candidates a request") && text.contains("10.0% lost"), "{text}");
}

#[test]
fn the_first_to_finish_ends_all() {
    // Half of the requests are lost, so clients differ in how far they are.
    let server =
        Server::start(|_, header| (header.identification % 2 == 0).then_some(Rcode::NO_ERROR));
    let port = server.port;
    let report = load_of(&format!(
        "load --port {port} --clients 8 --count 20 --timeout 20ms --sync-start --sync-stop"
    ))
    .unwrap();
    assert!(report.clients.iter().any(|client| client.sent == 20));
    assert!(report.clients.iter().all(|client| client.sent <= 20));
}

#[test]
fn a_load_ends_when_its_time_is_over() {
    let server = Server::start(|_, _| Some(Rcode::NO_ERROR));
    let port = server.port;
    let report =
        load_of(&format!("load --port {port} --count 1000000000 --duration 100ms")).unwrap();
    assert!(report.total.sent < 1_000_000_000);
    assert_eq!(report.total.replies, report.total.sent);
}

#[test]
fn more_clients_than_are_shown() {
    let server = Server::start(|_, _| Some(Rcode::NO_ERROR));
    let port = server.port;
    let report = load_of(&format!("load --port {port} --clients 40 --count 2")).unwrap();
    assert_eq!(report.total.replies, 80);
    assert!(report.to_string().contains("... 24 more"), "{report}");
}

#[test]
fn load_and_flood_refuse_public_targets() {
    for words in ["load --server 8.8.8.8 --count 1", "flood --server 8.8.8.8 --duration 1ms"] {
        let error = oracle::client::run(&line(words)).unwrap_err();
        assert!(error.to_string().contains("--allow 8.8.8.8/32"), "{error}");
    }
}

#[test]
fn a_flood_keeps_its_rate_and_its_time() {
    let server = Server::start(|_, _| Some(Rcode::NO_ERROR));
    let words = format!("flood --port {} --rate 1000 --duration 300ms", server.port);
    let Command::Flood(args) = line(&words) else { panic!("{words}") };
    let report = flood::flood(&args).unwrap();
    assert_eq!(report.refused, 0);
    assert!((1..=301).contains(&report.sent), "{report}");
    testbed::wait_until("all requests", Duration::from_secs(5), || {
        server.seen.load(Relaxed) == report.sent
    })
    .unwrap();
}

#[test]
fn what_rank_says_without_a_ranking() {
    let silent = Server::start(|_, _| None);
    let words = format!("rank --port {} --timeout 10ms 192.0.2.1", silent.port);
    let error = oracle::client::run(&line(&words)).unwrap_err();
    assert!(matches!(error, ClientError::NoReply { tries: 3, .. }), "{error}");
    testbed::wait_until("three requests", Duration::from_secs(5), || {
        silent.seen.load(Relaxed) == 3
    })
    .unwrap();
    let refusing = Server::start(|_, _| Some(Rcode::REFUSED));
    let words = format!("rank --port {} 192.0.2.1", refusing.port);
    let error = oracle::client::run(&line(&words)).unwrap_err();
    assert!(error.to_string().contains("answers: refused: this client may not"), "{error}");
    let error = Line::try_parse_from(["oracle", "rank", "nonsense"]).err().unwrap();
    assert!(error.to_string().contains("neither an address nor a prefix"), "{error}");
}
