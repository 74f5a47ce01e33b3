//! Entity properties (RFC 9240), against a reading of the network maps address by address.

use crate::alto_streams::network::{Network, ask, json, net};
use ipnet::IpNet;
use oracle::alto::{Catalogue, updates::follow::Answers};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
};

const FULL: &str = "/propmap/full";
const LOOKUP: &str = "/propmap/lookup";

/// What the map by group and the map by router have of an address.
fn pids(catalogue: &Catalogue, address: IpAddr) -> [String; 2] {
    ["groups", "routers"].map(|id| {
        let map = catalogue.maps().network_map(id).expect("a network map");
        map.pid_of(address).to_owned()
    })
}

/// The prefixes of an answer with their properties.
fn nets(answer: &Value) -> BTreeMap<IpNet, &Value> {
    let entities = answer["property-map"].as_object().expect("an object");
    let prefix = |entity: &str| {
        let rest = entity.strip_prefix("ipv4:").or_else(|| entity.strip_prefix("ipv6:"))?;
        let net = rest.parse().ok();
        net.or_else(|| rest.parse::<IpAddr>().ok().map(IpNet::from))
    };
    entities.iter().filter_map(|(entity, values)| Some((prefix(entity)?, values))).collect()
}

/// A client's reading of a property by the rules of section 6.1.3: the value of the longest prefix that has one.
fn inherited(answer: &BTreeMap<IpNet, &Value>, address: IpAddr, property: &str) -> Option<String> {
    answer
        .iter()
        .filter(|(net, values)| net.contains(&address) && !values[property].is_null())
        .max_by_key(|(net, _)| net.prefix_len())
        .map(|(_, values)| values[property].as_str().expect("a string").to_owned())
}

/// Addresses where something may begin or end.
fn edges(nets: impl Iterator<Item = IpNet>) -> Vec<IpAddr> {
    let step = |address: IpAddr, up: bool| match address {
        IpAddr::V4(v4) => {
            let bits = v4.to_bits();
            let next = if up { bits.checked_add(1) } else { bits.checked_sub(1) };
            next.map(|bits| IpAddr::from(Ipv4Addr::from_bits(bits)))
        }
        IpAddr::V6(v6) => {
            let bits = v6.to_bits();
            let next = if up { bits.checked_add(1) } else { bits.checked_sub(1) };
            next.map(|bits| IpAddr::from(std::net::Ipv6Addr::from_bits(bits)))
        }
    };
    nets.flat_map(|net| {
        let (first, last) = (net.network(), net.broadcast());
        [Some(first), Some(last), step(first, false), step(last, true)]
    })
    .flatten()
    .collect()
}

/// Sections 7.4, 7.5 and 8.4: what the directory contains.
#[test]
fn the_directory_entries() {
    let catalogue = Network::new().catalogue("");
    let directory = json(&catalogue, "/directory", None);
    assert_eq!(json(&catalogue, "/", None), directory);
    for (id, path, accepts) in [
        ("property-map", FULL, None),
        ("property-map-filtered", LOOKUP, Some("application/alto-propmapparams+json")),
    ] {
        let entry = &directory["resources"][id];
        assert_eq!(entry["uri"], format!("https://alto.example.net{path}"));
        assert_eq!(entry["media-type"], "application/alto-propmap+json");
        assert_eq!(entry.get("accepts").and_then(Value::as_str), accepts);
        assert_eq!(entry["uses"], json!(["groups", "routers"]));
        let mappings = json!({
            "ipv4": ["groups.pid", "routers.pid"],
            "ipv6": ["groups.pid", "routers.pid"],
            "groups.pid": [".priv:nigh-routed"],
            "routers.pid": [".priv:nigh-routed"],
        });
        assert_eq!(entry["capabilities"], json!({ "mappings": mappings }));
    }
}

