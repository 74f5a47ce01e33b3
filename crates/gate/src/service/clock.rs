//! The clocks that the worker reads.

use crate::{config::Day, policy::Moment};
use chrono::{Datelike, Local, Timelike};
use nix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC, which the kernel's table has.
pub(super) fn monotonic_ns() -> u64 {
    let Ok(time) = clock_gettime(ClockId::CLOCK_MONOTONIC) else { return 0 };
    u64::try_from(std::time::Duration::from(time).as_nanos()).unwrap_or(u64::MAX)
}

/// The time of the week by this host's local clock.
pub(super) fn moment() -> Moment {
    let now = Local::now();
    let day = usize::try_from(now.weekday().num_days_from_monday()).unwrap_or_default();
    let minute = u16::try_from(now.hour() * 60 + now.minute()).unwrap_or_default();
    Moment { day: Day::ALL.get(day).copied().unwrap_or(Day::Mon), minute }
}
