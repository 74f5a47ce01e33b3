//! Defaults in the tables of the pages are the program's: a file that gives a key its default means
//! the same as one without the key.

use super::pages;
use crate::schema::{keys, schema};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// All sections of the configuration and of scenes, as far as a default may appear in them.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Sections {
    node: nigh::config::NodeConfig,
    echo: echo::config::EchoConfig,
    anycast: echo::config::AnycastConfig,
    oracle: oracle::config::OracleConfig,
    probe: probe::config::ProbeConfig,
    gate: gate::config::GateConfig,
    lab: lab::scene::LabTable,
    link: Vec<lab::scene::LinkTable>,
    host: Vec<lab::scene::HostTable>,
}

/// One of everything, with the keys that have no default.
const WHOLE: &str = r#"
[node]
[echo]
interfaces = ["eth0"]
addresses = ["192.0.2.1"]
[anycast]
prefixes = ["192.0.2.0/24"]
[[anycast.upstream]]
name = "isp"
type = "bgp"
peer = "198.51.100.1"
peer_as = 1
local_as = 2
[oracle]
[oracle.authentication]
key = "00112233445566778899aabbccddeeff"
[oracle.bmp]
[[oracle.bmp.router]]
address = "192.0.2.1"
router = "10.0.0.1"
[oracle.alto]
[probe]
[[probe.station]]
name = "prague"
addresses = ["192.0.2.1"]
[[probe.test]]
name = "delay"
what = "owd"
from = ["prague"]
interval = "1m"
[gate]
internal = ["eth1"]
[gate.scan]
clamd = "/run/clamav/clamd.ctl"
[gate.audit]
folder = "/var/log/nigh/gate"
[lab]
[[link]]
between = ["a", "b"]
[[host]]
name = "pc"
attach = "a"
address = "192.0.2.1/24"
"#;

/// Keys without which something later takes the default: the values that are read do not show it.
const LATER: [&str; 5] =
    ["host.mtu", "host.interface", "probe.gather", "probe.test[].duration", "probe.test[].rate"];

/// Where a key with a default is: its table, made where it is not there; of arrays the first entry.
pub(crate) fn table_of<'t>(root: &'t mut Table, path: &[&str]) -> &'t mut Table {
    path.iter().fold(root, |table, key| {
        let name = key.trim_end_matches("[]");
        let value = table.entry(name).or_insert_with(|| Value::Table(Table::new()));
        match value {
            Value::Array(entries) => entries[0].as_table_mut(),
            value => value.as_table_mut(),
        }
        .unwrap_or_else(|| panic!("{name} is no table"))
    })
}

/// The spans of code of a cell that has nothing else; `None` where there is other text.
fn spans(cell: &str) -> Option<Vec<&str>> {
    let spans: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
    let between = cell.split('`').step_by(2).all(|text| matches!(text.trim(), "" | ","));
    (!spans.is_empty() && between).then_some(spans)
}

/// The words of a cell that name keys of the schema, as whole paths: `[]` says that a table may be
/// there several times, a dot in front that the table is that of the key before.
fn paths(section: &str, names: &[&str]) -> Vec<String> {
    let mut table = section.to_owned();
    let mut paths = Vec::new();
    for name in names.iter().filter(|name| !name.starts_with("[[")) {
        let path = match name.strip_prefix('.') {
            Some(key) => format!("{table}.{key}"),
            None if section.is_empty() => (*name).to_owned(),
            None => format!("{section}.{name}"),
        };
        let path = path.replace("[]", "");
        table = path.rsplit_once('.').map(|(table, _)| table.to_owned()).unwrap_or_default();
        paths.push(path);
    }
    paths
}

/// Whether the schema's default of a key is `default`, as far as it has one.
fn same(schema: &serde_json::Value, default: &str) -> bool {
    let Some(of_schema) = schema.get("default") else { return true };
    let value: Table = format!("value = {default}").parse().unwrap();
    let value = serde_json::to_value(&value["value"]).unwrap();
    let time = |value: &serde_json::Value| config::duration(value.as_str()?).ok();
    *of_schema == value || time(of_schema).is_some() && time(of_schema) == time(&value)
}

