//! Merge patches and JSON patches: the examples of RFC 8895 and RFC 7396, and random values.

use crate::alto_streams::fake::Fake;
use oracle::alto::updates::{merge, patch};
use proptest::prelude::*;
use serde_json::{Value, json};

/// JSON as it may come in an answer, with few names so that two values have much in common.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4_u8).prop_map(Value::from),
        "[ab/~\"\n]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        let names = "[ab/~]{0,2}";
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec("[a-f]".prop_map(Value::from), 0..8).prop_map(Value::from),
            prop::collection::btree_map(names, inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[ab/~]{0,2}", value(), 0..5)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// Sorted arrays of strings, as the prefixes in a network map.
fn prefixes() -> impl Strategy<Value = Value> {
    prop::collection::btree_set(0..40_u8, 0..40).prop_map(|numbers| {
        let list: Vec<_> = numbers.iter().map(|number| format!("10.{number:03}.0.0/16")).collect();
        json!({ "network-map": { "PID1": { "ipv4": list } } })
    })
}

/// Whether an object anywhere in the value, not within arrays, has a member that is null.
fn has_null(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|members| members.values().any(|member| member.is_null() || has_null(member)))
}

fn apply_patch(value: &Value, patch: Value) -> Value {
    let patch: json_patch::Patch = serde_json::from_value(patch).expect("a JSON patch");
    let mut value = value.clone();
    json_patch::patch(&mut value, &patch).expect("a patch that fits");
    value
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    /// A merge patch leads from one value to the other (RFC 7396 section 2), and there is one unless the new
    /// value has a null in it (RFC 8895 section 6.3).
    #[test]
    fn a_merge_patch_leads_to_the_new_value(old in object(), new in object()) {
        match merge::diff(&old, &new) {
            Some(patch) => {
                let mut value = old.clone();
                json_patch::merge(&mut value, &patch);
                prop_assert_eq!(&value, &new);
            }
            None => prop_assert!(has_null(&new)),
        }
    }

    /// What is not different is not in the patch.
    #[test]
    fn a_merge_patch_of_equals_is_empty(value in object()) {
        prop_assert_eq!(merge::diff(&value, &value), Some(json!({})));
        prop_assert_eq!(patch::diff(&value, &value), json!([]));
    }

    /// A JSON patch leads from any value to any other (RFC 6902), nulls included.
    #[test]
    fn a_json_patch_leads_to_the_new_value(old in value(), new in value()) {
        prop_assert_eq!(apply_patch(&old, patch::diff(&old, &new)), new);
    }

    /// The same for lists of prefixes.
    #[test]
    fn a_json_patch_moves_prefixes(old in prefixes(), new in prefixes()) {
        prop_assert_eq!(apply_patch(&old, patch::diff(&old, &new)), new);
    }
}

/// The example of RFC 8895 section 3.1.2.1.
#[test]
fn a_merge_patch_of_a_network_map() {
    let old = Fake::new();
    let patch = merge::diff(&old.network_map, &old.changed().network_map);
    let expected = json!({
        "meta": { "vtag": { "tag": "t2" } },
        "network-map": {
            "PID1": {
                "ipv4": ["192.0.2.0/24", "198.51.100.0/25", "203.0.113.0/25"],
                "ipv6": ["2001:db8:8000::/33"],
            },
            "PID2": null,
        },
    });
    assert_eq!(patch, Some(expected));
}

/// The examples of RFC 7396 appendix A, read backwards: the patch between target and result is as given there
/// where it contains nothing superfluous.
#[test]
fn merge_patches_of_the_rfc() {
    for (old, patch, new) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d"}}), json!({"a": {"b": "d"}})),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
    ] {
        assert_eq!(merge::diff(&old, &new), Some(patch), "{old} {new}");
    }
    assert_eq!(merge::diff(&json!({"a": 1}), &json!({"a": null})), None);
    assert_eq!(merge::diff(&json!(["a", "b"]), &json!(["c", "d"])), None);
}

/// One prefix of many that moves is two operations, not two lists (RFC 8895 section 9.1).
#[test]
fn a_moved_prefix_is_two_operations() {
    let list = |from: u8, to: u8| -> Vec<String> {
        (from..to).map(|number| format!("10.{number:03}.0.0/16")).collect()
    };
    let map = |one: Vec<String>, two: Vec<String>| json!({ "network-map": { "PID1": { "ipv4": one }, "PID2": { "ipv4": two } } });
    let mut second = list(100, 200);
    second.insert(0, "10.007.0.0/16".to_owned());
    let mut first = list(0, 100);
    first.remove(7);
    let patch = patch::diff(&map(list(0, 100), list(100, 200)), &map(first, second));
    let expected = json!([
        { "op": "remove", "path": "/network-map/PID1/ipv4/7" },
        { "op": "add", "path": "/network-map/PID2/ipv4/0", "value": "10.007.0.0/16" },
    ]);
    assert_eq!(patch, expected);
}
