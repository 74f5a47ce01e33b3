//! Cost calendars (RFC 8896): how the operator expects a metric's costs to change over the day.
//!
//! The configuration has a factor for each interval. The cost that the topology gives is the current
//! one, so the cost in another interval is that cost times that interval's factor over the current
//! interval's: the current value of a calendar is that of a reply without a calendar.

use super::config::CalendarConfig;
use serde_json::{Map, Value};
use std::time::{SystemTime, UNIX_EPOCH};

/// Days of a week, the first of January 1970 first.
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
/// Months.
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// Seconds of a day.
const DAY: u64 = 86_400;

/// A calendar of one metric.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Calendar {
    /// Seconds.
    interval: u64,
    factors: Vec<f64>,
}

impl Calendar {
    /// The calendar of a configuration without problems; else none.
    pub(super) fn new(config: &CalendarConfig) -> Option<Self> {
        let interval = config.interval.as_secs();
        (interval > 0 && !config.factors.is_empty())
            .then(|| Self { interval, factors: config.factors.clone() })
    }

    /// How many values it has.
    pub(super) fn intervals(&self) -> usize {
        self.factors.len()
    }

    /// The attributes of the directory (4.1); those of a response have more.
    pub(super) fn attributes(&self, names: &[&str]) -> Map<String, Value> {
        let mut attributes = Map::new();
        attributes.insert("cost-type-names".into(), names.into());
        attributes.insert("time-interval-size".into(), self.interval.into());
        attributes.insert("number-of-intervals".into(), self.factors.len().into());
        attributes
    }

    /// The attributes of a response (5.1.2).
    pub(super) fn response_attributes(&self, names: &[&str], now: SystemTime) -> Value {
        let mut attributes = self.attributes(names);
        attributes.insert("calendar-start-time".into(), imf_fixdate(self.start(now)).into());
        Value::Object(attributes)
    }

    /// What the current cost is multiplied by in each interval, from the first of this round on.
    pub(super) fn factors(&self, now: SystemTime) -> Vec<f64> {
        let passed = (seconds(now) - self.start(now)) / self.interval;
        let current = self.factors.get(passed as usize).copied().unwrap_or(1.0);
        self.factors.iter().map(|factor| factor / current).collect()
    }

    /// When the round began that it is now, seconds since 1970.
    fn start(&self, now: SystemTime) -> u64 {
        let now = seconds(now);
        let round = self.interval.saturating_mul(self.factors.len() as u64);
        now - now % round
    }
}

/// Seconds since 1970; a clock that is before it is taken as there.
fn seconds(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A date as HTTP writes it (RFC 9110, 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
fn imf_fixdate(seconds: u64) -> String {
    let (days, second) = (seconds / DAY, seconds % DAY);
    // Days since the first of March of the year 0, in eras of 400 years, so that the day that some
    // years have more is the last of its year.
    let day = days + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let from_january = (month + 2) % 12;
    let year = era * 400 + year_of_era + u64::from(from_january < 2);
    format!(
        "{}, {of_month:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        MONTHS[from_january as usize],
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn dates() {
        for (seconds, date) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_210_096, "Thu, 29 Feb 2024 12:34:56 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(imf_fixdate(seconds), date);
        }
    }

    #[test]
    fn the_current_interval_has_the_current_cost() {
        let config = CalendarConfig {
            metric: "routingcost".into(),
            interval: Duration::from_secs(6 * 3600),
            factors: vec![1.0, 2.0, 4.0, 2.0],
        };
        let calendar = Calendar::new(&config).expect("a good one");
        let noon = at(784_111_777 - 784_111_777 % DAY + 12 * 3600);
        assert_eq!(calendar.factors(noon), [0.25, 0.5, 1.0, 0.5]);
        let attributes = calendar.response_attributes(&["num-routingcost"], noon);
        assert_eq!(attributes["calendar-start-time"], "Sun, 06 Nov 1994 00:00:00 GMT");
        assert_eq!(attributes["number-of-intervals"], 4);
        assert_eq!(attributes["time-interval-size"], 21_600);
    }
}
