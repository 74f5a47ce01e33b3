//! RFC 7285, sections 5, 6.3, 11.2.1, 11.2.2 and 11.3.1: network maps, full and filtered.

use crate::alto_rfc7285::support::{
    Ground, SITES, Setup, ground, members, net, network, router, wrong,
};
use ipnet::IpNet;
use oracle::alto::Maps;
use serde_json::{Value, json};
use std::{collections::BTreeMap, net::IpAddr, sync::Arc};
use topo::{Change, ExternalPath, Feed, Options};

const FILTERED: &str = "/networkmap/groups/filtered";

/// The prefixes of a map with their PIDs.
fn prefixes(map: &Value) -> BTreeMap<IpNet, String> {
    let mut prefixes = BTreeMap::new();
    for (pid, groups) in map["network-map"].as_object().expect("an object") {
        for (kind, list) in groups.as_object().expect("an object") {
            for prefix in list.as_array().expect("an array") {
                let prefix = net(prefix.as_str().expect("a string"));
                assert_eq!(kind == "ipv4", matches!(prefix, IpNet::V4(_)));
                let twice = prefixes.insert(prefix, pid.clone());
                assert_eq!(twice, None, "11.2.2: {prefix} is in two PIDs");
            }
        }
    }
    prefixes
}

/// Longest match by linear search.
fn longest(prefixes: &BTreeMap<IpNet, String>, address: IpAddr) -> Option<&str> {
    let around = prefixes.iter().filter(|(prefix, _)| prefix.contains(&address));
    around.max_by_key(|(prefix, _)| prefix.prefix_len()).map(|(_, pid)| pid.as_str())
}

/// Whenever the content changes the tag MUST change; and it stays while the content does.
#[test]
fn s6_3_the_tag_follows_the_content() {
    let setup = Setup::default();
    let mut builder = network(Options::default());
    let tags = |ground: &Ground| {
        ["groups", "routers"].map(|id| ground.maps.network_map(id).expect("a map").tag().to_owned())
    };
    let first = tags(&setup.of(&mut builder, setup.policy()));
    assert_eq!(tags(&setup.of(&mut builder, setup.policy())), first);
    // A longer path beyond an exit: another group, the same router.
    let path = ExternalPath { as_distance: 3, as_number: 64_501 };
    let route = Change::Route { prefix: net("128.0.0.0/16"), exit: router("p1"), path };
    builder.apply(Feed::CONFIGURATION, route).expect("it is taken");
    let second = tags(&setup.of(&mut builder, setup.policy()));
    assert_ne!(second[0], first[0]);
    assert_eq!(second[1], first[1]);
    // One more prefix.
    let route = Change::Route { prefix: net("129.0.0.0/16"), exit: router("p1"), path };
    builder.apply(Feed::CONFIGURATION, route).expect("it is taken");
    let third = tags(&setup.of(&mut builder, setup.policy()));
    assert!(third[0] != second[0] && third[1] != second[1]);
}

/// A map that a change did not touch is shared with the snapshot before.
#[test]
fn s6_3_an_untouched_map_is_shared() {
    let setup = Setup::default();
    let mut builder = network(Options::default());
    let before = setup.of(&mut builder, setup.policy());
    let map = before.maps.network_map("groups").expect("a map");
    let mut policy = setup.policy();
    policy.metrics.truncate(1);
    let after = setup.of(&mut builder, policy);
    let maps = Maps::new(after.tables, before.settings.clone(), Some(&before.maps));
    assert!(Arc::ptr_eq(&map, &maps.network_map("groups").expect("a map")));
}

/// At least one network map MUST be provided.
#[test]
fn s11_2_1_there_is_a_network_map() {
    let ground = ground();
    assert_eq!(ground.maps.network_map_ids().collect::<Vec<_>>(), ["groups", "routers"]);
}

/// "meta" MUST include "vtag".
#[test]
fn s11_2_1_6_the_map_has_its_version() {
    let map = ground().get("/networkmap/groups");
    assert_eq!(members(&map["meta"]["vtag"]), ["resource-id", "tag"].map(str::to_owned).into());
}

