//! The files in HTTP/1: request and response bodies.
//!
//! RFC 9112: section 2 (messages), 6.3 (how a body's length is found), 7.1 (chunks), 9.3 (many
//! messages on a connection), 9.3.2 (pipelining). RFC 9110: 14.4 (ranges), 9.3.2 (HEAD), 15.2 (1xx),
//! 15.3.5 (204), 15.4.5 (304), 9.3.6 (CONNECT), 7.8 (Upgrade). Gnutella's transfers are HTTP too; with
//! its `GIV` the host that was called asks, and so each side's messages are distinguished by their
//! start lines.
//!
//! A server may write what clients read differently. Where all that take a response take the same body,
//! it is read as they do; where they differ, its file is `ambiguous`. What cannot be read is reported
//! ([`Transfers::unread`]). `tests/it/clients.rs` has what curl, wget, Python, Chromium and Firefox take.
//!
//! A side whose bytes cannot be read, or from which some are missing in a head, is read again from
//! the next segment on that begins like a message.

mod file;
mod head;
mod multipart;

use super::{Ahead, Protocol, transfers::Transfers};
use crate::event::FileNamed;
use classify::flow::Side;
use file::{File, Request};
use head::{Body, Head, Start};
use std::collections::VecDeque;

/// Bytes of a head that are read; servers refuse longer ones.
const HEAD: usize = 1 << 16;

/// Bytes of a chunk's head line or a trailer's line.
const LINE: usize = 1 << 13;

/// Requests that wait for their responses; of more the oldest is forgotten.
const PIPELINED: usize = 128;

/// Two directions of HTTP/1.
#[derive(Debug, Default)]
pub(crate) struct Http {
    directions: [Direction; 2],
    requests: VecDeque<Request>,
    /// Whether anything in it was HTTP: what is read from its middle on begins anywhere.
    begun: bool,
    /// Who sent a response of HTTP/1.
    answered: Option<Side>,
    /// Whether it goes through another server, which asks no more what it is (RFC 9110, section 9.3.6).
    through: bool,
}

#[derive(Debug, Default)]
struct Direction {
    state: State,
    /// The head or line that is being gathered.
    line: Vec<u8>,
    /// Whether clients differ on that head, which was said.
    doubt: bool,
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

impl Protocol for Http {
    fn bytes(&mut self, from: Side, at: u64, bytes: &[u8], transfers: &mut Transfers) {
        let direction = self.direction(from);
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
        let direction = self.direction(from);
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
            State::Head | State::Trailer => *direction = Direction::lost(),
            State::Size { .. } | State::ChunkEnd { .. } => over = length,
        }
        if over > 0 {
            // The gap hides where this body ends.
            direction.broken(transfers);
        }
    }

    fn end(&mut self, from: Side, complete: bool, transfers: &mut Transfers) {
        let owes = self.owes(from);
        let direction = self.direction(from);
        let complete = complete && matches!(direction.state, State::UntilClose { .. });
        let head = matches!(direction.state, State::Head) && owes;
        if head && !Start::may_answer(&direction.line) {
            // Of HTTP/0.9, and short.
            transfers.unread();
        }
        direction.finish(complete, transfers);
        direction.state = State::Tunnel;
    }

