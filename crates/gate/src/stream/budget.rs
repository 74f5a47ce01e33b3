//! Memory that all streams share: taken and given back, never exceeded.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// A bound on bytes held by everything that has a clone of it.
#[derive(Clone, Debug)]
pub struct Budget {
    used: Arc<AtomicUsize>,
    limit: usize,
}

impl Budget {
    /// A budget of so many bytes.
    pub fn new(limit: usize) -> Self {
        Self { used: Arc::default(), limit }
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes that may be in use.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Takes `bytes`, or nothing when they are not there.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|sum| *sum <= self.limit)
            })
            .is_ok()
    }

    /// Gives back what was taken.
    pub(crate) fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A growing share of a budget, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Budget,
    bytes: usize,
}

impl Share {
    /// An empty share.
    pub(crate) fn new(budget: &Budget) -> Self {
        Self { budget: budget.clone(), bytes: 0 }
    }

    /// Grows by `bytes`, or not at all when they are not there.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let taken = self.budget.take(bytes);
        self.bytes += if taken { bytes } else { 0 };
        taken
    }

    /// Gives `bytes` of it back.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.budget.give(bytes);
        self.bytes -= bytes;
    }

    /// Becomes `bytes` large, or stays as it is when they are not there.
    pub(crate) fn fit(&mut self, bytes: usize) -> bool {
        if let Some(surplus) = self.bytes.checked_sub(bytes) {
            self.budget.give(surplus);
            self.bytes = bytes;
            return true;
        }
        self.grow(bytes - self.bytes)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.give(self.bytes);
    }
}
