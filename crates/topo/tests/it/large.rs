//! What only shows in large networks: paths held against Floyd and Warshall, and the cases in which a
//! builder keeps up with many changes.

use std::sync::Arc;
use topo::{
    AsInterest, Builder, Change, ExternalPath, Feed, GroupId, IpNet, LinkKey, LinkProperties, Mark,
    Options, Refusal, RouterId, RouterIndex, View,
    generate::{self, Network},
};

fn router(text: &str) -> RouterId {
    text.parse().unwrap()
}

/// 10.0.0.0/24 and so on.
fn nth(number: u32) -> IpNet {
    IpNet::new(std::net::Ipv4Addr::from_bits(0x0a00_0000 + (number << 8)).into(), 24).unwrap()
}

fn route(prefix: IpNet, as_distance: u16, as_number: u32) -> Change {
    let path = ExternalPath { as_distance, as_number };
    Change::Route { prefix, exit: router("10.8.0.1"), path }
}

/// Sums of weights and hops between all routers.
fn floyd_warshall(view: &View) -> Vec<Vec<Option<(u64, u32)>>> {
    let count = view.graph.routers().len();
    let mut all = vec![vec![None; count]; count];
    for (index, row) in all.iter_mut().enumerate() {
        row[index] = Some((0, 0));
    }
    for link in view.graph.links() {
        let known = &mut all[link.from.index()][link.to.index()];
        let found = (u64::from(link.properties.weight), 1);
        *known = Some(known.map_or(found, |known: (u64, u32)| known.min(found)));
    }
    for middle in 0..count {
        let through = all[middle].clone();
        for row in &mut all {
            let Some(first) = row[middle] else { continue };
            for (to, second) in through.iter().enumerate() {
                let Some(second) = second else { continue };
                let found = (first.0 + second.0, first.1 + second.1);
                row[to] = Some(row[to].map_or(found, |known| known.min(found)));
            }
        }
    }
    all
}

fn hold_paths(network: &Network) {
    let view = network.builder(Options::default()).view();
    let count = view.graph.routers().len() as u32;
    let expected = floyd_warshall(&view);
    for from in (0..count).map(RouterIndex) {
        let tree = view.tree(from);
        for to in (0..count).map(RouterIndex) {
            let found = tree.to(to).map(|path| (path.weight, path.internal_hops));
            assert_eq!(found, expected[from.index()][to.index()], "{from:?} to {to:?}");
            // Every router on the path sends it on along the same path.
            if let Some(link) = tree.next_hop(&view.graph, to) {
                let rest = tree.path(&view.graph, to)[1..].to_vec();
                if from.0.is_multiple_of(7) {
                    assert_eq!(view.tree(link.to).path(&view.graph, to), rest);
                }
            }
        }
    }
}

#[test]
fn paths_in_the_seeds_network_are_the_shortest() {
    let mut network = generate::ten();
    network.changes.retain(|change| !matches!(change, Change::Route { .. }));
    hold_paths(&network);
    // One hub of it has all kinds of links, and ties in plenty.
    let mut network = generate::hubs();
    let far = |id: &RouterId| !matches!(id.0, std::net::IpAddr::V4(a) if a.octets()[1] < 4);
    network.changes.retain(|change| match change {
        Change::Router { id, .. } => !far(id),
        Change::Link { key, .. } => !far(&key.from) && !far(&key.to),
        _ => false,
    });
    hold_paths(&network);
}

#[test]
fn paths_in_a_mesh_are_the_shortest() {
    hold_paths(&generate::mesh(5, 90, 3, []));
}

/// The same from nothing, to be compared.
fn fresh(builder: &Builder, options: &Options) -> Arc<View> {
    let mut fresh = Builder::new(options.clone());
    let topology = builder.topology();
    for (id, _) in topology.routers() {
        fresh.apply(Feed(0), Change::Router { id, name: None }).unwrap();
    }
    for (prefix, exit, path) in topology.routes() {
        fresh.apply(Feed(0), Change::Route { prefix, exit, path }).unwrap();
    }
    fresh.view()
}

