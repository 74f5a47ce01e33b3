//! Randomness without state: a number is a function of (seed, link, packet, what it is for).
//!
//! Three rounds of a 64-bit mixing function (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
//! Generators", 2014, with the constants of its variant 13 by Stafford): the seed and the link give two
//! keys, one goes in before the round of the packet, the other before that of the purpose. With one key
//! alone the sequences of two links would be the same one from different positions on.

use crate::LinkId;
use splitmix::{GOLDEN, mix};

/// What a random number is for. Each has its own, so that switching one effect on or off changes nothing
/// of the others.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lane {
    /// Whether the wire loses the packet.
    Loss = 1,
    /// Whether the wire turns from good to bad or back after it.
    Turn = 2,
    /// How late the packet is.
    Jitter = 3,
    /// How late its copy is.
    JitterOfCopy = 4,
    /// Whether it is late enough to be overtaken.
    Reorder = 5,
    /// Whether it arrives twice.
    Duplicate = 6,
    /// Whether a bit of it is flipped.
    Corrupt = 7,
    /// Which bit.
    Bit = 8,
    /// Whether RED drops it.
    Red = 9,
}

/// The source of a link's random numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Random {
    keys: [u64; 2],
}

/// A packet's random numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draws {
    packet: u64,
}

impl Random {
    pub(super) fn new(seed: u64, link: LinkId) -> Self {
        let first = mix(mix(seed) ^ u64::from(link.0).wrapping_mul(GOLDEN));
        Self { keys: [first, mix(first ^ GOLDEN)] }
    }

    /// The numbers of the packet that is so many-eth.
    pub(super) fn packet(&self, count: u64) -> Draws {
        let [before, after] = self.keys;
        Draws { packet: mix(count.wrapping_add(before)) ^ after }
    }
}

impl Draws {
    /// 32 random bits.
    pub(super) fn number(self, lane: Lane) -> u32 {
        (mix(self.packet.wrapping_add((lane as u64).wrapping_mul(GOLDEN))) >> 32) as u32
    }

    /// A number below `end`, each as likely (but for 1 in 2^32 / `end`).
    pub(super) fn below(self, lane: Lane, end: u32) -> u32 {
        ((u64::from(self.number(lane)) * u64::from(end)) >> 32) as u32
    }
}
