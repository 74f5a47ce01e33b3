//! Any bytes from a BGP neighbour, cut anywhere, in any state of a session.
//!
//! The first byte chooses how far the session has got and whether the neighbour reads; then come chunks,
//! each a byte of length and as many bytes. A chunk's length of 0 is a whole OPEN or KEEPALIVE that the
//! session would accept, and of 255 a second that passes, so that every state is within reach. What is learned goes
//! to the graph.

use bgp::{
    State,
    fsm::{Config, Event, Fsm, Purpose},
    link_state::Graph,
    message::{HEADER, MAX, split},
    route::{Attributes, Routes},
    value::Asn,
};
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::new(172, 16, 0, 30));

/// An OPEN of AS 4 with hold time 9 s, both families, BGP-LS and four octets.
const OPEN: [u8; 55] = [
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 55, 1, 4, 0,
    4, 0, 9, 172, 16, 0, 29, 26, 2, 24, 1, 4, 0, 1, 0, 1, 1, 4, 0, 2, 0, 1, 1, 4, 64, 4, 0, 71, 65,
    4, 0, 0, 0, 4,
];
const KEEPALIVE: [u8; 19] =
    [255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 19, 4];

static ROUTES: LazyLock<Routes> = LazyLock::new(|| {
    let attributes = Arc::new(Attributes::default());
    ["50.0.0.0/8", "2001:db8:50::/48"]
        .map(|prefix| (prefix.parse().expect("a prefix"), Arc::clone(&attributes)))
        .into()
});

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Some((&first, mut rest)) = data.split_first() else { return };
    let config = Config {
        local_as: Asn(12),
        peer_as: Asn(4),
        router_id: None,
        next_hop4: None,
        next_hop6: Some("2001:db8::1".parse().expect("an address")),
        hold_time: 9,
        purpose: if first & 8 == 0 { Purpose::Announce } else { Purpose::LearnLinkState },
    };
    let mut now = Instant::now();
    let mut fsm = Fsm::new(config, 1);
    fsm.want(ROUTES.clone());
    fsm.handle(Event::Start, now);
    fsm.handle(Event::Connected(LOCAL), now);
    if first & 1 != 0 {
        fsm.handle(Event::Received(&OPEN), now);
    }
    if first & 3 == 3 {
        fsm.handle(Event::Received(&KEEPALIVE), now);
        assert_eq!(fsm.state(), State::Established);
    }
    let reads = first & 4 == 0;
    let (mut graph, mut established) = (Graph::new(64), 0);
    while let Some((&length, behind)) = rest.split_first() {
        rest = behind;
        match length {
            0 if fsm.state() == State::OpenSent => fsm.handle(Event::Received(&OPEN), now),
            0 => fsm.handle(Event::Received(&KEEPALIVE), now),
            255 => {
                now += Duration::from_secs(1);
                fsm.handle(Event::Tick, now);
            }
            _ => {
                let chunk;
                (chunk, rest) = rest.split_at(rest.len().min(length.into()));
                fsm.handle(Event::Received(chunk), now);
            }
        }
        let mut out = Vec::new();
        if reads {
            fsm.transmit(now, &mut out);
            fsm.handle(Event::Written, now);
        }
        // Little goes out at a time, and all of it is messages.
        assert!(out.len() <= 2 * MAX);
        let mut sent = &out[..];
        while !sent.is_empty() {
            let (_, body) = split(sent).expect("a message").expect("a whole message");
            sent = &sent[HEADER + body.len()..];
        }
        let sessions = fsm.counters().established;
        if sessions > established {
            established = sessions;
            graph.begin(now);
        }
        for update in fsm.learned() {
            graph.update(&update).expect("the session has checked it");
        }
        graph.settle(now);
        assert!(graph.len() <= 64);
        // No routes are ever learned.
        assert!(fsm.advertised().keys().all(|prefix| ROUTES.contains_key(prefix)));
    }
    while fsm.effect().is_some() {}
    let _ = fsm.problem();
}
