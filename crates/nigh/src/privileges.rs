//! Least privilege: which Linux capabilities the daemon keeps, and when the rest goes.
//!
//! [`limit`] runs first, before any thread: everything but [`START`] is given up, the
//! bounding and ambient sets are emptied (no command that the daemon starts ever has a capability)
//! and no_new_privs is set. [`settle`] runs when programs and sockets are open and gives
//! up what only the start needed. The measurements behind the lists are in
//! docs/decisions/050-capabilities.md.

use datapath::capabilities::{self, Capability};
use std::io;

/// What the start needs: BPF, PERFMON and NET_ADMIN to load programs and attach them, NET_RAW for the packet
/// sockets of health probes, NET_BIND_SERVICE for what listens on ports below 1024: `node.http`, a station's
/// reflector.
pub const START: [Capability; 5] = [
    Capability::CAP_BPF,
    Capability::CAP_PERFMON,
    Capability::CAP_NET_ADMIN,
    Capability::CAP_NET_RAW,
    Capability::CAP_NET_BIND_SERVICE,
];

/// What stays: NET_ADMIN to put service addresses on `lo` and take them away, NET_RAW for the health probes
/// of an interface that comes later, and for a station's pings where `net.ipv4.ping_group_range` leaves it
/// out. A program that is loaded is attached, set and read without any. Threads that features start inherit
/// both, also where only a station runs.
pub const KEEP: [Capability; 2] = [Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW];

/// Capabilities could not be given up.
#[derive(Debug, thiserror::Error)]
#[error("cannot give up capabilities: {0}")]
pub struct PrivilegeError(#[from] io::Error);

/// Gives up every capability that is not in [`START`], for this thread and those it will start.
///
/// # Errors
///
/// See [`PrivilegeError`].
pub fn limit() -> Result<(), PrivilegeError> {
    Ok(capabilities::keep(&START)?)
}

/// Gives up what only the start needed.
///
/// # Errors
///
/// See [`PrivilegeError`].
pub fn settle() -> Result<(), PrivilegeError> {
    Ok(capabilities::keep(&KEEP)?)
}
