//! BFD with real neighbours: BIRD, which ends its BGP session by it, and FRR's bfdd.

use super::common::{LIMIT, PREFIXES, Pair, session, wait_for_routes};
use bgp::{
    Announcer, Observed, State,
    bfd::{self, Diagnostic, Listener, packet::Packet},
    config::Upstream,
};
use std::net::UdpSocket;
use testbed::{Bird, End, link, wait_until};

/// A hold time that no test outlasts: what ends a session before that is BFD.
const BFD: &str = "hold_time = \"1h\"\nbfd = { interval = \"100ms\", multiplier = 3 }";

/// What BIRD needs for BFD with the node.
fn bird(pair: &Pair) -> Bird {
    let bfd = "protocol bfd { interface \"down0\" { interval 100 ms; multiplier 3; }; }";
    let bgp = super::common::bird("bfd on; hold time 3600; error wait time 1, 2;");
    Bird::start(&pair.router, &format!("{bgp}\n{bfd}")).unwrap()
}

/// Lets nothing of what the router sends arrive, or everything again; its link stays up.
fn cut(pair: &Pair, cut: bool) {
    let table = match cut {
        true => {
            "add table inet cut; add chain inet cut out { type filter hook output priority 0; policy drop; }"
        }
        false => "delete table inet cut",
    };
    pair.router.check(&["nft", table]).unwrap();
}

#[test]
fn a_path_that_fails_ends_the_session_and_comes_back() {
    let pair = Pair::new();
    let router = bird(&pair);
    let node = pair.announce(&session(BFD));
    wait_for_routes(&router, true);
    node.until("BFD", |seen| seen.bfd.is_some_and(|bfd| bfd.state == bfd::State::Up));
    wait_until("BFD at BIRD", LIMIT, || {
        router.query("show bfd sessions").is_ok_and(|answer| answer.contains("Up"))
    })
    .unwrap();
    let before = node.announcer().observed();
    assert_eq!(before.bfd.unwrap().failures, 0);

    cut(&pair, true);
    node.until("the failure", |seen| seen.state != State::Established);
    let seen = node.announcer().observed();
    let bfd = seen.bfd.unwrap();
    assert_eq!((bfd.state, bfd.failures), (bfd::State::Down, 1));
    assert_eq!(bfd.diagnostic, Diagnostic::TIME_EXPIRED);
    assert!(seen.problem.as_ref().is_some_and(|why| why.contains("BFD Down (6/10)")), "{seen:#?}");
    // BIRD hears us, and hears that we do not hear it.
    wait_for_routes(&router, false);

    cut(&pair, false);
    node.until("the session", |seen| seen.state == State::Established);
    node.until("BFD", |seen| seen.bfd.is_some_and(|bfd| bfd.state == bfd::State::Up));
    wait_for_routes(&router, true);
}

#[test]
fn a_process_that_hangs_loses_its_routes_although_its_connection_is_open() {
    let pair = Pair::new();
    let router = bird(&pair);
    let node = pair.announce(&session(BFD));
    wait_for_routes(&router, true);
    node.until("BFD", |seen| seen.bfd.is_some_and(|bfd| bfd.state == bfd::State::Up));
    let release = node.hang();
    wait_for_routes(&router, false);
    drop(release);
    wait_for_routes(&router, true);
}

#[test]
fn a_second_session_with_the_neighbour_waits_for_the_end_of_the_first() {
    let pair = Pair::new();
    let router = bird(&pair);
    let mut node = pair.announce(&session(BFD));
    let is_up = |seen: &Observed| seen.bfd.is_some_and(|bfd| bfd.state == bfd::State::Up);
    node.until("BFD", is_up);
    // As in a reload that is refused: it does not disturb the first, which is not deaf afterwards.
    drop(node.start_another(&session(BFD)));
    cut(&pair, true);
    node.until("the failure", |seen| seen.bfd.is_some_and(|bfd| bfd.failures == 1));
    cut(&pair, false);
    node.until("BFD", is_up);
    wait_for_routes(&router, true);
    // And as in one that is accepted.
    let second = node.start_another(&session(BFD));
    assert_eq!(node.announcer().observed().bfd.unwrap().failures, 1);
    node.replace(second);
    node.until("BFD of the second", is_up);
}

