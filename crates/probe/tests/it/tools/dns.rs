//! Questions to name servers on loopback.

use super::{anywhere, wait};
use probe::tools::{
    Refusal,
    dns::{Error, Settings, run},
};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

/// Answers each question over UDP with these messages, made from it, and over TCP with one; ends when
/// dropped.
struct Server {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

type Answers = fn(&[u8]) -> Vec<Vec<u8>>;

impl Server {
    fn start(over_udp: Answers, over_tcp: Answers) -> Self {
        // The same port for both.
        let (udp, tcp) = loop {
            let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
            if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()) {
                break (udp, tcp);
            }
        };
        let address = udp.local_addr().unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        udp.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let seen = Arc::clone(&ended);
        let first = std::thread::spawn(move || {
            let mut buffer = [0; 1500];
            while !seen.load(Ordering::Relaxed) {
                let Ok((length, client)) = udp.recv_from(&mut buffer) else { continue };
                for answer in over_udp(&buffer[..length]) {
                    udp.send_to(&answer, client).unwrap();
                }
            }
        });
        let seen = Arc::clone(&ended);
        let second = std::thread::spawn(move || {
            for client in tcp.incoming() {
                if seen.load(Ordering::Relaxed) {
                    return;
                }
                let mut client = client.unwrap();
                let mut length = [0; 2];
                client.read_exact(&mut length).unwrap();
                let mut question = vec![0; u16::from_be_bytes(length).into()];
                client.read_exact(&mut question).unwrap();
                for answer in over_tcp(&question) {
                    client.write_all(&(answer.len() as u16).to_be_bytes()).unwrap();
                    client.write_all(&answer).unwrap();
                }
            }
        });
        Self { address, ended, threads: vec![first, second] }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the second thread.
        let _ = std::net::TcpStream::connect(self.address);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The question turned round: answered, with these flags and so many addresses.
fn answer(question: &[u8], flags: [u8; 2], addresses: u16) -> Vec<u8> {
    // Without the OPT record of 11 bytes at its end.
    let mut bytes = question[..question.len() - 11].to_vec();
    bytes[2..4].copy_from_slice(&flags);
    bytes[6..8].copy_from_slice(&addresses.to_be_bytes());
    bytes[11] = 0;
    for last in 0..addresses {
        bytes.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, last as u8]);
    }
    bytes
}

fn settings() -> Settings {
    Settings { wait: Duration::from_secs(10), ..Settings::new("www.example.org".parse().unwrap()) }
}

#[test]
fn an_answer_is_taken_and_what_is_none_is_counted() {
    let server = Server::start(
        |question| {
            let mut other = answer(question, [0x81, 0x80], 1);
            other[0] ^= 1;
            let right = answer(question, [0x81, 0x80], 3);
            vec![b"garbage".to_vec(), other, question.to_vec(), right]
        },
        |_| vec![],
    );
    let context = anywhere();
    let dns = wait(run(server.address, &settings(), &context)).unwrap();
    assert_eq!((dns.code.as_str(), dns.answers), ("NOERROR", 3));
    assert!(dns.took_ns > 0);
    assert_eq!(context.counters.refused(Refusal::Dns), 3);
}

#[test]
fn an_answer_that_was_cut_is_asked_for_over_tcp() {
    let server = Server::start(
        |question| vec![answer(question, [0x83, 0x80], 0)],
        |question| vec![answer(question, [0x81, 0x80], 200)],
    );
    for tcp in [false, true] {
        let (settings, context) = (Settings { tcp, ..settings() }, anywhere());
        let dns = wait(run(server.address, &settings, &context)).unwrap();
        assert_eq!((dns.code.as_str(), dns.answers), ("NOERROR", 200));
    }
}

#[test]
fn errors_of_the_server_are_answers_and_silence_is_none() {
    let server = Server::start(|question| vec![answer(question, [0x81, 0x83], 0)], |_| vec![]);
    let context = anywhere();
    let dns = wait(run(server.address, &settings(), &context)).unwrap();
    assert_eq!((dns.code.as_str(), dns.answers), ("NXDOMAIN", 0));
    let server = Server::start(|_| vec![b"garbage".to_vec()], |_| vec![]);
    let settings = Settings { attempts: 2, wait: Duration::from_millis(300), ..settings() };
    let error = wait(run(server.address, &settings, &context)).unwrap_err();
    assert!(matches!(error, Error::Silent { .. }), "{error}");
    assert!((1..=2).contains(&context.counters.refused(Refusal::Dns)));
}
