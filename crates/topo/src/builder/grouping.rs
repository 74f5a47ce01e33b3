//! Which prefixes make a group, and the numbers of groups.
//!
//! A group keeps its number as long as it can: one that loses its last prefix stays, and is there again
//! when a prefix comes back. All are renumbered only when more groups are without prefixes than with
//! them.

use super::reports::Report;
use crate::{
    group::{Exit, Group, Groups},
    options::AsInterest,
    path::ExternalPath,
    value::{Mark, RouterIndex},
};
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

/// So many groups without prefixes are never too many.
const UNUSED: usize = 1_024;
/// A router that is not there.
const GONE: u32 = u32::MAX;

/// What distinguishes groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Key {
    /// Ascending, one for each router.
    exits: Vec<(u32, ExternalPath)>,
    mark: Mark,
    internal: bool,
}

fn hash(key: &Key) -> u64 {
    let mut hasher = FxHasher::default();
    for (slot, path) in &key.exits {
        (u64::from(*slot) << 32 | u64::from(path.as_number)).hash(&mut hasher);
        path.as_distance.hash(&mut hasher);
    }
    (key.mark, key.internal).hash(&mut hasher);
    hasher.finish()
}

#[derive(Clone, Copy, Debug)]
struct Use {
    /// Prefixes in the table.
    prefixes: u32,
    /// The slot of the router that is the group's source.
    source: u32,
}

/// All groups, and where routers' slots are in the snapshot to come.
#[derive(Debug)]
pub(super) struct Grouping {
    keys: Vec<Key>,
    uses: Vec<Use>,
    index: HashTable<u32>,
    unused: usize,
    epoch: u64,
    /// For each slot the router's index.
    indexes: Vec<u32>,
    groups: Arc<Groups>,
    /// Used again and again.
    scratch: Key,
}

impl Default for Grouping {
    fn default() -> Self {
        let mut grouping = Self {
            keys: Vec::new(),
            uses: Vec::new(),
            index: HashTable::new(),
            unused: 0,
            epoch: 0,
            indexes: Vec::new(),
            groups: Arc::new(Groups::new(0)),
            scratch: Key::default(),
        };
        grouping.forget();
        grouping
    }
}

impl Grouping {
    /// Gives all numbers again.
    pub(super) fn forget(&mut self) {
        self.epoch += 1;
        self.keys = vec![Key::default()];
        self.uses = vec![Use { prefixes: 0, source: GONE }];
        self.index = HashTable::new();
        self.unused = 0;
        self.groups = Arc::new(Groups::new(self.epoch));
    }

    /// Whether more groups have no prefix than have one.
    pub(super) fn is_worn(&self) -> bool {
        self.unused > UNUSED && self.unused * 2 > self.keys.len()
    }

    /// Routers have come or gone: for each slot the router's index, if it is there.
    pub(super) fn set_routers(&mut self, indexes: impl Iterator<Item = Option<RouterIndex>>) {
        self.indexes = indexes.map(|index| index.map_or(GONE, |index| index.0)).collect();
        // Groups with routers that are gone lose their last prefix before readers see them; until then
        // they are without those exits.
        let mut groups = Groups::new(self.epoch);
        for id in 1..self.keys.len() {
            groups.push(self.group(&self.keys[id]));
            self.uses[id].source = self.source(&self.keys[id]);
        }
        self.groups = Arc::new(groups);
    }

    /// How many slots are known here.
    pub(super) fn slots(&self) -> usize {
        self.indexes.len()
    }

    /// Slots that are new since then, beside all others.
    pub(super) fn add_routers(&mut self, indexes: impl Iterator<Item = Option<RouterIndex>>) {
        self.indexes.extend(indexes.map(|index| index.map_or(GONE, |index| index.0)));
    }

    fn index(&self, slot: u32) -> Option<RouterIndex> {
        self.indexes.get(slot as usize).copied().filter(|index| *index != GONE).map(RouterIndex)
    }

    fn group(&self, key: &Key) -> Group {
        let mut exits: Vec<_> = key
            .exits
            .iter()
            .filter_map(|(slot, path)| Some(Exit { router: self.index(*slot)?, path: *path }))
            .collect();
        exits.sort_unstable();
        Group { exits: exits.into(), mark: key.mark, internal: key.internal }
    }

