//! RFC 7285, sections 7 and 11.4: endpoint properties.

use crate::alto_rfc7285::support::{SITES, ground, members, wrong};
use serde_json::json;

const PATH: &str = "/endpointprop/lookup";

/// The property "pid" MUST be there for each network map, and the directory MUST provide its lookup.
#[test]
fn s7_1_1_s11_4_1_4_every_map_has_its_pid_property() {
    let ground = ground();
    for map in ["groups", "routers"] {
        let property = format!("{map}.pid");
        let body = json!({"properties": [property], "endpoints": ["ipv4:192.168.10.7"]});
        let reply = ground.post(PATH, &body);
        let of = ground.maps.network_map(map).expect("a map");
        let expected = of.pid_of("192.168.10.7".parse().expect("an address"));
        assert_eq!(reply["endpoint-properties"]["ipv4:192.168.10.7"][property], expected);
    }
}

/// Each property MUST be a supported one.
#[test]
fn s11_4_1_3_properties_must_be_offered() {
    let ground = ground();
    for name in
        ["pid", "groups.pids", "nomap.pid", "groups-filtered.pid", "priv:x", "", "groups.priv:"]
    {
        let body = json!({"properties": ["groups.pid", name], "endpoints": ["ipv4:10.0.0.1"]});
        let expected = wrong("E_INVALID_FIELD_VALUE", Some("properties"), Some(name));
        assert_eq!(ground.refused(PATH, &body), expected);
    }
}

/// Properties that appear several times MUST be taken as one.
#[test]
fn s11_4_1_3_a_property_twice_is_a_property_once() {
    let ground = ground();
    let body = |properties: &[&str]| {
        let body = json!({"properties": properties, "endpoints": ["ipv4:10.0.0.1"]});
        ground.post_bytes(PATH, body.to_string().as_bytes())
    };
    assert_eq!(body(&["groups.pid", "groups.pid"]), body(&["groups.pid"]));
}

/// Endpoints that appear several times MUST be taken as one, however they are spelled.
#[test]
fn s11_4_1_3_an_endpoint_twice_is_an_endpoint_once() {
    let ground = ground();
    let body = |endpoints: &[&str]| {
        let body = json!({"properties": ["groups.pid"], "endpoints": endpoints});
        ground.post_bytes(PATH, body.to_string().as_bytes())
    };
    let once = body(&["ipv6:2001:db8::1"]);
    assert_eq!(body(&["ipv6:2001:db8::1", "ipv6:2001:db8::1", "ipv6:2001:DB8:0::1"]), once);
}

/// Required fields, with at least one element each.
#[test]
fn s11_4_1_3_wrong_input_is_refused() {
    let ground = ground();
    for (body, expected) in [
        (json!({}), wrong("E_MISSING_FIELD", Some("properties"), None)),
        (json!({"properties": ["groups.pid"]}), wrong("E_MISSING_FIELD", Some("endpoints"), None)),
        (
            json!({"properties": [], "endpoints": ["ipv4:10.0.0.1"]}),
            wrong("E_INVALID_FIELD_VALUE", Some("properties"), Some("[]")),
        ),
        (
            json!({"properties": ["groups.pid"], "endpoints": []}),
            wrong("E_INVALID_FIELD_VALUE", Some("endpoints"), Some("[]")),
        ),
        (
            json!({"properties": {"a": 1}, "endpoints": []}),
            wrong("E_INVALID_FIELD_TYPE", Some("properties"), None),
        ),
        (
            json!({"properties": ["groups.pid"], "endpoints": "ipv4:10.0.0.1"}),
            wrong("E_INVALID_FIELD_TYPE", Some("endpoints"), None),
        ),
        (
            json!({"properties": ["groups.pid"], "endpoints": ["ipv4:10.0.0.1", 7]}),
            wrong("E_INVALID_FIELD_VALUE", Some("endpoints"), Some("7")),
        ),
    ] {
        assert_eq!(ground.refused(PATH, &body), expected, "{body}");
    }
}

/// "dependent-vtags" MUST have the versions of all maps whose "pid" is asked for, and no others.
#[test]
fn s11_4_1_6_the_maps_versions_are_there() {
    let ground = ground();
    let vtag = |map: &str| ground.get(&format!("/networkmap/{map}"))["meta"]["vtag"].clone();
    for (properties, expected) in [
        (json!(["groups.pid"]), json!([vtag("groups")])),
        (json!(["routers.pid", "groups.pid"]), json!([vtag("routers"), vtag("groups")])),
    ] {
        let body = json!({"properties": properties, "endpoints": ["ipv4:10.0.0.1"]});
        assert_eq!(ground.post(PATH, &body)["meta"]["dependent-vtags"], expected);
    }
}

/// Each endpoint has a member with each of its properties. One that is not defined MUST be omitted;
/// "pid" is defined for every address, since maps are complete.
#[test]
fn s11_4_1_6_every_endpoint_has_every_property() {
    let ground = ground();
    let endpoints: Vec<String> =
        SITES.iter().map(|(_, address)| format!("ipv4:{address}")).collect();
    let body = json!({"properties": ["groups.pid", "routers.pid"], "endpoints": endpoints});
    let reply = ground.post(PATH, &body);
    let properties = &reply["endpoint-properties"];
    assert_eq!(members(properties), endpoints.into_iter().collect());
    for (site, address) in SITES {
        let of = &properties[format!("ipv4:{address}")];
        assert_eq!(members(of), ["groups.pid", "routers.pid"].map(str::to_owned).into());
        assert_eq!(of["groups.pid"], ground.pid(site));
    }
}
