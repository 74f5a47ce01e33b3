//! The schema of the configuration agrees with what reads it, and nigh.toml(5) is made from it.

use crate::docs::{pages, table_of};
use nigh::{
    config::{self, tables},
    man5,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    process::Command,
};

/// The sections as they are read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is read, or it is not")]
struct Sections {
    node: Option<config::NodeConfig>,
    echo: Option<echo::config::EchoConfig>,
    anycast: Option<echo::config::AnycastConfig>,
    oracle: Option<oracle::config::OracleConfig>,
    probe: Option<probe::config::ProbeConfig>,
    gate: Option<gate::config::GateConfig>,
}

/// The schema of the file.
pub(crate) fn schema() -> Value {
    config::schema().to_value()
}

/// Checks a value against a schema with the keywords that ours has.
///
/// # Errors
///
/// The key and what is wrong with its value.
fn check(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let no = |what: &str| Err(format!("{at}: {value} {what}"));
    for (keyword, rule) in schema.as_object().expect("a schema") {
        let list = || rule.as_array().expect("a list");
        let fits = |one: &&Value| check(one, value, at).is_ok();
        let text = value.as_str();
        match keyword.as_str() {
            "$schema" | "title" | "description" | "default" | "examples" => {}
            "type" => {
                let right = match rule.as_str().expect("one type") {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "number" => value.is_number(),
                    other => panic!("{at}: unknown type {other}"),
                };
                if !right {
                    return no(&format!("is no {rule}"));
                }
            }
            "required" => {
                let missing = list().iter().find(|key| value.get(key.as_str().unwrap()).is_none());
                if let Some(key) = missing.filter(|_| value.is_object()) {
                    return no(&format!("lacks {key}"));
                }
            }
            "additionalProperties" => {
                assert_eq!(rule, false, "{at}");
                let known = schema["properties"].as_object().expect("properties");
                let mut keys = value.as_object().into_iter().flatten();
                if let Some((key, _)) = keys.find(|(key, _)| !known.contains_key(*key)) {
                    return no(&format!("has the unknown key {key}"));
                }
            }
            "properties" => {
                for (key, rule) in rule.as_object().expect("properties") {
                    if let Some(value) = value.get(key) {
                        check(rule, value, &format!("{at}.{key}"))?;
                    }
                }
            }
            "items" => {
                for (index, value) in value.as_array().into_iter().flatten().enumerate() {
                    check(rule, value, &format!("{at}[{index}]"))?;
                }
            }
            "oneOf" if list().iter().filter(fits).count() != 1 => return no("fits none of oneOf"),
            "anyOf" if !list().iter().any(|one| fits(&one)) => return no("fits none of anyOf"),
            "enum" if !list().contains(value) => return no("is none of enum"),
            "const" if rule != value => return no("is another word"),
            "oneOf" | "anyOf" | "enum" | "const" => {}
            // A set is read from a list in which something is there twice, too.
            "uniqueItems" => {}
            "pattern" => {
                let pattern = regex_automata::meta::Regex::new(rule.as_str().unwrap()).unwrap();
                if text.is_some_and(|text| !pattern.is_match(text)) {
                    return no("does not fit the pattern");
                }
            }
            "minimum" if value.as_f64() < rule.as_f64() => return no("is too small"),
            "maximum" if value.as_f64() > rule.as_f64() => return no("is too large"),
            "minimum" | "maximum" => {}
            "format" => {
                let right = match (rule.as_str().unwrap(), text) {
                    ("ip", Some(text)) => text.parse::<IpAddr>().is_ok(),
                    ("ipv4", Some(text)) => text.parse::<Ipv4Addr>().is_ok(),
                    ("ipv6", Some(text)) => text.parse::<Ipv6Addr>().is_ok(),
                    _ => true,
                };
                if !right {
                    return no("is no address");
                }
            }
            other => panic!("{at}: unknown keyword {other}"),
        }
    }
    Ok(())
}

/// A section that no page shows.
const BGP_LS: &str = r#"
[[oracle.bgp_ls]]
peer = "198.51.100.1"
peer_as = 3
local_as = 2
default_bandwidth = "10Gbit"
"#;

/// The configurations in the pages, the section above, the example of the man page and a seed of the fuzz target, each
/// with where it stands.
fn configurations() -> Vec<(String, toml::Table)> {
    let seed = crate::docs::repository().join("fuzz/seeds/config/full.toml");
    let mut all = vec![
        ("man5.rs".to_owned(), man5::EXAMPLE.parse().unwrap()),
        ("BGP_LS".to_owned(), BGP_LS.parse().unwrap()),
        ("full.toml".to_owned(), std::fs::read_to_string(seed).unwrap().parse().unwrap()),
    ];
    for page in pages() {
        for block in page.blocks().iter().filter(|block| block.language == "toml") {
            let table: toml::Table = block.text.parse().unwrap();
            if crate::docs::is_configuration(&table) {
                all.push((page.at(block.line), table));
            }
        }
    }
    all
}

