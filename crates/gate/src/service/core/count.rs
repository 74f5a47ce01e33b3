//! Rounds of counters: what the kernel has of each flow, what is silent, and what is gone.

use super::{
    Core, Inspect,
    flow::{ByFile, Counted, Decided, Entry, KernelCommand, Phase},
    judge::BY_FILE,
};
use crate::{audit::End, service::id::Id};
use classify::{flow::Transport, label::Classification, packet::Tcp};

/// How long an ended connection stays, for packets that still come.
const LINGER_NS: u64 = 5_000_000_000;
/// How long after its last copied packet a flow is judged by what was seen, when no more are copied.
const LATE_NS: u64 = 1_000_000_000;
/// How long a refused connection is silent until it is forgotten; TCP does not wait longer until it sends
/// again (RFC 9293, section 3.8.1, and RFC 6298).
const REFUSED_NS: u64 = 300_000_000_000;
/// The rule of a flow that was refused for a file before a start.
const EARLIER: &str = "a file, before the gate's last start";

impl<L: Inspect> Core<L> {
    /// Begins a round of counters: after it and all flows that the kernel has, [`Core::end_round`].
    pub(in crate::service) fn begin_round(&mut self) {
        self.round += 1;
    }

    /// A flow as the kernel counts it; `interval_ns` since the last round.
    pub(in crate::service) fn count(&mut self, counted: &Counted, interval_ns: u64) {
        let id = Id::of(&counted.flow);
        if counted.idle_ns > self.idle_ns(&id, counted) {
            if let Some(entry) = self.flows.get_mut(&id) {
                entry.count(counted, self.now_ns);
            }
            let closed = counted.flow.transport == Transport::Tcp && has_ended(counted.flags);
            self.remove(&id, if closed { End::Closed } else { End::Timeout });
            self.commands.push(KernelCommand::Forget { flow: counted.flow });
            return;
        }
        if counted.decided {
            if !self.flows.contains_key(&id) {
                self.adopt(id, counted);
            }
        } else {
            self.catch_up(id, counted);
        }
        let now_ns = self.now_ns;
        let Some(entry) = self.flows.get_mut(&id) else { return };
        // The kernel knows best who began it.
        let turned = entry.flow != counted.flow;
        entry.flow = counted.flow;
        entry.internal = counted.internal;
        let total = |bytes: [u64; 2]| bytes[0].saturating_add(bytes[1]);
        let more = total(counted.bytes).saturating_sub(total(entry.bytes));
        let fresh = turned || total(entry.bytes) == 0;
        let interval_ns = if fresh { counted.age_ns.min(interval_ns) } else { interval_ns };
        let rate = u128::from(more) * 8 * 1_000_000_000 / u128::from(interval_ns.max(1));
        entry.rate = u64::try_from(rate).unwrap_or(u64::MAX);
        entry.count(counted, now_ns);
        entry.round = self.round;
    }

    /// The silence after which a flow is forgotten.
    fn idle_ns(&self, id: &Id, counted: &Counted) -> u64 {
        let host = counted.flow.socket(counted.internal).ip();
        match counted.flow.transport {
            Transport::Tcp if has_ended(counted.flags) => LINGER_NS,
            Transport::Tcp if self.refuses(id) => self.bounds.idle_tcp_ns.min(REFUSED_NS),
            Transport::Udp if self.refuses(id) => self.bounds.idle_udp_ns,
            Transport::Tcp => self.crowd.idle_ns(host, self.bounds.idle_tcp_ns),
            Transport::Udp => self.crowd.idle_ns(host, self.bounds.idle_udp_ns),
        }
    }

    /// The kernel has no verdict of a flow: it had no room for it, or copies no more packets and nobody
    /// could say what it is by those that came.
    fn catch_up(&mut self, id: Id, counted: &Counted) {
        let spent = counted.copied >= counted.budget;
        let now_ns = self.now_ns;
        match self.flows.get_mut(&id) {
            Some(Entry { phase: Phase::Decided(decided), .. }) => {
                let unsaid = std::mem::take(&mut decided.unsaid);
                let verdict = if unsaid { self.verdict(&id) } else { None };
                self.commands.extend(verdict);
            }
            Some(Entry { flow, inspected_ns, phase: Phase::Inspecting(state), .. })
                if spent && *inspected_ns + LATE_NS < now_ns =>
            {
                match self.inspect.give_up(flow, state) {
                    None => self.lose(id),
                    Some(Classification::Known(label)) => self.judge(id, Some(label), true),
                    Some(Classification::Pending | Classification::Unknown) => {
                        self.judge(id, None, true);
                    }
                }
                self.adopted.push((id, false));
            }
            Some(_) => {}
            // Others came in its place, or its packets were missed: it is inspected once more.
            None if spent && counted.budget <= self.bounds.packets => {
                let packets = counted.copied.saturating_add(self.bounds.packets);
                self.commands.push(KernelCommand::Watch { flow: counted.flow, packets });
            }
            None if spent && counted.idle_ns > LATE_NS => {
                let state = Box::new(self.inspect.begin(&counted.flow, [None; 2]));
                self.counts.seen += 1;
                self.insert(id, counted.flow, counted.internal, Phase::Inspecting(state));
                // Nobody has looked at it.
                self.lose(id);
            }
            None => {}
        }
    }

    /// Takes over a flow that was decided before this process began, or by the kernel itself when this
    /// one was late.
    fn adopt(&mut self, id: Id, counted: &Counted) {
        let label = self.labels.label(counted.label & !BY_FILE);
        self.counts.seen += 1;
        let decided = Decided::passed(label.clone());
        self.insert(id, counted.flow, counted.internal, Phase::Decided(Box::new(decided)));
        if let Some(entry) = self.flows.get_mut(&id) {
            entry.began_ns = self.now_ns.saturating_sub(counted.age_ns);
        }
        if counted.label & BY_FILE != 0 {
            let by = ByFile { rule: EARLIER.to_owned(), file: None };
            self.refuse_for_file(&counted.flow, by);
            return;
        }
        // Whatever the kernel has now, it gets the policy's verdict.
        self.judge(id, label, true);
        self.adopted.push((id, counted.managed));
    }

    /// Forgets the flows that the kernel has no more.
    pub(in crate::service) fn end_round(&mut self) {
        let (round, now_ns) = (self.round, self.now_ns);
        let gone = |entry: &Entry<_>| match entry.phase {
            Phase::Decided(_) => entry.round + 1 < round,
            Phase::Inspecting(_) => {
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
        self.commands.extend(changes.into_iter().map(KernelCommand::Class));
        self.crowd.round(self.counts.full, self.flows.values().map(Entry::host));
    }
}

/// Whether a connection is over: reset, or ended from both sides.
fn has_ended(flags: [u8; 2]) -> bool {
    let [client, server] = flags;
    (client | server) & Tcp::RST != 0 || client & server & Tcp::FIN != 0
}
