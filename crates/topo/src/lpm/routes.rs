//! Routes in order, and the runs of equal value that they make of the address space.

use super::{MAX_VALUE, address::Address};

/// A prefix and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route<A> {
    pub(super) address: A,
    pub(super) length: u8,
    pub(super) value: u32,
}

impl<A: Address> Route<A> {
    /// A route; bits beyond the length are cleared.
    pub(super) fn new(address: A, length: u8, value: u32) -> Route<A> {
        Route { address: address.and(A::mask(length)), length, value }
    }

    /// What routes are sorted by: a prefix comes before all that it contains.
    fn key(&self) -> (A, u8) {
        (self.address, self.length)
    }
}

/// Sorts the routes and keeps the last of equal prefixes.
pub(super) fn normalize<A: Address>(routes: &mut Vec<Route<A>>) {
    if !routes.is_sorted_by_key(Route::key) {
        routes.sort_by_key(Route::key);
    }
    // dedup_by keeps the first of a group: give it the value of the later one.
    routes.dedup_by(|later, kept| {
        let same = later.key() == kept.key();
        if same {
            kept.value = later.value;
        }
        same
    });
}

/// Normal routes with changes: a value for a prefix, or `None` to take it away.
pub(super) fn merge<A: Address>(
    routes: impl Iterator<Item = Route<A>>,
    count: usize,
    changes: Vec<(A, u8, Option<u32>)>,
) -> Vec<Route<A>> {
    let mut changes: Vec<(Route<A>, bool)> = changes
        .into_iter()
        .map(|(address, length, value)| {
            (Route::new(address, length, value.unwrap_or_default()), value.is_some())
        })
        .collect();
    changes.sort_by_key(|(route, _)| route.key());
    let mut merged = Vec::with_capacity(count + changes.len());
    let mut changes = changes.into_iter().peekable();
    let mut settle = |until: Option<(A, u8)>, merged: &mut Vec<Route<A>>| {
        // All changes before `until`; returns whether one of them is about `until` itself.
        let mut met = false;
        while let Some((change, present)) =
            changes.next_if(|(change, _)| until.is_none_or(|until| change.key() <= until))
        {
            met |= until == Some(change.key());
            if changes.peek().is_some_and(|(later, _)| later.key() == change.key()) {
                continue;
            }
            if present {
                merged.push(change);
            }
        }
        met
    };
    for route in routes {
        if !settle(Some(route.key()), &mut merged) {
            merged.push(route);
        }
    }
    settle(None, &mut merged);
    merged
}

/// The largest value of all.
///
/// # Panics
/// If it is larger than [`MAX_VALUE`].
pub(super) fn greatest<A: Address>(routes: &[Route<A>]) -> u32 {
    let greatest = routes.iter().map(|route| route.value).max().unwrap_or(0);
    assert!(greatest <= MAX_VALUE, "a route has the value {greatest}, more than {MAX_VALUE}");
    greatest
}

/// The address space as runs of equal value: each begins at its address and ends before the next
/// one. The first begins at address 0, no two neighbours have the same value.
pub(super) fn runs<A: Address>(routes: &[Route<A>]) -> Vec<(A, u32)> {
    let mut runs: Vec<(A, u32)> = Vec::with_capacity(routes.len() * 3 / 2 + 1);
    runs.push((A::default(), 0));
    let mut begin = |start: A, value: u32| {
        if runs.last().is_some_and(|run| run.0 == start) {
            runs.pop();
        }
        if runs.last().is_none_or(|run| run.1 != value) {
            runs.push((start, value));
        }
    };
    // The prefixes that contain the present one, the longest last: their last address and value.
    let mut open: Vec<(A, u32)> = Vec::new();
    let value_of = |open: &[(A, u32)]| open.last().map_or(0, |&(_, value)| value);
    for route in routes {
        while let Some((last, _)) = open.pop_if(|(last, _)| *last < route.address) {
            begin(last.next(), value_of(&open));
        }
        begin(route.address, route.value);
        open.push((route.address.or_not(A::mask(route.length)), route.value));
    }
    while let Some((last, _)) = open.pop() {
        if last < A::MAX {
            begin(last.next(), value_of(&open));
        }
    }
    runs
}
