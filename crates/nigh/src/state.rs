//! What survives a restart: the state directory.
//!
//! It holds one fact, the empty file `drained`: the operator drained this node. A node that was
//! taken out of service for maintenance is not put back by a reboot, only by `nigh undrain`. The
//! file is there before a drain begins and is removed before an undrain begins, so a daemon killed
//! in between starts as the operator last wished.
//!
//! The daemon holds a lock (flock(2)) on the directory while it runs, so two daemons never share
//! one; the kernel releases it however the process ends.

use nix::fcntl::{Flock, FlockArg};
use std::{
    fs::{DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// The state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be made, opened or written.
    #[error("cannot use the state directory {}: {source}; see node.state", .path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another daemon uses it.
    #[error("another nigh runs with the state directory {}: stop it, or give this one its own node.state", .0.display())]
    Busy(PathBuf),
}

/// The state directory of this daemon, locked.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    directory: Flock<File>,
}

impl State {
    /// Opens and locks the directory at `path`; creates it with mode 0750 if it is missing.
    ///
    /// # Errors
    ///
    /// See [`StateError`].
    pub fn open(path: &Path) -> Result<Self, StateError> {
        let error = |source| StateError::Io { path: path.into(), source };
        DirBuilder::new().recursive(true).mode(0o750).create(path).map_err(error)?;
        let directory = File::open(path).map_err(error)?;
        match Flock::lock(directory, FlockArg::LockExclusiveNonblock) {
            Ok(directory) => Ok(Self { path: path.into(), directory }),
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => Err(StateError::Busy(path.into())),
            Err((_, errno)) => Err(error(errno.into())),
        }
    }

    /// Whether the operator drained this node.
    pub fn drained(&self) -> bool {
        self.marker().exists()
    }

    /// Stores whether the operator drained this node; it is on the disk when this returns.
    ///
    /// # Errors
    ///
    /// The directory cannot be written.
    pub fn set_drained(&self, drained: bool) -> Result<(), StateError> {
        let write = || {
            if drained {
                File::create(self.marker())?.sync_all()?;
            } else {
                match std::fs::remove_file(self.marker()) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            self.directory.sync_all()
        };
        write().map_err(|source| StateError::Io { path: self.path.clone(), source })
    }

    fn marker(&self) -> PathBuf {
        self.path.join("drained")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_drain_is_remembered_until_it_is_undone() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("a/state");
        let state = State::open(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o750);
        assert!(!state.drained());
        state.set_drained(true).unwrap();
        state.set_drained(true).unwrap();
        drop(state);
        let state = State::open(&path).unwrap();
        assert!(state.drained());
        state.set_drained(false).unwrap();
        state.set_drained(false).unwrap();
        assert!(!state.drained());
    }

    #[test]
    fn two_daemons_do_not_share_one_directory() {
        let temporary = tempfile::tempdir().unwrap();
        let first = State::open(temporary.path()).unwrap();
        assert!(matches!(State::open(temporary.path()), Err(StateError::Busy(_))));
        drop(first);
        State::open(temporary.path()).unwrap();
    }
}
