//! RFC 8189: several costs in one reply, alternatives of constraints.

use crate::alto_rfc7285::support::{Ground, Setup, delay, ground, routing, wrong};
use serde_json::{Value, json};

const FILTERED: &str = "/costmap/groups/filtered";
const ENDPOINTS: &str = "/endpointcost/lookup";

fn both() -> Value {
    json!([routing("numerical"), delay("numerical")])
}

/// The pairs of a reply with two costs each.
fn pairs(ground: &Ground, body: &Value) -> Vec<(&'static str, &'static str, f64, f64)> {
    let reply = ground.post(FILTERED, body);
    let number = |cost: &Value, i: usize| cost[i].as_f64().expect("a number");
    let pairs = ground.pairs(&reply).into_iter();
    pairs.map(|(from, to, cost)| (from, to, number(&cost, 0), number(&cost, 1))).collect()
}

/// 4.1.1: the capabilities; "testable-cost-type-names" and a true "cost-constraints" exclude each
/// other, and the former is a part of "cost-type-names".
#[test]
fn s4_1_1_s4_2_1_capabilities() {
    for (config, testable) in
        [("", None), ("testable = [\"num-delay\"]", Some(json!(["num-delay"])))]
    {
        let directory = Setup { config, ..Setup::default() }.ground().get("/directory");
        for id in ["groups-costs-filtered", "routers-costs-filtered", "endpoint-cost"] {
            let capabilities = &directory["resources"][id]["capabilities"];
            assert_eq!(capabilities["max-cost-types"], 4);
            assert_eq!(capabilities["cost-constraints"], testable.is_none());
            assert_eq!(capabilities.get("testable-cost-type-names"), testable.as_ref());
        }
    }
}

/// 4.1.2: exactly one of "cost-type" and "multi-cost-types".
#[test]
fn s4_1_2_either_one_cost_type_or_several() {
    let ground = ground();
    let refused = |body: Value| ground.refused(FILTERED, &body);
    let cost_type = routing("numerical");
    assert_eq!(refused(json!({})), wrong("E_MISSING_FIELD", Some("cost-type"), None));
    let body = json!({"cost-type": cost_type, "multi-cost-types": both()});
    let value = cost_type.to_string();
    assert_eq!(refused(body), wrong("E_INVALID_FIELD_VALUE", Some("cost-type"), Some(&value)));
    // An empty one beside several is none: RFC 8896's own example has it.
    let with = ground.post(FILTERED, &json!({"cost-type": {}, "multi-cost-types": both()}));
    assert_eq!(with, ground.post(FILTERED, &json!({"multi-cost-types": both()})));
}

/// 4.1.2: each cost type MUST be a supported one, and there MUST NOT be more than "max-cost-types".
#[test]
fn s4_1_2_the_cost_types_must_be_offered() {
    let ground = ground();
    let hops = json!({"cost-mode": "numerical", "cost-metric": "hops"});
    for (types, field, value) in [
        (json!([]), "multi-cost-types", "[]".to_owned()),
        (json!([hops]), "multi-cost-types/cost-metric", "hops".to_owned()),
        (json!([7]), "multi-cost-types", "7".to_owned()),
        (
            json!(vec![delay("ordinal"); 5]),
            "multi-cost-types",
            json!(vec![delay("ordinal"); 5]).to_string(),
        ),
    ] {
        let expected = wrong("E_INVALID_FIELD_VALUE", Some(field), Some(&value));
        assert_eq!(ground.refused(FILTERED, &json!({"multi-cost-types": types})), expected);
    }
    let expected = wrong("E_INVALID_FIELD_TYPE", Some("multi-cost-types"), None);
    assert_eq!(ground.refused(FILTERED, &json!({"multi-cost-types": {}})), expected);
}