#[test]
fn a_neighbour_without_bfd_has_the_session_all_the_same() {
    let pair = Pair::new();
    let router = pair.bird("");
    let node = pair.announce(&session(BFD));
    wait_for_routes(&router, true);
    let seen = node.announcer().observed();
    assert_eq!(seen.bfd.map(|bfd| (bfd.state, bfd.failures)), Some((bfd::State::Down, 0)));
}

#[test]
fn ipv6_neighbours_are_watched_too() {
    let pair = Pair::new();
    let router = Bird::start(
        &pair.router,
        "router id 172.16.0.29;
         protocol device {}
         protocol bfd { interface \"down0\" { interval 100 ms; multiplier 3; }; }
         protocol bgp node {
           local 2001:db8:1::29 as 4; neighbor 2001:db8:1::30 as 12; bfd on; hold time 3600;
           ipv6 { import all; export none; };
         }",
    )
    .unwrap();
    let node = pair.announce(&format!(
        "name = \"isp-a\"\ntype = \"bgp\"\npeer = \"2001:db8:1::29\"\npeer_as = 4\nlocal_as = 12\n\
         router_id = \"172.16.0.30\"\nnext_hop4 = \"172.16.0.30\"\n{BFD}"
    ));
    node.until("BFD", |seen| seen.bfd.is_some_and(|bfd| bfd.state == bfd::State::Up));
    wait_until("the route at BIRD", LIMIT, || {
        router.query(&format!("show route {}", PREFIXES[1])).is_ok_and(|it| it.contains("2001:"))
    })
    .unwrap();
    cut(&pair, true);
    node.until("the failure", |seen| {
        seen.state != State::Established && seen.bfd.is_some_and(|bfd| bfd.failures == 1)
    });
}

#[test]
fn only_the_neighbour_on_the_link_is_heard() {
    let pair = Pair::new();
    link(
        End::new(&pair.node, "up1").address("10.0.0.1/24"),
        End::new(&pair.router, "down1").address("10.0.0.2/24"),
    )
    .unwrap();
    let socket = pair.router.enter(|| UdpSocket::bind(("172.16.0.29", bfd::PORT)).unwrap());
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    let _node = pair.start(&session(BFD));
    let send = |from: &str, to: &str, ttl, my_discriminator| {
        let packet = Packet {
            diagnostic: Diagnostic::default(),
            state: bfd::State::Down,
            poll: false,
            is_final: false,
            demand: false,
            detect_mult: 255,
            my_discriminator,
            your_discriminator: 0,
            desired_min_tx: 1_000_000,
            required_min_rx: 1_000_000,
        };
        pair.router.enter(|| {
            let socket = UdpSocket::bind((from, 0)).unwrap();
            socket.set_ttl(ttl).unwrap();
            socket.send_to(&packet.encode(), (to, bfd::PORT)).unwrap();
        });
    };
    // They arrive in this order, and what is heard is answered at once with its discriminator.
    send("10.0.0.2", "10.0.0.1", 255, 1);
    send("172.16.0.29", "172.16.0.30", 254, 2);
    send("172.16.0.29", "10.0.0.1", 255, 3);
    send("172.16.0.29", "172.16.0.30", 255, 4);
    let mut heard = std::iter::repeat_with(|| {
        let mut bytes = [0; 64];
        let count = socket.recv(&mut bytes).unwrap();
        Packet::decode(&bytes[..count]).expect("the node sends valid packets").your_discriminator
    });
    assert_eq!(heard.find(|your_discriminator| *your_discriminator != 0), Some(4));
}

#[test]
fn a_port_that_another_daemon_has_is_an_error_that_says_so() {
    let pair = Pair::new();
    let _other = pair.node.enter(|| UdpSocket::bind(("0.0.0.0", bfd::PORT)).unwrap());
    let upstream: Upstream = toml::from_str(&session(BFD)).unwrap();
    let error = pair.node.enter(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _guard = runtime.enter();
        Announcer::start(&upstream, Vec::new(), &Listener::default()).unwrap_err()
    });
    let text = error.to_string();
    assert!(text.contains("isp-a") && text.contains("another BFD daemon"), "{text}");
}
