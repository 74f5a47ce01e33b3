//! Drains and reloads lose nothing: pings run through them, and another node takes over.

use super::site::{
    BINARY, Core, LIMIT, SERVICE4, SERVICE6, answered, is_same_session, sections, status,
    stop_without_loss, upstream,
};
use serde_json::json;
use std::{
    path::Path,
    time::{Duration, Instant},
};
use testbed::{Nigh, Pings, pings, wait_until};

#[test]
fn a_drain_and_its_reversal_lose_nothing() {
    let core = Core::new();
    let text = sections(0, "").replace("drain_timeout = \"10s\"", "drain_timeout = \"60s\"");
    let a = Nigh::start(core.node(0), Path::new(BINARY), "node-a", &text).unwrap();
    let b = core.start(1, "");
    core.await_routes(0, true);
    core.await_routes(1, true);
    let running = [SERVICE4, SERVICE6]
        .map(|address| Pings::start(&core.client, address, Duration::from_millis(10)).unwrap());
    wait_until("pings at node a", LIMIT, || answered(&a) > 100).unwrap();
    assert_eq!(answered(&b), 0);

    let begun = Instant::now();
    a.control(&json!({"do": "drain"})).unwrap();
    let took = begun.elapsed();
    // Twice quiet: the routers moved on GRACEFUL_SHUTDOWN, before half of the timeout was over.
    assert!((Duration::from_secs(1)..Duration::from_secs(30)).contains(&took), "{took:?}");
    let now = status(&a);
    assert_eq!((&now["drain"], &now["healthy"]), (&json!("drained"), &json!(true)), "{now}");
    assert_eq!(upstream(&a)["advertised"], "nothing");
    assert_eq!(a.http(core.node(0), "/healthz").unwrap().0, 200);
    assert_eq!(core.routes(0), [false; 2]);
    let (at_a, at_b) = (answered(&a), answered(&b));
    // A busy machine sends fewer pings in that time.
    assert!(at_b > 20, "node b answered {at_b}");
    wait_until("more pings at node b", LIMIT, || answered(&b) > at_b + 100).unwrap();
    assert_eq!(answered(&a), at_a, "a drained node still gets traffic");

    a.control(&json!({"do": "undrain"})).unwrap();
    core.await_routes(0, true);
    wait_until("pings at node a again", LIMIT, || answered(&a) > at_a + 100).unwrap();
    for pings in running {
        let replies = pings.finish().unwrap();
        assert!(replies.len() > 150, "{}", replies.len());
        assert_eq!(pings::lost(&replies), 0, "of {}", replies.len());
    }
}

#[test]
fn an_undrain_in_the_middle_of_a_drain_reverses_it() {
    let core = Core::new();
    let a = core.start(0, "");
    core.await_routes(0, true);
    // The only node: arrivals do not end, so the warning lasts for half of the time.
    let running = Pings::start(&core.client, SERVICE4, Duration::from_millis(10)).unwrap();
    std::thread::scope(|scope| {
        let draining = scope.spawn(|| a.control(&json!({"do": "drain"})));
        wait_until("the warning", LIMIT, || upstream(&a)["advertised"] == "all, GRACEFUL_SHUTDOWN")
            .unwrap();
        let warned = core.bird.query("show route all 50.0.0.0/8").unwrap();
        assert!(warned.contains("(65535,0)"), "{warned}");
        a.control(&json!({"do": "undrain"})).unwrap();
        let ended = draining.join().unwrap().unwrap_err().to_string();
        assert!(ended.contains("undrain"), "{ended}");
    });
    wait_until("the plain route", LIMIT, || upstream(&a)["advertised"] == "all").unwrap();
    let plain = core.bird.query("show route all 50.0.0.0/8").unwrap();
    assert!(!plain.contains("(65535,0)"), "{plain}");
    assert_eq!(status(&a)["drain"], "serving");
    assert_eq!(pings::lost(&running.finish().unwrap()), 0);
}

#[test]
fn a_drain_waits_for_quiet_also_where_the_kernel_answers() {
    let core = Core::new();
    let text = sections(0, "")
        .replace("[echo.limit]", "mode = \"kernel\"\n[echo.limit]")
        .replace("drain_timeout = \"10s\"", "drain_timeout = \"6s\"");
    let a = Nigh::start(core.node(0), Path::new(BINARY), "node-a", &text).unwrap();
    core.await_routes(0, true);
    // The only node: arrivals do not end, so the warning lasts for half of the time.
    let running = Pings::start(&core.client, SERVICE6, Duration::from_millis(10)).unwrap();
    wait_until("pings", LIMIT, || running.replies().len() > 50).unwrap();
    let begun = Instant::now();
    a.control(&json!({"do": "drain"})).unwrap();
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(3), "{took:?}");
    assert_eq!(status(&a)["drain"], "drained");
    running.finish().unwrap();
}

#[test]
fn a_stop_drains_first_and_leaves_no_route() {
    let core = Core::new();
    let (mut a, _b) = (core.start(0, ""), core.start(1, ""));
    core.await_routes(0, true);
    core.await_routes(1, true);
    stop_without_loss(&core, &mut a);
}

#[test]
fn a_reload_keeps_the_session_and_loses_nothing() {
    let core = Core::new();
    let a = core.start(0, "");
    core.await_routes(0, true);
    // "a   BGP   ---   up   22:35:45.895   Established": the time is that of the last change.
    let session = || core.bird.query("show protocols a").unwrap();
    let before = session();
    let running = Pings::start(&core.client, SERVICE4, Duration::from_millis(5)).unwrap();
    let has = |prefix: &str| {
        core.bird.query(&format!("show route {prefix}")).is_ok_and(|text| text.contains(prefix))
    };
    for round in 0..20 {
        let more = round % 2 == 0;
        let mut text = sections(0, if more { "interval = \"50ms\"" } else { "" });
        if more {
            text = text.replace("addresses = [", "addresses = [\"203.0.113.1\", ");
            text = text.replace("prefixes = [", "prefixes = [\"203.0.113.0/24\", ");
        }
        a.configure("a", &text).unwrap();
        a.control(&json!({"do": "reload"})).unwrap();
        wait_until("the other prefix", LIMIT, || has("203.0.113.0/24") == more).unwrap();
    }
    // Other attributes of the routes need no other session either.
    let text = sections(0, "").replace("local_as = 12", "local_as = 12\nprepend = 2");
    a.configure("a", &text).unwrap();
    a.control(&json!({"do": "reload"})).unwrap();
    wait_until("the longer path", LIMIT, || {
        let route = core.bird.query("show route all 50.0.0.0/8");
        route.is_ok_and(|route| route.contains("as_path: 12 12 12"))
    })
    .unwrap();
    assert!(is_same_session(&session(), &before), "the session was opened again");
    wait_until("replies", LIMIT, || running.replies().len() > 40).unwrap();
    let replies = running.finish().unwrap();
    assert_eq!(pings::lost(&replies), 0, "of {}", replies.len());
}
