//! eDonkey between clients: names and content of files.
//!
//! A message is a protocol's number (0xe3, eMule's 0xc5), its length in four bytes (little-endian, as
//! all numbers), its kind and its body. There is no standard; the numbers are those of eMule's
//! `Opcodes.h`. A file is known by its hash; parts of it come as `start, end, bytes`, or as a zlib
//! stream of a block, cut into messages that each repeat the block's start and packed length.
//!
//! Parts that follow each other are one transfer. The hash of the file is over MD4s of all its parts
//! and cannot be checked for what passes of it.

use super::{Ahead, Protocol, gather::Gather, transfers::Transfers};
use crate::{
    event::{FileHash, FileNamed, TransferId},
    file_name,
};
use classify::flow::Side;
use flate2::{Decompress, FlushDecompress, Status};
use std::collections::VecDeque;

/// Bytes of a message that is read whole.
const MESSAGE: u32 = 1 << 14;

/// Bytes of the largest message that is believed: eMule sends parts of some ten kilobytes.
const LARGEST: u32 = 1 << 22;

/// Bytes that a block may become when it is inflated; a client asks for 180 KiB at once.
const INFLATED: u64 = 1 << 20;

/// Files of a connection whose names are kept.
const FILES: usize = 32;

/// A connection between two clients.
#[derive(Debug, Default)]
pub(crate) struct Edonkey {
    directions: [Direction; 2],
    files: VecDeque<File>,
}

/// The description of a file.
#[derive(Debug)]
struct File {
    hash: [u8; 16],
    name: Option<String>,
    size: Option<u64>,
}

#[derive(Debug, Default)]
struct Direction {
    state: State,
    gather: Gather,
    open: Option<Open>,
}

/// A file whose content comes.
#[derive(Debug)]
struct Open {
    transfer: TransferId,
    hash: [u8; 16],
    /// Where in the file the next byte belongs.
    next: u64,
    /// The packed block that is being inflated: its start, its state, and how much it has become.
    block: Option<(u64, Box<Decompress>, u64)>,
}

/// What is known of a part before its offset is.
#[derive(Clone, Copy, Debug)]
struct PartHead {
    packed: bool,
    /// Whether its offset has eight bytes.
    wide: bool,
    /// Bytes of the whole message.
    length: u32,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Header,
    Message {
        protocol: u8,
        kind: u8,
        length: u32,
    },
    /// The head of a part, which has its offset.
    Offset(PartHead),
    Part {
        left: u32,
    },
    Packed {
        left: u32,
    },
    Skip {
        left: u32,
    },
    Lost,
}

impl Protocol for Edonkey {
    fn bytes(&mut self, from: Side, at: u64, bytes: &[u8], transfers: &mut Transfers) {
        let (mut at, mut rest) = (at, bytes);
        while !rest.is_empty() {
            let taken = self.step(from, at, rest, transfers).min(rest.len());
            rest = rest.get(taken..).unwrap_or_default();
            at += taken as u64;
        }
    }

    fn gap(&mut self, from: Side, at: u64, length: u64, transfers: &mut Transfers) {
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        direction.gather.clear();
        let (left, part) = match direction.state {
            State::Part { left } => (left, true),
            State::Packed { left } | State::Skip { left } => (left, false),
            _ => (0, false),
        };
        let open = direction.open.take();
        if let Some(mut open) = open {
            if part && u64::from(left) >= length {
                transfers.lost(open.transfer, at, length);
                open.next += length;
                direction.open = Some(open);
            } else {
                transfers.end(open.transfer, false);
            }
        }
        direction.state = match u64::from(left).checked_sub(length) {
            _ if left == 0 => State::Lost,
            None => State::Lost,
            Some(0) => State::Header,
            Some(left) if part => State::Part { left: left as u32 },
            Some(left) => State::Skip { left: left as u32 },
        };
    }

    fn end(&mut self, from: Side, complete: bool, transfers: &mut Transfers) {
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        direction.close(complete, transfers);
        direction.state = State::Lost;
    }

    fn restart(&mut self, transfers: &mut Transfers) {
        for direction in &mut self.directions {
            direction.close(false, transfers);
        }
        *self = Self::default();
    }

    fn ahead(&self, from: Side) -> Ahead {
        match self.directions[usize::from(from == Side::Server)].state {
            State::Skip { left } => Ahead::Idle(Some(left.into())),
            State::Part { left } => Ahead::Content { run: Some(left.into()), last: false },
            State::Lost => Ahead::Idle(None),
            _ => Ahead::Read,
        }
    }
}

