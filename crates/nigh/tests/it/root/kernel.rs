//! `nigh check --kernel` in a namespace with two kinds of interfaces.

use serde_json::Value;
use std::{
    collections::BTreeSet,
    process::{Command, Output},
};
use testbed::{End, Namespace, link};

const JOBS: [&str; 7] = ["echo", "oracle", "probe", "gate", "mask", "lab", "psock"];

/// A node with a veth and a bridge, and the other end of the veth.
fn node() -> (Namespace, Namespace) {
    let (node, peer) = (Namespace::new("node").unwrap(), Namespace::new("peer").unwrap());
    link(End::new(&node, "eth0"), End::new(&peer, "eth0")).unwrap();
    node.check(&["ip", "link", "add", "br0", "type", "bridge"]).unwrap();
    (node, peer)
}

fn run(node: &Namespace, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nigh"));
    command.args(["check", "--kernel"]).args(words).env_remove("RUST_LOG");
    node.enter(|| command.output()).unwrap()
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The fields of an object and of what is in it, as docs/kernels.md writes them.
fn fields(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) if at != "features" => {
            for (key, value) in object {
                let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                fields(value, &at, found);
            }
        }
        Value::Array(list) if list.iter().any(Value::is_object) => {
            list.iter().for_each(|value| fields(value, &format!("{at}[]"), found));
        }
        _ => drop(found.insert(at.to_owned())),
    }
}

/// What a page's tables have between backquotes in one of their columns, below a heading.
fn column(heading: &str, column: usize) -> BTreeSet<String> {
    let page = include_str!("../../../../../docs/kernels.md");
    let (_, part) = page.split_once(heading).unwrap();
    let part = part.split("\n## ").next().unwrap();
    let rows = part.lines().filter_map(|line| line.split('|').nth(column));
    rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn the_answer_has_the_documented_fields() {
    let (node, _peer) = node();
    let answer = json(&run(&node, &["--json"]));
    let names: Vec<_> =
        answer["interfaces"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let mut found = BTreeSet::new();
    fields(&answer, "", &mut found);
    assert_eq!(found, column("\n## JSON\n", 1));
    let features = answer["features"].as_object().unwrap();
    assert_eq!(features.keys().cloned().collect::<BTreeSet<_>>(), column("\n## Features\n", 2));
    assert!(features.values().all(Value::is_boolean), "{features:?}");
    let how = column("For each job there is one line", 2);
    for (job, name) in answer["jobs"].as_array().unwrap().iter().zip(JOBS) {
        assert_eq!(job["job"], name);
        let said = job["how"].as_str().unwrap();
        assert!(how.contains(said) && said != "unknown", "{job}");
        assert!(!job["text"].as_str().unwrap().is_empty(), "{job}");
    }
    assert_eq!(answer["caller"]["missing"].as_array().unwrap().len(), 0);
}

#[test]
fn the_table_has_a_line_for_each_interface_and_job_and_nothing_is_left() {
    let (node, _peer) = node();
    let state = || {
        let links = node.check(&["ip", "-d", "link"]).unwrap();
        links + &node.check(&["tc", "qdisc"]).unwrap()
    };
    let before = state();
    let output = run(&node, &["eth0", "br0", "eth9"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |begin: &str| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(begin));
        line.unwrap_or_else(|| panic!("no {begin}: {text}"))
    };
    assert!(line("eth0").contains("veth"), "{text}");
    assert!(line("br0").contains("bridge"), "{text}");
    assert!(line("eth9").ends_with("there is no such interface"), "{text}");
    for job in JOBS {
        line(job);
    }
    let fails = JOBS.iter().any(|job| line(job).contains("does not work"));
    assert_eq!(output.status.code(), Some(i32::from(fails)), "{text}");
    assert_eq!(state(), before);
}

#[test]
fn a_job_is_asked_about_the_interfaces_of_its_configuration() {
    let (node, _peer) = node();
    let file = tempfile::NamedTempFile::new().unwrap();
    let sections = "[echo]\ninterfaces = [\"br0\"]\naddresses = [\"198.51.100.1\"]\n\
                    [oracle]\ninterfaces = [\"eth0\"]\n";
    std::fs::write(file.path(), sections).unwrap();
    let answer = json(&run(&node, &["--json", "-c", file.path().to_str().unwrap()]));
    for (job, own, other) in [(0, "br0", "eth0"), (1, "eth0", "br0")] {
        let text = answer["jobs"][job]["text"].as_str().unwrap();
        // Where the program cannot be loaded, interfaces do not matter.
        assert_eq!(text.contains(own), text.contains("in XDP"), "{answer}");
        assert!(!text.contains(other), "{answer}");
    }
    let names: Vec<_> =
        answer["interfaces"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["br0", "eth0"]);
    // A file that is not valid is told as without --kernel.
    std::fs::write(file.path(), "[echo]\n").unwrap();
    let output = run(&node, &["-c", file.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing was started or changed"));
}

#[test]
fn who_has_no_capability_is_told_what_is_missing() {
    let (node, _peer) = node();
    let ask = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-all", env!("CARGO_BIN_EXE_nigh"), "check", "--kernel"]);
        command.args(words).env_remove("RUST_LOG");
        node.enter(|| command.output()).unwrap()
    };
    let answer = json(&ask(&["--json", "eth0"]));
    assert_eq!(answer["caller"]["capabilities"].as_array().unwrap().len(), 0);
    for feature in ["jit", "tcx", "arena", "htb", "af_xdp", "packet_sockets"] {
        assert!(answer["features"][feature].is_null(), "{feature}: {answer}");
    }
    assert_eq!(answer["features"]["btf"], true);
    // The driver answers everybody.
    assert_eq!(answer["interfaces"][0]["driver"], "veth");
    assert_eq!(answer["interfaces"][0]["send_timestamps"]["software"], true);
    for (job, name) in answer["jobs"].as_array().unwrap().iter().zip(JOBS) {
        let how = if name == "psock" { "works" } else { "unknown" };
        assert_eq!(job["how"], how, "{answer}");
    }
    let output = ask(&["eth0"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("unknown without CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"), "{text}");
    assert!(
        text.contains("without CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN its program cannot be tried"),
        "{text}"
    );
}
