//! What changed between two JSON texts, as a JSON merge patch (RFC 7396).
//!
//! A merge patch is a tree of the same shape with only what differs; `null` takes a member away. So it
//! cannot express that a member *is* null (RFC 8895 section 6.3, RFC 9569 section 5.2): then there is none.

use serde_json::{Map, Value};

/// The merge patch that turns `old` into `new`; none if a merge patch cannot express it.
///
/// Both must be objects, as every answer of ALTO is: a patch of another kind replaces the whole.
pub fn diff(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => objects(old, new).map(Value::Object),
        _ => None,
    }
}

fn objects(old: &Map<String, Value>, new: &Map<String, Value>) -> Option<Map<String, Value>> {
    let gone = old.keys().filter(|name| !new.contains_key(*name));
    let mut patch: Map<String, Value> = gone.map(|name| (name.clone(), Value::Null)).collect();
    for (name, value) in new {
        let change = match (old.get(name), value) {
            (Some(before), value) if before == value => continue,
            (Some(Value::Object(before)), Value::Object(value)) => {
                Value::Object(objects(before, value)?)
            }
            (_, value) if sayable(value) => value.clone(),
            _ => return None,
        };
        patch.insert(name.clone(), change);
    }
    Some(patch)
}

/// Whether a new value arrives as it is: objects are merged member by member, everything else is copied.
fn sayable(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(members) => members.values().all(sayable),
        _ => true,
    }
}
