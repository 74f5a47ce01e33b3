//! Longest-prefix match beside three crates, in one run: `make bench-lpm`.
//!
//! A million IPv4 and 200,000 IPv6 prefixes like those of the real internet; a random value each,
//! so that no two neighbours become one; addresses drawn at random from inside random prefixes.
//! All tables get the same prefixes and addresses and must give the same answers.
//!
//! Prints a table and writes target/bench/lpm.json, an array of `{name, value, unit}`. Nothing here
//! fails for being slow.
#![forbid(unsafe_code)]

use ip_network::{IpNetwork, IpNetworkError, Ipv4Network, Ipv6Network};
use ip_network_table::IpNetworkTable;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use poptrie::Poptrie;
use prefix_trie::PrefixMap;
use serde_json::json;
use splitmix::Random;
use std::{
    error::Error,
    hint::black_box,
    net::{Ipv4Addr, Ipv6Addr},
    path::Path,
    time::Instant,
};
use topo::{generate::realistic_table, lpm::Table};

const ROUTES4: usize = 1_000_000;
const ROUTES6: usize = 200_000;
/// Addresses a family and round: enough to touch nearly all of a table, and few enough not to push it
/// out of the caches themselves.
const ADDRESSES: usize = 1 << 18;
/// A request's candidates.
const CANDIDATES: usize = 100;
/// The addresses are measured in so many slices: short, so that some are left undisturbed on a machine
/// that has other work.
const SLICES: usize = 64;
/// Everything is measured in turn, so many times; of each slice the fastest time counts, as the others
/// had company on the machine.
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

/// Something to measure: its name, what takes the time of a slice in nanoseconds a lookup, and what
/// should be reached.
struct Contest<'t> {
    name: String,
    run: Box<dyn Fn(usize) -> f64 + 't>,
    goal: &'static str,
}

/// Runs all in turn, so that none has a quieter machine than the others, each over all addresses to
/// warm up and once more for its times.
fn compete(figures: &mut Figures, contests: &[Contest<'_>]) {
    let mut best = vec![[f64::INFINITY; SLICES]; contests.len()];
    for _ in 0..ROUNDS {
        for (best, contest) in best.iter_mut().zip(contests) {
            for slice in 0..SLICES {
                (contest.run)(slice);
            }
            for (slice, best) in best.iter_mut().enumerate() {
                *best = best.min((contest.run)(slice));
            }
        }
    }
    for (best, contest) in best.into_iter().zip(contests) {
        let mean = best.iter().sum::<f64>() / SLICES as f64;
        figures.add(&contest.name, mean, "nanoseconds", contest.goal);
    }
}

/// One of the slices.
fn slice<A>(addresses: &[A], slice: usize) -> &[A] {
    let count = addresses.len() / SLICES;
    &addresses[slice * count..][..count]
}

/// Nanoseconds a lookup, one after another in a loop; they do not depend on each other.
fn single<'t, A: Copy>(
    name: &str,
    goal: &'static str,
    addresses: &'t [A],
    lookup: impl Fn(A) -> u32 + 't,
) -> Contest<'t> {
    let run = Box::new(move |at| {
        let addresses = slice(addresses, at);
        let begun = Instant::now();
        for &address in addresses {
            black_box(lookup(black_box(address)));
        }
        begun.elapsed().as_nanos() as f64 / addresses.len() as f64
    });
    Contest { name: name.to_owned(), run, goal }
}

/// Nanoseconds a lookup, in lists as long as a request's.
fn batched<'t, A>(
    name: &str,
    goal: &'static str,
    addresses: &'t [A],
    lookup: impl Fn(&[A], &mut [u32]) + 't,
) -> Contest<'t> {
    let run = Box::new(move |at| {
        let addresses = slice(addresses, at);
        let mut values = [0; CANDIDATES];
        let begun = Instant::now();
        for addresses in addresses.chunks_exact(CANDIDATES) {
            lookup(black_box(addresses), black_box(&mut values));
        }
        begun.elapsed().as_nanos() as f64 / (addresses.len() / CANDIDATES * CANDIDATES) as f64
    });
    Contest { name: name.to_owned(), run, goal }
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

/// What it takes to make our tables, and how large they are.
fn nigh(figures: &mut Figures, routes: &[(IpNet, u32)], shuffled: &[(IpNet, u32)]) -> [Table; 2] {
    println!("\nnigh");
    let (table, time) = built(|| Table::build(routes.iter().copied()));
    figures.add("nigh build of sorted routes", time, "milliseconds", "500");
    let (_, time) = built(|| Table::build(shuffled.iter().copied()));
    figures.add("nigh build of shuffled routes", time, "milliseconds", "500");
    for (family, at) in [("IPv4", ROUTES4 / 2), ("IPv6", ROUTES4 + ROUTES6 / 2)] {
        let (prefix, value) = routes[at];
        let (_, time) = built(|| table.patched([(prefix, Some(value + 1))]));
        figures.add(&format!("nigh patch of one {family} route"), time, "milliseconds", "1000");
    }
    let wide = Table::build(routes.iter().map(|(prefix, value)| (*prefix, *value + 65_536)));
    for (name, table) in [("nigh", &table), ("nigh wide", &wide)] {
        let memory = table.memory();
        for (part, bytes, goal) in [
            ("IPv4 trie", memory.trie4, ""),
            ("IPv6 blocks", memory.blocks6, ""),
            ("IPv4 list", memory.list4, ""),
            ("IPv6 list", memory.list6, ""),
            ("without the lists", memory.trie4 + memory.blocks6, "25"),
            ("all", table.bytes(), "25"),
        ] {
            figures.add(&format!("{name} memory, {part}"), bytes as f64 / 1e6, "MB", goal);
        }
    }
    [table, wide]
}

