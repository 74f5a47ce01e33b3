//! Torrents: judged by the names and hashes in their metadata, put together from their blocks, and their
//! files scanned when they are whole.
//!
//! A connection is scanned when a rule scans any file of its torrent. While a file's verdict is awaited
//! the last packet of each block of it waits, in all connections; with a find they are all refused.

#[cfg(test)]
mod tests;

use super::{Around, Managers, WorkerCommand};
use crate::{
    audit::{Cause, Finding, Subject},
    config::FileAction,
    event::{FileHash, FileNamed, FileVerdict, TransferId},
    file_type::{self, Kind},
    parser::contents::What,
    policy::FileQuestion,
    scan::{
        Failed, Report,
        clamd::{Failure, ScanResult},
    },
    service::id::Id,
    torrents::{Store, Torrent, Whole},
};
use classify::flow::Flow;
use config::hex;
use rustc_hash::FxHashMap;
use std::{io::Read, path::PathBuf, sync::Arc};

pub(super) const APPLICATION: &str = "bittorrent";
/// The rule by which a torrent is refused in which something was found earlier.
const EARLIER: &str = "the scanner found something in the same torrent";

type InfoHash = [u8; 20];

/// The torrents that pass.
pub(in crate::service) struct Torrents {
    store: Store,
    /// Connections by their torrent.
    flows: FxHashMap<InfoHash, Vec<(Id, TransferId)>>,
    /// The torrents of each of these.
    hashes: FxHashMap<Id, Vec<InfoHash>>,
    /// Files that the scanner has, by its jobs.
    scans: FxHashMap<u64, Scan>,
    /// Blocks that wait for the verdict on a file.
    parts: Vec<(InfoHash, usize, Id, TransferId)>,
}

/// A file of a torrent that the scanner has.
struct Scan {
    whole: Whole,
    rule: String,
    named: Box<FileNamed>,
    /// The connection that brought its last block.
    subject: Subject,
}

/// A block of a torrent.
pub(super) struct Block {
    pub(super) transfer: TransferId,
    pub(super) part: TransferId,
    pub(super) info_hash: InfoHash,
    pub(super) index: u32,
    pub(super) begin: u32,
    pub(super) bytes: Vec<u8>,
}

impl Torrents {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            store: Store::open(folder, 0),
            flows: FxHashMap::default(),
            hashes: FxHashMap::default(),
            scans: FxHashMap::default(),
            parts: Vec::new(),
        }
    }

    pub(super) fn set_limit(&mut self, bytes: u64) {
        self.store.set_limit(bytes);
    }

    /// A connection's torrent.
    fn of(named: &FileNamed) -> Option<InfoHash> {
        match named.hash {
            Some(FileHash::InfoV1(hash)) => Some(hash),
            _ => None,
        }
    }

    /// Those that are refused for a file in them, the latest first.
    pub(in crate::service) fn refused(&self) -> impl Iterator<Item = String> {
        self.store.refused().map(|hash| hex::encode(hash))
    }

    /// One of them may pass again; false if it is none.
    pub(in crate::service) fn unblock(&mut self, torrent: &str) -> bool {
        hex::array(torrent).is_some_and(|hash| self.store.unblock(&hash))
    }

    /// A flow is over.
    pub(super) fn forget(&mut self, id: &Id) {
        for hash in self.hashes.remove(id).unwrap_or_default() {
            self.parts.retain(|(.., of, _)| of != id);
            if let Some(flows) = self.flows.get_mut(&hash) {
                flows.retain(|(of, _)| of != id);
                if flows.is_empty() {
                    self.flows.remove(&hash);
                }
            }
        }
    }

    /// A verdict on a file: the blocks that waited for it and for nothing else.
    fn resolved(&mut self, whole: &Whole) -> Vec<(Id, TransferId)> {
        let key = (whole.hash, whole.file);
        let (of, others): (Vec<_>, Vec<_>) =
            self.parts.drain(..).partition(|(hash, file, ..)| (*hash, *file) == key);
        self.parts = others;
        let waits = |id, part| self.parts.iter().any(|(_, _, i, p)| (*i, *p) == (id, part));
        of.into_iter().map(|(.., id, part)| (id, part)).filter(|(i, p)| !waits(*i, *p)).collect()
    }
}

