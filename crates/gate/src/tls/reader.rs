//! Reads numbers and blocks that carry their length, and never beyond the end.

use super::{MANY, is_reserved};

/// Bytes that are still to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Everything that is left.
    pub(super) const fn rest(self) -> &'a [u8] {
        self.0
    }

    /// The next bytes, when there are as many.
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    pub(super) fn u24(&mut self) -> Option<u32> {
        let high = self.u8()?;
        Some(u32::from(high) << 16 | u32::from(self.u16()?))
    }

    /// A block behind its length in one byte.
    pub(super) fn block8(&mut self) -> Option<Self> {
        let length = self.u8()?;
        self.take(length.into()).map(Self)
    }

    /// A block behind its length in two bytes.
    pub(super) fn block16(&mut self) -> Option<Self> {
        let length = self.u16()?;
        self.take(length.into()).map(Self)
    }

    /// All that is left as numbers of two bytes, without those reserved to be ignored.
    pub(super) fn numbers(mut self) -> Vec<u16> {
        let mut numbers = Vec::new();
        while let Some(number) = self.u16() {
            if !is_reserved(number) && numbers.len() < MANY {
                numbers.push(number);
            }
        }
        numbers
    }
}
