//! Rounds of counters: what the kernel has of each flow, what is silent, and what is gone.

use super::{
    Core, Look,
    flow::{Act, Counted, Decided, Entry, Phase},
    judge::BY_FILE,
};
use crate::{
    audit::End, flow::Transport, label::Outcome, packet::Tcp, policy::Decision, service::id::Id,
};

/// How long an ended connection stays, for packets that still come.
const LINGER_NS: u64 = 5_000_000_000;
/// How long after its last copied packet a flow is called unknown that the kernel has decided itself.
const LATE_NS: u64 = 1_000_000_000;
/// The rule of a flow that was refused for a file before a start.
const EARLIER: &str = "a file, before the gate's last start";

impl<L: Look> Core<L> {
    /// Begins a round of counters: after it and all flows that the kernel has, [`Core::end_round`].
    pub(in crate::service) fn begin_round(&mut self) {
        self.round += 1;
    }

    /// A flow as the kernel counts it; `interval_ns` since the last round.
    pub(in crate::service) fn count(&mut self, counted: &Counted, interval_ns: u64) {
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
    pub(in crate::service) fn end_round(&mut self) {
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

/// Whether a connection is over: reset, or ended from both sides.
fn has_ended(flags: [u8; 2]) -> bool {
    let [client, server] = flags;
    (client | server) & Tcp::RST != 0 || client & server & Tcp::FIN != 0
}
