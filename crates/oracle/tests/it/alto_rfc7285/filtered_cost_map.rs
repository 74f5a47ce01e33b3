//! RFC 7285, section 11.3.2: filtered cost maps.

use crate::alto_rfc7285::support::{Setup, ground, routing, wrong};
use serde_json::{Value, json};

const PATH: &str = "/costmap/groups/filtered";

fn numerical() -> Value {
    routing("numerical")
}

/// "cost-metric" and "cost-mode" MUST match a supported cost type.
#[test]
fn s11_3_2_3_the_cost_type_must_be_offered() {
    let ground = ground();
    for (cost_type, expected) in [
        (
            json!({"cost-mode": "numerical", "cost-metric": "hopcount"}),
            ("cost-type/cost-metric", "hopcount"),
        ),
        (
            json!({"cost-mode": "numerical", "cost-metric": "delay"}),
            ("cost-type/cost-metric", "delay"),
        ),
        (
            json!({"cost-mode": "Numerical", "cost-metric": "routingcost"}),
            ("cost-type/cost-mode", "Numerical"),
        ),
    ] {
        let refused = ground.refused(PATH, &json!({"cost-type": cost_type}));
        assert_eq!(refused, wrong("E_INVALID_FIELD_VALUE", Some(expected.0), Some(expected.1)));
    }
}

/// A description MUST be ignored.
#[test]
fn s11_3_2_3_a_description_is_ignored() {
    let ground = ground();
    let mut with = numerical();
    with["description"] = json!(["anything"]);
    let plain = ground.post(PATH, &json!({"cost-type": numerical()}));
    assert_eq!(ground.post(PATH, &json!({"cost-type": with})), plain);
}

/// Several constraints are all to be met.
#[test]
fn s11_3_2_3_constraints_are_related_by_and() {
    let ground = ground();
    let all = ground.pairs(&ground.post(PATH, &json!({"cost-type": numerical()})));
    for (constraints, holds) in [
        (vec!["ge 5", "le 20"], (|cost| (5.0..=20.0).contains(&cost)) as fn(f64) -> bool),
        (vec!["gt 5", "lt 20"], |cost| cost > 5.0 && cost < 20.0),
        (vec!["eq 0"], |cost| cost == 0.0),
        (vec!["gt 1e3"], |_| false),
        (vec![], |_| true),
    ] {
        let body = json!({"cost-type": numerical(), "constraints": constraints});
        let expected: Vec<_> =
            all.iter().filter(|pair| pair.2.as_f64().is_some_and(holds)).cloned().collect();
        assert_eq!(ground.pairs(&ground.post(PATH, &body)), expected, "{constraints:?}");
    }
}

/// What is no constraint is refused.
#[test]
fn s11_3_2_3_wrong_constraints_are_refused() {
    let ground = ground();
    for (constraints, field, value) in [
        (json!(["ne 5"]), "constraints", "ne 5"),
        (json!(["le"]), "constraints", "le"),
        (json!(["le 5", "le five"]), "constraints", "le five"),
        (json!([5]), "constraints", "5"),
        (json!(["[1] le 5"]), "constraints", "[1] le 5"),
    ] {
        let body = json!({"cost-type": numerical(), "constraints": constraints});
        let expected = wrong("E_INVALID_FIELD_VALUE", Some(field), Some(value));
        assert_eq!(ground.refused(PATH, &body), expected);
    }
    let body = json!({"cost-type": numerical(), "constraints": "le 5"});
    assert_eq!(
        ground.refused(PATH, &body),
        wrong("E_INVALID_FIELD_TYPE", Some("constraints"), None)
    );
}

/// Where constraints are not offered they MUST NOT be given, and are refused.
#[test]
fn s11_3_2_3_constraints_that_are_not_offered_are_refused() {
    let ground = Setup { config: "testable = []", ..Setup::default() }.ground();
    let entry = ground.get("/directory")["resources"]["groups-costs-filtered"].clone();
    assert_eq!(entry["capabilities"]["cost-constraints"], json!(false));
    let body = json!({"cost-type": numerical(), "constraints": ["le 5"]});
    let expected = wrong("E_INVALID_FIELD_VALUE", Some("constraints"), Some("le 5"));
    assert_eq!(ground.refused(PATH, &body), expected);
}

/// A constraint is held against what the client sees, so it discloses nothing more.
#[test]
fn s11_3_2_3_constraints_do_not_see_exact_costs() {
    let ground = Setup { config: "classes = 4", ..Setup::default() }.ground();
    let all = ground.pairs(&ground.post(PATH, &json!({"cost-type": numerical()})));
    for (from, to, cost) in all {
        let body = json!({
            "cost-type": numerical(),
            "pids": {"srcs": [ground.pid(from)], "dsts": [ground.pid(to)]},
            "constraints": [format!("eq {cost}")],
        });
        assert_eq!(ground.pairs(&ground.post(PATH, &body)).len(), 1, "{from} to {to}: {cost}");
    }
}

/// An empty list MUST be taken as all PIDs.
#[test]
fn s11_3_2_3_an_empty_list_is_all_pids() {
    let ground = ground();
    let body =
        json!({"cost-type": numerical(), "pids": {"srcs": [], "dsts": [ground.pid("mypid1")]}});
    let pairs = ground.pairs(&ground.post(PATH, &body));
    assert_eq!(pairs.len(), 7);
    assert!(pairs.iter().all(|(_, to, _)| *to == "mypid1"));
}

