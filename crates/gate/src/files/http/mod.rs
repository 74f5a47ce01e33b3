//! The files in HTTP/1: request and response bodies.
//!
//! RFC 9112: section 2 (messages), 6.3 (how a body's length is found), 7.1 (chunks), 9.3 (many
//! messages on a connection), 9.3.2 (pipelining). RFC 9110: 14.4 (ranges), 9.3.2 (HEAD), 15.2 (1xx),
//! 15.3.5 (204), 15.4.5 (304), 9.3.6 (CONNECT), 7.8 (Upgrade). Gnutella's transfers are HTTP too; with
//! its `GIV` the host that was called asks, and so each side's messages are distinguished by their
//! start lines.
//!
//! A side whose bytes cannot be read, or from which some are missing in a head, is read again from
//! the next segment on that begins like a message.

mod head;
mod multipart;

use super::{Ahead, Protocol, transfers::Transfers};
use crate::{
    event::{FileHash, FileNamed, TransferId},
    file_name, file_type,
};
use classify::flow::Side;
use head::{Body, Head, Start};
use std::collections::VecDeque;

/// Bytes of a head that are read; servers refuse longer ones.
const HEAD: usize = 1 << 16;

/// Bytes of a chunk's head line or a trailer's line.
const LINE: usize = 1 << 13;

/// Requests that wait for their responses; of more the oldest is forgotten.
const PIPELINED: usize = 128;

/// Bytes of a request's body in which a form's first file name is looked for.
const FORM: usize = 1024;

/// Two directions of HTTP/1.
#[derive(Debug, Default)]
pub(crate) struct Http {
    directions: [Direction; 2],
    requests: VecDeque<Request>,
}

/// What of a request its response needs.
#[derive(Debug)]
struct Request {
    head_only: bool,
    connect: bool,
    target: Vec<u8>,
    host: Option<String>,
}

#[derive(Debug, Default)]
struct Direction {
    state: State,
    /// The head or line that is being gathered.
    line: Vec<u8>,
}

#[derive(Debug, Default)]
enum State {
    /// A message's head is expected.
    #[default]
    Head,
    /// A body of which so many bytes are to come.
    Counted { file: File, left: u64 },
    /// A body that the connection's end ends.
    UntilClose { file: File },
    /// A chunk's head line.
    Size { file: File },
    /// A chunk of which so many bytes are to come.
    Chunk { file: File, left: u64 },
    /// The line end behind a chunk.
    ChunkEnd { file: File },
    /// Lines behind the last chunk, up to an empty one.
    Trailer,
    /// Not to be read: until a segment begins like a message.
    Lost,
    /// No HTTP any more.
    Tunnel,
}

/// A body: a form whose file's name is still looked for, or a file.
#[derive(Debug)]
enum File {
    Form { named: Box<FileNamed>, begins: Vec<u8>, at: u64, last: Option<u64> },
    Known(TransferId),
}

impl Protocol for Http {
    fn bytes(&mut self, from: Side, at: u64, bytes: &[u8], transfers: &mut Transfers) {
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        if matches!(direction.state, State::Lost) && Start::begins(bytes) {
            direction.state = State::Head;
        }
        let (mut at, mut rest) = (at, bytes);
        while !rest.is_empty() {
            let taken = self.step(from, at, rest, transfers).clamp(1, rest.len());
            rest = rest.get(taken..).unwrap_or_default();
            at += taken as u64;
        }
    }

    fn gap(&mut self, from: Side, at: u64, length: u64, transfers: &mut Transfers) {
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        let mut over = 0;
        match &mut direction.state {
            State::Tunnel | State::Lost => {}
            State::Counted { file, left } | State::Chunk { file, left } => {
                over = length.saturating_sub(*left);
                let here = length - over;
                *left -= here;
                file.lost(at, here, transfers);
                if over == 0 && *left == 0 {
                    direction.body_done(transfers);
                }
            }
            State::UntilClose { file } => file.lost(at, length, transfers),
            State::Head if direction.line.is_empty() => direction.state = State::Lost,
            State::Head | State::Trailer => {
                direction.line.clear();
                direction.state = State::Lost;
            }
            State::Size { .. } | State::ChunkEnd { .. } => over = length,
        }
        if over > 0 {
            // The gap hides where this body ends.
            transfers.unread();
            direction.broken(transfers);
        }
    }

    fn end(&mut self, from: Side, complete: bool, transfers: &mut Transfers) {
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        let complete = complete && matches!(direction.state, State::UntilClose { .. });
        direction.finish(complete, transfers);
        direction.state = State::Tunnel;
    }

    fn restart(&mut self, transfers: &mut Transfers) {
        for direction in &mut self.directions {
            direction.finish(false, transfers);
            *direction = Direction::default();
        }
        self.requests.clear();
    }

