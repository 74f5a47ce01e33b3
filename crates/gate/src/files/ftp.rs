//! The files of FTP: their names and sockets from the control connection, their content from the data
//! connections that it announces.
//!
//! RFC 959: section 4.1 (commands), 4.2 (replies), 3.2 (data connections, `PORT`, `PASV`); RFC 2428
//! (`EPRT`, `EPSV`); RFC 3659 (`MLSD`, `REST` for streams, `SIZE`); RFC 4217 (`AUTH`: what follows is
//! not readable).
//!
//! The address in a reply to `PASV` is often that of a NAT's other side; clients that connect to the
//! control connection's server instead are right, so both are expected.

use super::{Ahead, Protocol, transfers::Transfers};
use crate::{
    event::{ANNOUNCED, Event, Expectation, FileNamed, Promise, Promised, TransferId},
    file_name,
};
use classify::flow::{Flow, Side};
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

/// Bytes of a command or a reply's line that are read; paths are shorter.
const LINE: usize = 1 << 12;

/// What announced flows are called.
const DATA: &str = ANNOUNCED[0];

/// A control connection.
#[derive(Debug)]
pub(crate) struct Control {
    flow: Flow,
    lines: [Line; 2],
    /// What the next data connection will carry.
    promise: Arc<Promise>,
    /// The command that was sent last.
    asked: Asked,
    start: u64,
    secret: bool,
}

#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    /// Too long, or some of it was not seen: up to its end it is not read.
    broken: bool,
}

/// Commands whose replies say something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Auth,
    Transfer,
    Other,
}

impl Control {
    pub(crate) fn new(flow: &Flow) -> Self {
        Self {
            flow: *flow,
            lines: Default::default(),
            promise: Arc::default(),
            asked: Asked::Other,
            start: 0,
            secret: false,
        }
    }

    fn line(&mut self, from: Side, line: &[u8], transfers: &mut Transfers) {
        match from {
            Side::Client => self.command(line, transfers),
            Side::Server => self.reply(line, transfers),
        }
    }

    fn command(&mut self, line: &[u8], transfers: &mut Transfers) {
        let space = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
        let (verb, rest) = line.split_at_checked(space).unwrap_or((line, &[]));
        let argument = rest.trim_ascii();
        self.asked = Asked::Other;
        match verb.to_ascii_uppercase().as_slice() {
            b"AUTH" => self.asked = Asked::Auth,
            b"PORT" => {
                if let Some((address, port)) = six(argument) {
                    self.expect(self.flow.server.ip(), (address, port).into(), transfers);
                }
            }
            b"EPRT" => {
                if let Some(socket) = extended(argument) {
                    self.expect(self.flow.server.ip(), socket, transfers);
                }
            }
            // RFC 3659, section 5.3: where the next transfer begins.
            b"REST" => self.start = number(argument).unwrap_or(0),
            b"RETR" => self.promised(Some(argument), self.flow.server.ip()),
            b"STOR" | b"APPE" | b"STOU" => self.promised(Some(argument), self.flow.client.ip()),
            b"LIST" | b"NLST" | b"MLSD" => self.promised(None, self.flow.server.ip()),
            _ => {}
        }
    }

