//! Times of the week.

use crate::config::{Day, TimeConfig};

/// A time of the week, to the minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The day.
    pub day: Day,
    /// Minutes since midnight, 0 to 1439.
    pub minute: u16,
}

impl Moment {
    fn yesterday(self) -> Day {
        let number = Day::ALL.iter().position(|day| *day == self.day).unwrap_or_default();
        Day::ALL.into_iter().cycle().nth(number + 6).unwrap_or(self.day)
    }
}

/// The named times.
#[derive(Clone, Debug)]
pub(super) struct Times(Vec<TimeConfig>);

impl Times {
    pub(super) fn new(times: &[TimeConfig]) -> Self {
        Self(times.to_vec())
    }

    pub(super) fn numbers(&self, names: &[String]) -> Vec<usize> {
        names.iter().filter_map(|name| self.0.iter().position(|time| time.name == *name)).collect()
    }

    /// Whether a time holds now.
    pub(super) fn holds(&self, number: usize, now: Moment) -> bool {
        let Some(time) = self.0.get(number) else { return false };
        let begins_on = |day: Day| time.days.is_empty() || time.days.contains(&day);
        let (from, to) = (time.from.0, time.to.0);
        if from < to {
            begins_on(now.day) && (from..to).contains(&now.minute)
        } else {
            (begins_on(now.day) && now.minute >= from)
                || (begins_on(now.yesterday()) && now.minute < to)
        }
    }

    /// Which of them hold.
    pub(super) fn at(&self, now: Moment) -> Vec<bool> {
        (0..self.0.len()).map(|number| self.holds(number, now)).collect()
    }
}