/// The map MUST include all PIDs.
#[test]
fn s11_2_1_6_the_map_has_all_pids() {
    let ground = ground();
    let map = ground.get("/networkmap/groups");
    let expected: std::collections::BTreeSet<_> =
        SITES.iter().map(|(site, _)| ground.pid(site)).collect();
    assert_eq!(members(&map["network-map"]), expected);
    assert_eq!(expected.len(), 8);
}

/// Longest-prefix matching MUST be used.
#[test]
fn s11_2_2_addresses_are_mapped_by_longest_match() {
    let ground = ground();
    for id in ["groups", "routers"] {
        let prefixes = prefixes(&ground.get(&format!("/networkmap/{id}")));
        let map = ground.maps.network_map(id).expect("a map");
        for address in [
            "192.168.10.1",
            "192.168.11.1",
            "10.0.0.0",
            "9.255.255.255",
            "255.255.255.255",
            "2001:db8::1",
            "::1",
        ] {
            let address: IpAddr = address.parse().expect("an address");
            assert_eq!(Some(map.pid_of(address)), longest(&prefixes, address), "{id}: {address}");
        }
    }
}

/// The map MUST define a PID for every address (complete).
#[test]
fn s11_2_2_maps_are_complete() {
    let ground = ground();
    for id in ["groups", "routers"] {
        let prefixes = prefixes(&ground.get(&format!("/networkmap/{id}")));
        assert!(prefixes.contains_key(&net("0.0.0.0/0")) && prefixes.contains_key(&net("::/0")));
    }
    // With routes to everything of one family, only the other's is the server's own.
    let setup = Setup::default();
    let mut builder = network(Options::default());
    let path = ExternalPath { as_distance: 9, as_number: 1 };
    let route = Change::Route { prefix: net("0.0.0.0/0"), exit: router("t2"), path };
    builder.apply(Feed::CONFIGURATION, route).expect("it is taken");
    let ground = setup.of(&mut builder, setup.policy());
    let prefixes4 = prefixes(&ground.get("/networkmap/groups"));
    assert_ne!(prefixes4[&net("0.0.0.0/0")], prefixes4[&net("::/0")]);
    // With routes to everything of both, no PID is left over for nothing.
    let route = Change::Route { prefix: net("::/0"), exit: router("t2"), path };
    builder.apply(Feed::CONFIGURATION, route).expect("it is taken");
    let ground = setup.of(&mut builder, setup.policy());
    let map = ground.get("/networkmap/groups");
    let both = prefixes(&map);
    assert_eq!(both[&net("0.0.0.0/0")], both[&net("::/0")]);
    assert_eq!(members(&map["network-map"]).len(), 8);
    for pid in members(&map["network-map"]) {
        assert!(both.values().any(|other| *other == pid), "{pid} has no prefix");
    }
}

/// The map MUST NOT have one prefix in two PIDs (non-overlapping). `prefixes` asserts it.
#[test]
fn s11_2_2_maps_do_not_overlap() {
    let ground = ground();
    assert_eq!(prefixes(&ground.get("/networkmap/groups")).len(), 11);
    // By router, 10/8 and 15/8 stay two prefixes of one PID, and p2's IPv6 prefix joins its IPv4 one.
    let map = ground.get("/networkmap/routers");
    assert_eq!(prefixes(&map).len(), 11);
    assert_eq!(members(&map["network-map"]).len(), 8);
}

