//! A flow as the core remembers it, what is counted, and the commands that follow.

use super::hint::Hint;
use crate::{
    audit::End,
    config::{Deny, Direction},
    policy::Decision,
    service::classes::{self, Change},
};
use classify::{
    flow::{Flow, Side},
    label::{Label, UNKNOWN},
};
use datapath::gate::Manage;
use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

/// Most names of applications that are counted one by one.
const MAX_NAMES: usize = 1000;

/// What the kernel's table is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::service) enum KernelCommand {
    /// A flow is decided.
    Decide { flow: Flow, action: FlowAction, class: u16, label: u32 },
    /// New flows between the same ends are refused for a while.
    Refuse { flow: Flow, deny: Deny },
    /// All such refusals are forgotten.
    ForgetRefusals,
    /// So many packets with payload of an undecided flow are copied out, from its first on.
    Watch { flow: Flow, packets: u32 },
    /// What is copied out and held of a decided flow has changed: see [`Core::managed`](super::Core::managed).
    Manage { flow: Flow },
    /// A flow is forgotten.
    Forget { flow: Flow },
    /// A limit's class changes.
    Class(Change),
}

/// What the kernel does with a decided flow's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::service) enum FlowAction {
    Pass,
    Refuse(Deny),
}

/// A flow as the kernel counts it.
#[derive(Clone, Copy, Debug)]
pub(in crate::service) struct Counted {
    pub(in crate::service) flow: Flow,
    pub(in crate::service) internal: Side,
    /// Whether it has a verdict.
    pub(in crate::service) decided: bool,
    pub(in crate::service) label: u32,
    /// Whether packets of it are copied out or held.
    pub(in crate::service) managed: bool,
    /// First packets with payload that the kernel has copied out, and how many it copies.
    pub(in crate::service) copied: u32,
    pub(in crate::service) budget: u32,
    /// Of the client, of the server.
    pub(in crate::service) packets: [u64; 2],
    pub(in crate::service) bytes: [u64; 2],
    /// All TCP flags that were seen.
    pub(in crate::service) flags: [u8; 2],
    pub(in crate::service) age_ns: u64,
    pub(in crate::service) idle_ns: u64,
}

/// The verdict on a packet that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::service) enum PacketVerdict {
    Pass,
    Drop,
}

/// What is known of a flow.
#[derive(Debug)]
pub(in crate::service) struct Entry<S> {
    pub(in crate::service) flow: Flow,
    /// Which end is internal.
    pub(in crate::service) internal: Side,
    /// The host that was seen first, though the kernel may know better by now.
    pub(super) began_by: IpAddr,
    /// Whether the client has what the server sent it, so that its address is no invention.
    pub(super) proven: bool,
    pub(in crate::service) inspected: u64,
    /// When the last packet was inspected.
    pub(in crate::service) inspected_ns: u64,
    /// How many of its first packets with payload the kernel copies out.
    pub(super) budget: u32,
    pub(in crate::service) packets: [u64; 2],
    pub(in crate::service) bytes: [u64; 2],
    /// All TCP flags that were seen.
    pub(in crate::service) flags: [u8; 2],
    /// Bits a second in the last interval.
    pub(in crate::service) rate: u64,
    /// By the core's clock.
    pub(in crate::service) began_ns: u64,
    pub(in crate::service) seen_ns: u64,
    /// The last round of counters that had it.
    pub(super) round: u64,
    pub(in crate::service) phase: Phase<S>,
}

#[derive(Debug)]
pub(in crate::service) enum Phase<S> {
    Inspecting(Box<S>),
    Decided(Box<Decided<S>>),
}

/// What a flow is refused by for a file in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::service) struct ByFile {
    /// The rule about files.
    pub(in crate::service) rule: String,
    /// The file's name, as far as one is known.
    pub(in crate::service) file: Option<String>,
}

