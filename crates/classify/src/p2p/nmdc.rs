//! Direct Connect's first protocol, NMDC: commands of text, `$Name arguments|`.
//!
//! A hub greets with `$Lock lock Pk=version|`; peers greet each other with `$MyNick name|$Lock ...|`.
//! Either is enough to know it. Hubs pass on commands to connect (`$ConnectToMe name address:port|`) and
//! searches (`$Search address:port ...`), which name peers; answers come by UDP as `$SR`.

use super::{Context, Detection, Match, Protocol, Streams, begins};
use crate::{
    flow::Side,
    hosts::{Hosts, Source},
};
use std::net::SocketAddr;

/// Whether the ends speak it.
pub(super) fn tcp(streams: Streams<'_>) -> Detection {
    let mut perhaps = streams.client.is_empty() && streams.server.is_empty();
    for bytes in [streams.client, streams.server] {
        if bytes.is_empty() {
            continue;
        }
        match greeting(bytes) {
            Detection::No => {}
            Detection::Perhaps => perhaps = true,
            yes => return yes,
        }
    }
    // A hub may be called by one who waits for its greeting.
    if perhaps { Detection::Perhaps } else { Detection::No }
}

fn greeting(bytes: &[u8]) -> Detection {
    let lock = match (begins(bytes, b"$Lock "), begins(bytes, b"$MyNick ")) {
        (Some(true), _) => bytes,
        (_, Some(true)) => {
            let Some(end) = bytes.iter().take(256).position(|byte| *byte == b'|') else {
                return if bytes.len() < 256 { Detection::Perhaps } else { Detection::No };
            };
            match begins(bytes.get(end + 1..).unwrap_or_default(), b"$Lock ") {
                Some(true) => return Match::certain(Protocol::Nmdc, "greeting of a peer"),
                Some(false) => return Detection::No,
                None => return Detection::Perhaps,
            }
        }
        (None, _) | (_, None) => return Detection::Perhaps,
        _ => return Detection::No,
    };
    match lock.iter().position(|byte| *byte == b'|') {
        Some(_) => Match::certain(Protocol::Nmdc, "greeting of a hub"),
        None if bytes.len() < 2048 => Detection::Perhaps,
        None => Detection::No,
    }
}

/// Whether a datagram is an answer to a search, or a search:
/// `$SR name path\x05size free/total\x05hub (address:port)|`.
pub(super) fn udp(datagram: &[u8]) -> Detection {
    let text = datagram.strip_suffix(b"|").unwrap_or(datagram);
    let result = text.strip_prefix(b"$SR ").is_some_and(|text| {
        let separators = text.iter().filter(|byte| **byte == 5).count();
        let hub = text.ends_with(b")") && text.contains(&b'(');
        (1..=3).contains(&separators) && hub && text.contains(&b'/')
    });
    if result {
        return Match::certain(Protocol::Nmdc, "answer to a search");
    }
    Detection::No
}

/// Peers that commands name, as far as they came whole.
pub(super) fn learn(
    read: &mut [usize; 2],
    streams: Streams<'_>,
    context: &Context<'_>,
    hosts: &mut Hosts,
) {
    for (from, bytes) in [(Side::Client, streams.client), (Side::Server, streams.server)] {
        let context = Context { from, ..*context };
        while let Some(rest) = bytes.get(read[from as usize]..)
            && let Some(end) = rest.iter().position(|byte| *byte == b'|')
        {
            read[from as usize] += end + 1;
            let Some(socket) = rest.get(..end).and_then(named) else { continue };
            context.names(hosts, socket, Protocol::Nmdc, Source::Hub);
        }
    }
}

/// The socket in a command.
fn named(command: &[u8]) -> Option<SocketAddr> {
    let command = std::str::from_utf8(command).ok()?;
    let mut words = command.split(' ');
    let socket = match words.next()? {
        "$ConnectToMe" => words.next_back()?,
        "$Search" => words.next()?,
        _ => return None,
    };
    // A letter behind the port says that the connection is to be encrypted.
    socket.trim_end_matches(['N', 'S', 'R', 'O']).parse().ok()
}
