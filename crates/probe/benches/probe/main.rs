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

type Part = fn(&mut Figures) -> Result<(), Box<dyn Error>>;

/// The parts by name.
const PARTS: [(&str, Part); 3] =
    [("times", times::measure), ("reflectors", reflectors::measure), ("mesh", mesh::measure)];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    if let [_, station, number, count, gather_ms] = &words[..]
        && station == mesh::STATION
    {
        return mesh::station(number.parse()?, count.parse()?, gather_ms.parse()?);
    }
    testbed::need_root();
    let wanted = std::env::var("PROBE_PARTS").ok();
    let mut figures = Figures::new("probe");
    for (name, part) in PARTS {
        if wanted.as_ref().is_none_or(|wanted| wanted.split(',').any(|one| one == name)) {
            part(&mut figures)?;
        }
    }
    Ok(figures.write()?)
}
