//! Internet Relay Chat (RFC 2812; CTCP and DCC as clients have agreed on them).
//!
//! A server does not send a client its own messages back, so these are read from the client's side,
//! and those of others from the server's. Who joins, leaves or is renamed is believed to the server
//! alone: a client may ask for what it does not get.

use super::{
    Event, Message, Protocol,
    lines::Lines,
    message::{number, text},
};
use classify::flow::Side;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Longest line: 8,191 bytes of tags (IRCv3) and 512 of message (section 2.3).
const LONGEST: usize = 8191 + 512;
/// Most parameters of a message (section 2.3).
const MOST_PARAMETERS: usize = 15;
/// The server agrees to begin TLS on this connection.
const RPL_STARTTLS: &[u8] = b"670";
/// Commands to services and bots that carry a password.
const SECRET_WORDS: [&str; 14] = [
    "identify", "id", "login", "auth", "authserv", "nickserv", "register", "ghost", "recover",
    "regain", "release", "pass", "password", "set",
];
/// A command with a password that went astray into a channel has no more words than this.
const MOST_WORDS_ASTRAY: usize = 3;

/// Reads both sides of a connection between a client and a server.
#[derive(Debug)]
pub(super) struct Irc {
    client: Lines,
    server: Lines,
    /// What the client is called.
    nick: Vec<u8>,
    over: bool,
}

/// The parts of a message (section 2.3.1).
#[derive(Debug, Default)]
struct Parts<'a> {
    prefix: &'a [u8],
    command: &'a [u8],
    parameters: Vec<&'a [u8]>,
}

impl<'a> Parts<'a> {
    fn of(line: &'a [u8]) -> Self {
        let mut rest = line;
        let mut parts = Self::default();
        if rest.starts_with(b"@") {
            rest = word(rest).1;
        }
        if let Some(prefixed) = rest.strip_prefix(b":") {
            (parts.prefix, rest) = word(prefixed);
        }
        (parts.command, rest) = word(rest);
        while !rest.is_empty() {
            if let Some(last) = rest.strip_prefix(b":") {
                parts.parameters.push(last);
                break;
            }
            if parts.parameters.len() + 1 == MOST_PARAMETERS {
                parts.parameters.push(rest);
                break;
            }
            let (parameter, more) = word(rest);
            parts.parameters.push(parameter);
            rest = more;
        }
        parts
    }

    fn parameter(&self, index: usize) -> &'a [u8] {
        self.parameters.get(index).copied().unwrap_or_default()
    }

    /// The nick of who sent it.
    fn nick(&self) -> &'a [u8] {
        self.prefix.split(|&byte| byte == b'!' || byte == b'@').next().unwrap_or_default()
    }

    /// Whether a server sent it by itself.
    fn is_of_server(&self) -> bool {
        let of_person = self.prefix.iter().any(|&byte| byte == b'!' || byte == b'@');
        !of_person && (self.prefix.is_empty() || self.prefix.contains(&b'.'))
    }
}

/// The first word and what follows the blanks after it.
fn word(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|&byte| byte == b' ').unwrap_or(bytes.len());
    let (word, rest) = bytes.split_at(end);
    (word, rest.trim_ascii_start())
}

impl Irc {
    pub(super) const fn new() -> Self {
        Self {
            client: Lines::new(LONGEST),
            server: Lines::new(LONGEST),
            nick: Vec::new(),
            over: false,
        }
    }

    pub(super) const fn is_over(&self) -> bool {
        self.over
    }