/// 4.1.3: costs are arrays in the order of the request, "cost-type" is empty.
#[test]
fn s4_1_3_costs_are_arrays_in_the_order_of_the_request() {
    let ground = ground();
    let (a, b) = (routing("numerical"), delay("ordinal"));
    let reply = ground.post(FILTERED, &json!({"multi-cost-types": [b, a]}));
    assert_eq!(reply["meta"]["cost-type"], json!({}));
    assert_eq!(reply["meta"]["multi-cost-types"], json!([b, a]));
    let single =
        |cost_type: &Value| ground.pairs(&ground.post(FILTERED, &json!({"cost-type": cost_type})));
    for ((pair, first), second) in ground.pairs(&reply).into_iter().zip(single(&b)).zip(single(&a))
    {
        assert_eq!(pair.2, json!([first.2, second.2]), "{} to {}", pair.0, pair.1);
    }
    // One cost type alone is an array too.
    let reply = ground.post(FILTERED, &json!({"multi-cost-types": [a]}));
    assert!(
        ground.pairs(&reply).iter().all(|(_, _, cost)| cost.as_array().map(Vec::len) == Some(1))
    );
}

/// 4.1.3: a cost that is not there among others MUST be null; a pair without any is omitted.
#[test]
fn s4_1_3_s4_2_3_missing_costs_are_null() {
    let ground = ground();
    // From an unknown source there is an order but no number.
    let body = json!({
        "multi-cost-types": [routing("numerical"), routing("ordinal")],
        "endpoints": {"srcs": ["ipv4:203.0.113.1"], "dsts": ["ipv4:10.0.0.1", "ipv4:203.0.113.2"]},
    });
    let reply = ground.post(ENDPOINTS, &body);
    let expected = json!({"ipv4:203.0.113.1": {"ipv4:10.0.0.1": [null, 1]}});
    assert_eq!(reply["endpoint-cost-map"], expected);
}

/// 4.1.2: constraints may name the cost type by its index.
#[test]
fn s4_1_2_constraints_have_an_index() {
    let ground = ground();
    let all = pairs(&ground, &json!({"multi-cost-types": both()}));
    for (constraints, holds) in [
        (json!(["[1] le 5"]), (|_, delay| delay <= 5.0) as fn(f64, f64) -> bool),
        (json!(["le 10", "[1] gt 5"]), |cost, delay| cost <= 10.0 && delay > 5.0),
    ] {
        let some = pairs(&ground, &json!({"multi-cost-types": both(), "constraints": constraints}));
        let expected: Vec<_> =
            all.iter().copied().filter(|(_, _, cost, delay)| holds(*cost, *delay)).collect();
        assert_eq!(some, expected, "{constraints}");
        assert!(!some.is_empty() && some.len() < all.len());
    }
    let body = json!({"multi-cost-types": both(), "constraints": ["[2] le 5"]});
    let expected = wrong("E_INVALID_FIELD_VALUE", Some("constraints"), Some("[2] le 5"));
    assert_eq!(ground.refused(FILTERED, &body), expected);
}

/// 4.1.2: alternatives, of which one is to be met whole.
#[test]
fn s4_1_2_or_constraints() {
    let ground = ground();
    let all = pairs(&ground, &json!({"multi-cost-types": both()}));
    let alternatives = json!([["[0] le 10", "[1] le 5"], ["[0] ge 40", "[1] ge 10"]]);
    let some = pairs(&ground, &json!({"multi-cost-types": both(), "or-constraints": alternatives}));
    let expected: Vec<_> = all
        .iter()
        .copied()
        .filter(|(_, _, cost, delay)| {
            (*cost <= 10.0 && *delay <= 5.0) || (*cost >= 40.0 && *delay >= 10.0)
        })
        .collect();
    assert_eq!(some, expected);
    assert!(!some.is_empty() && some.len() < all.len());
    // Plain constraints are one alternative.
    let plain = json!({"cost-type": routing("numerical"), "constraints": ["ge 1", "le 20"]});
    let one = json!({"cost-type": routing("numerical"), "or-constraints": [["ge 1", "le 20"]]});
    assert_eq!(ground.post(FILTERED, &plain), ground.post(FILTERED, &one));
}

