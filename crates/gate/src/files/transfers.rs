//! The files of one flow: named, decided on, given out, ended, and where their packets are held.

use crate::file_type::{self, SNIFF};
use crate::{
    event::{Event, FileNamed, FileVerdict, Settings, TransferId},
    stream::{Budget, Share},
    torrents::{self, Torrent},
};
use classify::flow::Side;
use ring::digest::{Context, SHA256};
use std::{fmt, mem, sync::Arc};

/// Content bytes that are enough to recognize most kinds; with fewer it waits.
const ENOUGH: usize = 8;

/// Content that waits for a decision; with more, what the decision was waited for has passed.
const UNDECIDED: usize = 1 << 18;

/// Files of a flow that are open or wait for a verdict; more than that are not inspected.
const OPEN: usize = 256;

/// Parts of a flow that wait for a verdict.
const PARTS: usize = 1024;

/// The files of a flow that have begun and are not done with.
#[derive(Debug)]
pub(crate) struct Transfers {
    open: Vec<Transfer>,
    /// Blocks that wait for a verdict: whose, and the offset of the last byte.
    parts: Vec<(TransferId, Side, u64)>,
    events: Vec<Event>,
    next: u32,
    hold: bool,
    hash: bool,
    /// Receivers may have read something else.
    unclear: bool,
    budget: Budget,
}

/// A SHA-256 in the making.
struct Hashing(Context);

impl fmt::Debug for Hashing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SHA-256")
    }
}

#[derive(Debug)]
enum State {
    /// Too few bytes came to recognize the kind.
    Unnamed {
        file: Box<FileNamed>,
        bytes: Vec<u8>,
    },
    /// Policy was asked; the content that came since.
    Undecided {
        bytes: Vec<u8>,
        share: Share,
    },
    Allowed,
    Scanned,
    Denied,
}

#[derive(Debug)]
struct Transfer {
    id: TransferId,
    from: Side,
    state: State,
    /// Offset in the stream of the first content byte.
    start: u64,
    /// Offset behind the last, when it is known.
    last: Option<u64>,
    /// Offset behind the last content byte that came.
    reach: u64,
    /// Content bytes, seen or not.
    count: u64,
    /// Whether some were neither seen nor skipped on purpose.
    lost: bool,
    hash: Option<Hashing>,
    /// Once over, whether it came to its end.
    ended: Option<bool>,
    /// The last verdict that was asked for: content bytes, and the offset up to which it lets pass.
    asked: Option<(u64, u64)>,
    cleared: u64,
    /// It comes in parts, which are held by themselves.
    in_parts: bool,
    /// A `.torrent` file, as far as it came.
    metainfo: Vec<u8>,
    metainfo_share: Share,
    budget: Budget,
}

