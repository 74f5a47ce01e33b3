//! Starting, reloading, ending, and what happens to interfaces meanwhile.

use super::site::{BINARY, LIMIT, NO_LIMIT, SERVICE4, SERVICE6, Site, all, ping, row, sections};
use serde_json::json;
use std::{path::Path, process::Command};
use testbed::{End, Namespace, Nigh, link, wait_until};

/// Whether an XDP program is attached to eth0.
fn has_program(node: &Namespace) -> bool {
    let text = node.check(&["ip", "-j", "link", "show", "dev", "eth0"]).unwrap();
    let links: serde_json::Value = serde_json::from_str(&text).unwrap();
    !links[0]["xdp"].is_null()
}

fn on_lo(node: &Namespace, address: &str) -> bool {
    node.check(&["ip", "-br", "address", "show", "dev", "lo"]).unwrap().contains(address)
}

/// Whether `lo` has an address that the kernel does not remove by itself.
fn stays_on_lo(node: &Namespace, address: &str) -> bool {
    let addresses = node.check(&["ip", "-o", "address", "show", "dev", "lo"]).unwrap();
    addresses.lines().any(|line| line.contains(address) && line.contains("valid_lft forever"))
}

#[test]
fn a_reload_under_traffic_loses_nothing() {
    let site = Site::start(NO_LIMIT);
    let lines = [SERVICE4, SERVICE6].map(|address| {
        let mut command = Command::new("ping");
        command.args(["-n", "-q", "-i", "0.002", "-c", "1500", "-W", "1", address]);
        site.client.start(command).unwrap()
    });
    for round in 0..10 {
        let more = [
            "[echo.limit]\nrate = 0\nnode_rate = 1000000\nnode_burst = 100000\n".to_owned(),
            format!("deny = [\"192.0.2.0/24\"]\nverify = false\n{NO_LIMIT}"),
            format!("fragments = \"drop\"\nallow = [\"0.0.0.0/0\", \"::/0\"]\n{NO_LIMIT}"),
            NO_LIMIT.to_owned(),
        ];
        site.reload(&more[round % more.len()]);
        // Addresses come and go beside those that are pinged.
        let extra = format!("\"203.0.113.{round}\", \"{SERVICE4}\"");
        let text = sections(NO_LIMIT).replace(&format!("\"{SERVICE4}\""), &extra);
        site.nigh.configure("node-a", &text).unwrap();
        site.nigh.control(&json!({"do": "reload"})).unwrap();
    }
    for (process, address) in lines.into_iter().zip([SERVICE4, SERVICE6]) {
        let finished = process.finish(LIMIT).unwrap();
        assert!(finished.stdout.contains("1500 received, 0% packet loss"), "{}", finished.stdout);
        let row = site.row(address);
        assert_eq!((row.received, row.answered), (1500, 1500), "{row:?}");
    }
    assert!(!on_lo(&site.node, "203.0.113.1/32") && on_lo(&site.node, "203.0.113.9/32"));
}

#[test]
fn a_bad_reload_changes_nothing() {
    let site = Site::start(NO_LIMIT);
    let reload = json!({"do": "reload"});
    site.nigh.configure("node-a", &sections("mood = \"good\"")).unwrap();
    assert!(site.nigh.control(&reload).is_err());
    // An interface that is not available in the mode asked for: refused, and undone.
    site.node.check(&["ip", "link", "add", "br0", "type", "bridge"]).unwrap();
    let text = sections(&format!("mode = \"native\"\n{NO_LIMIT}"))
        .replace("\"eth0\"", "\"eth0\", \"br0\"")
        .replace(&format!("\"{SERVICE4}\""), "\"203.0.113.5\"");
    site.nigh.configure("node-a", &text).unwrap();
    let error = site.nigh.control(&reload).unwrap_err().to_string();
    assert!(error.contains("br0"), "{error}");
    assert!(!on_lo(&site.node, "203.0.113.5"));
    assert_eq!(site.status()["interfaces"].as_array().unwrap().len(), 1);
    assert_eq!(site.ping(&["-c", "5", "-i", "0.02", SERVICE4]), all(5));
    assert_eq!(site.row(SERVICE4).answered, 5);
}

