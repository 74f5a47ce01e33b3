//! Reads the pages: blocks of code, tables, spans of code, links.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A page of the documentation.
pub(crate) struct Page {
    /// Where it is, relative to the repository.
    pub(crate) path: PathBuf,
    text: String,
}

/// A fenced block of code.
pub(crate) struct Block<'a> {
    /// What is behind the first fence, such as `toml`.
    pub(crate) language: &'a str,
    /// Its lines, each with its end.
    pub(crate) text: String,
    /// The line of the first fence.
    pub(crate) line: usize,
}

/// A table with what it is about.
pub(crate) struct Table<'a> {
    /// The last section of a configuration that was named before it: `[echo]` in a heading, or alone
    /// at the beginning of a line.
    pub(crate) section: Option<&'a str>,
    /// The cells of the first row.
    pub(crate) header: Vec<String>,
    /// The cells of the other rows, with their lines.
    pub(crate) rows: Vec<(usize, Vec<String>)>,
}

/// The folder of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The pages at the top of the repository, in docs/ and of the clients that speak of the program as it
/// is: neither the decisions nor the history.
pub(crate) fn pages() -> Vec<Page> {
    let single = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "GLOSSARY.md",
        "clients/python/README.md",
    ];
    let mut paths: Vec<PathBuf> = single.iter().map(PathBuf::from).collect();
    paths.extend(markdown("docs"));
    paths.into_iter().map(Page::read).collect()
}

/// The pages of a folder of the repository, by name.
pub(crate) fn markdown(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(repository().join(folder)).unwrap();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| Path::new(folder).join(entry.unwrap().file_name()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    paths.sort();
    paths
}

impl Page {
    /// Reads a page of the repository.
    pub(crate) fn read(path: PathBuf) -> Self {
        let text = fs::read_to_string(repository().join(&path)).unwrap();
        Self { path, text }
    }

    /// Its text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// `docs/echo.md:12`.
    pub(crate) fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }

    /// Its blocks of code.
    pub(crate) fn blocks(&self) -> Vec<Block<'_>> {
        let mut blocks: Vec<Block<'_>> = Vec::new();
        // The indentation of the block that is open: one of a numbered step is indented.
        let mut open = None;
        for (line, text) in (1..).zip(self.text.lines()) {
            match (fence(text), open) {
                (Some(language), None) => {
                    blocks.push(Block { language: language.trim(), text: String::new(), line });
                    open = Some(text.len() - text.trim_start().len());
                }
                (Some(_), Some(_)) => open = None,
                (None, Some(indentation)) => {
                    let block = blocks.last_mut().unwrap();
                    block.text.push_str(text.get(indentation..).unwrap_or_default());
                    block.text.push('\n');
                }
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: the last block has no end", self.path.display());
        blocks
    }

    /// Its lines with their numbers.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// Its lines outside of blocks of code, with their numbers.
    pub(crate) fn prose(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut in_block = false;
        (1..).zip(self.text.lines()).filter(move |(_, line)| {
            let fence = fence(line).is_some();
            in_block ^= fence;
            !fence && !in_block
        })
    }

    /// Its spans of code outside of blocks, with their lines.
    pub(crate) fn spans(&self) -> Vec<(usize, &str)> {
        self.prose()
            .flat_map(|(number, line)| {
                line.split('`').skip(1).step_by(2).map(move |span| (number, span))
            })
            .collect()
    }

    /// Its headings, without their marks.
    pub(crate) fn headings(&self) -> impl Iterator<Item = &str> {
        self.prose()
            .filter(|(_, line)| line.starts_with('#'))
            .map(|(_, line)| line.trim_start_matches('#').trim())
    }

    /// Where its links lead, with their lines.
    pub(crate) fn links(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (number, line) in self.prose() {
            // Without spans of code, in which brackets mean other things.
            let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("x");
            for part in plain.split("](").skip(1) {
                found.push((number, part.split(')').next().unwrap_or_default().to_owned()));
            }
        }
        found
    }

    /// Its tables.
    pub(crate) fn tables(&self) -> Vec<Table<'_>> {
        let mut tables: Vec<Table<'_>> = Vec::new();
        let mut section = None;
        let mut last = 0;
        for (number, line) in self.prose() {
            if let Some(named) = named_section(line) {
                section = Some(named);
            }
            let Some(row) = line.strip_prefix('|') else { continue };
            let cells = cells(row);
            match tables.last_mut() {
                Some(table) if last + 1 == number => {
                    if !cells.iter().all(|cell| cell.chars().all(|c| c == '-' || c == ' ')) {
                        table.rows.push((number, cells));
                    }
                }
                _ => tables.push(Table { section, header: cells, rows: Vec::new() }),
            }
            last = number;
        }
        tables
    }
}

/// What is behind a fence, in the line that begins or ends a block of code.
fn fence(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("```")
}

/// The section that a heading or the beginning of a line names: `echo` of `[echo]`, `gate.rule` of
/// `[[gate.rule]]`. A heading without one ends the previous section.
fn named_section(line: &str) -> Option<&str> {
    let heading = line.starts_with('#');
    let text = line.trim_start_matches('#').trim_start().trim_start_matches('`');
    match text.strip_prefix('[') {
        Some(rest) => {
            let end = rest.find(']')?;
            let name = rest[..end].trim_start_matches('[');
            let plain = |c: char| c.is_ascii_lowercase() || "._".contains(c);
            // A list of links begins with a bracket, too.
            (name.chars().all(plain) && (heading || line.starts_with('`'))).then_some(name)
        }
        None => heading.then_some(""),
    }
}

/// The cells of a table's row; `\|` in a cell is no border.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim_end().strip_suffix('|').unwrap_or(row).replace("\\|", "\u{0}");
    row.split('|').map(|cell| cell.trim().replace('\u{0}', "|")).collect()
}

#[test]
fn a_block_in_a_numbered_step_is_read_without_its_indentation() {
    let text = "1. First:\n\n   ```sh\n   nigh status\n\n     indented\n   ```\n\n   `span`\n";
    let page = Page { path: PathBuf::new(), text: text.into() };
    let [block] = &page.blocks()[..] else { panic!("one block") };
    assert_eq!((block.language, block.line), ("sh", 3));
    assert_eq!(block.text, "nigh status\n\n  indented\n");
    assert_eq!(page.spans(), [(9, "span")]);
}
