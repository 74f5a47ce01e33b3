//! BitTorrent's trackers over HTTP: BEP 3, BEP 7 (IPv6), BEP 23 (compact lists), BEP 48 (scrape).
//!
//! An announcement is a GET whose query has an `info_hash` of 20 bytes, a `peer_id` of 20 bytes and a
//! `port`; a scrape is a GET for a path with `scrape` and an `info_hash`. Either is enough to know it. The
//! answer is a bencoded dictionary whose `peers` is a compact list or a list of dictionaries.

use super::{
    Context, Detection, Match, Protocol, Streams, addresses, begins, bencode,
    http::{self, Message},
    urlencoding,
};
use crate::{
    flow::Side,
    hosts::{Hosts, Source},
};
use std::net::{IpAddr, SocketAddr};

/// Whether the client asks a tracker.
pub(super) fn tcp(streams: Streams<'_>) -> Detection {
    match begins(streams.client, b"GET ") {
        Some(false) => return Detection::No,
        None if streams.server.is_empty() => return Detection::Perhaps,
        None => return Detection::No,
        Some(true) => {}
    }
    let Some(end) = streams.client.iter().position(|byte| *byte == b'\r') else {
        return Detection::Perhaps;
    };
    let line = streams.client.get(..end).unwrap_or_default();
    match http::target(line, "GET").and_then(Request::read) {
        Some(Request::Announce { .. }) => {
            Match::certain(Protocol::TrackerHttp, "announcement to a tracker")
        }
        Some(Request::Scrape) => Match::certain(Protocol::TrackerHttp, "scrape of a tracker"),
        None => Detection::No,
    }
}

/// What is asked of a tracker.
enum Request {
    Announce { port: u16 },
    Scrape,
}

impl Request {
    fn read(target: &[u8]) -> Option<Self> {
        let at = target.iter().position(|byte| *byte == b'?')?;
        let (path, query) = (target.get(..at)?, target.get(at + 1..)?);
        let twenty = |name: &[u8]| {
            urlencoding::pairs(query).any(|(found, value)| {
                found == name && urlencoding::decoded_length(value) == Some(20)
            })
        };
        if !twenty(b"info_hash") {
            return None;
        }
        let port = urlencoding::pairs(query).find(|(name, _)| *name == b"port");
        let port = port.and_then(|(_, port)| std::str::from_utf8(port).ok()?.parse().ok());
        match port {
            Some(port) if twenty(b"peer_id") => Some(Self::Announce { port }),
            _ => path.windows(6).any(|window| window == b"scrape").then_some(Self::Scrape),
        }
    }
}

/// The port that the client announces and the peers of the answer; whether the answer was read.
pub(super) fn learn(streams: Streams<'_>, context: &Context<'_>, hosts: &mut Hosts) -> bool {
    if context.from == Side::Client {
        let request = streams.client.split(|byte| *byte == b'\r').next();
        let request = request.and_then(|line| http::target(line, "GET")).and_then(Request::read);
        if let Some(Request::Announce { port }) = request {
            context.announces(hosts, port, Protocol::TrackerHttp);
        }
        return false;
    }
    let Some(answer) = Message::read(streams.server).filter(Message::is_ok) else { return false };
    let content = answer.content();
    let Ok((value, _)) = bencode::read_unordered(&content) else { return false };
    let Some(dict) = value.dict() else { return true };
    let mut name = |socket| context.names(hosts, socket, Protocol::TrackerHttp, Source::Tracker);
    match dict.get(b"peers") {
        Some(bencode::Value::Bytes(peers)) => addresses::compact_v4(peers).for_each(&mut name),
        Some(bencode::Value::List(peers)) => {
            peers.iter().filter_map(|peer| socket(peer.dict()?)).for_each(&mut name);
        }
        _ => {}
    }
    addresses::compact_v6(dict.bytes(b"peers6").unwrap_or_default()).for_each(&mut name);
    true
}

/// A peer of a list that is not compact; `ip` may be a name, which says nothing here.
fn socket(peer: bencode::Dict<'_>) -> Option<SocketAddr> {
    let ip: IpAddr = std::str::from_utf8(peer.bytes(b"ip")?).ok()?.parse().ok()?;
    Some(SocketAddr::new(ip, u16::try_from(peer.integer(b"port")?).ok()?))
}
