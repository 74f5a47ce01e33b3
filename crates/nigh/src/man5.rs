//! nigh.toml(5), made from the schema of the configuration.

use crate::config::{
    self,
    tables::{self, Key, Table},
};
use roff::{Inline, Roff, bold, roman};
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
    tables::all().iter().for_each(|table| page.table(table));
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

    /// A table with its keys.
    fn table(&mut self, table: &Table) {
        let of_type = table.of_type.as_ref().map(|name| format!(" of type {name}"));
        let heading = format!("{}{}", table.heading, of_type.unwrap_or_default());
        self.0.control("SH", [heading.as_str()]);
        self.paragraph(&table.description);
        table.keys.iter().for_each(|key| self.key(key));
    }

    /// A key: its type, default, meaning, and the words that are its values.
    fn key(&mut self, key: &Key) {
        let default = match key.default() {
            Some(default) => format!("default `{default}`"),
            None if key.required => "required".into(),
            None => "optional".into(),
        };
        self.0.control("TP", []).text([bold(&key.name)]);
        let kind = tables::kind(&key.schema);
        self.0.text(inlines(&format!("({kind}, {default}) {}", key.description())));
        let words = tables::words(&key.schema);
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

/// A text with what is in backticks in bold.
fn inlines(text: &str) -> Vec<Inline> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let part = |(at, text): (usize, &str)| if at % 2 == 0 { roman(text) } else { bold(text) };
    text.split('`').enumerate().map(part).collect()
}
