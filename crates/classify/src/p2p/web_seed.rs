//! BitTorrent's web seeds: BEP 17 (a script with `info_hash`, `piece` and `ranges` in its query) and
//! BEP 19 (a plain file server).
//!
//! A request of BEP 17 identifies itself. One of BEP 19 is that of any other client for a part of a file:
//! it is likely if the user agent is a program that does nothing but BitTorrent, or if it is one that
//! also does other things and its host was seen to speak BitTorrent.

use super::{
    Detection, Match, Protocol, Streams,
    http::{self, Message},
    urlencoding,
};
use crate::label::Certainty;

/// How their user agents begin, in lower case.
const CLIENTS: [&str; 14] = [
    "transmission/",
    "libtorrent/",
    "libtorrent ",
    "qbittorrent/",
    "utorrent/",
    "utorrentmac/",
    "bittorrent/",
    "deluge/",
    "deluge ",
    "rtorrent/",
    "azureus ",
    "vuze ",
    "biglybt ",
    "webtorrent/",
];
/// Programs that load by BitTorrent among others.
const LOADERS: [&str; 3] = ["aria2/", "ktorrent/", "xunlei"];

/// Whether the client asks a web seed; `spoke` says if it was seen to speak BitTorrent.
pub(super) fn tcp(streams: Streams<'_>, spoke: bool) -> Detection {
    if !b"GET ".starts_with(streams.client.get(..4).unwrap_or(streams.client)) {
        return Detection::No;
    }
    let Some(request) = Message::read(streams.client) else {
        let waits = streams.server.is_empty();
        return if waits { Detection::Perhaps } else { Detection::No };
    };
    let Some(target) = http::target(request.line, "GET") else { return Detection::No };
    if let Some(at) = target.iter().position(|byte| *byte == b'?') {
        let query = target.get(at + 1..).unwrap_or_default();
        let value = |name: &[u8]| urlencoding::pairs(query).find(|(key, _)| *key == name);
        let hash = value(b"info_hash").and_then(|(_, hash)| urlencoding::decoded_length(hash));
        let number = |value: &[u8]| !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        if hash == Some(20) && value(b"piece").is_some_and(|(_, piece)| number(piece)) {
            return Match::certain(Protocol::WebSeed, "request for a piece of a torrent");
        }
    }
    let ranged = request.field("Range").is_some_and(|range| range.starts_with(b"bytes="));
    let agent = request.field("User-Agent").unwrap_or_default().to_ascii_lowercase();
    let is = |names: &[&str]| names.iter().any(|name| agent.starts_with(name.as_bytes()));
    if ranged && (is(&CLIENTS) || (spoke && is(&LOADERS))) {
        return Detection::Yes(Match {
            protocol: Protocol::WebSeed,
            certainty: Certainty::Likely,
            reason: "part of a file requested by a BitTorrent client".into(),
        });
    }
    Detection::No
}