impl Edonkey {
    fn step(&mut self, from: Side, at: u64, bytes: &[u8], transfers: &mut Transfers) -> usize {
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        let wanted = match &mut direction.state {
            State::Header => 6,
            State::Message { length, .. } => *length as usize,
            State::Offset(PartHead { packed, wide, .. }) => head(*packed, *wide) as usize,
            State::Part { left } | State::Packed { left } | State::Skip { left } => {
                let taken = (*left as usize).min(bytes.len());
                *left -= taken as u32;
                let (over, part) = (*left == 0, bytes.get(..taken).unwrap_or_default());
                match (&direction.state, &mut direction.open) {
                    (State::Part { .. }, Some(open)) => {
                        transfers.content(open.transfer, at, part);
                        open.next += taken as u64;
                    }
                    (State::Packed { .. }, Some(open)) => open.inflate(at, part, transfers),
                    _ => {}
                }
                if over {
                    direction.state = State::Header;
                    direction.finished(&self.files, transfers);
                }
                return taken;
            }
            State::Lost => return bytes.len(),
        };
        let (taken, whole) = direction.gather.take(bytes, wanted);
        if let Some(whole) = whole {
            self.whole(from, at + taken as u64, &whole, transfers);
        }
        taken
    }

    /// What was waited for is whole; the next byte has offset `at`.
    fn whole(&mut self, from: Side, at: u64, whole: &[u8], transfers: &mut Transfers) {
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        match direction.state {
            State::Header => {
                let [protocol, a, b, c, d, kind] = *whole else { return };
                let length = u32::from_le_bytes([a, b, c, d]);
                direction.state = match (protocol, kind, length.checked_sub(1)) {
                    // 0xd4: a message as a whole is packed.
                    (0xe3 | 0xc5 | 0xd4, _, Some(length)) if length > LARGEST => State::Lost,
                    (0xe3 | 0xc5 | 0xd4, _, Some(0)) => State::Header,
                    (0xe3, 0x46, Some(length)) => {
                        State::Offset(PartHead { packed: false, wide: false, length })
                    }
                    (0xc5, 0xa2, Some(length)) => {
                        State::Offset(PartHead { packed: false, wide: true, length })
                    }
                    (0xc5, 0x40, Some(length)) => {
                        State::Offset(PartHead { packed: true, wide: false, length })
                    }
                    (0xc5, 0xa1, Some(length)) => {
                        State::Offset(PartHead { packed: true, wide: true, length })
                    }
                    (0xe3, 0x59, Some(length)) | (0xc5, 0x92 | 0x93 | 0xa4, Some(length))
                        if length <= MESSAGE =>
                    {
                        State::Message { protocol, kind, length }
                    }
                    (0xe3 | 0xc5 | 0xd4, _, Some(left)) => State::Skip { left },
                    _ => State::Lost,
                };
            }
            State::Message { protocol, kind, .. } => {
                direction.state = State::Header;
                self.message(protocol, kind, whole);
            }
            State::Offset(part) => {
                let state = self.part(from, at, part, whole, transfers);
                self.directions[usize::from(from == Side::Server)].state = state;
            }
            _ => {}
        }
    }

    /// A message that says something of a file, whose hash it begins with.
    fn message(&mut self, protocol: u8, kind: u8, body: &[u8]) {
        let Some((hash, rest)) = body.split_first_chunk::<16>() else { return };
        match (protocol, kind) {
            // OP_REQFILENAMEANSWER
            (0xe3, 0x59) => self.name(*hash, rest),
            // OP_MULTIPACKETANSWER: its first answer is the name.
            (0xc5, 0x93) => {
                if let Some((0x59, rest)) = rest.split_first() {
                    self.name(*hash, rest);
                }
            }
            // OP_MULTIPACKET_EXT: the size by which the file is asked for.
            (0xc5, 0xa4) => {
                let size = rest.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
                self.file(*hash).size = size;
            }
            _ => {}
        }
    }

    fn name(&mut self, hash: [u8; 16], text: &[u8]) {
        let Some((length, text)) = text.split_first_chunk() else { return };
        let length = usize::from(u16::from_le_bytes(*length));
        if let Some(name) = text.get(..length) {
            self.file(hash).name = file_name::last_part(&file_name::text(name));
        }
    }