fn assert_same(view: &View, other: &View) {
    assert_eq!(view.table.len(), other.table.len());
    for ((prefix, group), (also, other_group)) in view.table.iter().zip(other.table.iter()) {
        assert_eq!(prefix, also);
        let (group, other_group) = (GroupId(group), GroupId(other_group));
        assert_eq!(view.groups.get(group), other.groups.get(other_group), "{prefix}");
    }
}

fn builder(options: &Options) -> Builder {
    let mut builder = Builder::new(options.clone());
    let id = router("10.8.0.1");
    builder.apply(Feed(0), Change::Router { id, name: None }).unwrap();
    builder
}

#[test]
fn groups_keep_their_numbers_until_most_are_without_prefixes() {
    let options = Options { ases: AsInterest::All, ..Options::default() };
    let mut builder = builder(&options);
    for number in 0..3_000 {
        builder.apply(Feed(0), route(nth(number), 1, number)).unwrap();
    }
    let first = builder.view();
    assert_eq!(first.groups.len(), 3_001);
    // Fewer groups without prefixes than with them: nothing is renumbered.
    for number in 0..1_400 {
        let change = Change::Withdraw { prefix: nth(number), exit: router("10.8.0.1") };
        builder.apply(Feed(0), change).unwrap();
    }
    let second = builder.view();
    assert!(second.groups.same_ids(&first.groups));
    assert_eq!(second.group_of_prefix(nth(0)), GroupId::UNKNOWN);
    // One that comes back is what it was.
    builder.apply(Feed(0), route(nth(7), 1, 7)).unwrap();
    assert_eq!(builder.view().group_of_prefix(nth(7)), first.group_of_prefix(nth(7)));
    for number in 1_400..2_900 {
        let change = Change::Withdraw { prefix: nth(number), exit: router("10.8.0.1") };
        builder.apply(Feed(0), change).unwrap();
    }
    builder.view();
    builder.apply(Feed(0), route(nth(8), 1, 8)).unwrap();
    let last = builder.view();
    assert!(!last.groups.same_ids(&first.groups));
    assert_eq!(last.groups.len(), 103);
    assert_same(&last, &fresh(&builder, &options));
}

#[test]
fn very_many_changes_at_once_are_all_seen() {
    let inside = IpNet::new("10.0.1.128".parse().unwrap(), 25).unwrap();
    let options = Options { marks: vec![(inside, Mark(1))], ..Options::default() };
    let mut builder = builder(&options);
    let first = builder.view();
    assert_eq!(first.table.len(), 0);
    for number in 0..70_000 {
        builder.apply(Feed(0), route(nth(number % 66_000), (number % 9) as u16, 1)).unwrap();
    }
    let view = builder.view();
    assert_eq!(view.table.len(), 66_001);
    assert_eq!(view.groups.get(view.group("10.0.1.200".parse().unwrap())).mark, Mark(1));
    assert_same(&view, &fresh(&builder, &options));
    // One more is one more, and what did not change is shared.
    builder.apply(Feed(0), route(nth(3), 77, 1)).unwrap();
    let next = builder.view();
    assert!(Arc::ptr_eq(&view.graph, &next.graph));
    assert_eq!(next.groups.get(next.group_of_prefix(nth(3))).exits[0].path.as_distance, 77);
    assert_same(&next, &fresh(&builder, &options));
}

