//! The state machine without a network: every error's NOTIFICATION, the timers, and a neighbour in
//! memory that ends up with exactly the routes that it was to have.

mod model;

use crate::stream::split_all;
use bgp::{
    State,
    fsm::{Config, Effect, Event, Fsm, Purpose},
    message::{HEADER, Kind, notification::Notification, split},
    route::{Attributes, Routes},
    value::{Asn, Community},
};
use ipnet::IpNet;
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::{Duration, Instant},
};

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::new(172, 16, 0, 30));
const KEEPALIVE: &[u8] = &[4];

fn config() -> Config {
    Config {
        local_as: Asn(12),
        peer_as: Asn(4),
        router_id: None,
        next_hop4: None,
        next_hop6: Some("2001:db8:1::30".parse().unwrap()),
        hold_time: 9,
        purpose: Purpose::Announce,
    }
}

/// A machine with its clock, and what it has done to its connection.
struct Rig {
    fsm: Fsm,
    now: Instant,
}

/// A message: its type, then its body.
fn message(parts: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xff; 16];
    bytes.extend(u16::try_from(HEADER - 1 + parts.len()).unwrap().to_be_bytes());
    bytes.extend(parts);
    bytes
}

/// The neighbour's OPEN: AS 4, hold time 90 s, both families, four octets.
const OPEN: &[u8] = &[
    1, 4, 0, 4, 0, 90, 172, 16, 0, 29, 20, 2, 18, 1, 4, 0, 1, 0, 1, 1, 4, 0, 2, 0, 1, 65, 4, 0, 0,
    0, 4,
];

impl Rig {
    fn new(config: Config) -> Self {
        let mut rig = Self { fsm: Fsm::new(config, 1), now: Instant::now() };
        rig.event(Event::Start);
        assert_eq!(rig.fsm.effect(), Some(Effect::Connect));
        rig
    }

    /// In the given state of the connection.
    fn in_state(state: State) -> Self {
        let mut rig = Self::new(config());
        if state >= State::OpenSent {
            rig.event(Event::Connected(LOCAL));
            rig.sent();
        }
        if state >= State::OpenConfirm {
            rig.receive(OPEN);
            rig.sent();
        }
        if state >= State::Established {
            rig.receive(KEEPALIVE);
            rig.sent();
        }
        assert_eq!(rig.fsm.state(), state);
        rig
    }

    fn event(&mut self, event: Event<'_>) {
        self.fsm.handle(event, self.now);
    }

    fn receive(&mut self, parts: &[u8]) {
        self.event(Event::Received(&message(parts)));
    }

    /// What it sends, written at once.
    fn sent(&mut self) -> Vec<(Kind, Vec<u8>)> {
        let mut out = Vec::new();
        self.fsm.transmit(self.now, &mut out);
        if !out.is_empty() {
            self.event(Event::Written);
        }
        split_all(&out)
    }

    /// The NOTIFICATION with which it has closed the connection.
    #[track_caller]
    fn last_words(&mut self) -> Option<Notification> {
        let Some(Effect::Close(bytes)) = self.fsm.effect() else { panic!("it has not closed") };
        assert_eq!(self.fsm.state(), State::Idle);
        let (kind, body) = split_all(&bytes).pop()?;
        assert_eq!(kind, Kind::Notification);
        Some(Notification::decode(&body))
    }

    /// Lets time pass, with a tick at every deadline passed.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(deadline) = self.fsm.deadline().filter(|deadline| *deadline <= end) {
            self.now = self.now.max(deadline);
            self.event(Event::Tick);
            self.sent();
        }
        self.now = end;
    }
}

fn routes(prefixes: &[&str], attributes: &Attributes) -> Routes {
    let attributes = Arc::new(attributes.clone());
    prefixes.iter().map(|prefix| (prefix.parse().unwrap(), Arc::clone(&attributes))).collect()
}

const CONNECTED: [State; 3] = [State::OpenSent, State::OpenConfirm, State::Established];

