//! What an import took, what it could not take, and what it had to assume.

use super::Format;
use super::graph::Graph;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// So many examples are shown of each thing that went wrong.
const EXAMPLES: usize = 5;
/// Characters of a line that are shown.
const SHOWN: usize = 80;

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    /// Nodes of the network.
    pub nodes: u32,
    /// Its directed links.
    pub links: u32,
    /// Its links by settings, weight and relation.
    pub kinds: usize,
    /// Prefixes behind its nodes.
    pub prefixes: u64,
    /// Forwarding entries: one for each traced destination at each node on the path.
    pub entries: u64,
    /// The files, in the order in which they were read.
    pub files: Vec<FileReport>,
    /// What was wrong in them and could not be taken.
    pub bad: Vec<Count>,
    /// What was right but has no place in the network.
    pub skipped: Vec<Count>,
    /// What no file says and was assumed.
    pub assumptions: Vec<String>,
}

/// What was read from one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileReport {
    /// The file.
    pub file: PathBuf,
    /// What it was read as.
    pub format: Format,
    /// Lines, in formats that have lines.
    pub lines: u64,
    /// What was taken: traces, routers, links, relations, prefixes.
    pub taken: u64,
    /// What was bad.
    pub bad: u64,
}

/// How often something was met, and where first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Count {
    /// What.
    pub what: &'static str,
    /// How often.
    pub count: u64,
    /// Where at first.
    pub examples: Vec<Example>,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Example {
    /// The file.
    pub file: PathBuf,
    /// The line, or in files without lines the record, from 1; 0 for the file as a whole.
    pub line: u64,
    /// What is there, shortened.
    pub text: String,
}

impl fmt::Display for Example {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.text.is_empty() {
            write!(f, ": {}", self.text)?;
        }
        Ok(())
    }
}

/// Counts one more.
fn add(list: &mut Vec<Count>, what: &'static str, example: impl FnOnce() -> Example) {
    let index = list.iter().position(|count| count.what == what).unwrap_or_else(|| {
        list.push(Count { what, count: 0, examples: Vec::new() });
        list.len() - 1
    });
    if let Some(count) = list.get_mut(index) {
        count.count += 1;
        if count.examples.len() < EXAMPLES {
            count.examples.push(example());
        }
    }
}

/// Safe to show, and short.
fn shown(text: &str) -> String {
    let mut shown = config::printable(text.trim().chars().take(SHOWN + 1));
    if let Some((at, _)) = shown.char_indices().nth(SHOWN) {
        shown.truncate(at);
        shown.push_str("...");
    }
    shown
}

impl ImportReport {
    /// How many things were bad.
    #[cfg(test)]
    pub(super) fn bad_count(&self) -> u64 {
        self.bad.iter().map(|count| count.count).sum()
    }

    /// Something that is known only when all files are read.
    pub(super) fn skipped(&mut self, what: &'static str, text: impl FnOnce() -> String) {
        let example = || Example { file: PathBuf::new(), line: 0, text: text() };
        add(&mut self.skipped, what, example);
    }

    /// Says once what was assumed.
    pub(super) fn assume(&mut self, what: &str) {
        if !self.assumptions.iter().any(|known| known == what) {
            self.assumptions.push(what.to_owned());
        }
    }
}

/// Where a reader of files puts what it finds.
pub(super) struct Context<'a> {
    pub(super) graph: &'a mut Graph,
    report: &'a mut ImportReport,
    file: FileReport,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        graph: &'a mut Graph,
        report: &'a mut ImportReport,
        file: &Path,
        format: Format,
    ) -> Self {
        let file = FileReport { file: file.to_owned(), format, lines: 0, taken: 0, bad: 0 };
        Self { graph, report, file }
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.file.file
    }

    /// Another line was read.
    pub(super) fn line(&mut self) {
        self.file.lines += 1;
    }

    /// Something was taken.
    pub(super) fn taken(&mut self) {
        self.file.taken += 1;
    }

    /// A line or record is wrong. Line 0 stands for the whole file.
    pub(super) fn bad(&mut self, line: u64, what: &'static str, text: &str) {
        self.file.bad += 1;
        let file = &self.file.file;
        add(&mut self.report.bad, what, || Example { file: file.clone(), line, text: shown(text) });
    }

    /// A line of a file that belongs to this one is wrong.
    pub(super) fn bad_in(&mut self, file: &Path, line: u64, what: &'static str, text: &str) {
        self.file.bad += 1;
        let file = file.to_owned();
        add(&mut self.report.bad, what, || Example { file, line, text: shown(text) });
    }

    /// A line of a file that belongs to this one is right, but nothing can be made of it.
    pub(super) fn skipped_in(&mut self, file: &Path, line: u64, what: &'static str, text: &str) {
        let file = file.to_owned();
        add(&mut self.report.skipped, what, || Example { file, line, text: shown(text) });
    }

    /// A line or record is right, but nothing can be made of it.
    pub(super) fn skipped(&mut self, line: u64, what: &'static str, text: &str) {
        let file = &self.file.file;
        let example = || Example { file: file.clone(), line, text: shown(text) };
        add(&mut self.report.skipped, what, example);
    }

    /// Says once what was assumed.
    pub(super) fn assume(&mut self, what: &str) {
        self.report.assume(what);
    }

    /// The file is read; returns what was taken of it.
    pub(super) fn done(self) -> FileReport {
        self.report.files.push(self.file.clone());
        self.file
    }
}
