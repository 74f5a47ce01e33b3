//! A reload changes all jobs or none: a node with all of them, of which each in turn cannot take the new
//! configuration. echo, oracle and gate fail when they commit; the station can fail only when it
//! prepares, since it commits nothing. The contract's own test (crates/job/tests/reload.rs) fails each job
//! at each step.

use serde_json::{Value, json};
use std::{os::unix::fs::PermissionsExt, path::Path};
use testbed::{End, LIMIT, Namespace, Nigh, Receiver, link};

const BINARY: &str = env!("CARGO_BIN_EXE_nigh");

/// The old and the new value in the configuration.
#[derive(Clone)]
struct Sections {
    echo: String,
    oracle: String,
    probe: String,
    gate: String,
}

impl Sections {
    fn text(&self) -> String {
        let Self { echo, oracle, probe, gate } = self;
        format!(
            "[echo]\n{echo}\n[oracle]\nthreads = 1\n{oracle}\n[probe]\n{probe}\n[gate]\n{gate}\n"
        )
    }

    fn old(key: &Path) -> Self {
        Self {
            echo: "interfaces = [\"eth0\"]\naddresses = [\"198.51.100.1\"]\n\
                   [echo.limit]\nrate = 5\nburst = 5"
                .to_owned(),
            oracle: "listen = [\"192.0.2.1:8899\"]".to_owned(),
            probe: format!(
                "[probe.security]\nshared_key = {key:?}\n\
                 [[probe.station]]\nname = \"node-a\"\naddresses = [\"192.0.2.1\"]"
            ),
            gate: "internal = [\"lan0\"]".to_owned(),
        }
    }

    fn new(key: &Path) -> Self {
        let old = Self::old(key);
        Self {
            echo: old
                .echo
                .replace("198.51.100.1\"", "198.51.100.1\", \"198.51.100.2\"")
                .replace("= 5", "= 9"),
            oracle: old.oracle + "\ncost = \"-as_number\"",
            probe: old.probe
                + "\n[[probe.station]]\nname = \"node-b\"\naddresses = [\"192.0.2.2\"]\nmay = [\"slot\"]\n\
                   [[probe.test]]\nname = \"far\"\nwhat = \"ping\"\nfrom = [\"node-a\"]\nto = [\"node-b\"]\n\
                   interval = \"1h\"",
            gate: old.gate
                + "\n[[gate.limit]]\nname = \"slow\"\nto_internal = \"20mbit\"\n\
                   [[gate.rule]]\nname = \"new\"\naction = \"limit\"\nlimit = \"slow\"",
        }
    }
}

/// What is in force: of echo its limit and an address, of the oracle its cost, of the probe its peers, of
/// the gate its rules.
#[derive(Debug, PartialEq)]
struct InForce {
    rate: u64,
    address: bool,
    cost: String,
    peers: Vec<String>,
    rules: Vec<String>,
}

fn in_force(node: &Namespace, nigh: &Nigh) -> InForce {
    let state = nigh.control(&json!({"do": "status"})).unwrap();
    let names = |list: &Value| {
        let name = |item: &Value| item["name"].as_str().unwrap().to_owned();
        list.as_array().unwrap().iter().map(name).collect()
    };
    let rules = nigh.control(&json!({"do": "status", "job": "gate"})).unwrap();
    InForce {
        rate: state["echo"]["limit"]["rate"].as_u64().unwrap(),
        address: node.check(&["ip", "addr", "show", "lo"]).unwrap().contains("198.51.100.2/32"),
        cost: state["oracle"]["metrics"][0]["cost"].as_str().unwrap().to_owned(),
        peers: names(&state["probe"]["peers"]),
        rules: names(&rules["rules"]),
    }
}

#[test]
fn a_reload_that_any_job_cannot_take_changes_no_job() {
    let node = Namespace::new("node").unwrap();
    let neighbour = Namespace::new("peer").unwrap();
    let internal = Namespace::new("internal").unwrap();
    link(
        End::new(&node, "eth0").address("192.0.2.1/30"),
        End::new(&neighbour, "eth0").address("192.0.2.2/30"),
    )
    .unwrap();
    link(End::new(&node, "lan0").address("10.61.0.1/24"), End::new(&internal, "eth0")).unwrap();
    neighbour.check(&["ip", "route", "add", "198.51.100.0/24", "via", "192.0.2.1"]).unwrap();
    let _receiver = Receiver::new(&neighbour, "eth0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("mesh.key");
    std::fs::write(&key, "5a".repeat(32) + "\n").unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let (old, new) = (Sections::old(&key), Sections::new(&key));
    let nigh = Nigh::start(&node, Path::new(BINARY), "node-a", &old.text()).unwrap();
    let reload = || {
        let socket = nigh.socket();
        node.run(&[BINARY, "reload", "--socket", socket.to_str().unwrap()], LIMIT).unwrap()
    };
    let qdisc = |verb| {
        node.check(&["tc", "qdisc", verb, "dev", "lan0", "root", "handle", "1:", "htb"]).unwrap()
    };
    let before = in_force(&node, &nigh);

    // Where a job fails to commit, all have prepared, and those before it have committed. The station's
    // key is read in the first step: before it echo and oracle have prepared, and none has committed.
    let wrong = [
        ("interface lo: ", {
            let native = "\"eth0\", \"lo\"]\nmode = \"native\"\n";
            Sections { echo: new.echo.replace("\"eth0\"]\n", native), ..new.clone() }
        }),
        ("oracle.listen: ", {
            let elsewhere = new.oracle.replace("192.0.2.1", "203.0.113.1");
            Sections { oracle: elsewhere, ..new.clone() }
        }),
        ("mesh.none", {
            Sections { probe: new.probe.replace("mesh.key", "mesh.none"), ..new.clone() }
        }),
        ("interface lan0 has a qdisc of its own", new.clone()),
    ];
    for (why, sections) in wrong {
        let foreign = why.contains("qdisc");
        if foreign {
            qdisc("add");
        }
        nigh.configure("node-a", &sections.text()).unwrap();
        let refused = reload();
        assert_eq!(refused.status.code(), Some(1), "{why}: {}", refused.stdout);
        let stderr = &refused.stderr;
        assert!(stderr.contains("nothing was changed") && stderr.contains(why), "{why}: {stderr}");
        assert_eq!(in_force(&node, &nigh), before, "{why}");
        let ping = ["ping", "-c", "1", "-W", "1", "198.51.100.1"];
        assert!(neighbour.run(&ping, LIMIT).unwrap().success(), "{why}");
        if foreign {
            qdisc("del");
        }
    }

    nigh.configure("node-a", &new.text()).unwrap();
    let good = reload();
    assert!(good.success(), "{}", good.stderr);
    let after = in_force(&node, &nigh);
    assert_eq!((before.rate, after.rate), (5, 9));
    assert_eq!((before.address, after.address), (false, true));
    assert_eq!((before.cost != after.cost, after.cost.as_str()), (true, "-as_number"));
    assert_eq!((before.peers, after.peers), (vec![], vec!["node-b".to_owned()]));
    assert_eq!((before.rules, after.rules), (vec![], vec!["new".to_owned()]));
}