#[test]
fn a_link_leaves_groups_and_table_as_they_are() {
    let mut builder = generate::ten().builder(Options::default());
    let before = builder.view();
    let (from, to) = (router("10.0.0.1"), router("10.0.0.2"));
    let measured = |latency, loss| Change::Measured { from, to, latency, loss, congestion: None };
    builder.apply(Feed(7), measured(Some(42.0), Some(0.5))).unwrap();
    let after = builder.view();
    assert!(Arc::ptr_eq(&before.groups, &after.groups));
    assert!(Arc::ptr_eq(&before.table, &after.table));
    let latency = |view: &View| {
        let from = view.graph.index(from).unwrap();
        let to = view.graph.index(to).unwrap();
        view.tree(from).to(to).unwrap().latency
    };
    assert_eq!((latency(&before), latency(&after)), (1.0, 42.0));
    // The link's own feed reports it again: the measurement stays, and goes with its own feed only.
    let (key, mut properties) =
        builder.topology().links().find(|(key, _)| (key.from, key.to) == (from, to)).unwrap();
    properties.latency = 2.0;
    builder.apply(Feed::CONFIGURATION, Change::Link { key, properties }).unwrap();
    assert_eq!(latency(&builder.view()), 42.0);
    builder.apply(Feed(7), measured(None, None)).unwrap();
    assert_eq!(latency(&builder.view()), 2.0);
    builder.apply(Feed(7), measured(Some(9.0), None)).unwrap();
    builder.drop_feed(Feed(7));
    assert_eq!(latency(&builder.view()), 2.0);
}

#[test]
fn an_operator_sees_what_is_wrong() {
    let mut builder = builder(&Options::default());
    let there = router("10.8.0.1");
    let gone = router("10.8.0.2");
    let operator = |builder: &mut Builder, change| builder.apply(Feed::OPERATOR, change);
    let prefix = nth(1);
    let refused = operator(&mut builder, Change::Internal { prefix, router: gone });
    assert_eq!(refused, Err(Refusal::UnknownRouter(gone)));
    let withdraw = Change::Withdraw { prefix, exit: there };
    let refused = operator(&mut builder, withdraw.clone()).unwrap_err().to_string();
    assert_eq!(refused, "there is no route to 10.0.1.0/24 at 10.8.0.1 to remove");
    builder.apply(Feed(5), route(prefix, 1, 1)).unwrap();
    let refused = operator(&mut builder, withdraw.clone()).unwrap_err().to_string();
    assert_eq!(
        refused,
        "route to 10.0.1.0/24 at 10.8.0.1 comes from a live feed and cannot be removed by hand"
    );
    // What the configuration reports can be removed by hand.
    builder.drop_feed(Feed(5));
    builder.apply(Feed::CONFIGURATION, route(prefix, 1, 1)).unwrap();
    assert_eq!(operator(&mut builder, withdraw), Ok(()));
    assert_eq!(builder.counts(Feed::CONFIGURATION).routes, 0);
    assert_eq!(builder.view().table.len(), 0);
    let key = LinkKey { from: there, to: there, id: 0 };
    let plain =
        LinkProperties { bandwidth: 1.0, latency: 1.0, weight: 1, congestion: 0.0, loss: 0.0 };
    let link = |key, properties| Change::Link { key, properties };
    assert_eq!(builder.apply(Feed(2), link(key, plain)), Err(Refusal::ToItself(key)));
    let key = LinkKey { to: gone, ..key };
    for bad in [
        LinkProperties { bandwidth: f64::NAN, ..plain },
        LinkProperties { latency: -1.0, ..plain },
        LinkProperties { congestion: f64::INFINITY, ..plain },
        LinkProperties { loss: 1.1, ..plain },
    ] {
        let refused = builder.apply(Feed(2), link(key, bad));
        assert!(matches!(refused, Err(Refusal::Range { .. })), "{refused:?}");
    }
    // A feed may name what is not there yet; it counts when the router is.
    builder.apply(Feed(2), Change::Internal { prefix, router: gone }).unwrap();
    assert_eq!(builder.view().table.len(), 0);
    assert_eq!(builder.topology().undeclared().into_iter().collect::<Vec<_>>(), [gone]);
    builder.apply(Feed(3), Change::Router { id: gone, name: None }).unwrap();
    assert_eq!(builder.view().table.len(), 1);
}
