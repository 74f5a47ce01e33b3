//! The driver and the sockets give the same answers, byte for byte; and a real client over a real
//! link gets them.

mod parity;

use oracle::{
    metric::Metric,
    tables::{Policy, Tables},
};
use std::sync::Arc;
use topo::{Builder, Change, ExternalPath, Feed, IpNet, Options, RouterId, generate};

/// What the default metric is, and a second one with other ties.
fn policy() -> Policy {
    let metric = |name, cost| Metric::compile(name, cost).unwrap();
    Policy {
        metrics: vec![
            metric("default", "8 * as_distance + 0.5 * internal_hops + 10 / min_bandwidth"),
            metric("hops", "internal_hops + as_distance"),
        ],
        ..Policy::default()
    }
}

/// The 216 routers of *The P2P-Oracle Server* and 67,000 routes, with customers' prefixes longer than /24 besides.
fn network() -> (Builder, Vec<RouterId>) {
    let network = generate::hubs();
    let mut builder = network.builder(Options::default());
    for (number, exit) in network.exits.iter().cycle().take(3000).enumerate() {
        let number = number as u32;
        let address = [198, 18 + (number >> 10) as u8, number as u8, (number * 77) as u8];
        let prefix = ipnet::Ipv4Net::new(address.into(), 25 + (number % 8) as u8).unwrap().trunc();
        let path = ExternalPath { as_distance: 1 + (number % 5) as u16, as_number: 0 };
        let change = Change::Route { prefix: IpNet::V4(prefix), exit: *exit, path };
        builder.apply(Feed::OPERATOR, change).unwrap();
    }
    (builder, network.exits)
}

fn tables(builder: &mut Builder, policy: Policy, previous: Option<&Tables>) -> Tables {
    Tables::build(builder.view(), Arc::new(policy), previous)
}
