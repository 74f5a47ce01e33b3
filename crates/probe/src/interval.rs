//! A duration's estimate together with the interval in which the true value lies.
//!
//! The time between two readings of one clock needs less: how far the clock is from its rate, and by how much
//! it was stepped or slewed in between, which a clock shows that nobody steers.
//!
//! A one-way delay is the difference of two readings of two clocks. A clock whose maximum error is *e*
//! reads at most *e* more or less than true time; a timestamp is taken at most *u* away from the moment
//! that it stands for. So the true delay is not farther from the difference than the sum of both
//! clocks' errors and both timestamps' uncertainties; no tighter bound exists. Where one of the
//! errors is not known the interval is unbounded, on both sides: nothing is narrowed, so that nobody takes
//! what is left for a promise.
//!
//! What is computed of intervals stays sound: rounding and overflow widen, never narrow.
//!
//! - Sum and difference: bounds are added, as usual.
//! - Percentiles: the k-th smallest of the true values is not below the k-th smallest of the lower bounds
//!   and not above the k-th smallest of the upper ones, for raising any value never lowers the k-th
//!   smallest. It holds whatever the errors have to do with one another.
//! - Causality: a true delay is not negative, so an interval that reaches below nought ends there. One
//!   that lies wholly below nought shows that a clock was worse than it reported; the result is then
//!   unbounded.

use crate::record::Bounded;
use serde::{Deserialize, Serialize};

/// How far the kernel's clock can be from its true rate, in parts per million, while it is not known
/// better: the kernel lets its maximum error grow by as much (MAXFREQ in ntp.c; RFC 5905 has 15, PHI).
pub const RATE_PPM: u64 = 500;

/// The most that a clock may be off, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MaximumError {
    /// `None`: not known, so no bound can be promised.
    pub nanoseconds: Option<u64>,
    /// How far the clock then was from one that nobody steers; `None`: of a clock that is not steered.
    #[serde(default)]
    pub steered: Option<Steered>,
}

/// A clock less one that nobody steps or slews, such as CLOCK_REALTIME less CLOCK_MONOTONIC_RAW: between
/// these two, for two clocks cannot be read at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Steered {
    /// At least.
    pub low_ns: i64,
    /// At most.
    pub high_ns: i64,
}

impl Steered {
    /// Either of both, or between them.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let (low_ns, high_ns) = (self.low_ns.min(other.low_ns), self.high_ns.max(other.high_ns));
        Self { low_ns, high_ns }
    }

    /// Within so much of this.
    #[must_use]
    pub fn within(self, slack_ns: u64) -> Self {
        Self {
            low_ns: self.low_ns.saturating_sub_unsigned(slack_ns),
            high_ns: self.high_ns.saturating_add_unsigned(slack_ns),
        }
    }

    /// The most by which the clock may have been steered since, in either direction.
    pub fn moved_since(self, then: Self) -> u64 {
        let forward = self.high_ns.saturating_sub(then.low_ns);
        let back = then.high_ns.saturating_sub(self.low_ns);
        forward.max(back).max(0).unsigned_abs()
    }
}

impl MaximumError {
    /// Nothing is known of the clock.
    pub const UNKNOWN: Self = Self::of(None);

    /// A known error.
    pub const fn known(nanoseconds: u64) -> Self {
        Self::of(Some(nanoseconds))
    }

    /// An error that may be known, of a clock that is not steered.
    pub const fn of(nanoseconds: Option<u64>) -> Self {
        Self { nanoseconds, steered: None }
    }

    /// Both together, with how the first one was steered; unknown when one is, and when the sum is beyond all that can be written.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = self.nanoseconds.zip(other.nanoseconds).and_then(|(a, b)| a.checked_add(b));
        Self { nanoseconds: sum, steered: self.steered }
    }

    /// The error after the clock ran on by itself for a time.
    #[must_use]
    pub fn after(self, elapsed_ns: u64) -> Self {
        self.plus(Self::known(drift_ns(elapsed_ns)))
    }
}

