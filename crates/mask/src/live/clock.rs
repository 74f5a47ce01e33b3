//! The two clocks.

use nix::time::{ClockId, clock_gettime};
use std::{io, time::Duration};

/// What time it is, by two clocks: the kernel's programs have only the second one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// CLOCK_REALTIME: since 1970, UTC.
    pub(super) now: Duration,
    /// How far CLOCK_TAI is before it: leap seconds, if the system knows of any.
    pub(super) tai: Duration,
}

impl Clock {
    pub(super) fn read() -> io::Result<Self> {
        let now = Duration::from(clock_gettime(ClockId::CLOCK_REALTIME)?);
        let tai = Duration::from(clock_gettime(ClockId::CLOCK_TAI)?);
        // Whole seconds: between the two some time has passed.
        Ok(Self { now, tai: Duration::from_secs(tai.saturating_sub(now).as_secs()) })
    }

    /// Nanoseconds since 1970, of nanoseconds of CLOCK_TAI.
    pub(super) fn since_1970(&self, tai_ns: u64) -> u64 {
        tai_ns.saturating_sub(self.tai.as_nanos() as u64)
    }
}
