//! Flows that show nothing but random bytes: BitTorrent's message stream encryption and eMule's
//! obfuscation, found by their shape together with the evidence of the hosts.
//!
//! ```text
//! MSE            client: 96 public key, 0-512 random      server: 96 public key, 0-512 random
//!                client: 40 hashes, 8 + 4 + 2 encrypted ...
//! eMule, server  client: 1, 96 public key, 0-15 random    server: 96, 7, 0-15 random (more in theory)
//! eMule, clients client: 12, 0-255 random                 server: 6, 0-255 random
//! ```
//! Each end waits for the other's message, so a flight (what one end sends before the other answers) is a
//! message, and its length is known from the wire also where bytes were not copied. Nothing in them can be
//! checked, for the keys are not known here: a shape alone never makes a label. With it one of these does:
//!
//! 1. the called socket was named as a peer's (by a tracker, the DHT, another peer, ..., or its owner), to
//!    the caller or by more than one word;
//! 2. both ends spoke BitTorrent plainly elsewhere, nearly all calls with random bytes of either had the
//!    shape, and all between the two had;
//! 3. one end did, the call is its first to that socket, which is no well-known port, and nearly all hosts
//!    that it called with random bytes were called in the shape;
//! 4. as 3, without a word of BitTorrent heard, if many hosts were called so;
//! 5. eMule's shape with a server, which is narrow, if one end spoke eDonkey plainly, or any random
//!    datagram between two ends that did.
//!
//! A tunnel calls one server again and again, which 3 and 4 do not take for a peer, and in all lengths, which
//! ends 2. What is found so is only likely, and its reason says by what.

use super::{Application, Match, Protocol, Streams};
use crate::{
    flow::{Flow, Side, Transport},
    hosts::{Calls, Hosts},
    label::Certainty,
};
use std::{borrow::Cow, net::SocketAddr, ops::RangeInclusive};

/// Public key and padding of MSE.
const MSE: RangeInclusive<u32> = 96..=608;
/// The least that an MSE client sends third: hashes, verification, methods, lengths of nothing.
const MSE_THIRD: u32 = 56;
/// A client's and a server's first message of eMule.
const EMULE_SERVER: (RangeInclusive<u32>, RangeInclusive<u32>) = (97..=112, 103..=118);
/// The first messages of two clients of eMule.
const EMULE_CLIENTS: (RangeInclusive<u32>, RangeInclusive<u32>) = (12..=267, 6..=261);
/// First bytes that eMule's obfuscation avoids over TCP: those of its plain protocols.
const EMULE_TCP: [u8; 3] = [0xe3, 0xc5, 0xd4];
/// The same over UDP, where Kad's and two reserved ones join them.
const EMULE_UDP: [u8; 7] = [0xe3, 0xc5, 0xd4, 0xe4, 0xe5, 0xa3, 0xb2];

/// Calls to other hosts in the shape after which a host that spoke BitTorrent is believed to make another.
const SOME: usize = 4;
/// The same of a host of which nothing was heard.
const MANY: usize = 10;

/// What each end sent before the other answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights {
    lengths: [u32; 3],
    last: Option<Side>,
    count: usize,
    judged: bool,
}