#[test]
fn every_key_in_a_table_is_in_the_schema_with_its_default() {
    let keys: BTreeMap<_, _> = keys(&schema(), "").into_iter().collect();
    let (mut seen, mut compared, mut wrong) = (0, 0, Vec::new());
    // The lab's page is about scenes.
    for page in pages().iter().filter(|page| !page.path.ends_with("lab.md")) {
        for table in page.tables() {
            let column = |name: &str| table.header.iter().position(|cell| cell == name);
            let (Some(names), Some(defaults)) = (column("key"), column("default")) else {
                continue;
            };
            for (line, row) in &table.rows {
                let written: Vec<&str> = row[names].split('`').skip(1).step_by(2).collect();
                if written.iter().any(|name| name.starts_with("[[")) {
                    continue;
                }
                let paths = paths(table.section.unwrap_or_default(), &written);
                let values = spans(&row[defaults]).unwrap_or_default();
                for (at, path) in paths.iter().enumerate() {
                    seen += 1;
                    let Some(schema) = keys.get(path) else {
                        wrong.push(format!("{}: the schema has no {path}", page.at(*line)));
                        continue;
                    };
                    let value = values.get(at).or(values.first());
                    if let Some(value) = value {
                        compared += 1;
                        if !same(schema, value) {
                            let text = format!("{value}, the schema {}", schema["default"]);
                            wrong.push(format!("{}: {path} is {text}", page.at(*line)));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 120 && compared > 80, "only {seen} keys and {compared} defaults were found");
}

/// Reads a file; what is in it.
fn read(root: &Table) -> Result<Sections, String> {
    toml::from_str(&toml::to_string(root).unwrap()).map_err(|error| error.to_string())
}

/// Whether `path` has `default` when it is not written.
fn check(path: &str, default: &str) -> Result<(), String> {
    let value: Table = format!("value = {default}")
        .parse()
        .map_err(|_| format!("the default {default} of {path} is no value of TOML"))?;
    let parts: Vec<&str> = path.split('.').collect();
    let (key, tables) = parts.split_last().unwrap();
    let mut root: Table = WHOLE.parse().unwrap();
    table_of(&mut root, tables).remove(*key);
    let without = read(&root).map_err(|error| format!("without {path}: {error}"))?;
    table_of(&mut root, tables).insert((*key).to_owned(), value["value"].clone());
    let with = read(&root).map_err(|error| format!("{path} = {default}: {error}"))?;
    if without == with || LATER.contains(&path) {
        Ok(())
    } else {
        Err(format!("{default} is not the default of {path}"))
    }
}

#[test]
fn every_default_in_a_table_is_the_programs() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for page in pages() {
        for table in page.tables() {
            let column = |name: &str| table.header.iter().position(|cell| cell == name);
            let (Some(keys), Some(defaults)) = (column("key"), column("default")) else { continue };
            let section = table.section.unwrap_or_default();
            for (line, row) in &table.rows {
                let at = page.at(*line);
                let names: Vec<&str> = row[keys].split('`').skip(1).step_by(2).collect();
                let default = &row[defaults];
                let words = !default.contains(|c: char| c == '`' || c.is_numeric());
                let Some(values) = spans(default) else {
                    assert!(words, "{at}: a default is code, such as `10`, or words: {default}");
                    continue;
                };
                assert!(
                    values.len() == 1 || values.len() == names.len(),
                    "{at}: {} defaults for {} keys",
                    values.len(),
                    names.len()
                );
                for (name, value) in names.iter().zip(values.iter().cycle()) {
                    let path = match section {
                        // Tables that give whole paths.
                        "" => (*name).to_owned(),
                        section => format!("{section}.{name}"),
                    };
                    checked += 1;
                    wrong.extend(check(&path, value).err().map(|error| format!("{at}: {error}")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 80, "only {checked} defaults were found");
}
