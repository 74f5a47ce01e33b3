//! What the gate costs and saves, in one run: `make bench-gate`.
//!
//! - the throughput of *Integrating and Accelerating Content Classification and Management at P2P
//!   Gateways* ("the paper" here), section 4.2.1: two clients with 100 connections each, three
//!   servers, and between them forwarding alone, and gateways of several kinds;
//! - storms of reconnections to what is refused: what an attempt costs, and what permitted traffic keeps;
//! - transfer times at 0 to 5 % loss and 0 to 100 ms;
//! - limits: what passes at 1, 20 and 200 Mbit/s in both directions.
//!
//! All in namespaces joined by links with offloads on. `GATE_PARTS=new,storm` in the environment measures
//! only these parts, and takes the others' figures of an earlier run into the file of all;
//! `GATE_VARIANTS=forwarding,nfqueue` measures only these variants of a gateway. Nothing here fails for being
//! slow.
#![forbid(unsafe_code)]

mod clients;
mod http;
mod limits;
mod loss;
mod own;
mod peers;
mod processor;
mod stage;
mod storm;
mod throughput;
mod variants;

use std::error::Error;
use testbed::Figures;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// The program under test, which also runs the lab.
pub(crate) const NIGH: &str = env!("CARGO_BIN_EXE_nigh");

type Part = fn(&mut Figures) -> Result<(), Failure>;

/// The parts by name, each with the name of its own file; none takes longer than some two minutes.
const PARTS: [(&str, &str, Part); 6] = [
    ("persistent", "gate-persistent", throughput::persistent),
    ("new", "gate-new", throughput::new),
    ("storm", "gate-storm", storm::measure),
    ("limits", "gate-limits", limits::measure),
    ("loss", "gate-loss", loss::near),
    ("late", "gate-late", loss::far),
];

fn main() -> Result<(), Failure> {
    testbed::need_root();
    let wanted = std::env::var("GATE_PARTS").ok();
    let mut all = Figures::new("gate");
    for (name, file, part) in PARTS {
        if wanted.as_ref().is_none_or(|wanted| wanted.split(',').any(|one| one == name)) {
            let mut figures = Figures::new(file);
            part(&mut figures)?;
            figures.write()?;
        }
        // A part that is not wanted now may have been measured before.
        let _ = all.include(file);
    }
    all.write()?;
    Ok(())
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