    fn file(&mut self, hash: [u8; 16]) -> &mut File {
        let place = self.files.iter().position(|file| file.hash == hash);
        let place = place.unwrap_or_else(|| {
            if self.files.len() >= FILES {
                self.files.pop_front();
            }
            self.files.push_back(File { hash, name: None, size: None });
            self.files.len() - 1
        });
        &mut self.files[place]
    }

    /// The offset of a part is known.
    fn part(
        &mut self,
        from: Side,
        at: u64,
        PartHead { packed, wide, length }: PartHead,
        text: &[u8],
        transfers: &mut Transfers,
    ) -> State {
        let (Some(left), Some((hash, numbers))) =
            (length.checked_sub(head(packed, wide)), text.split_first_chunk::<16>())
        else {
            return State::Lost;
        };
        let width = if wide { 8 } else { 4 };
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, b| sum << 8 | u64::from(*b));
        let start = number(numbers.get(..width).unwrap_or_default());
        let second = number(numbers.get(width..).unwrap_or_default());
        if !packed && second.checked_sub(start) != Some(left.into()) {
            return State::Skip { left };
        }
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        let goes_on = direction.open.as_ref().is_some_and(|open| {
            let block = open.block.as_ref().is_some_and(|(block, ..)| packed && *block == start);
            open.hash == *hash && (block || open.next == start)
        });
        if !goes_on {
            direction.close(true, transfers);
            let known = self.files.iter().find(|file| file.hash == *hash);
            let size = known.and_then(|file| file.size);
            let whole = start == 0 && !packed && size == Some(u64::from(left));
            let file = FileNamed {
                name: known.and_then(|file| file.name.clone()),
                size,
                range: (start > 0).then(|| (start, size.unwrap_or(u64::MAX))),
                hash: Some(FileHash::Ed2k(*hash)),
                ..FileNamed::new(from)
            };
            let transfer = transfers.begin(file, at, whole.then(|| at + u64::from(left)));
            direction.open = Some(Open { transfer, hash: *hash, next: start, block: None });
        }
        if let Some(open) = direction.open.as_mut().filter(|_| packed)
            && open.block.as_ref().is_none_or(|(block, ..)| *block != start)
        {
            open.block = Some((start, Box::new(Decompress::new(true)), 0));
        }
        match left {
            0 => State::Header,
            left if packed => State::Packed { left },
            left => State::Part { left },
        }
    }
}

impl Direction {
    fn close(&mut self, complete: bool, transfers: &mut Transfers) {
        self.gather.clear();
        if let Some(open) = self.open.take() {
            transfers.end(open.transfer, complete);
        }
    }

    /// A part is over: so is the file, when that was its last byte.
    fn finished(&mut self, files: &VecDeque<File>, transfers: &mut Transfers) {
        let over = self.open.as_ref().is_some_and(|open| {
            let file = files.iter().find(|file| file.hash == open.hash);
            file.and_then(|file| file.size) == Some(open.next)
        });
        if over {
            self.close(true, transfers);
        }
    }
}

impl Open {
    /// Gives on what a packed part becomes; what cannot be inflated is lost.
    fn inflate(&mut self, at: u64, mut packed: &[u8], transfers: &mut Transfers) {
        let Some((_, inflater, total)) = &mut self.block else { return };
        let mut out = [0; 1 << 14];
        loop {
            let before = (inflater.total_in(), inflater.total_out());
            let status = inflater.decompress(packed, &mut out, FlushDecompress::None);
            let read = (inflater.total_in() - before.0) as usize;
            let made = (inflater.total_out() - before.1) as usize;
            packed = packed.get(read..).unwrap_or_default();
            if made > 0 {
                let here = at + read.saturating_sub(1) as u64;
                transfers.inflated(self.transfer, here, out.get(..made).unwrap_or_default());
                self.next += made as u64;
                *total += made as u64;
            }
            match status {
                Ok(Status::StreamEnd) => {
                    self.block = None;
                    return;
                }
                // A few packed bytes may become many: there are more as long as they fill the buffer.
                Ok(_) if packed.is_empty() && made < out.len() => return,
                Ok(_) if (read > 0 || made > 0) && *total < INFLATED => {}
                _ => {
                    transfers.lost(self.transfer, at, 0);
                    self.block = None;
                    return;
                }
            }
        }
    }
}

/// Bytes that say where a part belongs: the hash, and two numbers, of which the packed length is
/// never wide.
const fn head(packed: bool, wide: bool) -> u32 {
    match (packed, wide) {
        (_, false) => 24,
        (false, true) => 32,
        (true, true) => 28,
    }
}
