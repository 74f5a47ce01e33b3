//! Where packets were lost: at the sender, on the forward path, at the responder, or on the reverse path.
//!
//! The responder's ledger, read before and after the run, counts what arrived for the address and its
//! outcome: received = answered + passed + drops. Together with our own counts that leaves four points:
//!
//! ```text
//!   made -> sent ->     received -> answered     -> reply read
//!       1        2               3              4
//! ```

use std::collections::BTreeMap;

use serde::Serialize;

use super::outcome::Outcome;
use crate::status::Count;

/// How many packets were lost at each of the four points.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// 1: the sender could not send them.
    pub not_sent: u64,
    /// 2: between sender and responder.
    pub lost_forward: u64,
    /// 3: at the responder, dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// 3: at the responder, passed to its kernel, which did not answer.
    pub passed: u64,
    /// 4: between responder and sender.
    pub lost_reverse: u64,
    /// 4: at the sender, as its receive buffer was full.
    pub overruns: u64,
    /// What the responder received for the address during the run.
    pub responder_received: u64,
    /// Received beyond what we sent: others send to it as well, and the other figures may be off by them.
    pub others: u64,
}

impl Loss {
    /// Compares a run with what the responder counted for the address before and after it.
    pub fn find(outcome: &Outcome, before: &Count, after: &Count) -> Self {
        let requests = &outcome.requests;
        let out = requests.sent.saturating_sub(outcome.interface_drops);
        let received = after.received.saturating_sub(before.received);
        let answered = after.answered.saturating_sub(before.answered);
        let passed = after.passed.saturating_sub(before.passed);
        let replies = outcome.replies.received
            + outcome.replies.corrupt
            + outcome.replies.duplicated
            + outcome.overruns;
        // What came beyond the program's own answers is from the kernel that requests were passed to.
        let by_kernel = replies.saturating_sub(answered).min(passed);
        let dropped = after
            .dropped
            .iter()
            .map(|(reason, &count)| {
                (
                    reason.clone(),
                    count.saturating_sub(before.dropped.get(reason).copied().unwrap_or(0)),
                )
            })
            .filter(|&(_, count)| count > 0)
            .collect();
        Self {
            not_sent: requests.made.saturating_sub(out),
            lost_forward: out.saturating_sub(received),
            dropped,
            passed: passed - by_kernel,
            lost_reverse: (answered + by_kernel).saturating_sub(replies),
            overruns: outcome.overruns,
            responder_received: received,
            others: received.saturating_sub(out),
        }
    }

    /// All lost packets.
    pub fn total(&self) -> u64 {
        self.not_sent
            + self.lost_forward
            + self.dropped.values().sum::<u64>()
            + self.passed
            + self.lost_reverse
            + self.overruns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blast::outcome::{Replies, Requests};

    fn count(received: u64, answered: u64, passed: u64, dropped: &[(&str, u64)]) -> Count {
        let dropped = dropped.iter().map(|&(reason, count)| (reason.to_owned(), count)).collect();
        let count = Count { received, answered, passed, dropped };
        assert_eq!(count.received, count.answered + count.passed + count.drops());
        count
    }

    fn outcome(made: u64, sent: u64, replies: u64, overruns: u64) -> Outcome {
        Outcome {
            requests: Requests { made, sent, ..Requests::default() },
            replies: Replies { received: replies, ..Replies::default() },
            overruns,
            interface_drops: 0,
            interrupted: false,
        }
    }

    #[test]
    fn each_point_has_its_own_count() {
        let before = count(100, 90, 5, &[("denied", 5)]);
        let after = count(100 + 960, 90 + 900, 5 + 20, &[("denied", 5), ("source_limit", 40)]);
        let loss = Loss::find(&outcome(1000, 990, 880, 7), &before, &after);
        let dropped = BTreeMap::from([("source_limit".to_owned(), 40)]);
        let right = Loss {
            not_sent: 10,
            lost_forward: 30,
            dropped,
            passed: 20,
            lost_reverse: 13,
            overruns: 7,
            responder_received: 960,
            others: 0,
        };
        assert_eq!(loss, right);
        // Every packet that was made and not read is at one of the points.
        assert_eq!(loss.total(), 1000 - 880);
    }

    #[test]
    fn what_the_kernel_answered_is_not_lost() {
        let after = count(100, 0, 100, &[]);
        let loss = Loss::find(&outcome(100, 100, 97, 0), &Count::default(), &after);
        assert_eq!((loss.passed, loss.lost_reverse, loss.total()), (3, 0, 3));
    }

    #[test]
    fn requests_of_others_are_named() {
        let after = count(150, 150, 0, &[]);
        let loss = Loss::find(&outcome(100, 100, 100, 0), &Count::default(), &after);
        assert_eq!((loss.others, loss.lost_reverse), (50, 50));
    }

    #[test]
    fn interface_drops_are_not_sent() {
        let mut outcome = outcome(100, 100, 60, 0);
        outcome.interface_drops = 40;
        let loss = Loss::find(&outcome, &Count::default(), &count(60, 60, 0, &[]));
        assert_eq!((loss.not_sent, loss.total()), (40, 40));
    }
}
