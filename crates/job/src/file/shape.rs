//! Unknown keys, wrong types and missing keys, all of them and not only the first.
//!
//! serde stops at the first error. So a section is deserialized again and again: each time the key
//! in error is reported and removed from a copy of the section, until the rest is valid or nothing more
//! can be removed. Errors that only follow from a removed key are not reported.

use super::{
    Document, Renamed,
    position::{self, Node},
    report::{Finding, Severity},
};
use crate::section::Read;
use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::de::{DeValue, ValueDeserializer};

/// The most errors about one section.
const LIMIT: usize = 50;

/// serde's error for a value that should be one of several words and is not a text.
const NO_WORD: &str = "wanted string or table";

/// Reads the sections of one document and collects what is wrong with their shape.
pub struct Reader<'a, 'i> {
    text: &'a str,
    root: &'a Node<'i>,
    renamed: Vec<Renamed>,
    findings: Vec<Finding>,
    reads: Vec<Read>,
    unknown_section: bool,
    element_removed: bool,
}

impl<'a, 'i> Reader<'a, 'i> {
    /// A reader of a document; `renamed` are the renamed keys.
    pub fn new(document: &'a Document<'i>, renamed: Vec<Renamed>) -> Self {
        Self {
            text: document.text,
            root: &document.root,
            renamed,
            findings: Vec::new(),
            reads: Vec::new(),
            unknown_section: false,
            element_removed: false,
        }
    }

    /// All findings.
    pub fn into_findings(self) -> Vec<Finding> {
        self.findings
    }

    /// The sections that were read since the last call, also those that are not in the file.
    pub(crate) fn take_reads(&mut self) -> Vec<Read> {
        std::mem::take(&mut self.reads)
    }

    /// Whether there was an unknown section; a missing one is probably that one.
    pub fn found_unknown_section(&self) -> bool {
        self.unknown_section
    }

    /// Whether indices in keys of `problems` are still those of the file.
    pub fn indices_are_kept(&self) -> bool {
        !self.element_removed
    }

    /// Whether the file has this section.
    pub fn has(&self, section: &str) -> bool {
        self.root.get_ref().get(section).is_some()
    }

    /// Whether this section is a list: `[[name]]`.
    pub fn is_list(&self, section: &str) -> bool {
        let value = self.root.get_ref().get(section);
        value.is_some_and(|value| matches!(value.get_ref(), DeValue::Array(_)))
    }

    /// Reports an error about `key` where a section begins.
    pub fn error_at(&mut self, section: &str, key: &str, message: String) {
        let span = self.root.get_ref().get(section).map(toml::Spanned::span);
        match span {
            Some(span) => self.error(span, key, message),
            None => self.error_at_end(key, message),
        }
    }

    /// Reports an error about `key`, which is missing, at the end of the file; without a key it is about
    /// the whole file.
    pub fn error_at_end(&mut self, key: &str, message: String) {
        self.error(self.text.len()..self.text.len(), key, message);
    }

    /// Reports an error at `span`.
    fn error(&mut self, span: Range<usize>, key: &str, message: String) {
        let finding = Finding::at(self.text, span, Severity::Error, key.into(), message);
        self.findings.push(finding);
    }

    /// Reports every section that is not in `known`.
    pub fn sections(&mut self, known: &[&str]) {
        let DeValue::Table(table) = self.root.get_ref() else { return };
        for (key, value) in table {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            self.unknown_section = true;
            let is_table = matches!(value.get_ref(), DeValue::Table(_) | DeValue::Array(_));
            let mut message = if is_table {
                format!("unknown section `[{name}]`: ")
            } else {
                format!("`{name}` is before the first section: ")
            };
            if let Some((_, new)) = self.renamed_key(name) {
                let message = format!("`{name}` was renamed to `{new}`");
                self.error(key.span(), name, message);
                continue;
            }
            match config::alike(name, known).first().filter(|_| is_table) {
                Some(close) => message += &format!("did you mean `[{close}]`?"),
                None if is_table => message += &format!("there are {}", list(known)),
                None => message += "move it below the section to which it belongs",
            }
            self.error(key.span(), name, message);
        }
    }

