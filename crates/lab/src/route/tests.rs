//! Paths beside those of naive references, on random networks.

use super::*;
use crate::{Builder, LinkSettings, Relation};
use topo::generate::Random;

/// A random network of few nodes: several links between two of them, some without a way back.
fn random_network(random: &mut Random) -> Network {
    let nodes = 2 + random.below(10) as u32;
    let mut builder = Builder::new();
    builder.unnamed(nodes).expect("nodes");
    for _ in 0..random.below(3 * u64::from(nodes)) {
        let [a, b] = [(); 2].map(|()| NodeId(random.below(u64::from(nodes)) as u32));
        if a == b {
            continue;
        }
        let settings = LinkSettings::default();
        let [forth, back] = [(); 2].map(|()| crate::network::Kind {
            settings,
            weight: 1 + random.below(3) as u32,
            relation: Relation::None,
        });
        let forth = builder.kind(&forth).expect("a kind");
        let back = builder.kind(&back).expect("a kind");
        match random.below(4) {
            0 => drop(builder.one_way(a, b, forth).expect("a link")),
            1 => drop(builder.join(a, b, forth, back).expect("a link")),
            _ => drop(builder.join(a, b, forth, forth).expect("a link")),
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
    for round in 0..3_000 {
        let network = random_network(&mut random);
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