#[test]
fn kill_9_leaves_nothing_half_attached() {
    let mut site = Site::start(NO_LIMIT);
    assert!(has_program(&site.node) && on_lo(&site.node, SERVICE4));
    site.nigh.process().kill();
    wait_until("the program to go", LIMIT, || !has_program(&site.node)).unwrap();
    // The address stays, so that the kernel answers meanwhile; the next start recognizes it as its own.
    assert!(on_lo(&site.node, SERVICE4));
    let other = sections(NO_LIMIT).replace(SERVICE4, "50.50.50.51");
    site.nigh.restart(&site.node, Path::new(BINARY), "node-a", &other).unwrap();
    assert!(!on_lo(&site.node, "50.50.50.50/32"), "left behind by the killed one");
    assert!(has_program(&site.node) && on_lo(&site.node, "50.50.50.51/32"));
    assert_eq!(site.ping(&["-c", "5", "-i", "0.02", "50.50.50.51"]), all(5));
    assert_eq!(site.row("50.50.50.51").answered, 5);

    // At once after a kill, while the kernel may still hold the old program.
    site.nigh.restart(&site.node, Path::new(BINARY), "node-a", &sections(NO_LIMIT)).unwrap();
    assert_eq!(site.ping(&["-c", "5", "-i", "0.02", SERVICE4]), all(5));

    site.nigh.process().signal(nix::sys::signal::Signal::SIGTERM).unwrap();
    let ended = wait_until("the end", LIMIT, || site.nigh.process().ended().is_some());
    ended.unwrap();
    assert!(!has_program(&site.node) && !stays_on_lo(&site.node, SERVICE4));
    assert!(!stays_on_lo(&site.node, SERVICE6));
}

#[test]
fn addresses_that_were_there_before_stay() {
    let (client, _router, node, _receiver) = row();
    node.check(&["ip", "address", "add", &format!("{SERVICE4}/32"), "dev", "lo"]).unwrap();
    let nigh = Nigh::start(&node, Path::new(BINARY), "node-a", &sections(NO_LIMIT));
    let mut nigh = nigh.unwrap();
    assert_eq!(ping(&client, &["-c", "3", "-i", "0.05", SERVICE4]), all(3));
    nigh.process().signal(nix::sys::signal::Signal::SIGTERM).unwrap();
    wait_until("the end", LIMIT, || nigh.process().ended().is_some()).unwrap();
    assert!(stays_on_lo(&node, SERVICE4), "an operator put it there");
    assert!(!stays_on_lo(&node, SERVICE6), "nigh put it there");
}

#[test]
fn an_interface_may_appear_flap_and_be_made_again() {
    let node = Namespace::new("node").unwrap();
    let router = Namespace::new("router").unwrap();
    let nigh = Nigh::start(&node, Path::new(BINARY), "node-a", &sections(NO_LIMIT)).unwrap();
    let mode = || {
        let status = nigh.control(&json!({"do": "status"})).unwrap();
        status["echo"]["interfaces"][0]["mode"].as_str().unwrap().to_owned()
    };
    assert_eq!(mode(), "absent");
    assert_eq!(nigh.http(&node, "/healthz").unwrap().0, 503);
    for round in 1..=2 {
        link(
            End::new(&router, "eth0").address("172.16.0.29/30"),
            End::new(&node, "eth0").address("172.16.0.30/30"),
        )
        .unwrap();
        let receiver = testbed::Receiver::new(&router, "eth0").unwrap();
        router.check(&["ip", "route", "add", "50.0.0.0/8", "via", "172.16.0.30"]).unwrap();
        wait_until("the program", LIMIT, || mode() == "native").unwrap();
        assert_eq!(ping(&router, &["-c", "5", "-i", "0.02", SERVICE4]), all(5), "round {round}");
        node.check(&["ip", "link", "set", "eth0", "down"]).unwrap();
        node.check(&["ip", "link", "set", "eth0", "up"]).unwrap();
        wait_until("an answer after the flap", LIMIT, || {
            ping(&router, &["-c", "1", SERVICE4]) == all(1)
        })
        .unwrap();
        wait_until("health", LIMIT, || nigh.http(&node, "/healthz").unwrap().0 == 200).unwrap();
        drop(receiver);
        node.check(&["ip", "link", "delete", "eth0"]).unwrap();
        wait_until("the loss to be seen", LIMIT, || mode() == "absent").unwrap();
    }
    // The counters belong to the program, not to an interface.
    let ledger = nigh.control(&json!({"do": "echo", "request": {"do": "ledger"}})).unwrap();
    assert!(ledger["rows"][0]["answered"].as_u64().unwrap() >= 10, "{ledger}");
}