/// What a clock that is [`RATE_PPM`] off may have gained or lost in a time that it has read itself, rounded
/// up: of 1,999 parts that a slow clock reads, 2,000 have passed.
pub fn drift_ns(elapsed_ns: u64) -> u64 {
    elapsed_ns.div_ceil(1_000_000 / RATE_PPM - 1)
}

/// A reading of a clock that marks a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The clock readings, nanoseconds since 1970-01-01 UTC.
    pub at_ns: i64,
    /// The clock's maximum error then.
    pub clock: MaximumError,
    /// How far from the moment the reading may have been taken, nanoseconds: resolution of the timestamp's
    /// format, and of what took it.
    pub uncertainty_ns: u64,
}

impl Stamp {
    fn error(&self) -> MaximumError {
        self.clock.plus(MaximumError::known(self.uncertainty_ns))
    }
}

/// A duration: estimate and bounds, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The clock readings.
    pub estimate_ns: i64,
    /// The true value is not below this; `None`: nothing is known.
    pub low_ns: Option<i64>,
    /// The true value is not above this; `None`: nothing is known.
    pub high_ns: Option<i64>,
}

/// The clocks' readings are farther apart than both clocks' errors allow: one was worse than it reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the delay is at most {high_ns} ns by the error bounds of the clocks, and a delay is not negative: one of \
     the clocks is worse than it reports"
)]
pub struct Contradiction {
    /// Upper bound of the delay, below nought.
    pub high_ns: i64,
}

impl Interval {
    /// An estimate of which nothing can be promised.
    pub const fn unbounded(estimate_ns: i64) -> Self {
        Self { estimate_ns, low_ns: None, high_ns: None }
    }

    /// An estimate that is at most `error` off.
    pub fn within(estimate_ns: i64, error: MaximumError) -> Self {
        let Some(error) = error.nanoseconds else { return Self::unbounded(estimate_ns) };
        Self {
            estimate_ns,
            low_ns: estimate_ns.checked_sub_unsigned(error),
            high_ns: estimate_ns.checked_add_unsigned(error),
        }
    }

    /// The time from one moment to another, of two clocks or of one.
    pub fn between(from: Stamp, to: Stamp) -> Self {
        match to.at_ns.checked_sub(from.at_ns) {
            Some(estimate_ns) => Self::within(estimate_ns, from.error().plus(to.error())),
            None => Self::unbounded(to.at_ns.saturating_sub(from.at_ns)),
        }
    }

    /// The time from one moment to another by one clock, of which only the rate, what it was steered in
    /// between and the timestamps' uncertainties count: or both its errors, where these are less. How the
    /// clock is steered must be read before the one timestamp and after the other.
    pub fn elapsed(from: Stamp, to: Stamp) -> Self {
        let Some(estimate_ns) = to.at_ns.checked_sub(from.at_ns) else {
            return Self::between(from, to);
        };
        let moved_ns = match (from.clock.steered, to.clock.steered) {
            (Some(then), Some(now)) => Some(now.moved_since(then)),
            (None, None) => Some(0),
            _ => None,
        };
        let steady = moved_ns.and_then(|moved_ns| {
            let drift_ns = drift_ns(estimate_ns.unsigned_abs().checked_add(moved_ns)?);
            let moved_ns = MaximumError::known(moved_ns.checked_add(drift_ns)?);
            let uncertainty_ns = from.uncertainty_ns.checked_add(to.uncertainty_ns)?;
            moved_ns.plus(MaximumError::known(uncertainty_ns)).nanoseconds
        });
        let absolute = from.error().plus(to.error()).nanoseconds;
        Self::within(estimate_ns, MaximumError::of(steady.into_iter().chain(absolute).min()))
    }

