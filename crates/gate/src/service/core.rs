//! What is known of each flow, and what follows from it: packets, counters and policies come in, orders
//! for the kernel's table go out. No clock, no kernel.
//!
//! ```text
//!   packet ──► inspecting ──(named, or never to be)──► policy ──► decided ──► order
//!                 │                                                  ▲
//!                 └─(too many)──► evicted: the kernel passes it       └── counters, another policy
//! ```
//!
//! Flows that are inspected are bounded by themselves, and who began most of them makes room: a flood of new
//! flows costs neither a decided one its place nor those of other hosts.

mod count;
mod crowd;
mod flow;
mod hint;
mod judge;
#[cfg(test)]
mod tests;
mod undecided;

pub(super) use flow::{
    ByFile, Counted, Counts, Entry, FlowAction, KernelCommand, News, PacketVerdict, Phase,
};

use super::{classes::Classes, id::Id, labels::Labels};
use crate::{
    audit::End,
    config::{MAX_PACKETS, OnFailure},
    policy::{Decision, Moment, Policy, Verdict},
};
use classify::{
    flow::{Flow, Side},
    label::{Classification, Label, UNKNOWN},
    packet::{Packet, Tcp},
};
use crowd::Crowd;
use datapath::gate::Manage;
use flow::{Decided, bump};
use hint::{Finding, Hint};
use ipnet::IpNet;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use undecided::Undecided;

/// How far from a server's first number a client's first packets acknowledge: to guess that takes tens of
/// thousands of packets.
const NEAR: u32 = 1 << 16;

/// What looks at packets until a flow has a name.
pub(super) trait Inspect {
    /// What it remembers of a flow.
    type State;
    /// Begins with a flow; `begins` are the sequence numbers of the client's and the server's SYN.
    fn begin(&mut self, flow: &Flow, begins: [Option<u32>; 2]) -> Self::State;
    /// Looks at a packet; none when nobody can.
    fn packet(
        &mut self,
        flow: &Flow,
        state: &mut Self::State,
        packet: &Packet<'_>,
    ) -> Option<Classification>;
    /// How many packets with payload are worth copying of a flow that has no name yet.
    fn wants(&self, state: &Self::State) -> u32;
    /// Says what it can of a flow of which no more packets come; none when nobody can.
    fn give_up(&mut self, flow: &Flow, state: &mut Self::State) -> Option<Classification>;
    /// Whether further packets are of use though the flow has a name, for what they reveal of others.
    fn learns(&self, state: &Self::State) -> bool;
    /// Whether all that it remembered was lost since this was asked last.
    fn was_lost(&mut self) -> bool;
}

/// Bounds of what is remembered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Flows that are inspected.
    pub(super) undecided: usize,
    /// Packets with payload that the kernel copies of a flow by default.
    pub(super) packets: u32,
    /// Silence after which a flow is forgotten.
    pub(super) idle_tcp_ns: u64,
    pub(super) idle_udp_ns: u64,
    /// What becomes of flows at which nobody can look.
    pub(super) on_failure: OnFailure,
}

/// All flows.
pub(super) struct Core<L: Inspect> {
    inspect: L,
    policy: Arc<Policy>,
    moment: Moment,
    now_ns: u64,
    bounds: Bounds,
    flows: FxHashMap<Id, Entry<L::State>>,
    undecided: Undecided,
    labels: Labels,
    classes: Classes,
    round: u64,
    crowd: Crowd,
    counts: Counts,
    commands: Vec<KernelCommand>,
    /// Flows that nobody manages yet, see [`Core::adopted`].
    adopted: Vec<(Id, bool)>,
    /// Flows that another policy or time has not judged yet.
    unjudged: Vec<Id>,
    /// The outcome of flows, for the audit; only where there is one.
    news: Option<Vec<News<L::State>>>,
}

