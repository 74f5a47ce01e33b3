//! The policy's decision on a flow, and what follows from that.

use super::{
    Core, Inspect,
    flow::{ByFile, Decided, Entry, FlowAction, KernelCommand, News, Phase, bump},
};
use crate::{
    config::{Deny, OnFailure},
    policy::{Decision, Question, Verdict},
    service::id::Id,
};
use classify::{
    flow::Flow,
    label::{Label, UNKNOWN},
};

/// Flows that are judged at once.
const AT_ONCE: usize = 1024;

/// The rule of flows at which nobody could look.
const ON_FAILURE: &str = "gate.on_failure";

/// Set in the number of a label when a file in the flow was refused.
pub(super) const BY_FILE: u32 = 1 << 31;

impl<L: Inspect> Core<L> {
    /// Has all flows judged by what holds now, some with each look at the commands.
    pub(super) fn judge_again(&mut self) {
        self.commands.push(KernelCommand::ForgetRefusals);
        self.unjudged = self.flows.keys().copied().collect();
    }

    /// Judges some of the flows that are to be judged again.
    pub(super) fn judge_some(&mut self) {
        let rest = self.unjudged.len().saturating_sub(AT_ONCE);
        for id in self.unjudged.split_off(rest) {
            let Some(entry) = self.flows.get_mut(&id) else { continue };
            match &mut entry.phase {
                Phase::Inspecting(_) => self.judge_early(id),
                Phase::Decided(decided)
                    if decided.by_file.is_some()
                        || decided.hint.as_ref().is_some_and(|hint| !hint.at_once) => {}
                Phase::Decided(decided) => {
                    let label = decided.label.take();
                    self.judge(id, label, false);
                }
            }
        }
    }

    /// Nobody can look at a flow: `on_failure` decides it.
    pub(super) fn lose(&mut self, id: Id) {
        self.counts.lost += 1;
        let verdict = match self.bounds.on_failure {
            OnFailure::Pass => Verdict::Pass,
            OnFailure::Drop => Verdict::Refuse(Deny::Drop),
        };
        let decision = Decision { verdict, rule: Some(ON_FAILURE.into()), counted: Vec::new() };
        self.put(id, None, decision, true);
        // What is in it may have to be read, too.
        self.adopted.push((id, true));
    }

    /// If what looks at packets has forgotten all flows, those that are inspected are decided, and so are
    /// announced ones of which nobody has seen what they are.
    pub(in crate::service) fn lose_forgotten(&mut self) {
        if !self.inspect.was_lost() {
            return;
        }
        let mut lost = Vec::new();
        for (id, entry) in &mut self.flows {
            match &mut entry.phase {
                Phase::Inspecting(_) => lost.push(*id),
                Phase::Decided(decided) => {
                    if decided.learning.take().is_some() {
                        self.commands.push(KernelCommand::Manage { flow: entry.flow });
                    }
                    if decided.hint.take().is_some() {
                        lost.push(*id);
                    }
                }
            }
        }
        for id in lost {
            self.lose(id);
        }
    }

    /// A file in a flow is refused, and the flow with it.
    pub(in crate::service) fn refuse_for_file(&mut self, flow: &Flow, by: ByFile) {
        let id = Id::of(flow);
        let Some(Entry { phase: Phase::Decided(decided), .. }) = self.flows.get_mut(&id) else {
            return;
        };
        let label = decided.label.take();
        let counted = std::mem::take(&mut decided.decision.counted);
        let verdict = Verdict::Refuse(Deny::Reset);
        self.put(id, label, Decision { verdict, rule: None, counted }, true);
        if let Some(Entry { phase: Phase::Decided(decided), .. }) = self.flows.get_mut(&id) {
            decided.by_file = Some(by);
        }
        // So that the next process knows it, too.
        if let Some(KernelCommand::Decide { label, .. }) = self.commands.last_mut() {
            *label |= BY_FILE;
        }
    }

    /// The command to the kernel for a decided flow.
    pub(in crate::service) fn verdict(&mut self, id: &Id) -> Option<KernelCommand> {
        let Some(Entry { flow, phase: Phase::Decided(decided), .. }) = self.flows.get(id) else {
            return None;
        };
        let action = match decided.decision.verdict {
            Verdict::Refuse(deny) => FlowAction::Refuse(deny),
            Verdict::Pass | Verdict::Limit(_) => FlowAction::Pass,
        };
        let class = decided.class.as_ref().map_or(0, |(_, number)| *number);
        let label = decided.label.as_ref().map_or(0, |label| self.labels.number(label));
        let label = if decided.by_file.is_some() { label | BY_FILE } else { label };
        Some(KernelCommand::Decide { flow: *flow, action, class, label })
    }

