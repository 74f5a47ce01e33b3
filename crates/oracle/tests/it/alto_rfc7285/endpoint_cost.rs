//! RFC 7285, section 11.5: the endpoint cost service.

use crate::alto_rfc7285::support::{
    CLIENT, Setup, asker, ground, json, members, request, router, routing, wrong,
};
use oracle::alto::{Asker, Method, Request};
use serde_json::{Value, json};

const PATH: &str = "/endpointcost/lookup";

fn ordinal(srcs: &[&str], dsts: &[&str]) -> Value {
    json!({"cost-type": routing("ordinal"), "endpoints": {"srcs": srcs, "dsts": dsts}})
}

/// "cost-metric" and "cost-mode" MUST match a supported cost type.
#[test]
fn s11_5_1_3_the_cost_type_must_be_offered() {
    let ground = ground();
    let mut body = ordinal(&[], &["ipv4:10.0.0.1"]);
    body["cost-type"]["cost-metric"] = "shoesize".into();
    let expected = wrong("E_INVALID_FIELD_VALUE", Some("cost-type/cost-metric"), Some("shoesize"));
    assert_eq!(ground.refused(PATH, &body), expected);
}

/// A description MUST be ignored.
#[test]
fn s11_5_1_3_a_description_is_ignored() {
    let ground = ground();
    let plain = ordinal(&[], &["ipv4:10.0.0.1"]);
    let mut body = plain.clone();
    body["cost-type"]["description"] = "how far it is".into();
    assert_eq!(ground.post(PATH, &body), ground.post(PATH, &plain));
}

/// Constraints are those of filtered cost maps.
#[test]
fn s11_5_1_3_constraints_are_held() {
    let ground = ground();
    let mut body = ordinal(&[], &["ipv4:10.0.0.1", "ipv4:192.168.0.1", "ipv4:128.0.0.1"]);
    body["constraints"] = json!(["ge 2"]);
    let reply = ground.post(PATH, &body);
    let costs = &reply["endpoint-cost-map"][format!("ipv4:{CLIENT}")];
    assert_eq!(*costs, json!({"ipv4:192.168.0.1": 2, "ipv4:128.0.0.1": 3}));
}

/// An empty or missing list of sources or destinations MUST be taken as the client's address.
#[test]
fn s11_5_1_3_no_endpoint_is_the_client() {
    let ground = ground();
    let client = format!("ipv4:{CLIENT}");
    let there = ordinal(&[&client], &["ipv4:128.0.0.1"]);
    let back = ordinal(&["ipv4:128.0.0.1"], &[&client]);
    for (endpoints, same) in [
        (json!({"dsts": ["ipv4:128.0.0.1"]}), &there),
        (json!({"srcs": [], "dsts": ["ipv4:128.0.0.1"]}), &there),
        (json!({"srcs": ["ipv4:128.0.0.1"]}), &back),
        (json!({"srcs": ["ipv4:128.0.0.1"], "dsts": []}), &back),
    ] {
        let body = json!({"cost-type": routing("ordinal"), "endpoints": endpoints});
        assert_eq!(ground.post(PATH, &body), ground.post(PATH, same), "{body}");
    }
    // A client that came over an IPv6 socket from an IPv4 address.
    let body = json!({"cost-type": routing("ordinal"), "endpoints": {"dsts": ["ipv4:128.0.0.1"]}});
    let text = body.to_string();
    let mapped = Request {
        content_type: Some("application/alto-endpointcostparams+json"),
        asker: Asker { client: format!("::ffff:{CLIENT}").parse().expect("an address"), ..asker() },
        ..request(Method::Post, PATH, text.as_bytes())
    };
    assert_eq!(json(&ground.respond(&mapped)), ground.post(PATH, &there));
}

/// Sources and destinations MUST NOT both be empty.
#[test]
fn s11_5_1_3_not_both_lists_are_empty() {
    let ground = ground();
    for endpoints in [json!({}), json!({"srcs": []}), json!({"srcs": [], "dsts": []})] {
        let body = json!({"cost-type": routing("ordinal"), "endpoints": endpoints});
        let expected =
            wrong("E_INVALID_FIELD_VALUE", Some("endpoints"), Some(&endpoints.to_string()));
        assert_eq!(ground.refused(PATH, &body), expected);
    }
}

/// Entries that appear several times MUST be taken as one.
#[test]
fn s11_5_1_3_an_endpoint_twice_is_an_endpoint_once() {
    let ground = ground();
    let post = |body: &Value| ground.post_bytes(PATH, body.to_string().as_bytes());
    let once = post(&ordinal(&["ipv4:10.0.0.1"], &["ipv4:128.0.0.1", "ipv4:192.168.0.1"]));
    let twice = post(&ordinal(
        &["ipv4:10.0.0.1", "ipv4:10.0.0.1"],
        &["ipv4:128.0.0.1", "ipv4:192.168.0.1", "ipv4:128.0.0.1"],
    ));
    assert_eq!(once, twice);
}

