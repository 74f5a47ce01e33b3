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

use serde::Serialize;
use std::{error::Error, path::Path};

/// The program under test.
pub(crate) const NIGH: &str = env!("CARGO_BIN_EXE_nigh");

/// One measured value.
#[derive(Debug, Serialize)]
struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
}

/// All that was measured so far.
#[derive(Debug, Default)]
pub(crate) struct Figures(Vec<Figure>);

impl Figures {
    /// Adds a value and prints it, with what it should reach.
    pub(crate) fn add(
        &mut self,
        name: &str,
        value: f64,
        unit: &'static str,
        goal: Option<&'static str>,
    ) {
        let digits = if value.abs() >= 1000.0 { 0 } else { 2 };
        let goal_text = goal.map_or(String::new(), |goal| format!("(to reach: {goal})"));
        println!("  {name:<58} {value:>14.digits$} {unit:<18} {goal_text}");
        self.0.push(Figure { name: name.to_owned(), value, unit });
    }

    fn write(&self) -> Result<(), Box<dyn Error>> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench");
        std::fs::create_dir_all(&path)?;
        std::fs::write(path.join("echo.json"), serde_json::to_string_pretty(&self.0)? + "\n")?;
        println!("\nwritten: target/bench/echo.json");
        Ok(())
    }
}

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
    if !testbed::require_root() {
        return Ok(());
    }
    let mut figures = Figures::default();
    costs(&mut figures)?;
    replies::measure(&mut figures)?;
    faults::measure(&mut figures)?;
    drain::measure(&mut figures)?;
    figures.write()
}
