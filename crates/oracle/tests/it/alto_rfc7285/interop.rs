//! The 20 cases of the ALTO group's interoperability events (draft-gurbani-alto-interop-cases), by
//! their names there and on their addresses.
//!
//! They are older than the RFC, which renamed fields and paths (`cost-mode` and `cost-type` became
//! members of `cost-type`, `pid` became a property of a map, `map` became `network-map` and
//! `cost-map`), so requests are written as the RFC has them. Their costs were made up by hand; here
//! they are those of the network in support.rs, and what a case compares stays: which pairs are there,
//! in which order. Where the RFC answers otherwise, the case notes it.

use crate::alto_rfc7285::support::{CLIENT, SITES, ground, json, members, request, routing, wrong};
use oracle::alto::{Method, Request};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const EPS: &str = "/endpointprop/lookup";
const ECS: &str = "/endpointcost/lookup";
const FILTERED: &str = "/costmap/groups/filtered";
/// Sources and destinations of the cases ECS-1 and ECS-3.
const SOURCES: [&str; 3] = ["ipv4:10.0.0.0", "ipv4:192.168.11.0", "ipv4:192.168.10.0"];
const DESTINATIONS: [&str; 9] = [
    "ipv4:10.0.0.0",
    "ipv4:15.0.0.0",
    "ipv4:192.168.11.0",
    "ipv4:192.168.10.0",
    "ipv4:128.0.0.0",
    "ipv4:130.0.0.0",
    "ipv4:0.0.0.0",
    "ipv4:132.0.0.0",
    "ipv4:135.0.0.0",
];

/// GET with an Accept header that also takes errors.
fn get(path: &str, media_type: &str) -> Value {
    let accept = format!("{media_type}, application/alto-error+json");
    let ground = ground();
    let response =
        ground.respond(&Request { accept: Some(&accept), ..request(Method::Get, path, b"") });
    assert_eq!((response.status, response.media_type), (200, media_type));
    json(&response)
}

/// The PID of one endpoint must be that of a site.
fn pid_is(endpoints: &[(&str, &str)]) {
    let ground = ground();
    let names: Vec<&str> = endpoints.iter().map(|(endpoint, _)| *endpoint).collect();
    let reply = ground.post(EPS, &json!({"properties": ["groups.pid"], "endpoints": names}));
    for (endpoint, site) in endpoints {
        let pid = &reply["endpoint-properties"][*endpoint]["groups.pid"];
        assert_eq!(*pid, ground.pid(site), "{endpoint}");
    }
}

#[test]
fn ird_1_the_directory() {
    let directory = get("/directory", "application/alto-directory+json");
    let kinds: BTreeSet<String> = directory["resources"]
        .as_object()
        .expect("an object")
        .values()
        .map(|entry| entry["media-type"].as_str().expect("a type").to_owned())
        .collect();
    assert_eq!(
        kinds,
        ["costmap", "endpointcost", "endpointprop", "networkmap"]
            .map(|kind| format!("application/alto-{kind}+json"))
            .into(),
    );
}

#[test]
fn eps_1_an_address_of_mypid2() {
    pid_is(&[("ipv4:192.168.1.23", "mypid2")]);
}

#[test]
fn eps_2_the_longer_prefix_wins() {
    pid_is(&[("ipv4:192.168.10.23", "mypid3")]);
}

#[test]
fn eps_3_an_address_of_the_default() {
    pid_is(&[("ipv4:201.1.13.12", "defaultpid")]);
}

#[test]
fn eps_4_both_families() {
    pid_is(&[("ipv6:1234::192.168.1.23", "defaultpid"), ("ipv4:132.0.10.12", "transitpid1")]);
}

#[test]
fn ecs_1_numerical_costs_from_three_to_nine() {
    let ground = ground();
    let body = json!({
        "cost-type": routing("numerical"),
        "endpoints": {"srcs": SOURCES, "dsts": DESTINATIONS},
    });
    let reply = ground.post(ECS, &body);
    let costs = reply["endpoint-cost-map"].as_object().expect("an object");
    assert_eq!(costs.len(), 3);
    for costs in costs.values() {
        // Nothing is known of 0.0.0.0.
        assert_eq!(members(costs).len(), 8);
        let cost = |to: &str| costs[to].as_f64().expect("a number");
        assert_eq!(cost("ipv4:10.0.0.0"), cost("ipv4:15.0.0.0"));
        for (near, far) in [
            ("ipv4:10.0.0.0", "ipv4:128.0.0.0"),
            ("ipv4:128.0.0.0", "ipv4:130.0.0.0"),
            ("ipv4:130.0.0.0", "ipv4:132.0.0.0"),
            ("ipv4:132.0.0.0", "ipv4:135.0.0.0"),
        ] {
            assert!(cost(near) < cost(far), "{near} and {far}");
        }
    }
}