    fn ahead(&self, from: Side) -> Ahead {
        match &self.directions[usize::from(from == Side::Server)].state {
            State::Counted { file: File::Known(_), left } => {
                Ahead::Content { run: Some(*left), last: true }
            }
            State::Chunk { file: File::Known(_), left } => {
                Ahead::Content { run: Some(*left), last: false }
            }
            State::UntilClose { file: File::Known(_) } => Ahead::Content { run: None, last: true },
            State::Tunnel => Ahead::Idle(None),
            State::Head => Ahead::Head,
            State::Lost => Ahead::Lost,
            _ => Ahead::Read,
        }
    }
}

impl Http {
    /// Whether these bytes begin like a message.
    pub(crate) fn begins(bytes: &[u8]) -> bool {
        Start::begins(bytes)
    }

    /// Reads from the front of `bytes`, which are not empty; how many it took.
    fn step(&mut self, from: Side, at: u64, bytes: &[u8], transfers: &mut Transfers) -> usize {
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        match &mut direction.state {
            State::Tunnel | State::Lost => bytes.len(),
            State::Head => {
                let (taken, whole) = head::gather(&mut direction.line, bytes, HEAD);
                if whole {
                    let head = std::mem::take(&mut direction.line);
                    self.head(from, at + taken as u64, &head, transfers);
                } else if direction.line.len() >= HEAD || !Start::may_begin(&direction.line) {
                    direction.line = Vec::new();
                    direction.state = State::Lost;
                }
                taken
            }
            State::Counted { file, left } | State::Chunk { file, left } => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                file.content(at, bytes.get(..taken).unwrap_or_default(), transfers);
                *left -= taken as u64;
                if *left == 0 {
                    direction.body_done(transfers);
                }
                taken
            }
            State::UntilClose { file } => {
                file.content(at, bytes, transfers);
                bytes.len()
            }
            State::Size { .. } | State::ChunkEnd { .. } | State::Trailer => {
                let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                    direction.line.extend_from_slice(bytes);
                    if direction.line.len() > LINE {
                        direction.broken(transfers);
                    }
                    return bytes.len();
                };
                direction.line.extend_from_slice(bytes.get(..end).unwrap_or_default());
                let line = std::mem::take(&mut direction.line);
                direction.line(line.trim_ascii(), transfers);
                end + 1
            }
        }
    }

    /// A whole head; its body begins at offset `at`.
    fn head(&mut self, from: Side, at: u64, head: &[u8], transfers: &mut Transfers) {
        let read = Head::read(head);
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        let Some(head) = read else {
            direction.state = State::Lost;
            return;
        };
        let (body, file) = match &head.start {
            Start::Request { method, target } => {
                if self.requests.len() >= PIPELINED {
                    self.requests.pop_front();
                }
                self.requests.push_back(Request {
                    head_only: *method == b"HEAD",
                    connect: *method == b"CONNECT",
                    target: target.to_vec(),
                    host: head.value(b"host").map(file_name::text),
                });
                (head.request_body(), head.uploaded(from, target))
            }
            Start::Response { status } if (100..200).contains(status) && *status != 101 => return,
            Start::Response { status } => {
                let request = self.requests.pop_front();
                let connect = request.as_ref().is_some_and(|request| request.connect);
                if *status == 101 || (connect && (200..300).contains(status)) {
                    self.tunnel(transfers);
                    return;
                }
                let empty = request.as_ref().is_some_and(|request| request.head_only)
                    || matches!(status, 204 | 304);
                let body = if empty { Body::Counted(0) } else { head.response_body() };
                (body, head.downloaded(from, *status, request.as_ref()))
            }
            // Gnutella's push: the other side will ask.
            Start::Giv => return,
            Start::Other => {
                self.tunnel(transfers);
                return;
            }
        };
        let form = head.form();
        let direction = &mut self.directions[usize::from(from == Side::Server)];
        let last = match body {
            Body::Counted(0) => return,
            Body::Counted(length) => at.checked_add(length),
            Body::Chunked | Body::UntilClose => None,
        };
        let file = if form && file.name.is_none() {
            File::Form { named: Box::new(file), begins: Vec::new(), at, last }
        } else {
            File::Known(transfers.begin(file, at, last))
        };
        direction.state = match body {
            Body::Counted(left) => State::Counted { file, left },
            Body::Chunked => State::Size { file },
            Body::UntilClose => State::UntilClose { file },
        };
    }

    fn tunnel(&mut self, transfers: &mut Transfers) {
        for direction in &mut self.directions {
            direction.finish(false, transfers);
            direction.state = State::Tunnel;
        }
    }
}

