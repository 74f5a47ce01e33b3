//! `nigh gate detach`.

use crate::service::{TakeOffError, take_off};
use serde::Serialize;
use std::fmt;

/// What was done.
#[derive(Debug, Serialize)]
pub struct Detached {
    /// Whether a gate was in force.
    detached: bool,
}

impl fmt::Display for Detached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", if self.detached { "the gate is off" } else { "no gate was in force" })
    }
}

/// Takes off the gate that a stopped daemon left in force in this network namespace.
///
/// # Errors
/// See [`take_off`].
pub fn detach() -> Result<Detached, TakeOffError> {
    Ok(Detached { detached: take_off()? })
}