/// A file's own name.
fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The torrent that a transfer is of, if it is one of peers.
pub(super) fn is_torrent(named: &FileNamed) -> bool {
    Torrents::of(named).is_some()
}

impl Managers {
    /// The policy's decision on a torrent's file, or of the torrent by its name.
    fn judge_name(
        &self,
        id: &Id,
        (torrent, name, kind): (&Torrent, &str, Option<Kind>),
        around: &Around<'_>,
    ) -> (FileAction, Option<usize>) {
        let Some(managed) = self.flows.get(id) else { return (FileAction::Allow, None) };
        let hashes =
            [Some(hex::encode(&torrent.hash)), torrent.hash_v2.map(|hash| hex::encode(&hash))];
        let decisions = hashes.iter().flatten().map(|hash| {
            let decision = around.policy.decide_file(&FileQuestion {
                application: APPLICATION,
                name: Some(name),
                kind: kind.map(|kind| kind.name),
                media: kind.map(|kind| kind.media),
                hash: Some(hash),
                host: managed.flow.socket(managed.internal).ip(),
                now: around.moment,
            });
            (decision.action, decision.rule)
        });
        decisions.max_by_key(|(action, _)| severity(*action)).unwrap_or((FileAction::Allow, None))
    }

    /// The policy's decision on a torrent: the severest of what it says of its files.
    fn judge_torrent(
        &self,
        id: &Id,
        torrent: &Torrent,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) -> (FileAction, Option<String>) {
        let files = torrent.files.iter().map(|file| last_part(&file.path));
        let (action, rule) = std::iter::once(torrent.name.as_str())
            .chain(files)
            .map(|name| self.judge_name(id, (torrent, name, None), around))
            .max_by_key(|(action, _)| severity(*action))
            .unwrap_or((FileAction::Allow, None));
        commands.extend(rule.map(WorkerCommand::Used));
        (action, rule.and_then(|rule| around.policy.file_rule(rule)).map(str::to_owned))
    }

    /// A connection says which torrent it is about; none for other transfers, and where no more is known
    /// of the torrent than its hash.
    pub(super) fn torrent_named(
        &mut self,
        id: &Id,
        named: &mut FileNamed,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) -> Option<(FileAction, Option<String>)> {
        let hash = Torrents::of(named)?;
        self.torrents.flows.entry(hash).or_default().push((*id, named.transfer));
        self.torrents.hashes.entry(*id).or_default().push(hash);
        if self.torrents.store.is_refused(&hash) {
            return Some((FileAction::Deny, Some(EARLIER.to_owned())));
        }
        let Some(torrent) = self.torrents.store.torrent(&hash).map(Arc::clone) else {
            self.counts.without_names += u64::from(around.policy.asks_names(APPLICATION));
            return None;
        };
        named.name = Some(torrent.name.clone());
        named.size = Some(torrent.size());
        Some(self.judge_torrent(id, &torrent, around, commands))
    }

    /// A torrent's metadata passed in a flow.
    pub(super) fn torrent_learnt(
        &mut self,
        id: Id,
        torrent: &Arc<Torrent>,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        for torrent in Arc::clone(torrent).by_each_hash() {
            // The connections that were there before their metadata.
            let mut flows = self.torrents.flows.get(&torrent.hash).cloned().unwrap_or_default();
            self.torrents.store.learn(Arc::clone(&torrent));
            if !flows.iter().any(|(of, _)| *of == id) {
                flows.push((id, TransferId(u32::MAX)));
            }
            for (id, transfer) in flows {
                let (action, rule) = self.judge_torrent(&id, &torrent, around, commands);
                if action == FileAction::Deny {
                    self.counts.denied += 1;
                    let cause = Some(Cause::File(torrent.name.clone()));
                    let rule = rule.unwrap_or_default();
                    self.refuse_file(&id, &torrent.name, &rule, cause, around, commands);
                    continue;
                }
                let can_scan = self.scanner.is_some();
                let Some(managed) = self.flows.get_mut(&id) else { continue };
                let Some(file) = managed.transfers.get_mut(&transfer) else { continue };
                file.named.name = Some(torrent.name.clone());
                file.named.size = Some(torrent.size());
                if action == FileAction::Scan && can_scan {
                    (file.action, file.rule) = (action, rule);
                    let scan = What::Revise(transfer, FileVerdict::Scan);
                    self.reading.ask(managed.number, scan);
                }
            }
        }
    }

