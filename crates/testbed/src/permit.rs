//! Permission to make things: none is given once the testbed is closed.

use crate::Error;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

static CLOSED: RwLock<bool> = RwLock::new(false);

/// Permission to make something; [`crate::close`] waits until it is given back.
#[derive(Debug)]
pub(crate) struct Permit {
    _held: RwLockReadGuard<'static, bool>,
}

/// Asks for permission to make something that [`crate::close`] must be able to find.
pub(crate) fn permit(what: &str) -> Result<Permit, Error> {
    let closed = CLOSED.read().unwrap_or_else(PoisonError::into_inner);
    if *closed {
        Err(Error::new(what, "the testbed is closed"))
    } else {
        Ok(Permit { _held: closed })
    }
}

/// Refuses all that is asked for from now on; returns when what was permitted is made.
pub(crate) fn refuse_all() {
    *CLOSED.write().unwrap_or_else(PoisonError::into_inner) = true;
}