impl Transfers {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            open: Vec::new(),
            parts: Vec::new(),
            events: Vec::new(),
            next: 0,
            hold: settings.hold,
            hash: settings.hash,
            unclear: false,
            budget: settings.budget.clone(),
        }
    }

    /// Whether heads are held until they were read.
    pub(crate) fn holding(&self) -> bool {
        self.hold
    }

    pub(crate) fn set_hold(&mut self, hold: bool) {
        self.hold = hold;
    }

    pub(crate) fn events_into(&mut self, events: &mut Vec<Event>) {
        events.append(&mut self.events);
    }

    pub(crate) fn emit(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Something passes that nobody is asked about.
    pub(crate) fn unread(&mut self) {
        if self.hold {
            self.events.push(Event::Unread);
        }
    }

    /// Receivers may read something else than what is known here: no file of the flow is known to be clean
    /// from now on, whichever side sends it.
    pub(crate) fn unclear(&mut self) {
        if !std::mem::replace(&mut self.unclear, true) {
            self.unread();
        }
        for transfer in &mut self.open {
            transfer.lost = true;
            transfer.hash = None;
        }
    }

    /// A file whose content begins at offset `at` and, where known, ends before `last`.
    pub(crate) fn begin(&mut self, file: FileNamed, at: u64, last: Option<u64>) -> TransferId {
        let id = TransferId(self.next);
        self.next = self.next.wrapping_add(1);
        if self.open.len() >= OPEN {
            self.unread();
            return id;
        }
        self.open.push(Transfer {
            id,
            from: file.from,
            start: at,
            last,
            reach: at,
            count: 0,
            lost: self.unclear,
            hash: self.hash.then(|| Hashing(Context::new(&SHA256))),
            ended: None,
            asked: None,
            cleared: at,
            in_parts: false,
            metainfo: Vec::new(),
            metainfo_share: Share::new(&self.budget),
            budget: self.budget.clone(),
            state: State::Unnamed {
                file: Box::new(FileNamed {
                    transfer: id,
                    ambiguous: file.ambiguous || self.unclear,
                    ..file
                }),
                bytes: Vec::new(),
            },
        });
        id
    }

    /// A transfer whose content comes in parts: policy is asked at once.
    pub(crate) fn announce(&mut self, file: FileNamed, at: u64) -> TransferId {
        let id = self.begin(file, at, None);
        let Self { open, events, .. } = self;
        if let Some(transfer) = open.iter_mut().find(|transfer| transfer.id == id) {
            transfer.in_parts = true;
            transfer.name(events);
        }
        id
    }

    /// What policy decided, if it has.
    pub(crate) fn decision(&self, id: TransferId) -> Option<FileVerdict> {
        match self.open.iter().find(|transfer| transfer.id == id)?.state {
            State::Unnamed { .. } | State::Undecided { .. } => None,
            State::Allowed => Some(FileVerdict::Allow),
            State::Scanned => Some(FileVerdict::Scan),
            State::Denied => Some(FileVerdict::Deny),
        }
    }

    /// A part that ends before offset `end`: the packet with its last byte is held until it is
    /// cleared. None when too many wait.
    pub(crate) fn part(&mut self, from: Side, end: u64) -> Option<TransferId> {
        if self.parts.len() >= PARTS {
            self.unread();
            return None;
        }
        let id = TransferId(self.next);
        self.next = self.next.wrapping_add(1);
        self.parts.push((id, from, end.saturating_sub(1)));
        Some(id)
    }

    /// A part that will not be whole.
    pub(crate) fn forget_part(&mut self, part: Option<TransferId>) {
        self.parts.retain(|(id, ..)| Some(*id) != part);
    }

    /// The next content bytes, from offset `at` on.
    pub(crate) fn content(&mut self, id: TransferId, at: u64, bytes: &[u8]) {
        let Self { open, events, .. } = self;
        let Some(transfer) = open.iter_mut().find(|transfer| transfer.id == id) else { return };
        transfer.count += bytes.len() as u64;
        transfer.reach = at + bytes.len() as u64;
        if let Some(hash) = &mut transfer.hash {
            hash.0.update(bytes);
        }
        transfer.gather_metainfo(bytes);
        match &mut transfer.state {
            State::Unnamed { bytes: waiting, .. } => {
                waiting.extend_from_slice(bytes);
                if waiting.len() >= ENOUGH {
                    transfer.name(events);
                }
            }
            State::Undecided { bytes: waiting, share } => {
                let fits = waiting.len() + bytes.len() <= UNDECIDED;
                if fits && share.grow(bytes.len()) {
                    waiting.extend_from_slice(bytes);
                } else {
                    transfer.lost = true;
                }
            }
            State::Scanned => events.push(Event::Content { transfer: id, bytes: bytes.to_vec() }),
            State::Allowed | State::Denied => {}
        }
    }

    /// Content that was packed; its last packed byte has offset `at`.
    pub(crate) fn inflated(&mut self, id: TransferId, at: u64, bytes: &[u8]) {
        self.content(id, at, bytes);
        if let Some(transfer) = self.open.iter_mut().find(|transfer| transfer.id == id) {
            transfer.reach = at + 1;
        }
    }

    /// Content bytes that were not seen, from offset `at` on.
    pub(crate) fn lost(&mut self, id: TransferId, at: u64, length: u64) {
        let Self { open, events, .. } = self;
        let Some(transfer) = open.iter_mut().find(|transfer| transfer.id == id) else { return };
        transfer.count += length;
        transfer.reach = at + length;
        transfer.lost |= !matches!(transfer.state, State::Allowed) || transfer.hash.is_some();
        transfer.hash = None;
        transfer.name(events);
    }

    /// The file is over: came to its end, or not.
    pub(crate) fn end(&mut self, id: TransferId, complete: bool) {
        let Self { open, events, .. } = self;
        let Some(transfer) = open.iter_mut().find(|transfer| transfer.id == id) else { return };
        transfer.name(events);
        transfer.tell_metainfo(events);
        transfer.last = Some(transfer.reach);
        transfer.ended = Some(complete);
        if !matches!(transfer.state, State::Undecided { .. }) {
            transfer.tell_end(events);
        }
        self.tidy();
    }

    pub(crate) fn answer(&mut self, id: TransferId, decision: FileVerdict) {
        let Self { open, events, .. } = self;
        let Some(transfer) = open.iter_mut().find(|transfer| transfer.id == id) else { return };
        let State::Undecided { bytes, .. } = &mut transfer.state else { return };
        let bytes = mem::take(bytes);
        transfer.state = decided(decision);
        if decision == FileVerdict::Allow && transfer.hash.is_none() {
            // Nobody needs what was missed.
            transfer.lost = false;
        }
        if decision == FileVerdict::Scan && !bytes.is_empty() {
            events.push(Event::Content { transfer: id, bytes });
        }
        if transfer.ended.is_some() {
            transfer.tell_end(events);
        }
        self.tidy();
    }

    /// Another decision on a transfer whose content comes in parts; those that wait still do.
    pub(crate) fn revise(&mut self, id: TransferId, decision: FileVerdict) {
        let transfer = self.open.iter_mut().find(|open| open.id == id && open.in_parts);
        if let Some(transfer) = transfer.filter(|open| open.ended.is_none()) {
            transfer.state = decided(decision);
        }
    }

    /// Nothing of it is held or inspected any more.
    pub(crate) fn allow(&mut self, id: TransferId) {
        let scanned = |open: &&mut Transfer| open.id == id && matches!(open.state, State::Scanned);
        if let Some(transfer) = self.open.iter_mut().find(scanned) {
            transfer.state = State::Allowed;
            self.tidy();
        }
    }

    pub(crate) fn cleared(&mut self, id: TransferId, bytes: u64) {
        self.forget_part(Some(id));
        let transfer = self.open.iter_mut().find(|transfer| transfer.id == id);
        if let Some(transfer) = transfer
            && let Some((_, to)) = transfer.asked.filter(|(asked, _)| *asked <= bytes)
        {
            transfer.cleared = transfer.cleared.max(to);
        }
    }

    /// Asks for verdicts on what is held of content without a known length; `read` are the offsets
    /// up to which both sides were read.
    pub(crate) fn pause(&mut self, read: [u64; 2]) {
        for transfer in &mut self.open {
            let read = read[usize::from(transfer.from == Side::Server)];
            let waits = matches!(transfer.state, State::Scanned)
                && transfer.last.is_none()
                && !transfer.in_parts
                && transfer.cleared < read;
            if waits && transfer.asked.is_none_or(|(asked, _)| asked < transfer.count) {
                transfer.asked = Some((transfer.count, read));
                self.events.push(Event::Paused { transfer: transfer.id, bytes: transfer.count });
            }
        }
    }

    /// Ends everything that is open.
    pub(crate) fn finish(&mut self) {
        let open: Vec<_> =
            self.open.iter().filter(|open| open.ended.is_none()).map(|open| open.id).collect();
        for id in open {
            self.end(id, false);
        }
    }

    /// Whether the content of any file has to be read.
    pub(crate) fn reads_all(&self) -> bool {
        self.hold || self.hash
    }

    /// Whether content of a side has to be read.
    pub(crate) fn needs(&self, side: Side) -> bool {
        self.open.iter().filter(|open| open.from == side && open.ended.is_none()).any(|open| {
            match open.state {
                State::Unnamed { .. } | State::Undecided { .. } | State::Scanned => true,
                State::Allowed => open.hash.is_some() || !open.metainfo.is_empty(),
                State::Denied => false,
            }
        })
    }

    /// The offset from which on packets of a side are held.
    pub(crate) fn hold(&self, side: Side) -> Option<u64> {
        let open = self.open.iter().filter(|open| open.from == side || open.in_parts);
        let parts = self.parts.iter().filter(|(_, from, _)| *from == side);
        open.filter_map(|open| open.hold(self.hold)).chain(parts.map(|(.., last)| *last)).min()
    }

    /// Whether a part waits whose last byte is between two offsets.
    pub(crate) fn waits(&self, side: Side, start: u64, end: u64) -> bool {
        self.parts.iter().any(|(_, from, last)| *from == side && (start..end).contains(last))
    }

    /// Whether parts of any transfer are scanned.
    pub(crate) fn scans_parts(&self) -> bool {
        !self.parts.is_empty()
            || self.open.iter().any(|open| open.in_parts && matches!(open.state, State::Scanned))
    }

    /// Forgets what is over and waits for nothing.
    fn tidy(&mut self) {
        self.open.retain(|open| open.ended.is_none() || !matches!(open.state, State::Allowed));
    }
}

