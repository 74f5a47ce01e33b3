//! Scapy's STAMP layer (2.5.0 of Debian 12 has it, for unauthenticated packets) as reflector and as sender.

use super::{TIMEOUT, reflected, session, start};
use probe::{
    delay::{Config, News},
    stamp::{
        sender::{Event, Peer, Settings},
        tlv::Ask,
    },
};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    net::{Ipv4Addr, SocketAddr},
    process::{Child, Command, Stdio},
};
use testbed::wait_until;

/// The Python program beside this file, which ends when this is dropped.
struct Scapy(Child);

impl Scapy {
    fn start(arguments: &[&str]) -> Self {
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/stamp/peer.py");
        // Debian's own, which has Debian's packages.
        let child = Command::new("/usr/bin/python3")
            .arg(program)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("/usr/bin/python3; `scripts/setup test` installs it with python3-scapy");
        Self(child)
    }

    fn lines(&mut self) -> impl Iterator<Item = String> {
        let output = self.0.stdout.take().expect("it is piped");
        BufReader::new(output).lines().map_while(Result::ok)
    }
}

impl Drop for Scapy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn scapy_reflects_what_we_send() {
    let mut scapy = Scapy::start(&["reflect"]);
    let port = scapy.lines().next().expect("python3-scapy, which `scripts/setup test` installs");
    let to = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port.parse().unwrap());
    let config =
        Config { sender: "127.0.0.1:0".parse().unwrap(), reflector: None, ..Config::default() };
    let (ours, reported) = start(&config);
    ours.permit(to);
    let settings = Settings {
        ssid: 0x1234,
        ssid_needed: true,
        peer: Peer::Stateful,
        ask: Ask::default(),
        length: 100,
        limit: TIMEOUT,
        ..Settings::default()
    };
    let mut session = session(to, settings);
    session.count = Some(5);
    let id = ours.open(session);
    // A minute is what an answer may take here; that all have come is seen before it is over.
    let arrived = || {
        let reported = reported.0.lock().unwrap();
        let arrived = |news: &News| matches!(news, News::Packet(Event::Arrived(_)));
        reported.iter().filter(|(one, news)| *one == id && arrived(news)).count() == 5
    };
    wait_until("five replies", TIMEOUT, arrived).unwrap();
    for (_, news) in reported.0.lock().unwrap().iter() {
        let News::Packet(Event::Arrived(sample)) = news else { continue };
        assert_eq!((sample.ttl, sample.reordered_forward), (63, Some(false)));
        let (forward, reverse) = (sample.forward.unwrap(), sample.reverse.unwrap());
        assert!(forward.estimate_ns > 0 && reverse.estimate_ns > 0, "{sample:?}");
        assert!(forward.width_ns().is_some());
    }
    assert_eq!(ours.counters().refused.total(), 0);
}

#[test]
fn scapy_is_answered_as_it_expects() {
    let reflector = Some("127.0.0.1:0".parse().unwrap());
    let config = Config { sender: "127.0.0.1:0".parse().unwrap(), reflector, ..Config::default() };
    let (theirs, _) = start(&config);
    theirs.admit(reflected(Ipv4Addr::LOCALHOST.into(), 0x4321, None)).blocking_recv().unwrap();
    wait_until("the session", TIMEOUT, || theirs.counters().reflector_sessions == 1).unwrap();
    let port = theirs.reflector_address().unwrap().port().to_string();
    let mut scapy = Scapy::start(&["send", &port, "17185"]);
    let replies: Vec<Value> =
        scapy.lines().map(|line| serde_json::from_str(&line).unwrap()).collect();
    assert_eq!(replies.len(), 3);
    for (number, reply) in replies.iter().enumerate() {
        let expected = json!({
            "length": [59, 59],
            "seq": number,
            "ssid": 0x4321,
            "seq_sender": number,
            "ts_sender": true,
            "ordered": true,
            // 250,000 ns, rounded up.
            "err_estimate": "8d84",
            "err_estimate_sender": "9409",
            "ttl_sender": 64,
            "mbz": [0, 0],
            "tlvs": [[0, 1, "abcde"], [0x80, 201, "xy"]],
        });
        assert_eq!(*reply, expected);
    }
    assert_eq!(theirs.counters().reflector_refused.total(), 0);
}
