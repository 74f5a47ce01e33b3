//! Clocks as a table, traces as a list.

use super::axis::{Measure, digits, moment};
use crate::{
    archive::Entry,
    record::{Clock, Figures, Hop, Trace},
};
use std::collections::BTreeMap;

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// The columns' names.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// A text for each column.
    pub cells: Vec<String>,
    /// Whether it says something that somebody must see to.
    pub alarm: bool,
}

/// The newest record of each pair that `figures` picks.
fn newest<'a, T>(
    entries: &'a [Entry],
    figures: impl Fn(&'a Figures) -> Option<T>,
) -> BTreeMap<(&'a str, &'a str), (i64, T)> {
    let mut found: BTreeMap<_, (i64, T)> = BTreeMap::new();
    for entry in entries {
        let Entry::Record(record) = entry else { continue };
        let Some(figures) = figures(&record.figures) else { continue };
        let pair = (record.from.as_str(), record.to.as_str());
        if found.get(&pair).is_none_or(|before| before.0 <= record.at_ns) {
            found.insert(pair, (record.at_ns, figures));
        }
    }
    found
}

/// How clocks are, by the newest record of each.
pub fn clocks(entries: &[Entry]) -> Table {
    let found = newest(entries, |figures| match figures {
        Figures::Clock(clock) => Some(clock),
        _ => None,
    });
    let rows = found.into_iter().map(|((from, to), (_, clock))| Row {
        cells: clock_cells(from, to, clock),
        alarm: clock.maximum_error_ns.is_none() || clock.holdover,
    });
    let head = ["clock", "offset", "max error", "str", "reference", "reach", "ppm", "age", "state"];
    Table {
        title: "clocks, by their newest records".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

fn clock_cells(from: &str, to: &str, clock: &Clock) -> Vec<String> {
    let none = || "-".to_owned();
    let name = if from == to { from.to_owned() } else { format!("{to} by {from}") };
    let state = match (clock.maximum_error_ns, clock.holdover) {
        (_, true) => "holdover".to_owned(),
        (None, _) => "no bound".to_owned(),
        _ => "good".to_owned(),
    };
    vec![
        name,
        clock.offset_ns.map_or_else(none, |offset| Measure::Time.text(offset as f64)),
        clock.maximum_error_ns.map_or_else(
            || "unknown".to_owned(),
            |error| format!("±{}", Measure::Time.text(error as f64)),
        ),
        clock.stratum.map_or_else(none, |stratum| stratum.to_string()),
        clock.reference.clone().unwrap_or_else(none),
        clock.reach.map_or_else(none, |reach| format!("{reach:03o}")),
        clock.frequency_ppb.map_or_else(none, |ppb| digits(ppb as f64 / 1000.0)),
        clock.since_update_seconds.map_or_else(none, |since| format!("{since:.0} s")),
        state,
    ]
}

/// The newest path of each pair, hop by hop.
pub fn traces(entries: &[Entry]) -> Table {
    let found = newest(entries, |figures| match figures {
        Figures::Trace(trace) => Some(trace),
        _ => None,
    });
    let mut rows = Vec::new();
    for ((from, to), (at_ns, trace)) in found {
        rows.push(Row { cells: trace_head(from, to, at_ns, trace), alarm: !trace.reached });
        let hops = trace.hops.iter().enumerate();
        rows.extend(hops.map(|(n, hop)| Row { cells: hop_cells(n + 1, hop), alarm: false }));
    }
    let head = ["", "hop", "round trip", "answer"];
    Table {
        title: "paths, by the newest traces".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows,
    }
}

fn trace_head(from: &str, to: &str, at_ns: i64, trace: &Trace) -> Vec<String> {
    let reached = if trace.reached { "reached" } else { "not reached" };
    let mtu = trace.mtu_bytes.map(|mtu| format!(", MTU {mtu}")).unwrap_or_default();
    let pair = format!("{from} > {to}");
    vec![
        moment(at_ns).get(5..16).unwrap_or_default().to_owned(),
        pair,
        String::new(),
        reached.to_owned() + &mtu,
    ]
}

fn hop_cells(distance: usize, hop: &Hop) -> Vec<String> {
    let mut times = hop.round_trips_ns.clone();
    times.sort_unstable();
    let time = times.get(times.len().saturating_sub(1) / 2);
    let answer = hop.answer.iter().chain(&hop.extensions).cloned().collect::<Vec<_>>();
    vec![
        format!("{distance:>11}"),
        hop.address.map_or_else(|| "*".to_owned(), |address| address.to_string()),
        time.map(|time| Measure::Time.text(*time as f64)).unwrap_or_default(),
        answer.join(", "),
    ]
}
