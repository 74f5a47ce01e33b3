//! The Internet checksum's sum (RFC 1071), eight bytes at a time.
//!
//! The sum may be taken in the machine's byte order and swapped at the end (RFC 1071, section 2.B), and
//! in wider words, of which the halves are added at the end (section 2.C). Four sums side by side keep
//! the processor's adders busy.

/// A one's complement sum of 16-bit words, in the machine's byte order, not yet folded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum(u64);

impl Sum {
    /// Of bytes, as if they began on an even byte; an odd last one is padded with zero.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut sums = [0u128; 4];
        let (words, rest) = bytes.as_chunks::<8>();
        let (blocks, words) = words.as_chunks::<4>();
        for block in blocks {
            for (sum, word) in sums.iter_mut().zip(block) {
                *sum += u128::from(u64::from_ne_bytes(*word));
            }
        }
        let mut total: u128 = sums.iter().sum();
        for word in words {
            total += u128::from(u64::from_ne_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        Self::narrow(total + u128::from(u64::from_ne_bytes(last)))
    }

    /// Of a 16-bit number.
    pub(super) fn number(number: u16) -> Self {
        Self(number.to_be().into())
    }

    /// Both.
    pub(super) fn and(self, other: Self) -> Self {
        Self::narrow(u128::from(self.0) + u128::from(other.0))
    }

    /// The sum of the same bytes behind an odd byte: every byte is in the other half of its word
    /// (section 2.B).
    pub(super) fn odd(self) -> Self {
        Self(self.fold_native().swap_bytes().into())
    }

    /// Without what was in it: the complement is its negative.
    pub(super) fn less(self, other: Self) -> Self {
        self.and(Self((!other.fold_native()).into()))
    }

    /// The sum as a number of 16 bits.
    pub(super) fn fold(self) -> u16 {
        u16::from_be(self.fold_native())
    }

    fn narrow(mut wide: u128) -> Self {
        while wide >> 64 != 0 {
            wide = (wide & u128::from(u64::MAX)) + (wide >> 64);
        }
        Self(wide as u64)
    }

    fn fold_native(self) -> u16 {
        let mut sum = (self.0 & 0xffff_ffff) + (self.0 >> 32);
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_sum_is_that_of_crate_wire(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let right = wire::checksum::Sum::default().bytes(&bytes).fold();
            prop_assert_eq!(Sum::of(&bytes).fold(), right);
        }

        #[test]
        fn two_pieces_are_the_whole(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            cut in any::<prop::sample::Index>(),
        ) {
            let (first, second) = bytes.split_at(cut.index(bytes.len() + 1));
            let second = match first.len() % 2 {
                0 => Sum::of(second),
                _ => Sum::of(second).odd(),
            };
            prop_assert_eq!(Sum::of(first).and(second).fold(), Sum::of(&bytes).fold());
        }

        /// Zero has two forms in one's complement; nothing but zeros sums to the first.
        #[test]
        fn what_is_added_can_be_taken_away(a in 1u16.., b in any::<u16>()) {
            let sum = Sum::number(a).and(Sum::number(b)).less(Sum::number(b));
            prop_assert_eq!(sum.fold() % 0xffff, a % 0xffff);
        }
    }

    #[test]
    fn many_ones_do_not_overflow() {
        assert_eq!(Sum::of(&[0xff; 65_536]).fold(), 0xffff);
    }
}
