//! Conversations with a station: what it answers to whom.

use super::*;
use crate::station::message::Grant;
use std::collections::BTreeSet;

const SECOND: u64 = 1_000_000_000;

fn config() -> Arc<Config> {
    let probe = toml::from_str(
        r#"
        [security]
        shared_key = "/k"
        [limit]
        requests = 20
        sessions = 2
        throughput = "2m"
        [[station]]
        name = "here"
        addresses = ["192.0.2.1"]
        [[station]]
        name = "there"
        addresses = ["192.0.2.2"]
        [[station]]
        name = "third"
        addresses = ["192.0.2.3"]
        may = ["delay"]
        "#,
    )
    .expect("it parses");
    Arc::new(Config { node: "here".into(), state: "/s".into(), probe })
}

/// Admission control, and what is sent to it.
struct Talk {
    admission: Admission,
    guest: Guest,
    now_ns: u64,
}

impl Talk {
    fn from(address: &str, name: &'static str) -> Self {
        let mut admission = Admission::new(config());
        let proof = Box::new(move |reported: &str| reported == name);
        let guest = admission.guest(address.parse().expect("an address"), proof);
        Self { admission, guest, now_ns: 0 }
    }

    /// One that has sent hello.
    fn with(address: &str, name: &'static str) -> Self {
        let mut talk = Self::from(address, name);
        let hello = format!(r#"{{"do":"hello","version":1,"name":"{name}","to":"here"}}"#);
        assert!(matches!(talk.say(&hello).0, Answer::Welcome { .. }));
        talk
    }

    fn say(&mut self, line: &str) -> (Answer, Option<Action>) {
        self.admission.answer(&mut self.guest, line.as_bytes(), self.now_ns)
    }

    fn reason(&mut self, line: &str) -> Option<Reason> {
        match self.say(line) {
            (Answer::Refused { reason, .. }, None) => Some(reason),
            (Answer::Refused { .. }, Some(action)) => panic!("{action:?} for what was refused"),
            _ => None,
        }
    }

    fn lease(&mut self, line: &str) -> u64 {
        match self.say(line).0 {
            Answer::Accepted { lease, .. } => lease,
            other => panic!("{other:?}"),
        }
    }
}

fn delay(from: &str, class: &str) -> String {
    format!(
        r#"{{"do":"delay","session":{{"from":"{from}","ssid":7,"rate":10,"duration_ms":60000,
        "authenticated":true}},"slot":{{"test":"t","class":"{class}","uses":[]}}}}"#
    )
}

const BULK: &str = r#"{"do":"throughput","test":{"transport":"tcp","duration_ms":10000,"bandwidth":null,
    "ipv6":false},"slot":{"test":"b","class":"background","uses":[]}}"#;

