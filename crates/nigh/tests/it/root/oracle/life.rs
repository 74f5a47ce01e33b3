//! Starting, reloading, ending.

use super::stage::{BINARY, EAST, LIMIT, NETWORK, Stage, UNKNOWN, WEST, pair, sections};
use nix::sys::signal::Signal;
use serde_json::json;
use std::path::Path;
use testbed::{Nigh, wait_until};

#[test]
fn a_bad_reload_changes_nothing() {
    let stage = Stage::start("");
    stage.done(&["set", "link", "10.0.0.3", "east", "bandwidth", "1000"]);
    let before = stage.status();
    for (network, more, why) in [
        (NETWORK, "moode = \"auto\"", "unknown key `moode`"),
        (NETWORK, "cost = \"8 * hops\"", "oracle.cost: at byte 4"),
        (NETWORK, "listen = [\"203.0.113.1:8899\"]", "oracle.listen: "),
        ("[[router]]\nid = 5\n", "", "id"),
        ("[[link]]\nfrom = \"10.0.0.1\"\nto = \"10.0.0.1\"\n", "", "network.toml"),
        (
            NETWORK,
            "[echo]\ninterfaces = [\"eth0\"]\naddresses = [\"198.51.100.1\"]",
            "was added or removed",
        ),
    ] {
        let error = stage.reload(network, more).unwrap_err().to_string();
        assert!(error.contains("nothing was changed") && error.contains(why), "{error}");
        assert_eq!(stage.order(), [EAST, WEST, UNKNOWN]);
    }
    // What is found last, when the driver is configured already.
    let taken = stage.node.enter(|| std::net::TcpListener::bind("192.0.2.1:11019").unwrap());
    let more = "ttl = \"7s\"\nlisten = [\"192.0.2.1:8899\", \"192.0.2.1:8898\"]\n[oracle.bmp]\n\
                listen = [\"192.0.2.1:11019\"]\n[[oracle.bmp.router]]\naddress = \"192.0.2.2\"\n\
                router = \"10.8.0.2\"\n";
    let error = stage.reload(NETWORK, more).unwrap_err().to_string();
    assert!(error.contains("nothing was changed") && error.contains("oracle.bmp"), "{error}");
    drop(taken);
    assert_eq!(stage.order(), [EAST, WEST, UNKNOWN]);
    let after = stage.status();
    assert_eq!(after["driver"]["services"], before["driver"]["services"]);
    assert_eq!(after["listen"], before["listen"]);
    assert_eq!(after["tables"], before["tables"]);
    // A good one forgets what the operator changed by hand.
    stage.reload(NETWORK, "").unwrap();
    assert_eq!(stage.order(), [WEST, EAST, UNKNOWN]);
}

#[test]
fn a_bad_file_refuses_the_start_and_names_the_line() {
    let (_client, node) = pair();
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("network.toml");
    std::fs::write(&file, "[[router]]\nid = \"berlin\"\n").unwrap();
    let error = Nigh::start(&node, Path::new(BINARY), "n", &sections(&file, "")).unwrap_err();
    assert!(error.to_string().contains("network.toml:2"), "{error}");
}

#[test]
fn both_features_run_side_by_side() {
    let stage = Stage::start("");
    let echo = "[echo]\ninterfaces = [\"eth0\"]\naddresses = [\"198.51.100.1\"]\n";
    let file = stage.file();
    let stage = stage.restart(&(echo.to_owned() + &sections(&file, "")));
    assert_eq!(stage.order(), [WEST, EAST, UNKNOWN]);
    let status = stage.nigh.control(&json!({"do": "status"})).unwrap();
    assert!(status["echo"]["interfaces"].is_array() && status["oracle"]["tables"].is_object());
    let text = stage.nigh.control(&json!({"do": "status", "text": true})).unwrap();
    let text = text.as_str().unwrap();
    assert!(text.contains("\necho: ") && text.contains("\noracle: healthy"), "{text}");
    let (_, metrics) = stage.nigh.http(&stage.node, "/metrics").unwrap();
    assert!(metrics.contains("nigh_echo_received") && metrics.contains("nigh_oracle_received"));
    // What one section changes, the other does not notice.
    stage
        .nigh
        .configure("node-a", &(echo.to_owned() + &sections(&file, "cost = \"-as_number\"")))
        .unwrap();
    stage.nigh.control(&json!({"do": "reload"})).unwrap();
    assert_eq!(stage.order(), [EAST, WEST, UNKNOWN]);
}