    fn reply(&mut self, line: &[u8], transfers: &mut Transfers) {
        let text = line.get(3..).unwrap_or_default();
        match line.get(..3) {
            Some(b"227") => {
                // RFC 959 fixes the numbers, not what stands around them (RFC 1123, section 4.1.2.6).
                let digits = text.iter().position(u8::is_ascii_digit);
                let stated = digits.and_then(|at| six(text.get(at..)?));
                if let Some((address, port)) = stated {
                    let (client, server) = (self.flow.client.ip(), self.flow.server.ip());
                    self.expect(client, (server, port).into(), transfers);
                    if server != address && !address.is_unspecified() {
                        let promise = Arc::clone(&self.promise);
                        announce(client, (address, port).into(), promise, transfers);
                    }
                }
            }
            Some(b"229") => {
                // RFC 2428, section 3: `(|||6446|)`.
                let open = text.iter().position(|byte| *byte == b'(');
                let port = open.and_then(|at| {
                    let inner = text.get(at + 1..)?;
                    let mark = inner.first()?;
                    number(inner.split(|byte| byte == mark).nth(3)?)
                });
                if let Some(port) = port.and_then(|port| u16::try_from(port).ok()) {
                    let server = (self.flow.server.ip(), port).into();
                    self.expect(self.flow.client.ip(), server, transfers);
                }
            }
            // RFC 4217, section 4: TLS begins.
            Some(b"234") if self.asked == Asked::Auth => self.secret = true,
            Some(b"125" | b"150") if self.asked == Asked::Transfer => {
                if let (Some(size), Ok(mut file)) = (announced(text), self.promise.file.lock())
                    && let Some(file) = file.as_mut()
                {
                    file.size = Some(size);
                }
            }
            _ => {}
        }
    }

    fn expect(&mut self, client: IpAddr, server: SocketAddr, transfers: &mut Transfers) {
        self.promise = Arc::default();
        announce(client, server, Arc::clone(&self.promise), transfers);
    }

    fn promised(&mut self, path: Option<&[u8]>, sender: IpAddr) {
        self.asked = Asked::Transfer;
        let start = std::mem::take(&mut self.start);
        let path = path.map(<[u8]>::to_vec);
        if let Ok(mut file) = self.promise.file.lock() {
            *file = Some(Promised { path, sender: Some(sender), start, size: None });
        }
    }
}

fn announce(client: IpAddr, server: SocketAddr, promise: Arc<Promise>, transfers: &mut Transfers) {
    let client = Some(client);
    transfers.emit(Event::Expect(Expectation {
        client,
        server,
        application: DATA,
        number: 0,
        promise,
    }));
}

impl Protocol for Control {
    fn bytes(&mut self, from: Side, _at: u64, bytes: &[u8], transfers: &mut Transfers) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.secret {
                return;
            }
            let line = &mut self.lines[usize::from(from == Side::Server)];
            line.broken |= line.bytes.len() + part.len() > LINE;
            if !line.broken {
                line.bytes.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                let whole = std::mem::take(line);
                if !whole.broken {
                    self.line(from, whole.bytes.trim_ascii(), transfers);
                }
            }
        }
    }

    fn gap(&mut self, from: Side, _at: u64, _length: u64, _transfers: &mut Transfers) {
        let line = &mut self.lines[usize::from(from == Side::Server)];
        *line = Line { bytes: Vec::new(), broken: true };
    }

    fn end(&mut self, _from: Side, _complete: bool, _transfers: &mut Transfers) {}

    fn restart(&mut self, _transfers: &mut Transfers) {
        *self = Self::new(&self.flow);
    }

    fn ahead(&self, _from: Side) -> Ahead {
        if self.secret { Ahead::Idle(None) } else { Ahead::Read }
    }
}

/// `h1,h2,h3,h4,p1,p2` (RFC 959, section 4.1.2).
fn six(text: &[u8]) -> Option<(IpAddr, u16)> {
    let mut numbers = text.splitn(6, |byte| *byte == b',').map(|part| {
        let part = part.trim_ascii();
        let digits = part.iter().take_while(|byte| byte.is_ascii_digit()).count();
        number(part.get(..digits)?).and_then(|number| u8::try_from(number).ok())
    });
    let mut next = || numbers.next().flatten();
    let address = Ipv4Addr::new(next()?, next()?, next()?, next()?);
    let port = u16::from_be_bytes([next()?, next()?]);
    (port != 0).then_some((address.into(), port))
}

