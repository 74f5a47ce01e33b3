//! Rankings in process: `make bench-rank`.
//!
//! Networks of 216 routers (the hubs of *The P2P-Oracle Server*), 1,000 and 10,000 (meshes), each with a million IPv4 and
//! 200,000 IPv6 routes like those of the real internet. Candidates are drawn at random from inside
//! random prefixes, a new list for each ranking; one core, one thread. Requests come from one router, as
//! in the tests of *The P2P-Oracle Server*, and again from another random one each time, so that rows are
//! seldom in the cache.
//! Lists are measured some dozens at a time, all of them in turn and that many times; of each batch the
//! fastest time counts, as the others had company on the machine.
//!
//! Prints a table and writes target/bench/oracle-rank.json. Nothing here fails for being slow.
#![forbid(unsafe_code)]

use std::{error::Error, hint::black_box, sync::Arc, time::Instant};

use oracle::{
    metric::{DEFAULT_COST, Metric},
    rank::Ranker,
    tables::{Policy, Tables},
};
use splitmix::Random;
use testbed::Figures;
use topo::{
    Change, Feed, IpNet, Options, RouterIndex,
    generate::{self, Network, learned_routes, realistic_table},
};

const ROUTES4: usize = 1_000_000;
const ROUTES6: usize = 200_000;
/// Lists that are asked in turn: together they touch all of the tables.
const LISTS: usize = 4096;
const SIZES: [usize; 7] = [2, 10, 50, 100, 200, 300, 363];
/// How often all is measured.
const ROUNDS: usize = 30;
/// Lists that are measured together.
const BATCH: usize = 32;

struct Question {
    /// Another router each time.
    any: Option<RouterIndex>,
    candidates: Vec<[u8; 4]>,
}

fn questions(
    random: &mut Random,
    tables: &Tables,
    prefixes: &[IpNet],
    size: usize,
) -> Vec<Question> {
    let address = |random: &mut Random| loop {
        if let Some(IpNet::V4(net)) = random.pick(prefixes) {
            let host = random.bits() as u32 & u32::from(net.hostmask());
            return (u32::from(net.network()) | host).to_be_bytes();
        }
    };
    (0..LISTS * 100 / size.max(100))
        .map(|_| Question {
            any: random.pick(tables.view.sources()).copied(),
            candidates: (0..size).map(|_| address(random)).collect(),
        })
        .collect()
}

/// The fastest time of each batch of lists so far.
struct Times(Vec<f64>);

impl Times {
    fn new(lists: usize) -> Self {
        Self(vec![f64::INFINITY; lists.div_ceil(BATCH)])
    }

    /// Measures what `f` does with each list.
    fn round(&mut self, questions: &[Question], mut f: impl FnMut(&Question)) {
        for (fastest, batch) in self.0.iter_mut().zip(questions.chunks(BATCH)) {
            let start = Instant::now();
            batch.iter().for_each(&mut f);
            *fastest = fastest.min(start.elapsed().as_nanos() as f64);
        }
    }

    /// Nanoseconds a list.
    fn each(&self, lists: usize) -> f64 {
        self.0.iter().sum::<f64>() / lists as f64
    }
}

fn network(routers: usize, prefixes: &[IpNet]) -> Network {
    if routers != 216 {
        return generate::mesh(7, routers, 8, prefixes.iter().copied());
    }
    let mut network = generate::hubs();
    network.changes.retain(|change| !matches!(change, Change::Route { .. }));
    let routes: Vec<_> = learned_routes(7, prefixes.iter().copied(), &network.exits, 3).collect();
    network.changes.extend(routes);
    network
}

fn policy() -> Result<Arc<Policy>, Box<dyn Error>> {
    let metrics = vec![Metric::compile("default", DEFAULT_COST)?];
    Ok(Arc::new(Policy { metrics, ..Policy::default() }))
}