impl Flights {
    /// An end sent more bytes in order.
    pub(super) fn add(&mut self, from: Side, bytes: u64) {
        if self.last != Some(from) {
            self.last = Some(from);
            self.count += 1;
        }
        if let Some(length) = self.lengths.get_mut(self.count - 1) {
            *length = length.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
    }

    /// The bytes of the one end that has spoken begin earlier than was thought: they are counted again.
    pub(super) fn anew(&mut self) {
        if self.count <= 1 {
            *self = Self::default();
        }
    }

    /// Whether the flow may still be found to hide; `false` ends the search.
    pub(super) const fn waits(&self) -> bool {
        !self.judged
    }

    /// Looks at the flow once when its client speaks for the second time, or when it ends before.
    pub(super) fn judge(
        &mut self,
        flow: &Flow,
        streams: Streams<'_>,
        ends: bool,
        hosts: &mut Hosts,
        now_ns: u64,
    ) -> Option<Match> {
        if self.judged || self.count == 0 {
            return None;
        }
        let [first, second, third] = self.lengths;
        let called_began = (self.last == Some(Side::Server)) == (self.count % 2 == 1);
        if called_began || !looks_random(streams.client, first) {
            self.judged = true;
            return None;
        }
        let answered = self.count >= 2;
        let mse = MSE.contains(&first) && (!answered || MSE.contains(&second));
        // A third message of MSE may come in several segments.
        let comes = self.count == 3 && mse && third < MSE_THIRD;
        if (self.count < 3 || comes) && !ends {
            return None;
        }
        self.judged = true;
        if answered && !looks_random(streams.server, second) {
            return None;
        }
        let (client, server) = (flow.client.ip(), flow.server);
        let emule = |shape: &(RangeInclusive<u32>, RangeInclusive<u32>)| {
            let marker = streams.client.first().is_some_and(|byte| !EMULE_TCP.contains(byte));
            marker && shape.0.contains(&first) && (!answered || shape.1.contains(&second))
        };
        let shaped = mse && third >= MSE_THIRD;
        let spoke = |ip| hosts.spoke(ip, Application::BitTorrent, now_ns);
        let speak = [spoke(client), spoke(server.ip())];
        // Calls are kept of the hosts that may be peers: the internal one calls and is called. One that ended
        // before it was whole says nothing of its shape.
        let reports = answered && (!mse || self.count >= 3);
        let mut called = |host, partner| {
            if reports { hosts.called(host, partner, shaped, now_ns) } else { Calls::default() }
        };
        let calls = match speak {
            [false, true] => [None, Some(called(server.ip(), flow.client))],
            [true, true] => [Some(called(client, server)), Some(called(server.ip(), flow.client))],
            [_, false] => [Some(called(client, server)), None],
        };
        if let Some(listed) = hosts.listed(server, Transport::Tcp, now_ns)
            && listed.holds_for(client, server.ip())
        {
            match listed.application {
                Application::BitTorrent if mse => {
                    return likely(
                        Protocol::Mse,
                        format!("random first messages to {server}, {listed}"),
                    );
                }
                Application::Edonkey if emule(&EMULE_CLIENTS) || emule(&EMULE_SERVER) => {
                    let reason = format!("random first messages to {server}, {listed}");
                    return likely(Protocol::EmuleObfuscated, reason);
                }
                _ => {}
            }
        }
        if !answered {
            return None;
        }
        let edonkey = |ip| hosts.spoke(ip, Application::Edonkey, now_ns);
        if emule(&EMULE_SERVER) && (edonkey(client) || edonkey(server.ip())) {
            let reason = "random first messages of the lengths of eMule with a server";
            return likely(Protocol::EmuleObfuscated, reason);
        }
        if !shaped || server.port() < 1024 {
            return None;
        }
        let (host, calls) = match calls {
            [Some(caller), Some(called)] => {
                let reason = "random first messages between two hosts that speak BitTorrent";
                let peers = caller.are_in_the_shape() && called.are_in_the_shape();
                return peers.then(|| likely(Protocol::Mse, reason)).flatten();
            }
            [Some(calls), None] => (client, calls),
            [None, calls] => (server.ip(), calls?),
        };
        if !calls.are_of_a_peer() {
            return None;
        }
        let known = speak != [false, false];
        if known && calls.others >= SOME {
            return likely(
                Protocol::Mse,
                format!("random first messages of {host}, which speaks BitTorrent"),
            );
        }
        if calls.others >= MANY {
            let reason =
                format!("{host} exchanged such first messages with {} others", calls.others);
            return likely(Protocol::Mse, reason);
        }
        None
    }
}

impl Calls {
    /// Others were called in the shape, nine times of ten, and this one was not called before.
    const fn are_of_a_peer(&self) -> bool {
        self.again == 0 && self.others * 10 >= (self.others + self.otherwise) * 9
    }

