//! The schema of the configuration as a list of tables, for people: nigh.toml(5) and the template are
//! made from it.

use crate::{config, jobs};
use serde_json::Value;

/// A table of the configuration.
#[derive(Debug)]
pub struct Table {
    /// As it is written: `[echo.limit]`, or `[[anycast.upstream]]` if it may be there several times.
    pub heading: String,
    /// Its `type`, if that decides on the other keys.
    pub of_type: Option<String>,
    /// What it is for.
    pub description: String,
    /// Its keys, without tables.
    pub keys: Vec<Key>,
}

/// A key of a table.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: String,
    /// Whether the table needs it.
    pub required: bool,
    /// The schema of its value.
    pub schema: Value,
}

impl Key {
    /// The value without the key, if there is one.
    pub fn default(&self) -> Option<toml::Value> {
        toml::Value::try_from(self.schema.get("default")?).ok()
    }

    /// What it means.
    pub fn description(&self) -> &str {
        self.schema["description"].as_str().unwrap_or_default()
    }
}

/// All tables, each before those that are in it.
pub fn all() -> Vec<Table> {
    let schema = config::schema().to_value();
    let mut tables = Vec::new();
    for section in ["node"].into_iter().chain(jobs::registry().sections().map(|it| it.name)) {
        add(&mut tables, &schema["properties"][section], section, &format!("[{section}]"));
    }
    tables
}

/// Adds a table and those in it.
fn add(tables: &mut Vec<Table>, schema: &Value, path: &str, heading: &str) {
    // A table whose `type` decides on its keys is there once for each type.
    if let Some(variants) = schema["oneOf"].as_array() {
        variants.iter().for_each(|variant| add(tables, variant, path, heading));
        return;
    }
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let (mut keys, mut below) = (Vec::new(), Vec::new());
    for (name, value) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        if is_table(value) {
            below.push((value, format!("[{path}]"), path));
        } else if is_table(&value["items"]) {
            below.push((&value["items"], format!("[[{path}]]"), path));
        } else {
            let required = required.iter().any(|it| it == name);
            keys.push(Key { name: name.clone(), required, schema: value.clone() });
        }
    }
    tables.push(Table {
        heading: heading.to_owned(),
        of_type: schema["properties"]["type"]["const"].as_str().map(str::to_owned),
        description: schema["description"].as_str().unwrap_or_default().to_owned(),
        keys,
    });
    for (value, heading, path) in below {
        add(tables, value, &path, &heading);
    }
}

/// Whether a value is a table.
pub fn is_table(schema: &Value) -> bool {
    let variants = schema["oneOf"].as_array();
    schema["type"] == "object" || variants.is_some_and(|all| all.iter().any(is_table))
}

/// The words that are values of a key, or of the elements of its list, with their meanings.
pub fn words(schema: &Value) -> Vec<(&str, &str)> {
    let at = if schema["items"].is_object() { &schema["items"] } else { schema };
    at["oneOf"].as_array().into_iter().flatten().filter_map(word).collect()
}

/// The word and the meaning of one of them.
fn word(variant: &Value) -> Option<(&str, &str)> {
    Some((variant["const"].as_str()?, variant["description"].as_str()?))
}

/// The values of a key that has only a few: `"auto"` or `"native"`.
fn one_of(schema: &Value) -> Option<String> {
    let words: Vec<Value> = match schema["enum"].as_array() {
        Some(values) => values.clone(),
        None => words(schema).into_iter().map(|(word, _)| word.into()).collect(),
    };
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    let (last, others) = quoted.split_last()?;
    Some(if others.is_empty() { last.clone() } else { format!("{} or {last}", others.join(", ")) })
}

/// The type of a key's value, in words.
pub fn kind(schema: &Value) -> String {
    if let Some(value) = schema.get("const") {
        return format!("`{value}`");
    }
    if let Some(title) = schema["title"].as_str() {
        let example = schema["examples"][0].as_str().map(|it| format!(" such as `\"{it}\"`"));
        return format!("{title}{}", example.unwrap_or_default());
    }
    if let Some(variants) = schema["anyOf"].as_array() {
        return variants.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("array"), _) => format!("list of {}", plural(&kind(&schema["items"]))),
        (_, Some("ip")) => "IP address".into(),
        (_, Some("ipv4")) => "IPv4 address".into(),
        (_, Some("ipv6")) => "IPv6 address".into(),
        (Some(noun @ ("integer" | "number")), _) => {
            match (&schema["minimum"], &schema["maximum"]) {
                (least, most) if most.is_number() => format!("{noun} from {least} to {most}"),
                (least, _) if least.as_f64() > Some(0.0) => format!("{noun} of at least {least}"),
                _ => noun.into(),
            }
        }
        (Some("boolean"), _) => "boolean".into(),
        _ => one_of(schema).map_or_else(|| "string".into(), |words| format!("one of {words}")),
    }
}

/// The plural of a type; the example stays behind it.
fn plural(kind: &str) -> String {
    let (noun, rest) = kind.split_at(kind.find(" such as").unwrap_or(kind.len()));
    match noun {
        noun if noun.starts_with("list of") => format!("lists{}{rest}", &noun["list".len()..]),
        noun if noun.starts_with("one of ") => noun["one of ".len()..].into(),
        "prefix" => format!("prefixes{rest}"),
        "prefix or address" => format!("prefixes or addresses{rest}"),
        "address with port" => format!("addresses with ports{rest}"),
        "community" | "large community" => format!("{}ies{rest}", noun.trim_end_matches('y')),
        noun if noun.starts_with("integer") => format!("integers{}", &noun["integer".len()..]),
        noun if noun.ends_with('s') => format!("{noun}es{rest}"),
        noun => format!("{noun}s{rest}"),
    }
}
