//! Rankings beside a naive reference, on the networks of *The P2P-Oracle Server* and on random ones.

use std::{collections::HashMap, net::Ipv4Addr, net::Ipv6Addr, sync::Arc};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use oracle::{
    candidate::Candidate,
    metric::{DEFAULT_COST, Metric},
    rank::Ranker,
    tables::{Adjustment, Adjustments, Policy, Subject, Tables},
};
use splitmix::Random;
use topo::{
    Change, Options, PathProperties, RouterIndex, Tree,
    generate::{self, Network},
};

/// Ranks by asking for each candidate alone: every prefix length in turn, then all exits, then the
/// cost by the formula.
struct Naive {
    /// For each prefix whether it is internal, and its routers with what lies beyond.
    prefixes: HashMap<IpNet, (bool, Vec<(RouterIndex, u32)>)>,
    trees: HashMap<RouterIndex, Tree>,
    preferred: Option<IpNet>,
}

impl Naive {
    fn new(network: &Network, tables: &Tables, preferred: Option<IpNet>) -> Self {
        let mut prefixes: HashMap<IpNet, (bool, Vec<_>)> = HashMap::new();
        for change in &network.changes {
            let (prefix, router, distance, internal) = match change {
                Change::Internal { prefix, router } => (prefix, router, 0, true),
                Change::Route { prefix, exit, path } => (prefix, exit, path.as_distance, false),
                _ => continue,
            };
            let router = tables.view.graph.index(*router).unwrap();
            let (is_internal, exits) = prefixes.entry(*prefix).or_default();
            if internal && !*is_internal {
                exits.clear();
                *is_internal = true;
            }
            if internal == *is_internal {
                exits.push((router, distance.into()));
            }
        }
        Self { prefixes, trees: HashMap::new(), preferred }
    }

    fn longest(&self, net: IpNet) -> Option<(&IpNet, &[(RouterIndex, u32)])> {
        let mut next = Some(net.trunc());
        while let Some(net) = next {
            if let Some((prefix, (_, exits))) = self.prefixes.get_key_value(&net) {
                return Some((prefix, exits));
            }
            next = net.supernet();
        }
        None
    }

    /// The cost of *The P2P-Oracle Server*, section 4.5.5, through the exit of lowest weight; preferred ones first.
    fn key(&self, source: RouterIndex, net: IpNet) -> Option<(bool, f64)> {
        let (prefix, exits) = self.longest(net)?;
        let tree = &self.trees[&source];
        let paths = exits.iter().filter_map(|(exit, distance)| {
            let path: PathProperties = tree.to(*exit)?;
            Some((path.weight, *distance, *exit, path))
        });
        let (_, distance, _, path) =
            paths.min_by_key(|(weight, distance, exit, _)| (*weight, *distance, *exit))?;
        let cost = 8.0 * f64::from(distance)
            + 0.5 * f64::from(path.internal_hops)
            + 10.0 / path.min_bandwidth;
        let preferred = self.preferred.is_some_and(|all| all.contains(prefix));
        Some((!preferred, cost))
    }

    fn rank(&mut self, tables: &Tables, source: RouterIndex, candidates: &[Candidate]) -> Vec<u16> {
        self.trees.entry(source).or_insert_with(|| tables.view.tree(source));
        let keys: Vec<_> = candidates
            .iter()
            .map(|candidate| {
                let net: IpNet = match *candidate {
                    Candidate::V4(address) => Ipv4Net::from(address).into(),
                    Candidate::V6(address) => Ipv6Net::from(address).into(),
                    Candidate::Net4(net) => net.into(),
                    Candidate::Net6(net) => net.into(),
                };
                self.key(source, net)
            })
            .collect();
        let mut order: Vec<u16> = (0..candidates.len() as u16).collect();
        // Unknown ones last; a stable sort keeps equal ones in their order.
        order.sort_by(|a, b| {
            let [a, b] = [a, b].map(|at| keys[usize::from(*at)]);
            match (a, b) {
                (Some(a), Some(b)) => a.partial_cmp(&b).unwrap(),
                (a, b) => b.is_some().cmp(&a.is_some()),
            }
        });
        order
    }
}