/// RFC 4271 sections 6.1 to 6.6: what is received, in which state, and the NOTIFICATION it is answered
/// with.
#[test]
fn each_error_has_its_notification() {
    let changed = |position: usize, value: u8| {
        let mut open = OPEN.to_vec();
        open[position] = value;
        message(&open)
    };
    let raw = |length: u16, kind: u8| {
        let mut bytes = vec![0xff; 16];
        bytes.extend(length.to_be_bytes());
        bytes.push(kind);
        bytes
    };
    let notification =
        |code, subcode, data: &[u8]| Notification { code, subcode, data: data.to_vec() };
    let mut cases: Vec<(State, &str, Vec<u8>, Notification)> = vec![
        (State::OpenSent, "version", changed(1, 3), notification(2, 1, &[0, 4])),
        (State::OpenSent, "peer's AS", changed(30, 5), notification(2, 2, &[0, 5])),
        (State::OpenSent, "hold time", changed(5, 2), notification(2, 6, &[0, 2])),
        (State::OpenSent, "no hold time", changed(5, 0), notification(2, 6, &[0, 0])),
        (State::OpenSent, "parameter", changed(11, 1), notification(2, 4, &[1])),
        (State::OpenSent, "parameters' length", changed(10, 19), notification(2, 0, &[])),
        (State::OpenSent, "KEEPALIVE", message(KEEPALIVE), notification(5, 1, &[4])),
        (State::OpenSent, "UPDATE", message(&[2, 0, 0, 0, 0]), notification(5, 1, &[2])),
        (State::OpenSent, "ROUTE-REFRESH", message(&[5, 0, 1, 0, 1]), notification(5, 1, &[5])),
        (State::OpenConfirm, "OPEN", message(OPEN), notification(5, 2, &[1])),
        (State::OpenConfirm, "UPDATE", message(&[2, 0, 0, 0, 0]), notification(5, 2, &[2])),
        (State::Established, "OPEN", message(OPEN), notification(5, 3, &[1])),
        (
            State::Established,
            "UPDATE's lengths",
            message(&[2, 0, 9, 0, 0]),
            notification(3, 1, &[]),
        ),
    ];
    for state in CONNECTED {
        cases.extend([
            (state, "marker", vec![0; 19], notification(1, 1, &[])),
            (state, "length 18", raw(18, 4), notification(1, 2, &[0, 18])),
            (state, "length 4097", raw(4097, 2), notification(1, 2, &[16, 1])),
            (state, "length of OPEN", raw(28, 1), notification(1, 2, &[0, 28])),
            (state, "length of UPDATE", raw(22, 2), notification(1, 2, &[0, 22])),
            (state, "length of KEEPALIVE", raw(20, 4), notification(1, 2, &[0, 20])),
            (state, "type 6", raw(19, 6), notification(1, 3, &[6])),
        ]);
    }
    for (state, name, bytes, expected) in cases {
        let mut rig = Rig::in_state(state);
        rig.event(Event::Received(&bytes));
        assert_eq!(rig.last_words(), Some(expected.clone()), "{name} in {state}");
        assert!(rig.fsm.problem().unwrap().contains(&expected.to_string()), "{name} in {state}");
        assert_eq!(rig.fsm.counters().notifications_out, 1);
        assert!(rig.sent().is_empty(), "nothing follows the NOTIFICATION");
    }
}

