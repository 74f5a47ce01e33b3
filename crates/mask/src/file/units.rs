//! The units of the periods that came last.

use super::Job;
use crate::machine::Unit;

/// Where one period follows another, packets of both may be mixed.
const KEPT: usize = 2;

/// Makes a unit when a period comes up, and wipes the secrets of those that are past.
pub(crate) struct Units<'a> {
    job: &'a Job,
    /// With their periods, the last one first.
    kept: Vec<(u64, Unit)>,
}

impl<'a> Units<'a> {
    pub(crate) fn new(job: &'a Job) -> Self {
        Self { job, kept: Vec::with_capacity(KEPT) }
    }

    /// The unit of a period.
    pub(crate) fn of(&mut self, period: u64) -> &mut Unit {
        match self.kept.iter().position(|(of, _)| *of == period) {
            Some(index) => self.kept[..=index].rotate_right(1),
            None => {
                self.kept.truncate(KEPT - 1);
                self.kept.insert(0, (period, self.job.unit(period)));
            }
        }
        &mut self.kept[0].1
    }

    /// The periods whose secrets there are.
    #[cfg(test)]
    pub(super) fn periods(&self) -> Vec<u64> {
        self.kept.iter().map(|(period, _)| *period).collect()
    }
}