/// What a more specific prefix would not change is omitted, and no match changes.
#[test]
fn s11_2_2_needless_prefixes_are_omitted() {
    let setup = Setup::default();
    let mut builder = network(Options::default());
    let inside = [
        ("10.1.0.0/16", "r1"),
        ("10.1.2.0/24", "r3"),
        ("10.1.2.128/25", "r3"),
        ("10.1.2.129/32", "r1"),
    ];
    for (prefix, at) in inside {
        let change = Change::Internal { prefix: net(prefix), router: router(at) };
        builder.apply(Feed::CONFIGURATION, change).expect("it is taken");
    }
    let ground = setup.of(&mut builder, setup.policy());
    let map = prefixes(&ground.get("/networkmap/groups"));
    for (prefix, kept) in [
        ("10.0.0.0/8", true),
        ("10.1.0.0/16", false),
        ("10.1.2.0/24", true),
        ("10.1.2.128/25", false),
        ("10.1.2.129/32", true),
    ] {
        assert_eq!(map.contains_key(&net(prefix)), kept, "{prefix}");
    }
    let of = ground.maps.network_map("groups").expect("a map");
    for last in [[10, 1, 2, 127], [10, 1, 2, 128], [10, 1, 2, 129], [10, 1, 2, 130], [10, 1, 3, 0]]
    {
        assert_eq!(Some(of.pid_of(last.into())), longest(&map, last.into()), "{last:?}");
    }
}

/// Every configured grain makes a good map.
#[test]
fn s5_1_pids_may_be_groups_routers_sites_or_ases() {
    let config = r#"
        [[map]]
        id = "sites"
        by = "site"
        sites = [["10.255.0.1", "10.255.0.2", "10.255.0.3"], ["10.255.0.6", "10.255.0.7"]]
        [[map]]
        id = "ases"
        by = "as"
    "#;
    let setup = Setup { config, ..Setup::default() };
    let options = Options { ases: topo::AsInterest::All, ..Options::default() };
    let ground = setup.of(&mut network(options), setup.policy());
    let pid = |map: &str, address: &str| {
        let map = ground.maps.network_map(map).expect("a map");
        map.pid_of(address.parse().expect("an address")).to_owned()
    };
    // The inside, p1, p2, the two transits, and nowhere.
    let map = ground.get("/networkmap/sites");
    assert_eq!(members(&map["network-map"]).len(), 5);
    assert_eq!(pid("sites", "10.0.0.1"), pid("sites", "192.168.10.1"));
    assert_eq!(pid("sites", "132.0.0.1"), pid("sites", "135.0.0.1"));
    assert_ne!(pid("sites", "128.0.0.1"), pid("sites", "130.0.0.1"));
    // Inside, four ASes, and nowhere.
    let map = ground.get("/networkmap/ases");
    assert_eq!(members(&map["network-map"]).len(), 6);
    assert_eq!(pid("ases", "10.0.0.1"), pid("ases", "192.168.10.1"));
    assert_eq!(pid("ases", "130.0.0.1"), pid("ases", "2001:db8::1"));
    prefixes(&map);
    // The directory's default is the first.
    assert_eq!(ground.get("/directory")["meta"]["default-alto-network-map"], "sites");
}

/// An empty list of PIDs MUST be taken as all PIDs.
#[test]
fn s11_3_1_3_no_pids_are_all_pids() {
    let ground = ground();
    assert_eq!(ground.post(FILTERED, &json!({"pids": []})), ground.get("/networkmap/groups"));
}

/// Entries that appear several times MUST be taken as one.
#[test]
fn s11_3_1_3_a_pid_twice_is_a_pid_once() {
    let ground = ground();
    let pid = ground.pid("mypid1");
    let once = ground.post(FILTERED, &json!({"pids": [pid]}));
    assert_eq!(ground.post(FILTERED, &json!({"pids": [pid, pid]})), once);
    let kinds = json!({"pids": [pid], "address-types": ["ipv4", "ipv4"]});
    assert_eq!(ground.post(FILTERED, &kinds), once);
    let bytes = ground.post_bytes(FILTERED, json!({"pids": [pid, pid]}).to_string().as_bytes());
    assert_eq!(String::from_utf8_lossy(&bytes.body).matches(pid.as_str()).count(), 1);
}

/// No address types, or an empty list, MUST be taken as all.
#[test]
fn s11_3_1_3_no_address_types_are_all_types() {
    let ground = ground();
    let all = ground.post(FILTERED, &json!({"pids": [ground.pid("peeringpid2")]}));
    let body = json!({"pids": [ground.pid("peeringpid2")], "address-types": []});
    assert_eq!(ground.post(FILTERED, &body), all);
    let groups = &all["network-map"][ground.pid("peeringpid2")];
    assert_eq!(members(groups), ["ipv4", "ipv6"].map(str::to_owned).into());
}