/// 4.1.2: "or-constraints" MUST NOT be empty, hold empty alternatives, or stand beside "constraints".
#[test]
fn s4_1_2_wrong_alternatives_are_refused() {
    let ground = ground();
    let body = |name: &str, value: &Value| {
        let mut body = json!({"multi-cost-types": both()});
        body[name] = value.clone();
        body
    };
    for (value, wrong_value) in [
        (json!([]), "[]"),
        (json!([["le 5"], []]), "[]"),
        (json!(["le 5"]), "le 5"),
        (json!([["le 5", "le"]]), "le"),
    ] {
        let expected = wrong("E_INVALID_FIELD_VALUE", Some("or-constraints"), Some(wrong_value));
        assert_eq!(ground.refused(FILTERED, &body("or-constraints", &value)), expected);
    }
    let mut two = body("or-constraints", &json!([["le 5"]]));
    two["constraints"] = json!([]);
    let expected = wrong("E_INVALID_FIELD_VALUE", Some("or-constraints"), Some("[[\"le 5\"]]"));
    assert_eq!(ground.refused(FILTERED, &two), expected);
}

/// 3.6.3, 4.1.2: what is tested need not be what is returned.
#[test]
fn s4_1_2_testable_cost_types() {
    let ground = ground();
    let body = json!({
        "cost-type": routing("numerical"),
        "testable-cost-types": [delay("numerical"), routing("ordinal")],
        "constraints": ["[0] le 5"],
    });
    let some: Vec<_> = ground
        .pairs(&ground.post(FILTERED, &body))
        .into_iter()
        .map(|pair| (pair.0, pair.1))
        .collect();
    let all = pairs(&ground, &json!({"multi-cost-types": both()}));
    let expected: Vec<_> =
        all.iter().filter(|pair| pair.3 <= 5.0).map(|pair| (pair.0, pair.1)).collect();
    assert_eq!(some, expected);
    for (value, code, wrong_value) in [
        (json!([]), "E_INVALID_FIELD_VALUE", Some("[]")),
        (json!("x"), "E_INVALID_FIELD_TYPE", None),
    ] {
        let body = json!({"cost-type": routing("numerical"), "testable-cost-types": value});
        let expected = wrong(code, Some("testable-cost-types"), wrong_value);
        assert_eq!(ground.refused(FILTERED, &body), expected);
    }
}

/// 4.1.2: only the testable cost types may be tested, however they are named.
#[test]
fn s4_1_2_only_testable_cost_types_are_tested() {
    let ground = Setup { config: "testable = [\"num-delay\"]", ..Setup::default() }.ground();
    let body = |testable: Option<Value>, constraint: &str| {
        let mut body = json!({"multi-cost-types": both(), "constraints": [constraint]});
        if let Some(testable) = testable {
            body["testable-cost-types"] = testable;
        }
        body
    };
    ground.post(FILTERED, &body(None, "[1] le 5"));
    ground.post(FILTERED, &body(Some(json!([delay("numerical")])), "le 5"));
    let expected = wrong("E_INVALID_FIELD_VALUE", Some("constraints"), Some("[0] le 5"));
    assert_eq!(ground.refused(FILTERED, &body(None, "[0] le 5")), expected);
    let refused = ground.refused(FILTERED, &body(Some(json!([routing("numerical")])), "le 5"));
    assert_eq!(refused.field.as_deref(), Some("testable-cost-types"));
}

/// 4.2: the same holds for endpoint costs.
#[test]
fn s4_2_endpoint_costs() {
    let ground = ground();
    let body = json!({
        "multi-cost-types": [routing("ordinal"), delay("ordinal")],
        "or-constraints": [["[0] eq 1"], ["[1] ge 3"]],
        "endpoints": {
            "srcs": ["ipv4:10.0.0.1"],
            "dsts": ["ipv4:10.0.0.2", "ipv4:128.0.0.1", "ipv4:192.168.10.1"],
        },
    });
    let reply = ground.post(ENDPOINTS, &body);
    assert_eq!(reply["meta"]["cost-type"], json!({}));
    let expected = json!({"ipv4:10.0.0.2": [1, 1], "ipv4:192.168.10.1": [2, 3]});
    assert_eq!(reply["endpoint-cost-map"]["ipv4:10.0.0.1"], expected);
}
