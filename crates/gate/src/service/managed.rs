//! Flows that are inspected beyond their first packets: files and chat in them, the policy's decision on
//! files, the scanner's verdict on content, and the packets that wait for that.
//!
//! ```text
//!   packets ──► manager ──► file named ──► policy ──► allow, deny, scan ──► scanner
//!      │           └──► how much more is needed, what is held ──► kernel         │
//!      └─(held)──► wait ──► released, when nothing holds them any more ◄─ verdict┘
//! ```

mod announced;
mod files;
mod flow;
mod reading;
#[cfg(test)]
mod tests;
mod torrents;
mod waiting;

pub(super) use announced::Announcement;

use super::{
    core::ByFile,
    id::Id,
    records::{Ended, Log},
};
use crate::{
    audit::Kind,
    chat,
    config::{FileAction, GateConfig},
    event::{Expectation, Settings, TransferId},
    files::http::Http,
    manage::Manager,
    parser::{
        contents::{Contents, Kept, Now, What},
        link::Link,
    },
    policy::{Moment, Policy},
    scan::{
        self, Failed, Report, Scanner,
        clamd::{Failure, ScanResult},
    },
};
use announced::Announcements;
use classify::{
    flow::{Flow, Side},
    label::Label,
    packet::{Packet, Tcp},
};
use datapath::gate::{Held, Manage};
use files::UNREAD;
use flow::{Managed, Transfer, Waiting};
use reading::Reading;
use rustc_hash::{FxHashMap, FxHashSet};
use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
};
use torrents::Torrents;

/// Bytes of first packets that are kept for flows that nobody has named yet.
const MAX_FIRST: usize = 32 << 20;
/// Bytes of packets that wait, over all flows; what comes beyond goes on unread, or is refused with its
/// flow.
const MAX_WAITING: usize = 64 << 20;
/// Packets that wait longest of a flow, among which one that is sent again is looked for.
const MAX_AGAIN: usize = 256;
/// Flows that are managed at once.
const MAX_MANAGED: usize = 1 << 16;
/// What Managers call HTTP.
const HTTP: &str = "http";

/// What the worker is to do for managed flows.
#[derive(Debug)]
pub(super) enum WorkerCommand {
    /// The kernel copies and holds this of a flow: client's side, server's side.
    Manage(Flow, [Manage; 2]),
    /// A packet goes on.
    Release(Held),
    /// The flow is refused from here on.
    Refuse(Flow, ByFile),
    /// A rule about files was used.
    Used(usize),
}

/// What is known around.
pub(super) struct Around<'a> {
    pub(super) policy: &'a Policy,
    pub(super) moment: Moment,
    pub(super) now_ns: u64,
    pub(super) log: &'a Log,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) files: u64,
    pub(super) messages: u64,
    pub(super) denied: u64,
    pub(super) scanned: u64,
    pub(super) found: u64,
    pub(super) unscanned: u64,
    /// Connections of torrents of which no names were known that rules ask for.
    pub(super) without_names: u64,
    pub(super) released: u64,
    pub(super) dropped: u64,
    /// Flows that were no longer read, as the parser had failed.
    pub(super) lost: u64,
}

/// A flow that is managed from here on.
pub(super) struct NewFlow<'a> {
    pub(super) flow: Flow,
    /// Which end is internal.
    pub(super) internal: Side,
    pub(super) label: Option<Label>,
    pub(super) began_ns: u64,
    /// What another flow announced of it.
    pub(super) expectation: Option<&'a Expectation>,
    /// The sequence numbers of both sides' SYNs, where they were seen.
    pub(super) syns: [Option<u32>; 2],
    /// The packet by which it was named; none where it was decided without one.
    pub(super) now: Option<&'a Packet<'a>>,
}

/// What was kept of a flow that nobody has named yet.
#[derive(Default)]
struct First {
    packets: Vec<Kept>,
    /// There was no room for some.
    missed: bool,
}

/// A flow that nobody manages, and of which packets that waited may still be in flight to us.
struct Settling {
    flow: Flow,
    /// Whether one came in this batch, and the batches before.
    seen: bool,
    batches: u8,
}

