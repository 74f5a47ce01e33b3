//! External routes: wholly random ones as in *The P2P-Oracle Server*, and ones like those of the real internet.

use crate::{change::Change, path::ExternalPath, value::RouterId};
use ipnet::{IpNet, Ipv4Net};
use splitmix::{Random, mix};
use std::{collections::HashSet, net::Ipv4Addr};

/// So many routes at these exits, "randomly generated" but "the same every time" (its section
/// 5.2): a route at each exit for one to three of them in equal parts, to prefixes of 8 to 24 bits, most of
/// them long, which are no special addresses and not the test networks' own; 1 to 8 ASes away.
pub fn random_routes(
    seed: u64,
    count: usize,
    exits: &[RouterId],
) -> impl Iterator<Item = Change> + use<> {
    let mut random = Random::new(seed);
    let exits = exits.to_vec();
    let mut seen = HashSet::new();
    std::iter::from_fn(move || {
        if exits.is_empty() {
            return None;
        }
        let prefix = loop {
            let prefix = random_prefix(&mut random);
            if seen.insert(prefix) {
                break prefix;
            }
        };
        let as_number = 1 + random.below(64_495) as u32;
        let number = 1 + random.below(exits.len() as u64) as usize;
        let first = random.below(exits.len() as u64) as usize;
        let routes: Vec<_> = (0..number)
            .map(|step| Change::Route {
                prefix: prefix.into(),
                exit: exits[(first + step) % exits.len()],
                path: ExternalPath { as_distance: 1 + random.below(8) as u16, as_number },
            })
            .collect();
        Some(routes)
    })
    .flatten()
    .take(count)
}

fn random_prefix(random: &mut Random) -> Ipv4Net {
    loop {
        let address = Ipv4Addr::from(random.bits() as u32);
        // Two of three are /24, the others of any length from 8; there are few short prefixes.
        let len =
            if random.below(3) < 2 { 24 } else { 24 - random.below(17).min(random.below(17)) };
        let prefix = Ipv4Net::new_assert(address, len as u8).trunc();
        let [first, second, ..] = prefix.addr().octets();
        let special = matches!(first, 0 | 10 | 127 | 224..) || (first, second) == (130, 149);
        if !special {
            return prefix;
        }
    }
}

/// Routes to these prefixes, each at `each` of the exits, as routers of one network hear them from the
/// internet: some ten thousand origin ASes, a few of which have very many prefixes; all prefixes of an
/// origin are equally far from an exit, but for one of ten whose path is prepended.
pub fn learned_routes(
    seed: u64,
    prefixes: impl IntoIterator<Item = IpNet>,
    exits: &[RouterId],
    each: usize,
) -> impl Iterator<Item = Change> {
    const ORIGINS: f64 = 75_000.0;
    let mut random = Random::new(seed);
    let exits = exits.to_vec();
    prefixes.into_iter().flat_map(move |prefix| {
        // The cube puts an eighth of all prefixes into the first five hundredth of all origins.
        let origin = 1 + (random.share().powi(3) * ORIGINS) as u32;
        let prepended = if random.below(10) == 0 { 1 + random.below(3) } else { 0 };
        let first = mix(seed ^ u64::from(origin)) as usize;
        let routes: Vec<_> = (0..each.min(exits.len()))
            .map(|step| {
                let index = (first + step) % exits.len();
                // 2 to 6, mostly 3 to 5.
                let bits = mix(seed ^ (u64::from(origin) << 32) ^ index as u64);
                let distance = 2 + (bits & 0xf).count_ones();
                let as_distance = (u64::from(distance) + prepended) as u16;
                let path = ExternalPath { as_distance, as_number: origin };
                Change::Route { prefix, exit: exits[index], path }
            })
            .collect();
        routes
    })
}
