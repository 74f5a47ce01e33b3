//! The embedded session against BIRD 2 in namespaces.

use super::common::{
    ANNOUNCED, LEAVING, LIMIT, PREFIXES, Pair, bird, route, session, wait_for_routes,
};
use bgp::{Advertised, Desired, State, bfd::Listener};
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};
use testbed::{Bird, wait_until};

#[test]
fn both_families_arrive_with_every_attribute_over_one_session() {
    let pair = Pair::new();
    let router = pair.bird("");
    let node = pair.start(&session(
        r#"
        communities = ["12:100", "no-export", "12:99"]
        large_communities = ["4200000000:1:1"]
        prepend = 2
        med = 50
        "#,
    ));
    node.until("an established session", |seen| seen.state == State::Established);
    assert_eq!(node.announcer().observed().advertised, Advertised::Nothing);
    node.announcer().set(ANNOUNCED);
    node.until("the announcement", |seen| seen.advertised.is(ANNOUNCED));
    wait_for_routes(&router, true);
    for (prefix, hop) in PREFIXES.into_iter().zip(["172.16.0.30", "2001:db8:1::30"]) {
        let route = route(&router, prefix);
        for line in [
            "BGP.origin: IGP",
            "BGP.as_path: 12 12 12",
            &format!("BGP.next_hop: {hop}"),
            "BGP.med: 50",
            "BGP.community: (12,99) (12,100) (65535,65281)",
            "BGP.large_community: (4200000000, 1, 1)",
        ] {
            assert!(route.contains(line), "{line} in {route}");
        }
    }
    // The neighbour asks for everything again (RFC 2918) and gets it.
    let before = node.announcer().observed().counters.updates_out;
    router.query("reload in node").unwrap();
    node.until("the routes sent again", |seen| seen.counters.updates_out >= before + 4);
    wait_for_routes(&router, true);
}

