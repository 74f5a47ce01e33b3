//! A node whose routes are exported by a BIRD of its own, which the daemon steers.

use super::site::{
    BINARY, Core, LIMIT, SERVICE4, SERVICE6, answered, is_same_session, sections, status,
    stop_without_loss, upstream,
};
use serde_json::json;
use std::{path::Path, time::Duration};
use testbed::{Bird, Nigh, Pings, pings, wait_until};

/// BIRD beside node a.
fn steered(core: &Core) -> Bird {
    Bird::start(core.node(0), &testbed::bird::steered("2001:db8:29::2")).unwrap()
}

/// The configuration of node a with that BIRD as its upstream.
fn with(bird: &Bird) -> String {
    let text = sections(0, "");
    let (before, _) = text.split_once("[[anycast.upstream]]").unwrap();
    format!(
        "{before}[[anycast.upstream]]\nname = \"bird\"\ntype = \"bird\"\nsocket = {:?}\n\
         protocol = [\"nigh4\", \"nigh6\"]\n\
         graceful_shutdown = [\"nigh4_gshut\", \"nigh6_gshut\"]\nexport = \"isp\"\n",
        bird.socket()
    )
}

#[test]
fn a_steered_bird_announces_drains_and_stops_without_a_loss() {
    let core = Core::new();
    let bird = steered(&core);
    wait_until("BIRD's session", LIMIT, || bird.established("isp")).unwrap();
    assert_eq!(core.routes(0), [false; 2], "announced before a probe has seen it answer");
    let mut a = Nigh::start(core.node(0), Path::new(BINARY), "a", &with(&bird)).unwrap();
    let b = core.start(1, "");
    core.await_routes(0, true);
    core.await_routes(1, true);
    wait_until("the read-back", LIMIT, || upstream(&a)["advertised"] == "all").unwrap();
    assert_eq!(a.http(core.node(0), "/healthz").unwrap().0, 200);
    let running = [SERVICE4, SERVICE6]
        .map(|address| Pings::start(&core.client, address, Duration::from_millis(10)).unwrap());
    wait_until("pings at node a", LIMIT, || answered(&a) > 100).unwrap();
    assert_eq!(answered(&b), 0);
    let session = || core.bird.query("show protocols a").unwrap();
    let opened = session();

    std::thread::scope(|scope| {
        let draining = scope.spawn(|| a.control(&json!({"do": "drain"})));
        wait_until("the warning at the router", LIMIT, || {
            let route = core.bird.query("show route all 50.0.0.0/8 protocol a");
            route.is_ok_and(|route| route.contains("(65535,0)"))
        })
        .unwrap();
        draining.join().unwrap().unwrap();
    });
    let now = status(&a);
    assert_eq!((&now["drain"], &now["healthy"]), (&json!("drained"), &json!(true)), "{now}");
    assert_eq!(upstream(&a)["advertised"], "nothing");
    assert_eq!(core.routes(0), [false; 2]);
    let at_a = answered(&a);
    let at_b = answered(&b);
    wait_until("more pings at node b", LIMIT, || answered(&b) > at_b + 100).unwrap();
    assert_eq!(answered(&a), at_a, "a drained node still gets traffic");

    a.control(&json!({"do": "undrain"})).unwrap();
    core.await_routes(0, true);
    wait_until("pings at node a again", LIMIT, || answered(&a) > at_a + 100).unwrap();
    for pings in running {
        let replies = pings.finish().unwrap();
        assert_eq!(pings::lost(&replies), 0, "of {}", replies.len());
    }
    // A fault is withdrawn through BIRD as well, and what recovers comes back.
    core.router.sysctl(&[("ipv4.ip_forward", "0")]).unwrap();
    core.await_routes(0, false);
    core.router.sysctl(&[("ipv4.ip_forward", "1")]).unwrap();
    core.await_routes(0, true);

    stop_without_loss(&core, &mut a);
    assert!(is_same_session(&session(), &opened), "BIRD's session is not ours to end");
}

#[test]
fn a_killed_daemon_leaves_a_route_that_its_next_start_takes_back() {
    let core = Core::new();
    let bird = steered(&core);
    let mut a = Nigh::start(core.node(0), Path::new(BINARY), "a", &with(&bird)).unwrap();
    core.await_routes(0, true);
    a.process().kill();
    // BIRD does not notice: this is the price of an upstream that outlives the daemon.
    assert_eq!(core.routes(0), [true; 2]);
    // A daemon that cannot serve takes the routes back at once.
    let text = with(&bird).replace("[\"eth0\"]", "[\"eth9\"]");
    a.restart(core.node(0), Path::new(BINARY), "a", &text).unwrap();
    core.await_routes(0, false);
    assert_eq!(upstream(&a)["advertised"], "nothing");
}

/// The worker's panic, and that of the task that steers BIRD. A daemon without another job ends after it.
#[cfg(debug_assertions)]
#[test]
fn a_steered_bird_is_withdrawn_by_a_panic() {
    for point in ["echo-worker", "echo-bird"] {
        let core = Core::new();
        let bird = steered(&core);
        let (node, binary) = (core.node(0), Path::new(BINARY));
        let mut a = Nigh::start_to_panic(node, binary, "a", &with(&bird)).unwrap();
        core.await_routes(0, true);
        a.panic(point).unwrap();
        core.await_routes(0, false);
        wait_until("the end", LIMIT, || a.process().ended().is_some()).unwrap();
        assert_eq!(a.process().ended().unwrap().code(), Some(1), "{}", a.wrote());
        assert!(a.wrote().contains("all jobs have failed"), "{}", a.wrote());
        assert!(bird.established("isp"), "BIRD's session is not ours to end");
    }
}
