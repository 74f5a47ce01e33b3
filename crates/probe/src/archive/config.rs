//! The section `[probe.archive]` of the configuration.

#[cfg(test)]
mod tests;

use super::{parquet::ParquetConfig, postgresql::PostgresqlConfig};
use config::{Problem, Report};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// Most records that wait to be written.
const MAX_QUEUE: usize = 10_000_000;
/// A day.
const DAY: Duration = Duration::from_secs(86_400);
/// Longest time that records or hours are kept, other than for ever.
const LONGEST: Duration = DAY.saturating_mul(36_525);

/// The archive of measurements: how long they are kept, and where they are exported.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ArchiveConfig {
    /// Most records that wait to be written; records beyond are lost and counted.
    #[schemars(range(min = 1, max = MAX_QUEUE))]
    pub queue: usize,
    /// How long records are kept individually before they are aggregated to hours; 0 is for ever.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub keep: Duration,
    /// How long hours are kept, counted from the measurement, before they are aggregated to days; 0 is for ever.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub keep_hours: Duration,
    /// How long days are kept; 0 is for ever.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub keep_days: Duration,
    /// A PostgreSQL that gets all records too; off when not given. Records are kept here until it has them.
    pub postgresql: Option<PostgresqlConfig>,
    /// Parquet files for each past day; off when not given. Records are kept here until they are in a file.
    pub parquet: Option<ParquetConfig>,
}

impl Default for ArchiveConfig {
    fn default() -> Self {
        Self {
            queue: 20_000,
            keep: 14 * DAY,
            keep_hours: 180 * DAY,
            keep_days: Duration::ZERO,
            postgresql: None,
            parquet: None,
        }
    }
}

impl ArchiveConfig {
    /// Everything that is wrong with the values, each key as in the section; empty if they are valid.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let report = &mut Report::new(&mut problems, "");
        if !(1..=MAX_QUEUE).contains(&self.queue) {
            report.add("queue", format!("{} is not from 1 to {MAX_QUEUE} records", self.queue));
        }
        self.times(report);
        if let Some(postgresql) = &self.postgresql {
            report.take("postgresql", postgresql.problems());
        }
        if let Some(parquet) = &self.parquet {
            report.take("parquet", parquet.problems());
        }
        problems
    }
}

impl ArchiveConfig {
    /// How long what is kept.
    fn times(&self, report: &mut Report<'_>) {
        let times =
            [("keep", self.keep), ("keep_hours", self.keep_hours), ("keep_days", self.keep_days)];
        for (key, time) in times {
            if !time.is_zero() && !(DAY..=LONGEST).contains(&time) {
                report.add(key, "must be from 1day to 100years, or 0s for ever");
            }
        }
        for [(shorter, less), (longer, more)] in [[times[0], times[1]], [times[1], times[2]]] {
            if !more.is_zero() && less.is_zero() {
                let text = format!(
                    "has no effect, because {shorter} = \"0s\" keeps records for ever; use 0s"
                );
                report.add(longer, text);
            } else if !more.is_zero() && more < less {
                report.add(longer, format!("is shorter than {shorter}: give at least as long"));
            }
        }
    }
}
