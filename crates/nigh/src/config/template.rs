//! A configuration file with everything commented out, made from the schema: what packages install as
//! /etc/nigh/nigh.toml.

use super::tables::{self, Key};
use serde_json::Value;

const HEAD: &str = "Configuration of nigh. Every key is commented out: a key with a default has it \
    here, any other an example. A job runs if its section is in the file, so the daemon needs \
    `[echo]`, `[oracle]`, `[probe]` or `[gate]`; `[node]` is optional.\n\
    After a change: `nigh check`, then `systemctl enable --now nigh`, or `nigh reload` if it runs. \
    nigh.toml(5) has the same text, and /usr/share/doc/nigh/docs has guides with examples.";

/// Columns of a line.
const WIDTH: usize = 100;

/// The file: `# ` begins a remark, `#` alone what can be uncommented.
pub fn file() -> String {
    let mut text = HEAD.lines().map(remark).collect::<String>();
    for table in tables::all() {
        text.push_str("\n\n");
        text.push_str(&remark(&table.description));
        text.push_str(&format!("#{}\n", table.heading));
        for key in &table.keys {
            text.push('\n');
            text.push_str(&remark(&about(key)));
            let value = key.default().or_else(|| example(&key.schema)).expect("a value of TOML");
            text.push_str(&format!("#{} = {value}\n", key.name));
        }
    }
    text
}

/// What a key is, with its type and the words that it takes.
fn about(key: &Key) -> String {
    let need = match key.default() {
        Some(_) => "",
        None if key.required => "required, ",
        None => "optional, ",
    };
    let words = tables::words(&key.schema);
    let words = words.iter().map(|(word, meaning)| format!(" \"{word}\": {meaning}"));
    let kind = tables::kind(&key.schema);
    format!("({need}{kind}) {}{}", key.description(), words.collect::<String>())
}

/// A value that a key may have.
fn example(schema: &Value) -> Option<toml::Value> {
    let alternatives = [&schema["enum"], &schema["oneOf"], &schema["anyOf"], &schema["examples"]];
    let first = alternatives.into_iter().find_map(|all| all.get(0));
    if let Some(value) = schema.get("const") {
        return toml::Value::try_from(value).ok();
    }
    match first {
        Some(first @ Value::Object(_)) => return example(first),
        Some(first) => return toml::Value::try_from(first).ok(),
        None => {}
    }
    // An optional value is of its type or null.
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str())?;
    match (kind, schema["format"].as_str()) {
        ("array", _) => Some(vec![example(&schema["items"])?].into()),
        ("integer", _) => Some(schema["minimum"].as_i64().unwrap_or(0).into()),
        ("number", _) => Some(schema["minimum"].as_f64().unwrap_or(0.0).into()),
        ("boolean", _) => Some(false.into()),
        (_, Some("ip" | "ipv4")) => Some("192.0.2.1".into()),
        (_, Some("ipv6")) => Some("2001:db8::1".into()),
        _ => Some("...".into()),
    }
}

/// A text as lines of remarks.
fn remark(text: &str) -> String {
    let mut lines = vec![String::from("#")];
    for word in text.split_whitespace() {
        if lines.last().is_some_and(|line| line.len() + 1 + word.len() > WIDTH) {
            lines.push("#".into());
        }
        lines.last_mut().expect("a line").extend([" ", word]);
    }
    lines.join("\n") + "\n"
}
