//! The bytes of a transfer: each offset has its own, so that one byte too few, too many or at another
//! offset is found at once.

/// Odd, with bits all over: multiples of it differ in all bytes.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Bytes of a word.
const WORD: u64 = 8;

/// Fills `into` with the bytes that stand from `offset` on; both are multiples of 8.
pub(crate) fn fill(into: &mut [u8], offset: u64) {
    for (number, word) in into.chunks_exact_mut(WORD as usize).enumerate() {
        let index = offset / WORD + number as u64;
        word.copy_from_slice(&index.wrapping_mul(STEP).to_le_bytes());
    }
}

/// Compares a stream with what it should be, piece by piece.
#[derive(Default)]
pub(crate) struct Checker {
    offset: u64,
    expected: Vec<u8>,
    /// Offset of the first wrong byte.
    pub(crate) wrong: Option<u64>,
}

impl Checker {
    /// Takes the next bytes of the stream, however many they are.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let begin = self.offset / WORD * WORD;
        let skip = (self.offset - begin) as usize;
        self.expected.resize((skip + bytes.len()).next_multiple_of(WORD as usize), 0);
        fill(&mut self.expected, begin);
        let expected = &self.expected[skip..skip + bytes.len()];
        if self.wrong.is_none() && expected != bytes {
            let first = expected.iter().zip(bytes).position(|(one, other)| one != other);
            self.wrong = first.map(|first| self.offset + first as u64);
        }
        self.offset += bytes.len() as u64;
    }
}
