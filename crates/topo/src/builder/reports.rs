//! What feeds report of prefixes, each set of reports stored once.
//!
//! A table of a million routes has far fewer different sets of reports: the prefixes of one origin
//! usually come with the same paths at the same exits. So all reports of one prefix, a set of
//! [`Report`]s, is kept once and counted, and a prefix has the set's number.

use crate::{path::ExternalPath, value::Feed};
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// What one feed reports of one prefix at one router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Report {
    /// Where.
    pub(super) at: At,
    /// The feed that reports it.
    pub(super) feed: Feed,
    /// Of an external route, else 0.
    pub(super) as_distance: u16,
    /// Of an external route, else 0.
    pub(super) as_number: u32,
}

impl Report {
    /// What lies beyond the router.
    pub(super) fn path(&self) -> ExternalPath {
        ExternalPath { as_distance: self.as_distance, as_number: self.as_number }
    }
}

/// A router's slot, and whether the prefix is attached to it or is reached through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct At(u32);

impl At {
    const INTERNAL: u32 = 1 << 31;

    /// The prefix is attached to the router.
    pub(super) fn internal(slot: u32) -> Self {
        Self(slot | Self::INTERNAL)
    }

    /// The router has a route to the prefix.
    pub(super) fn external(slot: u32) -> Self {
        Self(slot)
    }

    pub(super) fn is_internal(self) -> bool {
        self.0 & Self::INTERNAL != 0
    }

    /// The router's slot.
    pub(super) fn slot(self) -> usize {
        (self.0 & !Self::INTERNAL) as usize
    }
}

/// The number of a set. 0 is the empty one.
pub(super) type SetId = u32;

#[derive(Debug)]
struct Set {
    /// Ascending, one for each attachment and feed.
    reports: Box<[Report]>,
    /// How many prefixes have it.
    uses: u32,
    /// The group of prefixes that have this set and no mark, and the stamp with which it was found.
    group: (u32, u32),
}

/// All sets that some prefix has.
#[derive(Debug)]
pub(super) struct Sets {
    sets: Vec<Set>,
    free: Vec<SetId>,
    index: HashTable<SetId>,
}

impl Default for Sets {
    fn default() -> Self {
        let empty = Set { reports: Box::default(), uses: 0, group: (0, 0) };
        Self { sets: vec![empty], free: Vec::new(), index: HashTable::new() }
    }
}

fn hash(reports: &[Report]) -> u64 {
    let mut hasher = FxHasher::default();
    for report in reports {
        (u64::from(report.at.0) << 16 | u64::from(report.feed.0)).hash(&mut hasher);
        (u64::from(report.as_distance) << 32 | u64::from(report.as_number)).hash(&mut hasher);
    }
    hasher.finish()
}

impl Sets {
    /// The reports of a set.
    pub(super) fn reports(&self, id: SetId) -> &[Report] {
        &self.sets[id as usize].reports
    }

    /// One past the highest number.
    pub(super) fn end(&self) -> SetId {
        self.sets.len() as SetId
    }

    /// The set of these reports, which one more prefix has.
    pub(super) fn take(&mut self, reports: &[Report]) -> SetId {
        if reports.is_empty() {
            return 0;
        }
        let hashed = hash(reports);
        let sets = &self.sets;
        if let Some(id) = self.index.find(hashed, |id| *sets[*id as usize].reports == *reports) {
            let id = *id;
            self.sets[id as usize].uses += 1;
            return id;
        }
        let set = Set { reports: reports.into(), uses: 1, group: (0, 0) };
        let id = match self.free.pop() {
            Some(id) => {
                self.sets[id as usize] = set;
                id
            }
            None => {
                self.sets.push(set);
                self.end() - 1
            }
        };
        let sets = &self.sets;
        self.index.insert_unique(hashed, id, |id| hash(&sets[*id as usize].reports));
        id
    }

    /// One more prefix has a set.
    pub(super) fn share(&mut self, id: SetId) -> SetId {
        if id != 0 {
            self.sets[id as usize].uses += 1;
        }
        id
    }

    /// One prefix less has a set.
    pub(super) fn release(&mut self, id: SetId) {
        if id == 0 {
            return;
        }
        let set = &mut self.sets[id as usize];
        set.uses -= 1;
        if set.uses == 0 {
            let reports = std::mem::take(&mut set.reports);
            if let Ok(entry) = self.index.find_entry(hash(&reports), |other| *other == id) {
                entry.remove();
            }
            self.free.push(id);
        }
    }

    /// The group that was noted for a set with this stamp.
    pub(super) fn group(&self, id: SetId, stamp: u32) -> Option<u32> {
        let (group, noted) = self.sets[id as usize].group;
        (noted == stamp).then_some(group)
    }

    /// Notes the group of a set.
    pub(super) fn note(&mut self, id: SetId, group: u32, stamp: u32) {
        self.sets[id as usize].group = (group, stamp);
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.sets.capacity() * size_of::<Set>()
            + self.sets.iter().map(|set| set.reports.len() * size_of::<Report>()).sum::<usize>()
            + self.index.capacity() * (size_of::<SetId>() + 1)
            + self.free.capacity() * size_of::<SetId>()
    }
}
