//! The archive's metrics, names `nigh_probe_archive_*`.

use super::status::{Exporting, Sending, Status};
use job::metrics::{Metrics, rows};
use std::fmt;

impl Status {
    /// Adds all metrics: put = written + waiting + the sum of lost.
    ///
    /// # Errors
    /// When a metric does not format, which is a mistake in the program.
    pub fn collect(&self, metrics: &mut Metrics<'_>) -> fmt::Result {
        for (name, help, count) in [
            ("nigh_probe_archive_put", "Records handed to the archive", self.put),
            ("nigh_probe_archive_written", "Records written into the database", self.written),
            (
                "nigh_probe_archive_set_aside",
                "Damaged databases set aside",
                self.set_aside.len() as u64,
            ),
        ] {
            metrics.counter(name, help, count)?;
        }
        let lost = rows("reason", &self.lost);
        metrics.counters("nigh_probe_archive_lost", "Records lost, by reason", lost)?;
        for (name, help, value) in [
            ("nigh_probe_archive_waiting", "Records that wait to be written", self.waiting),
            ("nigh_probe_archive_bytes", "Size of the database with its log", self.bytes),
            (
                "nigh_probe_archive_healthy",
                "1 if the database can be written",
                u64::from(self.error.is_none()),
            ),
        ] {
            metrics.gauge(name, help, value as f64)?;
        }
        if let Some(to) = &self.postgresql {
            sending(to, metrics)?;
        }
        if let Some(to) = &self.parquet {
            exporting(to, metrics)?;
        }
        Ok(())
    }
}

fn sending(to: &Sending, metrics: &mut Metrics<'_>) -> fmt::Result {
    metrics.counter("nigh_probe_archive_sent", "Records that PostgreSQL has accepted", to.sent)?;
    let (name, help) = ("nigh_probe_archive_sending_refused", "Records that PostgreSQL refused");
    metrics.counter(name, help, to.refused)?;
    let (name, help) = ("nigh_probe_archive_unsent", "Records that PostgreSQL does not have yet");
    metrics.gauge(name, help, to.unsent as f64)?;
    let (name, help) = ("nigh_probe_archive_sending_healthy", "1 if PostgreSQL accepts records");
    metrics.gauge(name, help, f64::from(to.error.is_none()))
}

fn exporting(to: &Exporting, metrics: &mut Metrics<'_>) -> fmt::Result {
    metrics.counter("nigh_probe_archive_files", "Parquet files written", to.files)?;
    let (name, help) = ("nigh_probe_archive_exported", "Records written into Parquet files");
    metrics.counter(name, help, to.records)?;
    let (name, help) =
        ("nigh_probe_archive_exporting_healthy", "1 when Parquet files can be written");
    metrics.gauge(name, help, f64::from(to.error.is_none()))
}
