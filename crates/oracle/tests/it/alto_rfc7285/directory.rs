//! RFC 7285, section 9: the information resource directory.

use crate::alto_rfc7285::support::{Setup, ground, members, request};
use oracle::alto::{Method, Request};
use serde_json::Value;
use std::collections::HashSet;

/// Each resource MUST have an identity that is unique in the directory, of the form of a PID's name.
#[test]
fn s9_1_1_identities_are_unique_and_well_formed() {
    let ground = ground();
    let mut ids = HashSet::new();
    let mut paths = HashSet::new();
    for resource in ground.maps.resources() {
        assert!(ids.insert(&resource.id), "{}", resource.id);
        assert!(paths.insert(&resource.path), "{}", resource.path);
        assert!(oracle::alto::name::is_resource(&resource.id), "{}", resource.id);
    }
    let directory = ground.get("/directory");
    assert_eq!(members(&directory["resources"]).len(), ids.len());
}

/// Identities SHOULD remain stable while the data changes.
#[test]
fn s9_1_1_identities_stay_when_the_data_changes() {
    let before = ground();
    let mut builder = crate::alto_rfc7285::support::network(topo::Options::default());
    let change = topo::Change::Withdraw {
        prefix: crate::alto_rfc7285::support::net("128.0.0.0/16"),
        exit: crate::alto_rfc7285::support::router("p1"),
    };
    builder.apply(topo::Feed::CONFIGURATION, change).expect("it is taken");
    let setup = Setup::default();
    let after = setup.of(&mut builder, setup.policy());
    assert_eq!(before.get("/directory"), after.get("/directory"));
    assert_ne!(before.get("/networkmap/groups"), after.get("/networkmap/groups"));
}

/// One directory MUST be available with GET.
#[test]
fn s9_2_the_root_directory_is_there_with_get() {
    let ground = ground();
    let response = ground.respond(&request(Method::Get, "/directory", b""));
    assert_eq!((response.status, response.media_type), (200, "application/alto-directory+json"));
}

/// The root directory's "meta" MUST name the default network map.
#[test]
fn s9_2_2_the_default_network_map_is_named_and_there() {
    let directory = ground().get("/directory");
    assert_eq!(directory["meta"]["default-alto-network-map"], "groups");
    let entry = &directory["resources"]["groups"];
    assert_eq!(entry["media-type"], "application/alto-networkmap+json");
}

/// Names of cost types are defined in "meta", and only defined ones are used.
#[test]
fn s9_2_2_cost_types_are_defined() {
    let directory = ground().get("/directory");
    let defined = members(&directory["meta"]["cost-types"]);
    let expected = ["num-delay", "num-routingcost", "ord-delay", "ord-routingcost"];
    assert_eq!(defined.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    for (id, entry) in directory["resources"].as_object().expect("an object") {
        for name in entry["capabilities"]["cost-type-names"].as_array().into_iter().flatten() {
            assert!(defined.contains(name.as_str().expect("a name")), "{id}: {name}");
        }
    }
}

/// "uses" names resources of the same directory.
#[test]
fn s9_2_2_what_is_used_is_listed() {
    let directory = ground().get("/directory");
    let ids = members(&directory["resources"]);
    for (id, entry) in directory["resources"].as_object().expect("an object") {
        for used in entry["uses"].as_array().into_iter().flatten() {
            assert!(ids.contains(used.as_str().expect("an identity")), "{id} uses {used}");
        }
        let is_of_a_map = id.starts_with("groups-") || id.starts_with("routers-");
        assert_eq!(entry["uses"].is_array(), is_of_a_map, "{id}");
    }
}

/// An entry without "accepts" MUST support GET, one with it MUST support POST.
#[test]
fn s9_2_2_accepts_decides_the_method() {
    let ground = ground();
    let directory = ground.get("/directory");
    for (id, entry) in directory["resources"].as_object().expect("an object") {
        let path = entry["uri"].as_str().expect("a URI");
        match entry.get("accepts").and_then(Value::as_str) {
            None => {
                let response = ground.respond(&request(Method::Get, path, b""));
                assert_eq!(response.status, 200, "{id}");
                assert_eq!(entry["media-type"], response.media_type, "{id}");
            }
            Some(accepts) => {
                let post =
                    Request { content_type: Some(accepts), ..request(Method::Post, path, b"{}") };
                // The body lacks a field: the method and the media type were right.
                assert_eq!(ground.respond(&post).status, 400, "{id}");
            }
        }
    }
}

/// GET and POST on one URI would need two entries: no two entries share a URI here.
#[test]
fn s9_2_2_no_uri_stands_for_two_resources() {
    let directory = ground().get("/directory");
    let mut uris = HashSet::new();
    for entry in directory["resources"].as_object().expect("an object").values() {
        assert!(uris.insert(entry["uri"].to_string()), "{}", entry["uri"]);
    }
}

/// URIs are relative to the directory, or absolute with the configured host.
#[test]
fn s9_2_2_uris_have_the_configured_host() {
    let setup = Setup { config: "host = \"alto.example.net:6671\"", ..Setup::default() };
    let directory = setup.ground().get("/directory");
    let uri = &directory["resources"]["endpoint-cost"]["uri"];
    assert_eq!(*uri, "https://alto.example.net:6671/endpointcost/lookup");
    let relative = ground().get("/directory");
    assert_eq!(relative["resources"]["endpoint-cost"]["uri"], "/endpointcost/lookup");
}

/// Others can add what they serve.
#[test]
fn s9_2_4_more_resources_can_be_listed() {
    let ground = ground();
    let more = oracle::alto::Resource::other(
        "updates".into(),
        "/updates".into(),
        "text/event-stream",
        Some("application/alto-updatestreamparams+json"),
        serde_json::json!({}),
        vec!["groups".into()],
    );
    let directory: Value =
        serde_json::from_slice(&ground.maps.directory("", &[more])).expect("JSON");
    assert_eq!(directory["resources"]["updates"]["uses"][0], "groups");
    assert!(directory["resources"]["endpoint-cost"].is_object());
}
