//! BitTorrent between peers: which torrent, its metadata, its blocks.
//!
//! BEP 3 (handshake, messages; `piece` is 7), BEP 10 (extension messages, 20), BEP 9 (`ut_metadata`).
//! A connection is one transfer, named by its handshake's info-hash. With a scan its blocks are given
//! out ([`Event::Block`]), each with the packet of its last byte held until
//! [`cleared`](crate::manage::Manager::cleared); else they are skipped. A connection that begins
//! otherwise is encrypted (or none), and nothing of it is read.

use super::{Ahead, Protocol, gather::Gather, http::Http, transfers::Transfers};
use crate::{
    event::{Event, FileHash, FileNamed, FileVerdict, TransferId},
    stream::{Budget, Share},
    torrents::{self, Torrent},
};
use classify::{
    flow::Side,
    p2p::bencode::{self, Value},
};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use std::sync::Arc;

const HANDSHAKE: usize = 68;
const PROTOCOL: &[u8] = b"\x13BitTorrent protocol";

/// Bytes of a message that is read whole: an extension's, with a piece of metadata of 16 KiB.
const MESSAGE: u32 = 1 << 15;

/// Bytes of a block, as all clients ask for them; of others no bytes are taken.
const BLOCK: u32 = 1 << 14;

/// Bytes of the largest message: a bit field of the largest torrents, or a block.
const LARGEST: u32 = 1 << 24;

/// BEP 9: bytes of a piece of metadata.
const METADATA_PIECE: usize = 1 << 14;

/// A connection between two peers.
#[derive(Debug)]
pub(crate) struct PeerWire {
    directions: [Direction; 2],
    hash: Option<[u8; 20]>,
    transfer: Option<TransferId>,
    metadata: Metadata,
    budget: Budget,
    /// What it is instead: the torrent's content or a tracker over HTTP.
    http: Option<Box<Http>>,
}

#[derive(Debug, Default)]
struct Direction {
    state: State,
    gather: Gather,
    /// The number by which this side wants to be sent `ut_metadata`.
    metadata_id: u8,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Handshake,
    Length,
    Kind {
        length: u32,
    },
    Place {
        length: u32,
    },
    Block {
        index: u32,
        begin: u32,
        left: u32,
        part: Option<TransferId>,
        bytes: Vec<u8>,
        /// What its bytes take of the budget; none when they are not taken.
        share: Option<Share>,
    },
    Message {
        length: u32,
    },
    Skip {
        left: u32,
    },
    Lost,
}

#[derive(Debug, Default)]
struct Metadata {
    bytes: Vec<u8>,
    pieces: Vec<bool>,
    known: bool,
    share: Option<Share>,
}

impl Protocol for PeerWire {
    fn bytes(&mut self, from: Side, at: u64, bytes: &[u8], transfers: &mut Transfers) {
        if self.hash.is_none() && self.http.is_none() && Http::begins(bytes) {
            self.http = Some(Box::default());
        }
        if let Some(http) = &mut self.http {
            return http.bytes(from, at, bytes, transfers);
        }
        let (mut at, mut rest) = (at, bytes);
        while !rest.is_empty() {
            let taken = self.step(from, at, rest, transfers).min(rest.len());
            rest = rest.get(taken..).unwrap_or_default();
            at += taken as u64;
        }
    }

    fn gap(&mut self, from: Side, at: u64, length: u64, transfers: &mut Transfers) {
        if let Some(http) = &mut self.http {
            return http.gap(from, at, length, transfers);
        }
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        let within = |left: u32| u64::from(left).checked_sub(length).map(|left| left as u32);
        direction.state = match std::mem::take(&mut direction.state) {
            State::Skip { left } => match within(left) {
                Some(0) => State::Length,
                Some(left) => State::Skip { left },
                None => State::Lost,
            },
            State::Block { left, part, .. } => {
                transfers.forget_part(part);
                match within(left) {
                    Some(0) => State::Length,
                    Some(left) => State::Skip { left },
                    None => State::Lost,
                }
            }
            _ => State::Lost,
        };
        direction.gather.clear();
    }

