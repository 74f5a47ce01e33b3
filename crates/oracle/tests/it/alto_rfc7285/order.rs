//! Endpoint costs and Proxidor give the same order for the same question.

use crate::alto_rfc7285::support::{Ground, SITES, Setup, net, router, routing};
use oracle::{
    candidate::Candidate,
    rank::Ranker,
    tables::{Adjustment, Subject},
};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use serde_json::{Value, json};
use std::{collections::HashSet, net::IpAddr};

/// The candidates in the order that Proxidor gives.
fn ranked(ground: &Ground, metric: usize, source: IpAddr, candidates: &[IpAddr]) -> Vec<IpAddr> {
    let list: Vec<Candidate> = candidates
        .iter()
        .map(|address| match address {
            IpAddr::V4(address) => Candidate::V4(*address),
            IpAddr::V6(address) => Candidate::V6(*address),
        })
        .collect();
    let mut order = Vec::new();
    let source = ground.tables.source(source);
    Ranker::default().rank(&ground.tables, metric, source, &list, &mut order);
    order.into_iter().map(|index| candidates[usize::from(index)]).collect()
}

fn typed(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("ipv4:{address}"),
        IpAddr::V6(address) => format!("ipv6:{address}"),
    }
}

/// The same by sorting, stably, on ALTO's reply; what it omits goes last.
fn costed(
    ground: &Ground,
    cost_type: &Value,
    source: IpAddr,
    candidates: &[IpAddr],
) -> (Vec<IpAddr>, Vec<f64>) {
    let names: Vec<String> = candidates.iter().copied().map(typed).collect();
    let body =
        json!({"cost-type": cost_type, "endpoints": {"srcs": [typed(source)], "dsts": names}});
    let reply = ground.post("/endpointcost/lookup", &body);
    let costs = &reply["endpoint-cost-map"][typed(source)];
    let cost = |address: &IpAddr| costs[typed(*address)].as_f64().unwrap_or(f64::INFINITY);
    let mut order = candidates.to_vec();
    order.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    let in_order = order.iter().map(cost).collect();
    (order, in_order)
}

fn agree(setup: &Setup<'_>) {
    let ground = setup.ground();
    let mut random = StdRng::seed_from_u64(7285);
    let known: Vec<IpAddr> =
        SITES.iter().map(|(_, address)| address.parse().expect("an address")).collect();
    for _ in 0..300 {
        let mut candidates: Vec<IpAddr> = (0..random.random_range(1..40))
            .map(|_| match random.random_range(0..3) {
                0 => IpAddr::from(random.random::<[u8; 4]>()),
                1 => "2001:db8::".parse::<std::net::Ipv6Addr>().map_or(
                    IpAddr::from([0; 4]),
                    |base| {
                        IpAddr::from(std::net::Ipv6Addr::from(
                            base.to_bits() | u128::from(random.random::<u16>()),
                        ))
                    },
                ),
                _ => {
                    let IpAddr::V4(address) = known[random.random_range(0..known.len())] else {
                        unreachable!()
                    };
                    IpAddr::from(
                        address.to_bits().wrapping_add(random.random_range(0..5)).to_be_bytes(),
                    )
                }
            })
            .collect();
        // ALTO takes an address once, Proxidor as often as it stands there.
        let mut seen = HashSet::new();
        candidates.retain(|address| seen.insert(*address));
        candidates.shuffle(&mut random);
        let source = known[random.random_range(0..known.len())];
        for (metric, name) in [(0, "routingcost"), (1, "priv:delay")] {
            let expected = ranked(&ground, metric, source, &candidates);
            let mut cost_type = routing("ordinal");
            cost_type["cost-metric"] = name.into();
            let (order, _) = costed(&ground, &cost_type, source, &candidates);
            assert_eq!(order, expected, "from {source}");
            // Rounded numbers never reverse the order.
            cost_type["cost-mode"] = "numerical".into();
            if ground.tables.source(source).is_some() {
                let cost = costed(&ground, &cost_type, source, &expected);
                assert_eq!(cost.0, expected, "numbers from {source}");
                assert!(cost.1.is_sorted());
            }
        }
    }
}

#[test]
fn endpoint_costs_have_the_order_of_proxidor() {
    agree(&Setup::default());
}

#[test]
fn also_where_the_operator_prefers_and_avoids() {
    agree(&Setup {
        adjustments: vec![
            (Subject::Prefix(net("135.0.0.0/16")), Adjustment::Prefer),
            (Subject::Prefix(net("192.168.0.0/16")), Adjustment::Avoid),
            (Subject::As(64_502), Adjustment::Penalty(30.0)),
        ],
        ..Setup::default()
    });
}

#[test]
fn also_from_a_default_router() {
    agree(&Setup { default_router: Some(router("t2")), ..Setup::default() });
}
