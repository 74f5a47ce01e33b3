//! The state of the running station, for programs and for people.

use crate::{archive, config::What, delay, record, stamp::Refusals};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt::Write, net::IpAddr};
use terminal::text::age;

/// What is under `probe` in `nigh status --json` and `/api/v1/status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Why it is not healthy, a sentence each; the contract adds them to its JSON.
    #[serde(default, skip_serializing)]
    pub problems: Vec<String>,
    /// The station's name.
    pub name: String,
    /// What chrony reports of the clock where it runs, else the kernel.
    pub clock: record::Clock,
    /// Maximum error of the clock, in nanoseconds; none when that is not known.
    pub clock_error_ns: Option<u64>,
    /// The clocks of the NTP servers that are watched.
    pub clocks: BTreeMap<IpAddr, record::Clock>,
    /// Stations of which this one asks something.
    pub peers: Vec<PeerStatus>,
    /// Outcomes of runs, by test.
    pub tests: Vec<RunStatus>,
    /// Tests that run now.
    pub running: Vec<Running>,
    /// What others asked of this station.
    pub station: StationStatus,
    /// What was counted of STAMP packets.
    pub delays: Option<DelayStatus>,
    /// What the reflector in the driver did with packets, if there is one.
    pub driver: Option<BTreeMap<String, u64>>,
    /// Requests by HTTP that were refused, by reason.
    pub requests_refused: BTreeMap<String, u64>,
    /// The state of the archive.
    pub archive: archive::Status,
}

/// Another station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerStatus {
    /// Its name.
    pub name: String,
    /// Whether there is a connection.
    pub reached: bool,
    /// The error, when there is none.
    pub why: Option<String>,
    /// For how long that is so.
    pub since_seconds: f64,
    /// The most that its clock is off, as it reports.
    pub clock_error_ns: Option<u64>,
}

/// Outcomes of a test's runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStatus {
    /// The test.
    pub test: String,
    /// What is measured.
    pub what: What,
    /// Runs that measured something.
    pub done: u64,
    /// Runs that could not.
    pub failed: u64,
    /// Runs for which there was no room at their time.
    pub skipped: u64,
}

/// A test that runs now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// The test.
    pub test: String,
    /// What is measured.
    pub what: What,
    /// Where to.
    pub to: String,
}

/// What others asked of this station.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StationStatus {
    /// Lines that were answered or refused.
    pub requests: u64,
    /// Leases that others hold now.
    pub leases: usize,
    /// Requests that were accepted, by what was asked.
    pub accepted: BTreeMap<String, u64>,
    /// What was refused, by reason.
    pub refused: BTreeMap<String, u64>,
}

/// What was counted of STAMP packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayStatus {
    /// Test packets that were sent.
    pub sent: u64,
    /// Test packets that the kernel did not take.
    pub not_sent: u64,
    /// Test packets that missed their time before they could be sent.
    pub missed: u64,
    /// Packets that came back, or came to no session.
    pub received: u64,
    /// Packets of others that were reflected.
    pub reflected: u64,
    /// What the sender's side refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// What the reflector refused, by reason.
    pub reflector_refused: BTreeMap<String, u64>,
}

impl DelayStatus {
    /// What the shell has counted.
    pub fn of(counters: &delay::Counters) -> Self {
        let reasons = |refusals: &Refusals| {
            let counted = refusals.iter().filter(|(_, count)| *count > 0);
            counted.map(|(reason, count)| (reason.name().to_owned(), count)).collect()
        };
        Self {
            sent: counters.sent,
            not_sent: counters.not_sent,
            missed: counters.missed,
            received: counters.received,
            reflected: counters.reflected,
            refused: reasons(&counters.refused),
            reflector_refused: reasons(&counters.reflector_refused),
        }
    }
}

/// The state as text for people.
pub fn render(status: &Status) -> String {
    let mut text = String::new();
    let health = if status.problems.is_empty() { "healthy" } else { "not healthy" };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "probe: {health}; station {}", status.name);
    for problem in &status.problems {
        let _ = writeln!(text, "  {problem}");
    }
    let error = match status.clock_error_ns {
        Some(ns) => format!("within {}", duration(ns)),
        None => "its error is not known".to_owned(),
    };
    let _ = writeln!(text, "  clock: {error} ({})", status.clock.source);
    for peer in &status.peers {
        let since = age(peer.since_seconds);
        let state = match &peer.why {
            None => format!("reached for {since}"),
            Some(why) => format!("not reached for {since}: {why}"),
        };
        let _ = writeln!(text, "  station {}: {state}", peer.name);
    }
    for test in &status.tests {
        let RunStatus { test, what, done, failed, skipped } = test;
        let _ = writeln!(
            text,
            "  test {test} ({what}): {done} done, {failed} failed, {skipped} skipped"
        );
    }
    for running in &status.running {
        let _ = writeln!(text, "  runs now: {} {} to {}", running.test, running.what, running.to);
    }
    if let Some(delays) = &status.delays {
        let _ = writeln!(
            text,
            "  STAMP: {} sent, {} missed their time, {} received, {} reflected",
            delays.sent, delays.missed, delays.received, delays.reflected
        );
    }
    let station = &status.station;
    let refused: u64 = station.refused.values().sum();
    let _ = writeln!(
        text,
        "  others: {} requests, {} sessions, {refused} refused",
        station.requests, station.leases
    );
    text
}

/// Nanoseconds as people read them.
pub(crate) fn duration(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}