    fn end(&mut self, from: Side, complete: bool, transfers: &mut Transfers) {
        if let Some(http) = &mut self.http {
            return http.end(from, complete, transfers);
        }
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        if let State::Block { part, .. } = std::mem::replace(&mut direction.state, State::Lost) {
            transfers.forget_part(part);
        }
        let over = self.directions.iter().all(|direction| matches!(direction.state, State::Lost));
        if let Some(transfer) = self.transfer.filter(|_| over) {
            transfers.end(transfer, complete);
        }
    }

    fn restart(&mut self, transfers: &mut Transfers) {
        for side in [Side::Client, Side::Server] {
            self.end(side, false, transfers);
        }
        *self = Self::new(&self.budget);
    }

    fn ahead(&self, from: Side) -> Ahead {
        if let Some(http) = &self.http {
            return http.ahead(from);
        }
        match self.directions[usize::from(from == Side::Server)].state {
            State::Skip { left } => Ahead::Idle(Some(left.into())),
            State::Lost => Ahead::Idle(None),
            _ => Ahead::Read,
        }
    }
}

impl PeerWire {
    /// A connection whose metadata takes its memory from a budget.
    pub(crate) fn new(budget: &Budget) -> Self {
        Self {
            directions: Default::default(),
            hash: None,
            transfer: None,
            metadata: Metadata::default(),
            budget: budget.clone(),
            http: None,
        }
    }

    /// Reads from the front of `bytes`; how many it took.
    fn step(&mut self, from: Side, at: u64, bytes: &[u8], transfers: &mut Transfers) -> usize {
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        let wanted = match &direction.state {
            State::Handshake => HANDSHAKE,
            State::Length => 4,
            State::Kind { .. } => 1,
            State::Place { .. } => 8,
            State::Message { length } => *length as usize,
            State::Block { left, .. } => (*left as usize).min(bytes.len()),
            State::Skip { left } => {
                let taken = (*left as usize).min(bytes.len());
                let left = left - taken as u32;
                direction.state = if left == 0 { State::Length } else { State::Skip { left } };
                return taken;
            }
            State::Lost => return bytes.len(),
        };
        if let State::Block { index, begin, left, part, bytes: block, share } = &mut direction.state
        {
            if share.is_some() {
                block.extend_from_slice(bytes.get(..wanted).unwrap_or_default());
            }
            *left -= wanted as u32;
            if *left == 0 {
                let (index, begin, part) = (*index, *begin, *part);
                let bytes = std::mem::take(block);
                direction.state = State::Length;
                if let (Some(transfer), Some(part), Some(info_hash)) =
                    (self.transfer, part, self.hash)
                {
                    transfers.emit(Event::Block { transfer, part, info_hash, index, begin, bytes });
                }
            }
            return wanted;
        }
        let first = matches!(direction.state, State::Handshake);
        let (taken, whole) = direction.gather.take(bytes, wanted);
        if let Some(whole) = whole {
            self.whole(from, at + taken as u64, &whole, transfers);
        } else if first
            && !PROTOCOL.starts_with(bytes.get(..PROTOCOL.len()).unwrap_or(bytes))
            && at == 0
        {
            direction.state = State::Lost;
        }
        taken
    }

