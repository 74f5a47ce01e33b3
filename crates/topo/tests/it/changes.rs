//! Any sequence of changes: snapshots are what a plain reading of all reports gives.

use crate::naive::Naive;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use topo::{
    AsInterest, Builder, Change, ExitChoice, ExternalPath, Feed, GroupId, IpNet, LinkKey,
    LinkProperties, Mark, Options, RouterId, View,
};

#[derive(Clone, Debug)]
enum Step {
    Report(Feed, Change),
    Drop(Feed),
    Choose(Options),
    View,
}

const PLAIN: LinkProperties =
    LinkProperties { bandwidth: 1.0, latency: 1.0, weight: 1, congestion: 0.0, loss: 0.0 };

fn router() -> impl Strategy<Value = RouterId> {
    (1..=6_u8).prop_map(|last| format!("10.0.0.{last}").parse().unwrap())
}

fn prefix() -> impl Strategy<Value = IpNet> {
    // Few and nested, of both families.
    prop_oneof![
        (0..=3_u8, 0..=4_u32).prop_map(|(bits, len)| {
            IpNet::new([192, 0, 2, bits << 4].into(), 24 + len as u8).unwrap()
        }),
        (0..=3_u16, prop_oneof![Just(0_u8), Just(32), Just(48), Just(128)]).prop_map(
            |(bits, len)| {
                IpNet::new([0x2001, 0xdb8, bits, 0, 0, 0, 0, bits].into(), len).unwrap()
            }
        ),
        Just("0.0.0.0/0".parse().unwrap()),
    ]
}

fn key() -> impl Strategy<Value = LinkKey> {
    (router(), router(), 0..2_u32).prop_filter_map("to itself", |(from, to, id)| {
        (from != to).then_some(LinkKey { from, to, id })
    })
}

fn path() -> impl Strategy<Value = ExternalPath> {
    (0..4_u16, 1..4_u32)
        .prop_map(|(as_distance, as_number)| ExternalPath { as_distance, as_number })
}

