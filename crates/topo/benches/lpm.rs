//! Longest-prefix match beside three crates, in one run: `make bench-lpm`.
//!
//! A million IPv4 and 200,000 IPv6 prefixes like those of the real internet; a random value each,
//! so that no two neighbours become one; addresses drawn at random from inside random prefixes.
//! All tables get the same prefixes and addresses and must give the same answers.
//!
//! Prints a table and writes target/bench/lpm.json, an array of `{name, value, unit}`. Nothing here
//! fails for being slow.
#![forbid(unsafe_code)]

use ip_network::{IpNetwork, Ipv4Network, Ipv6Network};
use ip_network_table::IpNetworkTable;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use poptrie::Poptrie;
use prefix_trie::PrefixMap;
use serde_json::json;
use std::{
    error::Error,
    hint::black_box,
    net::{Ipv4Addr, Ipv6Addr},
    path::Path,
    time::Instant,
};
use topo::{
    generate::{Random, realistic_table},
    lpm::Table,
};

const ROUTES4: usize = 1_000_000;
const ROUTES6: usize = 200_000;
const ADDRESSES: usize = 1 << 20;
/// A request's candidates.
const CANDIDATES: usize = 100;
/// A lookup's figure is the fastest of so many rounds: the others had company on the machine.
const ROUNDS: usize = 25;

/// One measured value.
#[derive(Debug)]
struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
}

/// All that was measured so far.
#[derive(Debug, Default)]
struct Figures(Vec<Figure>);

impl Figures {
    fn add(&mut self, name: &str, value: f64, unit: &'static str, goal: &str) {
        let goal = if goal.is_empty() { String::new() } else { format!("(to reach: {goal})") };
        println!("  {name:<58} {value:>10.2} {unit:<14} {goal}");
        self.0.push(Figure { name: name.to_owned(), value, unit });
    }

    fn write(&self) -> Result<(), Box<dyn Error>> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench");
        std::fs::create_dir_all(&path)?;
        let figures: Vec<_> = self
            .0
            .iter()
            .map(|figure| json!({"name": figure.name, "value": figure.value, "unit": figure.unit}))
            .collect();
        std::fs::write(path.join("lpm.json"), serde_json::to_string_pretty(&figures)? + "\n")?;
        println!("\nwritten: target/bench/lpm.json");
        Ok(())
    }
}

/// Random hits, by family.
struct Addresses {
    v4: Vec<u32>,
    v6: Vec<u128>,
}

fn addresses(random: &mut Random, routes: &[(IpNet, u32)]) -> Addresses {
    let mut v4: Vec<Ipv4Net> = Vec::new();
    let mut v6: Vec<Ipv6Net> = Vec::new();
    for (prefix, _) in routes {
        match prefix {
            IpNet::V4(net) => v4.push(*net),
            IpNet::V6(net) => v6.push(*net),
        }
    }
    let mut inside4 = || {
        let net = random.pick(&v4).copied().unwrap_or_default();
        net.addr().to_bits() | (random.bits() as u32 & net.hostmask().to_bits())
    };
    let first = (0..ADDRESSES).map(|_| inside4()).collect();
    let mut inside6 = || {
        let net = random.pick(&v6).copied().unwrap_or_default();
        let bits = u128::from(random.bits()) << 64 | u128::from(random.bits());
        net.addr().to_bits() | (bits & net.hostmask().to_bits())
    };
    Addresses { v4: first, v6: (0..ADDRESSES).map(|_| inside6()).collect() }
}

fn fastest(mut of: impl FnMut() -> f64) -> f64 {
    (0..ROUNDS).map(|_| of()).fold(f64::INFINITY, f64::min)
}

/// Nanoseconds a lookup, one after another in a loop; they do not depend on each other.
fn single<A: Copy>(addresses: &[A], lookup: impl Fn(A) -> u32) -> f64 {
    fastest(|| {
        let begun = Instant::now();
        for &address in addresses {
            black_box(lookup(black_box(address)));
        }
        begun.elapsed().as_nanos() as f64 / addresses.len() as f64
    })
}

/// Nanoseconds a lookup, in lists of so many.
fn batched<A>(addresses: &[A], size: usize, lookup: impl Fn(&[A], &mut [u32])) -> f64 {
    let mut values = vec![0; size];
    fastest(|| {
        let begun = Instant::now();
        for addresses in addresses.chunks_exact(size) {
            lookup(black_box(addresses), black_box(&mut values));
        }
        begun.elapsed().as_nanos() as f64 / (addresses.len() / size * size) as f64
    })
}