    /// What was waited for is whole; the next byte has offset `at`.
    fn whole(&mut self, from: Side, at: u64, whole: &[u8], transfers: &mut Transfers) {
        let hash = self.hash;
        let other_id = self.directions[usize::from(from == Side::Client)].metadata_id;
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        let number = |at: usize| {
            let bytes = whole.get(at..).and_then(|rest| rest.first_chunk());
            u32::from_be_bytes(bytes.copied().unwrap_or_default())
        };
        direction.state = match direction.state {
            State::Handshake => {
                let named = whole.get(28..).and_then(|rest| rest.first_chunk::<20>());
                match named.filter(|_| whole.starts_with(PROTOCOL)) {
                    Some(named) if hash.is_none_or(|hash| hash == *named) => {
                        if hash.is_none() {
                            self.hash = Some(*named);
                            self.transfer = Some(transfers.announce(named_file(from, *named), at));
                        }
                        State::Length
                    }
                    _ => State::Lost,
                }
            }
            State::Length => match number(0) {
                0 => State::Length,
                length if length > LARGEST => State::Lost,
                length => State::Kind { length: length - 1 },
            },
            State::Kind { length } => match whole.first() {
                Some(7) if length > 8 => State::Place { length: length - 8 },
                Some(20) if length > 0 && length <= MESSAGE => State::Message { length },
                _ if length == 0 => State::Length,
                _ => State::Skip { left: length },
            },
            State::Place { length } => {
                let decision = self.transfer.and_then(|id| transfers.decision(id));
                if decision == Some(FileVerdict::Scan) {
                    let part = transfers.part(from, at + u64::from(length));
                    let (index, begin, bytes) = (number(0), number(4), Vec::new());
                    let mut share = Share::new(&self.budget);
                    let taken = length <= BLOCK && share.grow(length as usize);
                    let share = taken.then_some(share);
                    State::Block { index, begin, left: length, part, bytes, share }
                } else {
                    State::Skip { left: length }
                }
            }
            State::Message { .. } => {
                direction.state = State::Length;
                self.extension(from, other_id, whole, transfers);
                return;
            }
            State::Block { .. } | State::Skip { .. } | State::Lost => State::Lost,
        };
    }

    /// BEP 10: the number of the extension, then a dictionary, and in a piece of metadata its bytes.
    fn extension(&mut self, from: Side, other_id: u8, message: &[u8], transfers: &mut Transfers) {
        let Some((id, text)) = message.split_first() else { return };
        let Ok((Value::Dict(dict), length)) = bencode::read_unordered(text) else { return };
        if *id == 0 {
            let wanted = dict.dict(b"m").and_then(|names| names.integer(b"ut_metadata"));
            let direction = &mut self.directions[usize::from(from == Side::Server)];
            direction.metadata_id = wanted.and_then(|id| u8::try_from(id).ok()).unwrap_or(0);
            return;
        }
        // BEP 9: `msg_type` 1 is a piece of it.
        if *id != other_id || dict.integer(b"msg_type") != Some(1) || self.metadata.known {
            return;
        }
        let (Some(piece), Some(total)) = (dict.integer(b"piece"), dict.integer(b"total_size"))
        else {
            return;
        };
        let bytes = text.get(length..).unwrap_or_default();
        let (Some(hash), Some(text)) =
            (self.hash, self.metadata.add(piece, total, bytes, &self.budget))
        else {
            return;
        };
        let right = digest(&SHA1_FOR_LEGACY_USE_ONLY, text).as_ref() == hash
            || digest(&SHA256, text).as_ref().starts_with(&hash);
        let torrent = if right { Torrent::of_info(text) } else { None };
        self.metadata = Metadata { known: torrent.is_some(), ..Metadata::default() };
        if let Some(torrent) = torrent {
            // Both versions may name it; the handshake says by which it is known here.
            transfers.emit(Event::Torrent { from, torrent: Arc::new(Torrent { hash, ..torrent }) });
        }
    }
}

impl Metadata {
    /// A piece of the metadata; all of it, once it is whole.
    fn add(&mut self, piece: i64, total: i64, bytes: &[u8], budget: &Budget) -> Option<&[u8]> {
        let total = usize::try_from(total).ok().filter(|total| *total <= torrents::MAX)?;
        if self.bytes.len() != total {
            *self = Self::default();
            let mut share = Share::new(budget);
            if !share.grow(total) {
                return None;
            }
            self.bytes = vec![0; total];
            self.pieces = vec![false; total.div_ceil(METADATA_PIECE)];
            self.share = Some(share);
        }
        let piece = usize::try_from(piece).ok().filter(|piece| *piece < self.pieces.len())?;
        let start = piece * METADATA_PIECE;
        let end = total.min(start + METADATA_PIECE);
        let place = self.bytes.get_mut(start..end).filter(|place| place.len() == bytes.len())?;
        place.copy_from_slice(bytes);
        *self.pieces.get_mut(piece)? = true;
        self.pieces.iter().all(|there| *there).then_some(self.bytes.as_slice())
    }
}

fn named_file(from: Side, hash: [u8; 20]) -> FileNamed {
    FileNamed { hash: Some(FileHash::InfoV1(hash)), ..FileNamed::new(from) }
}
