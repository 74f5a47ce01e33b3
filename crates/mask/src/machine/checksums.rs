//! Checksums of the result (RFC 1071), which are filled in when all headers are there.

use wire::checksum::Sum;

/// A checksum that is to be computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    /// Where it stands.
    pub(super) at: usize,
    /// What it covers.
    pub(super) from: usize,
    /// The end of that.
    pub(super) to: usize,
    /// The sum of the pseudo-header.
    pub(super) pseudo: Sum,
    /// Whether zero means that there is none (RFC 768), so that a sum of zero is written as ones.
    pub(super) zero_is_none: bool,
}

impl Pending {
    /// Fills it in; what it covers beyond the result was removed, so it is zero.
    pub(super) fn fill(&self, out: &mut [u8]) {
        let to = self.to.min(out.len());
        let Some(covered) = out.get(self.from..to) else { return };
        let mut sum = self.pseudo.bytes(covered).finish();
        if sum == 0 && self.zero_is_none {
            sum = 0xffff;
        }
        if let Some(field) = out.get_mut(self.at..self.at + 2) {
            field.copy_from_slice(&sum.to_be_bytes());
        }
    }
}
