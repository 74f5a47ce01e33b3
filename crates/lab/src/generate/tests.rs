//! Generated internets look like one.

use super::*;
use crate::network::Relation;
use crate::{LinkId, NodeId};

fn make(what: &Generate) -> Network {
    what.make(&mut |_| ()).expect("a network")
}

#[test]
fn it_hangs_together_and_few_have_many_links() {
    for nodes in [2, 3, 20, 1_000, 20_000] {
        let network = make(&Generate { nodes, ..Generate::default() });
        assert_eq!(network.nodes(), nodes);
        let mut reached = vec![false; nodes as usize];
        let mut todo = vec![NodeId(0)];
        while let Some(node) = todo.pop() {
            if !std::mem::replace(&mut reached[node.0 as usize], true) {
                todo.extend(network.links_of(node).map(|link| network.to(link)));
            }
        }
        assert!(reached.iter().all(|&reached| reached), "{nodes} nodes");
        let both = |link| network.reverse(link).and_then(|back| network.reverse(back));
        assert!((0..network.links()).map(LinkId).all(|link| both(link) == Some(link)));
    }
    let network = make(&Generate { nodes: 20_000, ..Generate::default() });
    let mean = f64::from(network.links()) / 20_000.0;
    assert!((3.0..6.0).contains(&mean), "{mean} links a node");
    let mut degrees: Vec<_> =
        (0..20_000).map(|node| network.links_of(NodeId(node)).len()).collect();
    degrees.sort_unstable();
    let few = degrees.iter().filter(|&&degree| degree <= 3).count();
    assert!(few > 10_000, "most are small: {few}");
    assert!(degrees[19_999] > 100, "some are large: {}", degrees[19_999]);
    assert!(network.kinds().len() < 1_000, "{} kinds", network.kinds().len());
}

#[test]
fn every_as_is_bought_from_or_buys() {
    let what = Generate { nodes: 3_000, ..Generate::default() };
    let network = make(&what);
    assert!(network.has_relations());
    let world = World::new(&what);
    let mut sold = 0;
    for number in 0..world.ases() {
        let first = world.firsts()[number as usize];
        let end = world.firsts().get(number as usize + 1).copied().unwrap_or(3_000);
        let links = (first..end).flat_map(|node| network.links_of(NodeId(node)));
        let relations: Vec<_> = links.map(|link| network.relation(link)).collect();
        let buys = relations.contains(&Relation::Provider);
        let sells = relations.contains(&Relation::Customer);
        assert_eq!(buys, number >= 12, "as{}", number + 1);
        assert!(!sells || number < world.ases() / 5, "as{} is a stub", number + 1);
        sold += u32::from(sells);
    }
    assert!(sold > world.ases() / 20, "{sold} of {} sell", world.ases());
}

#[test]
fn addresses_lead_to_their_owners_and_names_too() {
    let what = Generate { nodes: 2_000, ..Generate::default() };
    let network = make(&what);
    for node in (0..2_000).map(NodeId) {
        let addresses = (network.address4(node), network.address6(node));
        let (Some(v4), Some(v6)) = addresses else { panic!("{node:?} has {addresses:?}") };
        let owner = Some(crate::Owner::Node(node));
        assert_eq!((network.owner(v4.into()), network.owner(v6.into())), (owner, owner));
        assert_eq!(network.find(&network.name(node)), Some(node));
    }
    for link in (0..network.links()).map(LinkId) {
        let addresses = (network.interface4(link), network.interface6(link));
        let (Some(v4), Some(v6)) = addresses else { panic!("{link:?} has {addresses:?}") };
        let owner = Some(crate::Owner::Node(network.from(link)));
        assert_eq!((network.owner(v4.into()), network.owner(v6.into())), (owner, owner));
    }
    let prefixes: Vec<_> = network.prefixes().collect();
    assert!(prefixes.len() > 3 * World::new(&what).ases() as usize, "{} prefixes", prefixes.len());
    for (net, owner) in prefixes {
        assert_eq!(network.owner(net.addr()), Some(owner));
    }
    assert_eq!((network.name(NodeId(0)), network.find("as1")), ("as1".into(), Some(NodeId(0))));
}

#[test]
fn the_same_seed_makes_the_same_bytes_and_another_one_others() {
    let what = Generate { nodes: 500, ..Generate::default() };
    let other = Generate { seed: 2, ..what.clone() };
    assert_eq!(make(&what).to_bytes(), make(&what).to_bytes());
    assert_ne!(make(&what).to_bytes(), make(&other).to_bytes());
    // Links and delays are what they were when this was written, on every machine.
    let network = make(&what);
    let links = (0..network.links()).map(LinkId);
    let text: String = links
        .map(|link| format!("{} {},", network.to(link).0, network.settings(link).delay.0))
        .collect();
    assert_eq!((network.links(), crc32fast::hash(text.as_bytes())), (1_838, 3_823_378_962));
}

#[test]
fn rates_are_by_tier_only_if_wanted() {
    let what = Generate { nodes: 500, rates: true, ..Generate::default() };
    let network = make(&what);
    let rates = (0..network.links()).map(|link| network.settings(LinkId(link)).rate);
    let mut rates: Vec<_> = rates.collect();
    rates.sort_unstable();
    rates.dedup();
    let expected = [10_000_000_000_u64, 100_000_000_000, 400_000_000_000];
    assert_eq!(rates, expected.map(Some));
    let network = make(&Generate { rates: false, ..what });
    assert!((0..network.links()).all(|link| network.settings(LinkId(link)).only_delays()));
}

#[test]
fn numbers_out_of_range_are_refused() {
    let refused = |what: Generate| match what.make(&mut |_| ()) {
        Err(GenerateError::Range { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    let good = Generate::default;
    assert_eq!(refused(Generate { nodes: 1, ..good() }), "nodes");
    assert_eq!(refused(Generate { nodes: 10, tier1: Some(6), ..good() }), "tier1");
    assert_eq!(refused(Generate { tier1: Some(0), ..good() }), "tier1");
    assert_eq!(refused(Generate { transit: f64::NAN, ..good() }), "transit");
    assert_eq!(refused(Generate { routers: 0.5, ..good() }), "routers");
    assert_eq!(refused(Generate { stub_routers: 1e9, ..good() }), "stub-routers");
    assert_eq!(refused(Generate { providers: 0.0, ..good() }), "providers");
    assert_eq!(refused(Generate { peers: -1.0, ..good() }), "peers");
    assert_eq!(refused(Generate { prefixes: f64::INFINITY, ..good() }), "prefixes");
    assert_eq!((block_length(10), block_length(400_000_000)), (Ok(12), Ok(30)));
    let error = block_length(600_000_000).err().map(|error| error.to_string());
    assert!(error.is_some_and(|text| text.ends_with("600000000 prefixes: make fewer prefixes")));
}

#[test]
fn progress_is_reported() {
    let mut steps = Vec::new();
    let what = Generate { nodes: 40_000, ..Generate::default() };
    what.make(&mut |progress| steps.push(progress)).expect("a network");
    assert!(steps.iter().all(|progress| progress.done <= progress.total));
    assert!(steps.iter().any(|progress| progress.step == "links are made" && progress.done > 0));
}
