//! The Internet checksum: RFC 1071 in full, RFC 1624 by difference.
//!
//! The checksum is the complement of the one's complement sum of the 16-bit words. One's
//! complement has two zeros, 0x0000 and 0xffff, and they are where implementations go wrong:
//!
//! - A sum is 0x0000 only if every word is; any other sum that is zero comes out as 0xffff.
//! - RFC 1624's equation 3, `HC' = ~(~HC + ~m + m')`, never yields a sum of 0x0000. So where a
//!   change makes *everything* zero (an ICMPv4 echo request with identifier, sequence and payload
//!   0 that becomes a reply), it yields the checksum 0x0000 where 0xffff is right, and the receiver
//!   drops the packet. 0xffff in its stead is right there as well: it is accepted wherever 0x0000 is.

use std::net::{IpAddr, Ipv6Addr};

use crate::IpProtocol;

/// A running one's complement sum of 16-bit words.
///
/// Each piece that is added begins on an even byte; an odd last byte is padded with zero on its
/// right (RFC 1071, section 4.1). For a piece behind an odd byte there is [`Sum::odd`].
///
/// It is kept in the machine's byte order and swapped at the end (RFC 1071, section 2.B), and taken in
/// wider words, of which the halves are added at the end (section 2.C).
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds bytes. Four sums side by side keep the processor's adders busy.
    #[must_use]
    #[inline]
    pub fn bytes(self, data: &[u8]) -> Self {
        let mut sums = [0u128; 4];
        let (words, rest) = data.as_chunks::<8>();
        let (blocks, words) = words.as_chunks::<4>();
        for block in blocks {
            for (sum, word) in sums.iter_mut().zip(block) {
                *sum += u128::from(u64::from_ne_bytes(*word));
            }
        }
        let mut total = u128::from(self.0) + sums.iter().sum::<u128>();
        for word in words {
            total += u128::from(u64::from_ne_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        Self::narrow(total + u128::from(u64::from_ne_bytes(last)))
    }

    /// Adds a word.
    #[must_use]
    pub fn word(self, word: u16) -> Self {
        self.and(Self(word.to_be().into()))
    }

    /// Adds another sum.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::narrow(u128::from(self.0) + u128::from(other.0))
    }

    /// The sum of the same bytes behind an odd byte: every byte is in the other half of its word
    /// (section 2.B).
    #[must_use]
    pub fn odd(self) -> Self {
        Self(self.fold_native().swap_bytes().into())
    }

    /// Without a sum that was added: the complement is its negative.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        self.and(Self((!other.fold_native()).into()))
    }

    /// The sum, folded to 16 bits with the carries added round the end.
    pub fn fold(self) -> u16 {
        u16::from_be(self.fold_native())
    }

    /// The checksum: the complement of the sum.
    pub fn finish(self) -> u16 {
        !self.fold()
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

/// The checksum of bytes in which the checksum field is zero.
pub fn checksum(data: &[u8]) -> u16 {
    Sum::default().bytes(data).finish()
}

/// Whether bytes that include their checksum are intact: the sum of all words is 0xffff.
pub fn verifies(data: &[u8]) -> bool {
    Sum::default().bytes(data).fold() == 0xffff
}

/// The checksum after a word has changed from `old` to `new`: RFC 1624, section 3, equation 3.
///
/// Exact unless every covered word is zero after the change: then it gives 0x0000 where 0xffff is right.
#[must_use]
pub fn update(check: u16, old: u16, new: u16) -> u16 {
    Sum::default().word(!check).word(!old).word(new).finish()
}

/// The sum of the pseudo header of either family (RFC 9293, section 3.1; RFC 8200, section 8.1); none
/// for addresses of two.
pub fn pseudo(from: IpAddr, to: IpAddr, length: u32, protocol: IpProtocol) -> Option<Sum> {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => Some(
            Sum::default()
                .bytes(&from.octets())
                .bytes(&to.octets())
                .bytes(&length.to_be_bytes())
                .word(u16::from(protocol.0)),
        ),
        (IpAddr::V6(from), IpAddr::V6(to)) => Some(pseudo_v6(from, to, length, protocol)),
        _ => None,
    }
}

