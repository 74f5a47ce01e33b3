//! Every configuration, scene, network and policy in the pages passes the program's own check.

use super::{pages, repository};
use std::{fs, path::Path, process::Command};

/// What a block of TOML is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Configuration,
    Scene,
    Network,
    Policy,
    Manifest,
}

/// The kind of a block, by its tables.
fn kind(block: &toml::Table) -> Option<Kind> {
    let has = |keys: &[&str]| keys.iter().any(|key| block.contains_key(*key));
    let array = |key: &str| block.get(key).is_some_and(toml::Value::is_array);
    if has(&["package"]) {
        Some(Kind::Manifest)
    } else if nigh::jobs::registry().sections().any(|section| has(&[section.name])) {
        Some(Kind::Configuration)
    } else if has(&["router", "internal", "external"]) {
        Some(Kind::Network)
    } else if array("node") || array("link") || has(&["lab", "host", "wire", "event"]) {
        Some(Kind::Scene)
    } else if has(&["fields", "about"]) || block.keys().all(|key| key.contains('.')) {
        Some(Kind::Policy)
    } else {
        None
    }
}

/// Whether a block is a configuration of the daemon.
pub(crate) fn is_configuration(block: &toml::Table) -> bool {
    kind(block) == Some(Kind::Configuration)
}

/// What a fragment needs to be whole. A rule holds for a block that has the first table and lacks the
/// second; its text comes before the block.
const COMPLETIONS: [(&str, &str, &str); 7] = [
    ("anycast", "echo", "[echo]\ninterfaces = [\"eth0\"]\naddresses = [\"192.0.2.1\"]\n"),
    ("gate", "gate.internal", "[gate]\ninternal = [\"eth1\"]\n"),
    ("probe", "node", "[node]\nname = \"prague\"\n"),
    ("probe", "probe.security", "[probe.security]\nshared_key = \"/etc/nigh/mesh.key\"\n"),
    (
        "probe",
        "probe.station",
        "[[probe.station]]\nname = \"prague\"\naddresses = [\"192.0.2.1\"]\n\
         [[probe.station]]\nname = \"brno\"\naddresses = [\"198.51.100.1\"]\n\
         [[probe.station]]\nname = \"newyork\"\naddresses = [\"203.0.113.1\"]\n",
    ),
    (
        "probe.measured",
        "probe.test",
        "[[probe.test]]\nname = \"delay\"\nwhat = \"owd\"\nmesh = [\"prague\", \"brno\"]\n\
         interval = \"1m\"\n",
    ),
    ("event", "node", "[[node]]\nname = \"berlin\"\n[[node]]\nname = \"paris\"\n"),
];

/// Whether a table has what a dotted path names.
fn has(table: &toml::Table, path: &str) -> bool {
    let mut parts = path.split('.');
    let first = parts.next().and_then(|key| table.get(key));
    parts.try_fold(first, |value, key| value.map(|value| value.get(key))).flatten().is_some()
}

#[test]
fn every_configuration_passes_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let (mut counts, mut wrong) = ([0; 5], Vec::new());
    for page in pages() {
        for block in page.blocks().iter().filter(|block| block.language == "toml") {
            let at = page.at(block.line);
            let table: toml::Table =
                block.text.parse().unwrap_or_else(|error| panic!("{at}: {error}"));
            let kind = kind(&table).unwrap_or_else(|| panic!("{at}: nothing reads such a file"));
            let mut text = String::new();
            for (of, lacking, completion) in COMPLETIONS {
                if has(&table, of) && !has(&table, lacking) {
                    text.push_str(completion);
                }
            }
            if kind == Kind::Policy && !has(&table, "fields") {
                text.push_str("about = \"fields\"\n[fields]\n");
            }
            text.push_str(&block.text);
            let path = folder.path().join("block.toml");
            fs::write(&path, &text).unwrap();
            if let Err(error) = check(kind, &path) {
                wrong.push(format!("{at}: this {kind:?} is refused:\n{error}"));
            }
            counts[kind as usize] += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let [configurations, scenes, networks, policies, manifests] = counts;
    assert!(configurations >= 15, "only {configurations} configurations were found");
    assert!(scenes >= 3, "only {scenes} scenes were found");
    assert!(networks >= 1, "no network was found");
    assert!(policies >= 2, "only {policies} policies were found");
    assert!(manifests >= 1, "no manifest of a crate was found");
}

/// Checks a file as the program does.
fn check(kind: Kind, path: &Path) -> Result<(), String> {
    let path_text = path.to_str().unwrap();
    let output = path.with_extension("nigh");
    match kind {
        Kind::Configuration => nigh(&["check", "-c", path_text]),
        Kind::Scene => {
            nigh::config::scene::load(path).map(drop).map_err(|error| format!("{error:?}"))
        }
        Kind::Network => nigh(&["lab", "import", path_text, "-o", output.to_str().unwrap()]),
        Kind::Policy => nigh(&["mask", "policy", "check", path_text]),
        Kind::Manifest => inherits(&fs::read_to_string(path).unwrap().parse().unwrap()),
    }
}

/// Whether the workspace has what a crate's manifest takes from it by `KEY.workspace = true`.
fn inherits(manifest: &toml::Table) -> Result<(), String> {
    let workspace = fs::read_to_string(repository().join("Cargo.toml")).unwrap();
    let workspace: toml::Table = workspace.parse().unwrap();
    for section in ["package", "dependencies"] {
        for (key, value) in manifest[section].as_table().unwrap() {
            let inherited = value.get("workspace").is_some();
            if inherited && !has(&workspace, &format!("workspace.{section}.{key}")) {
                return Err(format!("[workspace.{section}] of Cargo.toml has no {key}"));
            }
        }
    }
    Ok(())
}

/// Runs the program; its errors if it failed. Warnings are about this machine: files that it lacks.
fn nigh(words: &[&str]) -> Result<(), String> {
    let output = Command::new(env!("CARGO_BIN_EXE_nigh")).args(words).output().unwrap();
    let printed = || String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(printed()) }
}