    fn source(&self, key: &Key) -> u32 {
        let exits = key.exits.iter();
        exits
            .filter_map(|(slot, path)| Some((path.as_distance, self.index(*slot)?, *slot)))
            .min()
            .map_or(GONE, |(_, _, slot)| slot)
    }

    /// The group of prefixes with these reports; 0 if they lead nowhere.
    pub(super) fn find(&mut self, reports: &[Report], mark: Mark, ases: &AsInterest) -> u32 {
        let mut key = std::mem::take(&mut self.scratch);
        self.describe(reports, mark, ases, &mut key);
        let id = if key.exits.is_empty() { 0 } else { self.number(&key) };
        self.scratch = key;
        id
    }

    /// What distinguishes the group.
    fn describe(&self, reports: &[Report], mark: Mark, ases: &AsInterest, key: &mut Key) {
        let is_there =
            |report: &&Report| self.indexes.get(report.at.slot()).is_some_and(|i| *i != GONE);
        key.mark = mark;
        key.exits.clear();
        key.internal = reports.iter().filter(is_there).any(|report| report.at.is_internal());
        // Reports are in order of router, then of feed.
        for report in reports.iter().filter(is_there).filter(|w| w.at.is_internal() == key.internal)
        {
            let slot = report.at.slot() as u32;
            let path = ExternalPath {
                as_distance: report.as_distance,
                as_number: ases.seen(report.as_number),
            };
            match key.exits.last_mut() {
                Some((last, best)) if *last == slot => *best = path.min(*best),
                _ => key.exits.push((slot, path)),
            }
        }
    }

    fn number(&mut self, key: &Key) -> u32 {
        let hashed = hash(key);
        let keys = &self.keys;
        if let Some(id) = self.index.find(hashed, |id| keys[*id as usize] == *key) {
            return *id;
        }
        let group = self.group(key);
        let id = Arc::make_mut(&mut self.groups).push(group).0;
        let mut kept = key.clone();
        kept.exits.shrink_to_fit();
        self.uses.push(Use { prefixes: 0, source: self.source(key) });
        self.unused += 1;
        self.keys.push(kept);
        let keys = &self.keys;
        self.index.insert_unique(hashed, id, |id| hash(&keys[*id as usize]));
        id
    }

    /// One more prefix has a group.
    pub(super) fn take(&mut self, id: u32) {
        if id != 0 {
            let count = &mut self.uses[id as usize].prefixes;
            self.unused -= usize::from(*count == 0);
            *count += 1;
        }
    }

    /// One prefix less has a group.
    pub(super) fn release(&mut self, id: u32) {
        if id != 0 {
            let count = &mut self.uses[id as usize].prefixes;
            *count -= 1;
            self.unused += usize::from(*count == 0);
        }
    }

    /// All groups as readers see them.
    pub(super) fn groups(&self) -> Arc<Groups> {
        Arc::clone(&self.groups)
    }

    /// Every router that is the source of a group with prefixes, ascending.
    pub(super) fn sources(&self) -> Vec<RouterIndex> {
        let mut is_source = vec![false; self.indexes.len()];
        for each in &self.uses {
            if each.prefixes > 0
                && let Some(flag) = is_source.get_mut(each.source as usize)
            {
                *flag = true;
            }
        }
        let mut sources: Vec<_> = (0..)
            .zip(is_source)
            .filter(|(_, is_source)| *is_source)
            .filter_map(|(slot, _)| self.index(slot))
            .collect();
        sources.sort_unstable();
        sources
    }

    /// Memory in bytes, that of the groups that readers see included.
    pub(super) fn bytes(&self) -> usize {
        let exits: usize = self.keys.iter().map(|key| key.exits.len()).sum();
        self.keys.capacity() * size_of::<Key>()
            + self.uses.capacity() * size_of::<Use>()
            + self.index.capacity() * (size_of::<u32>() + 1)
            + exits * size_of::<(u32, ExternalPath)>()
            + self.groups.len() * size_of::<Group>()
            + exits * size_of::<Exit>()
    }
}
