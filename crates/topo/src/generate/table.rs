//! Prefixes as in the tables of the real internet's routers.
//!
//! Lengths are distributed as in the default-free zone of 2025. Prefixes are placed from the shortest
//! to the longest: in runs of neighbours, inside shorter ones, or anywhere where a registry would
//! give out addresses. So about half of the IPv4 prefixes are more specific ones of others, and the
//! IPv6 ones crowd together under few blocks, some of them much more than others.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use splitmix::Random;
use std::{
    collections::HashSet,
    net::{Ipv4Addr, Ipv6Addr},
};

/// Of 10,000 IPv4 prefixes so many have this length; what is missing are /24.
const LENGTHS4: [(u8, usize); 16] = [
    (8, 1),
    (9, 1),
    (10, 1),
    (11, 2),
    (12, 4),
    (13, 7),
    (14, 14),
    (15, 22),
    (16, 138),
    (17, 85),
    (18, 145),
    (19, 260),
    (20, 450),
    (21, 520),
    (22, 1080),
    (23, 1010),
];

/// Of 10,000 IPv6 prefixes so many have this length; what is missing are /48.
const LENGTHS6: [(u8, usize); 27] = [
    (20, 3),
    (22, 2),
    (24, 12),
    (25, 3),
    (26, 8),
    (27, 8),
    (28, 70),
    (29, 260),
    (30, 60),
    (31, 45),
    (32, 1100),
    (33, 120),
    (34, 120),
    (35, 90),
    (36, 560),
    (37, 90),
    (38, 130),
    (39, 90),
    (40, 850),
    (41, 120),
    (42, 180),
    (43, 70),
    (44, 900),
    (45, 110),
    (46, 280),
    (47, 250),
    (64, 40),
];

/// Blocks that IPv6 prefixes are given out of: the first bits, how many they are, and how many of
/// 100 prefixes lie there.
const BLOCKS6: [(u128, u8, u64); 9] = [
    (0x2001, 16, 13),
    (0x2400, 12, 27),
    (0x2600, 12, 15),
    (0x2620, 23, 3),
    (0x2800, 12, 12),
    (0x2a00, 12, 15),
    (0x2a10, 12, 12),
    (0x2c0f, 16, 2),
    (0x2402, 16, 1),
];

/// So many IPv4 and IPv6 prefixes, each once, in order. At most some two million IPv4 ones fit.
pub fn realistic_table(seed: u64, v4: usize, v6: usize) -> Vec<IpNet> {
    let mut random = Random::new(seed);
    let mut first = allocate(v4, &LENGTHS4, 24, |length, before| {
        let net = start4(&mut random, length, before);
        usable4(net).then_some(net)
    });
    first.sort_unstable();
    let mut second = allocate(v6, &LENGTHS6, 48, |length, before| {
        let net = start6(&mut random, length, before);
        (net >> 125 == 1).then_some(net)
    });
    second.sort_unstable();
    let v4 = first.into_iter().map(|(bits, length)| {
        IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::from_bits(bits as u32), length))
    });
    let v6 = second
        .into_iter()
        .map(|(bits, length)| IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::from_bits(bits), length)));
    v4.chain(v6).collect()
}

/// Allocates prefixes from the shortest to the longest. `start` gives an address, or none, for a length
/// and the prefixes so far.
fn allocate(
    count: usize,
    lengths: &[(u8, usize)],
    usual: u8,
    mut start: impl FnMut(u8, &[(u128, u8)]) -> Option<u128>,
) -> Vec<(u128, u8)> {
    let mut quotas: Vec<(u8, usize)> =
        lengths.iter().map(|(length, share)| (*length, count * share / 10_000)).collect();
    let rest = count - quotas.iter().map(|(_, quota)| quota).sum::<usize>();
    quotas.push((usual, rest));
    quotas.sort_unstable();
    let mut placed = Vec::with_capacity(count);
    let mut seen = HashSet::with_capacity(count);
    for (length, quota) in quotas {
        let until = placed.len() + quota;
        while placed.len() < until {
            if let Some(bits) = start(length, &placed)
                && seen.insert((bits, length))
            {
                placed.push((bits, length));
            }
        }
    }
    placed
}

/// One of the prefixes so far, the early ones of the list much more often than the late ones.
fn crowded<'p>(random: &mut Random, before: &'p [(u128, u8)]) -> Option<&'p (u128, u8)> {
    let share = random.share();
    before.get((before.len() as f64 * share * share) as usize)
}

