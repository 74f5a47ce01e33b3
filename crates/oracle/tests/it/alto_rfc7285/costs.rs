//! RFC 7285, sections 6 and 11.2.3: costs and full cost maps.

use crate::alto_rfc7285::support::{SITES, Setup, ground, members};
use oracle::tables::{Adjustment, Subject};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// No two cost maps MUST be defined with the same cost type and network map.
#[test]
fn s6_1_s11_2_3_5_one_cost_map_for_each_cost_type_and_network_map() {
    let directory = ground().get("/directory");
    let mut seen = HashSet::new();
    for (id, entry) in directory["resources"].as_object().expect("an object") {
        let is_full = entry["media-type"] == "application/alto-costmap+json"
            && entry.get("accepts").is_none();
        if is_full {
            let key =
                (entry["uses"].to_string(), entry["capabilities"]["cost-type-names"].to_string());
            assert!(seen.insert(key), "{id}");
        }
    }
    assert_eq!(seen.len(), 8);
}

/// The metric "routingcost" MUST be offered, and its cost map MUST be provided.
#[test]
fn s6_1_1_1_s11_2_3_routingcost_is_there() {
    let ground = ground();
    for map in ["groups", "routers"] {
        let reply = ground.get(&format!("/costmap/{map}/num-routingcost"));
        assert_eq!(reply["meta"]["cost-type"]["cost-metric"], "routingcost");
    }
}

/// At least one mode MUST be supported; both are, for every metric.
#[test]
fn s6_1_2_both_modes_are_there() {
    let types = ground().get("/directory")["meta"]["cost-types"].clone();
    let modes = |metric: &str| -> BTreeSet<String> {
        let types = types.as_object().expect("an object").values();
        types
            .filter(|kind| kind["cost-metric"] == metric)
            .map(|kind| kind["cost-mode"].to_string())
            .collect()
    };
    assert_eq!(modes("routingcost").len(), 2);
    assert_eq!(modes("priv:delay"), modes("routingcost"));
}

/// Ordinal costs are non-negative whole numbers, the lower the better; numerical ones never contradict the
/// order.
#[test]
fn s6_1_2_2_ranks_and_numbers_agree() {
    let ground = ground();
    let numbers = ground.pairs(&ground.get("/costmap/groups/num-routingcost"));
    let ranks = ground.pairs(&ground.get("/costmap/groups/ord-routingcost"));
    assert_eq!(numbers.len(), ranks.len());
    let mut pairs: Vec<(u64, f64)> = ranks
        .iter()
        .zip(&numbers)
        .map(|(rank, number)| {
            assert_eq!((rank.0, rank.1), (number.0, number.1));
            (rank.2.as_u64().expect("a whole number"), number.2.as_f64().expect("a number"))
        })
        .collect();
    pairs.sort_by_key(|(rank, _)| *rank);
    assert!(pairs.is_sorted_by(|(_, a), (_, b)| a <= b), "{pairs:?}");
    // Ranks begin at 1 and have no gaps.
    let distinct: BTreeSet<u64> = pairs.iter().map(|(rank, _)| *rank).collect();
    assert_eq!(distinct, (1..=distinct.len() as u64).collect());
}

/// Numerical costs are in few classes, whatever they are exactly.
#[test]
fn s15_3_numbers_are_rounded_into_the_configured_classes() {
    for (classes, most) in [(1, 1), (2, 2), (4, 4), (16, 16)] {
        let setup = Setup { config: &format!("classes = {classes}"), ..Setup::default() };
        let ground = setup.ground();
        let pairs = ground.pairs(&ground.get("/costmap/groups/num-routingcost"));
        let values: BTreeSet<String> = pairs.iter().map(|(_, _, cost)| cost.to_string()).collect();
        assert!(values.len() <= most, "{classes}: {values:?}");
    }
}

/// The array of cost type names MUST include a single name.
#[test]
fn s11_2_3_4_a_full_cost_map_has_one_cost_type() {
    let directory = ground().get("/directory");
    for entry in directory["resources"].as_object().expect("an object").values() {
        if entry["media-type"] == "application/alto-costmap+json" && entry.get("accepts").is_none()
        {
            let names = entry["capabilities"]["cost-type-names"].as_array().expect("an array");
            assert_eq!(names.len(), 1);
        }
    }
}

/// "meta" MUST include "dependent-vtags" with the one network map, and "cost-type".
#[test]
fn s11_2_3_6_the_cost_map_says_what_it_is_of() {
    let ground = ground();
    for (map, kind, cost_type) in [
        (
            "groups",
            "num-routingcost",
            json!({"cost-mode": "numerical", "cost-metric": "routingcost"}),
        ),
        ("routers", "ord-delay", json!({"cost-mode": "ordinal", "cost-metric": "priv:delay"})),
    ] {
        let reply = ground.get(&format!("/costmap/{map}/{kind}"));
        let vtag = &ground.get(&format!("/networkmap/{map}"))["meta"]["vtag"];
        assert_eq!(reply["meta"]["dependent-vtags"], json!([vtag]));
        assert_eq!(reply["meta"]["cost-type"], cost_type);
    }
}

