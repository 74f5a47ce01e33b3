//! What changed between two JSON texts, as a JSON patch (RFC 6902).
//!
//! Its use is in network maps: one prefix that moves from one PID to another is two operations, where a
//! merge patch holds both PIDs' arrays whole (RFC 8895 section 9.1). Arrays of distinct strings are compared
//! as sets in order: first what left is removed, from the back, then what came is added, from the front.

use serde_json::{Map, Value, json};
use std::{collections::HashSet, fmt::Write};

/// Bytes of one operation besides its path and value, about.
const OPERATION: usize = 32;

/// The JSON patch that turns `old` into `new`.
pub fn diff(old: &Value, new: &Value) -> Value {
    let mut operations = Vec::new();
    compare(&mut String::new(), old, new, &mut operations);
    Value::Array(operations)
}

fn compare(path: &mut String, old: &Value, new: &Value, operations: &mut Vec<Value>) {
    match (old, new) {
        (old, new) if old == new => {}
        (Value::Object(old), Value::Object(new)) => objects(path, old, new, operations),
        (Value::Array(old), Value::Array(new)) if arrays(path, old, new, operations) => {}
        _ => operations.push(json!({ "op": "replace", "path": path, "value": new })),
    }
}

fn objects(
    path: &mut String,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    operations: &mut Vec<Value>,
) {
    let length = path.len();
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        step(path, name);
        operations.push(json!({ "op": "remove", "path": path }));
        path.truncate(length);
    }
    for (name, value) in new {
        step(path, name);
        match old.get(name) {
            Some(before) => compare(path, before, value, operations),
            None => operations.push(json!({ "op": "add", "path": path, "value": value })),
        }
        path.truncate(length);
    }
}

/// Appends a member's name to a JSON pointer (RFC 6901 section 3).
fn step(path: &mut String, name: &str) {
    path.push('/');
    for letter in name.chars() {
        match letter {
            '~' => path.push_str("~0"),
            '/' => path.push_str("~1"),
            other => path.push(other),
        }
    }
}

/// Writes the change of an array element by element; false, and no operation, if that cannot be done or
/// would be longer than the array.
fn arrays(path: &mut String, old: &[Value], new: &[Value], operations: &mut Vec<Value>) -> bool {
    let (Some(before), Some(after)) = (distinct(old), distinct(new)) else { return false };
    let stayed = |list: &[Value], other: &HashSet<&str>| -> Vec<usize> {
        let at = |(index, value): (usize, &Value)| {
            value.as_str().is_some_and(|text| other.contains(text)).then_some(index)
        };
        list.iter().enumerate().filter_map(at).collect()
    };
    let (kept, found) = (stayed(old, &after), stayed(new, &before));
    let moved = kept.len() != found.len()
        || kept.iter().zip(&found).any(|(&from, &to)| old.get(from) != new.get(to));
    let changes = (old.len() - kept.len()) + (new.len() - found.len());
    let whole: usize = new.iter().filter_map(Value::as_str).map(|text| text.len() + 3).sum();
    if moved || changes * (path.len() + OPERATION) > whole {
        return false;
    }
    let length = path.len();
    let mut emit = |index: usize, value: Option<&Value>| {
        // Writing to a string does not fail.
        let _ = write!(path, "/{index}");
        operations.push(match value {
            Some(value) => json!({ "op": "add", "path": path, "value": value }),
            None => json!({ "op": "remove", "path": path }),
        });
        path.truncate(length);
    };
    let leaves = |value: &Value| value.as_str().is_some_and(|text| !after.contains(text));
    for (index, _) in old.iter().enumerate().rev().filter(|(_, value)| leaves(value)) {
        emit(index, None);
    }
    let comes = |value: &Value| value.as_str().is_some_and(|text| !before.contains(text));
    for (index, value) in new.iter().enumerate().filter(|(_, value)| comes(value)) {
        emit(index, Some(value));
    }
    true
}

/// The strings of an array, if it holds nothing else and none twice.
fn distinct(list: &[Value]) -> Option<HashSet<&str>> {
    let mut texts = HashSet::with_capacity(list.len());
    list.iter().all(|value| value.as_str().is_some_and(|text| texts.insert(text))).then_some(texts)
}