fn measure(
    figures: &mut Figures,
    routers: usize,
    prefixes: &[IpNet],
) -> Result<(), Box<dyn Error>> {
    let of = format!("{routers} routers");
    let mut builder = network(routers, prefixes).builder(Options::default());
    let start = Instant::now();
    let view = builder.view();
    let made = Instant::now();
    let tables = Tables::build(view, policy()?, None);
    let built = made.elapsed();
    figures.add(&format!("{of}: snapshot"), (made - start).as_secs_f64(), "s", None);
    let goal = (routers == 1000).then_some("3 s at most");
    figures.add(&format!("{of}: all rows"), built.as_secs_f64(), "s", goal);
    let (rows, bytes) = tables.size();
    figures.add(&format!("{of}: rows"), rows as f64, "", None);
    figures.add(&format!("{of}: memory of rows"), bytes as f64 / 1e6, "MB", None);
    figures.add(&format!("{of}: groups"), tables.view.groups.len() as f64, "", None);
    let row = tables.row(0, tables.view.sources().first().copied());
    figures.add(&format!("{of}: ranks in a row"), row.distinct() as f64, "", None);

    // A route moves to another group: all rows are kept. A new group: rows are extended.
    let route = builder.topology().routes().next();
    if let Some((prefix, exit, path)) = route {
        builder.apply(Feed::OPERATOR, Change::Route { prefix, exit, path })?;
        let start = Instant::now();
        let view = builder.view();
        let made = Instant::now();
        let next = Tables::build(view, Arc::clone(&tables.policy), Some(&tables));
        let built = made.elapsed();
        black_box(next);
        figures.add(
            &format!("{of}: snapshot after a change"),
            (made - start).as_secs_f64(),
            "s",
            None,
        );
        figures.add(&format!("{of}: rows after a change"), built.as_secs_f64(), "s", None);
    }

    let mut random = Random::new(9);
    let asked = SIZES.map(|size| questions(&mut random, &tables, prefixes, size));
    let mut ranker = Ranker::default();
    let one = tables.view.sources().first().copied();
    let mut whole = asked.each_ref().map(|questions| Times::new(questions.len()));
    let mut anywhere = asked.each_ref().map(|questions| Times::new(questions.len()));
    let mut lookups = asked.each_ref().map(|questions| Times::new(questions.len()));
    let mut groups = vec![0; 363];
    for _ in 0..ROUNDS {
        for (at, questions) in asked.iter().enumerate() {
            let mut reply = vec![[0; 4]; SIZES[at]];
            whole[at].round(questions, |question| {
                reply.copy_from_slice(&question.candidates);
                ranker.rank4(&tables, 0, one, &mut reply);
                black_box(&reply);
            });
            anywhere[at].round(questions, |question| {
                reply.copy_from_slice(&question.candidates);
                ranker.rank4(&tables, 0, question.any, &mut reply);
                black_box(&reply);
            });
            let mut addresses = vec![0; SIZES[at]];
            lookups[at].round(questions, |question| {
                for (to, from) in addresses.iter_mut().zip(&question.candidates) {
                    *to = u32::from_be_bytes(*from);
                }
                tables.view.table.lookup4_batch(&addresses, &mut groups[..SIZES[at]]);
                black_box(&groups);
            });
        }
    }
    for (at, size) in SIZES.into_iter().enumerate() {
        let [whole, anywhere, lookups] =
            [&whole, &anywhere, &lookups].map(|times| times[at].each(asked[at].len()));
        let goal = (size == 100).then_some("1 000 000");
        let name = format!("{of}: rankings of {size} candidates");
        figures.add(&name, 1e9 / whole, "a second", goal);
        figures.add(&format!("{of}: {size} candidates"), whole, "ns", None);
        let name = format!("{of}: {size} candidates, from any router");
        figures.add(&name, anywhere, "ns", None);
        let name = format!("{of}: {size} candidates, of it lookups");
        figures.add(&name, lookups, "ns", None);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let only = std::env::args().nth(1).and_then(|word| word.parse::<usize>().ok());
    let prefixes = realistic_table(1, ROUTES4, ROUTES6);
    let mut figures = Figures::new("oracle-rank");
    for routers in [216, 1000, 10_000] {
        if only.is_none_or(|only| only == routers) {
            measure(&mut figures, routers, &prefixes)?;
        }
    }
    figures.write()?;
    Ok(())
}