    /// A rule about files was used.
    pub(in crate::service) fn used_file_rule(&mut self, number: usize) {
        if let Some(name) = self.policy.file_rule(number) {
            *self.counts.files.entry(name.to_owned()).or_default() += 1;
        }
    }

    /// Refuses a flow of which nothing need be known.
    pub(super) fn judge_early(&mut self, id: Id) {
        let Some(entry) = self.flows.get(&id) else { return };
        let early = self.policy.decide_early(entry.host(), entry.direction(), self.moment);
        if let Some(decision) = early {
            self.put(id, None, decision, false);
        }
    }

    pub(super) fn judge(&mut self, id: Id, label: Option<Label>, notify: bool) {
        let Some(entry) = self.flows.get(&id) else { return };
        let decision = self.policy.decide(&Question {
            label: label.as_ref(),
            host: entry.host(),
            direction: entry.direction(),
            now: self.moment,
        });
        self.put(id, label, decision, notify);
    }

    /// Applies a decision; with `notify` it is sent to the kernel even if nothing changes for packets.
    pub(super) fn put(&mut self, id: Id, label: Option<Label>, decision: Decision, notify: bool) {
        let Some(entry) = self.flows.get_mut(&id) else { return };
        let host = entry.host();
        let application = label.as_ref().map_or(UNKNOWN, |label| &label.application);
        let before = match &entry.phase {
            Phase::Inspecting(_) => None,
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
        self.commands.extend(changes.into_iter().map(KernelCommand::Class));
        // Taken first and given back then: a class that stays the same is never without flows.
        if let Some((name, _)) = before.and_then(|before| before.class.as_ref()) {
            self.classes.give_back(name);
        }
        let action = match decision.verdict {
            Verdict::Refuse(deny) => FlowAction::Refuse(deny),
            Verdict::Pass | Verdict::Limit(_) => FlowAction::Pass,
        };
        let number = class.as_ref().map_or(0, |(_, number)| *number);
        let same = before.is_some_and(|before| {
            let class = before.class.as_ref().map_or(0, |(_, number)| *number);
            before.decision.verdict == decision.verdict && class == number
        });
        if before.is_none_or(|before| before.decision != decision) {
            for rule in decision.rule.iter().chain(&decision.counted) {
                *self.counts.rules.entry(rule.to_string()).or_default() += 1;
            }
        }
        if before.is_none() {
            self.undecided.done(entry.began_by);
            bump(&mut self.counts.classified, application);
        }
        // What a file was refused for is no reason to refuse the next connection.
        let is_logged = decision.rule.is_some();
        // Nor is what anybody can send in another's name, as all of UDP.
        let refuses_again =
            is_logged && decision.rule.as_deref() != Some(ON_FAILURE) && entry.proven;
        if notify || !same {
            let flow = entry.flow;
            let number_of_label = label.as_ref().map_or(0, |label| self.labels.number(label));
            self.commands.push(KernelCommand::Decide {
                flow,
                action,
                class: number,
                label: number_of_label,
            });
            if let FlowAction::Refuse(deny) = action {
                bump(&mut self.counts.refused, application);
                if refuses_again {
                    self.commands.push(KernelCommand::Refuse { flow, deny });
                }
                if let (Some(news), true) = (&mut self.news, is_logged) {
                    news.push(News::Refused {
                        flow,
                        began_ns: entry.began_ns,
                        internal: entry.internal,
                        label: label.clone(),
                        deny,
                        rule: decision.rule.clone(),
                    });
                }
            }
        }
        let before = Phase::Decided(Box::new(Decided {
            label,
            decision,
            class,
            by_file: None,
            unsaid: false,
            learning: None,
            managed: Default::default(),
            hint: None,
        }));
        let before = std::mem::replace(&mut entry.phase, before);
        if let (FlowAction::Pass, Phase::Decided(decided)) = (action, &mut entry.phase) {
            match before {
                Phase::Inspecting(state) if self.inspect.learns(&state) => {
                    decided.learning = Some(state);
                }
                Phase::Inspecting(_) => {}
                // Another policy changes nothing of what is read.
                Phase::Decided(before) => {
                    (decided.learning, decided.managed) = (before.learning, before.managed);
                    decided.hint = before.hint;
                }
            }
        }
    }
}
