//! The outcome of a series of packets: counts, and delays with their intervals.

use super::sketch::Sketch;
use crate::{
    interval::{Interval, rank},
    record::{Bounded, Series},
};
use std::collections::VecDeque;

/// Arrivals that are remembered for the delay variation of neighbours: packets that were reordered by more
/// have none.
const NEIGHBOURS: usize = 64;

/// A series of packets with numbers that wrap, in bounded memory.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    counts: Series,
    arrived: u64,
    estimates: Sketch,
    /// Bounds that are known.
    lows: Sketch,
    highs: Sketch,
    least: Option<Interval>,
    most: Option<Interval>,
    /// The last arrivals, for the delay variation of neighbours.
    recent: VecDeque<(u32, i64)>,
    steps: u64,
    steps_sum_ns: u128,
}

impl Collector {
    /// A packet arrived in time, for the first time.
    pub fn arrived(&mut self, sequence: u32, delay: Interval, reordered: bool) {
        let delay = delay.causal().unwrap_or_else(|_| {
            self.counts.contradicted += 1;
            Interval::unbounded(delay.estimate_ns)
        });
        self.arrived += 1;
        self.counts.reordered += u64::from(reordered);
        self.estimates.add(delay.estimate_ns);
        if let Some(low) = delay.low_ns {
            self.lows.add(low);
        }
        if let Some(high) = delay.high_ns {
            self.highs.add(high);
        }
        self.least = Some(self.least.map_or(delay, |least| lesser(least, delay)));
        self.most = Some(self.most.map_or(delay, |most| greater(most, delay)));
        self.step(sequence, delay.estimate_ns);
    }

    /// A packet did not arrive within the time limit.
    pub fn lost(&mut self) {
        self.counts.lost += 1;
    }

    /// A packet arrived after the time limit; it has been counted as lost.
    pub fn late(&mut self) {
        self.counts.late += 1;
    }

    /// A packet that had arrived in time did so again.
    pub fn duplicated(&mut self) {
        self.counts.duplicated += 1;
    }

    /// The figures of the packets whose outcome was reported since the last call.
    pub fn take(&mut self) -> Series {
        let share = |collector: &mut Self, percent| {
            let rank = rank(collector.arrived, percent, 100);
            collector.ranked(rank)
        };
        let series = Series {
            sent: self.arrived + self.counts.lost,
            minimum: self.least.map(Bounded::from),
            median: share(self, 50),
            p95: share(self, 95),
            p99: share(self, 99),
            maximum: self.most.map(Bounded::from),
            pdv_p99_ns: self.pdv_p99(),
            ipdv_mean_ns: u64::try_from(
                self.steps_sum_ns.checked_div(self.steps.into()).unwrap_or(0),
            )
            .ok()
            .filter(|_| self.steps > 0),
            ..std::mem::take(&mut self.counts)
        };
        for sketch in [&mut self.estimates, &mut self.lows, &mut self.highs] {
            sketch.clear();
        }
        (self.arrived, self.least, self.most) = (0, None, None);
        (self.steps, self.steps_sum_ns) = (0, 0);
        series
    }

    /// Ranks of bounds are bounds of ranks, see [`crate::interval`]; one that is not known is below, or
    /// above, all others.
    fn ranked(&mut self, rank: u64) -> Option<Bounded> {
        let (from, to) = self.estimates.at(rank)?;
        let below = self.arrived - self.lows.total();
        let low_ns = rank.checked_sub(below).and_then(|rank| self.lows.at(rank)).map(|cell| cell.0);
        let high_ns = self.highs.at(rank).map(|cell| cell.1);
        let middle = from + (to - from) / 2;
        let estimate_ns = middle.max(low_ns.unwrap_or(i64::MIN)).min(high_ns.unwrap_or(i64::MAX));
        // The clock readings may be below nought, where no true value is.
        let estimate_ns = if middle < 0 { middle } else { estimate_ns };
        Some(Bounded { estimate_ns, low_ns, high_ns })
    }

    /// RFC 5481, section 4.2: the distance to the least delay of the series.
    fn pdv_p99(&mut self) -> Option<u64> {
        let (_, to) = self.estimates.at(rank(self.arrived, 99, 100))?;
        let most = self.most?.estimate_ns;
        Some(to.min(most).saturating_sub(self.least?.estimate_ns).max(0).unsigned_abs())
    }

    /// RFC 5481, section 4.1: the step from the packet before, and that to the packet after if it has
    /// overtaken this one. So each pair of neighbours counts once, when the second of them arrives.
    fn step(&mut self, sequence: u32, estimate_ns: i64) {
        for neighbour in [sequence.wrapping_sub(1), sequence.wrapping_add(1)] {
            if let Some((_, other_ns)) =
                self.recent.iter().rev().find(|(number, _)| *number == neighbour)
            {
                self.steps += 1;
                self.steps_sum_ns += u128::from(estimate_ns.abs_diff(*other_ns));
            }
        }
        if self.recent.len() == NEIGHBOURS {
            self.recent.pop_front();
        }
        self.recent.push_back((sequence, estimate_ns));
    }
}

/// The smaller of two true values lies here.
fn lesser(a: Interval, b: Interval) -> Interval {
    Interval {
        estimate_ns: a.estimate_ns.min(b.estimate_ns),
        low_ns: a.low_ns.zip(b.low_ns).map(|(a, b)| a.min(b)),
        high_ns: [a.high_ns, b.high_ns].into_iter().flatten().min(),
    }
}

/// The larger of two true values lies here.
fn greater(a: Interval, b: Interval) -> Interval {
    Interval {
        estimate_ns: a.estimate_ns.max(b.estimate_ns),
        low_ns: a.low_ns.max(b.low_ns),
        high_ns: a.high_ns.zip(b.high_ns).map(|(a, b)| a.max(b)),
    }
}

#[cfg(test)]
#[path = "series_tests.rs"]
mod tests;
