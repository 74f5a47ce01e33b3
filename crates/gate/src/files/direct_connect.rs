//! Direct Connect between clients: names and content of files, in both of its protocols.
//!
//! NMDC: `$Get path$offset|`, `$FileLength size|`, `$Send|` (offset from 1), then the file;
//! `$ADCGET file name start length [ZL1]|` and `$ADCSND file name start length [ZL1]|`, then the
//! content. ADC (5.3.2, `GET` and `SND`): `CGET file name start length [ZL1]\n`, `CSND ...\n`. A name
//! is a path, or `TTH/` and the file's Tiger tree hash in base 32. `list`s and `files.xml` are not
//! files of people. With `ZL1` the content is a zlib stream of that length when it is inflated.

use super::{Ahead, Protocol, transfers::Transfers};
use crate::{
    event::{FileHash, FileNamed, TransferId},
    file_name,
};
use classify::flow::Side;
use flate2::{Decompress, FlushDecompress, Status};

/// Bytes of a command that are read.
const LINE: usize = 1 << 14;

/// Least bytes under a leaf of the hash trees that clients keep of files; longer ones are multiples.
const LEAF: u64 = 1 << 16;

/// Content that was announced.
struct Run<'a> {
    path: &'a [u8],
    /// Where in the file it begins.
    start: u64,
    /// Its bytes.
    left: u64,
    /// The bytes of the whole file, where known.
    size: Option<u64>,
    packed: bool,
    /// Where in the stream it begins; none for where that side is next.
    at: Option<u64>,
}

/// A connection between two clients.
#[derive(Debug, Default)]
pub(crate) struct DirectConnect {
    directions: [Direction; 2],
    /// What was asked for with `$Get`, by which side, from where on; and the length that was answered.
    get: Option<(Side, Vec<u8>, u64)>,
    length: Option<u64>,
}

#[derive(Debug, Default)]
struct Direction {
    state: State,
    line: Vec<u8>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Line,
    /// Content; none for a listing.
    Plain {
        left: u64,
        transfer: Option<TransferId>,
    },
    /// The same as a zlib stream; `left` is what it is still to become.
    Packed {
        left: u64,
        transfer: Option<TransferId>,
        inflater: Box<Decompress>,
    },
    Lost,
}

impl Protocol for DirectConnect {
    fn bytes(&mut self, from: Side, at: u64, bytes: &[u8], transfers: &mut Transfers) {
        let (mut at, mut rest) = (at, bytes);
        while !rest.is_empty() {
            let taken = self.step(from, at, rest, transfers).clamp(1, rest.len());
            rest = rest.get(taken..).unwrap_or_default();
            at += taken as u64;
        }
    }

    fn gap(&mut self, from: Side, at: u64, length: u64, transfers: &mut Transfers) {
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        direction.line.clear();
        match &mut direction.state {
            State::Plain { left, transfer } if *left >= length => {
                *left -= length;
                let (left, transfer) = (*left, *transfer);
                if let Some(transfer) = transfer {
                    transfers.lost(transfer, at, length);
                }
                if left == 0 {
                    direction.close(true, transfers);
                }
            }
            _ => {
                direction.close(false, transfers);
                direction.state = State::Lost;
            }
        }
    }

    fn end(&mut self, from: Side, _complete: bool, transfers: &mut Transfers) {
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        direction.close(false, transfers);
        direction.state = State::Lost;
    }

    fn restart(&mut self, transfers: &mut Transfers) {
        for direction in &mut self.directions {
            direction.close(false, transfers);
        }
        *self = Self::default();
    }

    fn ahead(&self, from: Side) -> Ahead {
        match &self.directions[usize::from(from == Side::Server)].state {
            State::Plain { left, transfer: Some(_) } => {
                Ahead::Content { run: Some(*left), last: true }
            }
            State::Plain { left, transfer: None } => Ahead::Idle(Some(*left)),
            State::Lost => Ahead::Idle(None),
            State::Line | State::Packed { .. } => Ahead::Read,
        }
    }
}

