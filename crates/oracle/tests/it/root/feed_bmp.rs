//! FRR reports its routes over BMP, and the order of candidates follows them.

use super::feed_stage::{FeedStage, LIMIT, SECOND};
use oracle::feeds::{BmpConfig, Config, News, State};
use testbed::{End, Frr, Namespace, link};
use topo::{Builder, Change, LinkKey, LinkProperties, Options, RouterId};

/// The candidate whose rank changes.
const PREFIX: &str = "203.0.113.0/24";

/// Three namespaces: the node with the oracle, the exit router, and a router of another network.
struct Network {
    node: Namespace,
    exit: Namespace,
    other: Namespace,
}

impl Network {
    fn new() -> Self {
        let [node, exit, other] =
            ["node", "exit", "other"].map(|label| Namespace::new(label).unwrap());
        link(
            End::new(&node, "eth0").address("192.0.2.1/30").address("2001:db8:1::1/64"),
            End::new(&exit, "eth0").address("192.0.2.2/30").address("2001:db8:1::2/64"),
        )
        .unwrap();
        link(
            End::new(&exit, "eth1").address("192.0.2.5/30").address("2001:db8:2::1/64"),
            End::new(&other, "eth0").address("192.0.2.6/30").address("2001:db8:2::2/64"),
        )
        .unwrap();
        Self { node, exit, other }
    }

    /// The exit router of AS 64500, which reports both tables of its peer to the node.
    fn exit(&self) -> Frr {
        let configuration = "frr defaults traditional
hostname exit-1
router bgp 64500
 bgp router-id 10.8.0.1
 no bgp ebgp-requires-policy
 neighbor 192.0.2.6 remote-as 64501
 neighbor 192.0.2.6 disable-connected-check
 address-family ipv4 unicast
  neighbor 192.0.2.6 activate
  neighbor 192.0.2.6 soft-reconfiguration inbound
 exit-address-family
 address-family ipv6 unicast
  neighbor 192.0.2.6 activate
 exit-address-family
 bmp targets oracle
  bmp monitor ipv4 unicast pre-policy
  bmp monitor ipv4 unicast post-policy
  bmp monitor ipv6 unicast post-policy
  bmp stats interval 1000
  bmp connect 192.0.2.1 port 11019 min-retry 100 max-retry 500
 exit
";
        Frr::start_with(&self.exit, configuration, &["-M", "bmp"]).unwrap()
    }

    /// A router of AS 64501 with routes of its own and of AS 64510 behind it. It waits for the other's
    /// connection: where both connect at once, FRR 8.4 can lose the OPENs that BMP reports.
    fn other(&self) -> Frr {
        let configuration = "frr defaults traditional
router bgp 64501
 bgp router-id 192.0.2.6
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor 192.0.2.5 remote-as 64500
 neighbor 192.0.2.5 disable-connected-check
 neighbor 192.0.2.5 passive
 address-family ipv4 unicast
  network 203.0.113.0/24
  network 198.51.100.0/24 route-map far
  neighbor 192.0.2.5 activate
  neighbor 192.0.2.5 route-map own out
 exit-address-family
 address-family ipv6 unicast
  network 2001:db8:100::/48
  neighbor 192.0.2.5 activate
 exit-address-family
ip prefix-list far seq 5 permit 198.51.100.0/24
route-map far permit 10
route-map own permit 10
 match ip address prefix-list far
 set as-path prepend 64502 64510
route-map own permit 20
";
        Frr::start(&self.other, configuration).unwrap()
    }
}

fn config(hold: &str) -> Config {
    let bmp: BmpConfig = toml::from_str(&format!(
        r#"
        listen = ["192.0.2.1:11019", "[2001:db8:1::1]:11019"]
        hold = "{hold}"
        [[router]]
        address = "192.0.2.2"
        router = "10.8.0.1"
        "#
    ))
    .unwrap();
    assert_eq!(bmp.problems(), []);
    Config { bmp: Some(bmp), bgp_ls: Vec::new() }
}

fn id(text: &str) -> RouterId {
    text.parse().unwrap()
}

/// A network of two exits whose second one has the same routes from a file, one AS farther.
fn network() -> Builder {
    let mut builder = Builder::new(Options {
        exits: topo::ExitChoice::ShortestAsPath,
        ases: topo::AsInterest::All,
        marks: Vec::new(),
    });
    let properties =
        LinkProperties { bandwidth: 1000.0, latency: 1.0, weight: 1, congestion: 0.0, loss: 0.0 };
    for (from, to) in [("10.8.0.1", "10.8.0.2"), ("10.8.0.2", "10.8.0.1")] {
        let key = LinkKey { from: id(from), to: id(to), id: 1 };
        for change in
            [Change::Router { id: id(from), name: None }, Change::Link { key, properties }]
        {
            builder.apply(topo::Feed::CONFIGURATION, change).unwrap();
        }
    }
    builder
}