/// All managed flows.
pub(super) struct Managers {
    flows: FxHashMap<Id, Managed>,
    first: FxHashMap<Id, First>,
    first_bytes: usize,
    /// Flows of which packets wait, and the bytes of these.
    waiting: FxHashSet<Id>,
    waiting_bytes: usize,
    settling: FxHashMap<Id, Settling>,
    announced: Announcements,
    settings: Settings,
    reading: Reading,
    scanner: Option<Scanner>,
    scan_fails: Failed,
    jobs: FxHashMap<u64, (Id, TransferId)>,
    next_job: u64,
    /// Whether anybody wants to know of files, and of what people say.
    files: bool,
    chat: bool,
    pub(super) torrents: Torrents,
    pub(super) counts: Counts,
}

/// Whether packets must be held for the rules about files.
pub(super) fn holds(config: &GateConfig) -> bool {
    config.files.iter().any(|file| file.action != FileAction::Allow)
}

/// The scanner that a configuration names.
pub(super) fn scanner(
    config: &GateConfig,
    deliver: impl Fn(Report) + Send + Sync + 'static,
) -> Option<Scanner> {
    let scanner = config.scan.as_ref().map(|config| Scanner::new(config, deliver))?;
    if let Err(error) = scanner.ask() {
        tracing::warn!(%error, "clamd is not asked about its limits");
    }
    Some(scanner)
}

impl Managers {
    /// No flows yet; `folder` is where torrents are put together.
    pub(super) fn new(
        config: &GateConfig,
        scanner: Option<Scanner>,
        folder: PathBuf,
        parser: Link<Contents>,
    ) -> Self {
        let mut managers = Self {
            flows: FxHashMap::default(),
            first: FxHashMap::default(),
            first_bytes: 0,
            waiting: FxHashSet::default(),
            waiting_bytes: 0,
            settling: FxHashMap::default(),
            announced: Announcements::default(),
            settings: Settings::default(),
            reading: Reading::new(parser),
            scanner: None,
            scan_fails: Failed::Pass,
            jobs: FxHashMap::default(),
            next_job: 0,
            files: false,
            chat: false,
            torrents: Torrents::new(folder),
            counts: Counts::default(),
        };
        managers.configure(config);
        managers.scanner = scanner;
        managers
    }

    /// Another configuration is in force: what is held of managed flows follows it.
    pub(super) fn configured(&mut self) {
        for managed in self.flows.values() {
            self.reading.ask(managed.number, What::Hold(self.settings.hold));
        }
    }

    /// Takes another configuration, before [`Managers::configured`].
    pub(super) fn configure(&mut self, config: &GateConfig) {
        self.settings.hold = holds(config);
        let records =
            |kind| config.audit.as_ref().is_some_and(|audit| audit.record.contains(&kind));
        let hashes = config.audit.as_ref().is_some_and(|audit| audit.hash);
        self.settings.hash = hashes && records(Kind::Files);
        self.files = !config.files.is_empty() || records(Kind::Files);
        self.chat = records(Kind::Chat);
        self.torrents.set_limit(config.scan.as_ref().map_or(0, |scan| scan.torrents.0));
        self.scan_fails = config.scan.as_ref().map_or(Failed::Pass, |scan| scan.on_failure);
    }

    /// Another scanner, or none: the old one's missing verdicts will never come.
    pub(super) fn set_scanner(
        &mut self,
        scanner: Option<Scanner>,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        self.scanner = scanner;
        let verdict =
            ScanResult::Failed(Failure::Unavailable("another scanner is configured".into()));
        self.torrents_failed(&verdict, around, commands);
        let jobs: Vec<_> = self.jobs.values().copied().collect();
        for (id, transfer) in jobs {
            self.verdict(id, transfer, 0, verdict.clone(), around, commands);
        }
    }

    /// Flows that are managed.
    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Bytes that wait.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// The scanner's counters.
    pub(super) fn scanner(&self) -> Option<&Scanner> {
        self.scanner.as_ref()
    }

