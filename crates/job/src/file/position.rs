//! Positions of keys in the file: from dotted keys to byte ranges and back.
//!
//! A dotted key is written as in TOML, with indices for arrays: `anycast.upstream[1].peer`.

use std::ops::Range;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// A value with its position in the file.
pub(super) type Node<'i> = Spanned<DeValue<'i>>;

/// The last parts of dotted keys whose values are never shown.
const SECRET_KEYS: [&str; 3] = ["password", "authentication.key", "name_key"];
/// Words in a line that did not parse if it may set a secret: anywhere, or before the first `=`.
const SECRET_WORDS: ([&str; 2], &str) = (["password", "authentication"], "key");

/// A parsed document as one value, so that it can be walked like any other.
pub(super) fn document(root: Spanned<DeTable<'_>>) -> Node<'_> {
    let span = root.span();
    Spanned::new(span, DeValue::Table(root.into_inner()))
}

/// Whether the last part of a dotted key names a secret.
pub(super) fn is_secret(key: &str) -> bool {
    let ends = |secret: &str| {
        key.strip_suffix(secret).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    SECRET_KEYS.iter().any(|secret| ends(secret))
}

/// Whether a line of the file seems to set a secret, for lines that did not parse.
pub(super) fn mentions_secret(line: &str) -> bool {
    let (anywhere, name) = SECRET_WORDS;
    anywhere.iter().any(|word| line.contains(word))
        || line.split('=').next().is_some_and(|key| key.contains(name))
}

/// Every secret in the file: its dotted key and the key's position.
pub(super) fn secrets(root: &Node<'_>) -> Vec<(String, Range<usize>)> {
    let mut found = Vec::new();
    walk(root, "", &mut |path, key_span, _| {
        if is_secret(path) {
            found.push((path.to_owned(), key_span));
        }
    });
    found
}

/// Every text that is not a secret, with its dotted key.
pub(super) fn texts(root: &Node<'_>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    walk(root, "", &mut |path, _, value| {
        if let Some(text) = value.get_ref().as_str().filter(|_| !is_secret(path)) {
            found.push((path.to_owned(), text.to_owned()));
        }
    });
    found
}

/// Every key in a section with its own name, outer ones first: the dotted key and its position.
pub(super) fn keys(section: &Node<'_>, name: &str) -> Vec<(String, Range<usize>)> {
    let mut found = Vec::new();
    walk(section, name, &mut |path, key_span, _| {
        if !path.ends_with(']') {
            found.push((path.to_owned(), key_span));
        }
    });
    found
}

/// A dotted key without its indices.
pub(super) fn without_indices(key: &str) -> String {
    let names = key.split('.').map(|part| part.split('[').next().unwrap_or(part));
    names.collect::<Vec<_>>().join(".")
}

/// The dotted key of the key or value exactly at `span`, with the position of the
/// key (for an element of an array, of the element). The innermost counts: an array of tables stands
/// where its first table does.
pub(super) fn at(root: &Node<'_>, span: &Range<usize>) -> Option<(String, Range<usize>)> {
    let mut found = None;
    walk(root, "", &mut |path, key_span, value| {
        if key_span == *span || value.span() == *span {
            found = Some((path.to_owned(), key_span));
        }
    });
    found
}

/// Calls `visit` with dotted key, position of the key, and value for everything below `node`.
fn walk(node: &Node<'_>, path: &str, visit: &mut impl FnMut(&str, Range<usize>, &Node<'_>)) {
    match node.get_ref() {
        DeValue::Table(table) => {
            for (key, value) in table {
                let path = join(path, key.get_ref());
                visit(&path, key.span(), value);
                walk(value, &path, visit);
            }
        }
        DeValue::Array(array) => {
            for (index, value) in array.iter().enumerate() {
                let path = format!("{path}[{index}]");
                visit(&path, value.span(), value);
                walk(value, &path, visit);
            }
        }
        _ => {}
    }
}

/// `path` and `key` with a dot between them.
pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The position of the value of a dotted key; of the nearest table around it if it is not written.
pub(super) fn find(root: &Node<'_>, key: &str, text: &str) -> Range<usize> {
    let mut node = root;
    let mut span = text.len()..text.len();
    for step in steps(key) {
        let next = match step {
            Step::Key(name) => node.get_ref().get(name),
            Step::Index(index) => node.get_ref().get(index),
        };
        let Some(next) = next else { break };
        node = next;
        span = node.span();
    }
    span
}

/// One step of a dotted key.
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// The steps of a dotted key; what is not an index is a name.
fn steps(key: &str) -> impl Iterator<Item = Step<'_>> {
    key.split('.').flat_map(|part| {
        let mut pieces = part.split('[');
        let name = pieces.next().filter(|name| !name.is_empty()).map(Step::Key);
        let indices = pieces.filter_map(|piece| piece.trim_end_matches(']').parse().ok());
        name.into_iter().chain(indices.map(Step::Index))
    })
}