/// Section 7.6: the full map has every prefix and PID, inherited values omitted, and depends on both maps in the
/// order of `uses`; section 7.6 again: a PID has only what belongs to its own map.
#[test]
fn the_full_property_map() {
    let catalogue = Network::new().catalogue("");
    let answer = json(&catalogue, FULL, None);
    let tags = answer["meta"]["dependent-vtags"].as_array().expect("tags");
    let map = |id| catalogue.maps().network_map(id).expect("a map");
    assert_eq!(tags, &[map("groups").vtag(), map("routers").vtag()]);
    let nets = nets(&answer);
    for address in edges(nets.keys().copied()) {
        let [groups, routers] = pids(&catalogue, address);
        assert_eq!(inherited(&nets, address, "groups.pid"), Some(groups), "{address}");
        assert_eq!(inherited(&nets, address, "routers.pid"), Some(routers), "{address}");
    }
    let mut unrouted = 0;
    for id in ["groups", "routers"] {
        for pid in map(id).pids() {
            let entity = &answer["property-map"][format!("{id}.pid:{pid}")];
            let nowhere = map(id).pid_of(IpAddr::from([198, 51, 100, 1])) == pid;
            let value = if nowhere { "no" } else { "yes" };
            assert_eq!(entity, &json!({ ".priv:nigh-routed": value }), "{pid}");
            unrouted += u32::from(nowhere);
        }
    }
    assert_eq!(unrouted, 2);
}

/// Section 8.6 in the order of its text, on addresses and prefixes of the network.
#[test]
fn filtered_property_maps() {
    let catalogue = Network::new().catalogue("");
    let look = |entities: &[&str], properties: &[&str]| {
        let body = json!({ "entities": entities, "properties": properties });
        json(&catalogue, LOOKUP, Some(&body))["property-map"].clone()
    };
    let pid = |address: &str| pids(&catalogue, address.parse().expect("an address"))[0].clone();
    let value = |address: &str| json!({ "groups.pid": pid(address) });

    // An address inherits; one that appears twice counts once; the other spelling is the same entity.
    let answer = look(&["ipv4:10.1.9.9", "ipv4:10.1.9.9/32", "ipv4:10.1.9.9"], &["groups.pid"]);
    assert_eq!(answer, json!({ "ipv4:10.1.9.9": value("10.1.9.9") }));
    let answer = look(&["ipv6:2001:DB8:1:0::1"], &["groups.pid"]);
    assert_eq!(answer, json!({ "ipv6:2001:db8:1::1": value("2001:db8:1::1") }));

    // A prefix inherits, and longer prefixes in it have their own values.
    let answer = look(&["ipv4:10.1.0.0/17"], &["groups.pid"]);
    let expected = json!({
        "ipv4:10.1.0.0/17": value("10.1.9.9"), "ipv4:10.1.2.0/24": value("10.1.2.3"),
    });
    assert_eq!(answer, expected);

    // What longer prefixes cover completely is omitted.
    let answer = look(&["ipv4:192.0.2.0/24"], &["groups.pid"]);
    let expected = json!({
        "ipv4:192.0.2.0/25": value("192.0.2.1"), "ipv4:192.0.2.128/25": value("192.0.2.200"),
    });
    assert_eq!(answer, expected);

    // A property that does not belong to an entity's domain is omitted, as is the entity then.
    let own = format!("groups.pid:{}", pid("10.0.0.1"));
    let answer = look(&["ipv4:10.0.0.1", &own], &[".priv:nigh-routed"]);
    assert_eq!(answer, json!({ own.as_str(): { ".priv:nigh-routed": "yes" } }));

    // No entities are all entities, no properties all properties.
    let every = look(&[], &[]);
    let answer = json!({ "property-map": every });
    let nets = nets(&answer);
    for address in edges(nets.keys().copied()) {
        let [groups, routers] = pids(&catalogue, address);
        assert_eq!(inherited(&nets, address, "groups.pid"), Some(groups), "{address}");
        assert_eq!(inherited(&nets, address, "routers.pid"), Some(routers), "{address}");
    }
    let full = json(&catalogue, FULL, None);
    let names = |map: &Value| -> Vec<String> {
        map.as_object().expect("an object").keys().cloned().collect()
    };
    assert_eq!(names(&every), names(&full["property-map"]));

    // Without `properties`: the entities alone, with nothing in them.
    let bare = json(&catalogue, LOOKUP, Some(&json!({ "entities": [] })));
    assert_eq!(names(&bare["property-map"]), names(&full["property-map"]));
    let bare = json(&catalogue, LOOKUP, Some(&json!({ "entities": ["ipv4:10.1.0.0/17", own] })));
    assert_eq!(bare["property-map"], json!({ "ipv4:10.1.0.0/17": {}, own.as_str(): {} }));
}