/// The value and all that differ from it in one place: a key that is unknown, a key less, another
/// value.
fn variations(value: &toml::Value) -> Vec<toml::Value> {
    use toml::Value::{Array, Boolean, Float, Integer, String, Table};
    let mut all = vec![
        value.clone(),
        Boolean(true),
        Float(1.5),
        Integer(-1),
        Integer(99_999),
        String("no such".into()),
    ];
    match value {
        Table(table) => {
            let with = |key: &str, value| {
                let mut table = table.clone();
                table.insert(key.to_owned(), value);
                Table(table)
            };
            all.push(with("no_such_key", Integer(1)));
            for (key, value) in table {
                let mut less = table.clone();
                less.remove(key);
                all.push(Table(less));
                all.extend(variations(value).into_iter().map(|value| with(key, value)));
            }
        }
        Array(elements) => {
            for (at, element) in elements.iter().enumerate() {
                all.extend(variations(element).into_iter().map(|value| {
                    let mut elements = elements.clone();
                    elements[at] = value;
                    Array(elements)
                }));
            }
        }
        _ => {}
    }
    all
}

/// What the program's check finds in a file: keys and messages.
fn findings(file: &toml::Value) -> BTreeSet<(String, String)> {
    let text = toml::to_string(file).unwrap_or_default();
    let report = match config::parse(text.as_bytes(), "nigh.toml".as_ref()) {
        Ok(loaded) => loaded.report,
        Err(report) => report,
    };
    report.findings.into_iter().map(|finding| (finding.key, finding.message)).collect()
}

#[test]
fn the_schema_takes_what_is_read_and_refuses_what_is_not() {
    let schema = schema();
    let (mut good, mut bad) = (0, 0);
    for (at, table) in configurations() {
        let json = serde_json::to_value(&table).unwrap();
        assert_eq!(check(&schema, &json, &at), Ok(()));
        let table = toml::Value::Table(table);
        let found = findings(&table);
        for variation in variations(&table) {
            let json = serde_json::to_value(&variation).unwrap();
            let refused = !findings(&variation).is_subset(&found);
            let read = Sections::deserialize(variation);
            let checked = check(&schema, &json, &at);
            // Ranges are checked after reading.
            assert!(
                read.is_ok() == checked.is_ok() || read.is_ok() && refused,
                "{at}: read as {:?}, by the schema {checked:?}: {json}",
                read.err()
            );
            *if checked.is_ok() { &mut good } else { &mut bad } += 1;
        }
    }
    assert!(good > 400 && bad > 1200, "only {good} good and {bad} bad ones");
}

/// Tables that a file may lack, with the keys that they need.
const TABLES: &str = r#"
[echo]
interfaces = ["eth0"]
addresses = ["192.0.2.1"]
limit = { rate = 0 }
[anycast]
prefixes = ["192.0.2.0/24"]
[[anycast.upstream]]
name = "isp"
type = "bgp"
peer = "198.51.100.1"
peer_as = 3
local_as = 2
[oracle]
limit = { rate = 0 }
[[oracle.adjust]]
as = 3
do = "avoid"
[oracle.alto]
[oracle.bmp]
[[oracle.bgp_ls]]
peer = "198.51.100.1"
peer_as = 3
local_as = 2
[probe]
limit = { rate = 100000 }
[[probe.test]]
name = "delay"
what = "owd"
interval = "1m"
[gate]
internal = ["eth1"]
[[gate.signature]]
name = "ours"
pattern = "^ours"
[gate.scan]
[gate.audit]
folder = "/var/log/nigh/gate"
ipfix = { file = true }
"#;

#[test]
fn ranges_of_the_schema_are_those_of_the_check() {
    let mut seen = 0;
    let base: toml::Table = TABLES.parse().unwrap();
    let found = findings(&toml::Value::Table(base.clone()));
    for (path, schema) in keys(&schema(), "") {
        if schema["type"] != "integer" {
            continue;
        }
        let (tables, key) = path.rsplit_once('.').unwrap();
        let tables: Vec<&str> = tables.split('.').collect();
        // Whether the key, or a table that it is in, is wrong now.
        let refused = |value: i64| {
            let mut file = base.clone();
            table_of(&mut file, &tables).insert(key.to_owned(), value.into());
            let new = &findings(&toml::Value::Table(file)) - &found;
            new.iter().any(|(key, _)| path.starts_with(&key.replace("[0]", "")))
        };
        for (bound, beyond) in [(&schema["minimum"], -1), (&schema["maximum"], 1)] {
            let Some(bound) = bound.as_i64() else { continue };
            assert!(!refused(bound), "{path} = {bound} is refused");
            assert!(refused(bound + beyond), "{path} = {} is accepted", bound + beyond);
            seen += 1;
        }
    }
    assert!(seen > 70, "only {seen} bounds were found");
}

