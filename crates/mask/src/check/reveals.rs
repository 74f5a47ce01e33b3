//! What a mapping of addresses gives away, seen from what it did.
//!
//! Under one that keeps prefixes each known address reveals of each other one the bits that both share and the
//! next one, which differs (Brekne and others, PET 2005). For k known addresses, any of them as likely as others,
//! the mean of the bits known of the others is computed over the tree of the original's addresses: with c of
//! N addresses below a node, one of these c is known for an other one with probability
//! 1 - C(N - c, k) / C(N - 1, k).

use crate::counted::counted;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::{collections::BTreeMap, fmt, net::IpAddr};

/// So many known addresses are reckoned with.
const KNOWN: [usize; 3] = [1, 10, 100];
/// What has a chance of 1 in 2 to this power or less is none.
const SURE: u32 = 20;

/// The masked addresses of one family by the original ones.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: BTreeMap<IpAddr, IpAddr>,
    /// How often an address had the name that it had before, and how often another one.
    same: u64,
    other: u64,
}

impl Names {
    pub(super) fn add(&mut self, was: IpAddr, is: IpAddr) {
        if was.is_unspecified() {
            return;
        }
        match *self.known.entry(was).or_insert(is) {
            known if known == is => self.same += 1,
            _ => self.other += 1,
        }
    }

    pub(super) fn finish(&self, family: Family) -> Option<Reveals> {
        let addresses = self.known.len();
        let width = family.bits();
        let pairs = || self.known.iter().map(|(was, is)| (bits(*was), bits(*is)));
        let shared = |a: u128, b: u128| (a ^ b).leading_zeros().min(width);
        let names: FxHashSet<u128> = pairs().map(|(_, is)| is).collect();
        let unchanged = pairs().map(|(was, is)| shared(was, is)).min()?;
        // Prefixes are kept if they are kept from one address to the next: what two others share is the
        // least that is shared on the path.
        let (mut chance, mut keeps_prefixes) = (0, true);
        let all: Vec<(u128, u128)> = pairs().collect();
        let mut lengths = Vec::new();
        for pair in all.windows(2) {
            let length = shared(pair[0].0, pair[1].0);
            keeps_prefixes &= length == shared(pair[0].1, pair[1].1);
            chance += length + 1;
            lengths.push(length);
        }
        let mapping = if self.known.values().all(IpAddr::is_unspecified) {
            Mapping::Removed
        } else if self.other * 10 > self.same {
            Mapping::Changing
        } else if unchanged == width {
            Mapping::Kept
        } else if names.len() < addresses {
            Mapping::ManyToOne
        } else {
            match (keeps_prefixes, chance >= SURE) {
                (true, true) => Mapping::KeepsPrefixes,
                (true, false) => Mapping::TooFew,
                (false, _) => Mapping::OneToOne,
            }
        };
        let known = match mapping {
            Mapping::KeepsPrefixes => KNOWN
                .iter()
                .filter(|known| **known < addresses)
                .map(|known| reckon(&lengths, width, *known))
                .collect(),
            _ => Vec::new(),
        };
        let is_sure = u64::from(unchanged) * addresses as u64 >= u64::from(SURE);
        let is_one_value =
            matches!(mapping, Mapping::KeepsPrefixes | Mapping::OneToOne | Mapping::ManyToOne);
        let unchanged_bits = if is_sure && is_one_value { unchanged } else { 0 };
        let names = names.len();
        Some(Reveals { family, mapping, addresses, names, unchanged_bits, known })
    }
}

/// The first bits of an address, the others are zero.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// What so many known addresses reveal of the others, whose neighbours share bits of these lengths.
fn reckon(lengths: &[u32], width: u32, known: usize) -> Known {
    let count = lengths.len() + 1;
    // How many nodes of the tree have so many addresses below them; those of one say nothing of others.
    let mut nodes: FxHashMap<(bool, usize), u64> = FxHashMap::default();
    for depth in 0..width {
        for run in lengths.split(|length| *length < depth).filter(|run| !run.is_empty()) {
            *nodes.entry((depth == width - 1, run.len() + 1)).or_default() += 1;
        }
    }
    let (mut bits, mut whole) = (0.0, 0.0);
    for ((is_last, below), number) in nodes {
        // Those that are not below, for each known one, of all but the one that is worked out.
        let none: f64 = (0..known)
            .map(|n| count.saturating_sub(below + n) as f64 / (count - 1 - n) as f64)
            .product();
        let expected = number as f64 * below as f64 * (1.0 - none);
        bits += expected;
        if is_last {
            whole += expected;
        }
    }
    Known { addresses: known, bits: bits / count as f64, whole: whole / count as f64 }
}

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

impl Family {
    /// Bits of an address.
    pub fn bits(self) -> u32 {
        match self {
            Self::Ipv4 => 32,
            Self::Ipv6 => 128,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
        })
    }
}