#[test]
fn ecs_2_places_over_both_families() {
    let ground = ground();
    let body = json!({
        "cost-type": routing("ordinal"),
        "endpoints": {
            "srcs": ["ipv6:2001:DB8::ABCD:6789", "ipv4:192.168.10.1"],
            "dsts": ["ipv6:2001:DB8::2345:5678", "ipv4:135.0.29.1", "ipv4:192.168.10.23"],
        },
    });
    let reply = ground.post(ECS, &body);
    // From p2 they cost 16, 49.5 and 1.5; from r3 17.5, 49 and 0.
    assert_eq!(
        reply["endpoint-cost-map"],
        json!({
            "ipv6:2001:DB8::ABCD:6789": {
                "ipv6:2001:DB8::2345:5678": 3, "ipv4:135.0.29.1": 6, "ipv4:192.168.10.23": 2,
            },
            "ipv4:192.168.10.1": {
                "ipv6:2001:DB8::2345:5678": 4, "ipv4:135.0.29.1": 5, "ipv4:192.168.10.23": 1,
            },
        }),
    );
}

#[test]
fn ecs_3_constraints_of_both_sides() {
    let ground = ground();
    let mut body = json!({
        "cost-type": routing("numerical"),
        "endpoints": {"srcs": SOURCES, "dsts": DESTINATIONS},
    });
    let all = ground.post(ECS, &body)["endpoint-cost-map"].clone();
    body["constraints"] = json!(["le 20", "ge 10"]);
    let some = ground.post(ECS, &body)["endpoint-cost-map"].clone();
    let mut kept = 0;
    for source in SOURCES {
        for destination in DESTINATIONS {
            let cost = &all[source][destination];
            let meets = cost.as_f64().is_some_and(|cost| (10.0..=20.0).contains(&cost));
            assert_eq!(some[source].get(destination), meets.then_some(cost));
            kept += usize::from(meets);
        }
    }
    assert!(kept > 0 && kept < 24);
}

#[test]
fn maps_1_the_network_map() {
    let ground = ground();
    let map = get("/networkmap/groups", "application/alto-networkmap+json");
    let expected = [
        ("mypid1", json!({"ipv4": ["10.0.0.0/8", "15.0.0.0/8"]})),
        ("mypid2", json!({"ipv4": ["192.168.0.0/16"]})),
        ("mypid3", json!({"ipv4": ["192.168.10.0/24"]})),
        ("peeringpid1", json!({"ipv4": ["128.0.0.0/16"]})),
        ("peeringpid2", json!({"ipv4": ["130.0.0.0/16"], "ipv6": ["2001:db8::/32"]})),
        ("transitpid1", json!({"ipv4": ["132.0.0.0/16"]})),
        ("transitpid2", json!({"ipv4": ["135.0.0.0/16"]})),
        ("defaultpid", json!({"ipv4": ["0.0.0.0/0"], "ipv6": ["::/0"]})),
    ];
    let map = map["network-map"].as_object().expect("an object");
    assert_eq!(map.len(), expected.len());
    for (site, groups) in expected {
        assert_eq!(map[&ground.pid(site)], groups, "{site}");
    }
}

#[test]
fn maps_2_the_numerical_cost_map() {
    let reply = get("/costmap/groups/num-routingcost", "application/alto-costmap+json");
    let pairs = ground().pairs(&reply);
    assert_eq!(pairs.len(), 49);
    assert!(pairs.iter().all(|(_, _, cost)| cost.as_f64().is_some_and(|cost| cost >= 0.0)));
}

#[test]
fn maps_3_the_ordinal_cost_map() {
    let reply = get("/costmap/groups/ord-routingcost", "application/alto-costmap+json");
    let pairs = ground().pairs(&reply);
    assert_eq!(pairs.len(), 49);
    for (site, _) in SITES.iter().filter(|(site, _)| site.starts_with("mypid")) {
        let to_itself = pairs.iter().find(|(from, to, _)| from == site && to == site);
        assert_eq!(to_itself.map(|(_, _, cost)| cost), Some(&json!(1)), "{site}");
    }
}

