//! How long it takes until readers see a change: 1,000 routers, a million prefixes at three exits each.
//!
//! `make bench-topo`; it writes target/bench/topo.json. Everything here is on one thread, and times are
//! those that the thread spent on a core, so that whatever else the machine does counts little.

use splitmix::Random;
use std::{fs, hint::black_box};
use testbed::Figures;
use topo::{
    AsInterest, Builder, Change, ExternalPath, Feed, LinkProperties, Options, RouterId,
    RouterIndex, View,
    generate::{self, Network},
};

const V4: usize = 1_000_000;
const V6: usize = 200_000;
/// How often paths are found.
const ROUNDS: usize = 10;

/// Nanoseconds that this thread has spent on a core (proc(5), `schedstat`).
fn on_core() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).expect("/proc is mounted")
}

/// Milliseconds on a core since then.
fn since(start: u64) -> f64 {
    (on_core() - start) as f64 / 1e6
}

fn load(network: &Network, options: Options) -> Builder {
    let mut builder = Builder::new(options);
    for change in &network.changes {
        builder.apply(Feed::CONFIGURATION, change.clone()).expect("the network is sound");
    }
    builder
}

/// The mean time to find all paths from one of these routers.
fn trees(view: &View, of: &[RouterIndex]) -> f64 {
    let start = on_core();
    for _ in 0..ROUNDS {
        for &router in of {
            black_box(view.tree(router));
        }
    }
    since(start) / (ROUNDS * of.len()) as f64
}

/// The mean time of a snapshot after one change of that kind. The clock moves with the scheduler's tick,
/// so it is read around all of them.
fn after(
    builder: &mut Builder,
    times: usize,
    mut change: impl FnMut(usize) -> (Feed, Change),
) -> f64 {
    let start = on_core();
    for time in 0..times {
        let (feed, change) = change(time);
        builder.apply(feed, change).expect("a sound change");
        black_box(builder.view());
    }
    since(start) / times as f64
}

fn main() {
    let mut figures = Figures::new("topo");
    println!("\nThe network: 1,000 routers, {V4} IPv4 and {V6} IPv6 prefixes, three exits each\n");
    let prefixes = generate::realistic_table(1, V4, V6);
    let network = generate::mesh(1, 1_000, 12, prefixes.iter().copied());

    for (name, ases) in
        [("one AS as another", AsInterest::None), ("ASes distinguished", AsInterest::All)]
    {
        let options = Options { ases, ..Options::default() };
        let start = on_core();
        let mut builder = load(&network, options);
        figures.add(&format!("{name}: 3.6 million routes taken"), since(start), "ms", None);
        let start = on_core();
        let view = builder.view();
        let goal = Some("below 1,500");
        figures.add(&format!("{name}: first snapshot"), since(start), "ms", goal);
        figures.add(&format!("{name}: groups"), view.groups.len() as f64, "groups", None);
        let sets = builder.bytes() as f64 / f64::from(1 << 20);
        figures.add(&format!("{name}: memory without the table"), sets, "MiB", None);
        let table = view.table.bytes() as f64 / f64::from(1 << 20);
        figures.add(&format!("{name}: memory of the table"), table, "MiB", None);

        let mut random = Random::new(2);
        let exits = network.exits.clone();
        let route = |_| {
            let prefix = *random.pick(&prefixes).expect("there are prefixes");
            let exit = *random.pick(&exits).expect("there are exits");
            let path = ExternalPath { as_distance: 1 + random.below(8) as u16, as_number: 7 };
            (Feed(2), Change::Route { prefix, exit, path })
        };
        let taken = after(&mut builder, 21, route);
        figures.add(&format!("{name}: snapshot after one route"), taken, "ms", Some("below 100"));
        let key = view.graph.links()[0];
        let ids = |index: RouterIndex| view.graph.router(index).id;
        let key = topo::LinkKey { from: ids(key.from), to: ids(key.to), id: key.id };
        let link = |time: usize| {
            let properties = LinkProperties {
                bandwidth: 1.0,
                latency: time as f64,
                weight: 1 + time as u32,
                congestion: 0.0,
                loss: 0.0,
            };
            (Feed(2), Change::Link { key, properties })
        };
        let taken = after(&mut builder, 201, link);
        figures.add(&format!("{name}: snapshot after one link"), taken, "ms", None);
        let extra: RouterId = "192.0.2.1".parse().expect("an address");
        let taken = after(&mut builder, 4, |time| {
            let change = if time % 2 == 0 {
                Change::Router { id: extra, name: None }
            } else {
                Change::RemoveRouter(extra)
            };
            (Feed(2), change)
        });
        figures.add(&format!("{name}: snapshot after a router came or went"), taken, "ms", None);
        let start = on_core();
        builder.drop_feed(Feed::CONFIGURATION);
        black_box(builder.view());
        figures.add(&format!("{name}: a feed of all routes dropped"), since(start), "ms", None);
    }

    println!("\nShortest paths\n");
    for routers in [216, 1_000, 10_000] {
        let network =
            if routers == 216 { generate::hubs() } else { generate::mesh(1, routers, 12, []) };
        let view = load(&network, Options::default()).view();
        let some: Vec<_> = (0..routers as u32).step_by(routers / 100).map(RouterIndex).collect();
        let each = trees(&view, &some);
        figures.add(&format!("{routers} routers: paths from one to all"), each, "ms", None);
    }
    figures.write().expect("target/bench can be written");
}
