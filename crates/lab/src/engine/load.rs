//! How much each link and node had to do.
//!
//! A packet that passes a run of links is counted twice, whatever the number of links: where the run
//! begins and where it ends. The links between are summed up when somebody asks.

use rustc_hash::FxHashMap;

use super::{Engine, Reason, in_flight::Progress, path::Hop};
use crate::{LinkId, NodeId};

/// What came to a directed link. A super-packet is one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkLoad {
    /// Packets that came to it.
    pub packets: u64,
    /// Bytes of their IP packets.
    pub bytes: u64,
    /// Packets of these that it did not carry.
    pub dropped: u64,
}

/// What a node had to do beside forwarding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeLoad {
    /// Packets that ended there: for itself, or because it could not forward them.
    pub ended: u64,
    /// Answers and errors that it sent.
    pub sent: u64,
}

/// Packets and bytes that begin to pass links at a position of the path, less those that cease there.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    packets: u64,
    bytes: u64,
}

/// What went over a path and was not added to its links yet.
#[derive(Debug, Default)]
pub(super) struct Tally {
    steps: Vec<Step>,
    counted: bool,
}

impl Tally {
    /// For a path of so many links.
    pub(super) fn new(links: usize) -> Self {
        Self { steps: vec![Step::default(); links + 1], counted: false }
    }

    /// A packet passes the links from one position to another.
    pub(super) fn count(&mut self, from: u16, to: u16, bytes: u32) {
        if from == to {
            return;
        }
        self.counted = true;
        let bytes = u64::from(bytes);
        if let Some(step) = self.steps.get_mut(usize::from(from)) {
            *step = Step {
                packets: step.packets.wrapping_add(1),
                bytes: step.bytes.wrapping_add(bytes),
            };
        }
        if let Some(step) = self.steps.get_mut(usize::from(to)) {
            *step = Step {
                packets: step.packets.wrapping_sub(1),
                bytes: step.bytes.wrapping_sub(bytes),
            };
        }
    }

    /// Adds everything to the links and begins again.
    pub(super) fn settle(&mut self, hops: &[Hop], loads: &mut FxHashMap<LinkId, LinkLoad>) {
        if !std::mem::take(&mut self.counted) {
            return;
        }
        let mut passing = Step::default();
        for (step, hop) in self.steps.iter_mut().zip(hops) {
            let step = std::mem::take(step);
            passing.packets = passing.packets.wrapping_add(step.packets);
            passing.bytes = passing.bytes.wrapping_add(step.bytes);
            if passing.packets > 0 {
                let load = loads.entry(hop.link).or_default();
                load.packets += passing.packets;
                load.bytes += passing.bytes;
            }
        }
        if let Some(last) = self.steps.last_mut() {
            *last = Step::default();
        }
    }
}

impl Engine {
    /// What came to each link so far, in no order; links that nothing came to are omitted.
    pub fn link_loads(&mut self) -> impl Iterator<Item = (LinkId, LinkLoad)> {
        self.paths.settle(&mut self.link_loads);
        self.link_loads.iter().map(|(&link, &load)| (link, load))
    }

    /// What came to some links so far, in their order.
    pub fn loads_of(&mut self, links: &[LinkId]) -> impl Iterator<Item = LinkLoad> {
        self.paths.settle(&mut self.link_loads);
        links.iter().map(|link| self.link_loads.get(link).copied().unwrap_or_default())
    }

    /// What each node had to do so far, in no order; nodes that only forwarded are omitted.
    pub fn node_loads(&self) -> impl Iterator<Item = (NodeId, NodeLoad)> {
        self.node_loads.iter().map(|(&node, &load)| (node, load))
    }

    /// A packet ended at the node where it is.
    pub(super) fn count_end(&mut self, progress: &Progress, reason: Reason) {
        self.ledger[reason] += 1;
        let node = self.paths.get(progress.path).node(progress.stop);
        self.node_loads.entry(node).or_default().ended += 1;
    }

    /// A packet came to a link of those that are inspected one by one.
    pub(super) fn count_link(&mut self, link: LinkId, bytes: u32, carried: bool) {
        let load = self.link_loads.entry(link).or_default();
        load.packets += 1;
        load.bytes += u64::from(bytes);
        load.dropped += u64::from(!carried);
    }
}
