//! Points in time of what was measured.

use super::axis::Measure;
use crate::{
    archive::{Entry, Summary},
    record::{Bounded, Delay, Figures, Series},
};
use std::collections::BTreeMap;

/// Which delay is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the station to the other.
    #[default]
    Forward,
    /// From the other to the station.
    Reverse,
    /// Both directions.
    RoundTrip,
}

/// A measurement, or many together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// When it began, nanoseconds since 1970-01-01 UTC.
    pub at_ns: i64,
    /// How long it took, in nanoseconds.
    pub lasted_ns: u64,
    /// The value; `None` where nothing arrived.
    pub value: Option<f64>,
    /// The true value is not below this; `None`: nothing is known.
    pub low: Option<f64>,
    /// The true value is not above this; `None`: nothing is known.
    pub high: Option<f64>,
    /// Packets lost, of those sent.
    pub lost: Option<(u64, u64)>,
}

/// What was measured between two over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Between whom, and by which test.
    pub title: String,
    /// What the values are.
    pub what: String,
    /// What the band around the values is.
    pub band: &'static str,
    /// The values' unit.
    pub measure: Measure,
    /// In the order of time.
    pub points: Vec<Point>,
}

impl Plot {
    /// Packets lost and sent in all.
    pub(super) fn lost(&self) -> (u64, u64) {
        let all = self.points.iter().filter_map(|point| point.lost);
        all.fold((0, 0), |sum, lost| (sum.0 + lost.0, sum.1 + lost.1))
    }

    /// Whether there are points of which nobody knows how far off they may be.
    pub(super) fn unbounded(&self) -> bool {
        self.points.iter().any(|it| it.value.is_some() && (it.low.is_none() || it.high.is_none()))
    }

    /// The longest time between two points that is no gap: two and a half times the usual.
    pub(super) fn reach_ns(&self) -> i64 {
        let starts = self.points.iter().map(|point| point.at_ns);
        let mut steps: Vec<_> =
            starts.clone().zip(starts.skip(1)).map(|(a, b)| b.saturating_sub(a)).collect();
        steps.sort_unstable();
        let usual = steps.get(steps.len() / 2).copied().unwrap_or(0);
        usual.saturating_add(usual / 2).saturating_add(usual)
    }

    /// The times from the first to the last point, wide enough to be drawn.
    pub(super) fn extent(&self) -> (i64, i64) {
        let (begin, end) = self.covered();
        if self.points.len() < 2 {
            // In the middle of some time around it.
            let room = end.saturating_sub(begin).saturating_mul(100).max(300_000_000_000);
            return (begin.saturating_sub(room), end.saturating_add(room));
        }
        (begin, end)
    }

    /// From the first point to the end of the last, a second at the least.
    fn covered(&self) -> (i64, i64) {
        let begin = self.points.iter().map(|point| point.at_ns).min().unwrap_or(0);
        let end = self.points.iter().map(end_ns).max().unwrap_or(0);
        (begin, end.max(begin.saturating_add(1_000_000_000)))
    }

    /// The time that plots have together; none without plots.
    pub(super) fn common(plots: &[Self]) -> Option<(i64, i64)> {
        let alone = plots.iter().map(|plot| plot.points.len()).sum::<usize>() < 2;
        let extents = plots.iter().map(|plot| if alone { plot.extent() } else { plot.covered() });
        extents.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }
}

/// When a point's measurement ended.
pub(super) fn end_ns(point: &Point) -> i64 {
    point.at_ns.saturating_add(i64::try_from(point.lasted_ns).unwrap_or(i64::MAX))
}

