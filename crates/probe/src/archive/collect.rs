//! The archive's metrics in Prometheus' form, names `nigh_probe_archive_*`.

use super::status::{Exporting, Sending, Status};
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};
use std::fmt;

impl Status {
    /// Adds all metrics: put = written + waiting + the sum of lost.
    ///
    /// # Errors
    /// When a metric does not format, which is a mistake in the program.
    pub fn collect(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let counters = [
            ("nigh_probe_archive_put", "Records handed to the archive", self.put),
            ("nigh_probe_archive_written", "Records written into the database", self.written),
            (
                "nigh_probe_archive_set_aside",
                "Damaged databases set aside",
                self.set_aside.len() as u64,
            ),
        ];
        for (name, help, value) in counters {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(metric)?;
        }
        let (name, help) = ("nigh_probe_archive_lost", "Records lost, by reason");
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (reason, count) in &self.lost {
            let labels = [("reason", reason.as_str())];
            ConstCounter::new(*count).encode(metric.encode_family(&labels)?)?;
        }
        let gauges = [
            ("nigh_probe_archive_waiting", "Records that wait to be written", self.waiting),
            ("nigh_probe_archive_bytes", "Size of the database with its log", self.bytes),
            (
                "nigh_probe_archive_healthy",
                "1 when the database takes what is written",
                u64::from(self.error.is_none()),
            ),
        ];
        for (name, help, value) in gauges {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value as f64).encode(metric)?;
        }
        if let Some(to) = &self.postgresql {
            sending(to, encoder)?;
        }
        if let Some(to) = &self.parquet {
            exporting(to, encoder)?;
        }
        Ok(())
    }
}

fn sending(to: &Sending, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    for (name, help, value) in [
        ("nigh_probe_archive_sent", "Records that PostgreSQL took", to.sent),
        ("nigh_probe_archive_sending_refused", "Records that PostgreSQL refused", to.refused),
    ] {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(metric)?;
    }
    let well = u64::from(to.error.is_none());
    for (name, help, value) in [
        ("nigh_probe_archive_unsent", "Records that PostgreSQL does not have yet", to.unsent),
        ("nigh_probe_archive_sending_healthy", "1 when PostgreSQL takes what is sent", well),
    ] {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value as f64).encode(metric)?;
    }
    Ok(())
}

fn exporting(to: &Exporting, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    for (name, help, value) in [
        ("nigh_probe_archive_files", "Parquet files written", to.files),
        ("nigh_probe_archive_exported", "Records written into Parquet files", to.records),
    ] {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(metric)?;
    }
    let (name, help) =
        ("nigh_probe_archive_exporting_healthy", "1 when Parquet files can be written");
    let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(u64::from(to.error.is_none()) as f64).encode(metric)
}
