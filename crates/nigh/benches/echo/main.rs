//! What the responder can do, in one run: `make bench-echo`.
//!
//! - the cost of a packet by BPF_PROG_TEST_RUN, against a program that only swaps MAC addresses;
//! - replies a second, against the kernel's own echo under the same in-kernel generator;
//! - the time from a fault to the UPDATE on the wire that withdraws the prefix;
//! - what a drain loses of the pings that run through it.
//!
//! Prints a table and writes target/bench/echo.json, an array of `{name, value, unit}`. Nothing here
//! fails for being slow; it needs root, for the namespaces.
#![forbid(unsafe_code)]

mod drain;
mod faults;
mod replies;

use std::error::Error;
use testbed::Figures;

/// The program under test.
pub(crate) const NIGH: &str = env!("CARGO_BIN_EXE_nigh");

fn costs(figures: &mut Figures) -> Result<(), Box<dyn Error>> {
    println!("\nOne packet of 60 bytes, by BPF_PROG_TEST_RUN");
    let costs = datapath::bench::nanoseconds_a_packet()?;
    for cost in &costs {
        figures.add(cost.name, cost.ns, "nanoseconds", None);
    }
    let of = |name: &str| costs.iter().find(|cost| cost.name == name).map(|cost| cost.ns);
    let bare = of("bare MAC swap").ok_or("no figure of the bare program")?;
    for (name, program, goal) in [
        ("without limits, times the bare program", "responder without limits", "1.15"),
        ("with limits, times the bare program", "responder with limits", "1.5"),
    ] {
        let ns = of(program).ok_or("no figure of the responder")?;
        figures.add(name, ns / bare, "times", Some(goal));
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    testbed::need_root();
    let mut figures = Figures::new("echo");
    costs(&mut figures)?;
    replies::measure(&mut figures)?;
    faults::measure(&mut figures)?;
    drain::measure(&mut figures)?;
    figures.write()?;
    Ok(())
}
