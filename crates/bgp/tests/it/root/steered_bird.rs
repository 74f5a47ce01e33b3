//! BIRD steered through its control socket, and what its neighbour sees of it, in namespaces.

use super::common::{ANNOUNCED, LEAVING, LIMIT, PREFIXES, Pair, route, wait_for_routes};
use bgp::{Advertised, Desired, State};
use std::{os::unix::fs::symlink, path::Path};
use testbed::{Bird, wait_until};

/// The node's own BIRD.
fn configuration() -> String {
    testbed::bird::steered("2001:db8:1::30")
}

fn upstream(socket: &Path, more: &str) -> String {
    format!(
        r#"
        name = "bird"
        type = "bird"
        socket = {socket:?}
        protocol = ["nigh4", "nigh6"]
        export = "isp"
        {more}
        "#
    )
}

const GRACEFUL: &str = r#"graceful_shutdown = ["nigh4_gshut", "nigh6_gshut"]"#;

#[test]
fn announcing_warning_and_withdrawing_reach_the_neighbour() {
    let pair = Pair::new();
    let router = pair.bird("");
    let steered = Bird::start(&pair.node, &configuration()).unwrap();
    let node = pair.start(&upstream(&steered.socket(), GRACEFUL));
    node.until("BIRD's session", |seen| seen.state == State::Established);
    assert_eq!(node.announcer().observed().advertised, Advertised::Nothing);
    node.announcer().set(ANNOUNCED);
    node.until("the export read back", |seen| seen.advertised.is(ANNOUNCED));
    wait_for_routes(&router, true);
    node.announcer().set(LEAVING);
    node.until("the warning read back", |seen| seen.advertised.is(LEAVING));
    wait_until("GRACEFUL_SHUTDOWN at the neighbour", LIMIT, || {
        PREFIXES.iter().all(|prefix| route(&router, prefix).contains("(65535,0)"))
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
    let pair = Pair::new();
    let router = pair.bird("");
    // Each BIRD has a socket of its own, so the configured path is a link to it.
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("bird.ctl");
    let steered = Bird::start(&pair.node, &configuration()).unwrap();
    symlink(steered.socket(), &socket).unwrap();
    let node = pair.announce(&upstream(&socket, GRACEFUL));
    wait_for_routes(&router, true);
    drop(steered);
    node.until("the loss", |seen| seen.advertised == Advertised::Unknown);
    let problem = node.announcer().observed().problem.unwrap();
    assert!(problem.contains("control socket"), "{problem}");
    wait_for_routes(&router, false);
    let steered = Bird::start(&pair.node, &configuration()).unwrap();
    std::fs::remove_file(&socket).unwrap();
    symlink(steered.socket(), &socket).unwrap();
    node.until("the export read back", |seen| seen.advertised.is(ANNOUNCED));
    wait_for_routes(&router, true);
}

#[test]
fn a_mistake_in_bird_conf_is_reported() {
    let pair = Pair::new();
    let steered = Bird::start(&pair.node, &configuration()).unwrap();
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
    reports(&good.replace("isp", "nope"), refused, Desired::Withdrawn);
    // There is no neighbour here.
    reports(&good, "BIRD's session is", ANNOUNCED);
    // A filter that lets nothing out.
    let router = pair.bird("");
    drop(steered);
    let closed = configuration().replace("then accept", "then reject");
    let steered = Bird::start(&pair.node, &closed).unwrap();
    let text = upstream(&steered.socket(), "");
    reports(&text, "BIRD exports none of the prefixes to isp", ANNOUNCED);
    assert!(router.established("node"));
}

#[test]
fn without_a_protocol_for_it_the_warning_is_reported_missing() {
    let pair = Pair::new();
    let router = pair.bird("");
    let steered = Bird::start(&pair.node, &configuration()).unwrap();
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
