//! Axes: numbers with units that people read, and times in UTC.

use std::time::{Duration, SystemTime};

/// What an axis measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Nanoseconds.
    Time,
    /// Bytes a second, shown as bits a second.
    Rate,
}

/// A unit: its name and how many of the measure's own units it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    pub(super) name: &'static str,
    pub(super) size: f64,
}

impl Measure {
    /// The unit in which a number of this size is read best.
    pub(super) fn unit(self, size: f64) -> Unit {
        let units: &[(&str, f64)] = match self {
            Self::Time => &[("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)],
            Self::Rate => &[
                ("Tbit/s", 1e12 / 8.0),
                ("Gbit/s", 1e9 / 8.0),
                ("Mbit/s", 1e6 / 8.0),
                ("kbit/s", 1e3 / 8.0),
                ("bit/s", 1.0 / 8.0),
            ],
        };
        let found = units.iter().find(|unit| size.abs() >= unit.1).or(units.last());
        let (name, size) = found.copied().unwrap_or(("", 1.0));
        Unit { name, size }
    }

    /// A number with its unit, three digits.
    pub(super) fn text(self, value: f64) -> String {
        let unit = self.unit(value);
        format!("{} {}", digits(value / unit.size), unit.name)
    }
}

/// A number in three digits where it has a fraction.
pub(super) fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 || size == 0.0 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// An axis of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Between two marks.
    step: f64,
    pub(super) unit: Unit,
}

impl Axis {
    /// An axis on which all of the values have a place, with about so many marks.
    pub(super) fn new(measure: Measure, values: impl Iterator<Item = f64>, marks: usize) -> Self {
        let (mut low, mut high) = values
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        // Zero belongs to it where it is near; rates always begin there.
        if measure == Measure::Rate || (low > 0.0 && low < high / 2.0) {
            low = low.min(0.0);
        }
        if high - low <= high.abs().max(low.abs()) * 1e-9 {
            let room = (high.abs() * 0.05).max(1.0);
            (low, high) = (low - room, high + room);
        }
        let unit = measure.unit(high.abs().max(low.abs()));
        let rough = (high - low) / unit.size / marks.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|it| it * power >= rough);
        let step = step.unwrap_or(10.0) * power * unit.size;
        Self { low: (low / step).floor() * step, high: (high / step).ceil() * step, step, unit }
    }

    /// The position of a value, 0 at the low end and 1 at the high one.
    pub(super) fn position(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// The marks, each with its text.
    pub(super) fn marks(&self) -> Vec<(f64, String)> {
        let count = ((self.high - self.low) / self.step).round().clamp(0.0, 100.0) as u32;
        let size = self.step / self.unit.size;
        // As many digits as distinguish one mark from the next; 2.5 has one more.
        let whole = (size.log10().floor()).min(0.0).abs() as usize;
        let more = usize::from((size * 10f64.powi(whole as i32)).fract().abs() > 1e-6);
        let mark = |n: u32| {
            let value = self.low + self.step * f64::from(n);
            // No -0.
            let shown = value / self.unit.size + 0.0;
            let shown = if shown.abs() < size / 1e6 { 0.0 } else { shown };
            (value, format!("{shown:.*}", whole + more))
        };
        (0..=count).map(mark).collect()
    }
}

/// A time as `2026-01-01 12:00:00`, UTC.
pub(super) fn moment(at_ns: i64) -> String {
    // What is before 1970 or beyond 9999 has no such text.
    let at = Duration::from_nanos(u64::try_from(at_ns).unwrap_or(0));
    let text = humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + at).to_string();
    text.trim_end_matches('Z').replace('T', " ")
}

/// The position of a moment between two others, 0 at the first and 1 at the second.
pub(super) fn share(at_ns: i64, since_ns: i64, until_ns: i64) -> f64 {
    let length = i128::from(until_ns) - i128::from(since_ns);
    (i128::from(at_ns) - i128::from(since_ns)) as f64 / length.max(1) as f64
}

/// Seconds between the marks of a time axis.
const STEPS: [i64; 22] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
    172_800, 604_800, 2_592_000, 31_536_000,
];

/// The marks of a time axis, at most so many: times of the clock, with what distinguishes them.
pub(super) fn times(since_ns: i64, until_ns: i64, most: usize) -> Vec<(i64, String)> {
    let length = until_ns.saturating_sub(since_ns).max(1) / 1_000_000_000;
    let most = i64::try_from(most.max(1)).unwrap_or(1);
    let step = STEPS.into_iter().find(|step| length / step < most);
    let step = step.unwrap_or(length.max(1)) * 1_000_000_000;
    let first = since_ns.saturating_add(step - 1).div_euclid(step).saturating_mul(step);
    let marks = (0..most).map(|n| first.saturating_add(n.saturating_mul(step)));
    marks
        .take_while(|at| *at <= until_ns)
        .map(|at| {
            let text = moment(at);
            let part = match step / 1_000_000_000 {
                0..60 => text.get(11..19),
                60..86_400 if text.get(11..16) == Some("00:00") => text.get(5..10),
                60..86_400 => text.get(11..16),
                _ => text.get(5..10),
            };
            (at, part.unwrap_or(&text).to_owned())
        })
        .collect()
}
