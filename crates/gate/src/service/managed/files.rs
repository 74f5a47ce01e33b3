//! Files that managers report, and the decisions of policy and scanner on them.

use super::{
    Around, Ended, Managers, WorkerCommand,
    flow::{Managed, Transfer, title},
    torrents::{Block, is_torrent},
};
use crate::{
    audit::{Cause, Finding},
    config::FileAction,
    event::{Event, FileNamed, FileVerdict, TransferId},
    parser::contents::What,
    scan::{
        Failed, Job, Report,
        clamd::{Failure, ScanResult},
    },
    service::{core::ByFile, id::Id},
};

/// What flows are refused by of which files passed unseen.
pub(super) const UNREAD: &str = "gate.scan";

impl Managers {
    /// The events of a manager, and their consequences.
    pub(super) fn events(
        &mut self,
        id: Id,
        events: Vec<Event>,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        for event in events {
            let Some(managed) = self.flows.get_mut(&id) else { return };
            match event {
                Event::FileNamed(mut named) => {
                    self.counts.files += 1;
                    let torrent = self.torrent_named(&id, &mut named, around, commands);
                    let Some(managed) = self.flows.get_mut(&id) else { return };
                    let (mut action, rule) =
                        torrent.unwrap_or_else(|| managed.judge(&named, around, commands));
                    if named.ambiguous && action == FileAction::Allow {
                        // Its type may be another one.
                        self.unread(&id, around, commands);
                        if !self.flows.contains_key(&id) {
                            return;
                        }
                    }
                    let transfer = named.transfer;
                    let mut job = None;
                    let mut unscanned = false;
                    // A torrent's files are scanned when they are whole.
                    let by_files = is_torrent(&named) && self.scanner.is_some();
                    if action == FileAction::Scan && !by_files {
                        match self.begin_scan(&named) {
                            Ok(begun) => {
                                self.jobs.insert(begun.number(), (id, transfer));
                                job = Some(begun);
                            }
                            Err(failure) => {
                                unscanned = true;
                                action = self.not_scanned(&id, &named, &rule, &failure, around);
                            }
                        }
                    }
                    let decision = match action {
                        FileAction::Allow => FileVerdict::Allow,
                        FileAction::Scan => FileVerdict::Scan,
                        FileAction::Deny => FileVerdict::Deny,
                    };
                    let Some(managed) = self.flows.get_mut(&id) else { return };
                    let name = title(&named).to_owned();
                    let number = job.as_ref().map(Job::number);
                    let one =
                        Transfer { named, action, rule: rule.clone(), job, number, ended: None };
                    managed.transfers.insert(transfer, one);
                    if action == FileAction::Deny {
                        self.counts.denied += 1;
                        let rule = rule.unwrap_or_default();
                        let subject = managed.subject(around);
                        let cause = if unscanned { Cause::Unscanned } else { Cause::File };
                        around.log.refused(subject, &rule, cause(name.clone()));
                        self.refuse(&id, &rule, Some(name), commands);
                        return;
                    }
                    self.reading.ask(managed.number, What::Answer(transfer, decision));
                }
                Event::Content { transfer, bytes } => {
                    let file = managed.transfers.get_mut(&transfer);
                    let failed = file
                        .and_then(|file| file.job.as_mut())
                        .and_then(|job| job.content(bytes).err());
                    if let Some(failure) = failed {
                        let verdict = ScanResult::Failed(failure);
                        self.verdict(id, transfer, 0, verdict, around, commands);
                    }
                }
                Event::Paused { transfer, bytes } => {
                    let file = managed.transfers.get_mut(&transfer);
                    if let Some(job) = file.and_then(|file| file.job.as_mut()) {
                        job.pause(bytes);
                    }
                }
                Event::FileEnded { transfer, bytes, complete, missed, sha256 } => {
                    if let Some(file) = managed.transfers.get_mut(&transfer) {
                        file.ended = Some(Ended { bytes, complete, missed, sha256 });
                        match file.job.take() {
                            Some(job) => job.end(),
                            None => managed.log(transfer, around),
                        }
                    }
                }
                Event::Chat(message) => {
                    self.counts.messages += 1;
                    around.log.chat(managed.subject(around), message);
                }
                Event::Torrent { torrent, .. } => {
                    self.torrent_learnt(id, &torrent, around, commands);
                }
                Event::Block { transfer, part, info_hash, index, begin, bytes } => {
                    let block = Block { transfer, part, info_hash, index, begin, bytes };
                    self.torrent_block(id, &block, around, commands);
                }
                Event::Unread => self.unread(&id, around, commands),
                Event::Expect(expectation) => {
                    let by = managed.flow;
                    if !self.announced.add(&by, expectation, around.now_ns) {
                        self.unread(&id, around, commands);
                    }
                }
            }
        }
        self.settle(&id, commands);
    }

    /// Begins to scan a file.
    fn begin_scan(&mut self, named: &FileNamed) -> Result<Job, Failure> {
        // clamd undoes what is a file format by itself.
        let undone = ["gzip", "x-gzip"];
        if let Some(coding) = &named.coding
            && !undone.iter().any(|known| coding.trim().eq_ignore_ascii_case(known))
        {
            return Err(Failure::Packed(coding.clone()));
        }
        // Others than we scan may reach the client before the verdict.
        if named.ambiguous && self.scan_fails == Failed::Refuse {
            return Err(Failure::Ambiguous);
        }
        let scanner = self.scanner.as_ref();
        let scanner =
            scanner.ok_or_else(|| Failure::Unavailable("there is no [gate.scan]".into()))?;
        let number = self.next_job;
        self.next_job += 1;
        scanner.begin(number).map_err(|error| Failure::Unavailable(error.to_string()))
    }