    fn restart(&mut self, transfers: &mut Transfers) {
        for direction in &mut self.directions {
            direction.finish(false, transfers);
        }
        *self = Self::default();
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
        let direction = self.direction(from);
        match &mut direction.state {
            State::Tunnel | State::Lost => bytes.len(),
            State::Head => self.gather(from, at, bytes, transfers),
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
                direction.line(&line, transfers);
                end + 1
            }
        }
    }

    /// Whether a side has not answered a request.
    fn owes(&self, side: Side) -> bool {
        self.requests.front().is_some_and(|request| request.from != side)
    }

    fn direction(&mut self, side: Side) -> &mut Direction {
        &mut self.directions[usize::from(side == Side::Server)]
    }

    /// Reads where a head is expected; how much it took.
    fn gather(&mut self, from: Side, at: u64, bytes: &[u8], transfers: &mut Transfers) -> usize {
        let owes = self.owes(from);
        let answers = owes || self.answered == Some(from);
        let direction = self.direction(from);
        let before = direction.line.len();
        let (taken, whole) = head::gather(&mut direction.line, bytes, HEAD);
        let line = direction.line.as_slice();
        let begins = if answers { Start::may_answer(line) } else { Start::may_begin(line) };
        let known = Start::begins(line);
        let other = !begins || (line.len() >= head::AHEAD && !known);
        if self.through && !self.begun && other {
            self.tunnel(transfers);
            return taken;
        }
        self.begun |= known;
        let begun = self.begun;
        let direction = self.direction(from);
        let line = direction.line.as_slice();
        if !begins && owes && !whole && line.len() < head::AHEAD {
            return taken;
        }
        if !begins {
            let start = (at + taken as u64).saturating_sub(line.len() as u64);
            self.no_head(from, start, transfers);
            return taken;
        }
        let odd = head::doubtful(line.get(before.saturating_sub(1)..).unwrap_or_default())
            || (owes && !Start::answers_plainly(line));
        if odd && begun && !direction.doubt {
            // What a client takes for the body may be in this packet.
            direction.doubt = true;
            transfers.unread();
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            direction.line.clear();
        } else if !whole && line.len() >= HEAD {
            self.give_up(from, transfers);
        }
        if whole {
            let head = std::mem::take(&mut self.direction(from).line);
            self.head(from, at + taken as u64, &head, transfers);
        }
        taken
    }

    /// What was gathered from offset `start` on begins no head.
    fn no_head(&mut self, from: Side, start: u64, transfers: &mut Transfers) {
        let line = std::mem::take(&mut self.direction(from).line);
        if !self.owes(from) || self.answered.is_some() || !head::is_old(&line) {
            return self.give_up(from, transfers);
        }
        let request = self.requests.pop_front();
        let named = Head::NONE.downloaded(from, 200, request.as_ref());
        let mut file = File::begin(named, false, start, None, transfers);
        file.content(start, &line, transfers);
        self.direction(from).state = State::UntilClose { file };
    }

    /// Nothing of a side can be read until a message begins.
    fn give_up(&mut self, from: Side, transfers: &mut Transfers) {
        if self.begun {
            transfers.unread();
        }
        *self.direction(from) = Direction::lost();
    }

    /// A whole head; its body begins at offset `at`.
    fn head(&mut self, from: Side, at: u64, head: &[u8], transfers: &mut Transfers) {
        let doubt = std::mem::take(&mut self.direction(from).doubt);
        let Some(mut head) = Head::read(head) else {
            return self.give_up(from, transfers);
        };
        head.ambiguous |= doubt;
        self.begun = true;
        let carried = self.carried(from, &head, transfers);
        let Some((body, named)) = carried.filter(|(body, _)| *body != Body::Counted(0)) else {
            if head.ambiguous && !doubt {
                transfers.unread();
            }
            return;
        };
        let last = match body {
            Body::Counted(length) => at.checked_add(length),
            Body::Chunked | Body::UntilClose => None,
        };
        let file = File::begin(named, head.form(), at, last, transfers);
        self.direction(from).state = match body {
            Body::Counted(left) => State::Counted { file, left },
            Body::Chunked => State::Size { file },
            Body::UntilClose => State::UntilClose { file },
        };
    }

    /// The body behind a head, and the file in it.
    fn carried(
        &mut self,
        from: Side,
        head: &Head<'_>,
        transfers: &mut Transfers,
    ) -> Option<(Body, FileNamed)> {
        match &head.start {
            Start::Request { method, target } => {
                if self.requests.len() >= PIPELINED {
                    self.requests.pop_front();
                }
                self.requests.push_back(Request::new(from, method, target, head));
                Some((head.request_body(), head.uploaded(from, target)))
            }
            Start::Response { status } => {
                self.answered = Some(from);
                if (100..200).contains(status) && *status != 101 {
                    return None;
                }
                let request = self.requests.pop_front();
                let asked = |what: fn(&Request) -> bool| request.as_ref().is_some_and(what);
                if *status == 101 {
                    // Without being asked curl takes what follows for the body. Of what is asked for all
                    // but WebSocket may bring files (HTTP/2).
                    let mut protocols = head.members(b"upgrade");
                    let web_socket = |name: &[u8]| name.eq_ignore_ascii_case(b"websocket");
                    if !asked(|request| request.upgrade) || !protocols.any(web_socket) {
                        transfers.unread();
                    }
                }
                let through = asked(|request| request.connect) && (200..300).contains(status);
                if *status == 101 || through {
                    self.tunnel(transfers);
                    if through {
                        *self = Self { through, ..Self::default() };
                    }
                    return None;
                }
                if asked(|request| request.head_only) || matches!(status, 204 | 304) {
                    return None;
                }
                Some((head.length(), head.downloaded(from, *status, request.as_ref())))
            }
            // Gnutella's push: the other side will ask.
            Start::Giv => None,
            Start::Other => {
                self.tunnel(transfers);
                None
            }
        }
    }

    fn tunnel(&mut self, transfers: &mut Transfers) {
        for direction in &mut self.directions {
            direction.finish(false, transfers);
            direction.state = State::Tunnel;
        }
    }
}

impl Direction {
    fn lost() -> Self {
        Self { state: State::Lost, ..Self::default() }
    }

    /// A line within a chunked body, without its LF.
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
                    self.state = State::Size { file };
                    return self.broken(transfers);
                }
            },
            // Python takes two bytes here, whatever they are.
            State::ChunkEnd { file } if line == b"\r" => State::Size { file },
            State::Trailer if matches!(line, b"" | b"\r") => State::Head,
            State::ChunkEnd { file } => {
                self.state = State::ChunkEnd { file };
                return self.broken(transfers);
            }
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

    /// Nothing of it can be read until a message begins.
    fn broken(&mut self, transfers: &mut Transfers) {
        transfers.unread();
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