impl DirectConnect {
    fn step(&mut self, from: Side, at: u64, bytes: &[u8], transfers: &mut Transfers) -> usize {
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        match &mut direction.state {
            State::Lost => bytes.len(),
            State::Plain { left, transfer } => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                if let Some(transfer) = transfer {
                    transfers.content(*transfer, at, bytes.get(..taken).unwrap_or_default());
                }
                *left -= taken as u64;
                if *left == 0 {
                    direction.close(true, transfers);
                }
                taken
            }
            State::Packed { .. } => direction.inflate(at, bytes, transfers),
            State::Line => {
                let end = bytes.iter().position(|byte| matches!(byte, b'|' | b'\n'));
                let taken = end.map_or(bytes.len(), |end| end + 1);
                direction.line.extend_from_slice(bytes.get(..taken).unwrap_or_default());
                if direction.line.len() > LINE {
                    direction.line = Vec::new();
                    direction.state = State::Lost;
                } else if end.is_some() {
                    let mut line = std::mem::take(&mut direction.line);
                    line.pop();
                    self.line(from, at + taken as u64, &line, transfers);
                }
                taken
            }
        }
    }

    /// A command; what follows it has offset `at`.
    fn line(&mut self, from: Side, at: u64, line: &[u8], transfers: &mut Transfers) {
        let mut words = line.splitn(2, |byte| *byte == b' ');
        let (word, rest) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match word {
            b"$Get" => {
                let dollar = rest.iter().rposition(|byte| *byte == b'$').unwrap_or(rest.len());
                let (path, start) = rest.split_at_checked(dollar).unwrap_or((rest, &[]));
                let start = number(start.get(1..).unwrap_or_default()).unwrap_or(1);
                self.get = Some((from, path.to_vec(), start.saturating_sub(1)));
            }
            b"$FileLength" => self.length = number(rest),
            b"$Send" => {
                let (Some((asker, path, start)), Some(size)) =
                    (self.get.take(), self.length.take())
                else {
                    return;
                };
                if asker == from {
                    let left = size.saturating_sub(start);
                    let size = Some(size);
                    let run = Run { path: &path, start, left, size, packed: false, at: None };
                    self.begin(asker.other(), run, transfers);
                }
            }
            b"$ADCSND" | b"CSND" => {
                let words = unescaped(rest);
                let word = |at: usize| words.get(at).map(Vec::as_slice).unwrap_or_default();
                let (Some(start), Some(left)) = (number(word(2)), number(word(3))) else { return };
                let packed = words.iter().skip(4).any(|word| word == b"ZL1");
                let path = if word(0) == b"file" { word(1) } else { b"" };
                let run = Run { path, start, left, size: None, packed, at: Some(at) };
                self.begin(from, run, transfers);
            }
            _ => {}
        }
    }

    /// Content follows.
    fn begin(&mut self, from: Side, run: Run<'_>, transfers: &mut Transfers) {
        let Run { path, start, left, size, packed, at } = run;
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        let hash = path.strip_prefix(b"TTH/").and_then(file_name::base32);
        let hash = hash.and_then(|hash| hash.try_into().ok()).map(FileHash::TigerTree);
        let text = file_name::text(path);
        let name = file_name::last_part(&text).filter(|_| hash.is_none());
        let is_list = name
            .as_deref()
            .is_none_or(|name| name.starts_with("files.xml") || name == "MyList.DcLst");
        // Who fetches a file in parts asks for whole leaves of its hash tree.
        let whole = start == 0 && (size.is_some() || !left.is_multiple_of(LEAF));
        let transfer = (hash.is_some() || !is_list).then(|| {
            let at = at.unwrap_or(0);
            // It is inflated here: no coding is left.
            let file = FileNamed {
                name,
                location: Some(text),
                size: size.or_else(|| whole.then_some(left)),
                range: (!whole).then(|| (start, start.saturating_add(left))),
                hash,
                ..FileNamed::new(from)
            };
            transfers.begin(file, at, (!packed && at > 0).then(|| at.saturating_add(left)))
        });
        direction.line.clear();
        direction.state = if packed {
            State::Packed { left, transfer, inflater: Box::new(Decompress::new(true)) }
        } else {
            State::Plain { left, transfer }
        };
        if left == 0 {
            direction.close(true, transfers);
        }
    }
}

impl Direction {
    fn close(&mut self, complete: bool, transfers: &mut Transfers) {
        let state = std::mem::take(&mut self.state);
        if let State::Plain { transfer: Some(transfer), .. }
        | State::Packed { transfer: Some(transfer), .. } = state
        {
            transfers.end(transfer, complete);
        }
    }

    /// Inflates from the front of `bytes`; how many that took. What follows the stream is read on.
    fn inflate(&mut self, at: u64, bytes: &[u8], transfers: &mut Transfers) -> usize {
        let State::Packed { left, transfer, inflater } = &mut self.state else {
            return bytes.len();
        };
        let mut out = [0; 1 << 14];
        let mut taken = 0;
        loop {
            let before = (inflater.total_in(), inflater.total_out());
            let rest = bytes.get(taken..).unwrap_or_default();
            let status = inflater.decompress(rest, &mut out, FlushDecompress::None);
            let read = (inflater.total_in() - before.0) as usize;
            let made = (inflater.total_out() - before.1) as usize;
            taken += read;
            let wanted = usize::try_from(*left).unwrap_or(usize::MAX);
            if let Some(transfer) = transfer {
                let content = out.get(..made.min(wanted)).unwrap_or_default();
                transfers.inflated(*transfer, at + taken.saturating_sub(1) as u64, content);
            }
            *left -= made.min(wanted) as u64;
            match status {
                Ok(Status::StreamEnd) => {
                    let complete = *left == 0;
                    self.close(complete, transfers);
                    return taken.max(1);
                }
                Ok(_) if (read > 0 || made > 0) && made <= wanted => {}
                // All of these bytes were read, and more are needed.
                Ok(_) if taken == bytes.len() && made <= wanted => return taken,
                _ => {
                    self.close(false, transfers);
                    self.state = State::Lost;
                    return bytes.len();
                }
            }
        }
    }
}

/// Words of an ADC command: `\s` is a space, `\n` a line's end, `\\` a backslash (ADC, section 3.1).
fn unescaped(text: &[u8]) -> Vec<Vec<u8>> {
    let word = |word: &[u8]| {
        let mut bytes = word.iter();
        let mut plain = Vec::with_capacity(word.len());
        while let Some(byte) = bytes.next() {
            plain.push(match byte {
                b'\\' => match bytes.next() {
                    Some(b's') => b' ',
                    Some(b'n') => b'\n',
                    Some(other) => *other,
                    None => b'\\',
                },
                byte => *byte,
            });
        }
        plain
    };
    text.split(|byte| *byte == b' ').map(word).collect()
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits.trim_ascii()).ok()?.parse().ok()
}
