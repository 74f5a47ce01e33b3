//! What large networks take: memory, time to build and to open, and the first path through them.
//!
//! `make bench-lab-memory`; it writes target/bench/lab-memory.json. `LAB_NODES=100000000` adds an
//! internet of that size: 100 million routers take some minutes, 6 GB of memory
//! and as much disk.
//!
//! Each network is made in a process of its own, which then says what it holds (VmRSS) beyond what it
//! held when it began, and what it held at most (VmHWM). Times are those that the thread spent on a
//! core, so that whatever else the machine does counts little; opening is timed by the clock.

use lab::generate::Generate;
use lab::network::{Builder, Kind, KindId, Network, Relation};
use lab::{LinkId, LinkSettings, Nanos, NodeId, RouteMode, RoutePolicy, Router};
use nix::time::ClockId;
use serde::{Deserialize, Serialize};
use splitmix::Random;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testbed::Figures;
use topo::{IpNet, Ipv4Net};

const MILLION: u32 = 1_000_000;
/// What a router may keep of the next hops that it found.
const CACHE: usize = 8 << 20;
/// How many first paths are timed.
const PATHS: usize = 2_000;
/// And of those that take long, by distance through an internet.
const FEW_PATHS: usize = 100;

/// What one process measured.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Report {
    links: u32,
    entries: u64,
    /// Bytes of the network's arrays, which are its file.
    bytes: u64,
    /// Seconds to make or open it.
    seconds: f64,
    /// Megabytes (of 1,000,000 bytes) that the process held beyond those at its beginning, when the
    /// network was there.
    holds: f64,
    /// And when paths had been found through it.
    with_paths: f64,
    /// And at most.
    at_most: f64,
    /// Milliseconds for a first path: the median, p99 and the longest.
    paths: [f64; 3],
    /// Links of a path.
    hops: f64,
}

/// A line of /proc/self/status, in megabytes.
fn status(name: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kibibytes.expect("/proc is mounted") * 1024.0 / 1e6
}

/// How long this thread has been on a core.
fn on_core() -> Duration {
    Duration::from(ClockId::CLOCK_THREAD_CPUTIME_ID.now().expect("threads have a clock"))
}

/// About five links a node: most of a small degree, some very large.
fn internet(nodes: u32) -> Generate {
    Generate { nodes, providers: 2.6, peers: 7.5, stub_routers: 1.4, ..Generate::default() }
}

/// Random networks come from here: each node linked to the next one, and others between any two.
fn scatter(builder: &mut Builder, edges: u32) -> Result<Vec<lab::network::Draft>, Box<dyn Error>> {
    let mut random = Random::new(1);
    let kinds: Vec<KindId> = (1..=200)
        .map(|step| {
            let delay = Nanos(step * 500_000);
            let settings = LinkSettings { delay, ..LinkSettings::default() };
            builder.kind(&Kind { settings, weight: step as u32, relation: Relation::None })
        })
        .collect::<Result<_, _>>()?;
    builder.unnamed(MILLION)?;
    builder.reserve(edges as usize);
    let mut drafts = Vec::with_capacity(MILLION as usize);
    for edge in 0..edges {
        let a = if edge < MILLION { edge } else { random.below(MILLION.into()) as u32 };
        let b =
            if edge < MILLION { (edge + 1) % MILLION } else { random.below(MILLION.into()) as u32 };
        let kind = kinds[random.below(200) as usize];
        if a != b {
            let draft = builder.join(NodeId(a), NodeId(b), kind, kind)?[0];
            if edge < MILLION {
                drafts.push(draft);
            }
        }
    }
    Ok(drafts)
}

/// A million nodes with five links each, added link by link.
fn built() -> Result<Network, Box<dyn Error>> {
    let mut builder = Builder::new();
    scatter(&mut builder, MILLION * 5 / 2)?;
    Ok(builder.finish()?)
}

/// A million nodes with two or three links and five forwarding entries each.
fn tables() -> Result<Network, Box<dyn Error>> {
    let mut builder = Builder::new();
    let drafts = scatter(&mut builder, MILLION * 5 / 4)?;
    let mut random = Random::new(2);
    for (node, &draft) in (0..).map(NodeId).zip(&drafts) {
        for length in [16, 18, 20, 22, 24] {
            let prefix = Ipv4Net::new(Ipv4Addr::from_bits(random.bits() as u32), length)?;
            builder.entry(node, IpNet::from(prefix), draft)?;
        }
    }
    Ok(builder.finish()?)
}

