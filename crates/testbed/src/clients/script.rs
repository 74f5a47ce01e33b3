//! Servers and clients written in Python for tests, in crates/testbed/peers.

use super::serves;
use crate::{Error, Namespace, Process};
use std::path::Path;

/// Debian's own Python, which has the modules that `scripts/setup test` installs.
const PYTHON: &str = "/usr/bin/python3";

/// A running script; killed when dropped.
#[derive(Debug)]
pub struct Script {
    process: Process,
}

impl Script {
    /// Starts crates/testbed/peers/NAME with arguments and waits until it has written `ready`.
    ///
    /// # Errors
    ///
    /// When it ends before that; with what it wrote.
    pub fn start(namespace: &Namespace, name: &str, arguments: &[&str]) -> Result<Self, Error> {
        let path = path(name);
        let mut process = namespace.spawn(&[&[PYTHON, "-u", &path][..], arguments].concat())?;
        serves(name, &mut process, |process| process.stdout().lines().any(|line| line == "ready"))?;
        Ok(Self { process })
    }

    /// Runs crates/testbed/peers/NAME to its end, for at most 30 seconds, and returns what it wrote.
    ///
    /// # Errors
    ///
    /// When its exit code is not 0.
    pub fn check(namespace: &Namespace, name: &str, arguments: &[&str]) -> Result<String, Error> {
        namespace.check(&[&[PYTHON, "-u", &path(name)][..], arguments].concat())
    }

    /// The process: what it has written, and to signal or to kill it.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

fn path(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name).to_string_lossy().into_owned()
}
