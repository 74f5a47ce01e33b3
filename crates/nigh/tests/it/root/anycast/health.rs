//! What fails is withdrawn, what recovers is announced again, and what flaps is held.

use super::site::{
    BINARY, Core, LIMIT, SERVICE4, assert_withdrawal_in_order, sections, status, upstream,
};
use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};
use testbed::{Nigh, wait_until};

/// A round of checks a minute, longer than [`LIMIT`]: what is withdrawn within it was withdrawn because
/// of an event. `make bench-echo` measures how soon.
const RARELY: &str = "probe = \"program\"\ninterval = \"60s\"\nrise = 1";

/// The first failed check of a status, if any.
fn failed(status: &Value) -> Option<&str> {
    let checks = status["anycast"]["checks"].as_array().unwrap();
    checks.iter().find(|check| check["healthy"] == false).and_then(|check| check["name"].as_str())
}

/// Starts the daemon on node a for an interface beside the one of the session: when it is down, the
/// UPDATE can still be sent.
fn start_on_second_link(core: &Core, health: &str) -> Nigh {
    let node = core.node(0);
    node.check(&["ip", "link", "add", "eth1", "type", "veth", "peer", "name", "eth1p"]).unwrap();
    node.check(&["ip", "link", "set", "eth1", "up"]).unwrap();
    set_second_link(core, "up");
    Nigh::start(node, Path::new(BINARY), "node-a", &on_second_link(health)).unwrap()
}

fn on_second_link(health: &str) -> String {
    sections(0, health).replace("[\"eth0\"]", "[\"eth1\"]")
}

/// Gives a running daemon another configuration.
fn reload(nigh: &Nigh, sections: &str) {
    nigh.configure("node-a", sections).unwrap();
    nigh.control(&json!({"do": "reload"})).unwrap();
}

/// Sets the far end of that interface up or down.
fn set_second_link(core: &Core, state: &str) {
    core.node(0).check(&["ip", "link", "set", "eth1p", state]).unwrap();
}

#[test]
fn announced_while_the_probes_come_back() {
    let core = Core::new();
    let nigh = core.start(0, "");
    core.await_routes(0, true);
    wait_until("health", LIMIT, || nigh.http(core.node(0), "/healthz").unwrap().0 == 200).unwrap();
    let now = status(&nigh);
    assert_eq!(failed(&now), None, "{now}");
    for (i, name) in ["link:eth0", "program:eth0", "probe4:eth0", "probe6:eth0"].iter().enumerate()
    {
        assert_eq!(now["anycast"]["checks"][i]["name"], *name);
    }
    let metrics = nigh.http(core.node(0), "/metrics").unwrap().1;
    let line = "nigh_anycast_announced{prefix=\"50.0.0.0/8\",upstream=\"isp\"} 1";
    assert!(metrics.contains(line), "{metrics}");
    // The probe takes the real path: when the router no longer forwards, it does not come back.
    core.router.sysctl(&[("ipv4.ip_forward", "0")]).unwrap();
    core.await_routes(0, false);
    assert_eq!(failed(&status(&nigh)), Some("probe4:eth0"));
    assert_eq!(nigh.http(core.node(0), "/healthz").unwrap().0, 503);
    core.router.sysctl(&[("ipv4.ip_forward", "1")]).unwrap();
    core.await_routes(0, true);
}

#[test]
fn probes_come_back_also_where_answers_follow_the_routing_table() {
    let core = Core::new();
    core.node(0).forward().unwrap();
    let text = sections(0, "").replace("[echo.limit]", "return = \"fib\"\n[echo.limit]");
    let nigh = Nigh::start(core.node(0), Path::new(BINARY), "node-a", &text).unwrap();
    core.await_routes(0, true);
    let now = status(&nigh);
    assert_eq!(now["anycast"]["checks"][2]["name"], "probe4:eth0");
    assert_eq!(failed(&now), None, "{now}");
}

