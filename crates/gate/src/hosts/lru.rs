//! A map of bounded size that forgets what was not touched for longest.

use std::{collections::HashMap, hash::Hash};

const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Slot<K, V> {
    key: K,
    value: V,
    newer: u32,
    older: u32,
}

/// Slots in a vector that are linked from the newest to the oldest; a full map reuses the oldest.
#[derive(Clone, Debug)]
pub(crate) struct Lru<K, V> {
    places: HashMap<K, u32>,
    slots: Vec<Slot<K, V>>,
    newest: u32,
    oldest: u32,
    bound: usize,
}

impl<K: Copy + Eq + Hash, V> Lru<K, V> {
    /// Room for that many, at least one.
    pub(crate) fn new(bound: usize) -> Self {
        let bound = bound.clamp(1, NONE as usize - 1);
        Self { places: HashMap::new(), slots: Vec::new(), newest: NONE, oldest: NONE, bound }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The value of a key, without touching it.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        Some(&self.slots.get(*self.places.get(key)? as usize)?.value)
    }

    /// Gives a key a value; it is now the newest.
    pub(crate) fn put(&mut self, key: K, value: &V)
    where
        V: Clone,
    {
        self.touch(key, || value.clone()).clone_from(value);
    }

    /// The value of a key, made if it is not there, which is now the newest.
    pub(crate) fn touch(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let place = match self.places.get(&key) {
            Some(place) => {
                let place = *place;
                self.unlink(place);
                place
            }
            None if self.slots.len() < self.bound => {
                let place = self.slots.len() as u32;
                self.slots.push(Slot { key, value: make(), newer: NONE, older: NONE });
                self.places.insert(key, place);
                place
            }
            None => {
                let place = self.oldest;
                self.unlink(place);
                let slot = &mut self.slots[place as usize];
                self.places.remove(&slot.key);
                (slot.key, slot.value) = (key, make());
                self.places.insert(key, place);
                place
            }
        };
        let newest = std::mem::replace(&mut self.newest, place);
        match self.slots.get_mut(newest as usize) {
            Some(slot) => slot.newer = place,
            None => self.oldest = place,
        }
        let slot = &mut self.slots[place as usize];
        (slot.newer, slot.older) = (NONE, newest);
        &mut slot.value
    }

    fn unlink(&mut self, place: u32) {
        let (newer, older) = {
            let slot = &self.slots[place as usize];
            (slot.newer, slot.older)
        };
        match self.slots.get_mut(newer as usize) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The same as a list that is searched from its end.
        #[test]
        fn it_keeps_what_was_touched_last(
            bound in 1_usize..9,
            keys in proptest::collection::vec(0_u8..16, 0..200),
        ) {
            let mut map = Lru::new(bound);
            let mut list: Vec<(u8, usize)> = Vec::new();
            for (at, key) in keys.into_iter().enumerate() {
                let value = match list.iter().position(|(found, _)| *found == key) {
                    Some(place) => list.remove(place).1,
                    None => at,
                };
                list.push((key, value));
                if list.len() > bound {
                    list.remove(0);
                }
                prop_assert_eq!(*map.touch(key, || at), value);
                prop_assert_eq!(map.len(), list.len());
                for key in 0..16 {
                    let naive = list.iter().find(|(found, _)| *found == key).map(|(_, v)| v);
                    prop_assert_eq!(map.get(&key), naive);
                }
            }
        }
    }
}
