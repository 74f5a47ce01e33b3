//! GoBGP advertises a network over BGP-LS: the graph appears, changes and vanishes.

use super::feed_stage::{FeedStage, LIMIT, SECOND};
use oracle::feeds::{BgpLsConfig, Config, News, State};
use testbed::{End, GoBgp, Namespace, link};
use topo::{Builder, Options, PathProperties, RouterId};

/// Two namespaces: the node with the oracle, and the speaker.
struct Pair {
    node: Namespace,
    speaker: Namespace,
}

/// Two routers and a network between routers, as IS-IS and OSPF name them.
const A: &str = "10.8.0.1";
const B: &str = "10.8.0.2";
const C: &str = "10.8.0.3";
const LAN: &str = "10.8.0.3:192.0.2.129";

impl Pair {
    fn new() -> Self {
        let [node, speaker] = ["node", "speaker"].map(|label| Namespace::new(label).unwrap());
        link(
            End::new(&node, "eth0").address("192.0.2.1/30"),
            End::new(&speaker, "eth0").address("192.0.2.2/30"),
        )
        .unwrap();
        Self { node, speaker }
    }

    fn start(&self) -> GoBgp {
        let configuration = r#"
            [global.config]
              as = 64500
              router-id = "192.0.2.2"
            [[neighbors]]
              [neighbors.config]
                neighbor-address = "192.0.2.1"
                peer-as = 64500
                auth-password = "open sesame"
              [neighbors.graceful-restart.config]
                enabled = true
                restart-time = 1
              [neighbors.transport.config]
                passive-mode = true
              [[neighbors.afi-safis]]
                [neighbors.afi-safis.config]
                  afi-safi-name = "ls"
                [neighbors.afi-safis.mp-graceful-restart.config]
                  enabled = true
        "#;
        GoBgp::start(&self.speaker, configuration).unwrap()
    }

    /// Announces or withdraws one object of the OSPF instance 0.
    fn inject(&self, speaker: &GoBgp, what: &str, words: &str) {
        let line =
            format!("global rib {what} -a ls {words} protocol 3 identifier 0 local-asn 64500");
        let words: Vec<&str> = line.split_whitespace().collect();
        speaker.command(&self.speaker, &words).unwrap();
    }

    fn node(&self, speaker: &GoBgp, what: &str, id: &str, name: &str) {
        let name = if name.is_empty() { String::new() } else { format!(" node-name {name}") };
        self.inject(speaker, what, &format!("node local-igp-router-id {id}{name}"));
    }

    /// A feed that has learned A and B.
    fn two_routers(&self, speaker: &GoBgp) -> FeedStage {
        self.node(speaker, "add", A, "core-1");
        self.node(speaker, "add", B, "core-2");
        let stage = FeedStage::start(&self.node, &config("10m"), builder());
        stage.until("two routers", LIMIT, |known| known.builder.view().graph.routers().len() == 2);
        stage
    }

    fn link(&self, speaker: &GoBgp, what: &str, from: &str, to: &str, more: &str) {
        let words = format!(
            "link local-igp-router-id {from} remote-igp-router-id {to} remote-asn 64500 {more}"
        );
        self.inject(speaker, what, &words);
    }
}

fn config(hold: &str) -> Config {
    let speaker: BgpLsConfig = toml::from_str(&format!(
        r#"
        peer = "192.0.2.2"
        peer_as = 64500
        local_as = 64500
        password = "open sesame"
        hold_time = "9s"
        hold = "{hold}"
        "#
    ))
    .unwrap();
    assert_eq!(speaker.problems(), []);
    Config { bmp: None, bgp_ls: vec![speaker] }
}

fn id(text: &str) -> RouterId {
    text.parse().unwrap()
}

/// The best path between two routers.
fn path(known: &mut super::feed_stage::Known, from: &str, to: &str) -> Option<PathProperties> {
    let view = known.builder.view();
    let (from, to) = (view.graph.index(id(from))?, view.graph.index(id(to))?);
    view.tree(from).to(to)
}

fn builder() -> Builder {
    Builder::new(Options::default())
}