#[test]
fn who_is_not_known_gets_nothing() {
    for (address, proves, line, reason) in [
        ("192.0.2.2", "there", r#"{"do":"end","lease":1}"#, Reason::NoHello),
        ("192.0.2.2", "there", "{}", Reason::Malformed),
        ("192.0.2.2", "there", "\u{0}", Reason::Malformed),
        (
            "192.0.2.2",
            "there",
            r#"{"do":"hello","version":2,"name":"there","to":"here"}"#,
            Reason::Version,
        ),
        (
            "192.0.2.2",
            "there",
            r#"{"do":"hello","version":1,"name":"there","to":"third"}"#,
            Reason::UnknownPeer,
        ),
        (
            "192.0.2.2",
            "third",
            r#"{"do":"hello","version":1,"name":"there","to":"here"}"#,
            Reason::UnknownPeer,
        ),
        (
            "192.0.2.3",
            "there",
            r#"{"do":"hello","version":1,"name":"there","to":"here"}"#,
            Reason::UnknownPeer,
        ),
        (
            "192.0.2.1",
            "here",
            r#"{"do":"hello","version":1,"name":"here","to":"here"}"#,
            Reason::UnknownPeer,
        ),
        (
            "192.0.2.2",
            "there",
            r#"{"do":"hello","version":1,"name":"there","to":"here","more":1}"#,
            Reason::Malformed,
        ),
    ] {
        let mut talk = Talk::from(address, proves);
        assert_eq!(talk.reason(line), Some(reason), "{line}");
        assert!(reason.ends());
        assert_eq!(talk.admission.counts().refused, BTreeMap::from([(reason, 1)]));
        assert_eq!(talk.admission.reservations().entries().count(), 0);
    }
}

#[test]
fn a_session_is_agreed_renewed_and_ended() {
    let mut talk = Talk::with("192.0.2.2", "there");
    let (answer, action) = talk.say(&delay("192.0.2.2:5000", "background"));
    let Answer::Accepted { lease, duration_ms: 60_000, grant: None } = answer else {
        panic!("{answer:?}")
    };
    let Some(Action::Reflect { peer, session, .. }) = action else { panic!("{action:?}") };
    assert_eq!((peer.as_str(), session.ssid, session.authenticated), ("there", 7, true));
    talk.now_ns = 59 * SECOND;
    let renew = format!(r#"{{"do":"renew","lease":{lease},"duration_ms":60000}}"#);
    assert_eq!(talk.reason(&renew), None);
    assert_eq!(talk.admission.expire(60 * SECOND), []);
    let end = format!(r#"{{"do":"end","lease":{lease}}}"#);
    assert_eq!(talk.say(&end), (Answer::Done {}, Some(Action::End(vec![Lease(lease)]))));
    assert_eq!(talk.reason(&end), Some(Reason::NoLease));
    assert_eq!(talk.reason(&renew), Some(Reason::NoLease));
    assert_eq!(talk.admission.counts().accepted, BTreeMap::from([(Accepted::Delay, 1)]));
    assert_eq!(talk.admission.counts().requests, 6);
}

#[test]
fn an_address_of_another_is_refused() {
    let mut talk = Talk::with("192.0.2.2", "there");
    for from in ["192.0.2.3:5000", "198.51.100.1:5000", "192.0.2.2:0"] {
        assert_eq!(talk.reason(&delay(from, "normal")), Some(Reason::Address));
    }
}

#[test]
fn there_are_bounds() {
    let mut talk = Talk::with("192.0.2.2", "there");
    for port in [5000, 5001] {
        talk.lease(&delay(&format!("192.0.2.2:{port}"), "background"));
    }
    let third = delay("192.0.2.2:5002", "background");
    assert_eq!(talk.reason(&third), Some(Reason::TooMany));
    assert_eq!(talk.admission.expire(60 * SECOND), [Lease(1), Lease(2)]);
    talk.lease(&third);
    for _ in 0..16 {
        assert_ne!(talk.reason(r#"{"do":"end","lease":99}"#), Some(Reason::Requests));
    }
    assert_eq!(talk.reason(r#"{"do":"end","lease":99}"#), Some(Reason::Requests));
    let mut third = Talk::with("192.0.2.3", "third");
    assert_eq!(third.reason(BULK), Some(Reason::NotPermitted));
    assert_eq!(third.reason(&BULK.replace("10000", "60001")), Some(Reason::NotPermitted));
    let mut talk = Talk::with("192.0.2.2", "there");
    assert_eq!(talk.reason(&BULK.replace("10000", "60001")), Some(Reason::TooLongTest));
    assert_eq!(talk.reason(&BULK.replace("null", "1001")), Some(Reason::TooFast));
}

#[test]
fn what_disturbs_waits_whatever_the_other_side_calls_it() {
    let mut talk = Talk::with("192.0.2.2", "there");
    let bulk = talk.lease(BULK);
    let (answer, action) = talk.say(&delay("192.0.2.2:5000", "normal"));
    let Answer::Refused { reason: Reason::Busy, retry_ms: Some(15_000), .. } = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(action, None);
    assert_eq!(talk.reason(&delay("192.0.2.2:5000", "background")), None, "it sees the load");
    assert_eq!(talk.reason(BULK), Some(Reason::Busy));
    assert_eq!(
        talk.reason(&format!(r#"{{"do":"renew","lease":{bulk},"duration_ms":1}}"#)),
        Some(Reason::NotPermitted)
    );
    // A test of this station itself keeps apart too.
    let slot = Slot { test: "own".into(), class: Class::Normal, uses: BTreeSet::new() };
    assert!(talk.admission.own(slot.clone(), 5, 0).is_ok(), "it shares nothing");
    let shares = Slot { uses: BTreeSet::from([Used::Station("here".into())]), ..slot };
    assert_eq!(talk.admission.own(shares.clone(), 5, 0), Err(Busy { until_ns: 15 * SECOND }));
    talk.say(&format!(r#"{{"do":"end","lease":{bulk}}}"#));
    let own = talk.admission.own(shares, 5, 0).expect("free");
    assert_eq!(talk.reason(BULK), Some(Reason::Busy));
    talk.admission.end_own(own);
    talk.say(r#"{"do":"end","lease":2}"#);
    assert_eq!(talk.reason(BULK), None);
}

#[test]
fn what_was_agreed_ends_with_the_connection() {
    let mut talk = Talk::with("192.0.2.2", "there");
    let lease = talk.lease(&delay("192.0.2.2:5000", "background"));
    let proof = Box::new(|name: &str| name == "there");
    let mut other = talk.admission.guest("192.0.2.2".parse().expect("an address"), proof);
    let hello = br#"{"do":"hello","version":1,"name":"there","to":"here"}"#;
    talk.admission.answer(&mut other, hello, 0);
    let end = format!(r#"{{"do":"end","lease":{lease}}}"#);
    let (answer, _) = talk.admission.answer(&mut other, end.as_bytes(), 0);
    assert!(matches!(answer, Answer::Refused { reason: Reason::NoLease, .. }), "not its own");
    assert_eq!(talk.admission.gone(&other), []);
    assert_eq!(talk.admission.gone(&talk.guest), [Lease(lease)]);
}

#[test]
fn what_cannot_be_done_is_taken_back() {
    let mut talk = Talk::with("192.0.2.2", "there");
    let lease = talk.lease(BULK);
    let answer = talk.admission.impossible(&talk.guest, Lease(lease), "no iperf3 here".into());
    assert!(matches!(answer, Answer::Refused { reason: Reason::Impossible, .. }));
    assert_eq!(talk.admission.counts().accepted, BTreeMap::from([(Accepted::Throughput, 0)]));
    assert_eq!(talk.reason(BULK), None, "its slot is free again");
}

#[test]
fn throughput_tests_of_a_station_take_so_much_of_an_hour() {
    let mut talk = Talk::with("192.0.2.2", "there");
    let minute = BULK.replace("10000", "60000");
    for other in [Reason::Busy, Reason::TooMany] {
        let lease = talk.lease(&minute);
        // What is refused for another reason takes nothing.
        assert_eq!(talk.reason(&minute), Some(other));
        assert_eq!(talk.reason(&format!(r#"{{"do":"end","lease":{lease}}}"#)), None);
        talk.now_ns += SECOND;
    }
    assert_eq!(talk.reason(&minute), Some(Reason::TooMany));
    // Half of the time comes back in half an hour.
    talk.now_ns = 1790 * SECOND;
    assert_eq!(talk.reason(&minute), Some(Reason::TooMany));
    talk.now_ns = 1810 * SECOND;
    assert_eq!(talk.reason(&minute), None);
}

#[test]
fn a_station_that_left_the_mesh_gets_nothing_more() {
    let mut talk = Talk::with("192.0.2.2", "there");
    let mut config = Config::clone(&config());
    config.probe.stations.retain(|station| station.name != "there");
    talk.admission.configure(Arc::new(config));
    assert_eq!(talk.reason(&delay("192.0.2.2:5000", "normal")), Some(Reason::UnknownPeer));
}

#[test]
fn answers_read_back_as_written() {
    for answer in [
        Answer::Done {},
        Answer::Accepted {
            lease: 3,
            duration_ms: 9,
            grant: Some(Grant::Delay { to: "192.0.2.1:862".parse().expect("it"), key: None }),
        },
        Answer::Refused { reason: Reason::Busy, text: "x".into(), retry_ms: Some(4) },
    ] {
        let line = crate::station::message::line(&answer);
        assert_eq!(line.last(), Some(&b'\n'));
        assert_eq!(serde_json::from_slice::<Answer>(&line).expect("it parses"), answer);
    }
    for reason in Reason::ALL {
        let text = serde_json::to_string(&reason).expect("it serializes");
        assert_eq!(text, format!("\"{}\"", reason.word()));
    }
}

fn slot(class: &str, uses: &str) -> String {
    format!(
        r#"{{"do":"slot","duration_ms":300000,"slot":{{"test":"s","class":"{class}","uses":[{uses}]}}}}"#
    )
}

#[test]
fn slots_are_for_who_may_so_many_and_for_what_is_between_both() {
    let mut third = Talk::with("192.0.2.3", "third");
    assert_eq!(third.reason(&slot("normal", "")), Some(Reason::NotPermitted), "only delay");
    let mut talk = Talk::with("192.0.2.2", "there");
    let other = r#"{"station":"third"},{"link":"all"}"#;
    for _ in 0..2 {
        talk.lease(&slot("exclusive", other));
    }
    assert_eq!(talk.reason(&slot("normal", "")), Some(Reason::TooMany));
    // It keeps away no more than a ping does, and nobody from a third station.
    let ends = ["there", "here"].map(|name| Used::Station(name.into()));
    for (_, entry) in talk.admission.reservations().entries() {
        assert_eq!((entry.slot.class, &entry.slot.uses), (Class::Normal, &ends.clone().into()));
    }
    assert_eq!(talk.reason(&delay("192.0.2.2:5000", "normal")), None);
    assert_eq!(talk.reason(BULK), Some(Reason::Busy));
}

#[test]
fn only_what_keeps_nobody_away_is_renewed_and_only_by_who_may() {
    let mut talk = Talk::with("192.0.2.2", "there");
    let renew = |lease| format!(r#"{{"do":"renew","lease":{lease},"duration_ms":60000}}"#);
    let normal = talk.lease(&delay("192.0.2.2:5000", "exclusive"));
    assert_eq!(talk.reason(&renew(normal)), Some(Reason::NotPermitted));
    let endless = talk.lease(&delay("192.0.2.2:5001", "background"));
    assert_eq!(talk.reason(&renew(endless)), None);
    let mut config = Config::clone(&config());
    config.probe.stations[1].may.clear();
    talk.admission.configure(Arc::new(config));
    assert_eq!(talk.reason(&renew(endless)), Some(Reason::NotPermitted));
}
