//! Masks in this process what the kernel only copies, where it has no cipher.

use crate::{
    file::{Job, units::Units},
    machine::Link,
};

/// Masks packets one after the other.
pub(super) struct Masker<'a> {
    link: Link,
    units: Units<'a>,
    /// Packets that were masked.
    number: u64,
    result: Vec<u8>,
}

impl<'a> Masker<'a> {
    pub(super) fn new(job: &'a Job, link: Link) -> Self {
        Self { link, units: Units::new(job), number: 0, result: Vec::new() }
    }

    /// What is left of a packet of the period that began at this time, in seconds since 1970.
    pub(super) fn mask(&mut self, period: u64, packet: &[u8]) -> &[u8] {
        self.units.of(period).mask(self.link, packet, self.number, &mut self.result);
        self.number += 1;
        &self.result
    }
}
