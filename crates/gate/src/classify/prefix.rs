//! The first bytes of one direction of a TCP connection, put in order.
//!
//! Signatures and the reading of TLS need what was said first, not how it was cut into segments. Bytes
//! that came twice are taken as they came first, as a naive reader of the stream would.

/// Bytes of each direction that are kept: a ClientHello with keys of post-quantum algorithms and then some.
pub(crate) const LIMIT: usize = 8 * 1024;
/// Segments that wait for those before them.
const WAITING: usize = 16;

/// The first bytes of one direction.
#[derive(Debug, Default)]
pub(crate) struct Prefix {
    /// Sequence number of the first byte; none before any was seen.
    base: Option<u32>,
    /// Whether the SYN has said where the bytes begin.
    sure: bool,
    /// What is in order.
    bytes: Vec<u8>,
    /// What waits: how far behind the beginning, and the bytes.
    waiting: Vec<(usize, Vec<u8>)>,
}

impl Prefix {
    /// The SYN was seen: this is the number of the first byte.
    pub(crate) fn begin(&mut self, sequence: u32) {
        if self.base.is_none() {
            self.base = Some(sequence);
            self.sure = true;
        }
    }

    /// Puts a segment where it belongs and says whether there is more in order than before.
    pub(crate) fn segment(&mut self, sequence: u32, payload: &[u8]) -> bool {
        let base = *self.base.get_or_insert(sequence);
        // Numbers wrap around; more than half of them away is before (RFC 9293, section 3.4).
        let distance = sequence.wrapping_sub(base).cast_signed();
        let before = self.bytes.len();
        match usize::try_from(distance) {
            Ok(at) => self.place(at, payload),
            Err(_) => {
                let early = distance.unsigned_abs() as usize;
                if self.sure || early > LIMIT {
                    // Sent again, perhaps with new bytes behind the old ones.
                    let fresh = payload.get(early..).unwrap_or_default();
                    self.place(0, fresh);
                } else {
                    self.rebase(sequence, early, payload);
                    return true;
                }
            }
        }
        self.bytes.len() > before
    }

    /// What is in order so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether no more will be kept.
    pub(crate) fn full(&self) -> bool {
        self.bytes.len() >= LIMIT
    }

    /// The segment taken for the first was not.
    fn rebase(&mut self, sequence: u32, early: usize, payload: &[u8]) {
        self.base = Some(sequence);
        for (at, _) in &mut self.waiting {
            *at += early;
        }
        let first = std::mem::take(&mut self.bytes);
        if self.waiting.len() < WAITING {
            self.waiting.push((early, first));
        }
        self.place(0, payload);
    }

    fn place(&mut self, at: usize, payload: &[u8]) {
        if payload.is_empty() || at >= LIMIT {
            return;
        }
        if at > self.bytes.len() {
            if self.waiting.len() < WAITING {
                let end = payload.len().min(LIMIT - at);
                self.waiting.push((at, payload.get(..end).unwrap_or_default().to_vec()));
            }
            return;
        }
        self.append(at, payload);
        // What came first wins, hence in the order in which it came, until nothing fits any more.
        while let Some(next) = self.waiting.iter().position(|(at, _)| *at <= self.bytes.len()) {
            let (at, piece) = self.waiting.remove(next);
            self.append(at, &piece);
        }
    }

    /// Adds what is new of bytes that begin within or right behind those in order.
    fn append(&mut self, at: usize, payload: &[u8]) {
        let known = self.bytes.len().saturating_sub(at);
        let fresh = payload.get(known..).unwrap_or_default();
        let room = LIMIT.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(fresh.get(..room).unwrap_or(fresh));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_syn_says_where_bytes_begin_and_what_is_sent_again_adds_only_what_is_new() {
        let mut prefix = Prefix::default();
        prefix.begin(u32::MAX - 1);
        assert!(!prefix.segment(2, b"later"));
        assert!(prefix.segment(u32::MAX - 1, b"abcd"));
        assert_eq!(prefix.bytes(), b"abcdlater");
        // From before the first byte, as keep-alives are.
        assert!(!prefix.segment(u32::MAX - 2, b"?"));
        assert!(prefix.segment(u32::MAX - 2, b"?ABCDLATER!"));
        assert_eq!(prefix.bytes(), b"abcdlater!");
    }

    #[test]
    fn without_a_syn_an_earlier_segment_moves_the_beginning() {
        let mut prefix = Prefix::default();
        assert!(prefix.segment(1005, b"fghij"));
        assert!(prefix.segment(1000, b"abcde"));
        assert_eq!(prefix.bytes(), b"abcdefghij");
    }

    #[test]
    fn memory_is_bounded() {
        let mut prefix = Prefix::default();
        prefix.begin(0);
        for at in (0..200).rev().chain(0..200) {
            prefix.segment(at * 100, &[1; 1000]);
        }
        assert!(prefix.full());
        assert_eq!(prefix.bytes().len(), LIMIT);
        assert!(prefix.waiting.len() <= WAITING);
    }

    proptest! {
        /// Pieces of a stream in any order, overlapping, are the stream as far as there is no hole.
        #[test]
        fn any_order_gives_the_stream(
            base: u32,
            stream in proptest::collection::vec(any::<u8>(), 1..4000),
            cuts in proptest::collection::vec((any::<usize>(), 1usize..600), 0..12),
        ) {
            let mut prefix = Prefix::default();
            prefix.begin(base);
            let mut covered = vec![false; stream.len()];
            for (at, length) in cuts {
                let at = at % stream.len();
                let end = (at + length).min(stream.len());
                covered[at..end].fill(true);
                prefix.segment(base.wrapping_add(at as u32), &stream[at..end]);
            }
            let expected = covered.iter().position(|seen| !seen).unwrap_or(stream.len());
            prop_assert_eq!(prefix.bytes(), &stream[..expected]);
        }
    }
}
