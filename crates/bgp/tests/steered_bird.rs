//! BIRD steered through its control socket, and what its neighbour sees of it, in namespaces.

mod common;

use bgp::{Advertised, Desired, State};
use common::{LIMIT, PREFIXES, Pair, bird};
use std::{os::unix::fs::symlink, path::Path};
use testbed::{Bird, wait_until};

const ANNOUNCED: Desired = Desired::Announced { graceful_shutdown: false };
const LEAVING: Desired = Desired::Announced { graceful_shutdown: true };

/// The node's own BIRD: AS 12, with the static protocols of docs/decisions/031-bird.md.
const STEERED: &str = r#"
router id 172.16.0.30;
protocol device {}
protocol direct { ipv4; ipv6; }
protocol static nigh4 { disabled; ipv4; route 50.0.0.0/8 blackhole; }
protocol static nigh6 { disabled; ipv6; route 2001:db8:50::/48 blackhole; }
protocol static nigh4_gshut { disabled; ipv4 { preference 250; }; route 50.0.0.0/8 blackhole; }
protocol static nigh6_gshut { disabled; ipv6 { preference 250; }; route 2001:db8:50::/48 blackhole; }
filter to_isp_a {
  if proto ~ "nigh?_gshut" then bgp_community.add((65535, 0));
  if proto ~ "nigh*" then accept;
  reject;
}
protocol bgp isp_a {
  local 172.16.0.30 as 12;
  neighbor 172.16.0.29 as 4;
  connect delay time 1;
  connect retry time 1;
  error wait time 1, 2;
  ipv4 { import none; export filter to_isp_a; };
  ipv6 { import none; export filter to_isp_a; next hop address 2001:db8:1::30; };
}
"#;

fn upstream(socket: &Path, more: &str) -> String {
    format!(
        r#"
        name = "bird"
        type = "bird"
        socket = {socket:?}
        protocol = ["nigh4", "nigh6"]
        export = "isp_a"
        {more}
        "#
    )
}

const GRACEFUL: &str = r#"graceful_shutdown = ["nigh4_gshut", "nigh6_gshut"]"#;

/// Waits until the neighbour has both prefixes, or neither.
fn wait_for_routes(router: &Bird, there: bool) {
    wait_until("the routes at the neighbour", LIMIT, || {
        PREFIXES.iter().all(|prefix| {
            let route = router.query(&format!("show route {prefix}")).unwrap_or_default();
            route.contains(prefix) == there
        })
    })
    .unwrap();
}

#[test]
fn announcing_warning_and_withdrawing_reach_the_neighbour() {
    if !testbed::require_root() {
        return;
    }
    let pair = Pair::new();
    let router = Bird::start(&pair.router, &bird("")).unwrap();
    let steered = Bird::start(&pair.node, STEERED).unwrap();
    let node = pair.start(&upstream(&steered.socket(), GRACEFUL));
    node.until("BIRD's session", |seen| seen.state == State::Established);
    assert_eq!(node.announcer().observed().advertised, Advertised::Nothing);
    node.announcer().set(ANNOUNCED);
    node.until("the export read back", |seen| seen.advertised.is(ANNOUNCED));
    wait_for_routes(&router, true);
    node.announcer().set(LEAVING);
    node.until("the warning read back", |seen| seen.advertised.is(LEAVING));
    wait_until("GRACEFUL_SHUTDOWN at the neighbour", LIMIT, || {
        PREFIXES.iter().all(|prefix| {
            let route = router.query(&format!("show route {prefix} all")).unwrap_or_default();
            route.contains("(65535,0)")
        })
    })
    .unwrap();
    node.announcer().set(ANNOUNCED);
    node.until("the end of the warning", |seen| seen.advertised.is(ANNOUNCED));
    node.announcer().set(Desired::Withdrawn);
    node.until("the withdrawal read back", |seen| seen.advertised == Advertised::Nothing);
    wait_for_routes(&router, false);
    node.announcer().set(ANNOUNCED);
    wait_for_routes(&router, true);
    assert_eq!(node.announcer().observed().problem, None);
    node.stop();
    wait_for_routes(&router, false);
}

#[test]
fn a_bird_that_restarts_is_steered_again() {
    if !testbed::require_root() {
        return;
    }
    let pair = Pair::new();
    let router = Bird::start(&pair.router, &bird("")).unwrap();
    // Each BIRD has a socket of its own, so the configured path is a link to it.
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("bird.ctl");
    let steered = Bird::start(&pair.node, STEERED).unwrap();
    symlink(steered.socket(), &socket).unwrap();
    let node = pair.start(&upstream(&socket, GRACEFUL));
    node.announcer().set(ANNOUNCED);
    wait_for_routes(&router, true);
    drop(steered);
    node.until("the loss", |seen| seen.advertised == Advertised::Unknown);
    let problem = node.announcer().observed().problem.unwrap();
    assert!(problem.contains("control socket"), "{problem}");
    wait_for_routes(&router, false);
    let steered = Bird::start(&pair.node, STEERED).unwrap();
    std::fs::remove_file(&socket).unwrap();
    symlink(steered.socket(), &socket).unwrap();
    node.until("the export read back", |seen| seen.advertised.is(ANNOUNCED));
    wait_for_routes(&router, true);
}

#[test]
fn a_mistake_in_bird_conf_is_reported() {
    if !testbed::require_root() {
        return;
    }
    let pair = Pair::new();
    let steered = Bird::start(&pair.node, STEERED).unwrap();
    let reports = |text: &str, part: &str, desired: Desired| {
        let node = pair.start(text);
        node.announcer().set(desired);
        node.until(part, |seen| {
            seen.problem.as_ref().is_some_and(|problem| problem.contains(part))
        });
    };
    let socket = steered.socket();
    let good = upstream(&socket, "");
    let refused = "BIRD refuses `enable nope`";
    reports(&good.replace(r#""nigh4", "nigh6""#, r#""nope""#), refused, ANNOUNCED);
    let refused = "BIRD refuses `show protocols nope`";
    reports(&good.replace("isp_a", "nope"), refused, Desired::Withdrawn);
    // There is no neighbour here.
    reports(&good, "BIRD's session is", ANNOUNCED);
    // A filter that lets nothing out.
    let router = Bird::start(&pair.router, &bird("")).unwrap();
    drop(steered);
    let closed = STEERED.replace("then accept", "then reject");
    let steered = Bird::start(&pair.node, &closed).unwrap();
    let text = upstream(&steered.socket(), "");
    reports(&text, "BIRD exports none of the prefixes to isp_a", ANNOUNCED);
    assert!(router.established("node"));
}

#[test]
fn without_a_protocol_for_it_the_warning_is_reported_missing() {
    if !testbed::require_root() {
        return;
    }
    let pair = Pair::new();
    let router = Bird::start(&pair.router, &bird("")).unwrap();
    let steered = Bird::start(&pair.node, STEERED).unwrap();
    let node = pair.start(&upstream(&steered.socket(), ""));
    node.announcer().set(LEAVING);
    wait_for_routes(&router, true);
    node.until("the report", |seen| {
        seen.problem
            .as_ref()
            .is_some_and(|problem| problem.contains("GRACEFUL_SHUTDOWN is not sent"))
    });
    assert!(node.announcer().observed().advertised.is(ANNOUNCED));
}
