//! What managers tell of files, and what policy and the scanner say of them.

use super::{
    Around, EXPECTED_NS, Effect, MAX_EXPECTED, Managers,
    flow::{Transfer, title},
};
use crate::{
    audit::{Cause, Finding},
    config::FileAction,
    manage::{Decision, Event, TransferId},
    scan::{Failed, Report, clamd::Verdict},
    service::id::Id,
};
use std::collections::VecDeque;

impl Managers {
    /// What a manager told, and what follows from that.
    pub(super) fn events(
        &mut self,
        id: Id,
        events: Vec<Event>,
        around: &Around<'_>,
        effects: &mut Vec<Effect>,
    ) {
        let unscanned = self.unscanned();
        let mut queue = VecDeque::from(events);
        while let Some(event) = queue.pop_front() {
            let Some(managed) = self.flows.get_mut(&id) else { return };
            match event {
                Event::FileNamed(named) => {
                    self.counts.files += 1;
                    let (action, rule) = managed.judge(&named, around, effects);
                    let transfer = named.transfer;
                    let (mut action, mut job) = (action, None);
                    if action == FileAction::Scan {
                        match self.scanner.as_ref().map(|scanner| scanner.begin(self.next_job)) {
                            Some(Ok(begun)) => {
                                self.jobs.insert(self.next_job, (id, transfer));
                                self.next_job += 1;
                                job = Some(begun);
                            }
                            _ => {
                                self.counts.unscanned += 1;
                                action = unscanned;
                            }
                        }
                    }
                    let decision = match action {
                        FileAction::Allow => Decision::Allow,
                        FileAction::Scan => Decision::Scan,
                        FileAction::Deny => Decision::Deny,
                    };
                    let name = title(&named).to_owned();
                    let one = Transfer { named, action, rule: rule.clone(), job, ended: None };
                    managed.transfers.insert(transfer, one);
                    if action == FileAction::Deny {
                        self.counts.denied += 1;
                        let rule = rule.unwrap_or_else(|| "gate.scan".into());
                        let subject = managed.subject(around);
                        around.log.refused(subject, &rule, Cause::File(name));
                        self.refuse(&id, &rule, around, effects);
                        return;
                    }
                    let mut more = Vec::new();
                    managed.manager.answer(transfer, decision, &mut more);
                    for event in more.into_iter().rev() {
                        queue.push_front(event);
                    }
                }
                Event::Content { transfer, bytes } => {
                    let file = managed.transfers.get_mut(&transfer);
                    let failed = file
                        .and_then(|file| file.job.as_mut())
                        .and_then(|job| job.content(bytes).err());
                    if let Some(failure) = failed {
                        let verdict = Verdict::Failed(failure);
                        self.verdict(id, transfer, u64::MAX, &verdict, around, effects);
                    }
                }
                Event::Paused { transfer, .. } => {
                    let file = managed.transfers.get_mut(&transfer);
                    if let Some(job) = file.and_then(|file| file.job.as_mut()) {
                        job.pause();
                    }
                }
                Event::FileEnded { transfer, bytes, complete, sha256 } => {
                    if let Some(file) = managed.transfers.get_mut(&transfer) {
                        file.ended = Some((bytes, complete, sha256));
                        match file.job.take() {
                            Some(job) => job.end(),
                            None => managed.tell(transfer, around),
                        }
                    }
                }
                Event::Chat(message) => {
                    self.counts.messages += 1;
                    around.log.chat(managed.subject(around), message);
                }
                // Torrents are judged by their names and info-hashes; nobody puts them together.
                Event::Torrent { .. } => {}
                Event::Block { part, .. } => {
                    managed.manager.cleared(part, u64::MAX);
                }
                Event::Expect(expectation) => {
                    if self.expected.len() >= MAX_EXPECTED {
                        self.expected.pop_front();
                    }
                    let until_ns = around.now_ns.saturating_add(EXPECTED_NS);
                    self.expected.push_back((expectation, until_ns));
                }
            }
        }
        self.settle(&id, effects);
    }

    /// What becomes of a file that could not be scanned.
    const fn unscanned(&self) -> FileAction {
        match self.scan_fails {
            Failed::Pass => FileAction::Allow,
            Failed::Refuse => FileAction::Deny,
        }
    }

    /// The scanner has answered.
    pub(in crate::service) fn report(
        &mut self,
        report: &Report,
        around: &Around<'_>,
        effects: &mut Vec<Effect>,
    ) {
        if let Some((id, transfer)) = self.jobs.get(&report.job).copied() {
            self.verdict(id, transfer, report.bytes, &report.verdict, around, effects);
            let over = self.flows.get(&id).is_none_or(|managed| {
                managed.transfers.get(&transfer).is_none_or(|file| file.job.is_none())
            });
            if over {
                self.jobs.remove(&report.job);
            }
        }
    }

    pub(super) fn verdict(
        &mut self,
        id: Id,
        transfer: TransferId,
        bytes: u64,
        verdict: &Verdict,
        around: &Around<'_>,
        effects: &mut Vec<Effect>,
    ) {
        let (passes, finding) = match verdict {
            Verdict::Clean => (true, Finding::Clean),
            Verdict::Found(what) => (false, Finding::Found(what.clone())),
            Verdict::Failed(failure) => {
                (self.scan_fails == Failed::Pass, Finding::Failed(failure.to_string()))
            }
        };
        match &finding {
            Finding::Clean => self.counts.scanned += 1,
            Finding::Found(_) => self.counts.found += 1,
            Finding::Failed(_) => self.counts.unscanned += 1,
        }
        let Some(managed) = self.flows.get_mut(&id) else { return };
        let subject = managed.subject(around);
        let Some(file) = managed.transfers.get_mut(&transfer) else { return };
        let rule = file.rule.clone().unwrap_or_default();
        around.log.scanned(subject.clone(), &file.named, bytes, finding.clone(), &rule, passes);
        if !passes {
            let name = title(&file.named).to_owned();
            tracing::warn!(flow = %managed.flow, file = name, ?finding, "refused");
            file.action = FileAction::Deny;
            managed.tell(transfer, around);
            around.log.refused(subject, &rule, Cause::File(name));
            self.refuse(&id, &rule, around, effects);
            return;
        }
        if matches!(verdict, Verdict::Failed(_)) {
            tracing::warn!(flow = %managed.flow, file = title(&file.named), ?finding, "not scanned");
            file.job = None;
        }
        let over = file.ended.is_some();
        managed.manager.cleared(transfer, bytes);
        if over {
            managed.tell(transfer, around);
        }
        self.settle(&id, effects);
    }

    pub(super) fn refuse(
        &mut self,
        id: &Id,
        rule: &str,
        around: &Around<'_>,
        effects: &mut Vec<Effect>,
    ) {
        let flow = self.flows.get(id).map(|managed| managed.flow);
        self.forget(id, around);
        effects.extend(flow.map(|flow| Effect::Refuse(flow, rule.to_owned())));
    }
}
