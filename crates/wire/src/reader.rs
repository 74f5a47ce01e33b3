//! A cursor over bytes from outside: what is not there is `None`.

/// Takes numbers, bytes and blocks off the front. Numbers are big-endian unless the name ends in `_le`.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads these bytes from their beginning.
    pub const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// The bytes that are not taken yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything is taken.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next bytes, when there are as many.
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    /// The next bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*taken)
    }

    /// A number of one byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// A number of two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// A number of three bytes.
    pub fn u24(&mut self) -> Option<u32> {
        self.array().map(|[high, middle, low]| u32::from_be_bytes([0, high, middle, low]))
    }

    /// A number of four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// A number of eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A little-endian number of two bytes.
    pub fn u16_le(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// A little-endian number of four bytes.
    pub fn u32_le(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// A block behind its length in one byte.
    pub fn block8(&mut self) -> Option<Self> {
        let length = self.u8()?;
        self.take(length.into()).map(Self::new)
    }

    /// A block behind its length in two bytes.
    pub fn block16(&mut self) -> Option<Self> {
        let length = self.u16()?;
        self.take(length.into()).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_blocks_are_taken_in_order() {
        let bytes: Vec<u8> = (1..=20).collect();
        let mut reader = Reader::new(&bytes);
        assert_eq!(
            (reader.u8(), reader.u16(), reader.u24()),
            (Some(1), Some(0x0203), Some(0x0004_0506))
        );
        assert_eq!((reader.u32(), reader.u16_le()), (Some(0x0708_090a), Some(0x0c0b)));
        assert_eq!(reader.u64(), Some(0x0d0e_0f10_1112_1314));
        assert!(reader.is_empty());
        assert_eq!((reader.u8(), reader.take(0)), (None, Some(&[][..])));
        let mut blocks = Reader::new(&[2, 7, 8, 0, 1, 9, 3, 1]);
        assert_eq!(blocks.block8().map(|block| block.rest().to_vec()), Some(vec![7, 8]));
        assert_eq!(blocks.block16().map(|block| block.rest().to_vec()), Some(vec![9]));
        // The last one is longer than what is left.
        assert!(blocks.block8().is_none());
    }
}
