//! What is to be seen of a running engine: what its links do now, what is down, and what changed last.

use std::collections::VecDeque;

use wire::IpNet;

use super::Engine;
use crate::{LinkId, Nanos, NodeId, settings::SettingsChange};

/// So many of the last changes are kept.
const KEPT: usize = 1024;

/// What is to change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// What a link does.
    Link {
        /// Which.
        link: LinkId,
        /// Whether the reverse direction changes as well.
        both_ways: bool,
        /// What changes.
        settings: SettingsChange,
    },
    /// Whether a node is there, with all its links and ports.
    Node {
        /// Which.
        node: NodeId,
        /// Whether it is there.
        up: bool,
    },
    /// Whether a node lets packets pass to a network. It says so if it does not.
    Prohibit {
        /// Which node.
        node: NodeId,
        /// Which network.
        prefix: IpNet,
        /// Whether it does not.
        prohibited: bool,
    },
}

/// An event in the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// When.
    pub at: Nanos,
    /// What.
    pub what: EventKind,
}

/// Kinds of events in the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EventKind {
    /// Somebody or a scene changed it.
    Changed(Change),
    /// Routing heard that a link can be used again, or no longer.
    Routed {
        /// Which.
        link: LinkId,
        /// Whether it can.
        usable: bool,
    },
}

/// The last events, in order.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    last: VecDeque<Event>,
    /// How many there were before those.
    before: u64,
}

impl EventLog {
    pub(super) fn add(&mut self, at: Nanos, what: EventKind) {
        if self.last.len() == KEPT {
            self.last.pop_front();
            self.before += 1;
        }
        self.last.push_back(Event { at, what });
    }
}

impl Engine {
    /// Whether a node is there.
    pub fn is_up(&self, node: NodeId) -> bool {
        !self.changes.is_down(node)
    }

    /// The nodes that are down, in order.
    pub fn nodes_down(&self) -> Vec<NodeId> {
        let mut nodes: Vec<_> = self.changes.nodes_down().collect();
        nodes.sort_unstable();
        nodes
    }

    /// The links that were changed, those that do more than delay and have met a packet, and wires; in
    /// order.
    pub fn touched(&self) -> Vec<LinkId> {
        let mut links: Vec<_> = self.effect_of.keys().chain(&self.wires).copied().collect();
        links.sort_unstable();
        links.dedup();
        links
    }

    /// What happened after the first `seen` things, and how many things there were by now. What is too
    /// long ago is omitted.
    pub fn events_since(&self, seen: u64) -> (Vec<Event>, u64) {
        let EventLog { last, before } = &self.events;
        let skip = usize::try_from(seen.saturating_sub(*before)).unwrap_or(usize::MAX);
        (last.iter().skip(skip).copied().collect(), before + last.len() as u64)
    }
}
