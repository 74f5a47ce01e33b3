//! Random networks beside what was added, kept in plain lists.

use super::*;
use splitmix::Random;
use topo::lpm::Table;

/// A link as it was added.
#[derive(Debug, PartialEq)]
struct Added {
    draft: Draft,
    from: NodeId,
    to: NodeId,
    kind: Kind,
    reverse: Option<Draft>,
}

/// A random network, and its links as they were added.
fn added(random: &mut Random) -> (Builder, Vec<Added>) {
    let nodes = 2 + random.below(6) as u32;
    let mut builder = Builder::new();
    builder.unnamed(nodes).expect("nodes");
    let mut links = Vec::new();
    for _ in 0..random.below(20) {
        let [a, b] = [(); 2].map(|()| NodeId(random.below(nodes.into()) as u32));
        let relation = Relation::ALL[random.below(4) as usize];
        let [forward, reverse] = [relation, relation.mirrored()].map(|relation| {
            let settings = settings(random.below(3));
            Kind { settings, weight: 1 + random.below(2) as u32, relation }
        });
        if a == b {
            continue;
        }
        let [f, k] = [forward, reverse].map(|kind| builder.kind(&kind).expect("a kind"));
        if random.below(3) == 0 {
            let draft = builder.one_way(a, b, f).expect("a link");
            links.push(Added { draft, from: a, to: b, kind: forward, reverse: None });
        } else {
            let [one, two] = builder.join(a, b, f, k).expect("a link");
            links.push(Added { draft: one, from: a, to: b, kind: forward, reverse: Some(two) });
            links.push(Added { draft: two, from: b, to: a, kind: reverse, reverse: Some(one) });
        }
    }
    (builder, links)
}

#[test]
fn links_are_those_that_were_added() {
    let mut random = Random::new(3);
    for round in 0..2_000 {
        let (builder, added) = added(&mut random);
        let drafts: Vec<_> = added.iter().map(|added| added.draft).collect();
        let (network, links) = builder.finish_with(&drafts).expect("a network");
        let number = |draft| links[drafts.iter().position(|&other| other == draft).expect("it")];
        let mut seen = vec![false; network.links() as usize];
        for Added { draft, from, to, kind, reverse } in &added {
            let link = number(*draft);
            assert!(!std::mem::replace(&mut seen[link.0 as usize], true), "round {round}");
            let ends = (network.from(link), network.to(link), network.kind(link));
            assert_eq!(ends, (*from, *to, kind));
            assert!(network.links_of(*from).any(|other| other == link));
            match reverse {
                Some(reverse) => assert_eq!(network.reverse(link), Some(number(*reverse))),
                // Two of one direction each may have made a pair.
                None => {
                    if let Some(reverse) = network.reverse(link) {
                        assert_eq!(network.reverse(reverse), Some(link));
                        assert_eq!(network.to(reverse), *from);
                    }
                }
            }
            if let Some(mirror) = network.mirror(network.kind_of(link)) {
                let reverse = network.reverse(link).expect("kinds with mirrors have links back");
                assert_eq!(network.kind_of(reverse), mirror);
            }
        }
        assert!(seen.iter().all(|&seen| seen));
        for node in (0..network.nodes()).map(NodeId) {
            let alone: Vec<_> = (0..network.links())
                .map(LinkId)
                .filter(|&link| network.to(link) == node && network.reverse(link).is_none())
                .collect();
            assert_eq!(network.one_way_to(node).collect::<Vec<_>>(), alone);
            let mut order: Vec<_> = network
                .links_of(node)
                .map(|link| (network.relation(link), network.to(link)))
                .collect();
            let before = order.clone();
            order.sort();
            assert_eq!(order, before);
        }
    }
}

/// A random prefix among few, so that many nest.
fn prefix(random: &mut Random) -> IpNet {
    if random.below(2) == 0 {
        let bits = 0x0a00_0000 | random.bits() as u32 & 0x00c0_0303;
        let length = [0, 8, 9, 10, 22, 23, 24, 31, 32][random.below(9) as usize];
        IpNet::from(Ipv4Net::new_assert(Ipv4Addr::from_bits(bits), length)).trunc()
    } else {
        let bits = 0x2001_0db8 << 96 | u128::from(random.bits()) & 0x3 << 64 | 3;
        let length = [0, 32, 48, 62, 63, 64, 127, 128][random.below(8) as usize];
        IpNet::from(Ipv6Net::new_assert(Ipv6Addr::from_bits(bits), length)).trunc()
    }
}

#[test]
fn owners_and_entries_are_the_longest_match() {
    let mut random = Random::new(4);
    for _ in 0..500 {
        let nodes = 2 + random.below(4) as u32;
        let mut builder = Builder::new();
        builder.unnamed(nodes).expect("nodes");
        let hub = NodeId(0);
        let links: Vec<_> = (1..nodes)
            .map(|node| builder.link(hub, NodeId(node), &settings(1), 1, Relation::None))
            .map(|link| link.expect("a link")[0])
            .collect();
        let (mut prefixes, mut entries) = (Vec::new(), Vec::new());
        for _ in 0..random.below(60) {
            let prefix = prefix(&mut random);
            if !prefixes.iter().any(|&(other, _)| other == prefix) {
                let node = NodeId(random.below(nodes.into()) as u32);
                builder.prefix(node, prefix).expect("a node");
                prefixes.push((prefix, node));
            }
            let prefix = self::prefix(&mut random);
            if !entries.iter().any(|&(other, _)| other == prefix) {
                let link = *random.pick(&links).expect("a link");
                builder.entry(hub, prefix, link).expect("a link of the hub");
                entries.push((prefix, link));
            }
        }
        let (network, numbers) = builder.finish_with(&links).expect("a network");
        assert_eq!(network.entries(), entries.len() as u64);
        let number = |draft| {
            let index = links.iter().position(|&link| link == draft).expect("a link");
            numbers[index]
        };
        let table = Table::build((1..).zip(&prefixes).map(|(value, (net, _))| (*net, value)));
        let down = numbers[random.below(numbers.len() as u64) as usize];
        for _ in 0..100 {
            let address = prefix(&mut random).addr();
            let longest = prefixes.iter().filter(|(net, _)| net.contains(&address));
            let longest = longest.max_by_key(|(net, _)| net.prefix_len());
            let expected = longest.map(|&(net, node)| Owner::Prefix(node, net));
            assert_eq!(network.owner(address), expected, "{address} of {prefixes:?}");
            let value = match address {
                IpAddr::V4(address) => table.lookup4(address.to_bits()),
                IpAddr::V6(address) => table.lookup6(address.to_bits()),
            };
            let same = (value as usize).checked_sub(1).map(|index| prefixes[index]);
            assert_eq!(network.owner(address).map(Owner::node), same.map(|(_, node)| node));
            let entry = entries
                .iter()
                .filter(|&&(net, link)| net.contains(&address) && number(link) != down)
                .max_by_key(|(net, _)| net.prefix_len());
            let found = network.entry(hub, address, |link| link != down);
            assert_eq!(found, entry.map(|&(_, link)| number(link)), "{address} of {entries:?}");
        }
        assert_eq!(network.prefixes().count(), prefixes.len());
        for (net, owner) in network.prefixes() {
            assert!(prefixes.contains(&(net, owner.node())));
        }
    }
}