    /// A file is not scanned; what becomes of it.
    fn not_scanned(
        &mut self,
        id: &Id,
        named: &FileNamed,
        rule: &Option<String>,
        failure: &Failure,
        around: &Around<'_>,
    ) -> FileAction {
        self.counts.unscanned += 1;
        let passes = self.scan_fails == Failed::Pass;
        if let Some(managed) = self.flows.get(id) {
            let rule = rule.as_deref().unwrap_or_default();
            let finding = Finding::Failed(failure.to_string());
            let file = title(named);
            around.log.warn(format!("not scanned: {file} in {}: {failure}", managed.flow));
            around.log.scanned(managed.subject(around), named, 0, finding, rule, passes);
        }
        if passes { FileAction::Allow } else { FileAction::Deny }
    }

    /// Something passes in a flow that the rules about files should have been asked about.
    pub(in crate::service) fn unread(
        &mut self,
        id: &Id,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        let matters = |managed: &Managed| managed.may_match(around);
        if !self.settings.hold || !self.flows.get(id).is_some_and(matters) {
            return;
        }
        self.counts.unscanned += 1;
        // Once for a flow: who sends can make many of it.
        if let Some(managed) = self.flows.get_mut(id)
            && !std::mem::replace(&mut managed.unread, true)
        {
            let flow = managed.flow;
            around.log.warn(format!("not scanned: something passed unread in {flow}"));
        }
        if self.scan_fails == Failed::Refuse
            && let Some(managed) = self.flows.get(id)
        {
            let cause = Cause::Unscanned("not seen".into());
            around.log.refused(managed.subject(around), UNREAD, cause);
            self.refuse(id, UNREAD, None, commands);
        }
    }

    /// The scanner has answered.
    pub(in crate::service) fn report(
        &mut self,
        report: Report,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        if self.torrent_report(&report, around, commands) {
            return;
        }
        let Some((id, transfer)) = self.jobs.get(&report.job).copied() else { return };
        if let Some(mark) = report.pause {
            if let Some(managed) = self.flows.get_mut(&id) {
                self.reading.ask(managed.number, What::Cleared(transfer, mark));
            }
            return;
        }
        self.verdict(id, transfer, report.bytes, report.verdict, around, commands);
    }

    /// The last verdict on a file, on so many bytes.
    pub(super) fn verdict(
        &mut self,
        id: Id,
        transfer: TransferId,
        bytes: u64,
        verdict: ScanResult,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        let Some(managed) = self.flows.get_mut(&id) else { return };
        let subject = managed.subject(around);
        let Some(file) = managed.transfers.get_mut(&transfer) else { return };
        if let Some(number) = file.number.take() {
            self.jobs.remove(&number);
        }
        file.job = None;
        let missed = file.ended.is_some_and(|ended| ended.missed);
        // All that came of it was scanned and nothing waits. What goes on elsewhere is a part.
        let broken_off = file.ended.is_some_and(|ended| !ended.complete) && !missed;
        let verdict = match verdict {
            ScanResult::Clean if missed => ScanResult::Failed(Failure::Missed),
            ScanResult::Clean if file.named.is_part() => ScanResult::Failed(Failure::Part),
            ScanResult::Clean if file.named.ambiguous => ScanResult::Failed(Failure::Ambiguous),
            verdict => verdict,
        };
        let (passes, finding) = match verdict {
            ScanResult::Clean if broken_off => (true, Finding::Failed(Failure::Part.to_string())),
            ScanResult::Clean => (true, Finding::Clean),
            ScanResult::Found(what) => (false, Finding::Found(what)),
            ScanResult::Failed(failure) => {
                (self.scan_fails == Failed::Pass, Finding::Failed(failure.to_string()))
            }
        };
        let name = title(&file.named).to_owned();
        match &finding {
            Finding::Clean => self.counts.scanned += 1,
            Finding::Found(_) => self.counts.found += 1,
            Finding::Failed(why) => {
                self.counts.unscanned += 1;
                around.log.warn(format!("not scanned: {name} in {}: {why}", managed.flow));
            }
        }
        let rule = file.rule.clone().unwrap_or_default();
        around.log.scanned(subject.clone(), &file.named, bytes, finding.clone(), &rule, passes);
        if !passes {
            around.log.warn(format!("refused: {name} in {}: {finding}", managed.flow));
            file.action = FileAction::Deny;
            managed.log(transfer, around);
            // A find is reported by the scan's own record.
            if matches!(finding, Finding::Failed(_)) {
                around.log.refused(subject, &rule, Cause::Unscanned(name.clone()));
            }
            self.refuse(&id, &rule, Some(name), commands);
            return;
        }
        file.action = FileAction::Allow;
        let over = file.ended.is_some();
        self.reading.ask(managed.number, What::Allow(transfer));
        if over {
            managed.log(transfer, around);
        }
    }

    pub(super) fn refuse(
        &mut self,
        id: &Id,
        rule: &str,
        file: Option<String>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        let flow = self.flows.get(id).map(|managed| managed.flow);
        self.forget(id);
        let by = ByFile { rule: rule.to_owned(), file };
        commands.extend(flow.map(|flow| WorkerCommand::Refuse(flow, by)));
    }
}