/// Delays over time, a plot for each pair and test. ICMP echo counts as a round trip.
pub fn delays(entries: &[Entry], direction: Direction) -> Vec<Plot> {
    let name = match direction {
        Direction::Forward => "one-way delay, median",
        Direction::Reverse => "one-way delay of the reverse path, median",
        Direction::RoundTrip => "round-trip time, median",
    };
    let points = |entry: &Entry| {
        let series = &match entry {
            Entry::Record(record) => match &record.figures {
                Figures::Delay(delay) => of_direction(delay, direction),
                Figures::Ping(series) if direction == Direction::RoundTrip => series.clone(),
                _ => return None,
            },
            Entry::Span(span) => match &span.figures {
                Summary::Delay(delay) => of_direction(delay, direction),
                Summary::Ping(series) if direction == Direction::RoundTrip => series.clone(),
                _ => return None,
            },
        };
        Some(of_series(entry, series, loss(entry, series)))
    };
    let band = "the true value is in the band";
    plots(entries, name, band, Measure::Time, points)
}

/// A delay's series. If no packet came with a known one-way delay, the packets are those of the round
/// trip: silence is loss.
pub(super) fn of_direction(delay: &Delay, direction: Direction) -> Series {
    let series = match direction {
        Direction::Forward => delay.forward.as_ref(),
        Direction::Reverse => delay.reverse.as_ref(),
        Direction::RoundTrip => Some(&delay.round_trip),
    };
    let Series { sent, lost, .. } = delay.round_trip;
    series.cloned().unwrap_or_else(|| Series { sent, lost, ..Series::default() })
}

/// Packets lost, of those sent. Where one direction's loss is not known it is that of both together.
pub(super) fn loss(entry: &Entry, series: &Series) -> (u64, u64) {
    let delay = match entry {
        Entry::Record(record) => match &record.figures {
            Figures::Delay(delay) => Some(delay),
            _ => None,
        },
        Entry::Span(span) => match &span.figures {
            Summary::Delay(delay) => Some(delay),
            _ => None,
        },
    };
    match delay {
        Some(delay) if !delay.counted => (delay.round_trip.lost, delay.round_trip.sent),
        _ => (series.lost, series.sent),
    }
}

fn of_series(entry: &Entry, series: &Series, lost: (u64, u64)) -> Point {
    let median = series.median;
    let part = |part: fn(Bounded) -> Option<i64>| median.and_then(part).map(|it| it as f64);
    Point {
        at_ns: entry.at_ns(),
        lasted_ns: entry.lasted_ns(),
        value: median.map(|median| median.estimate_ns as f64),
        low: part(|median| median.low_ns),
        high: part(|median| median.high_ns),
        lost: Some(lost),
    }
}

/// Throughput over time, a plot for each pair and test.
pub fn throughputs(entries: &[Entry]) -> Vec<Plot> {
    let points = |entry: &Entry| {
        let (low, value, high, lost) = match entry {
            Entry::Record(record) => match &record.figures {
                Figures::Throughput(it) => {
                    let rate = it.bytes_per_second;
                    (rate, rate, rate, it.lost)
                }
                _ => return None,
            },
            Entry::Span(span) => match &span.figures {
                Summary::Throughput { bytes_per_second: it, lost, .. } => {
                    (it.minimum, it.median, it.maximum, *lost)
                }
                _ => return None,
            },
        };
        let (at_ns, lasted_ns) = (entry.at_ns(), entry.lasted_ns());
        let (value, low, high) = (Some(value), Some(low), Some(high));
        Some(Point { at_ns, lasted_ns, value, low, high, lost })
    };
    let band = "tests of an hour or a day are in the band";
    plots(entries, "throughput", band, Measure::Rate, points)
}

/// A plot for each pair and test that has points.
fn plots(
    entries: &[Entry],
    what: &str,
    band: &'static str,
    measure: Measure,
    point: impl Fn(&Entry) -> Option<Point>,
) -> Vec<Plot> {
    let mut found: BTreeMap<(&str, &str, &str), Vec<Point>> = BTreeMap::new();
    for entry in entries {
        if let Some(point) = point(entry) {
            found.entry((entry.from(), entry.to(), entry.test())).or_default().push(point);
        }
    }
    let plots = found.into_iter().map(|((from, to, test), mut points)| {
        points.sort_by_key(|point| point.at_ns);
        let title = format!("{from} > {to} ({test})");
        Plot { title, what: what.to_owned(), band, measure, points }
    });
    plots.collect()
}
