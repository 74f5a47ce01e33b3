//! RFC 7285, section 10: basic data types, as they leave the server.

use crate::alto_rfc7285::support::{Setup, ground, members, wrong};
use serde_json::{Value, json};

/// PID names MUST be at most 64 of certain characters, and MUST NOT have a dot.
#[test]
fn s10_1_pid_names_are_well_formed() {
    for map in ["groups", "routers"] {
        for name in members(&ground().get(&format!("/networkmap/{map}"))["network-map"]) {
            assert!(oracle::alto::name::is_pid(&name), "{name}");
        }
    }
}

/// Names disclose nothing of the network, and depend on the operator's key alone.
#[test]
fn s10_1_pid_names_are_opaque_and_stable() {
    let key = |digit: &str| format!("name_key = \"{}\"", digit.repeat(32));
    let names = |config: &str| {
        let ground = Setup { config, ..Setup::default() }.ground();
        let settings = oracle::alto::MapSettings {
            name_key: *ground.settings.config.name_key.as_ref().expect("a key").bytes(),
            ..(*ground.settings).clone()
        };
        let maps = oracle::alto::Maps::new(ground.tables.clone(), settings.into(), None);
        let map = maps.network_map("groups").expect("a map");
        map.pids().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(&key("a")), names(&key("a")));
    let (one, other) = (names(&key("a")), names(&key("b")));
    assert!(one.iter().all(|name| !other.contains(name)));
    assert!(one.iter().all(|name| name.len() == 8), "{one:?}");
}

/// Tags MUST be at most 64 characters from U+0021 to U+007E.
#[test]
fn s10_3_tags_are_well_formed() {
    for map in ["groups", "routers"] {
        let vtag = ground().get(&format!("/networkmap/{map}"))["meta"]["vtag"].clone();
        assert_eq!(vtag["resource-id"], map);
        let tag = vtag["tag"].as_str().expect("a tag");
        assert!(tag.len() == 32 && tag.bytes().all(|byte| byte.is_ascii_graphic()), "{tag}");
    }
}

/// Address types of responses MUST be registered ones; others are refused in typed addresses.
#[test]
fn s10_4_2_address_types_are_ipv4_and_ipv6() {
    let ground = ground();
    let map = ground.get("/networkmap/groups");
    for group in map["network-map"].as_object().expect("an object").values() {
        for kind in members(group) {
            assert!(kind == "ipv4" || kind == "ipv6", "{kind}");
        }
    }
    let body = json!({"properties": ["groups.pid"], "endpoints": ["mac:00-11-22-33-44-55"]});
    let expected = wrong("E_INVALID_FIELD_VALUE", Some("endpoints"), Some("mac:00-11-22-33-44-55"));
    assert_eq!(ground.refused("/endpointprop/lookup", &body), expected);
}

/// Addresses are written as in RFC 3986 and RFC 5952; other spellings of IPv6 are understood.
#[test]
fn s10_4_3_addresses() {
    let ground = ground();
    for (endpoint, good) in [
        ("ipv4:10.0.0.1", true),
        ("ipv4:10.0.0.01", false),
        ("ipv4:10.0.0", false),
        ("ipv4:10.0.0.1/32", false),
        ("ipv6:2001:db8::1", true),
        ("ipv6:2001:0DB8:0:0:0:0:0:1", true),
        ("ipv6:2001:db8::1%1", false),
        ("ipv6:[2001:db8::1]", false),
        ("10.0.0.1", false),
    ] {
        let body = json!({"properties": ["groups.pid"], "endpoints": [endpoint]});
        let status = ground.post_bytes("/endpointprop/lookup", body.to_string().as_bytes()).status;
        assert_eq!(status, if good { 200 } else { 400 }, "{endpoint}");
    }
}

/// Prefixes are written in the shortest form.
#[test]
fn s10_4_4_prefixes() {
    let ground = ground();
    let map = ground.get("/networkmap/groups");
    let peering = &map["network-map"][ground.pid("peeringpid2")];
    assert_eq!(*peering, json!({"ipv4": ["130.0.0.0/16"], "ipv6": ["2001:db8::/32"]}));
}

/// A cost mode MUST be "numerical" or "ordinal"; cost metrics MUST be well formed and registered or
/// private with something behind the colon.
#[test]
fn s10_5_s10_6_s10_7_cost_types_are_well_formed() {
    let directory = ground().get("/directory");
    for kind in directory["meta"]["cost-types"].as_object().expect("an object").values() {
        let (mode, metric) = (kind["cost-mode"].as_str(), kind["cost-metric"].as_str());
        assert!(matches!(mode, Some("numerical" | "ordinal")), "{kind}");
        assert!(metric.is_some_and(oracle::alto::name::is_metric), "{kind}");
        assert!(kind.get("description").is_none_or(Value::is_string), "{kind}");
    }
}

/// Properties MUST be named as `resource.name`, with a registered name.
#[test]
fn s10_8_1_s10_8_2_property_names() {
    let directory = ground().get("/directory");
    let properties = &directory["resources"]["endpoint-property"]["capabilities"]["prop-types"];
    assert_eq!(*properties, json!(["groups.pid", "routers.pid"]));
    for name in properties.as_array().expect("an array") {
        let name = name.as_str().and_then(oracle::alto::name::property);
        assert!(matches!(name, Some(oracle::alto::name::Property::OfResource(_, "pid"))));
    }
}
