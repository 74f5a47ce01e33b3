//! Ranking: candidates in, the same candidates out, best first.
//!
//! Three steps: the groups of all candidates in one batch of longest-prefix matches, for each group
//! one load of its rank from the row, and a stable sort by rank. Ranks are dense, so the sort
//! counts how many candidates have each rank, adds the counts up to where each rank begins, and
//! puts every candidate there at once.

mod sort;

use topo::RouterIndex;

use crate::{
    candidate::Candidate,
    tables::{Row, Tables, UNKNOWN},
};
use sort::Sorter;

/// Ranks; each thread has its own, with memory that is used again and again.
#[derive(Debug, Default)]
pub struct Ranker {
    addresses4: Vec<u32>,
    addresses6: Vec<u128>,
    groups: Vec<u32>,
    ranks: Vec<u16>,
    sorter: Sorter,
}

impl Ranker {
    /// Puts IPv4 addresses in order. Equal costs keep their order; what is unknown goes last.
    pub fn rank4(
        &mut self,
        tables: &Tables,
        metric: usize,
        source: Option<RouterIndex>,
        candidates: &mut [[u8; 4]],
    ) {
        let row = tables.row(metric, source);
        self.addresses4.clear();
        self.addresses4.extend(candidates.iter().map(|address| u32::from_be_bytes(*address)));
        self.groups.resize(candidates.len(), 0);
        tables.view.table.lookup4_batch(&self.addresses4, &mut self.groups);
        self.ranks.clear();
        self.ranks.extend(self.groups.iter().map(|&group| rank_in(row, group)));
        self.sorter.sort(&self.ranks, row.distinct(), |from, to| {
            if let (Some(address), Some(to)) = (self.addresses4.get(from), candidates.get_mut(to)) {
                *to = address.to_be_bytes();
            }
        });
    }

    /// Puts any candidates in order: `order` becomes their indices, best first, of the first 65,536 of
    /// them. Equal costs keep their order; what is unknown goes last.
    pub fn rank(
        &mut self,
        tables: &Tables,
        metric: usize,
        source: Option<RouterIndex>,
        candidates: &[Candidate],
        order: &mut Vec<u16>,
    ) {
        let candidates = candidates.get(..1 << 16).unwrap_or(candidates);
        let row = tables.row(metric, source);
        self.addresses4.clear();
        self.addresses6.clear();
        for candidate in candidates {
            match candidate {
                Candidate::V4(address) => self.addresses4.push(address.to_bits()),
                Candidate::V6(address) => self.addresses6.push(address.to_bits()),
                Candidate::Net4(_) | Candidate::Net6(_) => (),
            }
        }
        let (count4, count6) = (self.addresses4.len(), self.addresses6.len());
        self.groups.resize(count4 + count6, 0);
        let (groups4, groups6) = self.groups.split_at_mut(count4);
        tables.view.table.lookup4_batch(&self.addresses4, groups4);
        tables.view.table.lookup6_batch(&self.addresses6, groups6);
        let (mut groups4, mut groups6) = (groups4.iter(), groups6.iter());
        self.ranks.clear();
        self.ranks.extend(candidates.iter().map(|candidate| {
            let group = match candidate {
                Candidate::V4(_) => groups4.next().copied(),
                Candidate::V6(_) => groups6.next().copied(),
                Candidate::Net4(_) | Candidate::Net6(_) => Some(tables.group(candidate).0),
            };
            group.map_or(UNKNOWN, |group| rank_in(row, group))
        }));
        order.clear();
        order.resize(candidates.len(), 0);
        self.sorter.sort(&self.ranks, row.distinct(), |from, to| {
            if let Some(to) = order.get_mut(to) {
                *to = from as u16;
            }
        });
    }
}

fn rank_in(row: Row<'_>, group: u32) -> u16 {
    row.ranks().get(group as usize).copied().unwrap_or(UNKNOWN)
}
