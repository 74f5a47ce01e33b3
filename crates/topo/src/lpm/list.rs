//! The routes of one family in order of address, then length, in few bytes.
//!
//! The first 16 bits of an address are not stored but follow from where a route stands: an index
//! has where the routes of each 16 bits begin. A search looks at these alone.

use super::{address::Address, routes::Route};
use std::{cmp::Ordering, ops::Range};

/// How many leading bits the index resolves.
const INDEXED: u8 = 16;

/// Sorted routes.
#[derive(Debug)]
pub(super) struct List<A: Address> {
    /// Where the routes of each leading 16 bits begin, and the end.
    starts: Box<[u32]>,
    tails: Box<[A::Tail]>,
    lengths: Box<[u8]>,
    values: Values,
    /// Bit n: there is a route of length n < 16.
    short: u16,
}

#[derive(Debug)]
enum Values {
    Narrow(Box<[u16]>),
    Wide(Box<[u32]>),
}

impl<A: Address> List<A> {
    /// From routes that are sorted and of which no two have the same prefix.
    pub(super) fn build(routes: &[Route<A>]) -> List<A> {
        let mut starts = vec![0u32; (1 << INDEXED) + 1];
        let mut short = 0;
        for route in routes {
            starts[top(route.address) + 1] += 1;
            if route.length < INDEXED {
                short |= 1 << route.length;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let narrow = routes.iter().all(|route| route.value <= u32::from(u16::MAX));
        List {
            starts: starts.into(),
            tails: routes.iter().map(|route| route.address.tail()).collect(),
            lengths: routes.iter().map(|route| route.length).collect(),
            values: if narrow {
                Values::Narrow(routes.iter().map(|route| route.value as u16).collect())
            } else {
                Values::Wide(routes.iter().map(|route| route.value).collect())
            },
            short,
        }
    }

    /// The value of the longest route that covers all of this prefix; 0 if there is none.
    pub(super) fn covering(&self, address: A, length: u8) -> u32 {
        let address = address.and(A::mask(length));
        // A route that covers the prefix comes before it, and covers all routes between the two. So
        // either the last route before the prefix is it, or it is no longer than what that one and
        // the prefix have in common.
        let bucket = self.bucket(address);
        let (mut key, mut end) = ((address, length), bucket.end);
        while key.1 >= INDEXED {
            end = self.position(bucket.start..end, top(address), key, Ordering::is_le);
            if end == bucket.start {
                break;
            }
            let (found, found_length) = self.prefix(top(address), end - 1);
            let common = found.common(address);
            if found_length <= common {
                return self.value(end - 1);
            }
            key = (address.and(A::mask(common)), common);
        }
        // Routes that are too short to be in the same part of the index.
        for length in (0..INDEXED.min(length.saturating_add(1))).rev() {
            if self.short & 1 << length == 0 {
                continue;
            }
            let key = (address.and(A::mask(length)), length);
            let bucket = self.bucket(key.0);
            let at = self.position(bucket.clone(), top(key.0), key, Ordering::is_lt);
            if at < bucket.end && self.prefix(top(key.0), at) == key {
                return self.value(at);
            }
        }
        0
    }

    /// All routes in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Route<A>> + '_ {
        self.starts.windows(2).enumerate().flat_map(move |(top, range)| {
            (range[0] as usize..range[1] as usize).map(move |at| {
                let (address, length) = self.prefix(top, at);
                Route { address, length, value: self.value(at) }
            })
        })
    }

    pub(super) fn len(&self) -> usize {
        self.tails.len()
    }

    pub(super) fn bytes(&self) -> usize {
        let values = match &self.values {
            Values::Narrow(values) => size_of_val(&**values),
            Values::Wide(values) => size_of_val(&**values),
        };
        size_of_val(self)
            + size_of_val(&*self.starts)
            + size_of_val(&*self.tails)
            + size_of_val(&*self.lengths)
            + values
    }

    /// Where the routes are that have their first 16 bits in common with the address.
    fn bucket(&self, address: A) -> Range<usize> {
        self.starts[top(address)] as usize..self.starts[top(address) + 1] as usize
    }

    /// The first index in the range, all of one bucket, whose prefix does not compare so to the key.
    fn position(
        &self,
        range: Range<usize>,
        top: usize,
        key: (A, u8),
        before: impl Fn(Ordering) -> bool,
    ) -> usize {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low.midpoint(high);
            if before(self.prefix(top, middle).cmp(&key)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn prefix(&self, top: usize, at: usize) -> (A, u8) {
        (A::join(top, self.tails[at]), self.lengths[at])
    }

    fn value(&self, at: usize) -> u32 {
        match &self.values {
            Values::Narrow(values) => u32::from(values[at]),
            Values::Wide(values) => values[at],
        }
    }
}

/// The first 16 bits.
fn top<A: Address>(address: A) -> usize {
    address.first(INDEXED)
}