/// AS distance and origin of the group of an address, seen from the second router.
fn path(known: &mut super::feed_stage::Known, address: &str) -> Option<(u32, u32)> {
    let view = known.builder.view();
    let group = view.groups.get(view.group(address.parse().unwrap()));
    let from = view.graph.index(id("10.8.0.2"))?;
    let found = view.tree(from).properties(group)?;
    Some((found.as_distance, found.as_number))
}

#[test]
fn a_withdrawn_route_is_gone_within_a_second() {
    let network_of = Network::new();
    let stage = FeedStage::start(&network_of.node, &config("10m"), network());
    let _exit = network_of.exit();
    let other = network_of.other();
    stage.until("the routes of both families", LIMIT, |known| {
        path(known, "203.0.113.1") == Some((1, 64501))
            && path(known, "198.51.100.1") == Some((3, 64510))
            && path(known, "2001:db8:100::1") == Some((1, 64501))
    });
    let status = stage.feeds().reports().status();
    assert_eq!((status.len(), status[0].state, status[0].errors), (1, State::Up, 0));
    assert_eq!((status[0].name.as_deref(), status[0].peers), (Some("exit-1"), 1));
    // Withdrawn, longer, and back: each is seen within a second after the router learned of it.
    other
        .configure(&[
            "configure terminal",
            "router bgp 64501",
            "address-family ipv4 unicast",
            &format!("no network {PREFIX}"),
        ])
        .unwrap();
    stage.until("the route's end", SECOND, |known| path(known, "203.0.113.1").is_none());
    assert_eq!(path(&mut stage.known(), "198.51.100.1"), Some((3, 64510)));
    other
        .configure(&[
            "configure terminal",
            "router bgp 64501",
            "address-family ipv4 unicast",
            &format!("network {PREFIX}"),
        ])
        .unwrap();
    stage
        .until("the route's return", LIMIT, |known| path(known, "203.0.113.1") == Some((1, 64501)));
    // The neighbour of the exit router goes: Peer Down takes all its routes.
    drop(other);
    stage.until("the end of all routes", LIMIT, |known| {
        ["203.0.113.1", "198.51.100.1", "2001:db8:100::1"]
            .iter()
            .all(|address| path(known, address).is_none())
    });
    assert_eq!(stage.feeds().reports().status()[0].state, State::Up);
}

#[test]
fn a_router_that_dies_keeps_its_last_state_for_the_hold_time() {
    let network_of = Network::new();
    let mut stage = FeedStage::start(&network_of.node, &config("10m"), network());
    let _other = network_of.other();
    let exit = network_of.exit();
    stage.until("the routes", LIMIT, |known| path(known, "203.0.113.1").is_some());
    let bmp = |line: &str| {
        let target = ["configure terminal", "router bgp 64500", "bmp targets oracle", line];
        exit.configure(&target).unwrap();
    };
    bmp("no bmp connect 192.0.2.1 port 11019 min-retry 100 max-retry 500");
    stage.until("the end of the session", LIMIT, |known| {
        matches!(known.news.last(), Some((_, News::Down(_))))
    });
    let status = stage.feeds().reports().status().remove(0);
    assert_eq!((status.state, status.feed.as_str()), (State::Stale, "bmp 10.8.0.1"));
    assert_eq!(path(&mut stage.known(), "203.0.113.1"), Some((1, 64501)));
    // It comes back: what it reports again was never gone, and nothing stale is left.
    let changes = stage.known().changes;
    bmp("bmp connect 192.0.2.1 port 11019 min-retry 100 max-retry 500");
    stage.until("the session's return", LIMIT, |known| {
        matches!(known.news.last(), Some((_, News::Up)))
    });
    stage.until("the routes of the new session", LIMIT, |_| {
        stage.feeds().reports().status()[0].routes >= 5
    });
    assert_eq!(path(&mut stage.known(), "203.0.113.1"), Some((1, 64501)));
    assert_eq!(stage.known().changes, changes, "nothing has changed");
    // With a short hold time it is forgotten. A changed configuration begins anew.
    stage.reload(&network_of.node, &config("200ms"));
    stage.until("the routes once more, over a third session", LIMIT, |known| {
        let sessions = known.news.iter().filter(|(_, news)| matches!(news, News::Up)).count();
        sessions == 3 && path(known, "203.0.113.1").is_some()
    });
    drop(exit);
    stage.until("the end of the hold time", LIMIT, |known| {
        matches!(known.news.last(), Some((_, News::Dropped(_))))
    });
    assert_eq!(path(&mut stage.known(), "203.0.113.1"), None);
    assert_eq!(stage.feeds().reports().status()[0].state, State::Dropped);
    stage.reload(&network_of.node, &Config::default());
    assert_eq!(stage.feeds().reports().status(), []);
    stage.stop();
}