/// A flow with a verdict.
#[derive(Debug)]
pub(in crate::service) struct Decided<S> {
    pub(in crate::service) label: Option<Label>,
    pub(in crate::service) decision: Decision,
    pub(in crate::service) class: Option<(classes::Name, u16)>,
    /// The file for which it was refused; no policy takes that back.
    pub(in crate::service) by_file: Option<ByFile>,
    /// The kernel had no room for the verdict: it is sent again.
    pub(in crate::service) unsaid: bool,
    /// While its packets are of use still.
    pub(super) learning: Option<Box<S>>,
    /// What its manager wants of the packets of client and server.
    pub(super) managed: [Manage; 2],
    /// While its name is another flow's word alone.
    pub(super) hint: Option<Hint>,
}

impl<S> Decided<S> {
    /// A flow that passed; the policy was not asked.
    pub(super) fn passed(label: Option<Label>) -> Self {
        Self {
            label,
            decision: Decision::default(),
            class: None,
            by_file: None,
            unsaid: false,
            learning: None,
            managed: Default::default(),
            hint: None,
        }
    }

    /// The rule that decided it.
    pub(in crate::service) fn rule(&self) -> Option<&str> {
        self.by_file.as_ref().map(|by| by.rule.as_str()).or(self.decision.rule.as_deref())
    }
}

impl<S> Entry<S> {
    /// Takes over what the kernel has counted.
    pub(super) const fn count(&mut self, counted: &Counted, now_ns: u64) {
        self.seen_ns = now_ns.saturating_sub(counted.idle_ns);
        self.packets = counted.packets;
        self.bytes = counted.bytes;
        self.flags = counted.flags;
    }

    pub(in crate::service) fn host(&self) -> IpAddr {
        self.flow.socket(self.internal).ip()
    }

    pub(super) fn direction(&self) -> Direction {
        match self.internal {
            Side::Client => Direction::FromInternal,
            Side::Server => Direction::ToInternal,
        }
    }

    pub(in crate::service) fn label(&self) -> Option<&Label> {
        match &self.phase {
            Phase::Inspecting(_) => None,
            Phase::Decided(decided) => decided.label.as_ref(),
        }
    }

    pub(in crate::service) fn application(&self) -> &str {
        self.label().map_or(UNKNOWN, |label| &label.application)
    }
}

/// What was counted since the start.
#[derive(Clone, Debug, Default)]
pub(in crate::service) struct Counts {
    pub(in crate::service) seen: u64,
    /// Decided ones that ended.
    pub(in crate::service) ended: u64,
    /// Ones that ended before they were decided.
    pub(in crate::service) ended_undecided: u64,
    /// Ones in whose place others are inspected.
    pub(in crate::service) evicted: u64,
    pub(in crate::service) full: u64,
    /// Ones that `on_failure` decided, as nobody could look at them.
    pub(in crate::service) lost: u64,
    pub(in crate::service) inspected: u64,
    /// Packets that were not inspected, as their checksum is wrong.
    pub(in crate::service) bad_checksum: u64,
    pub(in crate::service) classified: BTreeMap<String, u64>,
    pub(in crate::service) refused: BTreeMap<String, u64>,
    pub(in crate::service) rules: BTreeMap<String, u64>,
    pub(in crate::service) files: BTreeMap<String, u64>,
}

/// A change of a flow that logs are about.
pub(in crate::service) enum News<S> {
    /// It is over.
    Ended(Box<Entry<S>>, End),
    /// It is refused.
    Refused {
        flow: Flow,
        began_ns: u64,
        internal: Side,
        label: Option<Label>,
        deny: Deny,
        rule: Option<Arc<str>>,
    },
}

/// Adds one to a name's count; to `other` when there are too many names.
pub(super) fn bump(counts: &mut BTreeMap<String, u64>, name: &str) {
    let name = if counts.contains_key(name) || counts.len() < MAX_NAMES { name } else { "other" };
    *counts.entry(name.to_owned()).or_default() += 1;
}
