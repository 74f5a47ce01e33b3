//! Where a network's bytes are.

use datapath::mapped::Mapped;
use std::ops::Deref;

/// A network's bytes.
#[derive(Debug)]
pub(super) enum Storage {
    Memory(Vec<u8>),
    Mapped(Mapped),
}

impl Deref for Storage {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Memory(bytes) => bytes,
            Self::Mapped(bytes) => bytes,
        }
    }
}

impl Storage {
    /// For filling in. Files are not written to.
    pub(super) fn fillable(&mut self) -> &mut [u8] {
        match self {
            Self::Memory(bytes) => bytes,
            Self::Mapped(_) => &mut [],
        }
    }
}
