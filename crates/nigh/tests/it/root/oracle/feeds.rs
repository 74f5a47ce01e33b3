//! A router that reports its routes over BMP, and its routes after it is gone.

use super::stage::{EAST, LIMIT, NETWORK, Stage, UNKNOWN, WEST, metric};
use serde_json::Value;
use std::{net::TcpStream, time::Duration};
use testbed::{End, Frr, Namespace, link, wait_until};

/// The exit in the east, on the client's side. It has a session to report and no route; the
/// routes themselves are tested in crate oracle.
const ROUTER: &str = "frr defaults traditional
router bgp 64500
 bgp router-id 10.8.0.2
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor 192.0.2.1 remote-as 64500
 address-family ipv4 unicast
  network 100.64.0.0/24
 exit-address-family
 bmp targets oracle
  bmp monitor ipv4 unicast pre-policy
  bmp connect 192.0.2.1 port 11019 min-retry 100 max-retry 500
 exit
";

/// The exit in the east, with a neighbour that has routes.
const EXIT: &str = "frr defaults traditional
router bgp 64500
 bgp router-id 10.8.0.2
 no bgp ebgp-requires-policy
 neighbor 10.9.0.2 remote-as 64503
 neighbor 10.9.0.2 disable-connected-check
 bmp targets oracle
  bmp monitor ipv4 unicast post-policy
  bmp connect 192.0.2.1 port 11019 min-retry 100 max-retry 500
 exit
";

/// The neighbour.
const OTHER: &str = "frr defaults traditional
router bgp 64503
 bgp router-id 10.9.0.2
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor 10.9.0.1 remote-as 64500
 neighbor 10.9.0.1 disable-connected-check
 address-family ipv4 unicast
  network 100.64.0.0/24
 exit-address-family
";

fn bmp(hold: &str) -> String {
    format!(
        "[oracle.bmp]\nhold = \"{hold}\"\n[[oracle.bmp.router]]\naddress = \"192.0.2.2\"\n\
         router = \"10.8.0.2\"\n"
    )
}

#[test]
fn a_feed_that_dies_is_reported_as_stale_then_as_dropped() {
    let stage = Stage::start(&bmp("5s"));
    let state = || {
        let feeds = stage.status()["feeds"].clone();
        let feed = feeds.as_array().unwrap().iter().find(|feed| feed["name"] == "bmp 10.8.0.2");
        feed.map(|feed| feed["state"].as_str().unwrap().to_owned()).unwrap_or_default()
    };
    wait_until("the feed to wait", LIMIT, || state() == "waiting").unwrap();
    let (code, _) = stage.nigh.http(&stage.node, "/healthz").unwrap();
    assert_eq!(code, 200, "a router that has not connected yet is no problem");
    let router = Frr::start_with(&stage.client, ROUTER, &["-M", "bmp"]).unwrap();
    wait_until("the feed to live", LIMIT, || state() == "live").unwrap();
    assert_eq!(stage.order(), [WEST, EAST, UNKNOWN]);
    // Its session's counters are shown beside its state, and unknown peers are counted.
    drop(stage.node.enter(|| TcpStream::connect("127.0.0.1:11019").unwrap()));
    let unknown_peers = || stage.status()["bmp_unknown_peers"].as_u64();
    wait_until("the unknown peer to be seen", LIMIT, || unknown_peers() == Some(1)).unwrap();
    let text = stage.done(&["print", "feeds"]);
    assert!(text.contains("BMP: 1 connections from unknown peers, all closed"), "{text}");
    let answer: Value = serde_json::from_str(&stage.done(&["print", "feeds", "--json"])).unwrap();
    let feeds = answer["feeds"].as_array().unwrap();
    let feed = feeds.iter().find(|feed| feed["name"] == "bmp 10.8.0.2").unwrap();
    assert_eq!(feed["session"]["sessions"], 1, "{feed}");
    assert_eq!(feed["session"]["malformed"], 0, "{feed}");
    let (_, text) = stage.nigh.http(&stage.node, "/metrics").unwrap();
    let labels = ["feed=\"bmp 10.8.0.2\""];
    assert_eq!(metric(&text, "nigh_oracle_feed_sessions_total", &labels), 1.0, "{text}");
    assert!(metric(&text, "nigh_oracle_feed_messages_total", &labels) >= 1.0, "{text}");
    assert_eq!(metric(&text, "nigh_oracle_bmp_unknown_peers_total", &[]), 1.0, "{text}");
    // A reload keeps the session.
    stage.reload(NETWORK, &format!("cost = \"-as_number\"\n{}", bmp("5s"))).unwrap();
    assert_eq!(state(), "live");
    drop(router);
    wait_until("the feed to be stale", LIMIT, || state() == "stale").unwrap();
    let (code, body) = stage.nigh.http(&stage.node, "/healthz").unwrap();
    assert!(code == 503 && body.contains("feed bmp 10.8.0.2 is stale"), "{body}");
    wait_until("the feed to be dropped", LIMIT, || state() == "dropped").unwrap();
    let (_, text) = stage.nigh.http(&stage.node, "/metrics").unwrap();
    let dropped = ["feed=\"bmp 10.8.0.2\"", "state=\"dropped\""];
    assert_eq!(metric(&text, "nigh_oracle_feed_state", &dropped), 1.0, "{text}");
    // What the files contain is ranked throughout.
    assert_eq!(stage.order(), [EAST, WEST, UNKNOWN]);
    // Without the section there is no problem any more.
    stage.reload(NETWORK, "").unwrap();
    wait_until("health", LIMIT, || stage.nigh.http(&stage.node, "/healthz").unwrap().0 == 200)
        .unwrap();
}

#[test]
fn a_candidate_moves_within_a_second_after_a_router_lost_its_route() {
    let stage = Stage::start(&format!("cost = \"-as_number\"\n{}", bmp("10m")));
    assert_eq!(stage.order(), [EAST, WEST, UNKNOWN]);
    let network = Namespace::new("other").unwrap();
    link(
        End::new(&stage.client, "eth1").address("10.9.0.1/30"),
        End::new(&network, "eth0").address("10.9.0.2/30"),
    )
    .unwrap();
    let exit = Frr::start_with(&stage.client, EXIT, &["-M", "bmp"]).unwrap();
    let other = Frr::start(&network, OTHER).unwrap();
    wait_until("the route", LIMIT, || stage.order() == [UNKNOWN, EAST, WEST]).unwrap();
    let lines = [
        "configure terminal",
        "router bgp 64503",
        "address-family ipv4 unicast",
        "no network 100.64.0.0/24",
    ];
    other.configure(&lines).unwrap();
    wait_until("the router to lose it", LIMIT, || {
        !exit.query("show bgp ipv4 unicast json").unwrap().contains("100.64.0.0/24")
    })
    .unwrap();
    let second = Duration::from_secs(1);
    wait_until("the other order", second, || stage.order() == [EAST, WEST, UNKNOWN]).unwrap();
}
