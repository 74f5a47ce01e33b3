//! What the operator prefers, avoids or makes dearer.
//!
//! A prefix's adjustment reaches the tables as the mark of its group ([`topo::Mark`]), that of an AS
//! through the origin AS of the path. Where both apply, penalties add up, and the prefix's word counts
//! when one is preferred and the other avoided.

use std::collections::BTreeMap;

use ipnet::IpNet;
use topo::{AsInterest, Mark};

/// What is done to a candidate's rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Adjustment {
    /// It goes before all that are not preferred.
    Prefer,
    /// It goes after all that are not avoided, but before those about which nothing is known.
    Avoid,
    /// Its cost is higher by this much, or lower if it is negative.
    Penalty(f64),
}

/// To what it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A prefix and what is in it; the longest prefix that covers a route counts.
    Prefix(IpNet),
    /// Everything that an AS originates.
    As(u32),
}

/// Adjustments cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum AdjustmentError {
    /// The sum of a cost and it would be no cost.
    #[error("a penalty of {0} cannot be added to a cost: give a finite number")]
    Penalty(f64),
    /// Marks have 16 bits.
    #[error("more than 65,535 different penalties of prefixes: use fewer values")]
    TooMany,
}

/// All adjustments; later ones of the same subject count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Adjustments {
    marks: Vec<(IpNet, Mark)>,
    /// What each mark means; mark 1 is the first.
    meanings: Vec<Adjustment>,
    ases: BTreeMap<u32, Adjustment>,
}

/// In which part of the order a candidate is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Before all others.
    Preferred,
    /// By its cost alone.
    #[default]
    Ordinary,
    /// After all others, but before those about which nothing is known.
    Avoided,
}

impl Adjustments {
    /// Takes a list of adjustments.
    ///
    /// # Errors
    /// When a penalty is not finite, or there are too many different ones.
    pub fn new(
        list: impl IntoIterator<Item = (Subject, Adjustment)>,
    ) -> Result<Self, AdjustmentError> {
        let mut all = Self::default();
        for (subject, adjustment) in list {
            if let Adjustment::Penalty(penalty) = adjustment
                && !penalty.is_finite()
            {
                return Err(AdjustmentError::Penalty(penalty));
            }
            match subject {
                Subject::Prefix(prefix) => {
                    let mark = all.mark(adjustment)?;
                    all.marks.push((prefix, mark));
                }
                Subject::As(number) => {
                    all.ases.insert(number, adjustment);
                }
            }
        }
        Ok(all)
    }

    /// The mark for an adjustment: prefixes with the same one can stay in one group.
    fn mark(&mut self, adjustment: Adjustment) -> Result<Mark, AdjustmentError> {
        let index = self.meanings.iter().position(|meaning| *meaning == adjustment);
        let index = index.unwrap_or_else(|| {
            self.meanings.push(adjustment);
            self.meanings.len() - 1
        });
        u16::try_from(index + 1).map(Mark).map_err(|_| AdjustmentError::TooMany)
    }

    /// The marks of prefixes.
    pub fn marks(&self) -> &[(IpNet, Mark)] {
        &self.marks
    }

    /// The ASes that have an adjustment.
    pub fn interest(&self) -> AsInterest {
        if self.ases.is_empty() {
            return AsInterest::None;
        }
        AsInterest::Only(self.ases.keys().copied().collect())
    }

    /// The class and penalty of prefixes with a mark that an AS originates.
    pub(super) fn of(&self, mark: Mark, as_number: u32) -> (Class, f64) {
        let by_prefix = usize::from(mark.0).checked_sub(1).and_then(|at| self.meanings.get(at));
        let by_as = self.ases.get(&as_number);
        let (mut class, mut penalty) = (Class::default(), 0.0);
        // The prefix's word comes last, to count.
        for adjustment in [by_as, by_prefix].into_iter().flatten() {
            match adjustment {
                Adjustment::Prefer => class = Class::Preferred,
                Adjustment::Avoid => class = Class::Avoided,
                Adjustment::Penalty(more) => penalty += more,
            }
        }
        (class, penalty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Subject {
        Subject::Prefix(text.parse().unwrap())
    }

    #[test]
    fn prefixes_with_the_same_adjustment_share_a_mark() {
        let all = Adjustments::new([
            (prefix("192.0.2.0/24"), Adjustment::Prefer),
            (prefix("198.51.100.0/24"), Adjustment::Penalty(2.0)),
            (prefix("203.0.113.0/24"), Adjustment::Prefer),
        ])
        .unwrap();
        let marks: Vec<_> = all.marks().iter().map(|(_, mark)| mark.0).collect();
        assert_eq!(marks, [1, 2, 1]);
        assert_eq!(all.of(Mark(2), 0), (Class::Ordinary, 2.0));
        assert_eq!(all.of(Mark::NONE, 0), (Class::Ordinary, 0.0));
        assert_eq!(all.interest(), AsInterest::None);
    }

    #[test]
    fn penalties_add_up_and_a_prefix_overrules_its_as() {
        let all = Adjustments::new([
            (prefix("192.0.2.0/24"), Adjustment::Prefer),
            (prefix("198.51.100.0/24"), Adjustment::Penalty(2.0)),
            (Subject::As(64500), Adjustment::Avoid),
            (Subject::As(64501), Adjustment::Avoid),
            (Subject::As(64501), Adjustment::Penalty(-0.5)),
        ])
        .unwrap();
        assert_eq!(all.of(Mark(1), 64500), (Class::Preferred, 0.0));
        assert_eq!(all.of(Mark(2), 64500), (Class::Avoided, 2.0));
        assert_eq!(all.of(Mark(2), 64501), (Class::Ordinary, 1.5));
        assert_eq!(all.interest(), AsInterest::Only([64500, 64501].into()));
    }

    #[test]
    fn a_penalty_must_be_finite() {
        let refused = Adjustments::new([(Subject::As(1), Adjustment::Penalty(f64::INFINITY))]);
        assert_eq!(refused, Err(AdjustmentError::Penalty(f64::INFINITY)));
    }
}
