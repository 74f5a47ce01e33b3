//! What the two families differ in.

use std::fmt::Debug;

/// An address as a number in host byte order.
pub(super) trait Address: Copy + Ord + Default + Debug + Send + Sync + 'static {
    /// Length of an address in bits.
    const BITS: u8;
    /// All bits set.
    const MAX: Self;
    /// How many bits the levels of a trie take, from the top: each is a multiple of 2 and at least 8,
    /// together they are all bits.
    const STRIDES: &'static [u8];

    /// The bits of a network of this length.
    fn mask(length: u8) -> Self;
    /// `self & other`.
    fn and(self, other: Self) -> Self;
    /// `self | !other`.
    fn or_not(self, other: Self) -> Self;
    /// `self + 1`, of something less than [`Address::MAX`].
    fn next(self) -> Self;
    /// The lowest 32 bits of `self >> shift`; `shift` is less than [`Address::BITS`].
    fn shifted(self, shift: u8) -> u32;
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
    ($int:ty, $tail:ty, $strides:expr) => {
        impl Address for $int {
            const BITS: u8 = <$int>::BITS as u8;
            const MAX: Self = <$int>::MAX;
            const STRIDES: &'static [u8] = &$strides;

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
            fn shifted(self, shift: u8) -> u32 {
                (self >> shift) as u32
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

address!(u32, u16, [24, 8]);
address!(u128, u128, [20, 12, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8]);