/// Every key of a schema with its dotted path; an element of a list has the list's.
pub(crate) fn keys(schema: &Value, path: &str) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for (key, value) in schema["properties"].as_object().unwrap_or(&Map::new()) {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        all.extend(keys(value, &path));
        all.push((path, value.clone()));
    }
    let variants = schema["oneOf"].as_array().into_iter().flatten();
    for inner in variants.chain(schema.get("items")) {
        all.extend(keys(inner, path));
    }
    all
}

#[test]
fn every_key_says_what_it_means() {
    let keys = keys(&schema(), "");
    assert!(keys.len() > 200, "only {} keys", keys.len());
    for (path, schema) in &keys {
        let text = schema["description"].as_str().unwrap_or_default();
        assert!(text.ends_with('.'), "{path} is not described: {text:?}");
        assert!(!text.contains("[`") && !text.contains("::"), "{path} is for programmers: {text}");
    }
}

#[test]
fn every_key_is_in_the_pages() {
    let text: String = pages().iter().map(|page| page.text()).collect();
    for (path, _) in keys(&schema(), "") {
        let name = path.rsplit('.').next().unwrap();
        let forms = [" = ", "`", "]", "."];
        let written = forms.map(|end| format!("{name}{end}"));
        assert!(written.iter().any(|form| text.contains(form)), "no page has {path}");
    }
}

fn nigh(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_nigh")).args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_schema_is_printed() {
    let printed: Value = nigh(&["check", "--schema"]).parse().unwrap();
    assert_eq!(printed, schema());
    assert_eq!(printed["$schema"], "http://json-schema.org/draft-07/schema#");
    let echo = &printed["properties"]["echo"];
    assert_eq!(echo["required"], json!(["interfaces", "addresses"]));
    let keys = &echo["properties"];
    assert_eq!(keys["limit"]["properties"]["burst"]["default"], 200);
    assert_eq!(keys["mode"]["default"], "auto");
    let quiet = &printed["properties"]["anycast"]["properties"]["quiet"];
    assert_eq!((&quiet["default"], &quiet["title"]), (&json!("1s"), &json!("duration")));
    // What would be this machine's is nobody's default.
    assert_eq!(printed["properties"]["node"]["properties"]["name"].get("default"), None);
}

#[test]
fn the_example_of_the_man_page_is_good() {
    let loaded = config::parse(man5::EXAMPLE.as_bytes(), "example.toml".as_ref());
    loaded.unwrap_or_else(|report| panic!("{}", report.render()));
}

#[test]
fn the_man_page_has_every_key_and_groff_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    nigh(&["man", folder.path().join("man1").to_str().unwrap()]);
    let path = folder.path().join("man5/nigh.toml.5");
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.is_ascii());
    for (key, schema) in keys(&schema(), "") {
        let name = key.rsplit('.').next().unwrap();
        let heading = tables::is_table(&schema) || tables::is_table(&schema["items"]);
        let there = match heading {
            true => page.contains(&format!("{key}]")),
            false => page.contains(&format!("\\fB{name}\\fR")),
        };
        assert!(there, "{key} is not in the page");
    }
    let groff = Command::new("groff").args(["-man", "-Tutf8", "-ww"]).arg(&path).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&groff.stderr), "");
    // Each kind of upstream has keys of its own.
    for kind in ["bgp", "bird"] {
        assert!(page.contains(&format!("[[anycast.upstream]] of type {kind}")), "{kind}");
        assert!(page.contains(&format!("(\\fB\"{kind}\"\\fR, required)")), "{kind}");
    }
}

#[test]
fn the_template_has_every_key_commented_out_with_a_value_that_is_read() {
    let template = nigh(&["check", "--template"]);
    assert!(template.lines().all(|line| line.is_empty() || line.starts_with('#')));
    let keys = keys(&schema(), "");
    let settings = template
        .lines()
        .filter(|line| !line.starts_with("# "))
        .map(|line| line.strip_prefix('#').unwrap_or_default());
    let text = settings.collect::<Vec<_>>().join("\n");
    let file: toml::Table = text.parse().unwrap();
    for (path, _) in &keys {
        let mut at = vec![toml::Value::Table(file.clone())];
        for part in path.split('.') {
            // Of tables that may be there several times, any.
            let all = at.into_iter().flat_map(|value| match value {
                toml::Value::Array(values) => values,
                value => vec![value],
            });
            at = all.filter_map(|table| table.get(part).cloned()).collect();
        }
        assert!(!at.is_empty(), "{path} is not in the template");
    }
    assert_eq!(check(&schema(), &serde_json::to_value(&file).unwrap(), "template"), Ok(()));
    Sections::deserialize(toml::Value::Table(file)).unwrap();
}
