//! The station's metrics in Prometheus' form, names `nigh_probe_*`.

use super::shared::Shared;
use crate::tools::Refusal;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};
use std::{collections::BTreeMap, fmt};

/// Adds all metrics.
pub(super) fn collect(shared: &Shared, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let status = shared.status();
    let (name, help) = ("nigh_probe_runs", "Runs of tests, by outcome");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for test in &status.tests {
        for (outcome, count) in
            [("done", test.done), ("failed", test.failed), ("skipped", test.skipped)]
        {
            let labels =
                [("test", test.test.as_str()), ("what", test.what.word()), ("outcome", outcome)];
            ConstCounter::new(count).encode(metric.encode_family(&labels)?)?;
        }
    }
    let (name, help) = ("nigh_probe_running", "Tests that run now");
    let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(status.running.len() as i64).encode(metric)?;
    let (name, help) =
        ("nigh_probe_station_reached", "1 when there is a connection to the station");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for peer in &status.peers {
        let labels = [("station", peer.name.as_str())];
        ConstGauge::new(i64::from(peer.reached)).encode(metric.encode_family(&labels)?)?;
    }
    let (name, help) = ("nigh_probe_requests", "Requests of other stations");
    let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    ConstCounter::new(status.station.requests).encode(metric)?;
    if let Some(delays) = &status.delays {
        for (name, help, value) in [
            ("nigh_probe_stamp_sent", "STAMP test packets sent", delays.sent),
            ("nigh_probe_stamp_not_sent", "Test packets the kernel did not take", delays.not_sent),
            ("nigh_probe_stamp_missed", "Test packets whose time passed", delays.missed),
            ("nigh_probe_stamp_received", "Packets that came to the sender", delays.received),
            ("nigh_probe_stamp_reflected", "Packets of others reflected", delays.reflected),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(metric)?;
        }
    }
    let empty = BTreeMap::new();
    let delays = status.delays.as_ref();
    let (refused, reflector) =
        delays.map_or((&empty, &empty), |delays| (&delays.refused, &delays.reflector_refused));
    for (name, help, counts, label) in [
        ("nigh_probe_stamp_refused", "Packets refused by the sender, by reason", refused, "reason"),
        (
            "nigh_probe_stamp_reflector_refused",
            "Packets refused by the reflector, by reason",
            reflector,
            "reason",
        ),
        (
            "nigh_probe_driver",
            "Packets for the reflector in the driver, by what it did",
            status.driver.as_ref().unwrap_or(&empty),
            "verdict",
        ),
        (
            "nigh_probe_http_refused",
            "Requests for tests by HTTP that were refused, by reason",
            &status.requests_refused,
            "reason",
        ),
        (
            "nigh_probe_agreed",
            "What was agreed with other stations, by what it was",
            &status.station.agreed,
            "what",
        ),
        (
            "nigh_probe_refused",
            "What was refused to other stations, by reason",
            &status.station.refused,
            "reason",
        ),
    ] {
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (word, count) in counts {
            let labels = [(label, word.as_str())];
            ConstCounter::new(*count).encode(metric.encode_family(&labels)?)?;
        }
    }
    let (name, help) = ("nigh_probe_leases", "What is agreed with other stations now");
    let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(status.station.leases as i64).encode(metric)?;
    if let Some(error_ns) = status.clock_error_ns {
        let (name, help) = ("nigh_probe_clock_error_seconds", "The most that the clock is off");
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(error_ns as f64 / 1e9).encode(metric)?;
    }
    let tests = &shared.context.counters;
    let (name, help) = ("nigh_probe_input_refused", "Input that tests refused, by what it was");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for what in Refusal::ALL {
        let labels = [("what", what.word())];
        ConstCounter::new(tests.refused(what)).encode(metric.encode_family(&labels)?)?;
    }
    status.archive.collect(encoder)?;
    let (name, help) = ("nigh_probe_healthy", "1 when the station has no problems");
    let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(i64::from(status.healthy)).encode(metric)
}
