//! What is known of each flow, and what follows from it: packets, counters and policies come in, orders
//! for the kernel's table go out. No clock, no kernel.
//!
//! ```text
//!   packet ──► looking ──(named, or never to be)──► policy ──► decided ──► order
//!                 │                                               ▲
//!                 └─(too many)──► given up: the kernel passes it   └── counters, another policy
//! ```
//!
//! Flows that are looked at are bounded by themselves and leave in the order in which they came, so that
//! a flood of new flows never costs a decided one its place.

use super::{
    classes::{self, Change, Classes},
    id::Id,
    labels::Labels,
};
use crate::{
    audit::End,
    config::{Deny, Direction},
    flow::{Flow, Side, Transport},
    label::{Label, Outcome},
    packet::{Packet, Tcp},
    policy::{Decision, Moment, Policy, Question, UNKNOWN, Verdict},
};
use rustc_hash::FxHashMap;
use std::{
    collections::{BTreeMap, VecDeque},
    net::IpAddr,
    sync::Arc,
};

/// Most names of applications that are counted one by one.
const MAX_NAMES: usize = 1000;
/// How long an ended connection stays, for packets that still come.
const LINGER_NS: u64 = 5_000_000_000;

/// How long after its last copied packet a flow is called unknown that the kernel has decided itself.
const LATE_NS: u64 = 1_000_000_000;

/// Set in the number of a label when a file in the flow was refused.
const BY_FILE: u32 = 1 << 31;
/// The rule of such a flow after a start.
const EARLIER: &str = "a file, before the gate's last start";

/// What looks at packets until a flow has a name.
pub(super) trait Look {
    /// What it remembers of a flow.
    type State;
    /// Begins with a flow; `begins` are the sequence numbers of the client's and the server's SYN.
    fn begin(&mut self, flow: &Flow, begins: [Option<u32>; 2]) -> Self::State;
    /// Looks at a packet.
    fn packet(&mut self, flow: &Flow, state: &mut Self::State, packet: &Packet<'_>) -> Outcome;
    /// Says what it can of a flow of which no more packets come.
    fn give_up(&mut self, flow: &Flow, state: &mut Self::State) -> Outcome;
    /// Whether further packets are of use though the flow has a name, for what they tell of others.
    fn learns(&self, state: &Self::State) -> bool;
}

/// Bounds of what is remembered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Flows that are looked at.
    pub(super) undecided: usize,
    /// Silence after which a flow is forgotten.
    pub(super) idle_tcp_ns: u64,
    pub(super) idle_udp_ns: u64,
}

/// What the kernel is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// A flow is decided.
    Decide { flow: Flow, action: Action, class: u16, label: u32 },
    /// New flows between the same ends are refused for a while.
    Refuse { flow: Flow, deny: Deny },
    /// All that is refused that way is forgotten.
    ForgetRefusals,
    /// The packets of a decided flow are copied out, or no longer.
    Copy { flow: Flow, on: bool },
    /// A flow is forgotten.
    Forget { flow: Flow },
    /// A limit's class changes.
    Class(Change),
}

/// What becomes of a decided flow's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Pass,
    Refuse(Deny),
}

/// A flow as the kernel counts it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) flow: Flow,
    pub(super) inside: Side,
    /// Whether it has a verdict.
    pub(super) decided: bool,
    pub(super) label: u32,
    /// Of the client, of the server.
    pub(super) packets: [u64; 2],
    pub(super) bytes: [u64; 2],
    /// All TCP flags that were seen.
    pub(super) flags: [u8; 2],
    pub(super) age_ns: u64,
    pub(super) idle_ns: u64,
}

/// What becomes of a packet that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Go,
    Vanish,
}