/// Entries that appear several times MUST be taken as one.
#[test]
fn s11_3_2_3_a_pid_twice_is_a_pid_once() {
    let ground = ground();
    let (a, b) = (ground.pid("mypid1"), ground.pid("mypid2"));
    let body = |srcs: Value, dsts: Value| {
        json!({"cost-type": numerical(), "pids": {"srcs": srcs, "dsts": dsts}}).to_string()
    };
    let once = ground.post_bytes(PATH, body(json!([a]), json!([a, b])).as_bytes());
    let twice = ground.post_bytes(PATH, body(json!([a, a]), json!([a, b, a])).as_bytes());
    assert_eq!(once, twice);
}

/// Without "pids" both lists MUST be taken as all PIDs.
#[test]
fn s11_3_2_3_no_filter_is_everything() {
    let ground = ground();
    for mode in ["numerical", "ordinal"] {
        let filtered = ground.post(PATH, &json!({"cost-type": routing(mode)}));
        let full = format!("/costmap/groups/{}-routingcost", &mode[..3]);
        assert_eq!(filtered, ground.get(&full));
    }
}

/// Required fields, and their types.
#[test]
fn s11_3_2_3_wrong_input_is_refused() {
    let ground = ground();
    for (body, expected) in [
        (json!({}), wrong("E_MISSING_FIELD", Some("cost-type"), None)),
        (json!({"cost-type": "x"}), wrong("E_INVALID_FIELD_TYPE", Some("cost-type"), None)),
        (json!({"cost-type": {}}), wrong("E_MISSING_FIELD", Some("cost-type/cost-metric"), None)),
        (
            json!({"cost-type": numerical(), "pids": []}),
            wrong("E_INVALID_FIELD_TYPE", Some("pids"), None),
        ),
        (
            json!({"cost-type": numerical(), "pids": {"dsts": []}}),
            wrong("E_MISSING_FIELD", Some("pids/srcs"), None),
        ),
        (
            json!({"cost-type": numerical(), "pids": {"srcs": []}}),
            wrong("E_MISSING_FIELD", Some("pids/dsts"), None),
        ),
        (
            json!({"cost-type": numerical(), "pids": {"srcs": "a", "dsts": []}}),
            wrong("E_INVALID_FIELD_TYPE", Some("pids/srcs"), None),
        ),
        (
            json!({"cost-type": numerical(), "pids": {"srcs": [], "dsts": ["a b"]}}),
            wrong("E_INVALID_FIELD_VALUE", Some("pids/dsts"), Some("a b")),
        ),
    ] {
        assert_eq!(ground.refused(PATH, &body), expected, "{body}");
    }
}

/// The capability is there, so no client has to take its default.
#[test]
fn s11_3_2_4_constraints_are_announced() {
    let ground = ground();
    let entry = ground.get("/directory")["resources"]["groups-costs-filtered"].clone();
    assert_eq!(entry["capabilities"]["cost-constraints"], json!(true));
    assert_eq!(entry["capabilities"]["cost-type-names"].as_array().map(Vec::len), Some(4));
    assert_eq!(entry["uses"], json!(["groups"]));
}

/// "dependent-vtags" has the one network map.
#[test]
fn s11_3_2_6_the_version_is_the_network_maps() {
    let ground = ground();
    let body =
        json!({"cost-type": numerical(), "pids": {"srcs": [ground.pid("mypid1")], "dsts": []}});
    let vtag = &ground.get("/networkmap/groups")["meta"]["vtag"];
    assert_eq!(ground.post(PATH, &body)["meta"]["dependent-vtags"], json!([vtag]));
}

/// Only pairs of the request MUST be returned.
#[test]
fn s11_3_2_6_only_the_pairs_that_were_asked_for() {
    let ground = ground();
    let body = json!({
        "cost-type": numerical(),
        "pids": {
            "srcs": [ground.pid("mypid1")],
            "dsts": [ground.pid("mypid2"), ground.pid("peeringpid1")],
        },
    });
    let pairs: Vec<_> = ground
        .pairs(&ground.post(PATH, &body))
        .into_iter()
        .map(|(from, to, _)| (from, to))
        .collect();
    assert_eq!(pairs, [("mypid1", "mypid2"), ("mypid1", "peeringpid1")]);
}

/// A PID that is not there MUST be taken as if it were not in the request.
#[test]
fn s11_3_2_6_an_unknown_pid_is_passed_over() {
    let ground = ground();
    let pid = ground.pid("mypid1");
    let body = |srcs: Value| json!({"cost-type": numerical(), "pids": {"srcs": srcs, "dsts": []}});
    let with = ground.post(PATH, &body(json!(["none", pid])));
    assert_eq!(with, ground.post(PATH, &body(json!([pid]))));
    assert_eq!(ground.post(PATH, &body(json!(["none"])))["cost-map"], json!({}));
}

/// Pairs that do not meet the constraints MUST NOT be returned; ranks are those before that.
#[test]
fn s11_3_2_6_constraints_on_ranks() {
    let ground = ground();
    let all = ground.pairs(&ground.post(PATH, &json!({"cost-type": routing("ordinal")})));
    let body = json!({"cost-type": routing("ordinal"), "constraints": ["le 3"]});
    let some = ground.pairs(&ground.post(PATH, &body));
    let expected: Vec<_> =
        all.into_iter().filter(|pair| pair.2.as_u64().is_some_and(|rank| rank <= 3)).collect();
    assert_eq!(some, expected);
    assert!(!some.is_empty());
}