impl<L: Inspect> Core<L> {
    pub(super) fn new(
        inspect: L,
        policy: Arc<Policy>,
        bounds: Bounds,
        labels: Labels,
        moment: Moment,
        audited: bool,
    ) -> Self {
        Self {
            inspect,
            policy,
            moment,
            now_ns: 0,
            bounds,
            flows: FxHashMap::default(),
            undecided: Undecided::default(),
            labels,
            classes: Classes::default(),
            round: 0,
            crowd: Crowd::default(),
            counts: Counts::default(),
            commands: Vec::new(),
            adopted: Vec::new(),
            unjudged: Vec::new(),
            news: audited.then(Vec::new),
        }
    }

    /// The outcome of flows since this was asked last.
    pub(super) fn news(&mut self) -> Vec<News<L::State>> {
        self.news.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Flows that passed since this was asked last without that a packet was at hand, and whether an
    /// earlier process had more of each copied out or held.
    pub(super) fn adopted(&mut self) -> Vec<(Id, bool)> {
        std::mem::take(&mut self.adopted)
    }

    /// Commands for the kernel since the last call; more follow while [`Core::has_acts`].
    pub(super) fn commands(&mut self) -> Vec<KernelCommand> {
        self.judge_some();
        std::mem::take(&mut self.commands)
    }

    /// Whether there are more commands for the kernel, or may be.
    pub(super) fn has_acts(&self) -> bool {
        !self.commands.is_empty() || !self.unjudged.is_empty()
    }

    pub(super) const fn inspect(&self) -> &L {
        &self.inspect
    }

    pub(super) const fn inspect_mut(&mut self) -> &mut L {
        &mut self.inspect
    }

    /// What looks at packets, and what it remembers of a flow at whose packets it is to look.
    pub(super) fn inspecting(&mut self, id: &Id) -> (&mut L, Option<&mut L::State>, bool) {
        let entry = self.flows.get_mut(id);
        let is_new = entry.is_none();
        let state = entry.and_then(|entry| match &mut entry.phase {
            Phase::Inspecting(state) => Some(&mut **state),
            Phase::Decided(decided) => decided.learning.as_deref_mut(),
        });
        let looks = is_new || state.is_some();
        (&mut self.inspect, state, looks)
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(super) fn classes(&self) -> &Classes {
        &self.classes
    }

    pub(super) fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// The time of the week.
    pub(super) fn moment(&self) -> Moment {
        self.moment
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Whether a flow is refused.
    pub(super) fn refuses(&self, id: &Id) -> bool {
        self.packet_verdict(id) == PacketVerdict::Drop
    }

    pub(super) fn flows(&self) -> impl Iterator<Item = &Entry<L::State>> {
        self.flows.values()
    }

    /// Whether flows have ends in a prefix, and none of them is internal.
    pub(super) fn is_external(&self, hosts: &IpNet) -> bool {
        let ends = |internal: bool| {
            let of = move |entry: &Entry<_>| {
                let side = if internal { entry.internal } else { entry.internal.other() };
                hosts.contains(&entry.flow.socket(side).ip())
            };
            self.flows.values().any(of)
        };
        ends(false) && !ends(true)
    }

    /// All decided flows.
    pub(super) fn ids(&self) -> impl Iterator<Item = Id> {
        let decided =
            |(id, entry): (&Id, &Entry<_>)| matches!(entry.phase, Phase::Decided(_)).then_some(*id);
        self.flows.iter().filter_map(decided)
    }

    pub(super) fn flow(&self, id: &Id) -> Option<&Entry<L::State>> {
        self.flows.get(id)
    }

    /// Flows that are inspected, and all others.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.undecided.len(), self.flows.len() - self.undecided.len())
    }

    /// Time goes on.
    pub(super) fn set_now(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// A verdict did not fit into the table: it is sent again with the next round of counters.
    pub(super) fn was_full(&mut self, flow: &Flow) {
        self.counts.full += 1;
        if let Some(entry) = self.flows.get_mut(&Id::of(flow))
            && let Phase::Decided(decided) = &mut entry.phase
        {
            decided.unsaid = true;
        }
    }

    /// Time goes on. The named times that begin or end have every flow judged again.
    pub(super) fn tick(&mut self, now_ns: u64, moment: Moment) {
        self.now_ns = now_ns;
        let changed = self.policy.times_at(moment) != self.policy.times_at(self.moment);
        self.moment = moment;
        if changed {
            self.judge_again();
        }
    }

    /// Another policy is in force: every flow keeps its label and is judged again, refused attempts may
    /// try again.
    pub(super) fn set_policy(&mut self, policy: Arc<Policy>) {
        self.policy = policy;
        self.judge_again();
    }

    pub(super) fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }

    /// Others look at packets from here on; flows that are inspected begin again.
    pub(super) fn begin_again(&mut self) {
        for entry in self.flows.values_mut() {
            match &mut entry.phase {
                Phase::Inspecting(state) => **state = self.inspect.begin(&entry.flow, [None; 2]),
                Phase::Decided(decided) if decided.hint.is_some() => {
                    decided.learning = Some(Box::new(self.inspect.begin(&entry.flow, [None; 2])));
                }
                Phase::Decided(decided) => {
                    if decided.learning.take().is_some() {
                        self.commands.push(KernelCommand::Manage { flow: entry.flow });
                    }
                }
            }
        }
    }

    /// A packet that was copied out, and what its receiver has acknowledged; says what becomes of it where it
    /// waits.
    pub(super) fn packet(
        &mut self,
        flow: &Flow,
        internal: Side,
        begins: [Option<u32>; 2],
        taken: Option<u32>,
        packet: &Packet<'_>,
    ) -> PacketVerdict {
        self.counts.inspected += 1;
        let id = Id::of(flow);
        let now_ns = self.now_ns;
        self.meet(id, flow, internal, begins);
        let Some(entry) = self.flows.get_mut(&id) else { return PacketVerdict::Pass };
        entry.inspected += 1;
        entry.proven |= proves(packet, taken, begins);
        entry.inspected_ns = now_ns;
        entry.seen_ns = now_ns;
        match &mut entry.phase {
            Phase::Inspecting(state) => match self.inspect.packet(&entry.flow, state, packet) {
                None => self.lose(id),
                Some(Classification::Pending) => {
                    let wants = self.inspect.wants(state);
                    if wants > entry.budget {
                        entry.budget = wants;
                        self.commands
                            .push(KernelCommand::Watch { flow: entry.flow, packets: wants });
                    }
                    return PacketVerdict::Pass;
                }
                Some(Classification::Known(label)) => self.judge(id, Some(label), false),
                Some(Classification::Unknown) => self.judge(id, None, false),
            },
            Phase::Decided(_) => self.learn(id, packet),
        }
        self.packet_verdict(&id)
    }

    /// A packet of a decided flow, which may still be of use.
    fn learn(&mut self, id: Id, packet: &Packet<'_>) {
        let Some(Entry { flow, phase: Phase::Decided(decided), .. }) = self.flows.get_mut(&id)
        else {
            return;
        };
        let Some(state) = &mut decided.learning else { return };
        let outcome = self.inspect.packet(flow, state, packet);
        let mut learns = self.inspect.learns(state);
        let mut found = None;
        if let (Some(hint), Some(label)) = (&mut decided.hint, &decided.label) {
            match hint.look(label, packet, outcome) {
                Finding::Open => learns = true,
                Finding::Confirmed => found = Some((Some(label.clone()), false)),
                Finding::Other(label) => found = Some((label, true)),
            }
        }
        if !learns {
            decided.learning = None;
            self.commands.push(KernelCommand::Manage { flow: *flow });
        }
        let Some((label, is_other)) = found else { return };
        decided.hint = None;
        let name = label.as_ref().map_or(UNKNOWN, |label| &label.application);
        bump(&mut self.counts.classified, name);
        self.judge(id, label, is_other);
        if is_other {
            // What another reader should have had of it has passed.
            self.adopted.push((id, true));
        }
    }

    /// A packet whose receiver drops it, which was that number of the flow's first ones, is not inspected:
    /// others are in its place.
    pub(super) fn broken(&mut self, flow: &Flow, number: u32) {
        self.counts.bad_checksum += 1;
        if self.is_undecided(&Id::of(flow)) {
            let packets = number.saturating_add(1 + u32::from(MAX_PACKETS));
            self.commands.push(KernelCommand::Watch { flow: *flow, packets });
        }
    }

    /// A part of a segment, at which nobody looks: `on_failure` decides its flow, if nothing has. Whether it
    /// did; what is in the flow is not managed then.
    pub(super) fn fragment(
        &mut self,
        flow: &Flow,
        internal: Side,
        begins: [Option<u32>; 2],
    ) -> bool {
        let id = Id::of(flow);
        self.meet(id, flow, internal, begins);
        let undecided = self.is_undecided(&id);
        if undecided {
            self.lose(id);
            self.adopted.retain(|(adopted, _)| *adopted != id);
        }
        undecided
    }

    /// What is to be copied out and held of the packets of a flow's client and server: what its manager
    /// wants, and everything while there is something to be learnt from it.
    pub(super) fn managed(&self, flow: &Flow) -> [Manage; 2] {
        match self.flows.get(&Id::of(flow)).map(|entry| &entry.phase) {
            Some(Phase::Decided(decided)) if !refuses(&decided.decision) => {
                let learns = decided.learning.is_some();
                let whole =
                    |manage: Manage| Manage { copy: true, skip_to: None, brief: false, ..manage };
                decided.managed.map(|manage| if learns { whole(manage) } else { manage })
            }
            _ => Default::default(),
        }
    }

    /// What a flow's manager wants of it from here on. A verdict that is still to be sent to the kernel
    /// carries it, so that no packet passes between them.
    pub(super) fn manage(&mut self, flow: &Flow, manage: [Manage; 2]) {
        let Some(entry) = self.flows.get_mut(&Id::of(flow)) else { return };
        if let Phase::Decided(decided) = &mut entry.phase {
            decided.managed = manage;
            let concerns = |act: &KernelCommand| matches!(act, KernelCommand::Decide { flow: of, .. } | KernelCommand::Manage { flow: of } if of == flow);
            if !self.commands.iter().any(concerns) {
                self.commands.push(KernelCommand::Manage { flow: *flow });
            }
        }
    }

    fn packet_verdict(&self, id: &Id) -> PacketVerdict {
        match self.flows.get(id).map(|entry| &entry.phase) {
            Some(Phase::Decided(decided)) if refuses(&decided.decision) => PacketVerdict::Drop,
            _ => PacketVerdict::Pass,
        }
    }

    /// Forgets a flow whose sockets began a new connection; it was counted like this at its end.
    pub(super) fn restarted(&mut self, counted: &Counted) {
        let id = Id::of(&counted.flow);
        if let Some(entry) = self.flows.get_mut(&id) {
            entry.count(counted, self.now_ns);
        }
        self.remove(&id, End::Closed);
    }

    /// Whether a flow is inspected, or not known at all.
    pub(super) fn is_undecided(&self, id: &Id) -> bool {
        self.flows.get(id).is_none_or(|entry| matches!(entry.phase, Phase::Inspecting(_)))
    }

    /// A flow that another one has announced: it has its name before its first packet, and keeps it unless
    /// its content says otherwise. Rules act on that name `at_once`, or when the content has confirmed it.
    pub(super) fn announced(
        &mut self,
        flow: &Flow,
        internal: Side,
        begins: [Option<u32>; 2],
        label: Label,
        at_once: bool,
    ) {
        let id = Id::of(flow);
        if self.flows.contains_key(&id) {
            return;
        }
        self.counts.seen += 1;
        let learning = Some(Box::new(self.inspect.begin(flow, begins)));
        let hint = Some(Hint::new(at_once));
        let decided = Decided { learning, hint, ..Decided::passed(Some(label.clone())) };
        self.insert(id, *flow, internal, Phase::Decided(Box::new(decided)));
        if at_once {
            self.judge(id, Some(label), true);
        } else {
            let verdict = self.verdict(&id);
            self.commands.extend(verdict);
            self.judge_early(id);
        }
    }

    /// A packet of a flow has come, perhaps its first one.
    fn meet(&mut self, id: Id, flow: &Flow, internal: Side, begins: [Option<u32>; 2]) {
        if !self.flows.contains_key(&id) {
            self.counts.seen += 1;
            let state = Box::new(self.inspect.begin(flow, begins));
            self.insert(id, *flow, internal, Phase::Inspecting(state));
            self.judge_early(id);
        }
    }

    fn insert(&mut self, id: Id, flow: Flow, internal: Side, phase: Phase<L::State>) {
        let now_ns = self.now_ns;
        let began_by = flow.client.ip();
        if matches!(phase, Phase::Inspecting(_)) {
            while self.undecided.len() >= self.bounds.undecided {
                let Some((old, began_ns)) = self.undecided.oldest() else { break };
                if is_inspected(&self.flows, &old, began_ns) {
                    self.remove(&old, End::Forced);
                }
            }
            let flows = &self.flows;
            self.undecided.add(began_by, id, now_ns, |id, at| is_inspected(flows, id, at));
        }
        let entry = Entry {
            flow,
            internal,
            began_by,
            proven: false,
            inspected: 0,
            inspected_ns: now_ns,
            budget: self.bounds.packets,
            packets: [0; 2],
            bytes: [0; 2],
            flags: [0; 2],
            rate: 0,
            began_ns: now_ns,
            seen_ns: now_ns,
            round: self.round,
            phase,
        };
        self.flows.insert(id, entry);
    }

    fn remove(&mut self, id: &Id, end: End) {
        let Some(mut entry) = self.flows.remove(id) else { return };
        match &mut entry.phase {
            Phase::Inspecting(state) => {
                self.undecided.done(entry.began_by);
                if end == End::Forced {
                    self.counts.evicted += 1;
                } else {
                    self.counts.ended_undecided += 1;
                    if let Some(Classification::Known(label)) =
                        self.inspect.give_up(&entry.flow, state)
                    {
                        bump(&mut self.counts.classified, &label.application);
                        entry.phase = Phase::Decided(Box::new(Decided::passed(Some(label))));
                    }
                }
            }
            Phase::Decided(decided) => {
                self.counts.ended += 1;
                if decided.hint.is_some()
                    && let Some(label) = &decided.label
                {
                    bump(&mut self.counts.classified, &label.application);
                }
                if let Some((name, _)) = &decided.class {
                    self.classes.give_back(name);
                }
            }
        }
        if let Some(news) = &mut self.news {
            news.push(News::Ended(Box::new(entry), end));
        }
    }
}

/// Whether the flow that began then is inspected still.
fn is_inspected<S>(flows: &FxHashMap<Id, Entry<S>>, id: &Id, began_ns: u64) -> bool {
    flows.get(id).is_some_and(|entry| {
        entry.began_ns == began_ns && matches!(entry.phase, Phase::Inspecting(_))
    })
}

/// Whether the client has acknowledged something near the number that the server began with, which goes to the
/// client's address alone.
fn proves(packet: &Packet<'_>, taken: Option<u32>, [_, server]: [Option<u32>; 2]) -> bool {
    let acknowledged = match packet.from {
        Side::Client => packet.tcp.filter(|tcp| tcp.has(Tcp::ACK)).map(|tcp| tcp.acknowledgement),
        Side::Server => packet.tcp.and(taken),
    };
    acknowledged
        .zip(server)
        .is_some_and(|(number, began)| (1..=NEAR).contains(&number.wrapping_sub(began)))
}

fn refuses(decision: &Decision) -> bool {
    matches!(decision.verdict, Verdict::Refuse(_))
}