impl Direction {
    /// A line within a chunked body.
    fn line(&mut self, line: &[u8], transfers: &mut Transfers) {
        self.state = match std::mem::take(&mut self.state) {
            // RFC 9112, section 7.1: the size, then extensions behind a semicolon.
            State::Size { file } => match head::chunk_size(line) {
                Some(0) => {
                    file.end(true, transfers);
                    State::Trailer
                }
                Some(left) => State::Chunk { file, left },
                None => {
                    file.end(false, transfers);
                    State::Lost
                }
            },
            State::ChunkEnd { file } if line.is_empty() => State::Size { file },
            State::ChunkEnd { file } => {
                file.end(false, transfers);
                State::Lost
            }
            State::Trailer if line.is_empty() => State::Head,
            state => state,
        };
    }

    fn body_done(&mut self, transfers: &mut Transfers) {
        self.state = match std::mem::take(&mut self.state) {
            State::Chunk { file, .. } => State::ChunkEnd { file },
            State::Counted { file, .. } => {
                file.end(true, transfers);
                State::Head
            }
            state => state,
        };
    }

    fn broken(&mut self, transfers: &mut Transfers) {
        self.finish(false, transfers);
        self.state = State::Lost;
    }

    /// Ends an open file.
    fn finish(&mut self, complete: bool, transfers: &mut Transfers) {
        self.line = Vec::new();
        match std::mem::take(&mut self.state) {
            State::Counted { file, .. }
            | State::UntilClose { file }
            | State::Size { file }
            | State::Chunk { file, .. }
            | State::ChunkEnd { file } => file.end(complete, transfers),
            State::Head | State::Trailer | State::Lost | State::Tunnel => {}
        }
    }
}

impl File {
    fn content(&mut self, at: u64, bytes: &[u8], transfers: &mut Transfers) {
        match self {
            Self::Known(id) => transfers.content(*id, at, bytes),
            Self::Form { named, begins, .. } => {
                begins.extend_from_slice(bytes);
                if let Some(name) = multipart::file_name(begins) {
                    named.name = Some(name);
                } else if begins.len() < FORM {
                    return;
                }
                self.known(transfers);
            }
        }
    }

    fn lost(&mut self, at: u64, length: u64, transfers: &mut Transfers) {
        let id = self.known(transfers);
        transfers.lost(id, at, length);
    }

    fn end(mut self, complete: bool, transfers: &mut Transfers) {
        let id = self.known(transfers);
        transfers.end(id, complete);
    }

    /// A form becomes a file with the name that was found, if any.
    fn known(&mut self, transfers: &mut Transfers) -> TransferId {
        let id = match self {
            Self::Known(id) => return *id,
            Self::Form { named, begins, at, last } => {
                let id = transfers.begin((**named).clone(), *at, *last);
                transfers.content(id, *at, begins);
                id
            }
        };
        *self = Self::Known(id);
        id
    }
}

impl Head<'_> {
    /// The file that a request carries.
    fn uploaded(&self, from: Side, target: &[u8]) -> FileNamed {
        let form = self.form();
        FileNamed {
            name: self
                .value(b"content-disposition")
                .and_then(file_name::of_disposition)
                .or_else(|| if form { None } else { file_name::of_target(target) }),
            location: Some(file_name::without_query(target)),
            host: self.value(b"host").map(file_name::text),
            ..self.file(from)
        }
    }

    /// The file that a response carries.
    fn downloaded(&self, from: Side, status: u16, request: Option<&Request>) -> FileNamed {
        let (range, total) = match self.value(b"content-range").and_then(head::content_range) {
            Some((range, total)) if status == 206 => (Some(range), total),
            _ => (None, None),
        };
        let file = self.file(from);
        FileNamed {
            name: self
                .value(b"content-disposition")
                .and_then(file_name::of_disposition)
                .or_else(|| file_name::of_target(&request?.target)),
            location: request.map(|request| file_name::without_query(&request.target)),
            host: request.and_then(|request| request.host.clone()),
            size: if range.is_some() { total } else { file.size },
            range,
            hash: self
                .value(b"x-gnutella-content-urn")
                .and_then(head::sha1_urn)
                .or_else(|| head::sha1_urn(&request?.target))
                .map(FileHash::Sha1),
            ..file
        }
    }

    fn file(&self, from: Side) -> FileNamed {
        let size = match self.length() {
            Body::Counted(length) => Some(length),
            Body::Chunked | Body::UntilClose => None,
        };
        FileNamed {
            transfer: TransferId(0),
            from,
            name: None,
            location: None,
            host: None,
            size,
            range: None,
            kind: file_type::UNKNOWN,
            media: self.value(b"content-type").map(file_name::text),
            coding: self
                .value(b"content-encoding")
                .filter(|coding| !coding.eq_ignore_ascii_case(b"identity"))
                .map(file_name::text),
            hash: None,
        }
    }
}