    /// A block of a torrent that is scanned.
    pub(super) fn torrent_block(
        &mut self,
        id: Id,
        block: &Block,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        let Block { transfer, part, info_hash, index, begin, ref bytes } = *block;
        let outcome = self.torrents.store.block(&info_hash, index, begin, bytes);
        let (outcome, why) = match outcome {
            Ok(outcome) => (outcome, "its metadata was not seen, or there is no space"),
            Err(error) => {
                around.log.warn(format!("a block of a torrent was not kept: {error}"));
                let dropped = crate::torrents::BlockOutcome { dropped: true, ..Default::default() };
                (dropped, "the disk fails")
            }
        };
        for file in &outcome.awaits {
            self.torrents.parts.push((info_hash, *file, id, part));
        }
        for whole in outcome.whole {
            self.torrent_whole(id, transfer, whole, around, commands);
        }
        if outcome.awaits.is_empty()
            && let Some(managed) = self.flows.get_mut(&id)
        {
            self.reading.ask(managed.number, What::Cleared(part, u64::MAX));
        }
        if outcome.dropped {
            self.torrent_unscanned(id, transfer, why, around, commands);
        }
    }

    /// A connection's content cannot be scanned: reported once, and nothing more of it is read if it passes.
    fn torrent_unscanned(
        &mut self,
        id: Id,
        transfer: TransferId,
        why: &'static str,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        let file = self.flows.get_mut(&id).and_then(|managed| managed.transfers.get_mut(&transfer));
        if file.is_some_and(|file| file.action == FileAction::Scan) {
            let verdict = ScanResult::Failed(Failure::Scattered(why));
            self.verdict(id, transfer, 0, verdict, around, commands);
        }
    }

    /// A file is whole: what it is by its content is known now.
    fn torrent_whole(
        &mut self,
        id: Id,
        transfer: TransferId,
        whole: Whole,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        let Some(managed) = self.flows.get(&id) else { return };
        let Some(torrent) = self.torrents.store.torrent(&whole.hash).map(Arc::clone) else {
            return;
        };
        let subject = managed.subject(around);
        let Some(file) = managed.transfers.get(&transfer) else { return };
        let name = last_part(&whole.path);
        let mut named = file.named.clone();
        named.name = Some(name.to_owned());
        named.size = Some(whole.size);
        let content = self.torrents.store.content(&whole);
        let sniffed = content.and_then(|mut content| {
            let mut first = Vec::new();
            content.by_ref().take(file_type::SNIFF as u64).read_to_end(&mut first)?;
            Ok(file_type::of(&first))
        });
        if let Ok(kind) = &sniffed {
            named.kind = *kind;
        }
        let (action, rule) = self.judge_name(&id, (&torrent, name, sniffed.ok()), around);
        commands.extend(rule.map(WorkerCommand::Used));
        let rule =
            rule.and_then(|rule| around.policy.file_rule(rule)).unwrap_or_default().to_owned();
        let scan = Scan { whole, rule, named, subject };
        match action {
            FileAction::Allow => self.torrent_passes(&scan.whole),
            FileAction::Deny => {
                self.counts.denied += 1;
                self.torrent_refused(&scan, false, around, commands);
            }
            FileAction::Scan => {
                let job = self.next_job;
                self.next_job += 1;
                let content = self.torrents.store.content(&scan.whole);
                let begun = content.and_then(|content| match &self.scanner {
                    Some(scanner) => scanner.whole(job, Box::new(content)),
                    None => Err(std::io::ErrorKind::NotConnected.into()),
                });
                match begun {
                    Ok(()) => {
                        self.torrents.scans.insert(job, scan);
                    }
                    Err(error) => {
                        let verdict = ScanResult::Failed(Failure::Unavailable(error.to_string()));
                        self.torrent_verdict(scan, 0, &verdict, around, commands);
                    }
                }
            }
        }
    }