/// The member "pids" is required, of the right type, with PID names.
#[test]
fn s11_3_1_3_wrong_input_is_refused() {
    let ground = ground();
    for (body, expected) in [
        (json!({}), wrong("E_MISSING_FIELD", Some("pids"), None)),
        (json!({"address-types": []}), wrong("E_MISSING_FIELD", Some("pids"), None)),
        (json!({"pids": "x"}), wrong("E_INVALID_FIELD_TYPE", Some("pids"), None)),
        (json!({"pids": null}), wrong("E_INVALID_FIELD_TYPE", Some("pids"), None)),
        (json!({"pids": [3]}), wrong("E_INVALID_FIELD_VALUE", Some("pids"), Some("3"))),
        (json!({"pids": ["a.b"]}), wrong("E_INVALID_FIELD_VALUE", Some("pids"), Some("a.b"))),
        (
            json!({"pids": [], "address-types": "ipv4"}),
            wrong("E_INVALID_FIELD_TYPE", Some("address-types"), None),
        ),
        (
            json!({"pids": [], "address-types": ["ip v4"]}),
            wrong("E_INVALID_FIELD_VALUE", Some("address-types"), Some("ip v4")),
        ),
    ] {
        assert_eq!(ground.refused(FILTERED, &body), expected, "{body}");
    }
}

/// Only PIDs of the request MUST be in the response.
#[test]
fn s11_3_1_6_only_what_was_asked_for() {
    let ground = ground();
    let (one, two) = (ground.pid("mypid1"), ground.pid("mypid3"));
    let map = ground.post(FILTERED, &json!({"pids": [one, two]}));
    assert_eq!(members(&map["network-map"]), [one.clone(), two].into());
    assert_eq!(map["network-map"][one], json!({"ipv4": ["10.0.0.0/8", "15.0.0.0/8"]}));
}

/// A PID that is not there MUST be taken as if it were not in the request; the list is then not taken
/// as empty.
#[test]
fn s11_3_1_6_an_unknown_pid_is_passed_over() {
    let ground = ground();
    let pid = ground.pid("mypid1");
    let with = ground.post(FILTERED, &json!({"pids": [pid, "no-such-pid"]}));
    assert_eq!(with, ground.post(FILTERED, &json!({"pids": [pid]})));
    let none = ground.post(FILTERED, &json!({"pids": ["no-such-pid"]}));
    assert_eq!(none["network-map"], json!({}));
}

/// Only addresses of the types of the request MUST be in the response.
#[test]
fn s11_3_1_6_only_the_types_that_were_asked_for() {
    let ground = ground();
    let map = ground.post(FILTERED, &json!({"pids": [], "address-types": ["ipv6"]}));
    let kinds: Vec<_> =
        map["network-map"].as_object().expect("an object").values().map(members).collect();
    assert!(kinds.iter().flatten().all(|kind| kind == "ipv6"));
    // The PIDs are all there, most with nothing in them.
    assert_eq!(kinds.len(), 8);
}

/// A type that is not known MUST be taken as if it were not in the request.
#[test]
fn s11_3_1_6_an_unknown_type_is_passed_over() {
    let ground = ground();
    let pid = ground.pid("mypid1");
    let body = json!({"pids": [pid], "address-types": ["ipv4", "ethernet"]});
    assert_eq!(ground.post(FILTERED, &body), ground.post(FILTERED, &json!({"pids": [pid]})));
    let none = ground.post(FILTERED, &json!({"pids": [pid], "address-types": ["ethernet"]}));
    assert_eq!(none["network-map"][&pid], json!({}));
}

/// The tag MUST be that of the full map.
#[test]
fn s11_3_1_6_the_version_is_the_full_maps() {
    let ground = ground();
    let part = ground.post(FILTERED, &json!({"pids": [ground.pid("mypid1")]}));
    assert_eq!(part["meta"], ground.get("/networkmap/groups")["meta"]);
}
