//! Longest-prefix match against a linear scan.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};
use topo::lpm::Table;

/// What a table has to do, in the simplest form.
#[derive(Default)]
struct Scan(BTreeMap<IpNet, u32>);

impl Scan {
    fn of(routes: &[(IpNet, u32)]) -> Scan {
        Scan(routes.iter().map(|(prefix, value)| (prefix.trunc(), *value)).collect())
    }

    fn longest(&self, matches: impl Fn(&IpNet) -> bool) -> u32 {
        let longest = self.0.iter().filter(|(prefix, _)| matches(prefix));
        longest.max_by_key(|(prefix, _)| prefix.prefix_len()).map_or(0, |(_, value)| *value)
    }

    fn lookup(&self, address: IpAddr) -> u32 {
        self.longest(|prefix| prefix.contains(&address))
    }

    fn covering(&self, inner: IpNet) -> u32 {
        self.longest(|prefix| prefix.contains(&inner))
    }

    /// IPv4 first, by address, then length: what `IpNet` is ordered by as well.
    fn routes(&self) -> Vec<(IpNet, u32)> {
        self.0.iter().map(|(prefix, value)| (*prefix, *value)).collect()
    }
}

fn lookup(table: &Table, address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => table.lookup4(address.to_bits()),
        IpAddr::V6(address) => table.lookup6(address.to_bits()),
    }
}

/// The first and last address of a prefix, the ones around it, and one inside.
fn addresses_about(prefix: IpNet) -> Vec<IpAddr> {
    match prefix {
        IpNet::V4(net) => {
            let (first, last) = (net.network().to_bits(), net.broadcast().to_bits());
            [first, last, first.wrapping_sub(1), last.wrapping_add(1), first.midpoint(last)]
                .map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits)))
                .into()
        }
        IpNet::V6(net) => {
            let (first, last) = (net.network().to_bits(), net.broadcast().to_bits());
            [first, last, first.wrapping_sub(1), last.wrapping_add(1), first.midpoint(last)]
                .map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits)))
                .into()
        }
    }
}

/// The table does what the scan does, for these addresses and prefixes and those about its routes.
fn agree(table: &Table, scan: &Scan, addresses: &[IpAddr], prefixes: &[IpNet]) {
    assert_eq!(table.iter().collect::<Vec<_>>(), scan.routes());
    assert_eq!(table.len(), scan.0.len());
    assert_eq!(table.is_empty(), scan.0.is_empty());

    let about = scan.0.keys().flat_map(|prefix| addresses_about(*prefix));
    let addresses: Vec<IpAddr> = addresses.iter().copied().chain(about).collect();
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for &address in &addresses {
        let expected = scan.lookup(address);
        assert_eq!(lookup(table, address), expected, "{address}");
        match address {
            IpAddr::V4(address) => v4.push((address.to_bits(), expected)),
            IpAddr::V6(address) => v6.push((address.to_bits(), expected)),
        }
    }
    let (asked, expected): (Vec<u32>, Vec<u32>) = v4.into_iter().unzip();
    let mut values = vec![u32::MAX; asked.len()];
    table.lookup4_batch(&asked, &mut values);
    assert_eq!(values, expected);
    let (asked, expected): (Vec<u128>, Vec<u32>) = v6.into_iter().unzip();
    let mut values = vec![u32::MAX; asked.len()];
    table.lookup6_batch(&asked, &mut values);
    assert_eq!(values, expected);

    let around = scan.0.keys().flat_map(|prefix| {
        let wider = prefix.supernet();
        let narrower = IpNet::new(prefix.addr(), prefix.prefix_len() + 1).ok();
        [Some(*prefix), wider, narrower].into_iter().flatten()
    });
    for prefix in prefixes.iter().copied().chain(around) {
        assert_eq!(table.covering(prefix), scan.covering(prefix), "{prefix}");
    }
}

fn check(routes: &[(IpNet, u32)]) {
    agree(&Table::build(routes.iter().copied()), &Scan::of(routes), &[], &[]);
}

fn parse(routes: &[(&str, u32)]) -> Vec<(IpNet, u32)> {
    routes.iter().map(|(prefix, value)| (prefix.parse().unwrap(), *value)).collect()
}

#[test]
fn an_empty_table_knows_nothing() {
    let table = Table::default();
    assert_eq!((table.lookup4(0), table.lookup4(u32::MAX)), (0, 0));
    assert_eq!((table.lookup6(0), table.lookup6(u128::MAX)), (0, 0));
    assert_eq!(table.covering("0.0.0.0/0".parse().unwrap()), 0);
    assert_eq!(table.covering("::1/128".parse().unwrap()), 0);
    assert_eq!(table.iter().count(), 0);
    assert!(table.is_empty());
}

#[test]
fn the_families_do_not_touch() {
    check(&parse(&[("0.0.0.0/0", 1)]));
    check(&parse(&[("::/0", 1)]));
    let table = Table::build(parse(&[("0.0.0.0/0", 4), ("::/0", 6)]));
    assert_eq!((table.lookup4(7), table.lookup6(7)), (4, 6));
}