/// First paths between any two nodes.
fn paths(network: &Network, mode: RouteMode, count: usize, report: &mut Report) {
    let mut random = Random::new(3);
    let mut router = Router::new(RoutePolicy { mode, ecmp: true }, CACHE);
    let mut any = || NodeId(random.below(network.nodes().into()) as u32);
    let mut path: Vec<LinkId> = Vec::new();
    let mut times = Vec::with_capacity(count);
    let mut hops = 0;
    for number in 0..count {
        let (from, to) = (any(), any());
        let address = network.address4(to).unwrap_or(Ipv4Addr::UNSPECIFIED);
        let start = on_core();
        let found = router.path(network, from, to, IpAddr::V4(address), number as u32, &mut path);
        times.push((on_core() - start).as_secs_f64() * 1e3);
        assert!(found.is_ok(), "{from:?} does not reach {to:?}");
        hops += path.len();
    }
    times.sort_unstable_by(f64::total_cmp);
    report.paths = [times[count / 2], times[count * 99 / 100], times[count - 1]];
    report.hops = hops as f64 / count as f64;
    report.with_paths = status("VmRSS");
    drop(router);
}

/// What a process of its own does.
fn measure(what: &str, file: &Path) -> Result<(), Box<dyn Error>> {
    let before = status("VmRSS");
    let (start, clock) = (on_core(), Instant::now());
    let network = match what {
        "built" => built()?,
        "tables" => tables()?,
        "open" | "shortest" => Network::open(file)?,
        nodes => internet(nodes.parse()?).make(&mut |_| ())?,
    };
    let mut report = Report {
        links: network.links(),
        entries: network.entries(),
        bytes: network.bytes(),
        seconds: (on_core() - start).as_secs_f64(),
        holds: status("VmRSS"),
        ..Report::default()
    };
    if what == "open" {
        report.seconds = clock.elapsed().as_secs_f64();
    }
    match what {
        "tables" => report.with_paths = report.holds,
        "built" => paths(&network, RouteMode::Shortest, PATHS, &mut report),
        "shortest" => paths(&network, RouteMode::Shortest, FEW_PATHS, &mut report),
        _ => paths(&network, RouteMode::ValleyFree, PATHS, &mut report),
    }
    report.at_most = status("VmHWM") - before;
    report.holds -= before;
    report.with_paths -= before;
    println!("{}", serde_json::to_string(&report)?);
    if what.starts_with(|first: char| first.is_ascii_digit()) {
        network.save(file)?;
    }
    Ok(())
}

/// Has it measured in a process of its own.
fn ask(what: &str, file: &Path) -> Result<Report, Box<dyn Error>> {
    let child = Command::new(std::env::current_exe()?)
        .args([what.as_ref(), file.as_os_str()])
        .stderr(Stdio::inherit())
        .output()?;
    if !child.status.success() {
        return Err(format!("{what}: {}", child.status).into());
    }
    Ok(serde_json::from_slice(&child.stdout)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    if let (Some(what), Some(file)) = (arguments.next(), arguments.next()) {
        return measure(&what, file.as_ref());
    }

    let folder = tempfile::tempdir()?;
    let file = folder.path().join("internet.nigh");
    let mut figures = Figures::new("lab-memory");
    let mut show =
        |title: &str, report: &Report, nodes: u32, [memory, time]: [Option<&'static str>; 2]| {
            println!("\n{title}\n");
            let each = f64::from(report.links) / f64::from(nodes);
            figures.add(&format!("{title}: links a node"), each, "links", None);
            if report.entries > 0 {
                let each = report.entries as f64 / f64::from(nodes);
                figures.add(&format!("{title}: entries a node"), each, "entries", None);
            }
            figures.add(&format!("{title}: file"), report.bytes as f64 / 1e6, "MB", None);
            figures.add(&format!("{title}: memory"), report.holds, "MB", None);
            figures.add(&format!("{title}: memory, paths found"), report.with_paths, "MB", memory);
            figures.add(&format!("{title}: memory at most"), report.at_most, "MB", None);
            figures.add(&format!("{title}: time until it is there"), report.seconds, "s", time);
            if report.hops > 0.0 {
                let [median, high, most] = report.paths;
                figures.add(&format!("{title}: links of a path"), report.hops, "links", None);
                figures.add(&format!("{title}: first path, median"), median, "ms", None);
                figures.add(&format!("{title}: first path, p99"), high, "ms", None);
                figures.add(&format!("{title}: first path, longest"), most, "ms", None);
            }
        };
    let goals = [Some("at most 60"), Some("below 10")];
    let million = MILLION.to_string();
    show("internet", &ask(&million, &file)?, MILLION, goals);
    show("internet, opened", &ask("open", &file)?, MILLION, [goals[0], Some("below 1")]);
    show("internet, shortest paths", &ask("shortest", &file)?, MILLION, [goals[0], None]);
    show("five links each", &ask("built", &file)?, MILLION, goals);
    show("five entries each", &ask("tables", &file)?, MILLION, goals);
    if let Ok(nodes) = std::env::var("LAB_NODES") {
        let title = format!("internet of {nodes}");
        show(&title, &ask(&nodes, &file)?, nodes.parse()?, [Some("6,000 for 100 million"), None]);
        let title = format!("internet of {nodes}, opened");
        show(&title, &ask("open", &file)?, nodes.parse()?, [None; 2]);
    }
    figures.write()?;
    Ok(())
}
