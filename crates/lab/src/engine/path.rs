//! The path of a packet: computed once, kept for all packets that take it.
//!
//! A path lists the links from a node to where a destination lives. Beside each link stands
//! what lets a packet pass many links at once: the time that all links before it take, where the next
//! link is that does more than delay, and the smallest MTU up to there.

use super::Reason;
use crate::{LinkId, Nanos, NodeId, PortId};

/// A link of a path, with the node from which it leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    /// The link.
    pub link: LinkId,
    /// The node at its far end.
    pub to: NodeId,
    /// What the links before it take that only delay.
    pub before: Nanos,
    /// The largest packet that it carries.
    pub mtu: u32,
    /// The largest packet that it and all links carry up to and with the one at `stop`.
    pub run_mtu: u32,
    /// The index of the next link, this one or a later, that does more than delay; else the end.
    pub stop: u16,
    /// What it does to packets.
    pub action: Action,
}

/// What a link does to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// They come later, by as much as all others.
    Delay,
    /// The same, and somebody looks at them.
    Captured,
    /// More than that: its index among the links that do more.
    More(u32),
    /// They do not arrive.
    Drop(Reason),
}

/// What is at the end of the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The host of a port.
    Port(PortId),
    /// The last node itself.
    Node,
    /// A network behind the last node, in which no host has the address.
    NoHost,
    /// All hosts of a network behind the last node.
    Broadcast,
    /// The last node has no route.
    NoRoute,
    /// The last node does not let it pass.
    Prohibited,
    /// Packets do not live long enough to see it, as where they go in a circle.
    TooFar,
}

/// The path from a node.
#[derive(Debug)]
pub(crate) struct Path {
    /// The node where it begins.
    pub from: NodeId,
    /// The links in order.
    pub hops: Vec<Hop>,
    /// What comes after them.
    pub end: End,
    /// What all links take that only delay.
    pub whole: Nanos,
}

impl Path {
    /// Fills in what each hop says of those behind it, and the sums. `delay` is what a link takes
    /// that only delays.
    pub(crate) fn new(
        from: NodeId,
        mut hops: Vec<Hop>,
        end: End,
        delay: impl Fn(LinkId) -> Nanos,
    ) -> Self {
        let mut whole = Nanos::ZERO;
        for hop in &mut hops {
            hop.before = whole;
            if hop.action == Action::Delay {
                whole += delay(hop.link);
            }
        }
        let mut stop = hops.len() as u16;
        let mut run_mtu = u32::MAX;
        for (index, hop) in hops.iter_mut().enumerate().rev() {
            if hop.action != Action::Delay {
                (stop, run_mtu) = (index as u16, u32::MAX);
            }
            run_mtu = run_mtu.min(hop.mtu);
            (hop.stop, hop.run_mtu) = (stop, run_mtu);
        }
        Self { from, hops, end, whole }
    }

    /// The node at a index.
    pub(crate) fn node(&self, index: u16) -> NodeId {
        match usize::from(index).checked_sub(1).and_then(|last| self.hops.get(last)) {
            Some(hop) => hop.to,
            None => self.from,
        }
    }

    /// The link to the node at a index.
    pub(crate) fn came_by(&self, index: u16) -> Option<LinkId> {
        self.hops.get(usize::from(index).checked_sub(1)?).map(|hop| hop.link)
    }

    /// What the links before a index take that only delay.
    pub(crate) fn before(&self, index: u16) -> Nanos {
        self.hops.get(usize::from(index)).map_or(self.whole, |hop| hop.before)
    }

    /// How far a packet at `index` gets with nothing but delay: to the next link
    /// that does more, to where its TTL is used up, to a link that it is too large for, or to the end.
    pub(crate) fn stop(&self, index: u16, ttl: u8, length: u32) -> u16 {
        let Some(hop) = self.hops.get(usize::from(index)) else { return index };
        let stop = hop.stop.min(index.saturating_add(u16::from(ttl.saturating_sub(1))));
        if length <= hop.run_mtu {
            return stop;
        }
        let run = self.hops.get(usize::from(index)..usize::from(stop)).unwrap_or_default();
        run.iter().zip(index..).find(|(hop, _)| length > hop.mtu).map_or(stop, |(_, index)| index)
    }
}
