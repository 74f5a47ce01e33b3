//! Flows that are inspected, by who began them: so many that one has to go, it is the oldest of who has most.

use crate::service::id::Id;
use permits::source;
use rustc_hash::FxHashMap;
use std::{
    cmp::Reverse,
    collections::{BTreeSet, VecDeque},
    net::IpAddr,
};

/// Where a source stands: how many flows it has, and the earlier it came the higher.
type Place = (usize, Reverse<u64>);

/// The flows of one source.
#[derive(Debug)]
struct Share {
    place: Place,
    /// In the order in which they came, with when that was; also some that are no longer inspected.
    queue: VecDeque<(Id, u64)>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Undecided {
    shares: FxHashMap<IpAddr, Share>,
    places: BTreeSet<(Place, IpAddr)>,
    came: u64,
    count: usize,
}

impl Undecided {
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// One more that `host` has begun; `is_inspected` says which are.
    pub(super) fn add(
        &mut self,
        host: IpAddr,
        id: Id,
        began_ns: u64,
        is_inspected: impl Fn(&Id, u64) -> bool,
    ) {
        let source = source(host);
        self.came += 1;
        self.count += 1;
        let place = (0, Reverse(self.came));
        let share =
            self.shares.entry(source).or_insert_with(|| Share { place, queue: VecDeque::new() });
        self.places.remove(&(share.place, source));
        share.place.0 += 1;
        self.places.insert((share.place, source));
        if share.queue.len() > 2 * share.place.0 {
            share.queue.retain(|(id, began_ns)| is_inspected(id, *began_ns));
        }
        share.queue.push_back((id, began_ns));
    }

    /// One that `host` has begun is no longer inspected.
    pub(super) fn done(&mut self, host: IpAddr) {
        let source = source(host);
        let Some(share) = self.shares.get_mut(&source) else { return };
        self.count -= 1;
        self.places.remove(&(share.place, source));
        share.place.0 -= 1;
        if share.place.0 == 0 {
            self.shares.remove(&source);
        } else {
            self.places.insert((share.place, source));
        }
    }

    /// The oldest of who has most; perhaps one that is no longer inspected.
    pub(super) fn oldest(&mut self) -> Option<(Id, u64)> {
        let (_, source) = self.places.last()?;
        self.shares.get_mut(source)?.queue.pop_front()
    }
}