fn candidate(random: &mut Random, prefixes: &[IpNet]) -> Candidate {
    match (random.below(8), random.pick(prefixes)) {
        (0, _) => Candidate::V4(Ipv4Addr::from_bits(random.bits() as u32)),
        (1, Some(IpNet::V4(net))) => {
            let length = net.prefix_len() + random.below(u64::from(33 - net.prefix_len())) as u8;
            let host = random.bits() as u32 & u32::from(net.hostmask());
            let address = Ipv4Addr::from_bits(u32::from(net.network()) | host);
            Candidate::Net4(Ipv4Net::new(address, length).unwrap())
        }
        (1, Some(IpNet::V6(net))) => Candidate::Net6(*net),
        (_, Some(IpNet::V4(net))) => {
            let host = random.bits() as u32 & u32::from(net.hostmask());
            Candidate::V4(Ipv4Addr::from_bits(u32::from(net.network()) | host))
        }
        (_, Some(IpNet::V6(net))) => {
            let host = u128::from(random.bits()) & u128::from(net.hostmask());
            Candidate::V6(Ipv6Addr::from_bits(u128::from(net.network()) | host))
        }
        (_, None) => Candidate::V6(Ipv6Addr::UNSPECIFIED),
    }
}

fn agree(network: &Network, preferred: Option<IpNet>, questions: usize) {
    let list = preferred.map(|net| (Subject::Prefix(net), Adjustment::Prefer));
    let policy = Policy {
        metrics: vec![Metric::compile("default", DEFAULT_COST).unwrap()],
        adjustments: Adjustments::new(list).unwrap(),
        default_router: None,
    };
    let options = Options { marks: policy.marks(), ..Options::default() };
    let tables = Tables::build(network.builder(options).view(), Arc::new(policy), None);
    let mut naive = Naive::new(network, &tables, preferred);
    let mut prefixes: Vec<_> = naive.prefixes.keys().copied().collect();
    prefixes.sort_unstable();
    let mut random = Random::new(17);
    let mut ranker = Ranker::default();
    let mut order = Vec::new();
    for _ in 0..questions {
        let source = *random.pick(tables.view.sources()).unwrap();
        let count = 1 + random.below(40) as usize;
        let all: Vec<_> = (0..count).map(|_| candidate(&mut random, &prefixes)).collect();
        ranker.rank(&tables, 0, Some(source), &all, &mut order);
        assert_eq!(order, naive.rank(&tables, source, &all), "from {source:?}: {all:?}");
        // IPv4 addresses alone take another code path to the same order.
        let (fours, mut octets): (Vec<_>, Vec<_>) = all
            .iter()
            .filter_map(|candidate| match candidate {
                Candidate::V4(address) => Some((*candidate, address.octets())),
                _ => None,
            })
            .unzip();
        ranker.rank4(&tables, 0, Some(source), &mut octets);
        let expected = naive.rank(&tables, source, &fours);
        let expected: Vec<_> = expected.iter().map(|at| fours[usize::from(*at)]).collect();
        let found: Vec<_> = octets.iter().map(|o| Candidate::V4(Ipv4Addr::from(*o))).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn ten_thousand_questions_on_the_large_network() {
    agree(&generate::hubs(), None, 10_000);
}

#[test]
fn ten_thousand_questions_on_the_small_network() {
    agree(&generate::ten(), Some("64.0.0.0/3".parse().unwrap()), 10_000);
}

#[test]
fn random_networks() {
    for seed in 0..8 {
        let prefixes = generate::realistic_table(seed, 600, 200);
        let preferred = (seed % 2 == 0).then(|| "2000::/5".parse().unwrap());
        let network = generate::mesh(seed, 10 + 7 * seed as usize, 3, prefixes);
        agree(&network, preferred, 300);
    }
}
