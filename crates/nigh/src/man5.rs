//! nigh.toml(5), made from the schema of the configuration.

use crate::{config, jobs};
use roff::{Inline, Roff, bold, roman};
use serde_json::Value;
use std::{fs, io, path::Path};

/// A file to start from.
pub const EXAMPLE: &str = r#"[node]
name = "prague"

[echo]                              # answers pings
interfaces = ["eth0"]
addresses = ["192.0.2.1", "2001:db8::1"]
[echo.limit]
rate = 100                          # requests a second for each source prefix

[anycast]                           # announces while healthy
prefixes = ["192.0.2.0/24", "2001:db8::/48"]
[[anycast.upstream]]
name = "isp"
type = "bgp"
peer = "198.51.100.1"
peer_as = 64496
local_as = 64497
next_hop6 = "2001:db8:1::2"
"#;

const DESCRIPTION: [&str; 3] = [
    "The configuration of the daemon, in TOML 1.0. A node runs a job if the file has the job's section. Unknown keys are refused; `nigh check` shows everything that is wrong with a file, with line and key. `nigh reload` or SIGHUP puts a changed file in force, all or nothing.",
    "A key is required unless a default is given or it is called optional. `[table]` is a table, `[[table]]` may be there several times.",
    "`nigh check --schema` prints the same as JSON Schema, for editors.",
];

/// Writes the page into a folder; into `man5` beside it if the folder is `man1`, where man(1) has
/// other pages.
///
/// # Errors
///
/// The system's.
pub fn write(folder: &Path) -> io::Result<()> {
    let beside = folder.with_file_name("man5");
    let folder = if folder.ends_with("man1") { &beside } else { folder };
    fs::create_dir_all(folder)?;
    fs::write(folder.join("nigh.toml.5"), page())
}

/// The page.
pub fn page() -> String {
    let schema = config::schema().to_value();
    let mut page = Page(Roff::new());
    let version = concat!("nigh ", env!("CARGO_PKG_VERSION"));
    // An empty argument is the date: the page is the same whenever it is made.
    page.0.control("TH", ["nigh.toml", "5", "\"\"", version, "File formats"]);
    page.0.control("SH", ["NAME"]).text([roman("nigh.toml - configuration of nigh")]);
    page.0.control("SH", ["SYNOPSIS"]).text([bold(config::DEFAULT_FILE)]);
    page.0.control("SH", ["DESCRIPTION"]);
    for paragraph in DESCRIPTION {
        page.paragraph(paragraph);
    }
    page.0.control("SH", ["EXAMPLE"]).control("EX", []).text([roman(EXAMPLE.trim_end())]);
    page.0.control("EE", []);
    for section in ["node"].into_iter().chain(jobs::registry().sections().map(|it| it.name)) {
        page.table(&schema["properties"][section], section, &format!("[{section}]"));
    }
    page.0.control("SH", ["SEE ALSO"]).text([bold("nigh"), roman("(1)")]);
    page.0.render()
}

/// The page as far as it is written.
struct Page(Roff);

impl Page {
    /// A paragraph of a description.
    fn paragraph(&mut self, text: &str) {
        self.0.control("PP", []).text(inlines(text));
    }

    /// A table with its keys, then its sub-tables.
    fn table(&mut self, schema: &Value, path: &str, heading: &str) {
        // A table whose `type` decides on its keys has a part for each type.
        if let Some(variants) = schema["oneOf"].as_array() {
            for variant in variants {
                let name = variant["properties"]["type"]["const"].as_str().unwrap_or_default();
                self.table(variant, path, &format!("{heading} of type {name}"));
            }
            return;
        }
        self.0.control("SH", [heading]);
        self.paragraph(schema["description"].as_str().unwrap_or_default());
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        let mut tables = Vec::new();
        for (key, value) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{key}");
            if is_table(value) {
                tables.push((value, format!("[{path}]"), path));
            } else if is_table(&value["items"]) {
                tables.push((&value["items"], format!("[[{path}]]"), path));
            } else {
                self.key(key, value, required.iter().any(|name| name == key));
            }
        }
        for (value, heading, path) in tables {
            self.table(value, &path, &heading);
        }
    }

    /// A key: its type, default, meaning, and the words that are its values.
    fn key(&mut self, key: &str, schema: &Value, required: bool) {
        let default = match schema.get("default").and_then(|it| toml::Value::try_from(it).ok()) {
            Some(default) => format!("default `{default}`"),
            None if required => "required".into(),
            None => "optional".into(),
        };
        self.0.control("TP", []).text([bold(key)]);
        let description = schema["description"].as_str().unwrap_or_default();
        self.0.text(inlines(&format!("({}, {default}) {description}", kind(schema))));
        let words = words(schema);
        if words.is_empty() {
            return;
        }
        self.0.control("RS", []);
        for (word, meaning) in words {
            self.0.control("TP", []).text([bold(format!("\"{word}\""))]).text(inlines(meaning));
        }
        self.0.control("RE", []);
    }
}

/// Whether a value is a table.
pub fn is_table(schema: &Value) -> bool {
    let variants = schema["oneOf"].as_array();
    schema["type"] == "object" || variants.is_some_and(|all| all.iter().any(is_table))
}

/// The words that are values of a key, or of the elements of its list, with their meanings.
fn words(schema: &Value) -> Vec<(&str, &str)> {
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
fn kind(schema: &Value) -> String {
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

/// A text with what is in backticks in bold.
fn inlines(text: &str) -> Vec<Inline> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let part = |(at, text): (usize, &str)| if at % 2 == 0 { roman(text) } else { bold(text) };
    text.split('`').enumerate().map(part).collect()
}
