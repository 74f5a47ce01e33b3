//! The test networks are as *The P2P-Oracle Server* describes them (sections 5.2 and 5.4).

use std::collections::{BTreeMap, BTreeSet};
use topo::{
    Change, Options, RouterId, RouterIndex,
    generate::{self, Network, SEED_ROUTES},
};

fn routes(network: &Network) -> Vec<&Change> {
    network.changes.iter().filter(|change| matches!(change, Change::Route { .. })).collect()
}

/// Routers that can be reached without these.
fn reached(network: &Network, from: RouterId, without: &[RouterId]) -> BTreeSet<RouterId> {
    let mut links: BTreeMap<RouterId, Vec<RouterId>> = BTreeMap::new();
    for change in &network.changes {
        if let Change::Link { key, .. } = change {
            links.entry(key.from).or_default().push(key.to);
        }
    }
    let (mut reached, mut open) = (BTreeSet::from([from]), vec![from]);
    while let Some(at) = open.pop() {
        for to in &links[&at] {
            if !without.contains(to) && reached.insert(*to) {
                open.push(*to);
            }
        }
    }
    reached
}

#[test]
fn the_hubs_have_216_routers_three_exits_109_networks_and_67000_routes() {
    let network = generate::hubs();
    assert_eq!(network.clients.len(), 108);
    assert_eq!(network.exits.len(), 3);
    assert_eq!(routes(&network).len(), SEED_ROUTES);
    let view = network.builder(Options::default()).view();
    assert_eq!(view.graph.routers().len(), 216);
    let source = view.source("130.149.221.5".parse().unwrap()).unwrap();
    assert_eq!(view.graph.router(source).id, "10.1.0.1".parse().unwrap());
    assert_eq!(view.source("130.149.1.5".parse().unwrap()), Some(source));
    for router in 0..216 {
        let tree = view.tree(RouterIndex(router));
        assert!((0..216).all(|to| tree.to(RouterIndex(to)).is_some()), "{router}");
    }
}

#[test]
fn a_router_of_a_hub_reaches_a_backbone_router_without_any_one_other() {
    let network = generate::hubs();
    for hub in 1..=9 {
        let backbones: [RouterId; 2] =
            [1, 2].map(|number| format!("10.{hub}.2.{number}").parse().unwrap());
        let members: Vec<RouterId> = (1..=12)
            .map(|number| format!("10.{hub}.0.{number}"))
            .chain((1..=10).map(|number| format!("10.{hub}.1.{number}")))
            .map(|text| text.parse().unwrap())
            .collect();
        for &member in &members {
            for lost in members.iter().chain(&backbones).filter(|lost| **lost != member) {
                let reached = reached(&network, member, &[*lost]);
                assert!(backbones.iter().any(|backbone| reached.contains(backbone)));
            }
        }
    }
}

#[test]
fn primary_links_weigh_1_and_backups_2() {
    for change in &generate::hubs().changes {
        if let Change::Link { key, properties } = change {
            assert!(matches!(properties.weight, 1 | 2), "{key}");
        }
    }
    // From hub 9 to its parent: by the primary line, although the secondary one is as short.
    let view = generate::hubs().builder(Options::default()).view();
    let index = |text: &str| view.graph.index(text.parse().unwrap()).unwrap();
    let tree = view.tree(index("10.9.2.2"));
    let path = tree.to(index("10.4.2.2")).unwrap();
    assert_eq!((path.weight, path.internal_hops), (2, 1));
    let path = tree.to(index("10.4.2.1")).unwrap();
    assert_eq!((path.weight, path.internal_hops), (2, 2));
}

#[test]
fn the_small_network_has_the_routes_of_the_large_one() {
    let (ten, hubs) = (generate::ten(), generate::hubs());
    let prefixes = |network: &Network| -> Vec<_> {
        routes(network)
            .into_iter()
            .map(|change| match change {
                Change::Route { prefix, exit, path } => {
                    (*prefix, *path, network.exits.iter().position(|known| known == exit))
                }
                _ => unreachable!("only routes are kept"),
            })
            .collect()
    };
    assert_eq!(prefixes(&ten), prefixes(&hubs));
    let view = ten.builder(Options::default()).view();
    assert_eq!(view.graph.routers().len(), 10);
    let source = view.source("130.149.221.5".parse().unwrap()).unwrap();
    assert_eq!(view.graph.router(source).id, "10.0.0.5".parse().unwrap());
}

#[test]
fn what_is_random_is_the_same_each_time() {
    let exits: [RouterId; 2] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().unwrap());
    let all: Vec<_> = generate::random_routes(7, 1_000, &exits).collect();
    assert_eq!(all, generate::random_routes(7, 1_000, &exits).collect::<Vec<_>>());
    assert_ne!(all, generate::random_routes(8, 1_000, &exits).collect::<Vec<_>>());
    assert_eq!(generate::random_routes(7, 10, &[]).count(), 0);
}

#[test]
fn a_mesh_of_any_size_hangs_together() {
    for routers in [2, 3, 21, 22, 23, 300] {
        let prefixes = ["198.51.100.0/24".parse().unwrap(), "2001:db8::/32".parse().unwrap()];
        let network = generate::mesh(1, routers, 5, prefixes);
        let view = network.builder(Options::default()).view();
        let count = routers as u32;
        assert_eq!(view.graph.routers().len(), routers);
        let tree = view.tree(RouterIndex(0));
        assert!((0..count).all(|to| tree.to(RouterIndex(to)).is_some()), "{routers}");
        let group = view.group("198.51.100.1".parse().unwrap());
        assert_eq!(view.groups.get(group).exits.len(), 3.min(network.exits.len()), "{routers}");
    }
}
