//! Networks of any size that look like an operator's.
//!
//! Sites are spread over a plane of 4,000 by 2,000 km. Each has two core routers and up to 18 access
//! routers, each of which is joined to both. A site's cores are joined to those of the nearest site that
//! came before it, so that the network hangs together, and to those of two near ones, so that it
//! survives cuts. Light needs time; weights follow latency, as operators set them.

use super::{Line, Maker, Network, Random, learned_routes};
use crate::value::RouterId;
use ipnet::{IpNet, Ipv4Net};
use std::net::{IpAddr, Ipv4Addr};

/// Routers at one site.
const SITE: usize = 20;
/// Kilometres a millisecond in glass, detours of a fifth included.
const SPEED: f64 = 200.0 / 1.2;

fn router(number: usize) -> RouterId {
    RouterId(IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + 1 + number as u32)))
}

/// A network of this many routers, at least two and at most 16,000; `exits` of its cores hear external
/// routes to `prefixes`, each at three of them.
pub fn mesh(
    seed: u64,
    routers: usize,
    exits: usize,
    prefixes: impl IntoIterator<Item = IpNet>,
) -> Network {
    let routers = routers.clamp(2, 16_000);
    let mut random = Random::new(seed);
    let mut maker = Maker::default();
    for number in 0..routers {
        let (site, index) = (number / SITE, number % SITE);
        let kind = if index < 2 { "core" } else { "access" };
        maker.router(router(number), format!("site{site}-{kind}{index}"));
    }
    let mut sites: Vec<(f64, f64)> = Vec::new();
    let mut cores = Vec::new();
    for first in (0..routers).step_by(SITE) {
        let here = (random.share() * 4_000.0, random.share() * 2_000.0);
        let members = first..routers.min(first + SITE);
        cores.push(router(first));
        if members.len() > 1 {
            let line = Line { bandwidth: 400_000.0, latency: 0.1, weight: 1 };
            maker.link(router(first), router(first + 1), line);
            cores.push(router(first + 1));
        }
        for access in members.skip(2) {
            let line = Line { bandwidth: 10_000.0, latency: 0.2 + random.share(), weight: 10 };
            maker.link(router(access), router(first), line);
            maker.link(router(access), router(first + 1), Line { weight: 20, ..line });
        }
        let mut near: Vec<_> = sites
            .iter()
            .enumerate()
            .map(|(site, there)| ((here.0 - there.0).hypot(here.1 - there.1), site))
            .collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (kilometres, site) in near.into_iter().take(3) {
            let latency = kilometres / SPEED;
            let bandwidth = *random.pick(&[100_000.0, 100_000.0, 400_000.0]).unwrap_or(&100_000.0);
            let line = Line { bandwidth, latency, weight: 10 + (latency * 10.0) as u32 };
            maker.link(router(first), router(site * SITE), line);
            if first + 1 < routers {
                maker.link(router(first + 1), router(site * SITE + 1), line);
            }
        }
        sites.push(here);
    }
    let mut clients = Vec::new();
    for number in 0..routers {
        let address = Ipv4Addr::from_bits(0x6440_0000 + ((number as u32) << 8));
        let prefix: IpNet = Ipv4Net::new_assert(address, 24).into();
        clients.push(prefix);
        maker.internal(prefix, router(number));
    }
    let step = (cores.len() / exits.max(1)).max(1);
    let exits: Vec<_> = cores.into_iter().step_by(step).take(exits).collect();
    let mut changes = maker.changes;
    changes.extend(learned_routes(seed, prefixes, &exits, 3));
    let source = clients[clients.len() - 1];
    Network { changes, exits, clients, source }
}
