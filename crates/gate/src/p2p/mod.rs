//! Finds peer-to-peer applications by what the first packets of a flow say.
//!
//! [`Classifier`] is fed a flow's packets. TCP's two directions are put in order as far as needed; UDP's
//! datagrams stand for themselves. Each protocol is a file with pure functions over bytes that say no,
//! perhaps, or yes ([`Verdict`]): yes only to what has lengths, codes and structure that agree, and to what
//! is told on few bytes only when both sides or a second message confirm it.
//!
//! What a message tells of other peers goes to [`Hosts`], whose evidence names those flows that hide
//! ([`obfuscation`]).

mod addresses;
pub mod bencode;
mod dht;
mod http;
mod peer_wire;
mod prefix;
mod reader;
#[cfg(test)]
mod tests;
mod tracker_http;
mod tracker_udp;
mod urlencoding;

use crate::{
    flow::{Flow, Side, Transport},
    hosts::{Hosts, Listed, Source},
    label::{Category, Certainty, Engine, Label, Outcome},
    packet::Packet,
};
use prefix::Prefix;
use std::{borrow::Cow, net::SocketAddr};

/// The applications whose protocols are read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Application {
    /// The BEPs.
    BitTorrent,
    /// eDonkey, eMule and Kad.
    Edonkey,
    /// Gnutella 0.4 and 0.6.
    Gnutella,
    /// NMDC and ADC.
    DirectConnect,
    /// Soulseek.
    Soulseek,
}

impl Application {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::BitTorrent, Self::Edonkey, Self::Gnutella, Self::DirectConnect, Self::Soulseek];

    /// The name that labels and policies have.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BitTorrent => "bittorrent",
            Self::Edonkey => "edonkey",
            Self::Gnutella => "gnutella",
            Self::DirectConnect => "directconnect",
            Self::Soulseek => "soulseek",
        }
    }
}

/// What a protocol says of the bytes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// It is not this protocol.
    No,
    /// It may be, with more bytes.
    Perhaps,
    /// It is.
    Yes(Match),
}

/// A protocol that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Match {
    protocol: Protocol,
    certainty: Certainty,
    reason: Cow<'static, str>,
}

impl Match {
    /// A message of the protocol was read.
    const fn certain(protocol: Protocol, reason: &'static str) -> Verdict {
        let reason = Cow::Borrowed(reason);
        Verdict::Yes(Self { protocol, certainty: Certainty::Certain, reason })
    }
}

/// The parts of applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Protocol {
    PeerWire,
    Dht,
    TrackerHttp,
    TrackerUdp,
}

impl Protocol {
    const fn application(self) -> Application {
        match self {
            Self::PeerWire | Self::Dht | Self::TrackerHttp | Self::TrackerUdp => {
                Application::BitTorrent
            }
        }
    }

    const fn detail(self) -> &'static str {
        match self {
            Self::PeerWire => "peer-wire",
            Self::Dht => "dht",
            Self::TrackerHttp | Self::TrackerUdp => "tracker",
        }
    }

    /// Whether the one who is called is a peer too, and not a server that all use.
    const fn is_between_peers(self) -> bool {
        matches!(self, Self::PeerWire | Self::Dht)
    }
}

/// Where a message was and when: what evidence needs besides the message.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    flow: &'a Flow,
    from: Side,
    at_ns: u64,
}

impl Place<'_> {
    /// The sender of the message named a peer to the other end.
    fn names(&self, hosts: &mut Hosts, socket: SocketAddr, protocol: Protocol, source: Source) {
        let told_by = self.flow.socket(self.from);
        let listed = Listed {
            application: protocol.application(),
            source,
            told_by,
            learnt_by: self.flow.socket(self.from.other()).ip(),
            at_ns: self.at_ns,
        };
        hosts.learn(socket, listed);
    }

    /// The sender of the message said that it listens at a port itself.
    fn announces(&self, hosts: &mut Hosts, port: u16, protocol: Protocol) {
        let host = self.flow.socket(self.from).ip();
        let listed = Listed {
            application: protocol.application(),
            source: Source::Announced,
            told_by: self.flow.socket(self.from.other()),
            learnt_by: host,
            at_ns: self.at_ns,
        };
        hosts.learn(SocketAddr::new(host, port), listed);
    }
}

/// What both ends of a TCP connection sent first.
#[derive(Clone, Copy, Debug)]
struct Streams<'a> {
    client: &'a [u8],
    server: &'a [u8],
}

/// Packets with payload after which a flow that no parser knows stays unknown.
const PACKETS: u32 = 32;

/// One flow's state: feed it packets until it knows, and further as long as [`Classifier::learns`].
#[derive(Clone, Debug)]
pub struct Classifier {
    flow: Flow,
    label: Option<Label>,
    found: Option<Protocol>,
    given_up: bool,
    packets: u32,
    streams: [Prefix; 2],
    wire: peer_wire::Reader,
    tracker: tracker_udp::State,
    answered: bool,
}

