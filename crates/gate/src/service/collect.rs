//! The gate's metrics in Prometheus' form, names `nigh_gate_*`.

use crate::status::Status;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};
use std::fmt;

/// Adds all metrics.
pub(super) fn collect(status: &Status, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let (name, help) = ("nigh_gate_packets", "Packets, by hook and outcome");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (hook, packets) in &status.packets {
        for (outcome, count) in &packets.outcomes {
            let labels = [("hook", hook.as_str()), ("outcome", outcome.as_str())];
            ConstCounter::new(*count).encode(metric.encode_family(&labels)?)?;
        }
    }
    let (name, help) =
        ("nigh_gate_packets_received", "Packets, by hook: the sum of nigh_gate_packets");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (hook, packets) in &status.packets {
        let labels = [("hook", hook.as_str())];
        ConstCounter::new(packets.received).encode(metric.encode_family(&labels)?)?;
    }
    let (name, help) =
        ("nigh_gate_packets_extra", "Packets that the gate sent itself, copied, or could not copy");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (hook, packets) in &status.packets {
        for (kind, count) in &packets.extra {
            let labels = [("hook", hook.as_str()), ("kind", kind.as_str())];
            ConstCounter::new(*count).encode(metric.encode_family(&labels)?)?;
        }
    }
    if let Some(audit) = &status.audit {
        let (name, help) = ("nigh_gate_audit_records", "Records of the audit, by outcome");
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (outcome, count) in [
            ("written", audit.written),
            ("skipped", audit.skipped),
            ("lost_queue_full", audit.lost.queue_full),
            ("lost_not_written", audit.lost.not_written),
        ] {
            let labels = [("outcome", outcome)];
            ConstCounter::new(count).encode(metric.encode_family(&labels)?)?;
        }
    }
    let flows = &status.flows;
    for (name, help, count) in [
        ("nigh_gate_flows_seen", "Flows seen", flows.seen),
        (
            "nigh_gate_flows_ended",
            "Decided flows that ended or were silent for too long",
            flows.ended,
        ),
        (
            "nigh_gate_flows_ended_undecided",
            "Flows that ended or were silent for too long before they were decided",
            flows.ended_undecided,
        ),
        (
            "nigh_gate_flows_evicted",
            "Flows removed while undecided because there were too many",
            flows.evicted,
        ),
        ("nigh_gate_verdicts_full", "Verdicts that the full table refused", flows.full),
        ("nigh_gate_files_seen", "Files whose names or content were seen", status.files.seen),
        ("nigh_gate_files_denied", "Files that a rule denied", status.files.denied),
        ("nigh_gate_scans_clean", "Verdicts of the scanner without a find", status.files.clean),
        ("nigh_gate_scans_found", "Finds of the scanner", status.files.found),
        ("nigh_gate_scans_failed", "Files that could not be scanned", status.files.unscanned),
        (
            "nigh_gate_torrents_without_names",
            "Connections of torrents that began before the names were known that rules ask for",
            status.files.without_names,
        ),
        ("nigh_gate_messages", "Messages of chats", status.files.messages),
        (
            "nigh_gate_held_released",
            "Packets that waited for a verdict and went on",
            status.files.released,
        ),
        (
            "nigh_gate_held_dropped",
            "Packets that waited for a verdict and never went on",
            status.files.dropped,
        ),
        ("nigh_gate_packets_inspected", "Packets inspected", status.copies.read),
        (
            "nigh_gate_packets_bad_checksum",
            "Packets not inspected, as their checksum is wrong",
            status.copies.bad_checksum,
        ),
    ] {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(count).encode(metric)?;
    }
    for (name, help, count) in [
        ("nigh_gate_flows_decided", "Decided flows that live", flows.decided),
        ("nigh_gate_flows_undecided", "Flows that are inspected", flows.undecided),
        (
            "nigh_gate_flows_managed",
            "Flows of which more is read than their first packets",
            status.files.managed,
        ),
        (
            "nigh_gate_held_bytes",
            "Bytes of packets that wait for a verdict",
            status.files.waiting_bytes,
        ),
        (
            "nigh_gate_scanning_bytes",
            "Bytes of content that wait for the scanner",
            status.files.scanning_bytes,
        ),
        ("nigh_gate_bypass", "1 when the gate is switched off", u64::from(status.bypass)),
        ("nigh_gate_healthy", "1 when the gate is healthy", u64::from(status.healthy)),
    ] {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX)).encode(metric)?;
    }
    for (name, help, label, counts, kind) in [
        (
            "nigh_gate_classified",
            "Classified flows, by application",
            "application",
            &status.classified,
            MetricType::Counter,
        ),
        (
            "nigh_gate_refused",
            "Flows refused, by application",
            "application",
            &status.refused,
            MetricType::Counter,
        ),
        (
            "nigh_gate_bits_per_second",
            "Rate now, by application",
            "application",
            &status.rates,
            MetricType::Gauge,
        ),
    ] {
        let gauge = matches!(kind, MetricType::Gauge);
        let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
        for (word, count) in counts {
            let labels = [(label, word.as_str())];
            let metric = metric.encode_family(&labels)?;
            if gauge {
                ConstGauge::new(i64::try_from(*count).unwrap_or(i64::MAX)).encode(metric)?;
            } else {
                ConstCounter::new(*count).encode(metric)?;
            }
        }
    }
    let (name, help) = ("nigh_gate_rules", "Flows and files that a rule decided or counted");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for rule in &status.rules {
        let labels = [("rule", rule.name.as_str()), ("of", rule.of.as_str())];
        ConstCounter::new(rule.count).encode(metric.encode_family(&labels)?)?;
    }
    let (name, help) = ("nigh_gate_limit_flows", "Flows under a limit, by who has its rate");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for limit in &status.limits {
        let labels = [("limit", limit.limit.as_str()), ("share", limit.share.as_str())];
        let flows = i64::try_from(limit.flows).unwrap_or(i64::MAX);
        ConstGauge::new(flows).encode(metric.encode_family(&labels)?)?;
    }
    let (name, help) = ("nigh_gate_limit_bytes", "Bytes that went through a limit, by direction");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for limit in &status.limits {
        for (direction, bytes) in
            [("to_internal", limit.bytes_to_internal), ("from_internal", limit.bytes_from_internal)]
        {
            let of = ("limit", limit.limit.as_str());
            let labels = [of, ("share", limit.share.as_str()), ("direction", direction)];
            ConstCounter::new(bytes).encode(metric.encode_family(&labels)?)?;
        }
    }
    let (name, help) = ("nigh_gate_limit_dropped", "Packets that found a limit's queue full");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for limit in &status.limits {
        let labels = [("limit", limit.limit.as_str()), ("share", limit.share.as_str())];
        ConstCounter::new(limit.dropped).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}
