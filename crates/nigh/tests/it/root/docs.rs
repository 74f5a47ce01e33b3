//! A node with all jobs: its metrics are those that the pages name, alert rules and dashboards use no other,
//! and its own page shows it.

use crate::docs::{pages, repository};
use std::{collections::BTreeSet, os::unix::fs::PermissionsExt, path::Path, time::Duration};
use testbed::{End, LIMIT, Namespace, Nigh, link, wait_until};

const BINARY: &str = env!("CARGO_BIN_EXE_nigh");

/// Everything that adds metrics of its own.
fn sections(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        r#"
[echo]
interfaces = ["eth0"]
addresses = ["198.51.100.1"]
[anycast]
prefixes = ["198.51.100.0/24"]
[[anycast.upstream]]
name = "isp"
type = "bgp"
peer = "192.0.2.2"
peer_as = 2
local_as = 1
[oracle]
[oracle.bmp]
[[oracle.bmp.router]]
address = "192.0.2.2"
router = "10.0.0.1"
[oracle.alto]
[probe]
allow = ["192.0.2.2/32"]
[probe.archive.parquet]
folder = "{folder}/parquet"
[probe.archive.postgresql]
connection = "host={folder} dbname=nigh user=nigh"
[[probe.station]]
name = "node-a"
addresses = ["192.0.2.1"]
[[probe.test]]
name = "delay"
what = "owd"
from = ["node-a"]
to = ["192.0.2.2"]
interval = "10s"
[gate]
internal = ["eth1"]
[gate.audit]
folder = "{folder}/audit"
"#
    )
}

/// The names of samples in a text of OpenMetrics.
fn exported(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if (words.next(), words.next()) != (Some("#"), Some("TYPE")) {
            continue;
        }
        let (Some(name), Some(kind)) = (words.next(), words.next()) else { continue };
        let ending = match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        names.insert(format!("{name}{ending}"));
    }
    names
}

/// The names of metrics in a line: `nigh_` and what follows; with `*` all that begin so.
fn named(line: &str) -> Vec<&str> {
    let ends = |c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '*');
    let starts = ["nigh_", "process_"].into_iter().flat_map(|begin| line.match_indices(begin));
    let starts = starts.map(|(at, _)| at);
    let alone = |at: &usize| line[..*at].chars().next_back().is_none_or(ends);
    let names = starts.filter(alone).map(|at| line[at..].split(ends).next().unwrap_or_default());
    // `nigh_NAME_...` stands for any; `nigh_oracle` is the Python client's package.
    names.filter(|name| !["nigh_", "nigh_oracle"].contains(name)).collect()
}

/// Exported once the kernel knows the error of its clock, which no test can promise.
const WHEN_KNOWN: &str = "nigh_probe_clock_error_seconds";

/// The metrics in alert rules and dashboards, each with where it is.
fn watched() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for folder in ["contrib/prometheus", "contrib/grafana"] {
        for file in std::fs::read_dir(repository().join(folder)).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            for (number, line) in (1..).zip(text.lines()) {
                let at = format!("{}:{number}", path.display());
                all.extend(named(line).into_iter().map(|name| (at.clone(), name.to_owned())));
            }
        }
    }
    all
}

/// A node with all jobs, and its neighbors.
struct Whole {
    nigh: Nigh,
    node: Namespace,
    _neighbors: [Namespace; 2],
    folder: tempfile::TempDir,
}

impl Whole {
    fn start() -> Self {
        let node = Namespace::new("node").unwrap();
        let external = Namespace::new("external").unwrap();
        let internal = Namespace::new("internal").unwrap();
        link(
            End::new(&node, "eth0").address("192.0.2.1/30"),
            End::new(&external, "eth0").address("192.0.2.2/30"),
        )
        .unwrap();
        link(
            End::new(&node, "eth1").address("10.1.0.1/24"),
            End::new(&internal, "eth0").address("10.1.0.2/24"),
        )
        .unwrap();
        let folder = tempfile::tempdir().unwrap();
        for name in ["parquet", "audit"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let sections = sections(folder.path());
        let nigh = Nigh::start(&node, Path::new(BINARY), "node-a", &sections).unwrap();
        Self { nigh, node, _neighbors: [external, internal], folder }
    }
}

#[test]
fn the_status_page_shows_all_jobs() {
    let Whole { nigh, node, folder, .. } = &Whole::start();
    let script = folder.path().join("status.js");
    std::fs::write(&script, nigh.http(node, "/status.js").unwrap().1).unwrap();
    let page = folder.path().join("page.js");
    std::fs::write(&page, include_str!("page.js")).unwrap();
    let [page, script] = [&page, &script].map(|path| path.to_str().unwrap());
    let shown = ["node", page, script, "http://127.0.0.1:9160/"];
    node.check(&shown).unwrap();
    // A user whom the daemon does not trust sees no more than the question for a token.
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let stranger = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let asked = node.run(&[&stranger[..], &shown].concat(), LIMIT).unwrap();
    assert_eq!(asked.stderr.trim(), "the token is asked for");
}

#[test]
fn the_metrics_that_are_named_and_exported_are_the_same() {
    let Whole { nigh, node, .. } = &Whole::start();
    let mut exports = BTreeSet::new();
    wait_until("figures of all jobs", Duration::from_secs(20), || {
        exports = exported(&nigh.http(node, "/metrics").unwrap().1);
        exports.contains("nigh_probe_stamp_sent_total")
            && exports.contains("nigh_oracle_builds_total")
    })
    .unwrap();

    let (mut named_alone, mut wrong) = (BTreeSet::new(), Vec::new());
    let pages = pages();
    for page in &pages {
        for (line, text) in page.lines() {
            for name in named(text) {
                let there = match name.strip_suffix('*') {
                    Some(prefix) => exports.iter().any(|export| export.starts_with(prefix)),
                    None => {
                        named_alone.insert(name);
                        exports.contains(name) || name == WHEN_KNOWN
                    }
                };
                if !there {
                    wrong.push(format!("{}: no metric is called {name}", page.at(line)));
                }
            }
        }
    }
    let watched = watched();
    for (at, name) in &watched {
        let whole = ["_bucket", "_count", "_sum"].iter().find_map(|end| name.strip_suffix(end));
        let there = exports.contains(name) || whole.is_some_and(|name| exports.contains(name));
        if !there && name != WHEN_KNOWN {
            wrong.push(format!("{at}: no metric is called {name}"));
        }
    }
    let unnamed = exports.iter().filter(|export| !named_alone.contains(export.as_str()));
    wrong.extend(unnamed.map(|export| format!("no page names the metric {export}")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(named_alone.len() > 110, "only {} metrics are named", named_alone.len());
    assert!(watched.len() > 100, "only {} metrics are in contrib", watched.len());
}