/// Milliseconds that it takes to make something, and what was made last.
fn built<T>(mut make: impl FnMut() -> T) -> (T, f64) {
    let mut last = None;
    let mut times: Vec<f64> = (0..3)
        .map(|_| {
            drop(last.take());
            let begun = Instant::now();
            last = Some(make());
            begun.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (last.unwrap_or_else(make), times[1])
}

/// Resident memory of this process in MB.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0.0);
    pages * 4096.0 / 1e6
}

fn sum<A: Copy>(addresses: &[A], lookup: impl Fn(A) -> u32) -> u64 {
    addresses.iter().map(|address| u64::from(lookup(*address))).sum()
}

fn nigh(figures: &mut Figures, routes: &[(IpNet, u32)], asked: &Addresses) -> (u64, u64) {
    println!("\nnigh's table, values of 2 bytes");
    let mut shuffled = routes.to_vec();
    let mut random = Random::new(7);
    for place in (1..shuffled.len()).rev() {
        shuffled.swap(place, random.below(place as u64 + 1) as usize);
    }
    let before = resident();
    let table = Table::build(routes.iter().copied());
    figures.add("nigh resident memory", resident() - before, "MB", "");
    let (_, time) = built(|| Table::build(routes.iter().copied()));
    figures.add("nigh build of sorted routes", time, "milliseconds", "500");
    let (_, time) = built(|| Table::build(shuffled.iter().copied()));
    figures.add("nigh build of shuffled routes", time, "milliseconds", "500");
    let change = routes[ROUTES4 / 2];
    let (_, time) = built(|| table.patched([(change.0, Some(change.1 + 1))]));
    figures.add("nigh patch of one IPv4 route", time, "milliseconds", "");
    let change = routes[ROUTES4 + ROUTES6 / 2];
    let (_, time) = built(|| table.patched([(change.0, Some(change.1 + 1))]));
    figures.add("nigh patch of one IPv6 route", time, "milliseconds", "");
    lookups(figures, "nigh", &table, asked);
    let prefixes: Vec<IpNet> = shuffled.iter().take(100_000).map(|(prefix, _)| *prefix).collect();
    let covering = single(&prefixes, |prefix| table.covering(prefix));
    figures.add("nigh covering, of prefixes that are there", covering, "nanoseconds", "");
    let sums = (
        sum(&asked.v4, |address| table.lookup4(address)),
        sum(&asked.v6, |address| table.lookup6(address)),
    );
    drop(table);

    println!("\nnigh's table, values of 4 bytes");
    let wide = Table::build(routes.iter().map(|(prefix, value)| (*prefix, *value + 65_536)));
    lookups(figures, "nigh wide", &wide, asked);
    sums
}

fn lookups(figures: &mut Figures, name: &str, table: &Table, asked: &Addresses) {
    let memory = table.memory();
    for (part, bytes, goal) in [
        ("IPv4 trie", memory.trie4, ""),
        ("IPv6 trie", memory.trie6, ""),
        ("IPv4 list", memory.list4, ""),
        ("IPv6 list", memory.list6, ""),
        ("both tries, without the lists", memory.trie4 + memory.trie6, "25"),
        ("all", table.bytes(), "25"),
    ] {
        figures.add(&format!("{name} memory, {part}"), bytes as f64 / 1e6, "MB", goal);
    }
    let time = single(&asked.v4, |address| table.lookup4(address));
    figures.add(&format!("{name} IPv4 lookup"), time, "nanoseconds", "10");
    let time = batched(&asked.v4, CANDIDATES, |asked, values| table.lookup4_batch(asked, values));
    figures.add(&format!("{name} IPv4 lookup in lists of {CANDIDATES}"), time, "nanoseconds", "5");
    let time = single(&asked.v6, |address| table.lookup6(address));
    figures.add(&format!("{name} IPv6 lookup"), time, "nanoseconds", "15");
    let time = batched(&asked.v6, CANDIDATES, |asked, values| table.lookup6_batch(asked, values));
    figures.add(&format!("{name} IPv6 lookup in lists of {CANDIDATES}"), time, "nanoseconds", "");
}

fn ip_network_table(
    figures: &mut Figures,
    routes: &[(IpNet, u32)],
    asked: &Addresses,
) -> (u64, u64) {
    println!("\nip_network_table");
    let routes: Vec<(IpNetwork, u32)> = routes
        .iter()
        .filter_map(|(prefix, value)| {
            let network = match prefix {
                IpNet::V4(net) => Ipv4Network::new(net.addr(), net.prefix_len()).ok()?.into(),
                IpNet::V6(net) => Ipv6Network::new(net.addr(), net.prefix_len()).ok()?.into(),
            };
            Some((network, *value))
        })
        .collect();
    let make = || {
        let mut table = IpNetworkTable::with_capacity(ROUTES4, ROUTES6);
        for (network, value) in &routes {
            table.insert(*network, *value);
        }
        table
    };
    let before = resident();
    let table = make();
    figures.add("ip_network_table resident memory", resident() - before, "MB", "");
    let (_, time) = built(make);
    figures.add("ip_network_table build", time, "milliseconds", "");
    let lookup4 = |address: u32| {
        table.longest_match_ipv4(Ipv4Addr::from_bits(address)).map_or(0, |(_, value)| *value)
    };
    let lookup6 = |address: u128| {
        table.longest_match_ipv6(Ipv6Addr::from_bits(address)).map_or(0, |(_, value)| *value)
    };
    figures.add("ip_network_table IPv4 lookup", single(&asked.v4, lookup4), "nanoseconds", "");
    figures.add("ip_network_table IPv6 lookup", single(&asked.v6, lookup6), "nanoseconds", "");
    (sum(&asked.v4, lookup4), sum(&asked.v6, lookup6))
}

/// With its own prefixes of a number and a length.
fn prefix_trie(figures: &mut Figures, routes: &[(IpNet, u32)], asked: &Addresses) -> (u64, u64) {
    println!("\nprefix-trie");
    let (v4, v6) = families(routes);
    let make = || {
        let first: PrefixMap<(u32, u8), u32> = v4.iter().copied().collect();
        let second: PrefixMap<(u128, u8), u32> = v6.iter().copied().collect();
        (first, second)
    };
    let before = resident();
    let (first, second) = make();
    figures.add("prefix-trie resident memory", resident() - before, "MB", "");
    let (_, time) = built(make);
    figures.add("prefix-trie build", time, "milliseconds", "");
    let lookup4 = |address: u32| first.get_lpm(&(address, 32)).map_or(0, |(_, value)| *value);
    let lookup6 = |address: u128| second.get_lpm(&(address, 128)).map_or(0, |(_, value)| *value);
    figures.add("prefix-trie IPv4 lookup", single(&asked.v4, lookup4), "nanoseconds", "");
    figures.add("prefix-trie IPv6 lookup", single(&asked.v6, lookup6), "nanoseconds", "");
    (sum(&asked.v4, lookup4), sum(&asked.v6, lookup6))
}

fn poptrie(figures: &mut Figures, routes: &[(IpNet, u32)], asked: &Addresses) -> (u64, u64) {
    println!("\npoptrie");
    let (v4, v6) = families(routes);
    let make = || {
        let first: Poptrie<(u32, u8), u32> = v4.iter().copied().collect();
        let second: Poptrie<(u128, u8), u32> = v6.iter().copied().collect();
        (first, second)
    };
    let before = resident();
    let (first, second) = make();
    figures.add("poptrie resident memory", resident() - before, "MB", "");
    let (_, time) = built(make);
    figures.add("poptrie build", time, "milliseconds", "");
    let lookup4 = |address: u32| first.lookup(address).map_or(0, |value| *value);
    let lookup6 = |address: u128| second.lookup(address).map_or(0, |value| *value);
    figures.add("poptrie IPv4 lookup", single(&asked.v4, lookup4), "nanoseconds", "");
    figures.add("poptrie IPv6 lookup", single(&asked.v6, lookup6), "nanoseconds", "");
    (sum(&asked.v4, lookup4), sum(&asked.v6, lookup6))
}

/// Prefixes as numbers and lengths, by family.
type Numbers<A> = Vec<((A, u8), u32)>;

fn families(routes: &[(IpNet, u32)]) -> (Numbers<u32>, Numbers<u128>) {
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for (prefix, value) in routes {
        match prefix {
            IpNet::V4(net) => v4.push(((net.addr().to_bits(), net.prefix_len()), *value)),
            IpNet::V6(net) => v6.push(((net.addr().to_bits(), net.prefix_len()), *value)),
        }
    }
    (v4, v6)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut random = Random::new(1);
    let routes: Vec<(IpNet, u32)> = realistic_table(1, ROUTES4, ROUTES6)
        .into_iter()
        .map(|prefix| (prefix, 1 + random.below(50_000) as u32))
        .collect();
    let asked = addresses(&mut random, &routes);
    println!(
        "{ROUTES4} IPv4 and {ROUTES6} IPv6 routes, {ADDRESSES} random hits; the fastest of {ROUNDS} rounds"
    );

    let mut figures = Figures::default();
    let ours = nigh(&mut figures, &routes, &asked);
    for theirs in [
        ip_network_table(&mut figures, &routes, &asked),
        prefix_trie(&mut figures, &routes, &asked),
        poptrie(&mut figures, &routes, &asked),
    ] {
        if theirs != ours {
            return Err("two tables do not give the same answers".into());
        }
    }
    figures.write()
}
