//! Tables of bounded size that forget what was not touched for longest.

use lru::LruCache;
use std::{
    hash::{Hash, RandomState},
    num::NonZeroUsize,
};

/// Keys come from packets, so they are hashed with a secret.
pub(crate) type Bounded<K, V> = LruCache<K, V, RandomState>;

/// A table of at most so many entries, at least one; it takes memory as it fills.
pub(crate) fn bounded<K: Hash + Eq, V>(most: usize) -> Bounded<K, V> {
    let mut table = Bounded::unbounded_with_hasher(RandomState::new());
    table.resize(NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN));
    table
}
