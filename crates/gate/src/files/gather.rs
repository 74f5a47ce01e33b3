//! A message's beginning, gathered from pieces of a stream.

/// Bytes until there are enough of them.
#[derive(Debug, Default)]
pub(crate) struct Gather(Vec<u8>);

impl Gather {
    /// Takes from the front of `bytes` what is missing to `wanted`; how much that was, and the whole
    /// once it is there.
    pub(crate) fn take(&mut self, bytes: &[u8], wanted: usize) -> (usize, Option<Vec<u8>>) {
        let taken = wanted.saturating_sub(self.0.len()).min(bytes.len());
        self.0.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        let whole = (self.0.len() >= wanted).then(|| std::mem::take(&mut self.0));
        (taken, whole)
    }

    pub(crate) fn clear(&mut self) {
        self.0 = Vec::new();
    }
}
