//! Clocks of the system in nanoseconds.

use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970 (CLOCK_REALTIME), the clock of the kernel's timestamps of packets; 0 for a clock
/// before that, at most [`i64::MAX`].
pub fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX).cast_unsigned()
}

/// Nanoseconds since the machine started (CLOCK_MONOTONIC), the clock of the programs and their tables.
pub fn monotonic_ns() -> u64 {
    // CLOCK_MONOTONIC is always there and the pointer is good: POSIX names no other error.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
    now.as_nanos() as u64
}
