//! Which of the labs that run is meant.

use crate::{
    clean::{self, CleanError, Entry},
    host::Owner,
};
use std::path::PathBuf;

/// It is not clear which lab is meant.
#[derive(Debug, thiserror::Error)]
pub enum ChooseError {
    /// The folder cannot be read.
    #[error(transparent)]
    Clean(#[from] CleanError),
    /// None runs.
    #[error("no lab runs: start one with `nigh lab run SCENE`")]
    None,
    /// None of this name runs.
    #[error("no lab {0} runs: there are {1}")]
    Unknown(String, String),
    /// There are several.
    #[error("several labs run: choose one with `--lab`: {0}")]
    Several(String),
}

/// The control socket of the lab that is meant: its process's number or its scene's name, or nothing
/// if there is only one.
pub(super) fn choose(name: Option<&str>) -> Result<PathBuf, ChooseError> {
    pick(clean::running()?, name).map(clean::socket_of)
}

fn pick(mut running: Vec<(Owner, Entry)>, name: Option<&str>) -> Result<Owner, ChooseError> {
    if running.is_empty() {
        return Err(ChooseError::None);
    }
    let all = list(&running);
    if let Some(name) = name {
        running.retain(|(owner, entry)| entry.is_called(*owner, name));
    }
    match running[..] {
        [(owner, _)] => Ok(owner),
        [] => Err(ChooseError::Unknown(name.unwrap_or_default().to_owned(), all)),
        _ => Err(ChooseError::Several(list(&running))),
    }
}

/// Names of labs by which they can be distinguished.
fn list(labs: &[(Owner, Entry)]) -> String {
    let names = labs.iter().map(|(owner, entry)| {
        let scene = entry.scene.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        format!("{} ({scene})", owner.pid())
    });
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_is_known_by_its_process_or_its_scene() {
        let lab = |owner: &str, scene: &str| {
            let entry = Entry { scene: scene.into(), hosts: Vec::new() };
            (owner.parse::<Owner>().expect("an owner"), entry)
        };
        let [a, b, c] =
            [lab("7-1", "/a/one.toml"), lab("8-1", "/a/two.toml"), lab("9-1", "/b/two.toml")];
        for (running, name, right) in [
            (vec![], None, Err("no lab runs: start one with `nigh lab run SCENE`")),
            (vec![&a], None, Ok(7)),
            (vec![&a], Some("one"), Ok(7)),
            (vec![&a, &b], Some("two.toml"), Ok(8)),
            (vec![&a, &b], Some("8"), Ok(8)),
            (vec![&b, &c], Some("/b/two.toml"), Ok(9)),
            (vec![&a], Some("two"), Err("no lab two runs: there are 7 (one)")),
            (
                vec![&a, &b],
                None,
                Err("several labs run: choose one with `--lab`: 7 (one), 8 (two)"),
            ),
            (
                vec![&a, &b, &c],
                Some("two"),
                Err("several labs run: choose one with `--lab`: 8 (two), 9 (two)"),
            ),
        ] {
            let running = running.into_iter().cloned().collect();
            let picked = pick(running, name).map(Owner::pid).map_err(|error| error.to_string());
            assert_eq!(picked, right.map_err(str::to_owned), "{name:?}");
        }
    }
}
