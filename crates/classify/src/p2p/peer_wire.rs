//! BitTorrent's peer wire protocol: BEP 3 (handshake, messages), BEP 10 (extension protocol), BEP 11
//! (peer exchange).
//!
//! ```text
//! 19 "BitTorrent protocol" | 8 reserved | 20 info-hash | 20 peer id | messages: u32 length, u8 code, ...
//! ```
//! The first 20 bytes are enough to know it. After it messages are read as far as they came, for what they
//! reveal peers: an extended handshake has the sender's own port (`p`) and under which code it wants to
//! get peer exchange (`m`, `ut_pex`), messages with that code from the other end list peers.

use super::{
    Context, Detection, Match, Protocol, Streams, addresses, begins, bencode::read_unordered,
};
use crate::{
    flow::Side,
    hosts::{Hosts, Source},
};
use wire::Reader as Bytes;

pub(super) const GREETING: &[u8] = b"\x13BitTorrent protocol";
/// The greeting, reserved bytes, info-hash and peer id.
const HANDSHAKE: usize = 68;
/// Code of an extended message (BEP 10).
const EXTENDED: u8 = 20;

/// Whether one of the ends greets so.
pub(super) fn tcp(streams: Streams<'_>) -> Detection {
    let greets = [streams.client, streams.server].map(|bytes| begins(bytes, GREETING));
    match greets {
        // A server does not greet a client that began differently.
        [Some(true), _] => Match::certain(Protocol::PeerWire, "peer wire handshake"),
        [Some(false), _] => Detection::No,
        [None, Some(true)] => Match::certain(Protocol::PeerWire, "peer wire handshake"),
        [None, Some(false)] => Detection::No,
        [None, None] => Detection::Perhaps,
    }
}

/// Reads the messages after the handshakes.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader {
    /// How far each end's stream was read.
    read: [usize; 2],
    /// The code under which each end wants peer exchange.
    exchange: [Option<u8>; 2],
}

impl Reader {
    /// Reads what came whole since the last time.
    pub(super) fn learn(&mut self, streams: Streams<'_>, context: &Context<'_>, hosts: &mut Hosts) {
        for from in [Side::Client, Side::Server] {
            let bytes = match from {
                Side::Client => streams.client,
                Side::Server => streams.server,
            };
            let context = Context { from, ..*context };
            if self.read[from as usize] == 0 && bytes.len() >= HANDSHAKE {
                self.read[from as usize] = HANDSHAKE;
            }
            while let Some(rest) = bytes.get(self.read[from as usize]..)
                && self.read[from as usize] > 0
                && let mut reader = Bytes::new(rest)
                && let Some(length) = reader.u32()
                && let Some(message) = reader.take(length as usize)
            {
                self.read[from as usize] += 4 + message.len();
                self.message(message, &context, hosts);
            }
        }
    }

    fn message(&mut self, message: &[u8], context: &Context<'_>, hosts: &mut Hosts) {
        let [EXTENDED, code, payload @ ..] = message else { return };
        let Ok((value, _)) = read_unordered(payload) else { return };
        let Some(dict) = value.dict() else { return };
        if *code == 0 {
            // BEP 10: the handshake of the extensions.
            if let Some(port) = dict.integer(b"p").and_then(|port| u16::try_from(port).ok()) {
                context.announces(hosts, port, Protocol::PeerWire);
            }
            let wanted = dict.dict(b"m").and_then(|codes| codes.integer(b"ut_pex"));
            self.exchange[context.from as usize] = wanted.and_then(|code| u8::try_from(code).ok());
        } else if self.exchange[context.from.other() as usize] == Some(*code) {
            // BEP 11.
            let bytes = |key| dict.bytes(key).unwrap_or_default();
            let peers = addresses::compact_v4(bytes(b"added"))
                .chain(addresses::compact_v6(bytes(b"added6")));
            for peer in peers {
                context.names(hosts, peer, Protocol::PeerWire, Source::PeerExchange);
            }
        }
    }
}