/// Makes one of the other tables; its memory is what the process has grown by.
fn other<T>(figures: &mut Figures, name: &str, make: impl Fn() -> T) -> T {
    println!("\n{name}");
    let before = resident();
    let first = make();
    figures.add(&format!("{name} memory, resident"), resident() - before, "MB", "");
    let (_, time) = built(make);
    figures.add(&format!("{name} build of sorted routes"), time, "milliseconds", "");
    first
}

/// A prefix as that crate has it.
fn network(prefix: IpNet) -> Result<IpNetwork, IpNetworkError> {
    Ok(match prefix {
        IpNet::V4(net) => Ipv4Network::new(net.addr(), net.prefix_len())?.into(),
        IpNet::V6(net) => Ipv6Network::new(net.addr(), net.prefix_len())?.into(),
    })
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
    let Addresses { v4, v6 } = addresses(&mut random, &routes);
    let mut shuffled = routes.clone();
    for index in (1..shuffled.len()).rev() {
        shuffled.swap(index, random.below(index as u64 + 1) as usize);
    }
    let prefixes: Vec<IpNet> = shuffled.iter().take(ADDRESSES).map(|(prefix, _)| *prefix).collect();
    let networks = routes
        .iter()
        .map(|(prefix, value)| Ok((network(*prefix)?, *value)))
        .collect::<Result<Vec<_>, IpNetworkError>>()?;
    let (numbers4, numbers6) = families(&routes);
    println!(
        "{ROUTES4} IPv4 and {ROUTES6} IPv6 routes, the fastest of {ROUNDS} rounds, slice by slice"
    );

    let mut figures = Figures::default();
    let (trie4, trie6) = other(&mut figures, "prefix-trie", || {
        let first: PrefixMap<(u32, u8), u32> = numbers4.iter().copied().collect();
        let second: PrefixMap<(u128, u8), u32> = numbers6.iter().copied().collect();
        (first, second)
    });
    let bitmap = other(&mut figures, "ip_network_table", || {
        let mut table = IpNetworkTable::with_capacity(ROUTES4, ROUTES6);
        for (network, value) in &networks {
            table.insert(*network, *value);
        }
        table
    });
    let (poptrie4, poptrie6) = other(&mut figures, "poptrie", || {
        let first: Poptrie<(u32, u8), u32> = numbers4.iter().copied().collect();
        let second: Poptrie<(u128, u8), u32> = numbers6.iter().copied().collect();
        (first, second)
    });
    let [table, wide] = nigh(&mut figures, &routes, &shuffled);

    let bitmap4 =
        |ip: u32| bitmap.longest_match_ipv4(Ipv4Addr::from_bits(ip)).map_or(0, |found| *found.1);
    let bitmap6 =
        |ip: u128| bitmap.longest_match_ipv6(Ipv6Addr::from_bits(ip)).map_or(0, |found| *found.1);
    let trie4 = |ip: u32| trie4.get_lpm(&(ip, 32)).map_or(0, |found| *found.1);
    let trie6 = |ip: u128| trie6.get_lpm(&(ip, 128)).map_or(0, |found| *found.1);
    let poptrie4 = |ip: u32| poptrie4.lookup(ip).map_or(0, |value| *value);
    let poptrie6 = |ip: u128| poptrie6.lookup(ip).map_or(0, |value| *value);
    for &ip in &v4 {
        let expected = table.lookup4(ip);
        if [bitmap4(ip), trie4(ip), poptrie4(ip), wide.lookup4(ip) - 65_536] != [expected; 4] {
            return Err(format!("not all answers are the same for {ip:#x}").into());
        }
    }
    for &ip in &v6 {
        let expected = table.lookup6(ip);
        if [bitmap6(ip), trie6(ip), poptrie6(ip), wide.lookup6(ip) - 65_536] != [expected; 4] {
            return Err(format!("not all answers are the same for {ip:#x}").into());
        }
    }

    println!("\nLookups");
    let (table, wide) = (&table, &wide);
    let contests = [
        single("nigh IPv4 lookup", "10", &v4, |ip| table.lookup4(ip)),
        batched("nigh IPv4 lookup, lists of 100", "5", &v4, |ips, values| {
            table.lookup4_batch(ips, values);
        }),
        single("nigh wide IPv4 lookup", "10", &v4, |ip| wide.lookup4(ip)),
        batched("nigh wide IPv4 lookup, lists of 100", "5", &v4, |ips, values| {
            wide.lookup4_batch(ips, values);
        }),
        single("poptrie IPv4 lookup", "", &v4, poptrie4),
        single("ip_network_table IPv4 lookup", "", &v4, bitmap4),
        single("prefix-trie IPv4 lookup", "", &v4, trie4),
        single("nigh IPv6 lookup", "15", &v6, |ip| table.lookup6(ip)),
        batched("nigh IPv6 lookup, lists of 100", "15", &v6, |ips, values| {
            table.lookup6_batch(ips, values);
        }),
        single("nigh wide IPv6 lookup", "15", &v6, |ip| wide.lookup6(ip)),
        batched("nigh wide IPv6 lookup, lists of 100", "15", &v6, |ips, values| {
            wide.lookup6_batch(ips, values);
        }),
        single("poptrie IPv6 lookup", "", &v6, poptrie6),
        single("ip_network_table IPv6 lookup", "", &v6, bitmap6),
        single("prefix-trie IPv6 lookup", "", &v6, trie6),
        single("nigh covering", "", &prefixes, |prefix| table.covering(prefix)),
    ];
    compete(&mut figures, &contests);
    figures.write()
}