fn start4(random: &mut Random, length: u8, before: &[(u128, u8)]) -> u128 {
    let size = 1_u128 << (32 - length);
    let anywhere = u128::from(random.bits() as u32) & !(size - 1);
    match random.below(100) {
        // The neighbour of the last one.
        0..50 => match before.last() {
            Some((bits, last)) if *last == length => bits + size,
            _ => anywhere,
        },
        // Inside a shorter one.
        50..80 => match random.pick(before) {
            Some((bits, outer)) if *outer < length => {
                bits + u128::from(random.below(1 << (length - outer))) * size
            }
            _ => anywhere,
        },
        _ => anywhere,
    }
}

/// Whether the address is an ordinary one: nothing of RFC 6890, no multicast, and not 130.149.0.0/16,
/// the test networks' own.
fn usable4(bits: u128) -> bool {
    let Ok(bits) = u32::try_from(bits) else { return false };
    let address = Ipv4Addr::from_bits(bits);
    let [first, second, ..] = address.octets();
    let shared = first == 100 && (64..128).contains(&second);
    let odd = matches!((first, second), (192, 0) | (198, 18..=19) | (130, 149));
    let special = address.is_private() || address.is_link_local() || address.is_documentation();
    !(special || shared || odd || matches!(first, 0 | 127 | 224..))
}

fn start6(random: &mut Random, length: u8, before: &[(u128, u8)]) -> u128 {
    let size = 1_u128 << (128 - length);
    let nested = if length > 32 { 97 } else { 25 };
    let roll = random.below(100);
    if roll < 30
        && let Some((bits, last)) = before.last()
        && *last == length
    {
        return bits + size;
    }
    if roll < nested
        && let Some((bits, outer)) = crowded(random, before)
        && *outer < length
    {
        // Operators number their parts from 0, most of them.
        let parts = 1_u64 << (length - outer).min(16);
        let part =
            if random.below(2) == 0 { random.below(parts.min(16)) } else { random.below(parts) };
        return bits + u128::from(part) * size;
    }
    let mut roll = random.below(100);
    for (top, fixed, share) in BLOCKS6 {
        if roll < share {
            // A registry leaves room behind each block: what is given out begins at a /29, or
            // at a /48 where there are these alone.
            let step = if length > 32 { 48 } else { length.min(29) };
            let inside = random.below(1 << (step - fixed.min(step)).min(12));
            return ((top << 112) + (u128::from(inside) << (128 - step))) & !(size - 1);
        }
        roll -= share;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_asked_for_each_once_and_in_order() {
        let table = realistic_table(1, 20_000, 5_000);
        assert_eq!(table.len(), 25_000);
        assert!(table.is_sorted_by(|a, b| a < b));
        assert!(table.iter().all(|prefix| *prefix == prefix.trunc()));
        assert_eq!(table.iter().filter(|prefix| prefix.addr().is_ipv4()).count(), 20_000);
    }

    #[test]
    fn lengths_are_those_of_the_internet() {
        let table = realistic_table(1, 20_000, 10_000);
        let share = |v4: bool, length: u8| {
            let family = table.iter().filter(|prefix| prefix.addr().is_ipv4() == v4);
            let of = family.clone().filter(|prefix| prefix.prefix_len() == length).count();
            of as f64 / family.count() as f64
        };
        assert!((0.6..0.65).contains(&share(true, 24)), "{}", share(true, 24));
        assert!((0.1..0.12).contains(&share(true, 22)), "{}", share(true, 22));
        assert!((0.42..0.48).contains(&share(false, 48)), "{}", share(false, 48));
        assert!((0.1..0.12).contains(&share(false, 32)), "{}", share(false, 32));
    }

    #[test]
    fn a_seed_gives_the_same_table_again() {
        assert_eq!(realistic_table(3, 2_000, 1_000), realistic_table(3, 2_000, 1_000));
        assert_ne!(realistic_table(3, 2_000, 1_000), realistic_table(4, 2_000, 1_000));
    }

    #[test]
    fn no_special_addresses() {
        for prefix in realistic_table(5, 20_000, 1_000) {
            match prefix {
                IpNet::V4(net) => assert!(usable4(net.addr().to_bits().into()), "{net}"),
                IpNet::V6(net) => assert_eq!(net.addr().segments()[0] >> 13, 1, "{net}"),
            }
        }
    }

    #[test]
    fn many_prefixes_lie_inside_others() {
        let table = realistic_table(6, 50_000, 0);
        let seen: HashSet<IpNet> = table.iter().copied().collect();
        let inside = table.iter().filter(|prefix| {
            std::iter::successors(prefix.supernet(), IpNet::supernet).any(|net| seen.contains(&net))
        });
        let share = inside.count() as f64 / table.len() as f64;
        assert!((0.3..0.8).contains(&share), "{share}");
    }
}