#[test]
fn the_graph_appears_changes_and_vanishes() {
    let pair = Pair::new();
    let speaker = pair.start();
    // One part is there before the session, the other comes later.
    let stage = pair.two_routers(&speaker);
    assert_eq!(stage.view().graph.routers()[0].name.as_deref(), Some("core-1"));
    assert_eq!(stage.feeds().reports().status()[0].state, State::Up);
    // 10 Gbit/s are 1.25e9 bytes a second; 2,500 microseconds are 2.5 ms.
    let link = "link-local-id 7 link-remote-id 8";
    let fast =
        format!("{link} max-link-bandwidth 1250000000 unidirectional-link-delay 2500 metric 10");
    pair.link(&speaker, "add", A, B, &fast);
    stage.until("the link", LIMIT, |known| path(known, A, B).is_some());
    let found = path(&mut stage.known(), A, B).unwrap();
    assert_eq!((found.min_bandwidth, found.latency, found.weight), (10_000.0, 2.5, 10));
    assert_eq!(path(&mut stage.known(), B, A), None, "each direction is advertised by itself");
    // A third router, over a network between routers, and a prefix at it.
    pair.node(&speaker, "add", C, "");
    for router in [B, C] {
        pair.link(&speaker, "add", router, LAN, "metric 5 ipv4-interface-address 192.0.2.129");
        pair.link(&speaker, "add", LAN, router, "");
    }
    pair.inject(
        &speaker,
        "add",
        &format!("prefixv6 local-igp-router-id {C} ip-reachability-info 2001:db8:3::/48"),
    );
    stage.until("the path over the network", LIMIT, |known| {
        path(known, A, C).is_some_and(|path| (path.weight, path.internal_hops) == (15, 2))
    });
    stage.until("the prefix", LIMIT, |known| {
        let view = known.builder.view();
        let source = view.source("2001:db8:3::1".parse().unwrap());
        source.is_some() && source == view.graph.index(id(C))
    });
    // The link becomes slower, which is seen within a second; then it goes, then its end.
    pair.link(&speaker, "add", A, B, &fast.replace("metric 10", "metric 30"));
    stage.until("the higher metric", SECOND, |known| {
        path(known, A, B).is_some_and(|path| path.weight == 30)
    });
    pair.link(&speaker, "del", A, B, link);
    stage.until("the link's end", SECOND, |known| path(known, A, B).is_none());
    pair.node(&speaker, "del", A, "");
    stage.until("the router's end", SECOND, |known| {
        known.builder.view().graph.index(id(A)).is_none()
    });
    let status = stage.feeds().reports().status().remove(0);
    assert_eq!((status.errors, status.malformed, status.refused), (0, 0, 0), "{status:#?}");
}

#[test]
fn a_speaker_that_dies_keeps_its_last_state_for_the_hold_time() {
    let pair = Pair::new();
    let speaker = pair.start();
    let mut stage = pair.two_routers(&speaker);
    drop(speaker);
    stage.until("the end of the session", LIMIT, |known| {
        matches!(known.news.last(), Some((_, News::Down(_))))
    });
    assert_eq!(stage.feeds().reports().status()[0].state, State::Stale);
    assert_eq!(stage.view().graph.routers().len(), 2);
    // It comes back and knows one of the two: the other goes at its End-of-RIB.
    let speaker = pair.start();
    pair.node(&speaker, "add", B, "core-2");
    stage.until("the session's return", LIMIT, |known| {
        matches!(known.news.last(), Some((_, News::Up)))
    });
    stage.until("the end of what it does not know", LIMIT, |known| {
        known.builder.view().graph.routers().iter().map(|router| router.id).eq([id(B)])
    });
    // What changes in the configuration begins again; a short hold time ends soon.
    stage.reload(&pair.node, &config("100ms"));
    stage.until("the router once more, over a third session", LIMIT, |known| {
        let sessions = known.news.iter().filter(|(_, news)| matches!(news, News::Up)).count();
        sessions == 3 && known.builder.view().graph.index(id(B)).is_some()
    });
    drop(speaker);
    stage.until("the end of the hold time", LIMIT, |known| {
        matches!(known.news.last(), Some((_, News::Dropped(_))))
    });
    assert_eq!(stage.view().graph.routers().len(), 0);
    assert_eq!(stage.feeds().reports().status()[0].state, State::Dropped);
    stage.stop();
}