    /// Deserializes one section: `None` if the file has none, `Some(None)` if it cannot be read or has
    /// renamed keys.
    pub fn section<T: DeserializeOwned + 'static>(&mut self, name: &str) -> Option<Option<T>> {
        self.reads.push(Read::new::<T>(name));
        let mut section = self.root.get_ref().get(name)?.clone();
        let mut gone = self.refuse_renamed(name, &mut section);
        let is_whole = gone.is_empty();
        for _ in 0..LIMIT {
            let error = match T::deserialize(ValueDeserializer::from(section.clone())) {
                // Checks would report defaults in place of what the old keys say.
                Ok(value) => return Some(is_whole.then_some(value)),
                Err(error) => error,
            };
            let message = error.message().to_owned();
            let mut span = error.span().unwrap_or(section.span());
            if let Some(blamed) = blame::<T>(&section, &span, &message) {
                span = blamed;
            }
            let (key, key_span) =
                position::at(self.root, &span).unwrap_or((name.to_owned(), span.clone()));
            match backticked(&message, "missing field `") {
                Some(field) => {
                    let full = position::join(&key, field);
                    if !gone.contains(&full) {
                        let text = format!("`{field}` is missing");
                        self.error(span.clone(), &full, text);
                    }
                }
                None => {
                    let (text, meant) = match self.text.get(span.clone()) {
                        Some(value) if message == NO_WORD => {
                            (format!("{value} is not one word in quotes"), None)
                        }
                        _ => reword(&key, &message),
                    };
                    let at =
                        if message.starts_with("unknown field") { key_span } else { span.clone() };
                    self.error(at, &key, text);
                    if let (Some(meant), Some((table, _))) = (meant, key.rsplit_once('.')) {
                        gone.push(position::join(table, &meant));
                    }
                    gone.push(key);
                }
            }
            match remove(&mut section, &span) {
                Removed::Nothing => return Some(None),
                Removed::Element => self.element_removed = true,
                Removed::Key => {}
            }
        }
        Some(None)
    }

    /// The old and the new name of a renamed key.
    fn renamed_key(&self, key: &str) -> Option<(&'static str, &'static str)> {
        self.renamed.iter().copied().flatten().copied().find(|(old, _)| *old == key)
    }

    /// Reports the renamed keys of a section and removes them; returns their new
    /// names, which are not missing.
    fn refuse_renamed(&mut self, name: &str, section: &mut Node<'i>) -> Vec<String> {
        let mut new_keys = Vec::new();
        for (key, span) in position::keys(section, name) {
            let plain = position::without_indices(&key);
            let Some((_, new)) = self.renamed_key(&plain) else { continue };
            let old = key.rsplit('.').next().unwrap_or(&key);
            self.error(span.clone(), &key, format!("`{old}` was renamed to `{new}`"));
            // Beside the old one where it is in the same table, which an index may lead to.
            let beside = key.rsplit_once('.').zip(new.rsplit_once('.'));
            new_keys.push(match beside {
                Some(((table, _), (new_table, last)))
                    if position::without_indices(table) == new_table =>
                {
                    position::join(table, last)
                }
                _ => new.to_owned(),
            });
            remove(section, &span);
        }
        new_keys
    }
}

/// Finds the element or key that an error is about, where the error only names the array or table
/// around it.
///
/// That happens for elements of arrays, and below tables that choose their variant by a tag: serde
/// first reads those into a buffer without positions. The culprit is the one without which the error
/// is a different one.
fn blame<T: DeserializeOwned>(
    section: &Node<'_>,
    span: &Range<usize>,
    message: &str,
) -> Option<Range<usize>> {
    let after = |at: &Range<usize>| {
        let mut without = section.clone();
        remove(&mut without, at);
        T::deserialize(ValueDeserializer::from(without)).err()
    };
    let to_blame = |at: &Range<usize>| after(at).is_none_or(|error| error.message() != message);
    // A key that is only missing because it was removed is not the culprit.
    let surely = |at: &Range<usize>| {
        let missed = |error: &toml::de::Error| error.message().starts_with("missing field");
        to_blame(at) && !after(at).is_some_and(|error| missed(&error))
    };
    let mut node = node_at(section, span)?;
    if let DeValue::Array(array) = node.get_ref() {
        node = array.iter().take(LIMIT).find(|element| to_blame(&element.span()))?;
    }
    let DeValue::Table(table) = node.get_ref() else { return Some(node.span()) };
    if message.starts_with("missing field") {
        return Some(node.span());
    }
    let key = match backticked(message, "unknown field `") {
        Some(unknown) => table.iter().find(|(key, _)| key.get_ref() == unknown),
        None => {
            let keys = || table.iter().take(LIMIT);
            let sure = keys().find(|(_, value)| surely(&value.span()));
            sure.or_else(|| keys().find(|(_, value)| to_blame(&value.span())))
        }
    };
    Some(key.map_or(node.span(), |(_, value)| value.span()))
}

