//! One managed flow: its manager, its files, and the packets of it that wait.

use super::{Around, Ended, WorkerCommand};
use crate::{
    config::FileAction,
    event::{ANNOUNCED, FileNamed, Interest, TransferId},
    files::ANNOUNCERS,
    parser::contents::Now,
    policy::FileQuestion,
    scan::Job,
};
use classify::{
    flow::{Flow, Side},
    label::Label,
};
use datapath::gate::{Held, Manage, WINDOW};
use std::collections::{BTreeMap, VecDeque};

/// Bytes over which sequence numbers are compared: a quarter of their range.
const FAR: u32 = 1 << 30;

/// A file in a flow.
pub(super) struct Transfer {
    pub(super) named: Box<FileNamed>,
    pub(super) action: FileAction,
    pub(super) rule: Option<String>,
    pub(super) job: Option<Job>,
    /// The job's number, until its last verdict.
    pub(super) number: Option<u64>,
    /// What is logged when it ends.
    pub(super) ended: Option<Ended>,
}

/// A packet that waits: who sent it, the sequence number behind it (none of a datagram), and the number by
/// which the parser knows it.
pub(super) struct Waiting {
    pub(super) from: Side,
    pub(super) end: Option<u32>,
    pub(super) number: u64,
    pub(super) held: Held,
}

pub(super) struct Managed {
    pub(super) flow: Flow,
    pub(super) internal: Side,
    pub(super) label: Option<Label>,
    pub(super) began_ns: u64,
    pub(super) application: String,
    /// What carries it, where that is something else: HTTP under a name of the operator's.
    pub(super) carrier: Option<&'static str>,
    /// Its number for the parser.
    pub(super) number: u32,
    /// How it stands, as the parser said last.
    pub(super) now: Now,
    /// Whether the parser waits for an answer.
    pub(super) asks: bool,
    pub(super) sent: [Manage; 2],
    pub(super) waiting: VecDeque<Waiting>,
    pub(super) transfers: BTreeMap<TransferId, Transfer>,
    pub(super) seen_ns: u64,
    pub(super) asked: bool,
    /// Whether something in it passed that should have been read.
    pub(super) unread: bool,
    /// Verdicts on beginnings that were asked for.
    pub(super) pauses: u32,
    /// Since when it was read so far.
    pub(super) moved_ns: u64,
}

impl Managed {
    pub(super) fn subject(&self, around: &Around<'_>) -> crate::audit::Subject {
        around.log.subject(self.flow, self.internal, self.label.clone(), self.began_ns)
    }

    /// The policy's decision on a file.
    pub(super) fn judge(
        &self,
        named: &FileNamed,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) -> (FileAction, Option<String>) {
        let hash = named.hash.map(|hash| hash.to_string());
        let hash = hash.as_deref().map(|hash| hash.split_once(':').map_or(hash, |(_, hex)| hex));
        let decide = |application| {
            around.policy.decide_file(&FileQuestion {
                application,
                name: named.name.as_deref(),
                kind: Some(named.kind.name),
                media: Some(named.kind.media),
                hash,
                host: self.flow.socket(self.internal).ip(),
                now: around.moment,
            })
        };
        // The first rule of the list that fits it by one of its names.
        let decision = self.names().map(decide);
        let decision = decision.min_by_key(|decision| decision.rule.unwrap_or(usize::MAX));
        let Some(decision) = decision else { return (FileAction::Allow, None) };
        commands.extend(decision.rule.map(WorkerCommand::Used));
        let rule = decision.rule.and_then(|number| around.policy.file_rule(number));
        (decision.action, rule.map(str::to_owned))
    }

    /// All that it is called: by its name, by what carries it, and by what it turned out to be.
    fn names(&self) -> impl Iterator<Item = &str> {
        let label = self.label.as_ref().map(|label| &*label.application);
        let names = [Some(self.application.as_str()), self.carrier, label];
        names.into_iter().flatten()
    }