/// The sum of the IPv6 pseudo header (RFC 8200, section 8.1).
pub fn pseudo_v6(from: Ipv6Addr, to: Ipv6Addr, length: u32, protocol: IpProtocol) -> Sum {
    Sum::default()
        .bytes(&from.octets())
        .bytes(&to.octets())
        .bytes(&length.to_be_bytes())
        .word(u16::from(protocol.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_sum_is_that_of_all_words(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut sum = 0;
            for pair in bytes.chunks(2) {
                sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
                sum = (sum & 0xffff) + (sum >> 16);
            }
            prop_assert_eq!(u32::from(Sum::default().bytes(&bytes).fold()), sum);
        }

        #[test]
        fn two_pieces_are_the_whole(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            cut in any::<prop::sample::Index>(),
        ) {
            let sum = |bytes| Sum::default().bytes(bytes);
            let (first, second) = bytes.split_at(cut.index(bytes.len() + 1));
            let second = match first.len() % 2 {
                0 => sum(second),
                _ => sum(second).odd(),
            };
            prop_assert_eq!(sum(first).and(second).fold(), sum(&bytes).fold());
        }

        /// Zero has two forms in one's complement; nothing but zeros sums to the first.
        #[test]
        fn what_is_added_can_be_taken_away(a in 1u16.., b in any::<u16>()) {
            let number = |number| Sum::default().word(number);
            let sum = number(a).and(number(b)).less(number(b));
            prop_assert_eq!(sum.fold() % 0xffff, a % 0xffff);
        }
    }

    #[test]
    fn many_ones_do_not_overflow() {
        assert_eq!(Sum::default().bytes(&[0xff; 65_536]).fold(), 0xffff);
    }

    #[test]
    fn rfc_1071_section_3_example() {
        let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::default().bytes(&data).fold(), 0xddf2);
        assert_eq!(checksum(&data), 0x220d);
    }

    #[test]
    fn rfc_1624_section_4_example() {
        // "m = 0x5555 -> m' = 0x3285, HC = 0xDD2F": the additive form gives 0xffff, right is 0.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn odd_length_is_padded_on_the_right() {
        assert_eq!(checksum(&[0x12, 0x34, 0x56]), checksum(&[0x12, 0x34, 0x56, 0x00]));
    }

    /// An echo request becomes a reply for every identifier: each sum occurs, hence each checksum.
    #[test]
    fn request_to_reply_for_all_65536() {
        let mut seen_zero = false;
        for ident in 0..=u16::MAX {
            let [high, low] = ident.to_be_bytes();
            let mut message = [8, 0, 0, 0, high, low, 0, 0];
            let check = checksum(&message);
            message[0] = 0;
            let full = checksum(&message);
            let fast = update(check, 0x0800, 0);
            let safe = if fast == 0 { 0xffff } else { fast };
            if ident == 0 {
                // All zero: the plain equation is wrong, as the head of this file says.
                assert_eq!((full, fast), (0xffff, 0));
                seen_zero = true;
            } else {
                assert_eq!(fast, full, "identifier {ident}");
            }
            message[2..4].copy_from_slice(&safe.to_be_bytes());
            assert!(verifies(&message), "identifier {ident}");
        }
        assert!(seen_zero);
    }

    /// A word that changes to every value, over data that is not zero.
    #[test]
    fn update_equals_full_for_all_65536() {
        for old in [0, 1, 0x0800, 0x7fff, 0x8000, 0xfffe, 0xffff] {
            for new in 0..=u16::MAX {
                let data = |word: u16| {
                    let [high, low] = word.to_be_bytes();
                    checksum(&[high, low, 0x12, 0x34, 0xff])
                };
                assert_eq!(update(data(old), old, new), data(new), "{old:04x} to {new:04x}");
            }
        }
    }

    /// The naive sum: a word at a time, the carry added at once.
    fn naive(data: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in data.chunks(2) {
            sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&b| u32::from(b));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    proptest! {
        #[test]
        fn fast_sum_equals_naive_sum(data in proptest::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert_eq!(checksum(&data), naive(&data));
        }

        #[test]
        fn pieces_equal_the_whole(a in proptest::collection::vec(any::<[u8; 2]>(), 0..300),
                                  b in proptest::collection::vec(any::<u8>(), 0..300)) {
            let a = a.concat();
            let whole = [a.clone(), b.clone()].concat();
            prop_assert_eq!(Sum::default().bytes(&a).bytes(&b).finish(), checksum(&whole));
        }
    }
}