#[test]
fn filter_1_one_pid_of_the_network_map() {
    let ground = ground();
    let pid = ground.pid("mypid2");
    let map = ground.post("/networkmap/groups/filtered", &json!({"pids": [pid]}));
    let mut expected = json!({});
    expected[pid] = json!({"ipv4": ["192.168.0.0/16"]});
    assert_eq!(map["network-map"], expected);
}

#[test]
fn filter_2_six_pairs_of_the_cost_map() {
    let ground = ground();
    let pids = |sites: &[&str]| sites.iter().map(|site| ground.pid(site)).collect::<Vec<_>>();
    let body = json!({
        "cost-type": routing("numerical"),
        "pids": {
            "srcs": pids(&["mypid1", "mypid3"]),
            "dsts": pids(&["mypid2", "peeringpid1", "transitpid2"]),
        },
    });
    let pairs = ground.pairs(&ground.post(FILTERED, &body));
    let full = ground.pairs(&ground.get("/costmap/groups/num-routingcost"));
    let sources = ["mypid1", "mypid3"];
    let destinations = ["mypid2", "peeringpid1", "transitpid2"];
    let expected: Vec<_> = full
        .into_iter()
        .filter(|(from, to, _)| sources.contains(from) && destinations.contains(to))
        .collect();
    assert_eq!(pairs, expected);
    assert_eq!(pairs.len(), 6);
}

#[test]
fn json_error_1_a_brace_is_missing() {
    let ground = ground();
    let body = json!({
        "cost-type": routing("numerical"),
        "endpoints": {"srcs": ["ipv4:10.0.0.0"], "dsts": ["ipv4:10.0.0.0"]},
    });
    let text = body.to_string();
    let response = ground.post_bytes(ECS, &text.as_bytes()[..text.len() - 1]);
    assert_eq!(response.status, 400);
    assert_eq!(json(&response)["meta"]["code"], "E_SYNTAX");
}

/// Then an error; the RFC takes destinations that are missing as the client (11.5.1.3).
#[test]
fn json_error_2_no_destinations() {
    let ground = ground();
    let body = json!({
        "cost-type": routing("numerical"),
        "endpoints": {"srcs": ["ipv4:192.168.10.1"]},
    });
    let reply = ground.post(ECS, &body);
    let costs = &reply["endpoint-cost-map"]["ipv4:192.168.10.1"];
    assert_eq!(members(costs), [format!("ipv4:{CLIENT}")].into());
}

#[test]
fn json_error_3_a_string_for_an_array() {
    let body = json!({
        "cost-type": routing("numerical"),
        "endpoints": {"srcs": "ipv4:10.0.0.0", "dsts": ["ipv4:10.0.0.0"]},
    });
    let expected = wrong("E_INVALID_FIELD_TYPE", Some("endpoints/srcs"), None);
    assert_eq!(ground().refused(ECS, &body), expected);
}

/// A filtered cost map of everything in a cost type with this metric and mode.
fn everything(metric: &str, mode: &str) -> Value {
    json!({
        "cost-type": {"cost-metric": metric, "cost-mode": mode},
        "pids": {"srcs": [], "dsts": []},
    })
}

#[test]
fn json_error_4_a_wrong_cost_mode() {
    let expected = wrong("E_INVALID_FIELD_VALUE", Some("cost-type/cost-mode"), Some("foo"));
    assert_eq!(ground().refused(FILTERED, &everything("routingcost", "foo")), expected);
}

#[test]
fn json_error_5_a_wrong_cost_metric() {
    let expected = wrong("E_INVALID_FIELD_VALUE", Some("cost-type/cost-metric"), Some("foo"));
    assert_eq!(ground().refused(FILTERED, &everything("foo", "numerical")), expected);
}

#[test]
fn json_error_6_a_wrong_property() {
    let body = json!({"endpoints": ["ipv4:10.0.0.1"], "properties": ["foo"]});
    let expected = wrong("E_INVALID_FIELD_VALUE", Some("properties"), Some("foo"));
    assert_eq!(ground().refused(EPS, &body), expected);
}

#[test]
fn json_error_7_two_errors_and_one_answer() {
    let refused = ground().refused(FILTERED, &everything("foo", "bar"));
    assert_eq!(refused.code, "E_INVALID_FIELD_VALUE");
    let named = (refused.field.as_deref(), refused.value.as_deref());
    let expected =
        [(Some("cost-type/cost-metric"), Some("foo")), (Some("cost-type/cost-mode"), Some("bar"))];
    assert!(expected.contains(&named), "{named:?}");
}
