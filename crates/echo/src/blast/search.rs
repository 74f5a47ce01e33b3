//! The search for the highest rate without loss: RFC 2544, section 26.1.
//!
//! A trial sends at a rate and counts. If anything was lost, the rate is lowered, else raised; the
//! interval between the highest rate without loss and the lowest with loss is halved until it is
//! narrow enough. The rate that counts is the one that was really offered. A trial in which nothing
//! was lost but the sender fell behind is repeated, as another program may have delayed it; a sender
//! that falls behind each time is the limit.

use serde::Serialize;

/// Trials at one rate in which the sender falls behind, before it is the limit.
const TRIALS_BEHIND: usize = 3;

/// The result of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Requested packets a second.
    #[serde(rename = "requested_packets_per_second")]
    pub rate: u64,
    /// Packets a second that were sent.
    #[serde(rename = "packets_per_second")]
    pub offered: f64,
    /// Packets that were sent.
    pub sent: u64,
    /// Packets without a reply, with a damaged one, or that the sender could not send.
    pub lost: u64,
}

impl Step {
    /// Whether the sender kept to the rate, by one in a hundred.
    fn kept_up(&self) -> bool {
        self.offered >= self.rate as f64 * 0.99
    }
}

/// What ended the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Higher rates lose packets.
    Loss,
    /// The sender cannot send more.
    Sender,
    /// Nothing is lost even at the ceiling.
    Ceiling,
}

/// The result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Found {
    /// The highest rate offered without loss, in packets a second; none if there always was loss.
    #[serde(rename = "packets_per_second")]
    pub rate: Option<f64>,
    /// What ended the search.
    pub limit: Limit,
}

/// A running search.
#[derive(Clone, Debug)]
pub struct Search {
    /// The highest rate without loss, as requested and as offered.
    good: Option<(u64, f64)>,
    /// The lowest rate with loss, or one above the ceiling.
    bad: u64,
    ceiling: u64,
    /// The rates offered, without loss, by a sender that fell behind the rate that is tried.
    behind: Vec<f64>,
    found: Option<Found>,
}

impl Search {
    /// For a rate up to `ceiling` packets a second.
    pub fn new(ceiling: u64) -> Self {
        let ceiling = ceiling.max(1);
        Self { good: None, bad: ceiling + 1, ceiling, behind: Vec::new(), found: None }
    }

    /// The rate to try next; none when the search is over.
    pub fn next_rate(&self) -> Option<u64> {
        if self.found.is_some() {
            return None;
        }
        if self.good.is_none() && self.bad > self.ceiling {
            return Some(self.ceiling);
        }
        let good = self.good.map_or(0, |(rate, _)| rate);
        // To one in a hundred.
        let narrow = self.bad - good <= (self.bad / 100).max(1);
        (!narrow).then(|| good + (self.bad - good) / 2)
    }

    /// Adds the result of a trial at [`Search::next_rate`].
    pub fn record(&mut self, step: &Step) {
        if step.lost == 0 && !step.kept_up() {
            self.behind.push(step.offered);
            if self.behind.len() == TRIALS_BEHIND {
                let most = self.behind.iter().copied().fold(0.0, f64::max);
                self.found = Some(Found { rate: Some(most), limit: Limit::Sender });
            }
            return;
        }
        self.behind.clear();
        if step.lost == 0 {
            self.good = Some((step.rate, step.offered));
        } else {
            // If the sender did not keep up, the loss was at a lower rate than requested.
            let offered = if step.kept_up() { step.rate } else { step.offered as u64 };
            let floor = self.good.map_or(0, |(rate, _)| rate) + 1;
            self.bad = offered.max(floor);
        }
    }

    /// The result so far; final when [`Search::next_rate`] gives none.
    pub fn found(&self) -> Found {
        self.found.unwrap_or(Found {
            rate: self.good.map(|(_, offered)| offered),
            limit: if self.bad > self.ceiling { Limit::Ceiling } else { Limit::Loss },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Searches a device that answers at most `capacity` a second with a sender that sends at most
    /// `able` a second.
    fn search(ceiling: u64, capacity: f64, able: f64) -> (Found, u32) {
        let mut search = Search::new(ceiling);
        let mut steps = 0;
        while let Some(rate) = search.next_rate() {
            steps += 1;
            assert!(steps < 40, "the search does not end");
            let offered = (rate as f64).min(able);
            let lost = (offered - capacity).max(0.0).ceil() as u64;
            search.record(&Step { rate, offered, sent: offered as u64, lost });
        }
        (search.found(), steps)
    }

    #[test]
    fn the_ceiling_is_tried_first_and_suffices() {
        let right = Found { rate: Some(1000.0), limit: Limit::Ceiling };
        assert_eq!(search(1000, 5000.0, 1e9), (right, 1));
    }

    #[test]
    fn the_sender_is_the_limit() {
        let right = Found { rate: Some(700.0), limit: Limit::Sender };
        assert_eq!(search(1000, 5000.0, 700.0), (right, TRIALS_BEHIND as u32));
    }

    #[test]
    fn a_sender_that_was_held_up_once_is_not_the_limit() {
        let mut search = Search::new(1000);
        let mut rates = Vec::new();
        while let Some(rate) = search.next_rate() {
            // Nothing above 400 arrives whole; each rate is sent too slowly at first.
            let held_up = !rates.contains(&rate);
            let offered = if held_up { rate as f64 * 0.9 } else { rate as f64 };
            let lost = if held_up { 0 } else { rate.saturating_sub(400) };
            search.record(&Step { rate, offered, sent: rate, lost });
            rates.push(rate);
        }
        let found = search.found();
        assert_eq!(found.limit, Limit::Loss);
        assert!((396.0..=400.0).contains(&found.rate.unwrap()), "{found:?}");
    }

    #[test]
    fn a_device_that_always_loses() {
        let (found, _) = search(1_488_095, 0.0, 1e9);
        assert_eq!(found, Found { rate: None, limit: Limit::Loss });
    }

    proptest! {
        #[test]
        fn finds_the_capacity_to_one_in_a_hundred(
            ceiling in 10u64..20_000_000, share in 0.001f64..1.0, able in 0.001f64..2.0,
        ) {
            let (capacity, able) = (ceiling as f64 * share, ceiling as f64 * able);
            let (found, steps) = search(ceiling, capacity, able);
            prop_assert!(steps <= 36, "{} steps", steps);
            let reach = capacity.min(able).min(ceiling as f64);
            match found.rate {
                None => prop_assert!(capacity < 2.0),
                Some(rate) => {
                    prop_assert!(rate <= reach, "{} of {}", rate, reach);
                    prop_assert!(rate >= reach * 0.98 - 2.0, "{} of {}", rate, reach);
                }
            }
        }
    }
}
