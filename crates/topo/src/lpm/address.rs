//! What the two families differ in.

use std::fmt::Debug;

/// An address as a number in host byte order.
pub(super) trait Address: Copy + Ord + Default + Debug + Send + Sync + 'static {
    /// All bits set.
    const MAX: Self;
    /// The bits of a network of this length.
    fn mask(length: u8) -> Self;
    /// `self & other`.
    fn and(self, other: Self) -> Self;
    /// `self | !other`.
    fn or_not(self, other: Self) -> Self;
    /// `self + 1`, of something less than [`Address::MAX`].
    fn next(self) -> Self;
    /// The first `count` bits as a number; `count` is 1 to 32.
    fn first(self, count: u8) -> usize;
    /// `self << count`: without the first bits. 0 if these are all.
    fn without(self, count: u8) -> Self;
    /// How many leading bits are the same.
    fn common(self, other: Self) -> u8;
    /// What [`List`](super::list::List) stores of an address: all but the first 16 bits.
    type Tail: Copy + Debug + Send + Sync + 'static;
    /// All but the first 16 bits.
    fn tail(self) -> Self::Tail;
    /// The address of these 16 bits and the rest.
    fn join(top: usize, tail: Self::Tail) -> Self;
}

macro_rules! address {
    ($int:ty, $tail:ty) => {
        impl Address for $int {
            const MAX: Self = <$int>::MAX;

            #[inline]
            fn mask(length: u8) -> Self {
                <$int>::MAX.checked_shl(<$int>::BITS - u32::from(length)).unwrap_or(0)
            }
            #[inline]
            fn and(self, other: Self) -> Self {
                self & other
            }
            #[inline]
            fn or_not(self, other: Self) -> Self {
                self | !other
            }
            #[inline]
            fn next(self) -> Self {
                self.wrapping_add(1)
            }
            #[inline]
            fn first(self, count: u8) -> usize {
                (self >> (<$int>::BITS - u32::from(count))) as usize
            }
            #[inline]
            fn without(self, count: u8) -> Self {
                self.checked_shl(u32::from(count)).unwrap_or(0)
            }
            #[inline]
            fn common(self, other: Self) -> u8 {
                (self ^ other).leading_zeros() as u8
            }
            type Tail = $tail;
            #[inline]
            fn tail(self) -> Self::Tail {
                self as $tail
            }
            #[inline]
            fn join(top: usize, tail: Self::Tail) -> Self {
                (top as $int) << (<$int>::BITS - 16) | tail as $int
            }
        }
    };
}

address!(u32, u16);
address!(u128, u128);