/// `|1|132.235.1.2|6275|` (RFC 2428, section 2); any character may stand for the bars.
fn extended(text: &[u8]) -> Option<SocketAddr> {
    let mark = text.first()?;
    let mut parts = text.split(|byte| byte == mark).skip(2);
    let address: IpAddr = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
    let port = u16::try_from(number(parts.next()?)?).ok()?;
    (port != 0).then_some((address, port).into())
}

/// `Opening BINARY mode data connection for name (68 bytes).`: no standard, but what servers say.
fn announced(text: &[u8]) -> Option<u64> {
    let at = text.iter().rposition(|byte| *byte == b'(')?;
    let inner = text.get(at + 1..)?;
    let digits = inner.iter().take_while(|byte| byte.is_ascii_digit()).count();
    inner.get(digits..)?.trim_ascii_start().starts_with(b"byte").then_some(())?;
    number(inner.get(..digits)?)
}

fn number(digits: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
    digits.parse().ok()
}

/// A data connection: one side's whole stream is one file, or nothing of interest.
#[derive(Debug)]
pub(crate) struct Data {
    flow: Flow,
    promise: Arc<Promise>,
    state: State,
}

#[derive(Debug)]
enum State {
    Fresh,
    File(TransferId, Side),
    Listing,
}

impl Data {
    pub(crate) fn new(flow: &Flow, promise: Arc<Promise>) -> Self {
        Self { flow: *flow, promise, state: State::Fresh }
    }

    /// The file that begins with the first byte from a side.
    fn begin(&self, from: Side, at: u64, transfers: &mut Transfers) -> State {
        let promised = self.promise.file.lock().ok().and_then(|file| file.clone());
        let sender = promised.as_ref().and_then(|promised| promised.sender);
        if sender.is_some_and(|sender| sender != self.flow.socket(from).ip())
            && self.flow.client.ip() != self.flow.server.ip()
        {
            return State::Fresh;
        }
        let (path, start, size) = match promised {
            Some(Promised { path: None, .. }) => return State::Listing,
            Some(Promised { path: Some(path), start, size, .. }) => (Some(path), start, size),
            // Asked for before we looked.
            None => (None, 0, None),
        };
        let location = path.as_deref().map(file_name::text);
        let file = FileNamed {
            name: location.as_deref().and_then(file_name::last_part),
            location,
            size,
            // Up to where it goes is known at its end only.
            range: (start > 0).then_some((start, size.unwrap_or(u64::MAX))),
            ..FileNamed::new(from)
        };
        State::File(transfers.begin(file, at, None), from)
    }
}

impl Protocol for Data {
    fn bytes(&mut self, from: Side, at: u64, bytes: &[u8], transfers: &mut Transfers) {
        if matches!(self.state, State::Fresh) {
            self.state = self.begin(from, at, transfers);
        }
        if let State::File(id, sender) = self.state
            && sender == from
        {
            transfers.content(id, at, bytes);
        }
    }

    fn gap(&mut self, from: Side, at: u64, length: u64, transfers: &mut Transfers) {
        if matches!(self.state, State::Fresh) {
            self.state = self.begin(from, at, transfers);
        }
        if let State::File(id, sender) = self.state
            && sender == from
        {
            transfers.lost(id, at, length);
        }
    }

    fn end(&mut self, from: Side, complete: bool, transfers: &mut Transfers) {
        if let State::File(id, sender) = self.state
            && sender == from
        {
            transfers.end(id, complete);
            self.state = State::Listing;
        }
    }

    fn restart(&mut self, transfers: &mut Transfers) {
        if let State::File(id, _) = self.state {
            transfers.end(id, false);
        }
        self.state = State::Fresh;
    }

    fn ahead(&self, from: Side) -> Ahead {
        match self.state {
            State::Fresh => Ahead::Read,
            State::File(_, sender) if sender == from => Ahead::Content { run: None, last: true },
            State::File(..) | State::Listing => Ahead::Idle(None),
        }
    }
}