impl Classifier {
    /// Nothing of the flow was seen yet.
    #[must_use]
    pub fn new(flow: &Flow) -> Self {
        Self {
            flow: *flow,
            label: None,
            found: None,
            given_up: false,
            packets: 0,
            streams: Default::default(),
            wire: peer_wire::Reader::default(),
            tracker: tracker_udp::State::default(),
            answered: false,
        }
    }

    /// Takes the next packet. What it tells of peers goes to the hosts, also when the flow is known.
    pub fn packet(&mut self, packet: &Packet<'_>, hosts: &mut Hosts) -> Outcome {
        if packet.length > 0 && !self.given_up {
            self.packets += 1;
            let grew = match (self.flow.transport, packet.tcp) {
                (Transport::Tcp, Some(tcp)) => {
                    self.streams[packet.from as usize].offer(packet, tcp)
                }
                (Transport::Udp, _) => true,
                (Transport::Tcp, None) => false,
            };
            if grew {
                self.read(packet, hosts);
            }
            self.given_up |= self.label.is_none() && self.packets >= PACKETS;
        }
        match &self.label {
            Some(label) => Outcome::Known(label.clone()),
            None if self.given_up => Outcome::Unknown,
            None => Outcome::More,
        }
    }

    /// Whether further packets may tell of peers though the flow is known: worth copying while the
    /// flow's budget lasts.
    #[must_use]
    pub fn learns(&self) -> bool {
        match self.found {
            None => false,
            Some(Protocol::TrackerHttp | Protocol::TrackerUdp) => !self.answered,
            Some(Protocol::PeerWire | Protocol::Dht) => true,
        }
    }

    fn read(&mut self, packet: &Packet<'_>, hosts: &mut Hosts) {
        if self.found.is_none() {
            let verdict = match self.flow.transport {
                Transport::Tcp => self.tcp(),
                Transport::Udp => self.udp(packet),
            };
            match verdict {
                Verdict::No => self.given_up = true,
                Verdict::Perhaps => {}
                Verdict::Yes(found) => self.settle(found, packet.at_ns, hosts),
            }
        }
        if let Some(protocol) = self.found {
            self.learn(protocol, packet, hosts);
        }
    }

    /// The first yes of the parsers of TCP, or perhaps if one says so.
    fn tcp(&self) -> Verdict {
        let streams = self.both();
        any([peer_wire::tcp, tracker_http::tcp].into_iter().map(|parser| parser(streams)))
    }

    fn udp(&mut self, packet: &Packet<'_>) -> Verdict {
        if packet.length as usize != packet.payload.len() {
            return Verdict::Perhaps;
        }
        let verdicts = [dht::udp(packet.payload), self.tracker.udp(packet.from, packet.payload)];
        match any(verdicts.into_iter()) {
            Verdict::No if self.packets < 4 => Verdict::Perhaps,
            verdict => verdict,
        }
    }

    fn both(&self) -> Streams<'_> {
        let [client, server] = &self.streams;
        Streams { client: client.bytes(), server: server.bytes() }
    }

    fn settle(&mut self, found: Match, at_ns: u64, hosts: &mut Hosts) {
        let application = found.protocol.application();
        self.found = Some(found.protocol);
        self.label = Some(Label {
            application: Cow::Borrowed(application.name()),
            detail: Some(Cow::Borrowed(found.protocol.detail())),
            category: Category::PeerToPeer,
            certainty: found.certainty,
            engine: Engine::Parser,
            reason: found.reason,
        });
        hosts.speaks(self.flow.client.ip(), application, at_ns);
        if found.protocol.is_between_peers() {
            hosts.speaks(self.flow.server.ip(), application, at_ns);
            let place = Place { flow: &self.flow, from: Side::Server, at_ns };
            place.names(hosts, self.flow.server, found.protocol, Source::Spoken);
        }
    }

    /// What a message of a known protocol tells of peers.
    fn learn(&mut self, protocol: Protocol, packet: &Packet<'_>, hosts: &mut Hosts) {
        let place = Place { flow: &self.flow, from: packet.from, at_ns: packet.at_ns };
        let [client, server] = &self.streams;
        let streams = Streams { client: client.bytes(), server: server.bytes() };
        match protocol {
            Protocol::PeerWire => self.wire.learn(streams, &place, hosts),
            Protocol::Dht => dht::learn(packet.payload, &place, hosts),
            Protocol::TrackerHttp => {
                self.answered |= tracker_http::learn(streams, &place, hosts);
            }
            Protocol::TrackerUdp => {
                self.answered |= self.tracker.learn(packet.payload, &place, hosts);
            }
        }
    }
}

/// The first yes, else perhaps if one says so, else no.
fn any(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let mut all = Verdict::No;
    for verdict in verdicts {
        match verdict {
            Verdict::Yes(_) => return verdict,
            Verdict::Perhaps => all = Verdict::Perhaps,
            Verdict::No => {}
        }
    }
    all
}

/// Whether bytes begin as a text does, and the rest may still come: no, perhaps (`None`), yes.
fn begins(bytes: &[u8], text: &[u8]) -> Option<bool> {
    let known = bytes.len().min(text.len());
    if bytes.get(..known) != text.get(..known) {
        Some(false)
    } else if known == text.len() {
        Some(true)
    } else {
        None
    }
}