    /// The scanner's report, if it is on a torrent's file.
    pub(super) fn torrent_report(
        &mut self,
        report: &Report,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) -> bool {
        let Some(scan) = self.torrents.scans.remove(&report.job) else { return false };
        self.torrent_verdict(scan, report.bytes, &report.verdict, around, commands);
        true
    }

    /// The scanner that had files is no more.
    pub(super) fn torrents_failed(
        &mut self,
        verdict: &ScanResult,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        for (_, scan) in std::mem::take(&mut self.torrents.scans) {
            self.torrent_verdict(scan, 0, verdict, around, commands);
        }
    }

    fn torrent_verdict(
        &mut self,
        scan: Scan,
        bytes: u64,
        verdict: &ScanResult,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        let (passes, finding) = match verdict {
            ScanResult::Clean => (true, Finding::Clean),
            ScanResult::Found(what) => (false, Finding::Found(what.clone())),
            ScanResult::Failed(failure) => {
                (self.scan_fails == Failed::Pass, Finding::Failed(failure.to_string()))
            }
        };
        match &finding {
            Finding::Clean => self.counts.scanned += 1,
            Finding::Found(_) => self.counts.found += 1,
            Finding::Failed(_) => self.counts.unscanned += 1,
        }
        if finding != Finding::Clean {
            let (file, flow) = (&scan.whole.path, scan.subject.flow);
            around.log.warn(format!("a torrent's file: {file} in {flow}: {finding}"));
        }
        let found = matches!(verdict, ScanResult::Found(_));
        let subject = scan.subject.clone();
        around.log.scanned(subject, &scan.named, bytes, finding, &scan.rule, passes);
        if passes {
            self.torrent_passes(&scan.whole);
        } else if found {
            self.torrent_refused(&scan, true, around, commands);
        } else {
            self.torrents.store.forget(&scan.whole.hash);
            self.refuse_torrent(&scan, (Cause::Unscanned, None), around, commands);
        }
    }

    /// A file may pass: what waited for it goes on.
    fn torrent_passes(&mut self, whole: &Whole) {
        self.torrents.store.verdict(whole, false);
        for (id, part) in self.torrents.resolved(whole) {
            if let Some(managed) = self.flows.get_mut(&id) {
                self.reading.ask(managed.number, What::Cleared(part, u64::MAX));
            }
        }
    }

    /// A torrent is refused from now on.
    fn torrent_refused(
        &mut self,
        scan: &Scan,
        found: bool,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        self.torrents.store.verdict(&scan.whole, true);
        // A find is reported by the scan's own record, of the connection that brought it.
        let reported = found.then_some(scan.subject.flow);
        self.refuse_torrent(scan, (Cause::File, reported), around, commands);
    }

    /// All connections of a torrent are refused, of which one was reported already.
    fn refuse_torrent(
        &mut self,
        scan: &Scan,
        (cause, reported): (fn(String) -> Cause, Option<Flow>),
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        let path = &scan.whole.path;
        let flows = self.torrents.flows.get(&scan.whole.hash).cloned().unwrap_or_default();
        for (id, _) in flows {
            let flow = self.flows.get(&id).map(|managed| managed.flow);
            let cause = (reported.is_none() || flow != reported).then(|| cause(path.clone()));
            self.refuse_file(&id, path, &scan.rule, cause, around, commands);
        }
    }

    /// Refuses a flow for a file; without a cause nothing is logged.
    fn refuse_file(
        &mut self,
        id: &Id,
        name: &str,
        rule: &str,
        cause: Option<Cause>,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        let Some(managed) = self.flows.get_mut(id) else { return };
        for file in managed.transfers.values_mut().filter(|file| is_torrent(&file.named)) {
            file.action = FileAction::Deny;
        }
        if let Some(cause) = cause {
            around.log.refused(managed.subject(around), rule, cause);
        }
        self.refuse(id, rule, Some(name.to_owned()), commands);
    }
}

/// Which of several actions wins.
const fn severity(action: FileAction) -> u8 {
    match action {
        FileAction::Allow => 0,
        FileAction::Scan => 1,
        FileAction::Deny => 2,
    }
}