/// What was seen to become of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mapping {
    /// They are zero.
    Removed,
    /// They stay as they are.
    Kept,
    /// Two share as many first bits as before.
    KeepsPrefixes,
    /// Each has a name of its own, and prefixes are not kept.
    OneToOne,
    /// Each has a name of its own; whether prefixes are kept cannot be seen from so few.
    TooFew,
    /// Some share a name.
    ManyToOne,
    /// The same address has other names in other packets.
    Changing,
}

/// What known packets reveal of the addresses of a family.
#[derive(Debug, Serialize)]
pub struct Reveals {
    /// Of which.
    pub family: Family,
    /// What happened to them.
    pub mapping: Mapping,
    /// Addresses of the original.
    pub addresses: usize,
    /// Different results of their mapping.
    pub names: usize,
    /// The first so many bits of all of them stay as they are.
    pub unchanged_bits: u32,
    /// What some known ones reveal of the others, if prefixes are kept.
    pub known: Vec<Known>,
}

/// What is known of the other addresses, on average.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Known {
    /// When so many are known.
    pub addresses: usize,
    /// Bits of each other one.
    pub bits: f64,
    /// The share of the others that is known wholly.
    pub whole: f64,
}

impl fmt::Display for Reveals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, addresses, names, .. } = self;
        write!(f, "{family}: ")?;
        match self.mapping {
            Mapping::Removed => f.write_str("addresses are removed: they reveal none")?,
            Mapping::Kept => {
                f.write_str("addresses are those of the original: nothing is hidden")?
            }
            Mapping::Changing => {
                f.write_str("an address changes from packet to packet: they reveal none")?;
            }
            Mapping::OneToOne => write!(
                f,
                "each address has one pseudonym of its own, so a known packet reveals its hosts in all their \
                 packets, and nothing of the other {}",
                addresses - 1
            )?,
            Mapping::TooFew => f.write_str(
                "each address has one pseudonym of its own, so a known packet reveals its hosts in all their \
                 packets; whether prefixes are kept cannot be seen from so few addresses",
            )?,
            Mapping::ManyToOne => write!(
                f,
                "{} {}, so a known packet reveals all that share its hosts' pseudonyms",
                counted(*addresses, "address has", "addresses have"),
                counted(*names, "name", "names")
            )?,
            Mapping::KeepsPrefixes => {
                f.write_str("prefixes are kept")?;
                for Known { addresses, bits, whole } in &self.known {
                    write!(
                        f,
                        "; {addresses} known of {} {} {bits:.1} of {} bits of each other one, and {:.0} % \
                         of these wholly",
                        self.addresses,
                        if *addresses == 1 { "reveals" } else { "reveal" },
                        family.bits(),
                        whole * 100.0
                    )?;
                }
            }
        }
        if self.unchanged_bits > 0 {
            let bits = counted(self.unchanged_bits, "bit", "bits");
            write!(f, "; unchanged in all of them: the first {bits}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All choices of so many of these.
    fn choices(of: &[usize], count: usize) -> Vec<Vec<usize>> {
        if count == 0 {
            return vec![Vec::new()];
        }
        let with = |n: usize| {
            let rest = choices(&of[n + 1..], count - 1);
            rest.into_iter().map(move |mut rest| {
                rest.push(of[n]);
                rest
            })
        };
        (0..of.len()).flat_map(with).collect()
    }

    /// Against each choice of known addresses, one by one.
    #[test]
    fn what_known_addresses_tell_is_the_mean_over_all_choices() {
        let shared = |a: u32, b: u32| (a ^ b).leading_zeros();
        for addresses in [
            vec![0x0a00_0001, 0x0a00_0002, 0x0a00_0003, 0x0a00_0040, 0xc000_0201, 0xc633_6407],
            vec![1, 2],
            (0..8).map(|n: u32| n.wrapping_mul(0x9e37_79b9)).collect(),
        ] {
            let mut addresses: Vec<u32> = addresses;
            addresses.sort_unstable();
            let lengths: Vec<u32> =
                addresses.windows(2).map(|pair| shared(pair[0], pair[1])).collect();
            for known in 1..addresses.len() {
                let (mut bits, mut whole, mut cases) = (0, 0, 0);
                let all: Vec<usize> = (0..addresses.len()).collect();
                for choice in choices(&all, known) {
                    for other in all.iter().filter(|other| !choice.contains(other)) {
                        let best = choice.iter().map(|n| shared(addresses[*n], addresses[*other]));
                        let best = best.max().expect("one at least");
                        bits += best + 1;
                        whole += u32::from(best == 31);
                        cases += 1;
                    }
                }
                let reckoned = reckon(&lengths, 32, known);
                let mean = |sum: u32| f64::from(sum) / f64::from(cases);
                assert!((reckoned.bits - mean(bits)).abs() < 1e-9, "{reckoned:?} {}", mean(bits));
                assert!((reckoned.whole - mean(whole)).abs() < 1e-9, "{reckoned:?}");
            }
        }
    }
}