const fn decided(decision: FileVerdict) -> State {
    match decision {
        FileVerdict::Allow => State::Allowed,
        FileVerdict::Scan => State::Scanned,
        FileVerdict::Deny => State::Denied,
    }
}

impl Transfer {
    /// Asks policy, once the kind is known or will not be.
    fn name(&mut self, events: &mut Vec<Event>) {
        if let State::Unnamed { file, bytes } = &mut self.state {
            let bytes = mem::take(bytes);
            file.kind = file_type::of(bytes.get(..SNIFF).unwrap_or(&bytes));
            let metainfo = file.kind.name == "torrent";
            events.push(Event::FileNamed(file.clone()));
            if metainfo && !self.lost {
                self.metainfo = bytes.clone();
            }
            let mut share = Share::new(&self.budget);
            // A segment's bytes: they are in memory anyhow, and count for those that follow.
            share.grow(bytes.len());
            self.state = State::Undecided { bytes, share };
        }
    }

    fn gather_metainfo(&mut self, bytes: &[u8]) {
        if !self.metainfo.is_empty() {
            self.metainfo.extend_from_slice(bytes);
            let fits = self.metainfo.len() <= torrents::MAX;
            if !fits || !self.metainfo_share.grow(bytes.len()) {
                self.metainfo = Vec::new();
            }
        }
    }