#[test]
fn a_notification_is_never_answered() {
    for state in CONNECTED {
        let mut rig = Rig::in_state(state);
        rig.receive(&[3, 6, 2, 3, b'b', b'y', b'e']);
        assert_eq!(rig.last_words(), None);
        let problem = rig.fsm.problem().unwrap();
        assert!(problem.ends_with(r#"Cease / Administrative Shutdown (6/2): "bye""#), "{problem}");
        let counters = rig.fsm.counters();
        assert_eq!((counters.notifications_in, counters.notifications_out), (1, 0));
        assert_eq!(counters.lost, u64::from(state == State::Established));
    }
}

#[test]
fn a_stop_says_why_and_stays_stopped() {
    for state in CONNECTED {
        let mut rig = Rig::in_state(state);
        rig.event(Event::Stop("bye"));
        assert_eq!(rig.last_words(), Some(Notification::shutdown("bye")));
        assert_eq!(rig.fsm.deadline(), None);
    }
    let mut rig = Rig::in_state(State::Connect);
    rig.event(Event::Stop("bye"));
    assert_eq!(rig.last_words(), None);
    assert_eq!(rig.fsm.deadline(), None);
}

#[test]
fn a_neighbour_in_our_as_needs_another_identifier() {
    let mut rig = Rig::new(Config { peer_as: Asn(12), ..config() });
    rig.event(Event::Connected(LOCAL));
    rig.sent();
    let mut open = OPEN.to_vec();
    (open[9], open[30]) = (30, 12);
    rig.receive(&open);
    assert_eq!(rig.last_words(), Some(Notification::open(3, &[172, 16, 0, 30])));
}

#[test]
fn without_an_identifier_no_open_is_sent() {
    let mut rig = Rig::new(config());
    rig.event(Event::Connected("2001:db8::1".parse().unwrap()));
    assert_eq!(rig.last_words(), None);
    assert!(rig.fsm.problem().unwrap().contains("router_id"));
    assert_eq!(rig.fsm.counters().messages_out, 0);
}

/// RFC 4271 section 6.5: silence for the hold time, the smaller of both proposals, ends the session.
#[test]
fn the_hold_timer_ends_a_silent_session() {
    let mut rig = Rig::in_state(State::Established);
    rig.pass(Duration::from_millis(8_999));
    assert_eq!(rig.fsm.state(), State::Established);
    rig.receive(KEEPALIVE);
    rig.pass(Duration::from_millis(8_999));
    rig.receive(&[2, 0, 0, 0, 0]);
    rig.pass(Duration::from_millis(8_999));
    // ROUTE-REFRESH is no sign of life for this timer (RFC 4271 section 8.2.2, events 26 and 27).
    rig.receive(&[5, 0, 1, 0, 1]);
    assert_eq!(rig.fsm.state(), State::Established);
    rig.pass(Duration::from_millis(1));
    assert_eq!(rig.last_words(), Some(Notification::hold_timer()));
    let mut rig = Rig::in_state(State::OpenConfirm);
    rig.pass(Duration::from_secs(9));
    assert_eq!(rig.last_words(), Some(Notification::hold_timer()));
    let mut rig = Rig::in_state(State::OpenSent);
    rig.pass(Duration::from_secs(30));
    assert_eq!(rig.last_words(), Some(Notification::hold_timer()));
}

#[test]
fn keepalives_go_out_at_a_third_of_the_hold_time() {
    let mut rig = Rig::in_state(State::Established);
    let mut last = rig.now;
    for _ in 0..50 {
        let due = rig.fsm.deadline().unwrap();
        // Jitter of RFC 4271 section 10: three quarters to all of 3 s.
        let interval = due - last;
        assert!((Duration::from_millis(2250)..=Duration::from_secs(3)).contains(&interval));
        (rig.now, last) = (due, due);
        rig.event(Event::Tick);
        assert_eq!(rig.sent(), [(Kind::Keepalive, vec![])]);
        rig.receive(KEEPALIVE);
    }
}

/// RFC 9687: what cannot be written for twice the hold time ends the session.
#[test]
fn a_neighbour_that_stops_reading_is_given_up() {
    let mut rig = Rig::in_state(State::Established);
    rig.fsm.want(routes(&["50.0.0.0/8"], &Attributes::default()));
    let mut out = Vec::new();
    rig.fsm.transmit(rig.now, &mut out);
    assert!(!out.is_empty());
    let begin = rig.now;
    while rig.fsm.state() == State::Established {
        rig.now = rig.fsm.deadline().unwrap();
        rig.event(Event::Tick);
        rig.receive(KEEPALIVE);
    }
    assert_eq!(rig.now - begin, Duration::from_secs(18));
    assert_eq!(rig.last_words(), None);
    assert!(rig.fsm.problem().unwrap().contains("stopped reading"));
}

#[test]
fn attempts_are_repeated_with_growing_pauses() {
    let mut rig = Rig::new(config());
    for longest in [1, 2, 4, 8, 10, 10, 10] {
        rig.event(Event::Refused("refused"));
        assert_eq!(rig.fsm.state(), State::Active);
        let pause = rig.fsm.deadline().unwrap() - rig.now;
        let longest = Duration::from_secs(longest);
        assert!((longest * 3 / 4..=longest).contains(&pause), "{pause:?} of {longest:?}");
        rig.pass(pause);
        assert_eq!((rig.fsm.state(), rig.fsm.effect()), (State::Connect, Some(Effect::Connect)));
    }
    // No answer at all: after five seconds the next attempt.
    rig.pass(Duration::from_secs(5));
    assert_eq!((rig.fsm.state(), rig.fsm.effect()), (State::Connect, Some(Effect::Connect)));
    assert!(rig.fsm.problem().unwrap().contains("does not answer"));
}

#[test]
fn a_session_that_lasted_is_opened_again_soon() {
    let mut rig = Rig::new(config());
    for _ in 0..6 {
        rig.event(Event::Refused("refused"));
        rig.pass(Duration::from_secs(10));
        while rig.fsm.effect().is_some() {}
    }
    rig.event(Event::Connected(LOCAL));
    rig.receive(OPEN);
    rig.receive(KEEPALIVE);
    for _ in 0..10 {
        rig.pass(Duration::from_secs(6));
        rig.receive(KEEPALIVE);
    }
    rig.event(Event::Closed("the neighbour closed the connection"));
    let pause = rig.fsm.deadline().unwrap() - rig.now;
    assert!(pause <= Duration::from_secs(1), "{pause:?}");
}

#[test]
fn what_comes_late_is_ignored() {
    let mut rig = Rig::in_state(State::Established);
    rig.event(Event::Closed("gone"));
    assert_eq!(rig.last_words(), None);
    rig.event(Event::Received(&message(KEEPALIVE)));
    rig.event(Event::Closed("gone"));
    rig.event(Event::Connected(LOCAL));
    rig.event(Event::Refused("late"));
    rig.event(Event::Written);
    assert_eq!((rig.fsm.state(), rig.fsm.effect()), (State::Idle, None));
    assert!(rig.sent().is_empty());
}

#[test]
fn nothing_is_sent_that_does_not_change_anything() {
    let mut rig = Rig::in_state(State::Established);
    let plain = Attributes::default();
    let both = routes(&["50.0.0.0/8", "50.1.0.0/16", "2001:db8:50::/48"], &plain);
    rig.fsm.want(both.clone());
    assert_eq!(rig.sent().len(), 2, "one message for each family");
    rig.fsm.want(both.clone());
    assert_eq!(rig.sent(), []);
    rig.fsm.want(routes(&["50.0.0.0/8"], &plain));
    assert_eq!(rig.sent().len(), 2, "one withdrawal for each family");
    // A change that is undone before anything is written sends nothing.
    rig.fsm.want(both);
    rig.fsm.want(routes(&["50.0.0.0/8"], &plain));
    assert_eq!(rig.sent(), []);
    // Asked again (RFC 2918): the route and an End-of-RIB, for that family only.
    rig.receive(&[5, 0, 1, 0, 1]);
    assert_eq!(rig.sent().len(), 2);
    rig.receive(&[5, 0, 25, 0, 70]);
    assert_eq!(rig.sent(), []);
}

/// RFC 9552 section 5.1: a session that learns asks for BGP-LS alone and gives what it hears to its caller.
#[test]
fn a_session_that_learns_gives_away_what_it_hears() {
    let learns = || Config { purpose: Purpose::LearnLinkState, ..config() };
    let mut open = OPEN.to_vec();
    open.extend([1, 4, 0x40, 0x04, 0, 71]);
    (open[10], open[12]) = (26, 24);
    let mut rig = Rig::new(learns());
    rig.event(Event::Connected(LOCAL));
    let sent = rig.sent();
    let capabilities: Vec<_> = sent[0].1.windows(6).filter(|bytes| bytes[..2] == [1, 4]).collect();
    assert_eq!(capabilities, [[1, 4, 0x40, 0x04, 0, 71]]);
    rig.receive(&open);
    rig.receive(KEEPALIVE);
    assert_eq!(rig.fsm.state(), State::Established);
    rig.receive(&[2, 0, 0, 0, 0]);
    rig.receive(&[2, 0, 0, 0, 2, 9]);
    assert_eq!(rig.fsm.learned(), [vec![0, 0, 0, 0]], "the second one's lengths do not fit");
    assert_eq!((rig.fsm.state(), rig.fsm.learned().len()), (State::Idle, 0));
    // Nor do those of an NLRI inside MP_UNREACH_NLRI.
    let mut rig = Rig::new(learns());
    rig.event(Event::Connected(LOCAL));
    rig.receive(&open);
    rig.receive(KEEPALIVE);
    rig.receive(&[2, 0, 0, 0, 10, 0x80, 15, 7, 0x40, 0x04, 71, 0, 1, 0, 9]);
    assert!(rig.fsm.problem().unwrap().contains("Optional Attribute Error (3/9)"));
    // A speaker without a link-state database gets a NOTIFICATION.
    let mut rig = Rig::new(learns());
    rig.event(Event::Connected(LOCAL));
    rig.receive(OPEN);
    assert!(rig.fsm.problem().unwrap().contains("Unsupported Capability (2/7)"));
}
