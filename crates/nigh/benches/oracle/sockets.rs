//! Replies a second and round-trip times over sockets, beside a UDP echo that only echoes.
//!
//! With one thread the server is on one core and the generator on the other; with two, both share both
//! cores, as on a machine that does nothing else. A round is short, and the echo has its turn within
//! the same second as the oracle; the median of the rounds counts. Round-trip times are those of a few
//! regulated clients, far from saturation.

use crate::{
    generator,
    null_echo::NullEcho,
    stage::{ORACLE, SERVER, Stage, write},
};
use clap::Parser;
use oracle::client::{self, Command, summary::Times};
use std::{error::Error, net::SocketAddr, time::Duration};
use testbed::{Figures, Namespace, wait_until};
use topo::generate;

/// Candidates of a request, as in *The P2P-Oracle Server* and down to two.
const CANDIDATES: [usize; 7] = [2, 10, 50, 100, 200, 300, 363];
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_millis(400);
const NULL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(SERVER), 7);

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

/// What `nigh oracle load` reports with these words, from a namespace.
pub(crate) fn load(from: &Namespace, words: &str) -> Result<client::load::Report, Box<dyn Error>> {
    // The report's addresses belong to others, but here they are in namespaces of our own.
    let own = ["load", "load", "--json", "--allow", "130.149.0.0/16"];
    let line = Line::try_parse_from(own.into_iter().chain(words.split(' ')))?;
    let Command::Load(args) = line.command else { return Err("not a load".into()) };
    Ok(from.enter(|| client::load::load(&args))?)
}

/// Waits until the oracle ranks.
pub(crate) fn ready(from: &Namespace) -> Result<(), Box<dyn Error>> {
    let words = format!("--server {SERVER} --count 1 --timeout 100ms");
    let mut last = String::new();
    wait_until("the oracle", Duration::from_secs(60), || match load(from, &words) {
        Ok(report) => {
            last = report.to_string();
            report.total.replies == 1
        }
        Err(error) => {
            last = error.to_string();
            false
        }
    })
    .map_err(|error| format!("{error}; last: {last}"))?;
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Measures everything.
pub(crate) fn measure(figures: &mut Figures) -> Result<(), Box<dyn Error>> {
    let stage = Stage::build()?;
    let folder = tempfile::tempdir()?;
    let networks = [("10 routers", generate::ten()), ("216 routers", generate::hubs())];
    for (name, network) in &networks {
        let file = write(network, folder.path(), "network")?;
        for threads in [1, 2] {
            println!("\n{name}, {threads} of 2 cores answer");
            let more = format!("threads = {threads}\n[oracle.limit]\nrate = 0");
            let _oracle = stage.oracle(&file, &more)?;
            let _echo = stage.server.enter(|| NullEcho::start(NULL, threads))?;
            ready(&stage.client)?;
            for candidates in CANDIDATES {
                one(figures, &stage, name, threads, candidates)?;
            }
        }
    }
    Ok(())
}

fn one(
    figures: &mut Figures,
    stage: &Stage,
    network: &str,
    threads: usize,
    candidates: usize,
) -> Result<(), Box<dyn Error>> {
    let (mut oracle, mut null) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (server, rates) in [(ORACLE, &mut oracle), (NULL, &mut null)] {
            rates.push(
                stage
                    .client
                    .enter(|| generator::replies_per_second(server, candidates, threads, ROUND)),
            );
        }
    }
    let (oracle, null) = (median(oracle), median(null));
    let what = format!("{network}, {threads} threads, {candidates} candidates");
    let goal = (candidates == 100).then_some("0.8");
    figures.add(&format!("{what}: replies"), oracle, "replies a second", None);
    figures.add(&format!("{what}: null echo"), null, "replies a second", None);
    figures.add(&format!("{what}: oracle over null echo"), oracle / null, "times", goal);
    for (name, port) in [("RTT", 8899), ("null echo RTT", 7)] {
        let words = format!(
            "--server {SERVER} --port {port} --clients 8 --delay 1ms --count 200 --candidates \
             {candidates} --sync-start"
        );
        let report = load(&stage.client, &words)?;
        let times = report.total.rtt_ms.ok_or("no reply")?;
        let Times { mean, deviation, p99, .. } = times;
        for (kind, value) in [("mean", mean), ("deviation", deviation), ("p99", p99)] {
            figures.add(&format!("{what}: {name} {kind}"), value * 1e3, "microseconds", None);
        }
    }
    Ok(())
}
