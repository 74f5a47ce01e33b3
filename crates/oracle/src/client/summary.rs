//! What a client saw: how many answers, and how long they took.

use super::exchange::Answer;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::time::Duration;

/// Longest round-trip time that is distinguished, in nanoseconds: a minute.
const LONGEST: u64 = 60_000_000_000;

/// Counts and times as they come in.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Requests sent.
    pub sent: u64,
    /// Replies with a ranking.
    pub replies: u64,
    /// Replies with an error.
    pub errors: u64,
    /// Requests without a reply in time.
    pub lost: u64,
    times: Histogram<u64>,
}

impl Default for Tally {
    fn default() -> Self {
        // Three digits of a time between a nanosecond and a minute: these bounds are always good.
        let times = Histogram::new_with_bounds(1, LONGEST, 3).unwrap_or_else(|_| unreachable!());
        Self { sent: 0, replies: 0, errors: 0, lost: 0, times }
    }
}

impl Tally {
    /// Counts a request that was sent, with its answer if one came in time.
    pub fn count(&mut self, answer: Option<&Answer>) {
        self.sent += 1;
        match answer {
            None => self.lost += 1,
            Some(answer) => {
                self.time(answer.round_trip);
                match answer.reply.header.rcode.has_ranking() {
                    true => self.replies += 1,
                    false => self.errors += 1,
                }
            }
        }
    }

    /// Adds a round-trip time.
    fn time(&mut self, round_trip: Duration) {
        let nanoseconds = u64::try_from(round_trip.as_nanos()).unwrap_or(LONGEST);
        self.times.saturating_record(nanoseconds.clamp(1, LONGEST));
    }

    /// Adds what another one saw.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.replies += other.replies;
        self.errors += other.errors;
        self.lost += other.lost;
        // Of the same bounds: nothing is out of range.
        let _ = self.times.add(&other.times);
    }

    /// The result; without replies there are no times.
    pub fn summary(&self) -> Summary {
        let milliseconds = |nanoseconds: f64| nanoseconds / 1e6;
        let times = (!self.times.is_empty()).then(|| Times {
            min: milliseconds(self.times.min() as f64),
            mean: milliseconds(self.times.mean()),
            deviation: milliseconds(self.times.stdev()),
            p50: milliseconds(self.times.value_at_quantile(0.5) as f64),
            p90: milliseconds(self.times.value_at_quantile(0.9) as f64),
            p99: milliseconds(self.times.value_at_quantile(0.99) as f64),
            max: milliseconds(self.times.max() as f64),
        });
        let Self { sent, replies, errors, lost, .. } = *self;
        Summary { sent, replies, errors, lost, rtt_ms: times }
    }
}

/// What a client saw in the end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Requests sent.
    pub sent: u64,
    /// Replies with a ranking.
    pub replies: u64,
    /// Replies with an error.
    pub errors: u64,
    /// Requests without a reply in time.
    pub lost: u64,
    /// Round-trip times of all replies, in milliseconds.
    pub rtt_ms: Option<Times>,
}

impl Summary {
    /// Requests without a reply, in percent of those sent.
    pub fn loss(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.lost as f64 * 100.0 / self.sent as f64 }
    }
}

/// Round-trip times, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times {
    /// The shortest.
    pub min: f64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_add_up() {
        let mut one = Tally { sent: 3, replies: 2, lost: 1, ..Tally::default() };
        one.time(Duration::from_millis(1));
        one.time(Duration::from_millis(3));
        let mut two = Tally { sent: 1, errors: 1, ..Tally::default() };
        two.time(Duration::from_secs(1000));
        let mut both = Tally::default();
        assert_eq!(both.summary().rtt_ms, None);
        both.add(&one);
        assert!((both.summary().rtt_ms.unwrap().mean - 2.0).abs() < 0.01);
        both.add(&two);
        let summary = both.summary();
        assert_eq!((summary.sent, summary.replies, summary.errors, summary.lost), (4, 2, 1, 1));
        assert!((summary.loss() - 25.0).abs() < 1e-9);
        assert!(summary.rtt_ms.unwrap().max >= 59_900.0, "a longer time counts as a minute");
    }
}