#[test]
fn single_addresses_at_both_ends() {
    check(&parse(&[
        ("0.0.0.0/32", 1),
        ("255.255.255.255/32", 2),
        ("192.0.2.0/32", 3),
        ("192.0.2.255/32", 4),
        ("::/128", 5),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", 6),
        ("2001:db8::1/128", 7),
    ]));
}

#[test]
fn nested_prefixes_of_every_length() {
    let mut routes = Vec::new();
    for length in 0..=32 {
        let net = Ipv4Net::new(Ipv4Addr::new(203, 0, 113, 77), length).unwrap();
        routes.push((IpNet::V4(net.trunc()), u32::from(length) + 1));
    }
    for length in 0..=128 {
        let net = Ipv6Net::new("2001:db8:1234:5678:9abc:def0:1357:9bdf".parse().unwrap(), length);
        routes.push((IpNet::V6(net.unwrap().trunc()), u32::from(length) + 100));
    }
    check(&routes);
    routes.reverse();
    check(&routes);
    // Every other length, so that what lies between falls through to the shorter one.
    check(&routes.iter().copied().step_by(2).collect::<Vec<_>>());
}

#[test]
fn the_last_of_equal_prefixes_wins() {
    let routes = parse(&[
        ("10.0.0.0/8", 1),
        ("2001:db8::/32", 2),
        ("10.0.0.0/8", 3),
        ("10.99.0.1/8", 4),
        ("2001:db8:ffff::/32", 5),
    ]);
    check(&routes);
    let table = Table::build(routes);
    assert_eq!(table.lookup4(0x0a00_0001), 4);
    assert_eq!(table.len(), 2);
}

#[test]
fn host_bits_do_not_count() {
    let table = Table::build(parse(&[("192.0.2.77/24", 9), ("2001:db8::77/64", 8)]));
    assert_eq!(table.lookup4(0xc000_0201), 9);
    assert_eq!(table.covering("192.0.2.200/25".parse().unwrap()), 9);
    assert_eq!(table.covering("2001:db8::ffff/127".parse().unwrap()), 8);
    let routes: Vec<String> = table.iter().map(|(prefix, _)| prefix.to_string()).collect();
    assert_eq!(routes, ["192.0.2.0/24", "2001:db8::/64"]);
}

#[test]
fn a_route_of_value_zero_hides_what_is_above() {
    let routes = parse(&[("10.0.0.0/8", 1), ("10.1.0.0/16", 0), ("10.1.2.0/24", 2)]);
    check(&routes);
    assert_eq!(Table::build(routes).lookup4(0x0a01_0001), 0);
}

#[test]
fn neighbours_of_equal_value_stay_apart_in_the_list() {
    check(&parse(&[("10.0.0.0/9", 7), ("10.128.0.0/9", 7), ("10.0.0.0/8", 7)]));
}

#[test]
fn values_as_large_as_can_be() {
    let largest = Table::MAX_VALUE;
    check(&parse(&[("10.0.0.0/8", largest), ("10.1.1.1/32", largest - 1), ("::/0", largest)]));
    check(&parse(&[("10.0.0.0/8", 0xfffe), ("10.1.1.1/32", 0xffff), ("::/1", 0x1_0000)]));
}

#[test]
#[should_panic(expected = "more than")]
fn too_large_a_value_is_refused() {
    Table::build(parse(&[("10.0.0.0/8", Table::MAX_VALUE + 1)]));
}

#[test]
fn a_batch_stops_at_the_end_of_the_shorter_slice() {
    let table = Table::build(parse(&[("0.0.0.0/0", 1), ("::/0", 2)]));
    let mut values = [9; 100];
    table.lookup4_batch(&[0; 70], &mut values);
    assert!(values[..70].iter().all(|value| *value == 1) && values[70..] == [9; 30]);
    let mut values = [9; 40];
    table.lookup6_batch(&[0; 70], &mut values);
    assert_eq!(values, [2; 40]);
    table.lookup4_batch(&[], &mut []);
}

#[test]
fn a_family_that_did_not_change_is_shared() {
    let table = Table::build(parse(&[("10.0.0.0/8", 1), ("2001:db8::/32", 2)]));
    let next = table.patched([("10.0.0.0/8".parse().unwrap(), None)]);
    assert_eq!((next.lookup4(0x0a00_0001), table.lookup4(0x0a00_0001)), (0, 1));
    assert_eq!(next.memory().blocks6, table.memory().blocks6);
    assert_eq!(next.lookup6(0x2001_0db8 << 96), 2);
}

#[test]
fn a_block_with_hundreds_of_parts() {
    // Every third /48 and some routes in them, so that no two neighbours have the same value.
    for values in [100, Table::MAX_VALUE - 1000] {
        let mut routes = parse(&[("2001:db8::/32", values)]);
        for part in 0..300 {
            let net = 0x2001_0db8_u128 << 96 | ((3 * part) << 80);
            let length = [48, 48, 47, 64, 49][part as usize % 5];
            let net = Ipv6Net::new(Ipv6Addr::from_bits(net), length).unwrap();
            routes.push((IpNet::V6(net), values + 1 + part as u32));
        }
        check(&routes);
    }
}

