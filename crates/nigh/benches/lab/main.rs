//! What the lab can do, in one run: `make bench-lab`.
//!
//! - in process: nanoseconds for what happens to a packet on a link, and for a segment of a super-packet;
//! - TCP, packets of 60 bytes and by how much packets are late through 10 ms in each direction, beside rattan
//!   where it is installed;
//! - 32 hops beside one, and beside a chain of 32 namespaces;
//! - the measure of *A Kernel-Driven Framework for High Performance Internet Routing Simulation*: 128 MB
//!   over TCP in writes of 1,024 bytes;
//! - what more hosts cost, from 2 to 200.
//!
//! Each peer runs in the same minutes as the lab, with the same programs in namespaces of the same
//! settings. A peer that is not there is named as skipped. Nothing here fails for being slow. (ns-3 is not
//! among them: its wheel compiles cppyy from source, for longer than all of this takes.)
#![forbid(unsafe_code)]

mod delays;
mod ends;
mod hosts;
mod inside;
mod peers;
mod scenes;

use delays::Times;
use ends::{Ends, Failure};
use std::time::Duration;
use testbed::Figures;

/// The program under test.
pub(crate) const NIGH: &str = env!("CARGO_BIN_EXE_nigh");
/// The one-way delay of the network, in the comparisons with peers.
const DELAY: Duration = Duration::from_millis(10);

/// What is measured of the lab and of a peer.
struct Measured {
    gigabits: f64,
    packets: f64,
    times: Times,
}

/// TCP, small packets and round-trip times between two ends.
fn measure(figures: &mut Figures, name: &str, ends: &Ends) -> Result<Measured, Failure> {
    let gigabits = ends.tcp(4)?;
    let goal = (name == "lab").then_some("10");
    figures.add(&format!("{name}: TCP through 10 ms each way"), gigabits, "Gbit/s", goal);
    let packets = ends.small_packets(Duration::from_secs(2))?;
    figures.add(&format!("{name}: packets of 60 bytes"), packets, "packets a second", None);
    let times = ends.one_way(1_000, DELAY)?;
    let goal = (name == "lab").then_some("20");
    figures.add(&format!("{name}: excess one way, mean"), times.mean, "microseconds", goal);
    figures.add(&format!("{name}: excess one way, p50"), times.p50, "microseconds", None);
    figures.add(&format!("{name}: excess one way, p99"), times.p99, "microseconds", None);
    let round = ends.round_trips(1_000, 2 * DELAY)?;
    figures.add(&format!("{name}: excess of round trips, mean"), round.mean, "microseconds", None);
    figures.add(&format!("{name}: excess of round trips, p50"), round.p50, "microseconds", None);
    figures.add(&format!("{name}: excess of round trips, p99"), round.p99, "microseconds", None);
    Ok(Measured { gigabits, packets, times })
}

/// The lab and the peers that carry packets through a delay.
fn beside_peers(figures: &mut Figures) -> Result<(), Failure> {
    println!("\nTwo hosts, 10 ms each way");
    let lab = {
        let (_lab, ends) = scenes::chain(1, DELAY)?;
        measure(figures, "lab", &ends)?
    };
    match peers::rattan(DELAY)? {
        Err(why) => println!("  rattan: skipped: {why}"),
        Ok((_rattan, ends)) => {
            let rattan = measure(figures, "rattan", &ends)?;
            let tcp = lab.gigabits / rattan.gigabits;
            figures.add("TCP, times rattan", tcp, "times", Some("10"));
            let small = lab.packets / rattan.packets;
            figures.add("packets of 60 bytes, times rattan", small, "times", None);
            let mean = rattan.times.mean / lab.times.mean;
            figures.add("mean excess, times smaller than rattan's", mean, "times", Some("7"));
        }
    }
    Ok(())
}

/// A path of 32 links beside one of a single link, and 32 namespaces that are real routers.
fn hops(figures: &mut Figures) -> Result<(), Failure> {
    println!("\n32 hops beside one");
    let (mut one, mut many) = (Vec::new(), Vec::new());
    // In turns: what disturbs one disturbs the other too.
    for _ in 0..3 {
        for (hops, rates) in [(1u32, &mut one), (32, &mut many)] {
            let (_lab, ends) = scenes::chain(hops, DELAY / hops)?;
            rates.push(ends.tcp(3)?);
        }
    }
    let (one, many) = (median(one), median(many));
    figures.add("lab: TCP over 1 hop of 10 ms", one, "Gbit/s", None);
    figures.add("lab: TCP over 32 hops, 10 ms together", many, "Gbit/s", None);
    figures.add("lab: 32 hops beside 1", many * 100.0 / one, "percent", Some("90"));
    let without = {
        let (_lab, ends) = scenes::chain(32, Duration::ZERO)?;
        ends.tcp(3)?
    };
    figures.add("lab: TCP over 32 hops without delay", without, "Gbit/s", None);
    let (_chain, ends) = peers::namespaces(32)?;
    let chain = ends.tcp(3)?;
    figures.add("chain of 32 namespaces: TCP", chain, "Gbit/s", None);
    figures.add("32 hops without delay, times the chain", without / chain, "times", None);
    Ok(())
}

/// *A Kernel-Driven Framework for High Performance Internet Routing Simulation*, section IV.B: 128 MB over
/// TCP in writes of 1,024 bytes took 1.295 s.
fn upload(figures: &mut Figures) -> Result<(), Failure> {
    println!("\n128 MB over TCP in writes of 1,024 bytes, 8 hops");
    let (_lab, ends) = scenes::chain(8, Duration::ZERO)?;
    let mut seconds = Vec::new();
    for _ in 0..5 {
        seconds.push(ends.upload(128 << 20, 1_024)?);
    }
    figures.add("lab: 128 MB", median(seconds), "seconds", Some("below the paper's 1.295"));
    Ok(())
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn main() -> Result<(), Failure> {
    testbed::need_root();
    let mut figures = Figures::new("lab");
    inside::measure(&mut figures);
    beside_peers(&mut figures)?;
    hops(&mut figures)?;
    upload(&mut figures)?;
    hosts::measure(&mut figures)?;
    figures.write()?;
    Ok(())
}
