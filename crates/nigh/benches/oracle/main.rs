//! What the oracle can do, in one run: `make bench-oracle`. The experiments of *The P2P-Oracle Server* (its sections 5 and
//! 6) in namespaces:
//!
//! - replies a second and round-trip times at 2 to 363 candidates, with one and two threads, over the
//!   small and large networks of that report, against a UDP echo that does nothing else;
//! - regulated clients beside a flood from another network.
//!
//! Rankings a second in process and replies a second in the driver are measured by the benchmarks
//! `rank` and `xdp` of crate oracle, which `make bench-oracle` runs before; their figures are taken
//! into the same file, target/bench/oracle.json. Nothing here fails for being slow.
#![forbid(unsafe_code)]

mod flood;
mod generator;
mod null_echo;
mod sockets;
mod stage;

use std::error::Error;
use testbed::Figures;

/// The program under test.
pub(crate) const NIGH: &str = env!("CARGO_BIN_EXE_nigh");

fn main() -> Result<(), Box<dyn Error>> {
    testbed::need_root();
    let mut figures = Figures::new("oracle");
    sockets::measure(&mut figures)?;
    flood::measure(&mut figures)?;
    for other in ["oracle-rank", "oracle-xdp"] {
        figures.include(other)?;
    }
    figures.write()?;
    Ok(())
}