/// What is known of a flow.
#[derive(Debug)]
pub(super) struct Entry<S> {
    pub(super) flow: Flow,
    /// Which end is inside.
    pub(super) inside: Side,
    pub(super) looked_at: u64,
    pub(super) packets: [u64; 2],
    pub(super) bytes: [u64; 2],
    /// All TCP flags that were seen.
    pub(super) flags: [u8; 2],
    /// Bits a second in the last interval.
    pub(super) rate: u64,
    /// Of the clock that the core is told.
    pub(super) began_ns: u64,
    pub(super) seen_ns: u64,
    /// The last round of counters that had it.
    round: u64,
    pub(super) phase: Phase<S>,
}

#[derive(Debug)]
pub(super) enum Phase<S> {
    Looking(Box<S>),
    Decided(Box<Decided<S>>),
}

/// A flow with a verdict.
#[derive(Debug)]
pub(super) struct Decided<S> {
    pub(super) label: Option<Label>,
    pub(super) decision: Decision,
    pub(super) class: Option<(classes::Name, u16)>,
    /// The rule about files by which it was refused; no policy takes that back.
    pub(super) by_file: Option<String>,
    /// While its packets are of use still.
    learning: Option<Box<S>>,
}

impl<S> Entry<S> {
    pub(super) fn host(&self) -> IpAddr {
        self.flow.socket(self.inside).ip()
    }

    fn direction(&self) -> Direction {
        match self.inside {
            Side::Client => Direction::FromInside,
            Side::Server => Direction::ToInside,
        }
    }

    pub(super) fn label(&self) -> Option<&Label> {
        match &self.phase {
            Phase::Looking(_) => None,
            Phase::Decided(decided) => decided.label.as_ref(),
        }
    }

    pub(super) fn application(&self) -> &str {
        self.label().map_or(UNKNOWN, |label| &label.application)
    }
}

/// What was counted since the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) seen: u64,
    pub(super) ended: u64,
    pub(super) given_up: u64,
    pub(super) full: u64,
    pub(super) looked_at: u64,
    pub(super) named: BTreeMap<String, u64>,
    pub(super) refused: BTreeMap<String, u64>,
    pub(super) rules: BTreeMap<String, u64>,
    pub(super) files: BTreeMap<String, u64>,
}

/// What became of a flow.
pub(super) enum News<S> {
    /// It is over.
    Ended(Box<Entry<S>>, End),
    /// It is refused.
    Refused {
        flow: Flow,
        began_ns: u64,
        inside: Side,
        label: Option<Label>,
        deny: Deny,
        rule: Option<String>,
    },
}

/// Adds one to a name's count; to `other` when there are too many names.
fn bump(counts: &mut BTreeMap<String, u64>, name: &str) {
    let name = if counts.contains_key(name) || counts.len() < MAX_NAMES { name } else { "other" };
    *counts.entry(name.to_owned()).or_default() += 1;
}

/// All flows.
pub(super) struct Core<L: Look> {
    look: L,
    policy: Arc<Policy>,
    moment: Moment,
    now_ns: u64,
    bounds: Bounds,
    flows: FxHashMap<Id, Entry<L::State>>,
    /// Those that are looked at, in the order in which they came, with when that was; also some that are
    /// no longer.
    looking: VecDeque<(Id, u64)>,
    undecided: usize,
    labels: Labels,
    classes: Classes,
    round: u64,
    counts: Counts,
    acts: Vec<Act>,
    /// What became of flows, for the audit; only where there is one.
    news: Option<Vec<News<L::State>>>,
}

impl<L: Look> Core<L> {
    pub(super) fn new(
        look: L,
        policy: Arc<Policy>,
        bounds: Bounds,
        labels: Labels,
        moment: Moment,
        audited: bool,
    ) -> Self {
        Self {
            look,
            policy,
            moment,
            now_ns: 0,
            bounds,
            flows: FxHashMap::default(),
            looking: VecDeque::new(),
            undecided: 0,
            labels,
            classes: Classes::default(),
            round: 0,
            counts: Counts::default(),
            acts: Vec::new(),
            news: audited.then(Vec::new),
        }
    }