    /// Whether the rules may ask for a file in it, or in one that it announces.
    pub(super) fn may_match(&self, around: &Around<'_>) -> bool {
        let host = self.flow.socket(self.internal).ip();
        let announced: &[&str] =
            if ANNOUNCERS.contains(&self.application.as_str()) { &ANNOUNCED } else { &[] };
        let mut names = self.names().chain(announced.iter().copied());
        names.any(|application| around.policy.asks_of_files(application, host, around.moment))
    }

    /// Writes down what is open; it is over.
    pub(super) fn close(&mut self, around: &Around<'_>) {
        let open: Vec<TransferId> = self.transfers.keys().copied().collect();
        for transfer in open {
            self.log(transfer, around);
        }
    }

    /// Writes down a file that is over.
    pub(super) fn log(&mut self, transfer: TransferId, around: &Around<'_>) {
        let Some(file) = self.transfers.remove(&transfer) else { return };
        let refused = file.action == FileAction::Deny;
        let rule = file.rule.as_deref();
        around.log.file(self.subject(around), &file.named, file.ended, rule, refused);
    }

    /// Whether the kernel does already what is wanted of it.
    pub(super) fn was_sent(&self, wanted: &[Manage; 2]) -> bool {
        (0..2).all(|side| does(self.sent[side], wanted[side], self.now.sequence[side]))
    }

    /// From where on packets of each side are held, and what is copied of them.
    pub(super) fn wants(&self) -> ([Option<u32>; 2], [Manage; 2]) {
        let hold = self.now.hold_from;
        let [client, server] = self.now.interests;
        let manage = |interest, hold_from| match interest {
            Interest::Nothing => Manage { hold_from, ..Manage::default() },
            Interest::All => Manage { copy: true, hold_from, ..Manage::default() },
            Interest::SkipTo(to) => {
                Manage { copy: true, skip_to: Some(to), brief: false, hold_from }
            }
            Interest::Heads(skip_to) => Manage { copy: true, skip_to, brief: true, hold_from },
        };
        (hold, [manage(client, hold[0]), manage(server, hold[1])])
    }
}

/// Whether the kernel's last order fits what is wanted of a side that was read up to `next`: what was
/// to be skipped is behind, and not too far.
fn does(sent: Manage, wanted: Manage, next: Option<u32>) -> bool {
    let (from, far) = match (wanted.brief, wanted.skip_to) {
        (true, from) => (from, WINDOW / 2),
        (false, None) => (next, FAR),
        (false, Some(_)) => (None, 0),
    };
    let behind = sent.skip_to.zip(from).is_some_and(|(to, from)| from.wrapping_sub(to) < far);
    sent == wanted || (behind && sent == Manage { skip_to: sent.skip_to, ..wanted })
}

/// What people call a file.
pub(super) fn title(named: &FileNamed) -> &str {
    named.name.as_deref().or(named.location.as_deref()).unwrap_or("without a name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_gets_only_what_it_does_not_do_already() {
        let manage = |skip_to, brief| Manage { copy: true, skip_to, brief, hold_from: Some(7) };
        let all = manage(None, false);
        let skip = |to| manage(Some(to), false);
        let heads = |from| manage(from, true);
        let begin = u32::MAX - 5;
        let rows = [
            (all, all, true),
            (all, skip(9), false),
            // All is wanted, and what was skipped is behind.
            (skip(begin), all, true),
            (skip(begin.wrapping_sub(FAR)), all, false),
            (skip(begin + 1), all, false),
            (skip(begin), skip(begin + 1), false),
            // The next head is looked for a little farther on.
            (heads(Some(begin)), heads(Some(begin.wrapping_add(WINDOW / 2 - 1))), true),
            (heads(Some(begin)), heads(Some(begin.wrapping_add(WINDOW / 2))), false),
            (heads(Some(begin)), heads(Some(begin - 1)), false),
            (heads(Some(begin)), heads(None), false),
            (heads(Some(begin)), all, false),
            (Manage { hold_from: None, ..skip(begin) }, all, false),
        ];
        for (sent, wanted, expected) in rows {
            assert_eq!(does(sent, wanted, Some(begin)), expected, "{sent:?}, {wanted:?}");
        }
        assert!(!does(skip(begin), all, None));
    }
}
