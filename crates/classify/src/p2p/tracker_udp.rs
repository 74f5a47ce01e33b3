//! BitTorrent's trackers over UDP (BEP 15).
//!
//! ```text
//! connect    client: u64 0x41727101980, u32 0, u32 transaction          server: u32 0, u32 transaction, u64 id
//! announce   client: u64 id, u32 1, u32 transaction, 20 info-hash, 20 peer id, ... 98 bytes and options
//!            server: u32 1, u32 transaction, u32 interval, u32 leechers, u32 seeders, peers of 6 or 18 bytes
//! scrape     client: u64 id, u32 2, u32 transaction, info-hashes        server: u32 2, u32 transaction, 12 each
//! ```
//! A request to connect has a magic number of 64 bits and is enough to know it. Where it was not seen, a
//! request and an answer with the same transaction are.

use super::{Context, Detection, Match, Protocol, addresses};
use crate::{
    flow::Side,
    hosts::{Hosts, Source},
};
use wire::Reader;

const MAGIC: u64 = 0x0417_2710_1980;

/// The request that waits for its answer.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    asked: Option<(u32, u32)>,
}

/// A request as far as it is needed.
struct Request {
    action: u32,
    transaction: u32,
    port: Option<u16>,
}

fn request(datagram: &[u8]) -> Option<Request> {
    let mut reader = Reader::new(datagram);
    let (id, action, transaction) = (reader.u64()?, reader.u32()?, reader.u32()?);
    let rest = reader.rest().len();
    let port = match action {
        0 if id == MAGIC => None,
        1 if rest >= 82 => {
            let event = u32::from_be_bytes(datagram.get(80..84)?.try_into().ok()?);
            let port = u16::from_be_bytes(datagram.get(96..98)?.try_into().ok()?);
            // BEP 41 puts options behind; 3 is the last event that BEP 15 knows.
            if event > 3 || port == 0 {
                return None;
            }
            Some(port)
        }
        2 if rest > 0 && rest.is_multiple_of(20) && rest <= 74 * 20 => None,
        _ => return None,
    };
    Some(Request { action, transaction, port })
}

/// An answer's action, transaction and body.
fn answer(datagram: &[u8]) -> Option<(u32, u32, &[u8])> {
    let mut reader = Reader::new(datagram);
    let (action, transaction) = (reader.u32()?, reader.u32()?);
    let rest = reader.rest();
    let fits = match action {
        0 => rest.len() == 8,
        1 => rest.len() >= 12,
        2 => rest.len().is_multiple_of(12),
        3 => rest.iter().all(|byte| !byte.is_ascii_control() || *byte == 0),
        _ => false,
    };
    fits.then_some((action, transaction, rest))
}

impl State {
    /// Whether a tracker is asked, or answers.
    pub(super) fn udp(&mut self, from: Side, datagram: &[u8]) -> Detection {
        match from {
            Side::Client => {
                let Some(request) = request(datagram) else { return Detection::No };
                self.asked = Some((request.action, request.transaction));
                if request.action == 0 {
                    return Match::certain(Protocol::TrackerUdp, "request to connect to a tracker");
                }
                Detection::Perhaps
            }
            Side::Server => match (answer(datagram), self.asked) {
                (Some((action, transaction, _)), Some((asked, with)))
                    if transaction == with && (action == asked || action == 3) =>
                {
                    Match::certain(Protocol::TrackerUdp, "a tracker's answer to its request")
                }
                _ => Detection::No,
            },
        }
    }

    /// The port that the client announces and the peers of the answer; whether the answer was read.
    pub(super) fn learn(
        &mut self,
        datagram: &[u8],
        context: &Context<'_>,
        hosts: &mut Hosts,
    ) -> bool {
        if context.from == Side::Client {
            if let Some(request) = request(datagram) {
                self.asked = Some((request.action, request.transaction));
                if let Some(port) = request.port {
                    context.announces(hosts, port, Protocol::TrackerUdp);
                }
            }
            return false;
        }
        let Some((1, transaction, body)) = answer(datagram) else { return false };
        if self.asked != Some((1, transaction)) {
            return false;
        }
        // Interval, leechers and seeders come first.
        let peers = body.get(12..).unwrap_or_default();
        let mut name = |socket| context.names(hosts, socket, Protocol::TrackerUdp, Source::Tracker);
        if context.flow.server.ip().to_canonical().is_ipv4() {
            addresses::compact_v4(peers).for_each(&mut name);
        } else {
            addresses::compact_v6(peers).for_each(&mut name);
        }
        true
    }
}
