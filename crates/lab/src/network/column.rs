//! An array of numbers in a network's bytes, each as wide as the largest one needs.
//!
//! A million nodes are numbered in three bytes, a hundred kinds of link in one, and an array that is
//! all zero takes nothing. A number is read as the four bytes where it begins, of which those that
//! belong to it are kept; so nothing must be aligned, and some bytes follow the last array.

/// What must follow the last array: a number of one byte is read with three behind it.
pub(super) const SPARE: usize = 4;

/// Where the array lies. It does not hold the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Column {
    /// In bytes from the beginning.
    pub(super) start: usize,
    /// How many numbers there are.
    pub(super) len: usize,
    /// Bytes a number: 0 to 4, or 16 for IPv6 addresses.
    pub(super) width: u8,
}

/// How many bytes a number needs that is at most this.
pub(super) fn width_for(largest: u32) -> u8 {
    (4 - largest.leading_zeros() / 8) as u8
}

impl Column {
    /// The number at that index, which is below `len`; beyond it, whatever lies there, or 0.
    #[inline]
    pub(super) fn get(&self, bytes: &[u8], index: usize) -> u32 {
        debug_assert!(index < self.len, "{index} is beyond {self:?}");
        let at = self.start + index * usize::from(self.width);
        match bytes.get(at..).and_then(|from| from.first_chunk()) {
            Some(&four) => u32::from_le_bytes(four) & MASKS[usize::from(self.width & 7)],
            None => 0,
        }
    }

    /// The 16-byte number at that index.
    #[inline]
    pub(super) fn get_wide(&self, bytes: &[u8], index: usize) -> u128 {
        debug_assert!(index < self.len, "{index} is beyond {self:?}");
        let at = self.start + index * 16;
        bytes.get(at..).and_then(|from| from.first_chunk()).map_or(0, |&at| u128::from_le_bytes(at))
    }

    /// Puts a number there. Bits beyond the width are lost: the width was chosen for the largest one.
    #[inline]
    pub(super) fn set(&self, bytes: &mut [u8], index: usize, value: u32) {
        debug_assert!(index < self.len && value <= MASKS[usize::from(self.width)]);
        let width = usize::from(self.width);
        let at = self.start + index * width;
        if let Some(slot) = bytes.get_mut(at..at + width) {
            slot.copy_from_slice(&value.to_le_bytes()[..width]);
        }
    }

    /// Puts a 16-byte number there.
    pub(super) fn set_wide(&self, bytes: &mut [u8], index: usize, value: u128) {
        let at = self.start + index * 16;
        if let Some(slot) = bytes.get_mut(at..at + 16) {
            slot.copy_from_slice(&value.to_le_bytes());
        }
    }

    /// All of them, in order.
    pub(super) fn iter<'b>(&self, bytes: &'b [u8]) -> impl Iterator<Item = u32> + use<'b> {
        let column = *self;
        (0..column.len).map(move |index| column.get(bytes, index))
    }

    /// Where a value would be put among numbers in ascending order, before those that equal it.
    pub(super) fn lower_bound(&self, bytes: &[u8], value: u32) -> usize {
        partition_point(0, self.len, |index| self.get(bytes, index) < value)
    }

    /// The index of a value among numbers in ascending order.
    pub(super) fn position(&self, bytes: &[u8], value: u32) -> Option<usize> {
        let index = self.lower_bound(bytes, value);
        (index < self.len && self.get(bytes, index) == value).then_some(index)
    }
}

/// The bits that belong to a number of that many bytes.
const MASKS: [u32; 8] = [0, 0xff, 0xffff, 0x00ff_ffff, u32::MAX, 0, 0, 0];

/// The first of `from..to` for which it no longer holds; it holds for those before it only.
#[inline]
pub(super) fn partition_point(
    mut from: usize,
    mut to: usize,
    holds: impl Fn(usize) -> bool,
) -> usize {
    while from < to {
        let middle = from + (to - from) / 2;
        if holds(middle) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_keeps_what_fits_its_width() {
        for largest in [0, 1, 255, 256, 65_535, 65_536, 0xff_ffff, 0x100_0000, u32::MAX] {
            let width = width_for(largest);
            let column = Column { start: 3, len: 5, width };
            let mut bytes = vec![0; 3 + 5 * usize::from(width) + SPARE];
            let values = [largest, 0, largest / 2, largest, largest / 3];
            for (index, &value) in values.iter().enumerate() {
                column.set(&mut bytes, index, value);
            }
            assert_eq!(
                [0, 1, 2, 3, 4].map(|index| column.get(&bytes, index)),
                values,
                "width {width}"
            );
        }
        assert_eq!([0, 255, 256, u32::MAX].map(width_for), [0, 1, 2, 4]);
    }

    #[test]
    fn a_number_beyond_the_bytes_is_zero() {
        let column = Column { start: 100, len: 1, width: 3 };
        assert_eq!(column.get(&[1; 8], 0), 0);
        assert_eq!(column.get_wide(&[1; 8], 0), 0);
    }
}
