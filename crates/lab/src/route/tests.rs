//! Paths beside those of naive references, on random networks.

use super::*;
use crate::network::Kind;
use crate::{Builder, LinkSettings, Relation};
use splitmix::Random;

/// A random network of few nodes: several links between two of them, some without a reverse direction. With
/// relations nodes may even be providers of each other.
fn random_network(random: &mut Random, relations: bool) -> Network {
    let nodes = 2 + random.below(10) as u32;
    let mut builder = Builder::new();
    builder.unnamed(nodes).expect("nodes");
    for _ in 0..random.below(3 * u64::from(nodes)) {
        let [a, b] = [(); 2].map(|()| NodeId(random.below(u64::from(nodes)) as u32));
        if a == b {
            continue;
        }
        let settings = LinkSettings::default();
        let relation = Relation::ALL[if relations { random.below(4) as usize } else { 0 }];
        let [forward, reverse] = [relation, relation.mirrored()].map(|relation| Kind {
            settings,
            weight: 1 + random.below(3) as u32,
            relation,
        });
        let forward = builder.kind(&forward).expect("a kind");
        let reverse = builder.kind(&reverse).expect("a kind");
        match random.below(4) {
            0 => drop(builder.one_way(a, b, forward).expect("a link")),
            1 => drop(builder.join(a, b, forward, reverse).expect("a link")),
            _ => drop(builder.link(a, b, &settings, 2, relation).expect("a link")),
        }
    }
    builder.finish().expect("a network")
}

/// Distances from all nodes to one, by trying every link until nothing changes.
fn distances(network: &Network, to: NodeId, usable: impl Fn(LinkId) -> bool) -> Vec<Option<u64>> {
    let mut distances = vec![None; network.nodes() as usize];
    distances[to.0 as usize] = Some(0);
    loop {
        let before = distances.clone();
        for link in (0..network.links()).map(LinkId).filter(|&link| usable(link)) {
            let far: Option<u64> = distances[network.to(link).0 as usize];
            let near = &mut distances[network.from(link).0 as usize];
            if let Some(far) = far {
                let sum = far + u64::from(network.weight(link));
                *near = Some(near.map_or(sum, |near| near.min(sum)));
            }
        }
        if distances == before {
            return distances;
        }
    }
}

#[test]
fn paths_are_shortest_and_flows_use_all_of_them() {
    let address = "192.0.2.1".parse().expect("an address");
    let mut random = Random::new(1);
    for round in 0..2_000 {
        let network = random_network(&mut random, false);
        let policy = RoutePolicy { ecmp: round % 2 == 0, ..RoutePolicy::default() };
        let mut router = Router::new(policy, 10_000);
        let mut down = FxHashSet::default();
        for _ in 0..random.below(4) {
            let link = LinkId(random.below(u64::from(network.links().max(1))) as u32);
            if down.insert(link) {
                router.set_usable(link, false);
            }
        }
        let usable = |link: LinkId| !down.contains(&link);
        let mut path = Vec::new();
        for to in (0..network.nodes()).map(NodeId) {
            let distances = distances(&network, to, usable);
            for from in (0..network.nodes()).map(NodeId) {
                let flow = random.bits() as u32;
                let found = router.path(&network, from, to, address, flow, &mut path);
                let Some(distance) = distances[from.0 as usize] else {
                    assert_eq!(found, Err(NoPath { at: from, forks: false }));
                    continue;
                };
                let (mut at, mut forks, mut sum) = (from, false, 0);
                for &link in &path {
                    assert_eq!(network.from(link), at);
                    // All links on which the distance falls by their weight.
                    let best: Vec<_> = network
                        .links_of(at)
                        .filter(|&link| usable(link))
                        .filter(|&link| {
                            let rest = distances[network.to(link).0 as usize];
                            let rest = rest.map(|rest| rest + u64::from(network.weight(link)));
                            rest == distances[at.0 as usize]
                        })
                        .collect();
                    let hops = router.cache.get(at, to).expect("it has just been asked for");
                    assert_eq!(hops.links(), best, "round {round}, {at:?} to {to:?}");
                    if !policy.ecmp {
                        assert_eq!(link, best[0]);
                    }
                    forks |= policy.ecmp && best.len() > 1;
                    sum += u64::from(network.weight(link));
                    at = network.to(link);
                }
                assert_eq!((at, sum, found), (to, distance, Ok(forks)));
            }
        }
    }
}

/// What a node hears over a link.
fn heard(network: &Network, link: LinkId, best: &[Option<valley::Rank>]) -> Option<valley::Rank> {
    let far = best[network.to(link).0 as usize];
    far.and_then(|far| far.over(network.relation(link), network.weight(link)))
}

