//! BitTorrent's distributed hash table (BEP 5, BEP 32, BEP 43, BEP 51).
//!
//! A datagram is one bencoded dictionary: `t` transaction, `y` kind (`q` query, `r` answer, `e` error),
//! and of a query `q` its name and `a` its arguments with the sender's `id` of 20 bytes, of an answer `r`
//! with an `id`. One whole dictionary of that form is enough to know it.

use super::{
    Context, Detection, Match, Protocol, addresses,
    bencode::{Dict, Kind, read_unordered},
};
use crate::hosts::{Hosts, Source};

/// How messages begin whose end was not copied: the arguments or answers with their id, or the address
/// of who asked (BEP 42).
const BEGINNINGS: [&[u8]; 4] = [b"d1:ad2:id20:", b"d1:rd2:id20:", b"d2:ip6:", b"d2:ip18:"];

/// Whether a datagram, copied whole or not, is a message of the DHT.
pub(super) fn udp(datagram: &[u8], whole: bool) -> Detection {
    if !whole {
        let cut = read_unordered(datagram).is_err_and(|error| error.kind == Kind::Cut);
        let begins = BEGINNINGS.iter().any(|beginning| datagram.starts_with(beginning));
        return if cut && begins && datagram.len() > 40 {
            Match::certain(Protocol::Dht, "beginning of a DHT message")
        } else {
            Detection::No
        };
    }
    match message(datagram) {
        Some(_) => Match::certain(Protocol::Dht, "DHT message"),
        None => Detection::No,
    }
}

/// A query's arguments with its name, or an answer's values.
enum Message<'a> {
    Query(&'a [u8], Dict<'a>),
    Answer(Dict<'a>),
    Error,
}

fn message(datagram: &[u8]) -> Option<Message<'_>> {
    if !datagram.starts_with(b"d") || !datagram.ends_with(b"e") {
        return None;
    }
    let (value, end) = read_unordered(datagram).ok()?;
    let dict = value.dict().filter(|_| end == datagram.len())?;
    dict.bytes(b"t").filter(|transaction| transaction.len() <= 32)?;
    let with_id = |key| dict.dict(key).filter(|d: &Dict<'_>| is_id(d.bytes(b"id")));
    match dict.bytes(b"y")? {
        b"q" => Some(Message::Query(dict.bytes(b"q")?, with_id(b"a")?)),
        b"r" => Some(Message::Answer(with_id(b"r")?)),
        b"e" => {
            let mut error = dict.list(b"e")?.iter();
            error.next()?.integer()?;
            error.next()?.bytes()?;
            Some(Message::Error)
        }
        _ => None,
    }
}

fn is_id(id: Option<&[u8]>) -> bool {
    id.is_some_and(|id| id.len() == 20)
}

/// Peers and nodes that an answer names, and the port that a query announces.
pub(super) fn learn(datagram: &[u8], context: &Context<'_>, hosts: &mut Hosts) {
    match message(datagram) {
        Some(Message::Query(b"announce_peer", arguments)) => {
            let implied = arguments.integer(b"implied_port").is_some_and(|implied| implied != 0);
            let port = match arguments.integer(b"port") {
                Some(port) if !implied => u16::try_from(port).unwrap_or_default(),
                _ => context.flow.socket(context.from).port(),
            };
            context.announces(hosts, port, Protocol::Dht);
        }
        Some(Message::Answer(answer)) => {
            let mut name = |socket: &[u8], source| {
                let socket = match socket.len() {
                    6 => addresses::compact_v4(socket).next(),
                    18 => addresses::compact_v6(socket).next(),
                    _ => None,
                };
                if let Some(socket) = socket {
                    context.names(hosts, socket, Protocol::Dht, source);
                }
            };
            let values = answer.list(b"values").into_iter();
            let values = values.flat_map(|values| values.iter()).filter_map(|peer| peer.bytes());
            values.for_each(|peer| name(peer, Source::Dht));
            // Compact node information: an id of 20 bytes before the socket.
            let nodes = |key, size| answer.bytes(key).unwrap_or_default().chunks_exact(size);
            let nodes = nodes(b"nodes", 26).chain(nodes(b"nodes6", 38));
            let nodes = nodes.filter_map(|node| node.get(20..));
            nodes.for_each(|node| name(node, Source::DhtNode));
        }
        _ => {}
    }
}
