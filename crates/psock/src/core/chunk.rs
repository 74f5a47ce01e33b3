//! Bytes of the stream in memory.

use std::sync::Arc;

/// Some bytes of the stream, cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk(Arc<Vec<u8>>);

impl Chunk {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(bytes))
    }

    /// Appends bytes, if nobody else has the chunk.
    pub(super) fn append(&mut self, bytes: &[u8]) -> bool {
        let own = Arc::get_mut(&mut self.0);
        own.map(|own| own.extend_from_slice(bytes)).is_some()
    }
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
