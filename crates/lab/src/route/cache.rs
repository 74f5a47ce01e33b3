//! What searches found, in bounded space.
//!
//! Two halves: what is asked for or found goes into the young one; when that is full, it becomes the old
//! one, and what was old and not asked for since is forgotten.

use crate::{LinkId, NodeId};
use rustc_hash::FxHashMap;

/// The links of a node that begin a best path to a destination, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hops {
    /// There is no path.
    None,
    /// One.
    One([LinkId; 1]),
    /// Several.
    Many(Box<[LinkId]>),
}

impl Hops {
    /// From links in order.
    pub(super) fn new(links: &[LinkId]) -> Self {
        match *links {
            [] => Self::None,
            [link] => Self::One([link]),
            _ => Self::Many(links.into()),
        }
    }

    /// The links in order.
    pub(super) fn links(&self) -> &[LinkId] {
        match self {
            Self::None => &[],
            Self::One(link) => link,
            Self::Many(links) => links,
        }
    }

    /// Bytes beside the value itself.
    fn heap(&self) -> usize {
        match self {
            // What the allocator adds is about 16 bytes.
            Self::Many(links) => size_of_val::<[LinkId]>(links) + 16,
            _ => 0,
        }
    }
}

/// A slot of the map, with its control byte.
const SLOT: usize = size_of::<((NodeId, NodeId), Hops)>() + 1;

#[derive(Debug, Default)]
struct Half {
    map: FxHashMap<(NodeId, NodeId), Hops>,
    heap: usize,
}

impl Half {
    fn insert(&mut self, key: (NodeId, NodeId), hops: Hops) {
        self.heap += hops.heap();
        if let Some(before) = self.map.insert(key, hops) {
            self.heap -= before.heap();
        }
    }

    /// What the map has allocated: a power of two, of which 7 of 8 slots may be filled.
    fn bytes(&self) -> usize {
        (self.map.capacity() * 8).div_ceil(7) * SLOT + self.heap
    }
}

/// From a node and a destination to the next hops.
#[derive(Debug)]
pub(super) struct Cache {
    young: Half,
    old: Half,
    /// Bytes of one half.
    half: usize,
}

impl Cache {
    /// Keeps at most about that many bytes, and at least a few entries.
    pub(super) fn new(capacity: usize) -> Self {
        Self { young: Half::default(), old: Half::default(), half: (capacity / 2).max(64 * SLOT) }
    }

    /// What is known of a node and a destination.
    pub(super) fn get(&mut self, at: NodeId, to: NodeId) -> Option<Hops> {
        if let Some(hops) = self.young.map.get(&(at, to)) {
            return Some(hops.clone());
        }
        let hops = self.old.map.remove(&(at, to))?;
        self.old.heap -= hops.heap();
        self.insert(at, to, hops.clone());
        Some(hops)
    }

    /// Remembers.
    pub(super) fn insert(&mut self, at: NodeId, to: NodeId, hops: Hops) {
        let full = self.young.map.len() == self.young.map.capacity();
        let grown = if full { self.young.bytes() * 2 } else { self.young.bytes() };
        if grown + hops.heap() > self.half {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.map.clear();
            self.young.heap = 0;
        }
        self.young.insert((at, to), hops);
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.young = Half::default();
        self.old = Half::default();
    }

    /// How much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.young.bytes() + self.old.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_what_is_asked_for_stays() {
        let mut cache = Cache::new(100_000);
        let often = (NodeId(u32::MAX), NodeId(0));
        cache.insert(often.0, often.1, Hops::new(&[LinkId(7)]));
        for number in 0..100_000 {
            let links = [LinkId(number), LinkId(number + 1)];
            let hops = Hops::new(&links[..1 + number as usize % 2]);
            cache.insert(NodeId(number), NodeId(1), hops.clone());
            assert_eq!(cache.get(NodeId(number), NodeId(1)), Some(hops));
            assert_eq!(cache.get(often.0, often.1), Some(Hops::One([LinkId(7)])));
            assert!(cache.bytes() <= 100_000, "{} bytes", cache.bytes());
        }
        assert_eq!(cache.get(NodeId(0), NodeId(1)), None);
        cache.clear();
        assert_eq!((cache.bytes(), cache.get(often.0, often.1)), (0, None));
    }
}