/// The best routes of all nodes to one, class after class, trying every link until nothing changes.
fn exhaustive(
    network: &Network,
    to: NodeId,
    usable: impl Fn(LinkId) -> bool,
) -> Vec<Option<valley::Rank>> {
    let mut best = vec![None; network.nodes() as usize];
    best[to.0 as usize] = Some(valley::Rank::OWN);
    let links: Vec<_> = (0..network.links()).map(LinkId).filter(|&link| usable(link)).collect();
    for class in [valley::Class::Customer, valley::Class::Peer, valley::Class::Provider] {
        let before = best.clone();
        loop {
            let last = best.clone();
            for &link in &links {
                let near = network.from(link).0 as usize;
                let heard = heard(network, link, &best).filter(|heard| heard.class == class);
                let known = best[near].is_none_or(|known| heard.is_some_and(|heard| heard < known));
                if known && (before[near].is_none() || class == valley::Class::Customer) {
                    best[near] = heard.or(best[near]);
                }
            }
            if last == best {
                break;
            }
        }
    }
    // Nobody hears of anything better than what it has, and everybody hears what it has.
    for node in (0..network.nodes()).map(NodeId).filter(|&node| node != to) {
        let links = links.iter().filter(|&&link| network.from(link) == node);
        let all = links.filter_map(|&link| heard(network, link, &best));
        assert_eq!(best[node.0 as usize], all.min(), "{node:?} to {to:?}");
    }
    best
}

#[test]
fn ases_choose_customers_before_peers_before_providers() {
    let address = "192.0.2.1".parse().expect("an address");
    let mut random = Random::new(2);
    let (mut reached, mut cut_off) = (0, 0);
    for round in 0..2_000 {
        let network = random_network(&mut random, true);
        let policy = RoutePolicy { mode: RouteMode::ValleyFree, ecmp: round % 2 == 0 };
        let mut router = Router::new(policy, 10_000);
        let mut down = FxHashSet::default();
        for _ in 0..random.below(3) {
            let link = LinkId(random.below(u64::from(network.links().max(1))) as u32);
            down.insert(link);
            router.set_usable(link, false);
        }
        let usable = |link: LinkId| !down.contains(&link);
        let mut path = Vec::new();
        for to in (0..network.nodes()).map(NodeId) {
            let best = exhaustive(&network, to, usable);
            for from in (0..network.nodes()).map(NodeId) {
                let flow = random.bits() as u32;
                let found = router.path(&network, from, to, address, flow, &mut path);
                if best[from.0 as usize].is_none() {
                    assert_eq!(found, Err(NoPath { at: from, forks: false }));
                    cut_off += 1;
                    continue;
                }
                reached += 1;
                let (mut at, mut forks) = (from, false);
                for &link in &path {
                    let good: Vec<_> = network
                        .links_of(at)
                        .filter(|&link| usable(link))
                        .filter(|&link| {
                            let far = best[network.to(link).0 as usize];
                            let (relation, weight) = (network.relation(link), network.weight(link));
                            let over = far.and_then(|far| far.over(relation, weight));
                            over.is_some() && over == best[at.0 as usize]
                        })
                        .collect();
                    let hops = router.cache.get(at, to).expect("it has just been asked for");
                    assert_eq!(hops.links(), good, "round {round}, {at:?} to {to:?}");
                    assert!(good.contains(&link) && (policy.ecmp || good[0] == link));
                    forks |= policy.ecmp && good.len() > 1;
                    at = network.to(link);
                }
                assert_eq!((at, found), (to, Ok(forks)));
                valley_free(&network, &path);
            }
        }
    }
    assert!(reached > 10_000 && cut_off > 10_000, "{reached} reached, {cut_off} not");
}

/// Up, then at most once over, then down.
fn valley_free(network: &Network, path: &[LinkId]) {
    let mut down = false;
    for relation in path.iter().map(|&link| network.relation(link)) {
        let fine = match relation {
            Relation::None => true,
            Relation::Provider => !down,
            Relation::Peer => !std::mem::replace(&mut down, true),
            Relation::Customer => {
                down = true;
                true
            }
        };
        assert!(fine, "{path:?} has a valley");
    }
}

#[test]
fn in_an_internet_everybody_reaches_everybody() {
    let what = crate::generate::Generate { nodes: 3_000, ..Default::default() };
    let network = what.make(&mut |_| ()).expect("a network");
    let policy = RoutePolicy { mode: RouteMode::ValleyFree, ecmp: true };
    let mut router = Router::new(policy, 1 << 20);
    let mut random = Random::new(6);
    let mut path = Vec::new();
    for _ in 0..1_000 {
        let [from, to] = [(); 2].map(|()| NodeId(random.below(3_000) as u32));
        let address = network.address4(to).expect("all have addresses").into();
        let flow = random.bits() as u32;
        let found = router.path(&network, from, to, address, flow, &mut path);
        assert!(found.is_ok(), "{from:?} does not reach {to:?}");
        valley_free(&network, &path);
        assert_eq!(path.last().map(|&link| network.to(link)), (from != to).then_some(to));
    }
}

