//! The service's metrics, names `nigh_echo_*` and `nigh_anycast_*`.

use crate::status::{Count, InterfaceMode, Status};
use datapath::echo::{EchoProgram, Latency};
use job::Metrics;
use std::fmt;

/// Adds all metrics.
pub(super) fn collect(
    status: &Status,
    program: Option<&EchoProgram>,
    metrics: &mut Metrics<'_>,
) -> fmt::Result {
    interfaces(status, metrics)?;
    if status.ledger.counted {
        ledger(status, metrics)?;
        if let Some(latency) = program.and_then(|program| program.latency().ok()) {
            histogram(&latency, metrics)?;
        }
    }
    anycast(status, metrics)
}

fn ledger(status: &Status, metrics: &mut Metrics<'_>) -> fmt::Result {
    let rows = || {
        let services = status.ledger.rows.iter().map(|row| {
            let family = if row.address.is_ipv4() { "ipv4" } else { "ipv6" };
            (row.address.to_string(), family, &row.count)
        });
        services.chain([("other".to_owned(), "any", &status.ledger.other)]).map(
            |(address, family, count)| {
                ([("address", address), ("family", family.to_owned())], count)
            },
        )
    };
    type Get = fn(&Count) -> u64;
    let columns: [(&str, &str, Get); 3] = [
        ("nigh_echo_received", "Packets that arrived", |count| count.received),
        ("nigh_echo_answered", "Requests that the program answered", |count| count.answered),
        ("nigh_echo_passed", "Packets left to the kernel", |count| count.passed),
    ];
    for (name, help, get) in columns {
        metrics.counters(name, help, rows().map(|(labels, count)| (labels, get(count))))?;
    }
    let dropped = rows().flat_map(|([address, family], count)| {
        count.dropped.iter().map(move |(reason, count)| {
            ([address.clone(), family.clone(), ("reason", reason.clone())], *count)
        })
    });
    metrics.counters("nigh_echo_dropped", "Packets dropped, by reason", dropped)
}

/// The program's own histogram, its buckets joined to one for each power of two.
fn histogram(latency: &Latency, metrics: &mut Metrics<'_>) -> fmt::Result {
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
    metrics.histogram(name, help, (sum, latency.samples()), &buckets)
}

fn interfaces(status: &Status, metrics: &mut Metrics<'_>) -> fmt::Result {
    const MODES: [(InterfaceMode, &str); 4] = [
        (InterfaceMode::Native, "native"),
        (InterfaceMode::Generic, "generic"),
        (InterfaceMode::Kernel, "kernel"),
        (InterfaceMode::Absent, "absent"),
    ];
    let rows = status.interfaces.iter().flat_map(|interface| {
        MODES.map(|(mode, word)| {
            let labels = [("interface", interface.name.as_str()), ("mode", word)];
            (labels, i64::from(interface.mode == mode))
        })
    });
    metrics.gauges("nigh_echo_interface", "1 for the mode in which the interface answers", rows)
}

fn anycast(status: &Status, metrics: &mut Metrics<'_>) -> fmt::Result {
    let Some(anycast) = &status.anycast else { return Ok(()) };
    let upstreams = anycast.upstreams.iter();
    metrics.gauges(
        "nigh_anycast_announced",
        "1 when the prefix is advertised to the upstream",
        upstreams.clone().flat_map(|upstream| {
            anycast.prefixes.iter().map(|prefix| {
                let labels = [("prefix", prefix.to_string()), ("upstream", upstream.name.clone())];
                (labels, i64::from(upstream.prefixes.contains(prefix)))
            })
        }),
    )?;
    metrics.gauges(
        "nigh_anycast_session",
        "1 when the session is established",
        upstreams.clone().map(|upstream| {
            ([("upstream", &upstream.name)], i64::from(upstream.session == "Established"))
        }),
    )?;
    let bfd = upstreams.filter_map(|upstream| {
        let bfd = upstream.bfd.as_ref()?;
        Some(([("upstream", &upstream.name)], bfd))
    });
    metrics.gauges(
        "nigh_anycast_bfd",
        "1 when the BFD session with the neighbour is up",
        bfd.clone().map(|(labels, bfd)| (labels, i64::from(bfd.state == "Up"))),
    )?;
    metrics.counters(
        "nigh_anycast_bfd_failures",
        "How often BFD has lost the neighbour",
        bfd.map(|(labels, bfd)| (labels, bfd.failures)),
    )?;
    metrics.gauges(
        "nigh_anycast_check_healthy",
        "1 when the health check is healthy",
        anycast.checks.iter().map(|check| ([("check", &check.name)], i64::from(check.healthy))),
    )?;
    let healthy = i64::from(status.problems.is_empty());
    metrics.gauge("nigh_anycast_healthy", "1 if there is no problem", healthy)?;
    let draining = i64::from(status.drain != crate::drain::Phase::Serving);
    let help = "1 from the start of a drain until it is undone";
    metrics.gauge("nigh_anycast_draining", help, draining)
}