/// The outermost node at `span`.
fn node_at<'n, 'i>(node: &'n Node<'i>, span: &Range<usize>) -> Option<&'n Node<'i>> {
    match node.get_ref() {
        _ if node.span() == *span => Some(node),
        DeValue::Table(table) => table.values().find_map(|value| node_at(value, span)),
        DeValue::Array(array) => array.iter().find_map(|value| node_at(value, span)),
        _ => None,
    }
}

/// What [`remove`] took out.
enum Removed {
    Nothing,
    Key,
    Element,
}

/// Removes the innermost key or element at `span` from `node`.
fn remove(node: &mut Node<'_>, span: &Range<usize>) -> Removed {
    match node.get_mut() {
        DeValue::Table(table) => {
            let inner = first(table.iter_mut().map(|(_, value)| value), span);
            let hit = table.iter().find(|(k, v)| k.span() == *span || v.span() == *span);
            match (inner, hit.map(|(key, _)| key.clone())) {
                (Removed::Nothing, Some(key)) => {
                    table.remove(&key);
                    Removed::Key
                }
                (inner, _) => inner,
            }
        }
        DeValue::Array(array) => {
            let inner = first(array.iter_mut(), span);
            let hit = array.iter().any(|value| value.span() == *span);
            if hit && matches!(inner, Removed::Nothing) {
                *array = array.iter().filter(|value| value.span() != *span).cloned().collect();
                return Removed::Element;
            }
            inner
        }
        _ => Removed::Nothing,
    }
}

/// Removes what is at `span` from the first node that has it.
fn first<'n, 'i: 'n>(
    nodes: impl Iterator<Item = &'n mut Node<'i>>,
    span: &Range<usize>,
) -> Removed {
    nodes
        .map(|node| remove(node, span))
        .find(|removed| !matches!(removed, Removed::Nothing))
        .unwrap_or(Removed::Nothing)
}

/// serde's message in nigh's words, and the key that was probably meant.
fn reword(key: &str, message: &str) -> (String, Option<String>) {
    if position::is_secret(key) && message.starts_with("invalid ") {
        // serde quotes the value in these messages.
        return ("must be a text in quotes".into(), None);
    }
    for (start, kind) in [("unknown field `", "key"), ("unknown variant `", "value")] {
        let Some(name) = backticked(message, start) else { continue };
        let expected = message.split_once("expected ").map_or("", |(_, rest)| rest);
        let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
        let close = config::alike(name, known.iter().copied()).first().copied();
        let text = match close {
            Some(close) => format!("unknown {kind} `{name}`: did you mean `{close}`?"),
            None => format!("unknown {kind} `{name}`: there are {}", list(&known)),
        };
        return (text, close.filter(|_| kind == "key").map(str::to_owned));
    }
    let text = match message {
        "invalid socket address syntax" => {
            "expected an address with a port, such as `127.0.0.1:9160` or `[::1]:9160`".into()
        }
        "invalid IP address syntax" => {
            "expected an IP address or prefix, such as `192.0.2.1` or `2001:db8::/48`".into()
        }
        _ => match message.rsplit_once("expected ") {
            Some((start, "u8")) => format!("{start}expected a number from 0 to 255"),
            Some((start, "u16")) => format!("{start}expected a number from 0 to 65535"),
            Some((start, "u32")) => format!("{start}expected a number from 0 to 4294967295"),
            Some((start, "u64")) => format!("{start}expected a number from 0 on"),
            Some((start, "a duration")) => format!("{start}{}", config::DURATION),
            Some((start, what)) if what.starts_with("struct ") => {
                format!("{start}expected a section")
            }
            _ => message.to_owned(),
        },
    };
    (text, None)
}

/// The text between `start`, which ends with a backtick, and the next backtick.
fn backticked<'m>(message: &'m str, start: &str) -> Option<&'m str> {
    message.strip_prefix(start)?.split('`').next()
}

/// The words in backticks, with commas.
fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    if quoted.is_empty() { "none".into() } else { quoted.join(", ") }
}

/// The position of a dotted key with more than `limit` parts, if there is one.
///
/// A parsed document is walked and dropped recursively, so its depth is bounded before it is
/// parsed. The parser itself bounds brackets within brackets.
pub(super) fn too_deep(text: &str, limit: usize) -> Option<usize> {
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if dots(line) > limit {
            return Some(offset);
        }
        offset += line.len();
    }
    None
}

/// The dots of a line outside quotes and comments; all of them where the quotes do not match.
fn dots(line: &str) -> usize {
    let mut quote = None;
    let mut count = 0;
    for c in line.chars() {
        match (quote, c) {
            (None, '#') => return count,
            (None, '.') => count += 1,
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    if quote.is_none() { count } else { line.matches('.').count() }
}