    const fn lines(&mut self, side: Side) -> &mut Lines {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    pub(super) fn gap(&mut self, side: Side) {
        self.lines(side).gap();
    }

    pub(super) fn feed(&mut self, side: Side, mut bytes: &[u8], out: &mut Vec<Message>) {
        while !bytes.is_empty() && !self.over {
            let (rest, line) = self.lines(side).next(bytes);
            bytes = rest;
            if let Some(line) = line {
                let parts = Parts::of(&line);
                match side {
                    Side::Client => self.of_client(&parts, out),
                    Side::Server => self.of_server(&parts, out),
                }
            }
        }
    }

    fn of_client(&mut self, parts: &Parts<'_>, out: &mut Vec<Message>) {
        if is(parts.command, "NICK") && self.nick.is_empty() {
            self.rename(parts.parameter(0));
        } else if let Some(event) = chat_event(parts, Side::Client) {
            let (from, to) = (text(&self.nick), text(parts.parameter(0)));
            out.push(message(Side::Client, from, to, event));
        }
    }

    fn rename(&mut self, nick: &[u8]) {
        self.nick = nick.get(..nick.len().min(super::MAX_TEXT)).unwrap_or_default().to_vec();
    }

    fn of_server(&mut self, parts: &Parts<'_>, out: &mut Vec<Message>) {
        let from = text(parts.prefix);
        let first = parts.parameter(0);
        let mut say = |to: &[u8], event| {
            out.push(message(Side::Server, from.clone(), text(to), event));
        };
        if parts.command == b"001" && !first.is_empty() {
            // Welcome (section 5.1): the nick that the server lets the client have.
            self.rename(first);
        } else if parts.command == RPL_STARTTLS {
            self.over = true;
            say(b"", Event::Encrypted);
        } else if parts.is_of_server() {
            // A server's own messages are from nobody.
        } else if is(parts.command, "NICK") {
            if parts.nick() == self.nick {
                self.rename(first);
            }
            say(b"", Event::Rename(text(first)));
        } else if is(parts.command, "JOIN") {
            for channel in first.split(|&byte| byte == b',') {
                say(channel, Event::Join);
            }
        } else if is(parts.command, "PART") {
            for channel in first.split(|&byte| byte == b',') {
                say(channel, Event::Leave(text(parts.parameter(1))));
            }
        } else if is(parts.command, "QUIT") {
            say(b"", Event::Leave(text(first)));
        } else if is(parts.command, "KICK") {
            let reason = format!("kicked by {from}: {}", text(parts.parameter(2)));
            let event = Event::Leave(text(reason.as_bytes()));
            out.push(message(Side::Server, text(parts.parameter(1)), text(first), event));
        } else if is(parts.command, "TOPIC") {
            say(first, Event::Topic(text(parts.parameter(1))));
        } else if parts.nick() == self.nick && !self.nick.is_empty() {
            // The client's own message comes back (IRCv3 echo-message); it was read when it was sent.
        } else if let Some(event) = chat_event(parts, Side::Server) {
            say(first, event);
        }
    }
}

/// Commands are of letters of either case.
fn is(command: &[u8], name: &str) -> bool {
    command.eq_ignore_ascii_case(name.as_bytes())
}

fn message(side: Side, from: String, to: String, event: Event) -> Message {
    Message { protocol: Protocol::Irc, side, from, to, event }
}

/// What a PRIVMSG or NOTICE says (section 3.3).
fn chat_event(parts: &Parts<'_>, side: Side) -> Option<Event> {
    let notice = is(parts.command, "NOTICE");
    if !notice && !is(parts.command, "PRIVMSG") {
        return None;
    }
    let (to, words) = (parts.parameter(0), parts.parameter(1));
    // In both directions: the client's words, and services that repeat them.
    if is_service(if side == Side::Client { to } else { parts.nick() }) || is_secret(to, words) {
        return None;
    }
    let Some(tagged) = words.strip_prefix(b"\x01") else {
        let words = text(words);
        return Some(if notice { Event::Notice(words) } else { Event::Text(words) });
    };
    let tagged = tagged.strip_suffix(b"\x01").unwrap_or(tagged);
    let (tag, rest) = word(tagged);
    if is(tag, "ACTION") {
        Some(Event::Action(text(rest)))
    } else if is(tag, "DCC") && !notice {
        offer(rest)
    } else {
        // Questions and answers between programs.
        None
    }
}

/// `SEND name address port [size]` or `CHAT chat address port`; a name with blanks is in quotes. Who cannot
/// be connected to offers port 0 and a token after the size; the answer repeats both with the port of who takes
/// the file.
fn offer(words: &[u8]) -> Option<Event> {
    let (kind, rest) = word(words);
    let (name, rest) = match rest.strip_prefix(b"\"") {
        Some(quoted) => {
            let end = quoted.iter().position(|&byte| byte == b'"')?;
            let (name, after) = quoted.split_at(end);
            (name, after.get(1..).unwrap_or_default().trim_ascii_start())
        }
        None => word(rest),
    };
    let (host, rest) = word(rest);
    let (port, rest) = word(rest);
    let (size, token) = word(rest);
    let port = number(port).filter(|&port| port != 0);
    let address = host_of(host).zip(port).map(|(host, port)| SocketAddr::new(host, port));
    if is(kind, "SEND") || is(kind, "TSEND") {
        let (name, size) = (text(name), number(size));
        Some(match address {
            Some(address) if !token.is_empty() => Event::Await { name, size, address },
            _ => Event::Offer { name, size, address },
        })
    } else if is(kind, "CHAT") {
        address.map(Event::Direct)
    } else {
        None
    }
}

/// An address of version 4 is a decimal number, one of version 6 is written as usual.
fn host_of(host: &[u8]) -> Option<IpAddr> {
    match number::<u32>(host) {
        Some(bits) => Some(Ipv4Addr::from_bits(bits).into()),
        None => std::str::from_utf8(host).ok()?.parse().ok(),
    }
}

/// Programs of the network that keep passwords: `NickServ`, `AuthServ@services.example`, `Q@CServe`.
fn is_service(name: &[u8]) -> bool {
    let mut parts = name.split(|&byte| byte == b'@');
    let nick = parts.next().unwrap_or_default().to_ascii_lowercase();
    nick.ends_with(b"serv")
        || nick.ends_with(b"services")
        || (nick.len() == 1 && parts.next().is_some())
        || matches!(nick.as_slice(), b"q" | b"x" | b"ns" | b"cs")
}

/// A command with a password, to whomever, and one in a channel where its author had meant a service.
fn is_secret(to: &[u8], words: &[u8]) -> bool {
    let mut rest = words.split(u8::is_ascii_whitespace).filter(|it| !it.is_empty());
    let first = rest.next().unwrap_or_default().to_ascii_lowercase();
    let bare = first.strip_prefix(b"/").or(first.strip_prefix(b"!")).or(first.strip_prefix(b"."));
    let command = bare.unwrap_or(&first);
    let is_command = SECRET_WORDS.iter().any(|it| it.as_bytes() == command) || command == b"msg";
    let more = rest.take(MOST_WORDS_ASTRAY).count();
    let to_channel = to.first().is_some_and(|byte| b"#&+!".contains(byte));
    is_command && more > 0 && (!to_channel || bare.is_some() || more < MOST_WORDS_ASTRAY)
}

#[cfg(test)]
mod tests;