    /// Keeps a packet of a flow that nobody has named yet.
    pub(super) fn keep(&mut self, id: Id, packet: &Packet<'_>) {
        let talks = packet.tcp.is_some() || Manager::may_begin(packet.payload);
        let reads = (self.files || self.chat) && talks;
        if !reads {
            return;
        }
        let first = self.first.entry(id).or_default();
        if first.missed || self.first_bytes + packet.payload.len() > MAX_FIRST {
            first.missed = true;
            return;
        }
        self.first_bytes += packet.payload.len();
        first.packets.push(Kept::new(packet));
    }

    /// The first packets that were kept of a flow.
    fn take_first(&mut self, id: &Id) -> First {
        let first = self.first.remove(id).unwrap_or_default();
        self.first_bytes -= first.packets.iter().map(|kept| kept.payload.len()).sum::<usize>();
        first
    }

    /// The announcement of a flow that begins, if there was one.
    pub(super) fn announced(&mut self, flow: &Flow, now_ns: u64) -> Option<Announcement> {
        self.announced.take(flow, now_ns)
    }

    /// A flow was decided without a packet at hand: by an earlier process, late, or before there were rules
    /// about files. Its streams begin with what comes next. If that process was `interrupted`, what it had
    /// begun to look at has passed unread.
    pub(super) fn adopt(
        &mut self,
        new: NewFlow<'_>,
        interrupted: bool,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        let flow = new.flow;
        let id = Id::of(&flow);
        if let Some(managed) = self.flows.get_mut(&id) {
            // It was announced, and is read as that; as what it is by its content it is not.
            if managed.label != new.label && interrupted {
                managed.label = new.label;
                self.unread(&id, around, commands);
            }
            return;
        }
        self.begin(new, around, commands);
        if interrupted && self.flows.contains_key(&id) {
            self.unread(&id, around, commands);
        } else if interrupted && self.settings.hold {
            self.counts.unscanned += 1;
            if self.scan_fails == Failed::Refuse {
                commands.push(WorkerCommand::Refuse(
                    flow,
                    ByFile { rule: UNREAD.to_owned(), file: None },
                ));
            }
        }
    }

