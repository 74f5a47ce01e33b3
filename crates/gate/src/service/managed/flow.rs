//! One managed flow: its manager, its files, and the packets of it that wait.

use super::{Around, Effect};
use crate::{
    config::FileAction,
    flow::{Flow, Side},
    label::Label,
    manage::{FileNamed, Interest, Manager, TransferId},
    packet::{Packet, Tcp},
    policy::FileQuestion,
    scan::Job,
};
use datapath::gate::{Held, Manage};
use std::collections::{BTreeMap, VecDeque};

/// A packet that is kept.
pub(super) struct Kept {
    pub(super) from: Side,
    pub(super) at_ns: u64,
    pub(super) tcp: Option<Tcp>,
    pub(super) payload: Vec<u8>,
    pub(super) length: u32,
}

impl Kept {
    pub(super) fn packet(&self) -> Packet<'_> {
        Packet {
            at_ns: self.at_ns,
            from: self.from,
            tcp: self.tcp,
            payload: &self.payload,
            length: self.length,
        }
    }
}

/// A file in a flow.
pub(super) struct Transfer {
    pub(super) named: Box<FileNamed>,
    pub(super) action: FileAction,
    pub(super) rule: Option<String>,
    pub(super) job: Option<Job>,
    /// The job's number, until its last verdict.
    pub(super) number: Option<u64>,
    /// What is told of it when it is over.
    pub(super) ended: Option<Ended>,
}

/// A file that is over.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::service) struct Ended {
    /// Bytes that passed.
    pub(in crate::service) bytes: u64,
    /// Whether it came to its end, and all of it was seen.
    pub(in crate::service) complete: bool,
    /// Whether some of it was not seen.
    pub(in crate::service) missed: bool,
    pub(in crate::service) sha256: Option<[u8; 32]>,
}

/// A packet that waits: who sent it, and the sequence number behind it.
pub(super) struct Waiting {
    pub(super) from: Side,
    pub(super) end: u32,
    pub(super) held: Held,
}

pub(super) struct Managed {
    pub(super) flow: Flow,
    pub(super) inside: Side,
    pub(super) label: Option<Label>,
    pub(super) began_ns: u64,
    pub(super) application: String,
    /// What carries it, where that is something else: HTTP under a name of the operator's.
    pub(super) carrier: Option<&'static str>,
    pub(super) manager: Box<Manager>,
    pub(super) told: [Manage; 2],
    pub(super) waiting: VecDeque<Waiting>,
    pub(super) transfers: BTreeMap<TransferId, Transfer>,
    pub(super) seen_ns: u64,
    pub(super) asked: bool,
    /// Verdicts on beginnings that were asked for.
    pub(super) pauses: u32,
    /// How far it was read, and since when.
    pub(super) read: [u64; 2],
    pub(super) moved_ns: u64,
}

impl Managed {
    pub(super) fn subject(&self, around: &Around<'_>) -> crate::audit::Subject {
        around.log.subject(self.flow, self.inside, self.label.clone(), self.began_ns)
    }

    /// What the policy says of a file.
    pub(super) fn judge(
        &self,
        named: &FileNamed,
        around: &Around<'_>,
        effects: &mut Vec<Effect>,
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
                host: self.flow.socket(self.inside).ip(),
                now: around.moment,
            })
        };
        let names = [Some(self.application.as_str()), self.carrier];
        // The first rule of the list that fits it by one of its names.
        let decision = names.into_iter().flatten().map(decide);
        let decision = decision.min_by_key(|decision| decision.rule.unwrap_or(usize::MAX));
        let Some(decision) = decision else { return (FileAction::Allow, None) };
        effects.extend(decision.rule.map(Effect::Used));
        let rule = decision.rule.and_then(|number| around.policy.file_rule(number));
        (decision.action, rule.map(str::to_owned))
    }

    /// Writes down a file that is over.
    pub(super) fn tell(&mut self, transfer: TransferId, around: &Around<'_>) {
        let Some(file) = self.transfers.remove(&transfer) else { return };
        let refused = file.action == FileAction::Deny;
        let rule = file.rule.as_deref();
        around.log.file(self.subject(around), &file.named, file.ended, rule, refused);
    }

    /// From where on packets of each side are held, and what is copied of them.
    pub(super) fn wants(&self) -> ([Option<u32>; 2], [Manage; 2]) {
        let manager = &self.manager;
        let hold = [manager.hold_from(Side::Client), manager.hold_from(Side::Server)];
        let [client, server] = manager.interests();
        let manage = |interest, hold_from| match interest {
            Interest::Nothing => Manage { copy: false, skip_to: None, hold_from },
            Interest::All => Manage { copy: true, skip_to: None, hold_from },
            Interest::SkipTo(to) => Manage { copy: true, skip_to: Some(to), hold_from },
        };
        (hold, [manage(client, hold[0]), manage(server, hold[1])])
    }
}

/// What people call a file.
pub(super) fn title(named: &FileNamed) -> &str {
    named.name.as_deref().or(named.location.as_deref()).unwrap_or("without a name")
}
