//! Least privilege.

use std::io;

/// Gives up every capability of the calling thread, and with it of those that it starts. What is open stays
/// open: programs are read and told things without any.
///
/// # Errors
/// When the system refuses.
pub fn give_up() -> io::Result<()> {
    use caps::CapSet::{Ambient, Effective, Inheritable, Permitted};
    for set in [Ambient, Effective, Inheritable, Permitted] {
        caps::clear(None, set).map_err(io::Error::other)?;
    }
    Ok(())
}
