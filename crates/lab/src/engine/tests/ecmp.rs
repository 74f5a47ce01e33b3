//! Flows over equal-cost paths.

use std::collections::BTreeMap;

use super::table::{MS, Table, udp};
use crate::{
    NodeId, PortId,
    engine::EngineOptions,
    network::{Builder, Relation},
    route::{FLOW_CLASSES, RoutePolicy},
};

const FROM: &str = "10.0.0.10";
const TO: &str = "10.1.0.10";

/// A network of these links, each with its delay in milliseconds, all of the same weight, with one host
/// at node 0 and the other at the last node.
fn meshed(links: &[(u32, u32, u64)]) -> Table {
    let mut builder = Builder::new();
    let last = links.iter().map(|&(_, b, _)| b).max().expect("links");
    builder.unnamed(last + 1).expect("nodes");
    for &(a, b, delay) in links {
        let settings = format!("delay={delay}ms").parse().expect("settings");
        builder.link(NodeId(a), NodeId(b), &settings, 1, Relation::None).expect("a link");
    }
    let policy = RoutePolicy { ecmp: true, ..RoutePolicy::default() };
    let options = EngineOptions { policy, ..EngineOptions::default() };
    let mut table = Table::new(builder.finish().expect("a network"), options);
    table.host(0, &["10.0.0.10/16"]);
    table.host(last, &["10.1.0.10/16"]);
    table
}

/// Sends a packet of each flow, distinguished by its port, a few at a time; returns how many milliseconds
/// each took.
fn send(table: &mut Table, flows: u16) -> BTreeMap<u16, u64> {
    let mut took = BTreeMap::new();
    for first in (1..=flows).step_by(100) {
        let sent = table.now;
        for port in first..(first + 100).min(flows + 1) {
            table.send(PortId(0), &udp(FROM, TO, 64, port, b"x"));
        }
        for left in table.drain() {
            assert_eq!(left.port, PortId(1));
            let port = u16::from_be_bytes([left.ip()[22], left.ip()[23]]);
            took.insert(port, (left.at - sent) / MS);
        }
    }
    assert_eq!(took.len(), usize::from(flows), "each flow arrives");
    took
}

/// How many flows took how long.
fn count(took: &BTreeMap<u16, u64>) -> BTreeMap<u64, u32> {
    let mut counts = BTreeMap::new();
    for &time in took.values() {
        *counts.entry(time).or_default() += 1;
    }
    counts
}

/// Four paths of 1, 2, 3 and 4 ms that weigh the same: by its time it is seen which one a packet took.
#[test]
fn flows_are_spread_evenly_and_each_keeps_its_way() {
    let mut table = meshed(&[
        (0, 1, 1),
        (0, 2, 2),
        (0, 3, 3),
        (0, 4, 4),
        (1, 5, 0),
        (2, 5, 0),
        (3, 5, 0),
        (4, 5, 0),
    ]);
    let flows = 4_000;
    let took = send(&mut table, flows);
    assert_eq!(send(&mut table, flows), took, "a flow keeps its path");
    let counts = count(&took);
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4]);
    // Binomial: a quarter of all.
    let sigma = (f64::from(flows) * 0.25 * 0.75).sqrt();
    for (path, count) in counts {
        let off = f64::from(count) - f64::from(flows) / 4.0;
        assert!(off.abs() <= 3.0 * sigma, "path {path}: {count} of {flows} flows");
    }
    // What is shown as the path is one of those that packets take, for each class of flows.
    let shown = (0..FLOW_CLASSES).map(|class| {
        let path = table.engine.path(NodeId(0), TO.parse().expect("an address"), class);
        assert!(path.forks);
        table.engine.network().to(path.links[0]).0
    });
    let mut shown = shown.collect::<Vec<_>>();
    shown.sort_unstable();
    let each = FLOW_CLASSES as usize / 4;
    let right: Vec<u32> = (1..=4).flat_map(|path| std::iter::repeat_n(path, each)).collect();
    assert_eq!(shown, right, "each path has as many classes");
}

/// Two forks, one behind the other: all four paths are used, so the nodes do not divide flows alike.
#[test]
fn nodes_behind_a_fork_divide_flows_anew() {
    let mut table = meshed(&[
        (0, 1, 1),
        (0, 2, 2),
        (1, 3, 10),
        (1, 4, 20),
        (2, 3, 10),
        (2, 4, 20),
        (3, 5, 0),
        (4, 5, 0),
    ]);
    let flows = 2_000;
    let counts = count(&send(&mut table, flows));
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [11, 12, 21, 22]);
    assert!(counts.values().all(|&count| count > u32::from(flows) / 10), "{counts:?}");
}

/// Without ECMP all flows go the path of the first link.
#[test]
fn one_way_is_enough_where_flows_are_not_to_be_spread() {
    let mut table = meshed(&[(0, 1, 1), (0, 2, 2), (1, 3, 0), (2, 3, 0)]);
    let spread = count(&send(&mut table, 200));
    assert_eq!(spread.len(), 2);
    let network = table.engine.network.clone();
    let mut table = Table::of(network, EngineOptions::default());
    table.host(0, &["10.0.0.10/16"]);
    table.host(3, &["10.1.0.10/16"]);
    assert_eq!(count(&send(&mut table, 200)), BTreeMap::from([(1, 200)]));
    let path = table.engine.path(NodeId(0), TO.parse().expect("an address"), 0);
    assert!(!path.forks);
}
