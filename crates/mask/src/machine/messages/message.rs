//! A message that is being masked: its bytes, and the result at the same offsets.

use super::tag;
use crate::{application::Treatment, machine::Secrets, program::Program};
use std::ops::Range;

/// A message and its result, which is as long and zero where nothing was written. Offsets beyond the
/// message give nothing, which ends the walk through it.
pub(super) struct Message<'a> {
    pub(super) program: &'a Program,
    pub(super) secrets: &'a mut Secrets,
    pub(super) from: &'a [u8],
    pub(super) to: &'a mut [u8],
}

impl<'a> Message<'a> {
    pub(super) fn u8_at(&self, at: usize) -> Option<usize> {
        self.from.get(at).copied().map(usize::from)
    }

    pub(super) fn u16_at(&self, at: usize) -> Option<u16> {
        Some(u16::from_be_bytes(*self.from.get(at..)?.first_chunk()?))
    }

    fn both(&mut self, range: Range<usize>) -> Option<(&'a [u8], &mut [u8])> {
        Some((self.from.get(range.clone())?, self.to.get_mut(range)?))
    }

    /// Keeps structure.
    pub(super) fn keep(&mut self, range: Range<usize>) -> Option<()> {
        let (from, to) = self.both(range)?;
        to.copy_from_slice(from);
        Some(())
    }

    /// Treats bytes that say nothing to people.
    pub(super) fn bytes(&mut self, part: usize, range: Range<usize>) -> Option<()> {
        let (treatment, secrets) = (self.program.treatment(part), &*self.secrets);
        let (from, to) = (self.from.get(range.clone())?, self.to.get_mut(range)?);
        match treatment {
            None => to.fill(0),
            Some(Treatment::Keep) => to.copy_from_slice(from),
            Some(_) => secrets.spread(tag(part), from, to),
        }
        Some(())
    }

    /// Treats text, whatever its case.
    pub(super) fn text(&mut self, part: usize, range: Range<usize>) -> Option<()> {
        let whole = self.from.get(range.clone())?;
        self.text_as(part, range, whole)
    }

    /// Treats text that stands for more than itself: the same of this gives the same.
    pub(super) fn text_as(&mut self, part: usize, range: Range<usize>, meant: &[u8]) -> Option<()> {
        let (treatment, secrets) = (self.program.treatment(part), &*self.secrets);
        let (from, to) = (self.from.get(range.clone())?, self.to.get_mut(range)?);
        match treatment {
            None => to.fill(b'x'),
            Some(Treatment::Keep) => to.copy_from_slice(from),
            Some(_) => {
                secrets.spread(tag(part), &meant.to_ascii_lowercase(), to);
                to.iter_mut().for_each(|byte| *byte = b'a' + *byte % 26);
            }
        }
        Some(())
    }

    /// Treats an address of 4, 6 or 16 bytes: it becomes what it becomes in a header.
    pub(super) fn address(&mut self, part: usize, range: Range<usize>) -> Option<()> {
        let (from, to) = (self.from.get(range.clone())?, self.to.get_mut(range)?);
        match self.program.treatment(part) {
            None => to.fill(0),
            Some(treatment) => self.secrets.address(treatment, from, to),
        }
        Some(())
    }
}