    /// What a `.torrent` file says, now that it is whole.
    fn tell_metainfo(&mut self, events: &mut Vec<Event>) {
        let metainfo = mem::take(&mut self.metainfo);
        if let Some(torrent) = Torrent::of_file(&metainfo).filter(|_| !self.lost) {
            events.push(Event::Torrent { from: self.from, torrent: Arc::new(torrent) });
        }
    }

    fn tell_end(&mut self, events: &mut Vec<Event>) {
        let complete = self.ended == Some(true) && !self.lost;
        let hash = self.hash.take().filter(|_| complete).map(|hash| hash.0.finish());
        events.push(Event::FileEnded {
            transfer: self.id,
            bytes: self.count,
            complete,
            missed: self.lost,
            sha256: hash.and_then(|hash| hash.as_ref().try_into().ok()),
        });
    }

    fn hold(&self, hold: bool) -> Option<u64> {
        match &self.state {
            State::Denied => Some(self.start),
            State::Unnamed { .. } | State::Undecided { .. } => hold.then_some(self.start),
            State::Scanned if self.in_parts => None,
            State::Allowed if self.metainfo.is_empty() || !hold => None,
            // The packet that has the last content byte, or the last so far; a `.torrent` file's until the
            // names in it were judged.
            State::Scanned | State::Allowed => {
                let last = self.last.unwrap_or(self.reach).saturating_sub(1);
                Some(last.max(self.start).max(self.cleared))
            }
        }
    }
}