    /// A flow has a name by the packet `now`, which is not inspected yet, and passes: from here on it is
    /// managed, if there is something in it.
    pub(super) fn begin(
        &mut self,
        new: NewFlow<'_>,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        let NewFlow { flow, internal, label, began_ns, expectation, syns, now } = new;
        let id = Id::of(&flow);
        let first = self.take_first(&id);
        let application = match expectation {
            Some(expectation) => expectation.application.to_owned(),
            None => label.as_ref().map(|label| label.application.to_string()).unwrap_or_default(),
        };
        let talks = chat::Reader::new(&application).is_some();
        // Where chats announce files, they are read for that, too.
        let wanted = if talks { self.chat || self.files } else { self.files };
        let begins = |packet: &Packet<'_>| {
            packet.from == Side::Client && packet.tcp.is_some() && Http::begins(packet.payload)
        };
        let http =
            || now.is_some_and(begins) || first.packets.iter().any(|kept| begins(&kept.packet()));
        // Trackers and web seeds.
        let over_http = application == torrents::APPLICATION && http();
        let is_read = !over_http && Manager::reads(&application, flow.transport);
        let carrier = match expectation {
            Some(_) => None,
            None if is_read => None,
            None if http() => Some(HTTP),
            None => return,
        };
        if !wanted {
            return;
        }
        let number = self.reading.number(id);
        let begin = What::Begin {
            sockets: flow,
            application: carrier.unwrap_or(&application).to_owned(),
            promise: expectation.map(|expectation| expectation.number),
            syns,
            hold: self.settings.hold,
            hash: self.settings.hash,
        };
        self.reading.ask(number, begin);
        // Until the parser has answered: all is copied, and held if anything is.
        let hold = now.filter(|_| self.settings.hold).map(waiting::begins);
        let sent = [0, 1].map(|side| {
            let hold_from = hold.map(|hold| hold[side]);
            Manage { copy: true, hold_from, ..Manage::default() }
        });
        commands.push(WorkerCommand::Manage(flow, sent));
        let managed = Managed {
            flow,
            internal,
            label,
            began_ns,
            application,
            carrier,
            number,
            now: Now::default(),
            asks: false,
            sent,
            waiting: VecDeque::new(),
            transfers: BTreeMap::new(),
            seen_ns: around.now_ns,
            asked: false,
            unread: false,
            pauses: 0,
            moved_ns: around.now_ns,
        };
        let full = self.flows.len() >= MAX_MANAGED || !self.reading.is_ready();
        self.flows.insert(id, managed);
        if full || first.missed {
            self.unread(&id, around, commands);
        }
        if full {
            self.release_unread(&id, commands);
        }
        for kept in &first.packets {
            self.packet(id, &kept.packet(), None, None, around, commands);
        }
    }

    /// A packet of a managed flow, which waits where it is held; its receiver has acknowledged what is before
    /// `taken`.
    pub(super) fn packet(
        &mut self,
        id: Id,
        packet: &Packet<'_>,
        held: Option<Held>,
        taken: Option<u32>,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        let Some(managed) = self.flows.get_mut(&id) else {
            if let Some(settling) = self.settling.get_mut(&id) {
                settling.seen |= held.is_some();
            }
            commands.extend(held.map(WorkerCommand::Release));
            return;
        };
        managed.seen_ns = around.now_ns;
        managed.asked = false;
        let (mut number, mut over) = (None, None);
        let end = packet.tcp.map(|tcp| {
            let more = u32::from(tcp.has(Tcp::FIN)) + u32::from(tcp.has(Tcp::SYN));
            tcp.sequence.wrapping_add(packet.length).wrapping_add(more)
        });
        if let Some(held) = held {
            let again = |waiting: &Waiting| {
                end.is_some()
                    && (waiting.from, waiting.end) == (packet.from, end)
                    && waiting.held.bytes() >= held.bytes()
            };
            if managed.waiting.iter().take(MAX_AGAIN).any(again) {
                // Sent again because it waits; the first one goes on.
                self.counts.dropped += 1;
            } else if self.waiting_bytes + held.bytes() > MAX_WAITING {
                over = Some(held);
            } else {
                self.waiting_bytes += held.bytes();
                self.waiting.insert(id);
                let token = self.reading.token();
                number = Some(token);
                managed.waiting.push_back(Waiting { from: packet.from, end, number: token, held });
            }
        }
        let what = What::Packet { packet: *packet, held: number, taken };
        self.reading.packet(managed.number, &managed.application, what);
        if let Some(held) = over {
            // By what is in it the flow may be refused.
            self.exchange(around, commands);
            self.overloaded(id, held, around, commands);
        }
    }

    /// A flow is over, or refused: what waits of it never goes on.
    pub(super) fn forget(&mut self, id: &Id) {
        self.take_first(id);
        self.torrents.forget(id);
        self.settling.remove(id);
        let Some(mut managed) = self.flows.remove(id) else { return };
        for number in managed.transfers.values().filter_map(|file| file.number) {
            self.jobs.remove(&number);
        }
        for waiting in std::mem::take(&mut managed.waiting) {
            self.waiting_bytes -= waiting.held.bytes();
            self.counts.dropped += 1;
        }
        self.waiting.remove(id);
        // Whoever scans them is told that nothing more comes.
        for file in managed.transfers.values_mut() {
            file.job = None;
        }
        self.reading.finish(managed);
    }

    /// Forgets what is there no more.
    pub(super) fn retain(&mut self, lives: impl Fn(&Id) -> bool) {
        let ids = self.flows.keys().chain(self.first.keys());
        let gone: Vec<Id> = ids.filter(|id| !lives(id)).copied().collect();
        for id in gone {
            self.forget(&id);
        }
    }
}

/// Whether a configuration's scanner is another one.
pub(super) fn differs(old: Option<&scan::Config>, new: Option<&scan::Config>) -> bool {
    old != new
}