    /// Both, one after the other.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = |a: Option<i64>, b: Option<i64>| a.zip(b).and_then(|(a, b)| a.checked_add(b));
        Self {
            estimate_ns: self.estimate_ns.saturating_add(other.estimate_ns),
            low_ns: sum(self.low_ns, other.low_ns),
            high_ns: sum(self.high_ns, other.high_ns),
        }
    }

    /// This without a part of it, such as a round trip without the reflector's own time.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        let difference =
            |a: Option<i64>, b: Option<i64>| a.zip(b).and_then(|(a, b)| a.checked_sub(b));
        Self {
            estimate_ns: self.estimate_ns.saturating_sub(other.estimate_ns),
            low_ns: difference(self.low_ns, other.high_ns),
            high_ns: difference(self.high_ns, other.low_ns),
        }
    }

    /// The same knowing that the true value is not negative. The estimate stays that of the clock readings. An
    /// interval without a lower bound stays so.
    ///
    /// # Errors
    ///
    /// The whole interval lies below nought.
    pub fn causal(self) -> Result<Self, Contradiction> {
        match self.high_ns {
            Some(high_ns) if high_ns < 0 => Err(Contradiction { high_ns }),
            _ => Ok(Self { low_ns: self.low_ns.map(|low| low.max(0)), ..self }),
        }
    }

    /// Whether a true value may be this.
    pub fn contains(&self, true_ns: i64) -> bool {
        self.low_ns.is_none_or(|low| low <= true_ns)
            && self.high_ns.is_none_or(|high| true_ns <= high)
    }

    /// Distance of the bounds; `None` when one is missing.
    pub fn width_ns(&self) -> Option<u64> {
        self.low_ns.zip(self.high_ns).map(|(low, high)| high.abs_diff(low))
    }
}

impl From<Interval> for Bounded {
    fn from(interval: Interval) -> Self {
        let Interval { estimate_ns, low_ns, high_ns } = interval;
        Self { estimate_ns, low_ns, high_ns }
    }
}

/// The smallest of some durations; `None` when there are none.
pub fn minimum(intervals: &[Interval]) -> Option<Interval> {
    ranked(intervals, 1)
}

/// The duration that a share of them, `numerator` of `denominator`, does not exceed (nearest rank);
/// `None` when there are none.
///
/// # Panics
///
/// When the share is nought or more than all.
pub fn percentile(intervals: &[Interval], numerator: u64, denominator: u64) -> Option<Interval> {
    ranked(intervals, rank(intervals.len() as u64, numerator, denominator))
}

/// The place, from 1, of the value that a share of `count` does not exceed.
///
/// # Panics
///
/// When the share is nought or more than all.
pub fn rank(count: u64, numerator: u64, denominator: u64) -> u64 {
    assert!(0 < numerator && numerator <= denominator, "share {numerator} of {denominator}");
    u64::try_from((u128::from(count) * u128::from(numerator)).div_ceil(u128::from(denominator)))
        .unwrap_or(count)
}

fn ranked(intervals: &[Interval], rank: u64) -> Option<Interval> {
    let index = usize::try_from(rank).ok()?.checked_sub(1)?;
    // No bound is farther out than any bound; these two numbers stand for it while sorting.
    let pick = |value: fn(&Interval) -> i64| {
        let mut values: Vec<i64> = intervals.iter().map(value).collect();
        (index < values.len()).then(|| *values.select_nth_unstable(index).1)
    };
    let low = pick(|interval| interval.low_ns.unwrap_or(i64::MIN))?;
    let high = pick(|interval| interval.high_ns.unwrap_or(i64::MAX))?;
    Some(Interval {
        estimate_ns: pick(|interval| interval.estimate_ns)?,
        low_ns: (low != i64::MIN).then_some(low),
        high_ns: (high != i64::MAX).then_some(high),
    })
}

#[cfg(test)]
#[path = "interval_tests.rs"]
mod tests;
