//! What an attacker learns that knows some packets of a capture, since it sent or saw them itself: which
//! they are, and from them what happened to addresses.
//!
//! The packets of both captures are taken in pairs, in their order, so it is seen what the mask does, not
//! what it says it does.

use super::{
    outline::Outline,
    reveals::{Family, Names, Reveals},
};
use crate::counted::counted;
use serde::Serialize;
use std::{fmt, net::IpAddr};

/// Most packets that are paired.
const PAIRS: usize = 1 << 18;

/// What of a packet is compared.
#[derive(Clone, Copy, Debug)]
struct Packet {
    time: u64,
    length: u32,
    protocol: u8,
    addresses: [Option<IpAddr>; 2],
}

/// The packets of both captures.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    original: Vec<Packet>,
    masked: Vec<Packet>,
    /// Packets of the original that found no room.
    skipped: u64,
}

impl Pairs {
    pub(super) fn add_original(&mut self, packet: &Outline) {
        self.skipped += u64::from(!push(&mut self.original, packet));
    }

    pub(super) fn add_masked(&mut self, packet: &Outline) {
        push(&mut self.masked, packet);
    }

    fn both(&self) -> impl Iterator<Item = (&Packet, &Packet)> {
        self.original.iter().zip(&self.masked)
    }

    /// Whether the packets are in the order of the original: nearly all have its size and protocol.
    fn agree(&self) -> bool {
        let is_same =
            |(a, b): &(&Packet, &Packet)| (a.length, a.protocol) == (b.length, b.protocol);
        let same = self.both().filter(is_same).count();
        same > 0 && self.original.len() == self.masked.len() && same * 10 >= self.masked.len() * 9
    }

    /// What known packets reveal, in a masked capture where so many have a size of their own.
    pub(super) fn finish(self, single_sizes: u64) -> Injection {
        if !self.agree() {
            return Injection {
                pairs: 0,
                skipped: 0,
                families: Vec::new(),
                single_sizes,
                times: None,
            };
        }
        let mut families = [Names::default(), Names::default()];
        for (original, masked) in self.both() {
            for (was, is) in original.addresses.iter().zip(&masked.addresses) {
                if let (Some(was), Some(is)) = (was, is) {
                    families[usize::from(was.is_ipv6())].add(*was, *is);
                }
            }
        }
        let families = families.into_iter().zip([Family::Ipv4, Family::Ipv6]);
        Injection {
            pairs: self.original.len(),
            skipped: self.skipped,
            families: families.filter_map(|(names, family)| names.finish(family)).collect(),
            single_sizes,
            times: Some(self.times()),
        }
    }

    fn times(&self) -> Times {
        let difference = |(a, b): (&Packet, &Packet)| b.time.wrapping_sub(a.time);
        let first = self.both().find(|(original, _)| original.time > 0).map(difference);
        let moved = self.both().filter(|(original, _)| original.time > 0);
        let mut times: Vec<u64> = self.masked.iter().map(|packet| packet.time).collect();
        times.sort_unstable();
        let single = times.chunk_by(PartialEq::eq).filter(|same| same.len() == 1).count() as u64;
        let kept = if times.last() == Some(&0) {
            TimesKept::No
        } else if first == Some(0) {
            TimesKept::All
        } else if moved.map(difference).all(|it| Some(it) == first) {
            TimesKept::Intervals
        } else {
            TimesKept::Changed
        };
        Times { kept, single }
    }
}

/// Whether there was room for it.
fn push(packets: &mut Vec<Packet>, packet: &Outline) -> bool {
    let has_room = packets.len() < PAIRS;
    if has_room {
        let &Outline { time, length, protocol, source, destination, .. } = packet;
        packets.push(Packet { time, length, protocol, addresses: [source, destination] });
    }
    has_room
}

/// When packets were seen.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Times {
    /// What is left of it.
    pub kept: TimesKept,
    /// Packets whose time no other packet has.
    pub single: u64,
}

/// What is left of the times of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimesKept {
    /// They are those of the original.
    All,
    /// What is between them.
    Intervals,
    /// They are others.
    Changed,
    /// Nothing.
    No,
}

/// What an attacker learns from packets that it knows.
#[derive(Debug, Serialize)]
pub struct Injection {
    /// Packets of both captures that were compared; zero where they are not in the same order.
    pub pairs: usize,
    /// Packets that were not compared, since there were too many.
    pub skipped: u64,
    /// What happened to addresses.
    pub families: Vec<Reveals>,
    /// Packets of the masked capture whose size no other one has.
    pub single_sizes: u64,
    /// What happened to times, where packets were compared.
    pub times: Option<Times>,
}

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packets = counted(self.single_sizes, "packet", "packets");
        write!(f, "found at once by its size: {packets}")?;
        let Some(Times { kept, single }) = self.times else {
            return f.write_str(
                "\nwhat it reveals was not computed: the packets are not those of the original in the same \
                 order",
            );
        };
        match kept {
            TimesKept::All => write!(f, "; by its time, which is the original's: {single}")?,
            TimesKept::Intervals => {
                write!(f, "; by its time, once that of another one is known: {single}")?;
            }
            TimesKept::Changed => f.write_str("; times are not those of the original")?,
            TimesKept::No => f.write_str("; by its time: none")?,
        }
        for family in &self.families {
            write!(f, "\n{family}")?;
        }
        if self.skipped > 0 {
            let packets = counted(self.pairs, "packet was", "packets were");
            write!(f, "\nonly the first {packets} compared")?;
        }
        Ok(())
    }
}