#[test]
fn a_detached_program_is_withdrawn_at_once() {
    let core = Core::new();
    let nigh = core.start(0, RARELY);
    core.await_routes(0, true);
    // A program that is held by a link cannot be taken off by `ip`.
    let off = core.node(0).run(&["ip", "link", "set", "dev", "eth0", "xdp", "off"], LIMIT).unwrap();
    assert!(!off.success() && core.routes(0) == [true; 2]);
    // bpftool lists the links of all namespaces; ours is the one of the interface's program.
    let json = |line: &[&str]| -> Value {
        serde_json::from_str(&core.node(0).check(line).unwrap()).unwrap()
    };
    let program = json(&["ip", "-j", "link", "show", "dev", "eth0"])[0]["xdp"]["prog"].clone();
    let links = json(&["bpftool", "-j", "link", "list"]);
    let mut links = links.as_array().unwrap().iter();
    let ours = links.find(|link| link["prog_id"] == program["id"]).unwrap();
    let id = ours["id"].to_string();
    core.node(0).check(&["bpftool", "link", "detach", "id", &id]).unwrap();
    core.await_routes(0, false);
    // The status follows each round of checks. The program is attached again, and the prefixes are
    // announced when the probes come back.
    reload(&nigh, &sections(0, ""));
    wait_until("the record", LIMIT, || !upstream(&nigh)["withdrawal"]["written"].is_null())
        .unwrap();
    let upstream = upstream(&nigh);
    assert!(upstream["withdrawal"]["fault"].as_str().unwrap().contains("program:eth0"));
    assert_withdrawal_in_order(&upstream);
    core.await_routes(0, true);
    assert_eq!(status(&nigh)["interfaces"][0]["mode"], "native");
}

#[test]
fn a_link_that_is_down_is_withdrawn_at_once() {
    let core = Core::new();
    let nigh = start_on_second_link(&core, RARELY);
    core.await_routes(0, true);
    set_second_link(&core, "down");
    core.await_routes(0, false);
    // The status follows each round of checks.
    reload(&nigh, &on_second_link("probe = \"program\""));
    wait_until("the record", LIMIT, || !upstream(&nigh)["withdrawal"]["written"].is_null())
        .unwrap();
    assert_withdrawal_in_order(&upstream(&nigh));
    assert_eq!(failed(&status(&nigh)), Some("link:eth1"));
    set_second_link(&core, "up");
    core.await_routes(0, true);
}

#[test]
fn a_command_that_fails_is_withdrawn() {
    let core = Core::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("healthy");
    fs::write(&file, "").unwrap();
    let command = format!("commands = [[\"/usr/bin/test\", \"-e\", \"{}\"]]", file.display());
    let nigh = core.start(0, &command);
    core.await_routes(0, true);
    fs::remove_file(&file).unwrap();
    core.await_routes(0, false);
    let now = status(&nigh);
    assert_eq!(failed(&now), Some("command:0"), "{now}");
    fs::write(&file, "").unwrap();
    core.await_routes(0, true);
}

#[test]
fn a_flapping_link_is_held() {
    let core = Core::new();
    let health = "probe = \"program\"\ninterval = \"20ms\"\nrise = 1\nhold = \"2s\"";
    let _nigh = start_on_second_link(&core, health);
    core.await_routes(0, true);
    let before = core.imports(0);
    let begun = Instant::now();
    for _ in 0..10 {
        set_second_link(&core, "down");
        thread::sleep(Duration::from_millis(150));
        set_second_link(&core, "up");
        thread::sleep(Duration::from_millis(150));
    }
    let flapped = begun.elapsed();
    core.await_routes(0, true);
    // Two routes at each announcement, and one announcement in two seconds at most.
    let most = 2 * (begun.elapsed().as_secs_f64() / 2.0).ceil() as u64;
    let imported = core.imports(0) - before;
    assert!((2..=most).contains(&imported), "{imported} in {flapped:?}, at most {most}");
}

#[test]
fn a_killed_node_is_withdrawn_and_comes_back() {
    let core = Core::new();
    // The kernel closes the connection: nobody waits for a hold time, which is longer than LIMIT.
    let text = sections(0, "") + "hold_time = \"90s\"\n";
    let mut nigh = Nigh::start(core.node(0), Path::new(BINARY), "node-a", &text).unwrap();
    core.await_routes(0, true);
    nigh.process().kill();
    core.await_routes(0, false);
    nigh.restart(core.node(0), Path::new(BINARY), "node-a", &text).unwrap();
    core.await_routes(0, true);
    let line = ["ping", "-n", "-c", "5", "-i", "0.02", SERVICE4];
    assert!(core.client.check(&line).unwrap().contains(" 0% packet loss"));
}