#[test]
fn neighbours_by_the_dozen_in_one_block() {
    // So close together that they share a page, whatever the pages of their node: within a block, and
    // within a /48 of it.
    for count in [15, 16, 17, 31, 32, 62, 63, 64, 70, 300] {
        for (begin, length) in [("2001:db8:ff80::/32", 48), ("2001:db8:7:fff0::/48", 64)] {
            let first: Ipv6Net = begin.parse().unwrap();
            let mut routes = parse(&[("::/0", 1), ("2001:db8::/32", 2), ("2001:db8:8000::/33", 3)]);
            let neighbours = (0..count).map(|number| {
                let step = u128::from(number) << (128 - u32::from(length));
                let bits = first.addr().to_bits().wrapping_add(step);
                let net = Ipv6Net::new(Ipv6Addr::from_bits(bits), length).unwrap();
                (IpNet::V6(net), 100 + number)
            });
            routes.extend(neighbours);
            check(&routes);
        }
    }
}

#[test]
fn hundreds_of_blocks_anywhere() {
    // Some buckets of the hash table overflow; some stretches are too long for it.
    let mut rng = StdRng::seed_from_u64(3);
    let routes: Vec<(IpNet, u32)> = (0..400)
        .map(|_| {
            let length = [32, 32, 48, 30, 29, 28, 20][rng.random_range(0..7)];
            let net = Ipv6Net::new(Ipv6Addr::from_bits(rng.random()), length).unwrap();
            (IpNet::V6(net), rng.random_range(0..50))
        })
        .collect();
    check(&routes);
}

/// A prefix near others: few distinct leading bits, so that prefixes nest and touch.
fn crowded(rng: &mut StdRng) -> IpNet {
    if rng.random() {
        let bits = [0x0a00_0000, 0xc0a8_0000, 0xffff_ff00][rng.random_range(0..3)];
        let spread = rng.random_range(1..=24);
        let address = bits ^ rng.random_range(0..1u32 << spread);
        IpNet::V4(Ipv4Net::new(address.into(), rng.random_range(0..=32)).unwrap())
    } else {
        let bits: u128 = [0x2001_0db8 << 96, 0x2a00 << 112, u128::MAX << 8][rng.random_range(0..3)];
        let spread = rng.random_range(1..=112);
        let address = bits ^ rng.random_range(0..1u128 << spread);
        IpNet::V6(Ipv6Net::new(address.into(), rng.random_range(0..=128)).unwrap())
    }
}

#[test]
fn random_tables_agree_with_the_scan() {
    let mut rng = StdRng::seed_from_u64(1);
    for round in 0..60 {
        let count = rng.random_range(0..200);
        let values = if round % 3 == 0 { Table::MAX_VALUE } else { 5 };
        let routes: Vec<(IpNet, u32)> =
            (0..count).map(|_| (crowded(&mut rng), rng.random_range(0..=values))).collect();
        let prefixes: Vec<IpNet> = (0..200).map(|_| crowded(&mut rng)).collect();
        let addresses: Vec<IpAddr> = prefixes.iter().map(IpNet::addr).collect();
        agree(&Table::build(routes.iter().copied()), &Scan::of(&routes), &addresses, &prefixes);
    }
}

#[test]
fn a_patched_table_is_the_one_built_anew() {
    let mut rng = StdRng::seed_from_u64(2);
    let mut scan = Scan::default();
    let mut table = Table::default();
    for _ in 0..60 {
        let mut changes = Vec::new();
        for _ in 0..rng.random_range(0..20) {
            // Half of the time about a prefix that is there.
            let known = scan.0.len();
            let prefix = match rng.random_range(0..2 * known + 1) {
                index if index < known => *scan.0.keys().nth(index).unwrap(),
                _ => crowded(&mut rng),
            };
            changes.push((prefix, rng.random::<bool>().then(|| rng.random_range(0..100))));
        }
        table = table.patched(changes.iter().copied());
        for (prefix, value) in changes {
            match value {
                Some(value) => scan.0.insert(prefix.trunc(), value),
                None => scan.0.remove(&prefix.trunc()),
            };
        }
        agree(&table, &scan, &[], &[]);
    }
}

prop_compose! {
    fn any4()(bits: u32, length in 0u8..=32) -> IpNet {
        IpNet::V4(Ipv4Net::new(bits.into(), length).unwrap())
    }
}

prop_compose! {
    fn any6()(bits: u128, length in 0u8..=128) -> IpNet {
        IpNet::V6(Ipv6Net::new(bits.into(), length).unwrap())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_routes_agree_with_the_scan(
        routes in prop::collection::vec((prop_oneof![any4(), any6()], 0..=Table::MAX_VALUE), 0..60),
        prefixes in prop::collection::vec(prop_oneof![any4(), any6()], 0..60),
    ) {
        let addresses: Vec<IpAddr> = prefixes.iter().map(IpNet::addr).collect();
        agree(&Table::build(routes.iter().copied()), &Scan::of(&routes), &addresses, &prefixes);
    }
}
