//! Connections that are carried on by a proxy: CONNECT of HTTP/1 (RFC 9110, section 9.3.6), SOCKS 5
//! (RFC 1928, RFC 1929) and SOCKS 4. Behind what client and proxy say first come the bytes of the two ends.

use super::{Streams, begins, http::Message};
use crate::flow::Side;
use wire::Reader;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proxy {
    /// There is none, or it refused.
    No,
    /// It may be one, or has not answered.
    Perhaps,
    /// The ends' own bytes begin so far behind the client's and the proxy's first ones.
    Carries([usize; 2]),
}

/// Bytes of a dialogue; `None` is what may still come, `Some(None)` what does not fit.
type Step<T> = Option<Option<T>>;

pub(super) fn read(streams: Streams<'_>) -> Proxy {
    let carried = match streams.client.first() {
        None if streams.server.is_empty() => return Proxy::Perhaps,
        Some(b'C') => connect(streams),
        Some(5) => socks5(streams),
        Some(4) => socks4(streams),
        _ => Some(None),
    };
    match carried {
        None => Proxy::Perhaps,
        Some(None) => Proxy::No,
        Some(Some(at)) => Proxy::Carries(at),
    }
}

fn connect(streams: Streams<'_>) -> Step<[usize; 2]> {
    if !begins(streams.client, b"CONNECT ")? {
        return Some(None);
    }
    let request = Message::read(streams.client)?;
    let asked = streams.client.len() - request.body.len();
    let answer = Message::read(streams.server)?;
    let answered = streams.server.len() - answer.body.len();
    Some(answer.is_ok().then_some([asked, answered]))
}

/// What both say in turn, read as far as it came.
struct Dialogue<'a> {
    sides: [Reader<'a>; 2],
}

impl Dialogue<'_> {
    fn take(&mut self, from: Side, length: usize) -> Option<&[u8]> {
        self.sides[from as usize].take(length)
    }

    fn byte(&mut self, from: Side) -> Option<u8> {
        self.sides[from as usize].u8()
    }

    /// An address of SOCKS 5 behind its type, and a port: whether the type is known.
    fn address(&mut self, from: Side) -> Option<bool> {
        let length = match self.byte(from)? {
            1 => 4,
            3 => usize::from(self.byte(from)?),
            4 => 16,
            _ => return Some(false),
        };
        self.take(from, length + 2).map(|_| true)
    }
}

fn socks5(streams: Streams<'_>) -> Step<[usize; 2]> {
    let (client, server) = (Side::Client, Side::Server);
    let mut talk = Dialogue { sides: [Reader::new(streams.client), Reader::new(streams.server)] };
    talk.byte(client)?;
    let methods = usize::from(talk.byte(client)?);
    talk.take(client, methods)?;
    let [5, method] = *talk.take(server, 2)? else { return Some(None) };
    match method {
        0 => {}
        2 => {
            // RFC 1929: version, name, password.
            talk.byte(client)?;
            for _ in 0..2 {
                let length = usize::from(talk.byte(client)?);
                talk.take(client, length)?;
            }
            let [_, 0] = *talk.take(server, 2)? else { return Some(None) };
        }
        _ => return Some(None),
    }
    for (from, second) in [(client, 1), (server, 0)] {
        let head = talk.take(from, 3)?;
        if head != [5, second, 0] || !talk.address(from)? {
            return Some(None);
        }
    }
    let [asked, answered] = talk.sides.map(|side| side.rest().len());
    Some(Some([streams.client.len() - asked, streams.server.len() - answered]))
}

fn socks4(streams: Streams<'_>) -> Step<[usize; 2]> {
    let mut reader = Reader::new(streams.client);
    let head = reader.take(8)?;
    if head.get(1) != Some(&1) {
        return Some(None);
    }
    // A name of the user; with an address of 0.0.0.x one of the host behind it (SOCKS 4A).
    let names = if matches!(head.get(4..8), Some([0, 0, 0, 1..=255])) { 2 } else { 1 };
    for _ in 0..names {
        let end = reader.rest().iter().position(|byte| *byte == 0);
        let Some(end) = end else {
            return (reader.rest().len() > 512).then_some(None);
        };
        reader.take(end + 1)?;
    }
    let asked = streams.client.len() - reader.rest().len();
    let answer = Reader::new(streams.server).take(8)?;
    Some(answer.starts_with(&[0, 90]).then_some([asked, 8]))
}
