//! Least privilege: which Linux capabilities the daemon keeps, and when the rest goes.
//!
//! Each job names the capabilities that it needs to start and while it runs. [`limit`] runs first,
//! before any thread: everything but what the start needs is given up, the bounding and ambient sets are emptied (no command that the daemon starts ever has a capability)
//! and no_new_privs is set. [`settle`] runs when programs and sockets are open and gives
//! up what only the start needed. The measurements behind the lists are in
//! docs/decisions/050-capabilities.md.

use datapath::capabilities;
use job::{Capability, Configured};
use std::io;

/// Capabilities could not be given up.
#[derive(Debug, thiserror::Error)]
#[error("cannot give up capabilities: {0}")]
pub struct PrivilegeError(#[from] io::Error);

/// Gives up every capability but those that `jobs` need to start, and the node itself to listen on a port
/// below 1024, for this thread and those it will start.
///
/// # Errors
///
/// See [`PrivilegeError`].
pub fn limit(jobs: &Configured) -> Result<(), PrivilegeError> {
    let mut start = jobs.start_capabilities();
    start.push(Capability::CAP_NET_BIND_SERVICE);
    Ok(capabilities::keep(&start)?)
}

/// Gives up what only the start needed: what is left is `kept`.
///
/// # Errors
///
/// See [`PrivilegeError`].
pub fn settle(kept: &[Capability]) -> Result<(), PrivilegeError> {
    Ok(capabilities::keep(kept)?)
}
