//! The mesh as a matrix: who measured whom, with the median and the loss of a time.

use super::{
    axis::Measure,
    points::{Direction, loss, of_direction},
};
use crate::{
    archive::{Entry, Summary},
    record::Bounded,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The matrix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mesh {
    /// What the figures are.
    pub what: String,
    /// Who measured, by name.
    pub from: Vec<String>,
    /// Who was measured, by name.
    pub to: Vec<String>,
    /// The pairs that were measured.
    pub cells: Vec<Cell>,
}

/// A pair.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Who measured.
    pub from: String,
    /// Who was measured.
    pub to: String,
    /// The median delay, with the interval in which that of all packets lies; `None` where no packet
    /// arrived whose delay in this direction is known.
    pub median: Option<Bounded>,
    /// Packets lost.
    pub lost: u64,
    /// Packets sent.
    pub sent: u64,
}

impl Cell {
    /// The median with its unit.
    pub(super) fn median(&self) -> String {
        let median = self.median.map(|median| Measure::Time.text(median.estimate_ns as f64));
        median.unwrap_or_else(|| "none".to_owned())
    }

    /// The loss in per cent.
    pub(super) fn loss(&self) -> String {
        match self.share_lost() {
            Some(share) if self.lost > 0 => format!("{:.1} %", share * 100.0),
            Some(_) => "0 %".to_owned(),
            None => String::new(),
        }
    }

    /// The share of packets that was lost; `None` where none was sent.
    pub(super) fn share_lost(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.lost as f64 / self.sent as f64)
    }
}

impl Mesh {
    /// The matrix of all delays among the entries; ICMP echo counts as a round trip.
    pub fn new(entries: &[Entry], direction: Direction) -> Self {
        let mut pairs: BTreeMap<(&str, &str), (Vec<Summary>, u64, u64)> = BTreeMap::new();
        for entry in entries {
            let summary = match entry {
                Entry::Record(record) => Summary::of(&record.figures),
                Entry::Span(span) => span.figures.clone(),
            };
            let series = match &summary {
                Summary::Delay(delay) => of_direction(delay, direction),
                Summary::Ping(series) if direction == Direction::RoundTrip => series.clone(),
                _ => continue,
            };
            let (parts, lost, sent) = pairs.entry((entry.from(), entry.to())).or_default();
            let packets = loss(entry, &series);
            *lost = lost.saturating_add(packets.0);
            *sent = sent.saturating_add(packets.1);
            parts.push(Summary::Ping(series));
        }
        let names = |name: fn(&(&str, &str)) -> String| {
            pairs.keys().map(name).collect::<BTreeSet<_>>().into_iter().collect()
        };
        let (from, to) = (names(|pair| pair.0.to_owned()), names(|pair| pair.1.to_owned()));
        let cells = pairs.into_iter().map(|((from, to), (parts, lost, sent))| {
            let median = match Summary::join(&parts) {
                Some(Summary::Ping(series)) => series.median,
                _ => None,
            };
            Cell { from: from.to_owned(), to: to.to_owned(), median, lost, sent }
        });
        let what = match direction {
            Direction::Forward => "one-way delay: median, packets lost",
            Direction::Reverse => "one-way delay of the reverse path: median, packets lost",
            Direction::RoundTrip => "round-trip time: median, packets lost",
        };
        Self { what: what.to_owned(), from, to, cells: cells.collect() }
    }

    /// The pair's figures.
    pub(super) fn cell(&self, from: &str, to: &str) -> Option<&Cell> {
        let order = |cell: &Cell| (cell.from.as_str(), cell.to.as_str()).cmp(&(from, to));
        self.cells.binary_search_by(order).ok().and_then(|at| self.cells.get(at))
    }
}
