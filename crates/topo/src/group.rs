//! Groups: prefixes that have the same properties from everywhere.
//!
//! Two prefixes with the same exits, the same path beyond each of them and the same mark have the same
//! cost from everywhere. So costs are calculated once a group, and a longest-prefix match gives a
//! prefix's group.

use crate::{
    path::ExternalPath,
    value::{GroupId, Mark, RouterIndex},
};
use std::sync::Arc;

/// Groups in one piece of memory that snapshots share.
const CHUNK: usize = 256;

/// Where traffic to a group leaves the network, or ends in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Exit {
    /// The router.
    pub router: RouterIndex,
    /// What lies beyond it.
    pub path: ExternalPath,
}

/// What all prefixes of a group have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// In order of router id.
    pub exits: Box<[Exit]>,
    /// The adjustment.
    pub mark: Mark,
    /// Whether the prefixes are attached to the network's own routers.
    pub internal: bool,
}

impl Group {
    /// The router that such a prefix's own requests come from: of an internal one the router of lowest
    /// id, else the exit with the shortest AS path, then the lowest id.
    pub fn source(&self) -> Option<RouterIndex> {
        self.exits
            .iter()
            .min_by_key(|exit| (exit.path.as_distance, exit.router))
            .map(|exit| exit.router)
    }
}

/// All groups. A group keeps its id from one snapshot to the next while
/// [`same_ids`](Self::same_ids) is true.
#[derive(Clone, Debug)]
pub struct Groups {
    chunks: Vec<Arc<Vec<Group>>>,
    len: usize,
    /// Changes when groups are renumbered.
    epoch: u64,
}

impl Groups {
    /// Only the group of what is unknown.
    pub(crate) fn new(epoch: u64) -> Self {
        let mut groups = Self { chunks: Vec::new(), len: 0, epoch };
        groups.push(Group::default());
        groups
    }

    /// One more group.
    pub(crate) fn push(&mut self, group: Group) -> GroupId {
        let id = GroupId(u32::try_from(self.len).expect("the builder limits groups"));
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(Arc::new(Vec::with_capacity(CHUNK)));
        }
        if let Some(last) = self.chunks.last_mut() {
            Arc::make_mut(last).push(group);
        }
        self.len += 1;
        id
    }

    /// How many there are, that of what is unknown included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: there is always the group of what is unknown.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// One group.
    ///
    /// # Panics
    ///
    /// If the id is not from this snapshot.
    pub fn get(&self, id: GroupId) -> &Group {
        &self.chunks[id.index() / CHUNK][id.index() % CHUNK]
    }

    /// All groups in order of id. Some may have no prefix any more.
    pub fn iter(&self) -> impl Iterator<Item = (GroupId, &Group)> {
        (0..).map(GroupId).zip(self.chunks.iter().flat_map(|chunk| chunk.iter()))
    }

    /// Whether every id that both snapshots have stands for prefixes with the same exits and mark in
    /// both (routers may have another index, if routers came or went).
    pub fn same_ids(&self, other: &Self) -> bool {
        self.epoch == other.epoch
    }
}