/// Required fields, and their types.
#[test]
fn s11_5_1_3_wrong_input_is_refused() {
    let ground = ground();
    let with = |endpoints: Value| json!({"cost-type": routing("ordinal"), "endpoints": endpoints});
    for (body, expected) in [
        (json!({"endpoints": {}}), wrong("E_MISSING_FIELD", Some("cost-type"), None)),
        (
            json!({"cost-type": routing("ordinal")}),
            wrong("E_MISSING_FIELD", Some("endpoints"), None),
        ),
        (with(json!([])), wrong("E_INVALID_FIELD_TYPE", Some("endpoints"), None)),
        (with(json!({"srcs": 1})), wrong("E_INVALID_FIELD_TYPE", Some("endpoints/srcs"), None)),
        (
            with(json!({"dsts": ["ipv4:1.2.3"]})),
            wrong("E_INVALID_FIELD_VALUE", Some("endpoints/dsts"), Some("ipv4:1.2.3")),
        ),
        (
            with(json!({"dsts": ["ethernet:00-00"]})),
            wrong("E_INVALID_FIELD_VALUE", Some("endpoints/dsts"), Some("ethernet:00-00")),
        ),
    ] {
        assert_eq!(ground.refused(PATH, &body), expected, "{body}");
    }
}

/// The resource MUST NOT state that it uses a map.
#[test]
fn s11_5_1_5_endpoint_costs_use_no_map() {
    let directory = ground().get("/directory");
    assert!(directory["resources"]["endpoint-cost"].get("uses").is_none());
}

/// "meta" MUST include "cost-type".
#[test]
fn s11_5_1_6_the_cost_type_is_given() {
    let reply = ground().post(PATH, &ordinal(&[], &["ipv4:10.0.0.1"]));
    assert_eq!(reply["meta"], json!({"cost-type": routing("ordinal")}));
}

/// Each source has each destination with a defined cost, relative to all pairs of the reply.
#[test]
fn s11_5_1_6_places_are_among_all_pairs() {
    let ground = ground();
    let body = ordinal(
        &["ipv4:10.0.0.1", "ipv4:192.168.10.1"],
        &["ipv4:128.0.0.1", "ipv6:2001:db8::1", "ipv4:10.0.0.2", "ipv4:203.0.113.9"],
    );
    let reply = ground.post(PATH, &body);
    assert_eq!(
        reply["endpoint-cost-map"],
        json!({
            "ipv4:10.0.0.1": {"ipv4:128.0.0.1": 3, "ipv6:2001:db8::1": 5, "ipv4:10.0.0.2": 1},
            "ipv4:192.168.10.1": {"ipv4:128.0.0.1": 4, "ipv6:2001:db8::1": 6, "ipv4:10.0.0.2": 2},
        }),
    );
}

/// Section 11.5 speaks of ranking prefixes: they may stand where addresses do.
#[test]
fn s11_5_prefixes_can_be_ranked() {
    let ground = ground();
    let body = ordinal(
        &["ipv4:192.168.10.0/24"],
        &["ipv4:128.0.0.0/16", "ipv4:192.168.0.0/15", "ipv4:10.1.0.0/16"],
    );
    let reply = ground.post(PATH, &body);
    // Nothing covers all of 192.168.0.0/15, so nothing is known of it.
    let expected = json!({"ipv4:128.0.0.0/16": 2, "ipv4:10.1.0.0/16": 1});
    assert_eq!(reply["endpoint-cost-map"]["ipv4:192.168.10.0/24"], expected);
}

/// From where nothing is known, there is no number, and no order but that of what is preferred. A
/// default router stands in for such sources.
#[test]
fn s11_5_1_6_unknown_sources() {
    let body = |mode: &str| {
        json!({
            "cost-type": routing(mode),
            "endpoints": {"srcs": ["ipv4:203.0.113.1"], "dsts": ["ipv4:10.0.0.1", "ipv4:128.0.0.1", "ipv4:203.0.113.2"]},
        })
    };
    let costs = |reply: Value| reply["endpoint-cost-map"]["ipv4:203.0.113.1"].clone();
    let ground = ground();
    assert_eq!(costs(ground.post(PATH, &body("numerical"))), json!({}));
    let equal = json!({"ipv4:10.0.0.1": 1, "ipv4:128.0.0.1": 1});
    assert_eq!(costs(ground.post(PATH, &body("ordinal"))), equal);
    let ground = Setup { default_router: Some(router("p1")), ..Setup::default() }.ground();
    let ordered = json!({"ipv4:10.0.0.1": 1, "ipv4:128.0.0.1": 2});
    assert_eq!(costs(ground.post(PATH, &body("ordinal"))), ordered);
    assert_eq!(members(&costs(ground.post(PATH, &body("numerical")))).len(), 2);
}