fn change() -> impl Strategy<Value = Change> {
    let properties = (1..3_u8, 1..4_u8, 0..3_u32).prop_map(|(bandwidth, latency, weight)| {
        let (bandwidth, latency) = (f64::from(bandwidth), f64::from(latency));
        LinkProperties { bandwidth, latency, weight, congestion: 0.0, loss: 0.25 }
    });
    let value = || prop::option::of((0..5_u8).prop_map(|value| f64::from(value) / 4.0));
    prop_oneof![
        4 => (router(), prop::option::of(Just("name".to_owned())))
            .prop_map(|(id, name)| Change::Router { id, name }),
        1 => router().prop_map(Change::RemoveRouter),
        6 => (key(), properties).prop_map(|(key, properties)| Change::Link { key, properties }),
        1 => key().prop_map(Change::RemoveLink),
        1 => (key(), value(), value(), value()).prop_map(|(key, latency, loss, congestion)| {
            Change::Measured { from: key.from, to: key.to, latency, loss, congestion }
        }),
        4 => (prefix(), router()).prop_map(|(prefix, router)| Change::Internal { prefix, router }),
        2 => (prefix(), router())
            .prop_map(|(prefix, router)| Change::RemoveInternal { prefix, router }),
        8 => (prefix(), router(), path())
            .prop_map(|(prefix, exit, path)| Change::Route { prefix, exit, path }),
        4 => (prefix(), router()).prop_map(|(prefix, exit)| Change::Withdraw { prefix, exit }),
        1 => (key(), router()).prop_filter_map("to itself", |(via, to)| {
            (via.from != to).then_some(Change::NextHop { at: via.from, to, via })
        }),
        1 => (router(), router()).prop_map(|(at, to)| Change::RemoveNextHop { at, to }),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let ases = prop_oneof![
        Just(AsInterest::None),
        Just(AsInterest::All),
        Just(AsInterest::Only(BTreeSet::from([2]))),
    ];
    let marks = prop::collection::vec((prefix(), (0..3_u16).prop_map(Mark)), 0..5);
    let exits = prop_oneof![Just(ExitChoice::Nearest), Just(ExitChoice::ShortestAsPath)];
    (exits, ases, marks).prop_map(|(exits, ases, marks)| Options { exits, ases, marks })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let feed = || (0..4_u16).prop_map(Feed);
    let step = prop_oneof![
        40 => (feed(), change()).prop_map(|(feed, change)| Step::Report(feed, change)),
        1 => feed().prop_map(Step::Drop),
        1 => options().prop_map(Step::Choose),
        8 => Just(Step::View),
    ];
    prop::collection::vec(step, 1..120)
}

/// Holds a snapshot against the plain reading.
fn compare(view: &View, naive: &Naive, paths: bool) -> Result<(), TestCaseError> {
    let table = naive.table();
    prop_assert_eq!(crate::naive::table(view), table.clone());
    let ids: Vec<_> = view.graph.routers().iter().map(|router| router.id).collect();
    prop_assert_eq!(&ids, &naive.routers().into_iter().collect::<Vec<_>>());
    prop_assert_eq!(view.graph.links().len(), naive.links().len());
    // Lookups are a scan for the longest prefix.
    for address in ["192.0.2.5", "192.0.2.21", "192.0.2.200", "198.51.100.1", "2001:db8:1::1"] {
        let host = IpNet::from(address.parse::<std::net::IpAddr>().unwrap());
        let found = view.group(host.addr());
        prop_assert_eq!(found, view.group_of_prefix(host));
        prop_assert_eq!(found != GroupId::UNKNOWN, crate::naive::longest(&table, &host).is_some());
        if let Some((prefix, _)) = crate::naive::longest(&table, &host) {
            prop_assert_eq!(found, view.group_of_prefix(*prefix));
        }
    }
    // Sources are the routers of least AS distance, then of lowest id.
    let sources: BTreeSet<_> = table
        .values()
        .filter_map(|(exits, _, _)| exits.iter().min_by_key(|(id, path)| (path.as_distance, *id)))
        .map(|(id, _)| *id)
        .collect();
    let found: BTreeSet<_> = view.sources().iter().map(|i| view.graph.router(*i).id).collect();
    prop_assert_eq!(found, sources);
    let all = if paths { naive.paths() } else { BTreeMap::new() };
    for (index, from) in (0..).zip(ids.iter().filter(|_| paths)) {
        let tree = view.tree(topo::RouterIndex(index));
        for (other, to) in (0..).zip(&ids) {
            let to_there = topo::RouterIndex(other);
            let expected = all.get(&(*from, *to));
            prop_assert_eq!(tree.to(to_there), expected.map(|(_, path)| *path));
            let path: Vec<_> = tree
                .path(&view.graph, to_there)
                .iter()
                .map(|link| view.graph.router(link.to).id)
                .collect();
            let routers = expected.map_or_else(Vec::new, |(routers, _)| routers[1..].to_vec());
            prop_assert_eq!(path, routers);
        }
        for (prefix, group) in &table {
            let id = view.group_of_prefix(*prefix);
            prop_assert_eq!(tree.properties(view.groups.get(id)), naive.reach(&all, *from, group));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_snapshot_after_any_changes_is_that_of_all_that_still_holds(steps in steps()) {
        let (mut builder, mut naive) = (Builder::new(Options::default()), Naive::default());
        let mut last: Option<std::sync::Arc<View>> = None;
        let count = steps.len();
        for (number, step) in steps.into_iter().chain([Step::View]).enumerate() {
            match step {
                Step::Report(feed, change) => {
                    if builder.apply(feed, change.clone()).is_ok() {
                        naive.apply(feed, change);
                    } else {
                        // Only an operator is held against what is there.
                        prop_assert_eq!(feed, Feed::OPERATOR);
                    }
                }
                Step::Drop(feed) => {
                    builder.drop_feed(feed);
                    naive.drop_feed(feed);
                    prop_assert_eq!(builder.counts(feed), Default::default());
                }
                Step::Choose(options) => {
                    builder.set_options(options.clone());
                    naive.options = options;
                }
                Step::View => {
                    let view = builder.view();
                    compare(&view, &naive, number == count)?;
                    prop_assert_eq!(builder.view().generation, view.generation);
                    if let Some(last) = &last {
                        prop_assert!(view.generation >= last.generation);
                        if view.groups.same_ids(&last.groups)
                            && view.graph.routers() == last.graph.routers()
                        {
                            for (id, group) in last.groups.iter() {
                                prop_assert_eq!(view.groups.get(id), group);
                            }
                        }
                    }
                    last = Some(view);
                }
            }
        }
        // From nothing, in another order. What an operator names has to be there when he does.
        let mut fresh = Builder::new(naive.options.clone());
        for last in 1..=6 {
            let id = format!("10.0.0.{last}").parse().unwrap();
            fresh.apply(Feed(9), Change::Router { id, name: None }).unwrap();
        }
        for (_, change) in naive.changes() {
            if let Change::NextHop { via: key, .. } = change {
                fresh.apply(Feed(9), Change::Link { key, properties: PLAIN }).unwrap();
            }
        }
        for (feed, change) in naive.changes() {
            prop_assert_eq!(fresh.apply(feed, change.clone()), Ok(()), "{:?}", change);
        }
        fresh.view();
        fresh.drop_feed(Feed(9));
        prop_assert_eq!(crate::naive::table(&fresh.view()), crate::naive::table(&builder.view()));
        for feed in (0..4).map(Feed) {
            prop_assert_eq!(fresh.counts(feed), builder.counts(feed));
        }
        let all = |builder: &Builder| {
            let topology = builder.topology();
            let links: Vec<_> = topology.links().collect();
            (links, topology.internal().collect::<Vec<_>>(), topology.routes().collect::<Vec<_>>())
        };
        prop_assert_eq!(all(&fresh), all(&builder));
    }
}
