//! The gate's metrics, names `nigh_gate_*`.

use crate::status::{LimitStatus, ParserStatus, Status};
use job::metrics::{Metrics, rows};
use std::{collections::BTreeMap, fmt};

/// Adds all metrics.
pub(super) fn collect(status: &Status, metrics: &mut Metrics<'_>) -> fmt::Result {
    packets(status, metrics)?;
    if let Some(audit) = &status.audit {
        let outcomes = [
            ("written", audit.written),
            ("skipped", audit.skipped),
            ("lost_queue_full", audit.lost.queue_full),
            ("lost_not_written", audit.lost.not_written),
        ];
        metrics.counters(
            "nigh_gate_audit_records",
            "Records of the audit log, by outcome",
            outcomes.map(|(outcome, count)| ([("outcome", outcome)], count)),
        )?;
    }
    let (flows, files) = (&status.flows, &status.files);
    for (name, help, count) in [
        ("nigh_gate_flows_seen", "Flows seen", flows.seen),
        (
            "nigh_gate_flows_ended",
            "Decided flows that ended or were idle for too long",
            flows.ended,
        ),
        (
            "nigh_gate_flows_ended_undecided",
            "Flows that ended or were idle for too long before they were decided",
            flows.ended_undecided,
        ),
        (
            "nigh_gate_flows_evicted",
            "Flows removed while undecided because there were too many",
            flows.evicted,
        ),
        (
            "nigh_gate_verdicts_full",
            "Verdicts that did not fit into the full flow table",
            flows.full,
        ),
        ("nigh_gate_files_seen", "Files whose names or content were seen", files.seen),
        ("nigh_gate_files_denied", "Files that a rule denied", files.denied),
        ("nigh_gate_scans_clean", "Files that were scanned and are clean", files.clean),
        ("nigh_gate_scans_found", "Files in which the scanner found something", files.found),
        ("nigh_gate_scans_failed", "Files that could not be scanned", files.unscanned),
        (
            "nigh_gate_torrents_without_names",
            "Connections of torrents that began before the file names were known",
            files.without_names,
        ),
        ("nigh_gate_messages", "Messages of chats", files.messages),
        ("nigh_gate_held_released", "Packets that were held and then released", files.released),
        ("nigh_gate_held_dropped", "Packets that were held and then dropped", files.dropped),
        ("nigh_gate_packets_inspected", "Packets inspected", status.copies.read),
        (
            "nigh_gate_packets_bad_checksum",
            "Packets that were not inspected because of a wrong checksum",
            status.copies.bad_checksum,
        ),
    ] {
        metrics.counter(name, help, count)?;
    }
    for (name, help, value) in [
        ("nigh_gate_flows_decided", "Decided flows now", flows.decided),
        ("nigh_gate_flows_undecided", "Flows now without a verdict", flows.undecided),
        (
            "nigh_gate_flows_managed",
            "Flows that are inspected beyond their first packets",
            files.managed,
        ),
        ("nigh_gate_held_bytes", "Bytes of packets that wait for a verdict", files.waiting_bytes),
        (
            "nigh_gate_scanning_bytes",
            "Bytes of content that wait for the scanner",
            files.scanning_bytes,
        ),
        ("nigh_gate_bypass", "1 when the gate is switched off", u64::from(status.bypass)),
        ("nigh_gate_healthy", "1 when the gate is healthy", u64::from(status.problems.is_empty())),
    ] {
        metrics.gauge(name, help, value)?;
    }
    for (name, help, counts) in [
        ("nigh_gate_classified", "Classified flows, by application", &status.classified),
        ("nigh_gate_refused", "Flows refused, by application", &status.refused),
    ] {
        metrics.counters(name, help, rows("application", counts))?;
    }
    metrics.gauges(
        "nigh_gate_bits_per_second",
        "Rate now, by application",
        rows("application", &status.rates),
    )?;
    metrics.counters(
        "nigh_gate_rules",
        "Flows and files that a rule decided or counted",
        status
            .rules
            .iter()
            .map(|rule| ([("rule", rule.name.as_str()), ("of", rule.of.as_str())], rule.count)),
    )?;
    parsers(&status.parsers, metrics)?;
    limits(&status.limits, metrics)
}

fn parsers(parsers: &BTreeMap<String, ParserStatus>, metrics: &mut Metrics<'_>) -> fmt::Result {
    metrics.counters(
        "nigh_gate_parser_failures",
        "Failures of the processes that read packets",
        parsers.iter().flat_map(|(name, parser)| {
            [("died", parser.died), ("hung", parser.hung), ("refused", parser.refused)]
                .map(|(kind, count)| ([("parser", name.as_str()), ("kind", kind)], count))
        }),
    )?;
    metrics.counters(
        "nigh_gate_parser_lost_flows",
        "Flows that were decided unread because such a process had failed",
        parsers.iter().map(|(name, parser)| ([("parser", name.as_str())], parser.lost_flows)),
    )
}

fn packets(status: &Status, metrics: &mut Metrics<'_>) -> fmt::Result {
    let hooks = || status.packets.iter().map(|(hook, packets)| (("hook", hook.as_str()), packets));
    metrics.counters(
        "nigh_gate_packets",
        "Packets, by hook and outcome",
        hooks().flat_map(|(hook, packets)| {
            rows("outcome", &packets.outcomes)
                .map(move |([outcome], count)| ([hook, outcome], count))
        }),
    )?;
    metrics.counters(
        "nigh_gate_packets_received",
        "Packets, by hook: the sum of nigh_gate_packets",
        hooks().map(|(hook, packets)| ([hook], packets.received)),
    )?;
    metrics.counters(
        "nigh_gate_packets_extra",
        "Packets that the gate sent itself, copied, or could not copy",
        hooks().flat_map(|(hook, packets)| {
            rows("kind", &packets.extra).map(move |([kind], count)| ([hook, kind], count))
        }),
    )
}

fn limits(limits: &[LimitStatus], metrics: &mut Metrics<'_>) -> fmt::Result {
    fn labels(limit: &LimitStatus) -> [(&str, &str); 2] {
        [("limit", &limit.limit), ("share", &limit.share)]
    }
    metrics.gauges(
        "nigh_gate_limit_flows",
        "Flows under a limit, by host, group or application",
        limits.iter().map(|limit| (labels(limit), limit.flows)),
    )?;
    metrics.counters(
        "nigh_gate_limit_bytes",
        "Bytes that went through a limit, by direction",
        limits.iter().flat_map(|limit| {
            let [of, share] = labels(limit);
            [("to_internal", limit.bytes_to_internal), ("from_internal", limit.bytes_from_internal)]
                .map(|(direction, bytes)| ([of, share, ("direction", direction)], bytes))
        }),
    )?;
    metrics.counters(
        "nigh_gate_limit_dropped",
        "Packets dropped because a limit's queue was full",
        limits.iter().map(|limit| (labels(limit), limit.dropped)),
    )
}