/// A line a - b - c and a detour a - d - c of more weight.
fn detour() -> (Network, [NodeId; 4], Vec<LinkId>) {
    let mut builder = Builder::new();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| builder.node(name).expect("a node"));
    let settings = LinkSettings::default();
    let mut drafts = Vec::new();
    for (from, to, weight) in [(a, b, 1), (b, c, 1), (a, d, 2), (d, c, 2)] {
        let [forward, _] =
            builder.link(from, to, &settings, weight, Relation::None).expect("a link");
        drafts.push(forward);
    }
    let net = |text: &str| text.parse().expect("a prefix");
    builder.entry(a, net("10.0.0.0/8"), drafts[2]).expect("a link of a");
    builder.entry(a, net("10.1.0.0/16"), drafts[0]).expect("a link of a");
    builder.entry(b, net("10.2.0.0/16"), drafts[1]).expect("a link of b");
    let (network, links) = builder.finish_with(&drafts).expect("a network");
    (network, [a, b, c, d], links)
}

#[test]
fn entries_come_first_and_links_that_are_down_are_avoided() {
    let (network, [a, _, c, _], links) = detour();
    let [ab, bc, ad, dc] = links[..] else { panic!("four links") };
    let mut router = Router::new(RoutePolicy::default(), 10_000);
    let mut path = Vec::new();
    let mut to_c = |router: &mut Router, address: &str| {
        let address = address.parse().expect("an address");
        router.path(&network, a, c, address, 0, &mut path).map(|_| path.clone())
    };
    assert_eq!(to_c(&mut router, "192.0.2.1"), Ok(vec![ab, bc]));
    assert_eq!(to_c(&mut router, "10.9.0.1"), Ok(vec![ad, dc]));
    assert_eq!(to_c(&mut router, "10.1.0.1"), Ok(vec![ab, bc]));
    router.set_usable(ab, false);
    assert_eq!(to_c(&mut router, "192.0.2.1"), Ok(vec![ad, dc]));
    assert_eq!(to_c(&mut router, "10.1.0.1"), Ok(vec![ad, dc]), "the shorter entry is left");
    router.set_usable(ad, false);
    assert_eq!(to_c(&mut router, "10.1.0.1"), Err(NoPath { at: a, forks: false }));
    router.set_usable(ab, true);
    assert_eq!(to_c(&mut router, "10.9.0.1"), Ok(vec![ab, bc]), "no entry is left");
}

#[test]
fn nodes_with_entries_only_know_no_other_way() {
    let (network, [a, b, c, d], links) = detour();
    let policy = RoutePolicy { mode: RouteMode::EntriesOnly, ecmp: false };
    let mut router = Router::new(policy, 10_000);
    let mut path = Vec::new();
    let mut to_c = |address: &str| {
        let address = address.parse().expect("an address");
        let found = router.path(&network, a, c, address, 0, &mut path);
        (found, path.clone())
    };
    let stuck = |at| Err(NoPath { at, forks: false });
    assert_eq!(to_c("10.2.0.1"), (stuck(d), vec![links[2]]));
    assert_eq!(to_c("10.1.0.1"), (stuck(b), vec![links[0]]));
    assert_eq!(to_c("192.0.2.1"), (stuck(a), vec![]));
}

#[test]
fn a_path_in_a_circle_ends() {
    let mut builder = Builder::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| builder.node(name).expect("a node"));
    let settings = LinkSettings::default();
    let [ab, ba] = builder.link(a, b, &settings, 1, Relation::None).expect("a link");
    builder.link(b, c, &settings, 1, Relation::None).expect("a link");
    let all = "0.0.0.0/0".parse().expect("a prefix");
    builder.entry(a, all, ab).expect("a link of a");
    builder.entry(b, all, ba).expect("a link of b");
    let network = builder.finish().expect("a network");
    let mut router = Router::new(RoutePolicy::default(), 10_000);
    let mut path = Vec::new();
    let address = "192.0.2.1".parse().expect("an address");
    // An odd number of links leads from a to b.
    let far = Err(NoPath { at: b, forks: false });
    assert_eq!(router.path(&network, a, c, address, 0, &mut path), far);
    assert_eq!(path.len(), LONGEST_PATH);
}
