//! What more hosts cost: one pair is measured while the others are there and idle.

use crate::{ends::Failure, scenes};
use std::time::{Duration, Instant};
use testbed::Figures;

/// The one-way delay between two hosts.
const DELAY: Duration = Duration::from_millis(1);

/// Measures everything.
pub(crate) fn measure(figures: &mut Figures) -> Result<(), Failure> {
    println!("\nFrom 2 to 200 hosts, 1 ms in each direction");
    for hosts in [2, 20, 200] {
        let begin = Instant::now();
        let (mut lab, ends) = scenes::star(hosts, DELAY / 2)?;
        let seconds = begin.elapsed().as_secs_f64();
        let what = format!("{hosts} hosts");
        figures.add(&format!("{what}: start"), seconds, "seconds", None);
        let memory = resident(lab.process().pid())?;
        figures.add(&format!("{what}: memory of the process"), memory, "MB", None);
        figures.add(&format!("{what}: TCP of one pair"), ends.tcp(3)?, "Gbit/s", None);
        let times = ends.one_way(500, DELAY)?;
        let name = format!("{what}: excess one way, mean");
        figures.add(&name, times.mean, "microseconds", None);
    }
    Ok(())
}

/// Memory that a process has in use, in MB.
fn resident(process: u32) -> Result<f64, Failure> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()).ok_or("no VmRSS")?;
    Ok(kilobytes.parse::<f64>()? * 1024.0 / 1e6)
}