/// Section 8.6: the tags of all maps with an entity of no map, else of those that the request names.
#[test]
fn dependent_tags() {
    let catalogue = Network::new().catalogue("");
    let map = |id: &str| catalogue.maps().network_map(id).expect("a map");
    let tags =
        |body: Value| json(&catalogue, LOOKUP, Some(&body))["meta"]["dependent-vtags"].clone();
    let pid = |id: &str| format!("{id}.pid:{}", map(id).pids().next().expect("a PID"));
    let routed = [".priv:nigh-routed"];
    let both = json!([map("groups").vtag(), map("routers").vtag()]);
    let address = json!({ "entities": ["ipv4:10.0.0.1"], "properties": ["groups.pid"] });
    assert_eq!(tags(address), both);
    let one = json!({ "entities": [pid("routers")], "properties": routed });
    assert_eq!(tags(one), json!([map("routers").vtag()]));
    let two = json!({ "entities": [pid("routers"), pid("groups")], "properties": routed });
    assert_eq!(tags(two), both);
}

/// Section 8.6: invalid requests, each with its field and value.
#[test]
fn wrong_requests() {
    let catalogue = Network::new().catalogue("");
    let invalid = "E_INVALID_FIELD_VALUE";
    let entity = |entity: &str| json!({ "entities": [entity], "properties": [] });
    let property = |name: &str| json!({ "entities": ["ipv4:10.0.0.1"], "properties": [name] });
    let mut cases = vec![
        (json!([]), "E_SYNTAX", "", String::new()),
        (json!({}), "E_MISSING_FIELD", "entities", String::new()),
        (json!({ "entities": 1 }), "E_INVALID_FIELD_TYPE", "entities", String::new()),
        (json!({ "entities": [1] }), invalid, "entities", "1".to_owned()),
        (
            json!({ "entities": [], "properties": "x" }),
            "E_INVALID_FIELD_TYPE",
            "properties",
            String::new(),
        ),
    ];
    for name in [
        "",
        "ipv4",
        "ipv4:",
        "ipv4:10.0.0",
        "ipv4:10.0.0.0/33",
        "ipv4:2001:db8::1",
        "ipv6:10.0.0.1",
        "pid:x",
        "groups.pid:none",
        "none.pid:x",
        "groups.ipv4:10.0.0.1",
        ".ane:x",
        "asn:64500",
    ] {
        cases.push((entity(name), invalid, "entities", name.to_owned()));
    }
    for name in ["pid", ".pid", "none.pid", "asn", "priv:nigh-routed", ""] {
        cases.push((property(name), invalid, "properties", name.to_owned()));
    }
    for (body, code, field, value) in cases {
        let response = ask(&catalogue, LOOKUP, Some(&body));
        assert_eq!((response.status, response.media_type), (400, "application/alto-error+json"));
        let error: Value = serde_json::from_slice(&response.body).expect("JSON");
        let text = |name: &str| error["meta"][name].as_str().unwrap_or_default().to_owned();
        let got = (text("code"), text("field"), text("value"));
        assert_eq!(got, (code.to_owned(), field.to_owned(), value), "{body}");
    }
}

/// A map with too many PIDs is not given out by this path either.
#[test]
fn the_limit_on_pids_holds_here_too() {
    let catalogue = Network::new().catalogue("max_pids = 3");
    assert_eq!(ask(&catalogue, FULL, None).status, 503);
    for (entities, status) in
        [(json!([]), 503), (json!(["ipv4:0.0.0.0/0"]), 503), (json!(["ipv4:10.0.0.0/8"]), 200)]
    {
        let body = json!({ "entities": entities, "properties": ["groups.pid"] });
        assert_eq!(ask(&catalogue, LOOKUP, Some(&body)).status, status, "{entities}");
    }
    assert_eq!(ask(&catalogue, LOOKUP, Some(&json!({ "entities": [] }))).status, 503);
}

