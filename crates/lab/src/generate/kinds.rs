//! The kinds of links that an internet has: delays in steps, and rates by tier.

use super::world::{Line, Tier};
use crate::network::{Edge, Kind, KindId, Relation};
use crate::{LinkSettings, Nanos, NodeId};
use rustc_hash::FxHashMap;

/// Kilometres in a millisecond in glass, detours of a fifth included.
const SPEED: f64 = 200.0 / 1.2;
/// The shortest delay, in nanoseconds.
const SHORTEST: u64 = 50_000;
/// No delay is much longer.
const LONGEST: u64 = 250_000_000;
/// Delays are multiples of this, and weights count it.
const GRAIN: u64 = 10_000;

const TIERS: [Tier; 3] = [Tier::One, Tier::Transit, Tier::Stub];

/// Bits a second of links where the lower of the two ASes is of that tier.
fn rate(tier: Tier) -> u64 {
    match tier {
        Tier::One => 400_000_000_000,
        Tier::Transit => 100_000_000_000,
        Tier::Stub => 10_000_000_000,
    }
}

/// All kinds.
#[derive(Debug)]
pub(super) struct Kinds {
    /// In nanoseconds, ascending.
    delays: Vec<u64>,
    list: Vec<Kind>,
    /// For each delay, tier and relation.
    numbers: Vec<u16>,
}

impl Kinds {
    pub(super) fn new(rates: bool) -> Self {
        let mut delays = vec![SHORTEST];
        while let Some(&last) = delays.last().filter(|&&last| last < LONGEST) {
            delays.push((last * 104 / 100).next_multiple_of(GRAIN));
        }
        let (mut list, mut known) = (Vec::new(), FxHashMap::default());
        let mut numbers = Vec::new();
        for &delay in &delays {
            for tier in TIERS {
                for relation in Relation::ALL {
                    let rate = rates.then(|| rate(tier));
                    let delay_of = Nanos(delay);
                    let settings = LinkSettings { delay: delay_of, rate, ..Default::default() };
                    let kind = Kind { settings, weight: (delay / GRAIN) as u32, relation };
                    let number = *known.entry(kind).or_insert_with(|| {
                        list.push(kind);
                        list.len() as u16 - 1
                    });
                    numbers.push(number);
                }
            }
        }
        Self { delays, list, numbers }
    }

    pub(super) fn list(&self) -> Vec<Kind> {
        self.list.clone()
    }

    /// The line's links.
    pub(super) fn edge(&self, line: Line) -> Edge {
        let delay = (line.kilometres / SPEED * 1e6) as u64;
        let step = self.delays.partition_point(|&step| step < delay).min(self.delays.len() - 1);
        let kind = |relation: Relation| {
            let index = (step * TIERS.len() + line.tier as usize) * 4 + relation as usize;
            KindId(self.numbers[index])
        };
        Edge {
            a: NodeId(line.from),
            b: NodeId(line.to),
            forward: kind(line.relation),
            reverse: Some(kind(line.relation.mirrored())),
        }
    }
}