    /// Nine of ten calls are in the shape if the one that is asked about is, and all with its other end.
    const fn are_in_the_shape(&self) -> bool {
        !self.strange && (self.shaped + 1) * 10 >= (self.all + 1) * 9
    }
}

fn likely(protocol: Protocol, reason: impl Into<Cow<'static, str>>) -> Option<Match> {
    Some(Match { protocol, certainty: Certainty::Likely, reason: reason.into() })
}

/// A datagram of eMule's obfuscation between sockets one of which was named as that of an eDonkey host.
pub(super) fn udp(flow: &Flow, datagram: &[u8], hosts: &Hosts, now_ns: u64) -> Option<Match> {
    let first = *datagram.first()?;
    // Marker, random key part, sync, length of padding, and at least protocol and code.
    if datagram.len() < 10
        || EMULE_UDP.contains(&first)
        || !looks_random(datagram, u32::try_from(datagram.len()).ok()?)
    {
        return None;
    }
    let named = [flow.server, flow.client].into_iter().find_map(|socket| {
        let listed = hosts.listed(socket, Transport::Udp, now_ns)?;
        (listed.application == Application::Edonkey).then_some((socket, listed))
    });
    if let Some((socket, listed)) = named {
        let reason = format!("random datagrams of {socket}, {listed}");
        return likely(Protocol::EmuleObfuscated, reason);
    }
    // A server has a port of its own for obfuscated datagrams, which nobody names.
    let spoke = |socket: SocketAddr| hosts.spoke(socket.ip(), Application::Edonkey, now_ns);
    let both = spoke(flow.client) && spoke(flow.server);
    let reason = "random datagrams between two hosts that speak eDonkey";
    both.then(|| likely(Protocol::EmuleObfuscated, reason)).flatten()
}

/// Whether the first bytes of a message of a length may be random: bits as often set as not in each
/// position, both halves of bytes evenly spread, no more repetition than chance gives, and no head of a
/// protocol that encrypts only what follows it. Of random bytes some 1 in 2,000 are not found to be so.
pub(super) fn looks_random(bytes: &[u8], length: u32) -> bool {
    let bytes = bytes.get(..length as usize).unwrap_or(bytes);
    let n = bytes.len();
    if has_head(bytes, length) {
        return false;
    }
    let (mut halves, mut again) = ([[0_usize; 16]; 2], 0);
    let mut last = None;
    for byte in bytes {
        halves[0][usize::from(byte >> 4)] += 1;
        halves[1][usize::from(byte & 15)] += 1;
        again += usize::from(last == Some(*byte));
        last = Some(*byte);
    }
    // Twice the distance from the middle, squared: 18 n is 4.2 standard deviations.
    let even = halves.iter().all(|counts| {
        (0..4).all(|bit| {
            let ones = counts.iter().enumerate().filter(|(half, _)| half >> bit & 1 == 1);
            let ones: usize = ones.map(|(_, count)| count).sum();
            (2 * ones).abs_diff(n).pow(2) <= 18 * n
        })
    });
    // Chi-squared of 15 degrees of freedom stays below 44.3 but for 1 in 10,000; times n / 16.
    let spread = n < 48
        || halves.iter().all(|counts| {
            let squares: usize = counts.iter().map(|count| count * count).sum();
            10 * (16 * squares).saturating_sub(n * n) <= 443 * n
        });
    let printable = n >= 12 && bytes.iter().all(u8::is_ascii);
    even && spread && again <= 3 + n / 64 && !printable
}

/// Heads of protocols that encrypt: TLS records, and lengths before the message.
fn has_head(bytes: &[u8], length: u32) -> bool {
    let Some(head) = bytes.first_chunk::<4>() else { return false };
    let short = u16::from_be_bytes([head[0], head[1]]);
    let long = u32::from_be_bytes(*head);
    // RFC 8446, section 5.1.
    let tls = matches!(head[0], 20..=24) && head[1] == 3 && head[2] <= 4;
    let prefixed = [
        u32::from(short).checked_add(2),
        u32::from(short.swap_bytes()).checked_add(2),
        long.checked_add(4),
        long.swap_bytes().checked_add(4),
        // The length of the whole.
        Some(long),
        Some(u32::from(short)),
    ];
    // Types, reserved bytes and versions before a key.
    let zeros = head.iter().filter(|byte| **byte == 0).count() >= 3;
    tls || prefixed.contains(&Some(length)) || zeros
}
