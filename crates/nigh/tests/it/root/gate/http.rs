//! What the daemon serves of the gate by HTTP.

use nix::sys::signal::Signal;
use serde_json::Value;
use std::{path::Path, time::Duration};
use testbed::{End, Namespace, Nigh, link, wait_until};

#[test]
fn the_gates_state_is_served_as_json_and_shown_on_the_page() {
    let router = Namespace::new("router").unwrap();
    let host = Namespace::new("host").unwrap();
    link(
        End::new(&router, "eth0").address("10.0.0.1/24"),
        End::new(&host, "eth0").address("10.0.0.5/24"),
    )
    .unwrap();
    let sections = "[gate]\ninternal = [\"eth0\"]\n";
    let binary = Path::new(env!("CARGO_BIN_EXE_nigh"));
    let mut nigh = Nigh::start(&router, binary, "gate-a", sections).unwrap();
    let json = |path: &str| {
        let (status, body) = nigh.http(&router, path).unwrap();
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str::<Value>(&body).unwrap()
    };
    let state = json("/api/v1/gate");
    assert_eq!(state["internal"], serde_json::json!(["eth0"]));
    assert_eq!(state["bypass"], false);
    // What the page takes apart.
    let keys = [
        "flows",
        "packets",
        "copies",
        "rates",
        "refused",
        "rules",
        "limits",
        "runtime_rules",
        "recent",
    ];
    let whole = json("/api/v1/status");
    for key in keys {
        assert!(!state[key].is_null() && !whole["gate"][key].is_null(), "{key} in {state}");
    }
    assert_eq!(json("/api/v1/gate/top")["by"], "application");
    assert_eq!(json("/api/v1/gate/top?by=host")["by"], "host");
    for (path, expected) in [("?by=nobody", 400), ("?count=1", 400)] {
        assert_eq!(nigh.http(&router, &format!("/api/v1/gate/top{path}")).unwrap().0, expected);
    }
    for path in ["/api/v1/echo/ledger", "/api/v1/echo/top"] {
        assert_eq!(nigh.http(&router, path).unwrap().0, 404, "{path}");
    }
    let page = nigh.http(&router, "/").unwrap().1;
    let script = nigh.http(&router, "/status.js").unwrap().1;
    for id in ["gate-rates", "gate-refused", "gate-scans", "gate-limits"] {
        assert!(
            page.contains(&format!("id=\"{id}\"")) && script.contains(&format!("'{id}'")),
            "{id}"
        );
    }
    // A stop ends it in time.
    nigh.process().signal(Signal::SIGTERM).unwrap();
    wait_until("the end of the daemon", Duration::from_secs(20), || {
        nigh.process().ended().is_some()
    })
    .unwrap();
}
