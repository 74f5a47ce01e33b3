//! Longest-prefix match for IPv4 and IPv6, built for reading.
//!
//! A [`Table`] never changes: whoever changes a route makes the next one beside the readers
//! ([`Table::build`] from nothing, [`Table::patched`] from the last one). Each family has two parts:
//!
//! - `trie` for IPv4, `blocks` for IPv6: from an address to a value, with finished values where
//!   the address ends up. Batches of lookups overlap their cache misses.
//! - `list`: the routes in order, for what finished values do not show: which prefix covers
//!   another one, and what went in.
mod address;
mod blocks;
mod list;
mod routes;
mod trie;

use address::Address;
use blocks::Blocks;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use list::List;
use routes::Route;
use std::{
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
};
use trie::Trie;

/// The largest value: codes beyond it are left for what leads further.
const MAX_VALUE: u32 = (1 << 31) - 1;

/// From addresses and prefixes of both families to values. Value 0 means that nothing matches.
///
/// Cheap to clone: the clones share everything.
#[derive(Clone, Debug)]
pub struct Table {
    v4: Arc<Family<u32, Trie>>,
    v6: Arc<Family<u128, Blocks>>,
}

/// How much memory a [`Table`] takes, part by part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// What [`Table::lookup4`] reads.
    pub trie4: usize,
    /// What [`Table::lookup6`] reads.
    pub blocks6: usize,
    /// The IPv4 routes in order, which [`Table::covering`] and [`Table::iter`] read.
    pub list4: usize,
    /// The IPv6 routes in order.
    pub list6: usize,
}

#[derive(Debug)]
struct Family<A: Address, F> {
    finder: F,
    list: List<A>,
}

/// What finds the value of an address.
trait Finder<A> {
    /// From routes that are sorted and of which no two have the same prefix.
    fn build(routes: &[Route<A>]) -> Self;
    fn bytes(&self) -> usize;
    fn lookup(&self, address: A) -> u32;
    fn lookup_batch(&self, addresses: &[A], values: &mut [u32]);
}

impl<A: Address, F: Finder<A>> Family<A, F> {
    fn build(mut routes: Vec<Route<A>>) -> Self {
        routes::normalize(&mut routes);
        Family { finder: F::build(&routes), list: List::build(&routes) }
    }

    /// The family with some routes changed; `None` takes a route away.
    fn patched(&self, changes: Vec<(A, u8, Option<u32>)>) -> Self {
        let routes = routes::merge(self.list.iter(), self.list.len(), changes);
        Family { finder: F::build(&routes), list: List::build(&routes) }
    }
}

impl Default for Table {
    fn default() -> Table {
        Table::build([])
    }
}

impl Table {
    /// The largest value that a route may have.
    pub const MAX_VALUE: u32 = MAX_VALUE;

    /// A table of these routes, in any order; of equal prefixes the last one wins. Bits of an address
    /// beyond its prefix length do not count. Routes that come in order of address, then length, are
    /// not sorted again.
    ///
    /// # Panics
    /// If a value is larger than [`Table::MAX_VALUE`].
    pub fn build<I: IntoIterator<Item = (IpNet, u32)>>(routes: I) -> Table {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (prefix, value) in routes {
            match prefix {
                IpNet::V4(net) => {
                    v4.push(Route::new(net.addr().to_bits(), net.prefix_len(), value))
                }
                IpNet::V6(net) => {
                    v6.push(Route::new(net.addr().to_bits(), net.prefix_len(), value))
                }
            }
        }
        Table { v4: Arc::new(Family::build(v4)), v6: Arc::new(Family::build(v6)) }
    }

    /// The table that these changes make of this one, which stays as it is: a prefix gets a value, or
    /// `None` and is no longer there. Of changes of the same prefix the last one counts. A family
    /// without changes is shared with this table.
    ///
    /// # Panics
    /// If a value is larger than [`Table::MAX_VALUE`].
    pub fn patched<I: IntoIterator<Item = (IpNet, Option<u32>)>>(&self, changes: I) -> Table {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (prefix, value) in changes {
            match prefix {
                IpNet::V4(net) => v4.push((net.addr().to_bits(), net.prefix_len(), value)),
                IpNet::V6(net) => v6.push((net.addr().to_bits(), net.prefix_len(), value)),
            }
        }
        let mut next = self.clone();
        if !v4.is_empty() {
            next.v4 = Arc::new(self.v4.patched(v4));
        }
        if !v6.is_empty() {
            next.v6 = Arc::new(self.v6.patched(v6));
        }
        next
    }

    /// The value of the longest IPv4 prefix that contains the address (in host byte order).
    #[inline]
    pub fn lookup4(&self, address: u32) -> u32 {
        self.v4.finder.lookup(address)
    }

    /// The value of the longest IPv6 prefix that contains the address (in host byte order).
    #[inline]
    pub fn lookup6(&self, address: u128) -> u32 {
        self.v6.finder.lookup(address)
    }

    /// [`Table::lookup4`] for many addresses at once, which is faster: their cache misses overlap.
    /// Stops at the end of the shorter slice.
    pub fn lookup4_batch(&self, addresses: &[u32], values: &mut [u32]) {
        self.v4.finder.lookup_batch(addresses, values);
    }

    /// [`Table::lookup6`] for many addresses at once, as [`Table::lookup4_batch`].
    pub fn lookup6_batch(&self, addresses: &[u128], values: &mut [u32]) {
        self.v6.finder.lookup_batch(addresses, values);
    }

    /// The value of the longest prefix that covers all of this one; itself, if it is there.
    pub fn covering(&self, prefix: IpNet) -> u32 {
        match prefix {
            IpNet::V4(net) => self.v4.list.covering(net.addr().to_bits(), net.prefix_len()),
            IpNet::V6(net) => self.v6.list.covering(net.addr().to_bits(), net.prefix_len()),
        }
    }

    /// All routes in order of address, then length; IPv4 comes first. Bits beyond the prefix length
    /// are zero.
    pub fn iter(&self) -> impl Iterator<Item = (IpNet, u32)> + '_ {
        let v4 = self.v4.list.iter().filter_map(|route| {
            let net = Ipv4Net::new(Ipv4Addr::from_bits(route.address), route.length).ok()?;
            Some((IpNet::V4(net), route.value))
        });
        let v6 = self.v6.list.iter().filter_map(|route| {
            let net = Ipv6Net::new(Ipv6Addr::from_bits(route.address), route.length).ok()?;
            Some((IpNet::V6(net), route.value))
        });
        v4.chain(v6)
    }

    /// How many routes there are, of both families.
    pub fn len(&self) -> usize {
        self.v4.list.len() + self.v6.list.len()
    }

    /// Whether there is no route at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory of the whole table.
    pub fn bytes(&self) -> usize {
        let Bytes { trie4, blocks6, list4, list6 } = self.memory();
        size_of::<Table>() + trie4 + blocks6 + list4 + list6
    }

    /// The memory of each part.
    pub fn memory(&self) -> Bytes {
        Bytes {
            trie4: self.v4.finder.bytes(),
            blocks6: self.v6.finder.bytes(),
            list4: self.v4.list.bytes(),
            list6: self.v6.list.bytes(),
        }
    }
}