#[test]
fn a_drain_warns_first_and_then_withdraws() {
    let pair = Pair::new();
    let router = pair.bird("");
    let node = pair.announce(&session(r#"communities = ["12:100"]"#));
    wait_for_routes(&router, true);
    node.announcer().set(LEAVING);
    wait_until("GRACEFUL_SHUTDOWN", LIMIT, || {
        PREFIXES
            .iter()
            .all(|prefix| route(&router, prefix).contains("BGP.community: (12,100) (65535,0)"))
    })
    .unwrap();
    node.until("the same seen here", |seen| seen.advertised.is(LEAVING));
    node.announcer().set(Desired::Withdrawn);
    wait_for_routes(&router, false);
    assert!(router.established("node"), "a withdrawal does not end the session");
    node.until("the same seen here", |seen| seen.advertised.is(Desired::Withdrawn));
    node.announcer().set(ANNOUNCED);
    wait_for_routes(&router, true);
    assert!(!route(&router, PREFIXES[0]).contains("65535"), "the warning is gone");
    // A clean stop withdraws everything and gives the reason.
    node.stop();
    wait_for_routes(&router, false);
    let state = router.query("show protocols all node").unwrap();
    assert!(state.contains("Received: Administrative shutdown"), "{state}");
}

#[test]
fn only_the_difference_of_the_prefixes_is_sent() {
    let pair = Pair::new();
    let router = pair.bird("");
    let node = pair.announce(&session(""));
    wait_for_routes(&router, true);
    let before = node.announcer().observed();
    let prefixes = ["50.0.0.0/8", "50.60.0.0/16"].map(|prefix| prefix.parse().unwrap());
    node.announcer().set_prefixes(prefixes.to_vec());
    wait_until("the new prefixes", LIMIT, || {
        route(&router, "50.60.0.0/16").contains("50.60") && route(&router, PREFIXES[1]).is_empty()
    })
    .unwrap();
    node.until("the new state", |seen| seen.advertised.is(ANNOUNCED));
    let after = node.announcer().observed();
    assert_eq!(after.counters.established, 1, "the session stayed up");
    assert_eq!(after.counters.updates_out, before.counters.updates_out + 2);
}

#[test]
fn other_attributes_need_no_new_session() {
    let pair = Pair::new();
    let router = pair.bird("");
    let mut node = pair.announce(&session(r#"communities = ["12:100"]"#));
    wait_for_routes(&router, true);
    let before = node.announcer().observed();
    let other =
        "communities = [\"12:200\"]\nlarge_communities = [\"12:1:1\"]\nprepend = 1\nmed = 7";
    assert!(node.adopt(&session(other)));
    wait_until("the new attributes", LIMIT, || {
        PREFIXES.iter().all(|prefix| {
            let route = route(&router, prefix);
            let new = ["(12,200)", "(12, 1, 1)", "as_path: 12 12", "med: 7"];
            new.iter().all(|text| route.contains(text)) && !route.contains("(12,100)")
        })
    })
    .unwrap();
    let after = node.announcer().observed();
    assert_eq!((after.counters.established, after.counters.lost), (1, 0), "the session stayed up");
    assert_eq!(after.counters.updates_out, before.counters.updates_out + 2, "one for each family");
    // What the OPEN or the connection depends on does.
    assert!(!node.adopt(&session("ttl_security = true")));
    assert!(!node.adopt(&session("hold_time = \"30s\"")));
}

#[test]
fn the_right_password_opens_the_session_and_the_wrong_one_does_not() {
    let pair = Pair::new();
    let router = pair.bird(r#"password "right";"#);
    let node = pair.announce(&session(r#"password = "wrong""#));
    // The router drops what is signed wrongly without a word.
    node.until("a failed attempt", |seen| {
        seen.problem.as_ref().is_some_and(|problem| problem.contains("does not answer"))
    });
    assert_eq!(node.announcer().observed().counters.established, 0);
    node.stop();
    let _node = pair.announce(&session(r#"password = "right""#));
    wait_for_routes(&router, true);
}

/// One value of /proc/net/netstat: names and values are in pairs of lines.
fn counter(netstat: &str, name: &str) -> u64 {
    let lines: Vec<Vec<&str>> =
        netstat.lines().map(|line| line.split_whitespace().collect()).collect();
    lines
        .chunks_exact(2)
        .find_map(|pair| {
            let column = pair[0].iter().position(|title| *title == name)?;
            pair[1].get(column)?.parse().ok()
        })
        .unwrap_or_else(|| panic!("{name} is in /proc/net/netstat"))
}

#[test]
fn ttl_security_refuses_a_neighbour_without_it() {
    let pair = Pair::new();
    let plain = pair.bird("");
    let node = pair.announce(&session("ttl_security = true"));
    // BIRD's answer to the connection has TTL 255 in any case, what follows has 1: the kernel drops it.
    wait_until("segments dropped for their TTL", LIMIT, || {
        let netstat = pair.node.check(&["cat", "/proc/net/netstat"]).unwrap();
        counter(&netstat, "TCPMinTTLDrop") > 0
    })
    .unwrap();
    assert_eq!(node.announcer().observed().counters.messages_in, 0);
    drop((plain, node));
    let secure = pair.bird("ttl security yes;");
    let _node = pair.announce(&session("ttl_security = true"));
    wait_for_routes(&secure, true);
}

#[test]
fn both_families_arrive_over_ipv6_with_password_and_ttl_security() {
    let pair = Pair::new();
    let secured = r#"password "right"; ttl security yes;"#;
    let configuration = bird(secured)
        .replace("local 172.16.0.29 ", "local 2001:db8:1::29 ")
        .replace("neighbor 172.16.0.30 ", "neighbor 2001:db8:1::30 ");
    let router = Bird::start(&pair.router, &configuration).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let password = folder.path().join("password");
    std::fs::write(&password, "right\n").unwrap();
    let _node = pair.announce(&format!(
        r#"
        name = "isp-a"
        type = "bgp"
        peer = "2001:db8:1::29"
        peer_as = 4
        local_as = 12
        router_id = "172.16.0.30"
        next_hop4 = "172.16.0.30"
        password_file = {password:?}
        ttl_security = true
        "#
    ));
    wait_for_routes(&router, true);
    for (prefix, hop) in PREFIXES.into_iter().zip(["172.16.0.30", "2001:db8:1::30"]) {
        let route = route(&router, prefix);
        assert!(route.contains(&format!("BGP.next_hop: {hop}")), "{route}");
    }
}

#[test]
fn inside_one_as_the_path_is_empty() {
    let pair = Pair::new();
    let router = Bird::start(&pair.router, &bird("").replace("as 4;", "as 12;")).unwrap();
    let _node = pair.announce(&session("").replace("peer_as = 4", "peer_as = 12"));
    wait_for_routes(&router, true);
    for prefix in PREFIXES {
        let route = route(&router, prefix);
        assert!(route.contains("BGP.local_pref: 100"), "{route}");
        assert!(!route.contains("BGP.as_path: 12"), "{route}");
    }
}

#[test]
fn a_neighbour_that_takes_one_family_gets_one_and_the_other_is_reported() {
    let pair = Pair::new();
    let only4 = bird("").replace("ipv6 { import all; export none; };", "");
    let router = Bird::start(&pair.router, &only4).unwrap();
    let node = pair.announce(&session(""));
    node.until("a part of the announcement", |seen| seen.advertised == Advertised::Partly);
    assert!(route(&router, PREFIXES[0]).contains(PREFIXES[0]));
    let problem = node.announcer().observed().problem.unwrap();
    assert!(problem.contains("IPv6 prefixes are not advertised"), "{problem}");
}

#[test]
fn nothing_is_learned_from_a_neighbour_that_announces() {
    let pair = Pair::new();
    let routes: String = (0..100).map(|n| format!("route 10.{n}.0.0/16 blackhole;\n")).collect();
    let configuration = bird("").replace("export none", "export all")
        + &format!("protocol static {{ ipv4; {routes} }}");
    let router = Bird::start(&pair.router, &configuration).unwrap();
    let node = pair.announce(&session(""));
    wait_for_routes(&router, true);
    node.until("discarded updates", |seen| seen.counters.updates_discarded > 0);
    let seen = node.announcer().observed();
    assert_eq!(seen.routes.len(), PREFIXES.len());
    assert!(seen.advertised.is(ANNOUNCED) && seen.problem.is_none(), "{seen:?}");
    let table = pair.node.check(&["ip", "route"]).unwrap();
    assert!(!table.contains("10."), "{table}");
}

#[test]
fn a_neighbour_that_restarts_gets_everything_again() {
    let pair = Pair::new();
    let router = pair.bird("");
    let node = pair.announce(&session(""));
    wait_for_routes(&router, true);
    drop(router);
    node.until("the loss", |seen| seen.state != State::Established);
    assert_eq!(node.announcer().observed().advertised, Advertised::Nothing);
    let router = pair.bird("");
    wait_for_routes(&router, true);
    let counters = node.announcer().observed().counters;
    assert_eq!((counters.established, counters.lost), (2, 1));
}

#[test]
fn an_as_number_that_differs_is_refused_by_name() {
    let pair = Pair::new();
    let router = pair.bird("");
    let node = pair.start(&session("").replace("peer_as = 4", "peer_as = 5"));
    node.until("the refusal", |seen| {
        seen.problem.as_ref().is_some_and(|problem| problem.contains("Bad Peer AS (2/2)"))
    });
    wait_until("the refusal at BIRD", LIMIT, || {
        let state = router.query("show protocols all node").unwrap_or_default();
        state.contains("Received: Bad peer AS")
    })
    .unwrap();
}

/// How long an order takes to reach the socket, and a withdrawal to reach the neighbour's table.
#[test]
fn an_order_is_on_the_wire_at_once() {
    let pair = Pair::new();
    let router = pair.bird("");
    let node = pair.announce(&session(""));
    wait_for_routes(&router, true);
    let mut times = Vec::new();
    for round in 0..200 {
        let desired = if round % 2 == 0 { Desired::Withdrawn } else { ANNOUNCED };
        let before = Instant::now();
        node.announcer().set(desired);
        node.until("the order carried out", |seen| {
            seen.advertised.is(desired) && seen.written.is_some_and(|written| written >= before)
        });
        times.push(node.announcer().observed().written.unwrap() - before);
    }
    times.sort_unstable();
    let slowest = times[times.len() - 1];
    println!("order to UPDATE written, 200 times: median {:?}, most {slowest:?}", times[100]);
    node.announcer().set(Desired::Withdrawn);
    println!("order to route gone at BIRD: {:?}", wait_for_routes(&router, false));
    assert!(slowest < LIMIT);
}

/// The environment variable that turns [`killed_process`] into the process that is killed.
const CHILD: &str = "NIGH_BGP_TEST_CHILD";

#[test]
fn a_killed_node_is_withdrawn_at_once() {
    let pair = Pair::new();
    let router = pair.bird("");
    let folder = tempfile::tempdir().unwrap();
    let file: PathBuf = folder.path().join("upstream.toml");
    // With a hold time that cannot be what ends the session here.
    std::fs::write(&file, session(r#"hold_time = "300s""#)).unwrap();
    let mut command = testbed::itself(module_path!(), "killed_process");
    command.env(CHILD, &file);
    let mut child = pair.node.start(command).unwrap();
    wait_for_routes(&router, true);
    let before = Instant::now();
    child.kill();
    wait_for_routes(&router, false);
    println!("kill -9 to routes gone at BIRD: {:?}", before.elapsed());
    assert!(before.elapsed() < LIMIT);
}

/// Announces until it is killed, when [`a_killed_node_is_withdrawn_at_once`] has started it.
#[test]
#[ignore = "another test starts it"]
fn killed_process() {
    let file = std::env::var_os(CHILD).unwrap();
    let upstream = toml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let prefixes = PREFIXES.iter().map(|prefix| prefix.parse().unwrap()).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let announcer = bgp::Announcer::start(&upstream, prefixes, &Listener::default()).unwrap();
        announcer.set(ANNOUNCED);
        // Bounded, in case the test that should kill it is itself killed.
        tokio::time::sleep(Duration::from_secs(60)).await;
    });
}