    /// What became of flows since this was asked last.
    pub(super) fn news(&mut self) -> Vec<News<L::State>> {
        self.news.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// All flows end, as the gate does.
    pub(super) fn end_all(&mut self) {
        let ids: Vec<Id> = self.flows.keys().copied().collect();
        for id in ids {
            self.remove(&id, End::Shutdown);
        }
    }

    /// What the kernel must be told since this was asked last.
    pub(super) fn acts(&mut self) -> Vec<Act> {
        std::mem::take(&mut self.acts)
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
        self.fate(id) == Fate::Vanish
    }

    pub(super) fn flows(&self) -> impl Iterator<Item = &Entry<L::State>> {
        self.flows.values()
    }

    pub(super) fn flow(&self, id: &Id) -> Option<&Entry<L::State>> {
        self.flows.get(id)
    }

    /// Flows that are looked at, and all others.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.undecided, self.flows.len() - self.undecided)
    }

    /// Time goes on.
    pub(super) fn set_now(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// A verdict did not fit into the table.
    pub(super) fn was_full(&mut self) {
        self.counts.full += 1;
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

    /// Other engines look at packets from here on; flows that are looked at begin anew.
    pub(super) fn set_look(&mut self, look: L) {
        self.look = look;
        for entry in self.flows.values_mut() {
            match &mut entry.phase {
                Phase::Looking(state) => **state = self.look.begin(&entry.flow, [None; 2]),
                Phase::Decided(decided) => decided.learning = None,
            }
        }
    }

    fn judge_again(&mut self) {
        self.acts.push(Act::ForgetRefusals);
        let ids: Vec<Id> = self.flows.keys().copied().collect();
        for id in ids {
            let Some(entry) = self.flows.get_mut(&id) else { continue };
            match &mut entry.phase {
                Phase::Looking(_) => self.judge_early(id),
                Phase::Decided(decided) if decided.by_file.is_some() => {}
                Phase::Decided(decided) => {
                    let label = decided.label.take();
                    self.judge(id, label, false);
                }
            }
        }
    }

    /// A packet that was copied out; says what becomes of it where it waits.
    pub(super) fn packet(
        &mut self,
        flow: &Flow,
        inside: Side,
        begins: [Option<u32>; 2],
        packet: &Packet<'_>,
    ) -> Fate {
        self.counts.looked_at += 1;
        let id = Id::of(flow);
        let now_ns = self.now_ns;
        if !self.flows.contains_key(&id) {
            self.counts.seen += 1;
            let state = Box::new(self.look.begin(flow, begins));
            self.insert(id, *flow, inside, Phase::Looking(state));
            self.judge_early(id);
        }
        let Some(entry) = self.flows.get_mut(&id) else { return Fate::Go };
        entry.looked_at += 1;
        entry.seen_ns = now_ns;
        match &mut entry.phase {
            Phase::Looking(state) => match self.look.packet(&entry.flow, state, packet) {
                Outcome::More => return Fate::Go,
                Outcome::Known(label) => self.judge(id, Some(label), false),
                Outcome::Unknown => self.judge(id, None, false),
            },
            Phase::Decided(decided) => {
                if let Some(state) = &mut decided.learning {
                    let _ = self.look.packet(&entry.flow, state, packet);
                    if !self.look.learns(state) {
                        decided.learning = None;
                        self.acts.push(Act::Copy { flow: entry.flow, on: false });
                    }
                }
            }
        }
        self.fate(&id)
    }

    fn fate(&self, id: &Id) -> Fate {
        match self.flows.get(id).map(|entry| &entry.phase) {
            Some(Phase::Decided(decided)) if refuses(&decided.decision) => Fate::Vanish,
            _ => Fate::Go,
        }
    }

    /// Forgets a flow whose sockets began a new connection.
    pub(super) fn restarted(&mut self, flow: &Flow) {
        self.remove(&Id::of(flow), End::Closed);
    }

    /// Whether a flow is looked at, or not known at all.
    pub(super) fn is_undecided(&self, id: &Id) -> bool {
        self.flows.get(id).is_none_or(|entry| matches!(entry.phase, Phase::Looking(_)))
    }

    /// A flow that another one has announced: it has its name before its first packet.
    pub(super) fn announced(&mut self, flow: &Flow, inside: Side, label: Label) {
        let id = Id::of(flow);
        if !self.flows.contains_key(&id) {
            self.counts.seen += 1;
            let state = Box::new(self.look.begin(flow, [None; 2]));
            self.insert(id, *flow, inside, Phase::Looking(state));
            self.judge(id, Some(label), false);
        }
    }

    /// A file in a flow is refused, and the flow with it.
    pub(super) fn refuse_for_file(&mut self, flow: &Flow, rule: String) {
        let id = Id::of(flow);
        let Some(Entry { phase: Phase::Decided(decided), .. }) = self.flows.get_mut(&id) else {
            return;
        };
        let label = decided.label.take();
        let counted = std::mem::take(&mut decided.decision.counted);
        let verdict = Verdict::Refuse(Deny::Reset);
        self.put(id, label, Decision { verdict, rule: None, counted }, true);
        if let Some(Entry { phase: Phase::Decided(decided), .. }) = self.flows.get_mut(&id) {
            decided.by_file = Some(rule);
        }
        // So that the next process knows it, too.
        if let Some(Act::Decide { label, .. }) = self.acts.last_mut() {
            *label |= BY_FILE;
        }
    }

    /// A rule about files was used.
    pub(super) fn used_file_rule(&mut self, number: usize) {
        if let Some(name) = self.policy.file_rule(number) {
            *self.counts.files.entry(name.to_owned()).or_default() += 1;
        }
    }

    fn insert(&mut self, id: Id, flow: Flow, inside: Side, phase: Phase<L::State>) {
        let now_ns = self.now_ns;
        if matches!(phase, Phase::Looking(_)) {
            while self.undecided >= self.bounds.undecided {
                let Some((old, began_ns)) = self.looking.pop_front() else { break };
                let still = |entry: &Entry<_>| {
                    entry.began_ns == began_ns && matches!(entry.phase, Phase::Looking(_))
                };
                if self.flows.get(&old).is_some_and(still) {
                    self.remove(&old, End::Forced);
                    self.counts.given_up += 1;
                }
            }
            self.undecided += 1;
            self.looking.push_back((id, now_ns));
            if self.looking.len() > 2 * self.bounds.undecided {
                let flows = &self.flows;
                self.looking.retain(|(id, began_ns)| {
                    flows.get(id).is_some_and(|entry| entry.began_ns == *began_ns)
                });
            }
        }
        let entry = Entry {
            flow,
            inside,
            looked_at: 0,
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
        let Some(entry) = self.flows.remove(id) else { return };
        match &entry.phase {
            Phase::Looking(_) => self.undecided -= 1,
            Phase::Decided(decided) => {
                self.counts.ended += 1;
                if let Some((name, _)) = &decided.class {
                    self.classes.give_back(name);
                }
            }
        }
        if let Some(news) = &mut self.news {
            news.push(News::Ended(Box::new(entry), end));
        }
    }

    /// Refuses a flow of which nothing need be known.
    fn judge_early(&mut self, id: Id) {
        let Some(entry) = self.flows.get(&id) else { return };
        let early = self.policy.decide_early(entry.host(), entry.direction(), self.moment);
        if let Some(decision) = early {
            self.put(id, None, decision, false);
        }
    }

    fn judge(&mut self, id: Id, label: Option<Label>, tell: bool) {
        let Some(entry) = self.flows.get(&id) else { return };
        let decision = self.policy.decide(&Question {
            label: label.as_ref(),
            host: entry.host(),
            direction: entry.direction(),
            now: self.moment,
        });
        self.put(id, label, decision, tell);
    }

    /// Puts a decision in force; `tell` the kernel also where nothing changes for the flow's packets.
    fn put(&mut self, id: Id, label: Option<Label>, decision: Decision, tell: bool) {
        let Some(entry) = self.flows.get_mut(&id) else { return };
        let host = entry.host();
        let application = label.as_ref().map_or(UNKNOWN, |label| &label.application);
        let before = match &entry.phase {
            Phase::Looking(_) => None,
            Phase::Decided(decided) => Some(&**decided),
        };
        let mut changes = Vec::new();
        let class = match decision.verdict {
            Verdict::Limit(number) => self.policy.limit(number).map(|limit| {
                let share = self.policy.share(limit, host, application);
                self.classes.take(limit, share, &mut changes)
            }),
            _ => None,
        };
        self.acts.extend(changes.into_iter().map(Act::Class));
        // Taken first and given back then: a class that stays the same is never without flows.
        if let Some((name, _)) = before.and_then(|before| before.class.as_ref()) {
            self.classes.give_back(name);
        }
        let action = match decision.verdict {
            Verdict::Refuse(deny) => Action::Refuse(deny),
            Verdict::Pass | Verdict::Limit(_) => Action::Pass,
        };
        let number = class.as_ref().map_or(0, |(_, number)| *number);
        let same = before.is_some_and(|before| {
            let class = before.class.as_ref().map_or(0, |(_, number)| *number);
            before.decision.verdict == decision.verdict && class == number
        });
        if before.is_none_or(|before| before.decision != decision) {
            for rule in decision.rule.iter().chain(&decision.counted) {
                if let Some(name) = self.policy.rule(*rule) {
                    *self.counts.rules.entry(name.to_owned()).or_default() += 1;
                }
            }
        }
        if before.is_none() {
            self.undecided -= 1;
            bump(&mut self.counts.named, application);
        }
        // What a file was refused for is no reason to refuse the next connection.
        let refuses_again = decision.rule.is_some();
        if tell || !same {
            let flow = entry.flow;
            let number_of_label = label.as_ref().map_or(0, |label| self.labels.number(label));
            self.acts.push(Act::Decide { flow, action, class: number, label: number_of_label });
            if let Action::Refuse(deny) = action {
                bump(&mut self.counts.refused, application);
                if refuses_again {
                    self.acts.push(Act::Refuse { flow, deny });
                }
                let rule = decision.rule.and_then(|rule| self.policy.rule(rule));
                if let (Some(news), true) = (&mut self.news, refuses_again) {
                    news.push(News::Refused {
                        flow,
                        began_ns: entry.began_ns,
                        inside: entry.inside,
                        label: label.clone(),
                        deny,
                        rule: rule.map(str::to_owned),
                    });
                }
            }
        }
        let before = Phase::Decided(Box::new(Decided {
            label,
            decision,
            class,
            by_file: None,
            learning: None,
        }));
        let before = std::mem::replace(&mut entry.phase, before);
        if action == Action::Pass
            && let (Phase::Looking(state), Phase::Decided(decided)) = (before, &mut entry.phase)
            && self.look.learns(&state)
        {
            decided.learning = Some(state);
            self.acts.push(Act::Copy { flow: entry.flow, on: true });
        }
    }

    /// Begins a round of counters: after it and all flows that the kernel has, [`Core::end_round`].
    pub(super) fn begin_round(&mut self) {
        self.round += 1;
    }

    /// A flow as the kernel counts it; `interval_ns` since the last round.
    pub(super) fn count(&mut self, counted: &Counted, interval_ns: u64) {
        let id = Id::of(&counted.flow);
        let idle_ns = match counted.flow.transport {
            Transport::Tcp if has_ended(counted.flags) => LINGER_NS,
            Transport::Tcp => self.bounds.idle_tcp_ns,
            Transport::Udp => self.bounds.idle_udp_ns,
        };
        if counted.idle_ns > idle_ns {
            if let Some(entry) = self.flows.get_mut(&id) {
                entry.packets = counted.packets;
                entry.bytes = counted.bytes;
                entry.flags = counted.flags;
            }
            let closed = counted.flow.transport == Transport::Tcp && has_ended(counted.flags);
            self.remove(&id, if closed { End::Closed } else { End::Timeout });
            self.acts.push(Act::Forget { flow: counted.flow });
            return;
        }
        if counted.decided && !self.flows.contains_key(&id) {
            self.adopt(id, counted);
        }
        let now_ns = self.now_ns;
        // The kernel copies no more of it, and what it had copied was looked at.
        let late = |entry: &Entry<_>| {
            matches!(entry.phase, Phase::Looking(_)) && entry.seen_ns + LATE_NS < now_ns
        };
        if counted.decided
            && self.flows.get(&id).is_some_and(late)
            && let Some(Entry { flow, phase: Phase::Looking(state), .. }) = self.flows.get_mut(&id)
        {
            let label = match self.look.give_up(flow, state) {
                Outcome::Known(label) => Some(label),
                Outcome::More | Outcome::Unknown => None,
            };
            self.judge(id, label, true);
        }
        let Some(entry) = self.flows.get_mut(&id) else { return };
        // The kernel knows best who began it.
        let turned = entry.flow != counted.flow;
        entry.flow = counted.flow;
        entry.inside = counted.inside;
        let total = |bytes: [u64; 2]| bytes[0].saturating_add(bytes[1]);
        let more = total(counted.bytes).saturating_sub(total(entry.bytes));
        let fresh = turned || total(entry.bytes) == 0;
        let interval_ns = if fresh { counted.age_ns.min(interval_ns) } else { interval_ns };
        let rate = u128::from(more) * 8 * 1_000_000_000 / u128::from(interval_ns.max(1));
        entry.rate = u64::try_from(rate).unwrap_or(u64::MAX);
        entry.packets = counted.packets;
        entry.bytes = counted.bytes;
        entry.flags = counted.flags;
        entry.seen_ns = now_ns.saturating_sub(counted.idle_ns);
        entry.round = self.round;
    }

    /// Takes over a flow that was decided before this process began, or by the kernel itself when this
    /// one was late.
    fn adopt(&mut self, id: Id, counted: &Counted) {
        let label = self.labels.label(counted.label & !BY_FILE);
        self.counts.seen += 1;
        let decided = Decided {
            label: label.clone(),
            decision: Decision::default(),
            class: None,
            by_file: None,
            learning: None,
        };
        self.insert(id, counted.flow, counted.inside, Phase::Decided(Box::new(decided)));
        if let Some(entry) = self.flows.get_mut(&id) {
            entry.began_ns = self.now_ns.saturating_sub(counted.age_ns);
        }
        if counted.label & BY_FILE != 0 {
            self.refuse_for_file(&counted.flow, EARLIER.to_owned());
            return;
        }
        // Whatever the kernel has now, it is told what the policy says.
        self.judge(id, label, true);
    }

    /// Forgets the flows that the kernel has no more.
    pub(super) fn end_round(&mut self) {
        let (round, now_ns) = (self.round, self.now_ns);
        let gone = |entry: &Entry<_>| match entry.phase {
            Phase::Decided(_) => entry.round + 1 < round,
            Phase::Looking(_) => {
                let idle_ns = match entry.flow.transport {
                    Transport::Tcp => self.bounds.idle_tcp_ns,
                    Transport::Udp => self.bounds.idle_udp_ns,
                };
                now_ns.saturating_sub(entry.seen_ns) > idle_ns
            }
        };
        let gone: Vec<Id> =
            self.flows.iter().filter(|(_, entry)| gone(entry)).map(|(id, _)| *id).collect();
        for id in gone {
            self.remove(&id, End::Timeout);
        }
        let mut changes = Vec::new();
        self.classes.sweep(&mut changes);
        self.acts.extend(changes.into_iter().map(Act::Class));
    }
}

fn refuses(decision: &Decision) -> bool {
    matches!(decision.verdict, Verdict::Refuse(_))
}

/// Whether a connection is over: reset, or ended from both sides.
fn has_ended(flags: [u8; 2]) -> bool {
    let [client, server] = flags;
    (client | server) & Tcp::RST != 0 || client & server & Tcp::FIN != 0
}
