//! Least privilege: which Linux capabilities the daemon keeps, and when the rest goes.
//!
//! Each job names the capabilities that it needs to start and while it runs. [`limit`] runs first,
//! before any thread: it drops everything that the start does not need, empties the bounding and ambient
//! sets (no command that the daemon starts ever has a capability) and sets no_new_privs. [`settle`] runs
//! when programs and sockets are open and drops what only the start needed. The measurements behind the
//! lists are in docs/decisions/050-capabilities.md.

use datapath::capabilities;
use job::{Capability, Configured};
use std::io;

/// Capabilities could not be dropped.
#[derive(Debug, thiserror::Error)]
#[error("cannot drop capabilities: {0}")]
pub struct PrivilegeError(#[from] io::Error);

/// Drops every capability except those that `jobs` need to start, and the node needs to listen on a port
/// below 1024, for this thread and those that it starts.
///
/// # Errors
///
/// See [`PrivilegeError`].
pub fn limit(jobs: &Configured) -> Result<(), PrivilegeError> {
    let mut start = jobs.start_capabilities();
    start.push(Capability::CAP_NET_BIND_SERVICE);
    Ok(capabilities::keep(&start)?)
}

/// Drops what only the start needed: `kept` is left.
///
/// # Errors
///
/// See [`PrivilegeError`].
pub fn settle(kept: &[Capability]) -> Result<(), PrivilegeError> {
    Ok(capabilities::keep(kept)?)
}
