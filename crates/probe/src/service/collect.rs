//! The station's metrics, names `nigh_probe_*`.

use super::shared::Shared;
use crate::tools::Refusal;
use job::metrics::{Metrics, rows};
use std::{collections::BTreeMap, fmt};

/// Adds all metrics.
pub(super) fn collect(shared: &Shared, metrics: &mut Metrics<'_>) -> fmt::Result {
    let status = shared.status();
    let runs = status.tests.iter().flat_map(|test| {
        let of = [("test", test.test.as_str()), ("what", test.what.word())];
        [("done", test.done), ("failed", test.failed), ("skipped", test.skipped)]
            .map(|(outcome, count)| ([of[0], of[1], ("outcome", outcome)], count))
    });
    metrics.counters("nigh_probe_runs", "Runs of tests, by outcome", runs)?;
    metrics.gauge("nigh_probe_running", "Tests that run now", status.running.len())?;
    metrics.gauges(
        "nigh_probe_station_reached",
        "1 when there is a connection to the station",
        status.peers.iter().map(|peer| ([("station", &peer.name)], i64::from(peer.reached))),
    )?;
    let requests = status.station.requests;
    metrics.counter("nigh_probe_requests", "Requests of other stations", requests)?;
    if let Some(delays) = &status.delays {
        for (name, help, count) in [
            ("nigh_probe_stamp_sent", "STAMP test packets sent", delays.sent),
            (
                "nigh_probe_stamp_not_sent",
                "Test packets that the kernel did not send",
                delays.not_sent,
            ),
            ("nigh_probe_stamp_missed", "Test packets that missed their time", delays.missed),
            ("nigh_probe_stamp_received", "Packets that the sender received", delays.received),
            (
                "nigh_probe_stamp_reflected",
                "Packets of other stations that were reflected",
                delays.reflected,
            ),
        ] {
            metrics.counter(name, help, count)?;
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
            "Requests over HTTP that were refused, by reason",
            &status.requests_refused,
            "reason",
        ),
        (
            "nigh_probe_accepted",
            "Requests accepted from other stations, by what was asked",
            &status.station.accepted,
            "what",
        ),
        (
            "nigh_probe_refused",
            "Requests of other stations that were refused, by reason",
            &status.station.refused,
            "reason",
        ),
    ] {
        metrics.counters(name, help, rows(label, counts))?;
    }
    let leases = status.station.leases;
    metrics.gauge("nigh_probe_leases", "Leases that other stations hold now", leases)?;
    if let Some(error_ns) = status.clock_error_ns {
        let (name, help) = ("nigh_probe_clock_error_seconds", "Maximum error of the clock");
        metrics.gauge(name, help, error_ns as f64 / 1e9)?;
    }
    let tests = &shared.context.counters;
    metrics.counters(
        "nigh_probe_input_refused",
        "Responses and packets from unknown peers that tests refused, by kind",
        Refusal::ALL.map(|what| ([("what", what.word())], tests.refused(what))),
    )?;
    status.archive.collect(metrics)?;
    let healthy = i64::from(status.problems.is_empty());
    metrics.gauge("nigh_probe_healthy", "1 when the station has no problems", healthy)
}
