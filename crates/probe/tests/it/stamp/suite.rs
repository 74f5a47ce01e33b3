//! stamp-suite 1.0.0, another implementation of STAMP, as reflector and as sender in both modes.

use super::{TIMEOUT, reflected, session, start};
use probe::{
    delay::{Config, News},
    stamp::{
        Key,
        sender::{Event, Sample, Settings},
        tlv::Ask,
    },
};
use serde_json::Value;
use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    process::{Child, Command, Stdio},
};
use testbed::wait_until;

const SECRET: [u8; 16] = *b"sixteen bytes...";

/// What stamp-suite needs for a mode.
fn mode(keyed: bool) -> Vec<String> {
    let digits = config::hex::encode(&SECRET);
    let words = if keyed { vec!["-A", "A", "--hmac-key", &digits] } else { vec!["-A", "O"] };
    words.into_iter().map(str::to_owned).collect()
}

fn suite(words: &[&str], keyed: bool) -> Command {
    let mut command = Command::new("stamp-suite");
    command.args(["-S", "127.0.0.1"]).args(words).args(mode(keyed)).stderr(Stdio::null());
    command
}

/// The reflector, which ends when this is dropped.
struct Reflector(Child);

impl Drop for Reflector {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn stamp_suite_reflects_what_we_send() {
    for keyed in [false, true] {
        // A port that was just free.
        let port = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let words = ["-i", "-o", &port.to_string(), "--stateful-reflector"];
        let child = suite(&words, keyed).stdout(Stdio::null()).spawn();
        let _reflector = Reflector(child.expect("stamp-suite, which `scripts/setup test` builds"));
        let to = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
        let sender = "127.0.0.1:0".parse().unwrap();
        let (ours, reported) = start(&Config { sender, reflector: None, ..Config::default() });
        ours.permit(to);
        let key = keyed.then(|| Key::new(&SECRET).unwrap());
        let ask = Ask {
            class_of_service: true,
            timestamp_information: true,
            direct_measurement: true,
            follow_up: false,
        };
        let settings = Settings {
            ssid: 0x1234,
            ssid_needed: true,
            key,
            ask,
            dscp: 10,
            length: 300,
            ..Settings::default()
        };
        // Until it listens, packets are lost.
        let id = ours.open(super::Session { count: None, ..session(to, settings) });
        let samples = || -> Vec<Sample> {
            let reported = reported.0.lock().unwrap();
            let mine = reported.iter().filter(|one| one.0 == id);
            let sample = |one: &(_, News)| match one.1 {
                News::Packet(Event::Arrived(sample)) => Some(sample),
                _ => None,
            };
            mine.filter_map(sample).collect()
        };
        wait_until("ten replies", TIMEOUT, || samples().len() >= 10).unwrap();
        for sample in samples() {
            assert_eq!((sample.ttl, sample.traffic_class), (255, Some(10 << 2)), "{keyed}");
            // It does not say that its clock is synchronised.
            let forward = sample.forward.unwrap();
            assert!(forward.estimate_ns > 0 && forward.low_ns.is_none());
            assert!(sample.round_trip.low_ns.is_some());
        }
        assert_eq!(ours.counters().refused.total(), 0, "{keyed}");
    }
}

#[test]
fn stamp_suite_is_answered_as_it_expects() {
    for keyed in [false, true] {
        let address = "127.0.0.1:0".parse().unwrap();
        let config = Config { sender: address, reflector: Some(address), ..Config::default() };
        let (theirs, _) = start(&config);
        let key = keyed.then(|| Key::new(&SECRET).unwrap());
        theirs.admit(reflected(Ipv4Addr::LOCALHOST.into(), 7, key)).blocking_recv().unwrap();
        wait_until("the session", TIMEOUT, || theirs.counters().reflector_sessions == 1).unwrap();
        let port = theirs.reflector_address().unwrap().port().to_string();
        let mut words = vec!["-r", "127.0.0.1", "-p", &port, "-c", "10", "-d", "20ms", "-L", "30"];
        words.extend(["--ssid", "7", "--output-format", "json", "--on-zero-ssid", "stop"]);
        words.extend(["--follow-up-telemetry", "--direct-measurement"]);
        let output = suite(&words, keyed).output();
        let output = output.expect("stamp-suite, which `scripts/setup test` builds");
        let text = String::from_utf8(output.stdout).unwrap();
        let all: Value = serde_json::from_str(text.lines().last().expect("a summary")).unwrap();
        assert_eq!((&all["packets_sent"], &all["packets_lost"]), (&10.into(), &0.into()), "{all}");
        let reported = &all["measurements"];
        for wrong in ["duplicate_replies", "unknown_replies", "reordered_replies"] {
            assert_eq!(reported[wrong], 0, "{wrong}: {all}");
        }
        assert_eq!(reported["last_reflector_sequence"], 9, "{all}");
        assert_eq!(reported["tlv_validation"]["rejected_replies"], 0, "{all}");
        for flag in ["unrecognized", "malformed", "integrity_failed"] {
            assert_eq!(reported["tlv_validation"]["flags"][flag], 0, "{flag}: {all}");
        }
        assert_eq!(reported["direct_measurement"]["forward_missing"], 0, "{all}");
        assert!(reported["follow_up"]["matched"].as_u64() > Some(0), "{all}");
        assert_eq!(all["owd"]["clock_quality"]["last_reflector"]["synchronized"], true, "{all}");
        assert_eq!(theirs.counters().reflector_refused.total(), 0, "{keyed}");
    }
}
