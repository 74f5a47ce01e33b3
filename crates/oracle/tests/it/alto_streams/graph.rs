//! The updates graph (RFC 9569 section 3), against a naive reading of it.

use oracle::alto::updates::graph::{Bounds, Encoding, Graph, JSON_PATCH, Missing};
use proptest::prelude::*;
use serde_json::{Value, json};

const WIDE: Bounds = Bounds { versions: 1000, bytes: 1 << 30 };

fn text(value: &Value) -> axum::body::Bytes {
    value.to_string().into()
}

fn version(number: u32) -> Value {
    json!({ "meta": { "vtag": { "tag": format!("t{number}") } }, "map": { "a": number, "b": "x".repeat(200) } })
}

fn graph(bounds: Bounds, versions: u32) -> Graph {
    let first = text(&version(1));
    let mut graph = Graph::new("application/x", Encoding::Merge, bounds, first).expect("JSON");
    for number in 2..=versions {
        assert!(graph.push(text(&version(number))).expect("JSON"));
    }
    graph
}

fn apply(value: &mut Value, media_type: &str, text: &[u8]) {
    let patch: Value = serde_json::from_slice(text).expect("JSON");
    if media_type == JSON_PATCH {
        let patch: json_patch::Patch = serde_json::from_value(patch).expect("a JSON patch");
        json_patch::patch(value, &patch).expect("a patch that fits");
    } else {
        json_patch::merge(value, &patch);
    }
}

/// Section 3.2: all versions from start to end can be reached, from the snapshot of the start and from every
/// other snapshot, and all paths to one version give the same (section 3.1).
fn check(graph: &Graph, all: &[Value]) {
    assert!(graph.edge(0, graph.start()).is_ok(), "feasibility: a snapshot of the start");
    assert!(graph.edge(0, graph.end()).is_ok(), "the last version can be had whole");
    let mut reached = Value::Null;
    for number in graph.start()..=graph.end() {
        let expected = &all[usize::try_from(number - 1).expect("a small number")];
        if number > graph.start() {
            let change = graph.edge(number - 1, number).expect("continuity: each next change");
            apply(&mut reached, change.media_type, &change.text);
        }
        if let Ok(snapshot) = graph.edge(0, number) {
            let whole: Value = serde_json::from_slice(&snapshot.text).expect("JSON");
            assert_eq!(&whole, expected);
            if number == graph.start() {
                reached = whole;
            }
        }
        assert_eq!(&reached, expected, "version {number}");
    }
}

#[test]
fn edges_and_what_is_not_one() {
    let graph = graph(Bounds { versions: 40, bytes: 1 << 30 }, 60);
    assert_eq!((graph.start(), graph.end()), (32, 60));
    for (from, to, expected) in [
        (0, 31, Missing::Gone),
        (31, 32, Missing::Gone),
        (1, 2, Missing::Gone),
        (0, 0, Missing::Never),
        (40, 40, Missing::Never),
        (41, 40, Missing::Never),
        (40, 42, Missing::Never),
        (0, 33, Missing::Never),
        (60, 61, Missing::Next),
        (61, 62, Missing::Later),
        (0, 61, Missing::Later),
        (u64::MAX, 0, Missing::Never),
        (u64::MAX - 1, u64::MAX, Missing::Later),
    ] {
        assert_eq!(graph.edge(from, to), Err(expected), "{from}/{to}");
    }
    for (from, to) in [(0, 32), (32, 33), (0, 48), (59, 60), (0, 58), (0, 59), (0, 60)] {
        assert!(graph.edge(from, to).is_ok(), "{from}/{to}");
    }
}

/// Section 6.2: without a tag the latest snapshot is recommended; with one, the first change from there or the
/// latest snapshot.
#[test]
fn the_recommended_edge() {
    let graph = graph(WIDE, 30);
    assert_eq!(graph.start_edge(None), (0, 30));
    assert_eq!(graph.start_edge(Some("t29")), (29, 30));
    assert_eq!(graph.start_edge(Some("t2")), (0, 30), "thirty changes are longer than the whole");
    assert_eq!(graph.start_edge(Some("unknown")), (0, 30));
    assert_eq!(graph.start_edge(Some("t30")), (30, 31), "who has the last version waits");
    // Section 7.4.2: without a tag the path begins at 0.
    assert_eq!(graph.next_edge(None), (0, 30));
}

/// RFC 8895 section 6.3, RFC 9569 section 5.2: what a merge patch cannot express is not sent as one.
#[test]
fn a_null_begins_the_graph_anew() {
    let mut graph = graph(WIDE, 3);
    let null = json!({ "map": { "a": null } });
    assert!(graph.push(text(&null)).expect("JSON"));
    assert_eq!((graph.start(), graph.end()), (4, 4));
    assert_eq!(graph.edge(3, 4), Err(Missing::Gone));
    assert_eq!(graph.changes_since(3), None);
    assert_eq!(graph.latest().text, text(&null));
}

#[test]
fn nothing_new_is_no_version() {
    let mut graph = graph(WIDE, 2);
    assert!(!graph.push(text(&version(2))).expect("JSON"));
    let spaced = serde_json::to_string_pretty(&version(2)).expect("JSON");
    assert!(!graph.push(spaced.into()).expect("JSON"), "white space is no change");
    assert!(graph.push("[1]".into()).is_err() && graph.push("{".into()).is_err());
    assert_eq!(graph.end(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    /// Whatever changes and whatever the bounds, the invariants of section 3.2 hold, the start only moves right,
    /// and the bounds are kept.
    #[test]
    fn the_invariants_hold(
        changes in prop::collection::vec((0..5_u8, prop::collection::btree_set(0..30_u8, 0..30)), 1..60),
        versions in 1..40_usize,
        bytes in 1..20_000_usize,
        shorter in any::<bool>(),
    ) {
        let encoding = if shorter { Encoding::Shorter } else { Encoding::Merge };
        let bounds = Bounds { versions, bytes };
        let value = |(member, list): &(u8, std::collections::BTreeSet<u8>)| {
            let list: Vec<_> = list.iter().map(|number| format!("10.{number}.0.0/16")).collect();
            json!({ "map": { format!("PID{member}"): { "ipv4": list } } })
        };
        let mut all = vec![json!({})];
        let mut graph = Graph::new("application/x", encoding, bounds, text(&all[0])).expect("JSON");
        let mut start = 1;
        for change in &changes {
            let value = value(change);
            if graph.push(text(&value)).expect("JSON") {
                all.push(value);
            }
            prop_assert_eq!(graph.end(), all.len() as u64);
            prop_assert!(graph.start() >= start);
            start = graph.start();
            check(&graph, &all);
            let within = graph.end() - graph.start() < versions as u64 && graph.bytes() <= bytes;
            prop_assert!(within || graph.start() == graph.end());
        }
    }
}
