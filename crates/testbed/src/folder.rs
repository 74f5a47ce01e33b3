//! Temporary folders, named `nigh.PID.RANDOM` so that those of dead processes can be told.

use crate::{Error, permit::permit};
use tempfile::TempDir;

/// Makes a folder that only we can read; it is removed when the guard is dropped.
pub(crate) fn new() -> Result<TempDir, Error> {
    let _permit = permit("making a temporary folder")?;
    tempfile::Builder::new()
        .prefix(&format!("nigh.{}.", std::process::id()))
        .tempdir()
        .map_err(|error| Error::new("making a temporary folder", error))
}

/// Removes the folders of the processes that `whose` names.
pub(crate) fn remove_of(whose: impl Fn(u32) -> bool) {
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().and_then(owner).is_some_and(&whose) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The process that made something of this name, if it is one of ours: `nigh.PID....`
pub(crate) fn owner(name: &str) -> Option<u32> {
    name.strip_prefix("nigh.")?.split_once('.')?.0.parse().ok()
}
