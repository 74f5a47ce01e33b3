//! Longest-prefix match over prefixes in order, which lie in a network's bytes as they are.
//!
//! The prefixes are sorted by address, then length. The last one that does not come after the address
//! (taken as a prefix of its full length) is the answer if it contains it. If not, the two part at some
//! bit, and a prefix that contains the address can be no longer than that, or it would lie between them:
//! so the search goes on for the address cut there. Each step is a binary search, and few are needed.

use super::column::{Column, partition_point};

/// Prefixes of one family, or some of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefixes<'b> {
    pub(super) bytes: &'b [u8],
    /// The first addresses.
    pub(super) addresses: Column,
    pub(super) lengths: Column,
    /// The indices in the columns that count.
    pub(super) from: usize,
    pub(super) to: usize,
}

/// An address of either family: the bits of an IPv4 address are the highest ones.
pub(super) fn left4(address: u32) -> u128 {
    u128::from(address) << 96
}

/// The bits that a prefix of that length fixes.
fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length.min(128))).unwrap_or(0)
}

impl Prefixes<'_> {
    /// The prefix at that index, its address to the left.
    #[inline]
    pub(super) fn at(&self, index: usize) -> (u128, u8) {
        let length = self.lengths.get(self.bytes, index) as u8;
        let address = if self.addresses.width == 16 {
            self.addresses.get_wide(self.bytes, index)
        } else {
            left4(self.addresses.get(self.bytes, index))
        };
        (address, length)
    }

    /// The index of the longest prefix that contains the address and is not longer than that, of those
    /// that are wanted.
    pub(super) fn longest(
        &self,
        address: u128,
        longest: u8,
        wanted: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut sought = (address & mask(longest), longest);
        let mut to = self.to;
        loop {
            let index = partition_point(self.from, to, |index| self.at(index) <= sought);
            let index = index.checked_sub(1).filter(|&index| index >= self.from)?;
            let (first, length) = self.at(index);
            let common = (first ^ address).leading_zeros() as u8;
            let shorter = if common < length {
                common
            } else if wanted(index) {
                return Some(index);
            } else {
                length.checked_sub(1)?
            };
            sought = (address & mask(shorter), shorter);
            to = index;
        }
    }
}