#[test]
fn a_node_without_echo_refuses_its_requests() {
    let stage = Stage::start("");
    let status = stage.nigh.control(&json!({"do": "status"})).unwrap();
    assert!(status.get("echo").is_none() && status["node"]["healthy"] == true, "{status}");
    let error = stage.nigh.control(&json!({"do": "echo", "request": {"do": "ledger"}}));
    assert!(error.unwrap_err().to_string().contains("no section [echo]"));
    let (code, body) = stage.nigh.http(&stage.node, "/healthz").unwrap();
    assert_eq!((code, body.as_str()), (200, "ok\n"));
    // A drain has nothing to wait for.
    stage.nigh.control(&json!({"do": "drain"})).unwrap();
    assert_eq!(stage.order(), [WEST, EAST, UNKNOWN]);
}

#[test]
fn a_dump_of_routes_that_cannot_be_read_ails_the_node() {
    let stage = Stage::start("");
    let more = format!(
        "[[oracle.topology.mrt]]\nfile = \"{}/none\"\nrouter = \"10.8.0.1\"\n",
        stage.files.path().display()
    );
    let file = stage.file();
    let stage = stage.restart(&(sections(&file, "") + &more));
    assert_eq!(stage.order(), [WEST, EAST, UNKNOWN], "what is known is ranked");
    let (code, body) = stage.nigh.http(&stage.node, "/healthz").unwrap();
    assert!(code == 503 && body.contains("/none is failed: cannot open"), "{body}");
    // What is there and cannot be read is tried again, though it has not changed.
    std::fs::create_dir(stage.files.path().join("none")).unwrap();
    let stage = stage.restart(&(sections(&file, "") + &more));
    let error = stage.nigh.control(&json!({"do": "reload"})).unwrap_err().to_string();
    assert!(error.contains("nothing was changed") && error.contains("/none"), "{error}");
    // Nor is it waited for by who cannot be stopped then.
    std::fs::remove_dir(stage.files.path().join("none")).unwrap();
    nix::unistd::mkfifo(&stage.files.path().join("none"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut stage = stage.restart(&(sections(&file, "") + &more));
    let (code, body) = stage.nigh.http(&stage.node, "/healthz").unwrap();
    assert!(code == 503 && body.contains("it is not a regular file"), "{body}");
    stage.nigh.process().signal(Signal::SIGTERM).unwrap();
    wait_until("the end", LIMIT, || stage.nigh.process().ended().is_some()).unwrap();
}

#[test]
fn few_capabilities_are_kept_by_every_thread() {
    let mut stage = Stage::start("");
    assert_eq!(stage.order(), [WEST, EAST, UNKNOWN]);
    let pid = stage.nigh.process().pid();
    let threads = testbed::few_capabilities(pid);
    for name in ["oracle-builder", "oracle-udp-0", "oracle-udp-1"] {
        assert!(threads.contains_key(name), "{name} in {threads:?}");
    }
}

#[test]
fn a_kill_leaves_nothing_and_a_stop_ends_in_time() {
    let mut stage = Stage::start("");
    stage.nigh.process().kill();
    let sockets = stage.node.check(&["ss", "-Hlun"]).unwrap();
    assert!(!sockets.contains("8899"), "{sockets}");
    let file = stage.file();
    let mut stage = stage.restart(&sections(&file, ""));
    assert_eq!(stage.order(), [WEST, EAST, UNKNOWN]);
    stage.nigh.process().signal(Signal::SIGTERM).unwrap();
    wait_until("the end", LIMIT, || stage.nigh.process().ended().is_some()).unwrap();
    assert!(stage.nigh.process().ended().unwrap().success(), "{}", stage.nigh.wrote());
}