/// The cost of each pair for which one is defined MUST be there.
#[test]
fn s11_2_3_6_all_defined_costs_are_there() {
    let ground = ground();
    let reply = ground.get("/costmap/groups/num-routingcost");
    let pairs = ground.pairs(&reply);
    // No path to or from what routes nowhere is known.
    assert_eq!(pairs.len(), 7 * 7);
    let pids: BTreeSet<String> = SITES.iter().map(|(site, _)| ground.pid(site)).collect();
    assert_eq!(members(&reply["cost-map"]), pids);
}

/// Without rounding getting in the way, costs are those of the expression.
#[test]
fn s6_2_costs_are_those_of_the_network() {
    let ground = Setup { config: "classes = 1000", ..Setup::default() }.ground();
    let pairs = ground.pairs(&ground.get("/costmap/groups/num-routingcost"));
    let costs: BTreeMap<_, _> =
        pairs.iter().map(|(from, to, cost)| ((*from, *to), cost.as_f64())).collect();
    // 8 for each AS and 0.5 for each hop.
    for (from, to, cost) in [
        ("mypid1", "mypid1", 0.0),
        ("mypid1", "mypid2", 0.5),
        ("mypid1", "mypid3", 1.0),
        ("mypid1", "peeringpid1", 8.5),
        ("mypid3", "peeringpid2", 17.5),
        ("mypid2", "transitpid2", 48.5),
        ("peeringpid1", "mypid1", 0.5),
    ] {
        assert_eq!(costs[&(from, to)], Some(cost), "{from} to {to}");
    }
}

/// A PID of several groups and routers has the mean of their costs, weighted by prefixes.
#[test]
fn s6_costs_of_coarse_pids_are_means() {
    let config = r#"
        classes = 1000
        [[map]]
        id = "sites"
        by = "site"
        sites = [["10.255.0.1", "10.255.0.3"]]
    "#;
    let ground = Setup { config, ..Setup::default() }.ground();
    let map = ground.maps.network_map("sites").expect("a map");
    let pid = |address: &str| map.pid_of(address.parse().expect("an address")).to_owned();
    let costs = ground.get("/costmap/sites/num-routingcost")["cost-map"].clone();
    // Two prefixes at r1, half a hop from r2, and one at r3, as far.
    assert_eq!(costs[pid("10.0.0.1")][pid("192.168.0.1")], json!(0.5));
    // r1 to p1 is 8.5 (twice), r3 to p1 is 9.5.
    let mean: f64 = (2.0 * 8.5 + 9.5) / 3.0;
    let cost = costs[pid("10.0.0.1")][pid("128.0.0.1")].as_f64().expect("a number");
    assert!((cost - mean).abs() < 0.1, "{cost} for {mean}");
}

/// A metric whose paths are worth less comes after in its own map only.
#[test]
fn s6_1_1_each_metric_has_its_own_costs() {
    let ground = Setup { config: "classes = 1000", ..Setup::default() }.ground();
    let cost =
        |reply: &Value, to: &str| reply["cost-map"][ground.pid("mypid1")][ground.pid(to)].as_f64();
    let delay = ground.get("/costmap/groups/num-delay");
    assert_eq!(cost(&delay, "transitpid2"), Some(10.0));
    assert_eq!(cost(&delay, "mypid3"), Some(10.0));
}

/// What the operator prefers or avoids is first or last, in both modes.
#[test]
fn s6_what_is_preferred_is_first_and_what_is_avoided_last() {
    let setup = Setup {
        adjustments: vec![
            (
                Subject::Prefix(crate::alto_rfc7285::support::net("135.0.0.0/16")),
                Adjustment::Prefer,
            ),
            (Subject::Prefix(crate::alto_rfc7285::support::net("128.0.0.0/16")), Adjustment::Avoid),
        ],
        ..Setup::default()
    };
    let ground = setup.ground();
    for kind in ["num-routingcost", "ord-routingcost"] {
        let pairs = ground.pairs(&ground.get(&format!("/costmap/groups/{kind}")));
        let from = |to: &str| -> Vec<f64> {
            let pairs = pairs.iter().filter(|(from, other, _)| *from == "mypid1" && *other == to);
            pairs.filter_map(|(_, _, cost)| cost.as_f64()).collect()
        };
        let all: Vec<f64> = pairs.iter().filter_map(|(_, _, cost)| cost.as_f64()).collect();
        let (least, most) =
            (all.iter().copied().fold(f64::MAX, f64::min), all.iter().copied().fold(0.0, f64::max));
        if kind.starts_with("num") {
            assert_eq!((from("transitpid2"), from("peeringpid1")), (vec![least], vec![most]));
        } else {
            assert!(from("transitpid2")[0] < from("mypid1")[0]);
            assert!(from("peeringpid1")[0] > from("transitpid1")[0]);
        }
    }
}