/// Prefixes near each other, so that they cover and neighbour one another.
fn prefix() -> impl Strategy<Value = IpNet> {
    (0..64_u32, 26..=32_u8, any::<bool>()).prop_map(|(low, length, v6)| {
        let text = if v6 {
            format!("2001:db8::{:x}/{}", low, u32::from(length) + 96)
        } else {
            format!("192.0.2.{low}/{length}")
        };
        net(&text).trunc()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

    /// Whatever the network and the question, a client that reads the answer by the rules knows the PIDs of every
    /// address that it asked for; nothing else is returned, and nothing that the rest covers.
    #[test]
    fn answers_hold_for_every_address(
        prefixes in prop::collection::vec((prefix(), 1..=4_u8), 0..24),
        entities in prop::collection::vec(prefix(), 1..6),
        properties in prop::sample::select(vec![
            vec!["groups.pid"], vec!["routers.pid"], vec!["routers.pid", "groups.pid"],
        ]),
    ) {
        let mut network = Network::bare();
        for (prefix, at) in prefixes {
            network.internal(prefix, at);
        }
        let catalogue = network.catalogue("");
        let name = |net: &IpNet| match net {
            IpNet::V4(net) => format!("ipv4:{net}"),
            IpNet::V6(net) => format!("ipv6:{net}"),
        };
        let names: Vec<_> = entities.iter().map(name).collect();
        let body = json!({ "entities": names, "properties": properties });
        let answer = json(&catalogue, LOOKUP, Some(&body));
        let nets = nets(&answer);
        prop_assert!(nets.keys().all(|net| entities.iter().any(|entity| entity.contains(net))));
        let asked: Vec<_> = edges(nets.keys().chain(&entities).copied())
            .into_iter()
            .filter(|address| entities.iter().any(|entity| entity.contains(address)))
            .collect();
        for address in asked {
            let [groups, routers] = pids(&catalogue, address);
            for (property, expected) in [("groups.pid", groups), ("routers.pid", routers)] {
                let found = inherited(&nets, address, property);
                let expected = properties.contains(&property).then_some(expected);
                prop_assert_eq!(found, expected, "{} {}", address, property);
            }
        }
        for net in nets.keys() {
            let longer = nets.keys().filter(|other| net.contains(*other) && other != &net);
            let rest = IpNet::aggregate(&longer.copied().collect());
            prop_assert!(!rest.contains(net), "{} is covered", net);
        }
    }
}

/// Everything that the directory lists can be followed, and is listed by the services (RFC 8895 section 6.4,
/// RFC 9569 section 5.3).
#[test]
fn the_services_follow_everything() {
    let catalogue = Network::new().catalogue("");
    let directory = json(&catalogue, "/directory", None);
    let entries = directory["resources"].as_object().expect("entries");
    for (id, media_type, accepts) in [
        ("update-stream", "text/event-stream", "application/alto-updatestreamparams+json"),
        ("tips-views", "application/alto-tips+json", "application/alto-tipsparams+json"),
    ] {
        let entry = &entries[id];
        assert_eq!(
            (&entry["media-type"], &entry["accepts"]),
            (&json!(media_type), &json!(accepts))
        );
        let mut uses: Vec<_> =
            entry["uses"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        let types = &entry["capabilities"]["incremental-change-media-types"];
        uses.sort_unstable();
        let others =
            entries.keys().filter(|id| !["update-stream", "tips-views"].contains(&id.as_str()));
        assert!(uses.iter().eq(others));
        for id in uses {
            let both = "application/merge-patch+json,application/json-patch+json";
            let expected = if id == "groups" { both } else { types[id].as_str().expect("a type") };
            assert_eq!(types[id], expected, "{id}");
            assert!([both, "application/merge-patch+json"].contains(&expected));
        }
    }
    let control = &entries["update-stream"]["capabilities"]["support-stream-control"];
    assert_eq!(control, &json!(true));
    assert!(catalogue.resources().len() == entries.len());
}
