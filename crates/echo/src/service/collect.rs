//! The service's metrics in Prometheus' form, names `nigh_echo_*` and `nigh_anycast_*`.

use crate::status::{Count, InterfaceMode, Status};
use datapath::echo::{EchoProgram, Latency};
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};
use std::fmt::{self, Error};

/// Adds all metrics.
pub(super) fn collect(
    status: &Status,
    program: Option<&EchoProgram>,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), Error> {
    interfaces(status, encoder)?;
    if status.ledger.counted {
        ledger(status, encoder)?;
        if let Some(latency) = program.and_then(|program| program.latency().ok()) {
            histogram(&latency, encoder)?;
        }
    }
    anycast(status, encoder)
}

fn counter(
    encoder: &mut MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    value: u64,
) -> fmt::Result {
    let counter = ConstCounter::new(value);
    counter.encode(encoder.encode_family(labels)?)
}

fn gauge(encoder: &mut MetricEncoder<'_>, labels: &impl EncodeLabelSet, value: i64) -> fmt::Result {
    let gauge = ConstGauge::new(value);
    gauge.encode(encoder.encode_family(labels)?)
}

fn ledger(status: &Status, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let rows = || {
        let services = status.ledger.rows.iter().map(|row| {
            let family = if row.address.is_ipv4() { "ipv4" } else { "ipv6" };
            (row.address.to_string(), family, &row.count)
        });
        services.chain([("other".to_owned(), "any", &status.ledger.other)])
    };
    type Get = fn(&Count) -> u64;
    let columns: [(&str, &str, Get); 3] = [
        ("nigh_echo_received", "Packets that arrived", |count| count.received),
        ("nigh_echo_answered", "Requests that the program answered", |count| count.answered),
        ("nigh_echo_passed", "Packets left to the kernel", |count| count.passed),
    ];
    for (name, help, get) in columns {
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (address, family, count) in rows() {
            let labels = [("address", address.as_str()), ("family", family)];
            counter(&mut metric, &labels, get(count))?;
        }
    }
    let (name, help) = ("nigh_echo_dropped", "Packets dropped, by reason");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (address, family, count) in rows() {
        for (reason, value) in &count.dropped {
            let labels =
                [("address", address.as_str()), ("family", family), ("reason", reason.as_str())];
            counter(&mut metric, &labels, *value)?;
        }
    }
    Ok(())
}

/// The program's own histogram, its buckets joined to one for each power of two.
fn histogram(latency: &Latency, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let mut buckets: Vec<(f64, u64)> = Vec::new();
    let mut sum = 0.0;
    for (i, count) in latency.buckets.iter().enumerate() {
        let (from, to) = Latency::bounds(i);
        // The program counts samples, not their sum: each is taken as the middle of its bucket.
        sum += (from as f64 + to as f64) / 2.0 * *count as f64 / 1e9;
        let bound = to.next_power_of_two() as f64 / 1e9;
        match buckets.last_mut() {
            Some((last, total)) if *last == bound => *total += count,
            _ => buckets.push((bound, *count)),
        }
    }
    while buckets.len() > 1 && buckets.last().is_some_and(|(_, count)| *count == 0) {
        buckets.pop();
    }
    buckets.push((f64::INFINITY, 0));
    let (name, help) = (
        "nigh_echo_program_seconds",
        "Time the program takes for a packet, from samples; the sum is an estimate",
    );
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    metric.encode_histogram::<NoLabelSet>(sum, latency.samples(), &buckets, None)
}

fn interfaces(status: &Status, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let (name, help) = ("nigh_echo_interface", "1 for the mode in which the interface answers");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for interface in &status.interfaces {
        for (mode, word) in [
            (InterfaceMode::Native, "native"),
            (InterfaceMode::Generic, "generic"),
            (InterfaceMode::Kernel, "kernel"),
            (InterfaceMode::Absent, "absent"),
        ] {
            let labels = [("interface", interface.name.as_str()), ("mode", word)];
            gauge(&mut metric, &labels, i64::from(interface.mode == mode))?;
        }
    }
    Ok(())
}

fn anycast(status: &Status, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let Some(anycast) = &status.anycast else { return Ok(()) };
    let (name, help) =
        ("nigh_anycast_announced", "1 when the prefix is advertised to the upstream");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for upstream in &anycast.upstreams {
        for prefix in &anycast.prefixes {
            let text = prefix.to_string();
            let labels = [("prefix", text.as_str()), ("upstream", upstream.name.as_str())];
            gauge(&mut metric, &labels, i64::from(upstream.prefixes.contains(prefix)))?;
        }
    }
    let (name, help) = ("nigh_anycast_session", "1 when the session is established");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for upstream in &anycast.upstreams {
        let labels = [("upstream", upstream.name.as_str())];
        gauge(&mut metric, &labels, i64::from(upstream.session == "Established"))?;
    }
    let (name, help) = ("nigh_anycast_check_healthy", "1 when the health check is healthy");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for check in &anycast.checks {
        gauge(&mut metric, &[("check", check.name.as_str())], i64::from(check.healthy))?;
    }
    let (name, help) = ("nigh_anycast_healthy", "1 when nothing is wrong");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    metric.encode_gauge(&i64::from(status.healthy))?;
    let (name, help) = ("nigh_anycast_draining", "1 from the begin of a drain to its reversal");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    metric.encode_gauge(&i64::from(status.drain != crate::drain::Phase::Serving))
}
