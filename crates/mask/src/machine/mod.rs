//! The transformation unit in user space: walks down a packet and runs a program at each header.
//!
//! ```text
//! packet  | Ethernet | IPv4 | ICMP | IPv4 | UDP..   the quote of an error: headers are treated like any
//! result  |  run     | run  | run  | run  | run     zero before; what is behind the last header is cut
//! ```
//!
//! Rules that both engines share:
//! - A header of which a part was cut off by the capture gives the fields that are wholly there, and
//!   nothing behind it.
//! - A malformed header, an unknown one and one behind [`DEPTH`] others is removed with all behind it.
//! - Of a fragment the headers that are in it are treated; transport's checksum is removed there, and so
//!   is all payload.
//! - Nothing is guessed: below the labels of MPLS is IP only if it proves to be.
//! - Checksums are computed from the result, innermost first, in which what was removed is zero; so they
//!   reveal nothing that the result does not. A UDP checksum of zero (none) stays.

mod checksums;
mod messages;
mod operate;
mod secrets;
#[cfg(test)]
pub(crate) mod tests;
mod walk;

pub use secrets::{MappingName, Secrets};

use crate::{application::Ports, layer::Kind, program::Program};
use checksums::Pending;
pub(crate) use walk::Visit;
use walk::Walk;

/// Most headers of a packet, options not counted; that of VXLAN is one with UDP's.
pub const DEPTH: usize = 24;

/// Where a packet begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// With an Ethernet header.
    Ethernet,
    /// With an IP header, whose version is in its first bits.
    Ip,
}

/// A program with the keys of a data set.
#[derive(Debug)]
pub struct Unit {
    program: Program,
    secrets: Secrets,
    /// Room for what [`Walk::run`] needs.
    pending: Vec<Pending>,
}

impl Unit {
    /// To run this program under these keys.
    pub fn new(program: Program, secrets: Secrets) -> Self {
        Self { program, secrets, pending: Vec::new() }
    }

    /// Masks a packet, of which perhaps not all was captured, into `out`, whose former content goes.
    ///
    /// `number` is the packet's in its data set; it chooses what [`Operation::Random`](crate::program::Operation::Random) gives.
    pub fn mask(&mut self, link: Link, packet: &[u8], number: u64, out: &mut Vec<u8>) {
        out.clear();
        self.append(link, packet, number, out);
    }

    /// The same, behind what `out` holds.
    pub(crate) fn append(&mut self, link: Link, packet: &[u8], number: u64, out: &mut Vec<u8>) {
        let begin = out.len();
        out.resize(begin + packet.len(), 0);
        let mut run = Run::new(&self.program, &mut self.secrets);
        let room = &mut out[begin..];
        let length = Walk::new(&mut run, packet, room, number).run(link, &mut self.pending);
        out.truncate(begin + length);
    }
}

/// Shows a visitor the headers of a packet; `out` is room for what it writes, whose content goes. Where the
/// last header ends.
pub(crate) fn visit(
    visitor: &mut impl Visit,
    link: Link,
    packet: &[u8],
    out: &mut Vec<u8>,
) -> usize {
    out.clear();
    out.resize(packet.len(), 0);
    Walk::new(visitor, packet, out, 0).run(link, &mut Vec::new())
}

/// A program that runs on the headers of a packet.
pub(crate) struct Run<'a> {
    program: &'a Program,
    secrets: &'a mut Secrets,
}

impl<'a> Run<'a> {
    pub(crate) fn new(program: &'a Program, secrets: &'a mut Secrets) -> Self {
        Self { program, secrets }
    }
}

/// Keeps these bits of eight bytes, or of those that there are.
#[inline]
fn keep(mask: &[u8; 8], from: &[u8], to: &mut [u8]) {
    // Another kind may have written a part of the same header: an option's type and length.
    if let (Some(from), Some(to)) = (from.first_chunk(), to.first_chunk_mut()) {
        let [had, from, mask] = [*to, *from, *mask].map(u64::from_ne_bytes);
        *to = (had | from & mask).to_ne_bytes();
        return;
    }
    for ((to, from), mask) in to.iter_mut().zip(from).zip(mask) {
        *to |= from & mask;
    }
}

impl Visit for Run<'_> {
    #[inline]
    fn header(&mut self, kind: Kind, header: &[u8], out: &mut [u8], whole: bool, unique: u128) {
        let instructions = if whole {
            let (kept, others) = self.program.steps(kind);
            for (at, mask) in kept {
                let at = usize::from(*at);
                keep(mask, &header[at..], &mut out[at..]);
            }
            others
        } else {
            // Only the fields that are wholly there.
            self.program.of(kind)
        };
        for instruction in instructions {
            self.secrets.execute(instruction, header, out, unique);
        }
    }

    fn keeps(&self, option: Kind) -> bool {
        !self.program.of(option).is_empty()
    }

    fn payload(&mut self, ports: Option<Ports>, payload: &[u8], out: &mut [u8]) -> bool {
        // A protocol of which the policy says more is not kept as it is.
        if let Some(ports) = ports
            && let Some(protocol) = self.program.looks_into(ports)
        {
            let (program, secrets) = (self.program, &mut *self.secrets);
            return messages::treat(program, secrets, protocol, ports.transport, payload, out);
        }
        if self.program.keeps_payload() {
            out.copy_from_slice(payload);
        }
        self.program.keeps_payload()
    }
}
