//! MSN Messenger (MSNP 8 to 15 as clients and servers spoke it; it never was a standard).
//!
//! Commands are lines of words, the second a number by which a client knows the answer. Some carry as
//! many bytes of payload as their last word says. People talk at switchboard servers by `MSG`, whose
//! payload is MIME: headers, an empty line, a body. Files are offered there in two ways: with headers
//! of their own (`text/x-msmsgsinvite`), or within a protocol of binary packets whose invitation holds
//! name and size in BASE64 ([`slp`]).

mod mime;
mod slp;

use self::{
    mime::Mime,
    slp::{Offered, Packets},
};
use super::{
    Event, Message, Protocol,
    lines::Lines,
    message::{number, text},
};
use crate::flow::Side;

/// Longest line of words.
const LONGEST_LINE: usize = 2048;
/// Longest payload that is looked at, in bytes; servers took 1,664 of a MSG.
const LONGEST_PAYLOAD: usize = 8192;
/// Longest payload that is believed; a longer one is another protocol.
const LONGEST_BELIEVED: usize = 4 << 20;
/// Most others of a session that are known.
const MOST_OTHERS: usize = 20;
/// Commands whose last word is the length of a payload, from either side.
const WITH_PAYLOAD: [&[u8]; 11] =
    [b"MSG", b"UBX", b"UUX", b"UUN", b"UBN", b"ADL", b"RML", b"FQY", b"NOT", b"GCF", b"IPG"];

/// Reads both sides of a connection to a notification or switchboard server.
#[derive(Debug, Default)]
pub(super) struct Msn {
    client: Half,
    server: Half,
    /// The client's name.
    own: String,
    /// The others of a switchboard session.
    others: Vec<String>,
}

/// What one side sends.
#[derive(Debug)]
struct Half {
    lines: Lines,
    /// The command whose payload is being read, and how much of that is to come.
    pending: Option<(Vec<u8>, usize)>,
    payload: Vec<u8>,
    packets: Packets,
    /// The message whose first part was text, when it comes in parts (`Message-ID`, `Chunk`).
    parts: Option<String>,
}

impl Default for Half {
    fn default() -> Self {
        Self {
            lines: Lines::new(LONGEST_LINE),
            pending: None,
            payload: Vec::new(),
            packets: Packets::default(),
            parts: None,
        }
    }
}

impl Msn {
    const fn half(&mut self, side: Side) -> &mut Half {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    pub(super) fn gap(&mut self, side: Side) {
        let half = self.half(side);
        *half = Half::default();
        half.lines.gap();
    }

    pub(super) fn feed(&mut self, side: Side, mut bytes: &[u8], out: &mut Vec<Message>) {
        loop {
            let half = self.half(side);
            if let Some((_, left)) = &mut half.pending {
                let (here, rest) = bytes.split_at(bytes.len().min(*left));
                *left -= here.len();
                let room = LONGEST_PAYLOAD.saturating_sub(half.payload.len());
                half.payload.extend_from_slice(here.get(..room).unwrap_or(here));
                bytes = rest;
                if *left > 0 {
                    return;
                }
                if let Some((command, _)) = half.pending.take() {
                    let payload = std::mem::take(&mut half.payload);
                    self.payload(side, &command, &payload, out);
                }
            }
            if bytes.is_empty() {
                return;
            }
            let (rest, line) = self.half(side).lines.next(bytes);
            bytes = rest;
            if let Some(line) = line {
                self.line(side, line, out);
            }
        }
    }

    fn line(&mut self, side: Side, line: Vec<u8>, out: &mut Vec<Message>) {
        let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
        let word = |index: usize| words.get(index).copied().unwrap_or_default();
        let command = word(0);
        // The server's answer to QRY has no payload; its last word is a number all the same.
        let has_payload =
            WITH_PAYLOAD.contains(&command) || command == b"QRY" && side == Side::Client;
        match (command, side) {
            _ if has_payload => {
                let length = words.last().filter(|_| words.len() > 1).and_then(|it| number(it));
                if let Some(length) = length.filter(|&it| it <= LONGEST_BELIEVED) {
                    self.half(side).pending = Some((line, length));
                }
            }
            // `USR 3 ann@example.net 17262740.1050826919.32308` at a switchboard: the last word lets the
            // client in. `USR 3 TWN I ann@example.net` at a notification server, later `TWN S` with what
            // lets it in, and the server's `USR 4 OK ann@example.net`.
            (b"USR" | b"ANS", Side::Client) => {
                let name = if word(3) == b"I" { word(4) } else { word(2) };
                if name.contains(&b'@') {
                    self.own = text(name);
                }
            }
            (b"USR", Side::Server) if word(2) == b"OK" => self.own = text(word(3)),
            (b"IRO", Side::Server) => self.enter(text(word(4))),
            (b"JOI", Side::Server) => {
                let from = text(word(1));
                self.enter(from.clone());
                out.push(message(side, from, self.own.clone(), Event::Join));
            }
            (b"BYE", Side::Server) => {
                let from = text(word(1));
                self.others.retain(|other| *other != from);
                out.push(message(side, from, self.own.clone(), Event::Leave(String::new())));
            }
            _ => {}
        }
    }

    fn enter(&mut self, name: String) {
        if self.others.len() < MOST_OTHERS && !self.others.contains(&name) {
            self.others.push(name);
        }
    }

    fn payload(&mut self, side: Side, command: &[u8], payload: &[u8], out: &mut Vec<Message>) {
        let mut words = command.split(|&byte| byte == b' ');
        if words.next() != Some(b"MSG") {
            return;
        }
        let (from, to) = match side {
            Side::Client => (self.own.clone(), text(self.others.join(",").as_bytes())),
            Side::Server => (text(words.next().unwrap_or_default()), self.own.clone()),
        };
        let half = self.half(side);
        let mime = Mime::read(payload);
        let event = match mime.kind().as_str() {
            "text/plain" => {
                half.parts = mime.value("message-id").map(text);
                Some(Event::Text(text(&mime.body())))
            }
            // A further part has no type but the number of its whole.
            "" if mime.value("chunk").is_some()
                && half.parts.is_some()
                && half.parts == mime.value("message-id").map(text) =>
            {
                Some(Event::Text(text(&mime.body())))
            }
            "text/x-msmsgsinvite" => invitation(&mime.body()),
            "application/x-msnmsgrp2p" => {
                half.packets.push(&mime.body()).map(|Offered { name, size }| Event::Offer {
                    name,
                    size: Some(size),
                    address: None,
                })
            }
            _ => None,
        };
        out.extend(event.map(|event| message(side, from, to, event)));
    }
}

/// `Invitation-Command: INVITE` of the application that transfers files.
fn invitation(body: &[u8]) -> Option<Event> {
    let fields = Mime::read(body);
    let invites = fields.value("invitation-command").is_some_and(|it| it == b"INVITE");
    let name = fields.value("application-file").filter(|_| invites)?;
    let size = fields.value("application-filesize").and_then(number);
    Some(Event::Offer { name: text(name), size, address: None })
}

fn message(side: Side, from: String, to: String, event: Event) -> Message {
    Message { protocol: Protocol::Msn, side, from, to, event }
}

#[cfg(test)]
mod tests;
