//! The findings in a configuration file, for people and for programs.
//!
//! For people a finding looks like a compiler's: what is wrong, `file:line:column`, the line
//! itself, and a mark under the words in question.

use super::position;
use config::printable;
use serde::{Deserialize, Serialize};
use std::{
    fmt::Write,
    ops::Range,
    path::{Path, PathBuf},
};

/// The most findings that a report keeps; more rarely help.
const LIMIT: usize = 100;
/// Longest part of a line that is shown, in characters.
const LINE_LIMIT: usize = 160;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file is valid, but the operator should know.
    Warning,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// Dotted key such as `anycast.upstream[1].peer`; empty where there is none.
    pub key: String,
    /// What is wrong and what to do.
    pub message: String,
    /// The line of the file; a secret in it is masked.
    pub text: String,
    /// How many characters of the line are marked, from the column on; at least 1.
    pub length: usize,
}

impl Finding {
    /// A finding about the bytes `span` of `text`.
    pub(super) fn at(
        text: &str,
        span: Range<usize>,
        severity: Severity,
        key: String,
        message: String,
    ) -> Self {
        let mut start = span.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        // What is missing at the very end is reported on the last line that is not blank.
        if start == text.len() {
            start = text.trim_end().len();
        }
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = text[line_start..].split('\n').next().unwrap_or_default();
        let line = line.trim_end_matches('\r');
        let column = text[line_start..start].chars().count() + 1;
        let end = span.end.clamp(start, (line_start + line.len()).max(start));
        let length = text.get(start..end).map_or(1, |marked| marked.chars().count().max(1));
        let secret = position::is_secret(&key) || position::mentions_secret(line);
        let shown = if secret { mask(line) } else { line.to_owned() };
        Self {
            severity,
            line: before.matches('\n').count() + 1,
            column,
            key,
            message,
            length: length.min(shown.chars().count().saturating_sub(column - 1).max(1)),
            text: shown,
        }
    }
}

/// A line that sets a secret without its value.
fn mask(line: &str) -> String {
    match line.find('=') {
        Some(at) => format!("{}= ***", &line[..at]),
        None => "***".into(),
    }
}

/// All findings in one file, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The file.
    pub file: PathBuf,
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Report {
    /// An empty report about the file at `path`.
    pub fn new(path: &Path) -> Self {
        Self { file: path.into(), findings: Vec::new() }
    }

    /// Puts the findings in the order of the file and keeps the first ones.
    pub fn finish(&mut self) {
        self.findings.sort_by_key(|finding| (finding.line, finding.column));
        self.findings.dedup();
        self.findings.truncate(LIMIT);
    }

    /// How many errors there are.
    pub fn errors(&self) -> usize {
        self.findings.iter().filter(|finding| finding.severity == Severity::Error).count()
    }

    /// Whether the file is refused.
    pub fn has_errors(&self) -> bool {
        self.errors() > 0
    }

    /// All findings in one sentence, for a log line.
    pub fn sentence(&self) -> String {
        let mut text = String::new();
        for finding in self.findings.iter().filter(|f| f.severity == Severity::Error) {
            if !text.is_empty() {
                text.push_str("; ");
            }
            let file = self.file.display();
            let _ =
                write!(text, "{file}:{}:{}: {}", finding.line, finding.column, headline(finding));
        }
        text
    }

    /// Logs the findings of a valid file, which are warnings.
    pub fn log(&self) {
        for finding in &self.findings {
            tracing::warn!(key = finding.key, line = finding.line, "{}", finding.message);
        }
    }

    /// All findings for people; ends with a newline unless there are none.
    pub fn render(&self) -> String {
        let mut out = String::new();
        for finding in &self.findings {
            render(finding, &self.file, &mut out);
        }
        out
    }
}

/// Key and message of a finding.
fn headline(finding: &Finding) -> String {
    if finding.key.is_empty() {
        printable(finding.message.chars())
    } else {
        printable(format!("{}: {}", finding.key, finding.message).chars())
    }
}

/// Appends one finding to `out`.
fn render(finding: &Finding, file: &Path, out: &mut String) {
    let severity = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let number = finding.line.to_string();
    let gutter = " ".repeat(number.len());
    let skip = (finding.column - 1).saturating_sub(LINE_LIMIT / 2);
    // Tabs become blanks, so that the mark is in its column.
    let shown = printable(finding.text.chars().skip(skip).take(LINE_LIMIT));
    let lead = " ".repeat(finding.column - 1 - skip);
    let marks = "^".repeat(finding.length.min(LINE_LIMIT));
    let _ = writeln!(out, "{severity}: {}", headline(finding));
    let _ = writeln!(out, "{gutter}--> {}:{number}:{}", file.display(), finding.column);
    let _ = writeln!(out, "{gutter} |");
    let _ = writeln!(out, "{number} | {shown}");
    let _ = writeln!(out, "{gutter} | {lead}{marks}");
}
