//! The local time of the week.

use crate::{config::Day, policy::Moment};
use chrono::{Datelike, Local, Timelike};

/// The time of the week by this host's local clock.
pub(super) fn moment() -> Moment {
    let now = Local::now();
    let day = usize::try_from(now.weekday().num_days_from_monday()).unwrap_or_default();
    let minute = u16::try_from(now.hour() * 60 + now.minute()).unwrap_or_default();
    Moment { day: Day::ALL.get(day).copied().unwrap_or(Day::Mon), minute }
}
