//! Writes the topology in force down.

use super::ControlError;
use crate::status::DumpStatus;
use std::{
    fs,
    io::{self, BufWriter, Write},
    path::Path,
};
use topo::Topology;

/// Writes the topology into a folder, in the format `oracle.conf` and in TOML.
pub(super) fn write(topology: Topology<'_>, folder: &Path) -> Result<DumpStatus, ControlError> {
    let failed = |path: &Path, source| ControlError::Dump { path: path.to_owned(), source };
    let files = topo::dump::oracle_conf(topology);
    files.write(folder).map_err(|error| failed(folder, error))?;
    let file = folder.join("network.toml");
    let write = || -> io::Result<Vec<String>> {
        let mut out = BufWriter::new(fs::File::create(&file)?);
        let notes = topo::dump::toml(topology, &mut out)?;
        out.flush()?;
        Ok(notes)
    };
    let notes = write().map_err(|error| failed(&file, error))?;
    let in_oracle_conf = files.notes.into_iter().map(|note| format!("oracle.conf: {note}"));
    let warnings = in_oracle_conf
        .chain(notes.into_iter().map(|note| format!("network.toml: {note}")))
        .collect();
    Ok(DumpStatus { oracle_conf: folder.join("oracle.conf"), file, warnings })
}
