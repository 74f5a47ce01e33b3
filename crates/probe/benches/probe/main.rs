//! What a measuring station can do: `make bench-probe`.
//!
//! Prints a table and writes `target/bench/probe.json`. Needs root; all is between network namespaces that
//! it makes, and on loopback in one. `MESH_STATIONS=N` and `MESH_SECONDS=N` say how large the mesh is and
//! how long it runs, `MESH_GATHER_MS=N` how long its packets gather.

mod mesh;
mod reflectors;
mod times;

use std::error::Error;
use testbed::Figures;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    if let [_, station, number, count, gather_ms] = &words[..]
        && station == mesh::STATION
    {
        return mesh::station(number.parse()?, count.parse()?, gather_ms.parse()?);
    }
    if !testbed::require_root() {
        return Err("this benchmark makes network namespaces, so it needs root".into());
    }
    let mut figures = Figures::new("probe");
    times::measure(&mut figures)?;
    reflectors::measure(&mut figures)?;
    mesh::measure(&mut figures)?;
    Ok(figures.write()?)
}
