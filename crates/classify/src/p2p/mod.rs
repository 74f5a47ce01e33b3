//! Finds peer-to-peer applications by what the first packets of a flow say.
//!
//! [`Classifier`] is fed a flow's packets. TCP's two directions are put in order as far as needed; UDP's
//! datagrams stand for themselves. Each protocol is a file with pure functions over bytes that say no,
//! perhaps, or yes (`Detection`): yes only to what has lengths, codes and structure that agree, and to what
//! is reported on few bytes only when both sides or a second message confirm it.
//!
//! What a message reveals of other peers goes to [`Hosts`], whose evidence names those flows that hide
//! (`obfuscation`).

mod adc;
mod addresses;
pub mod bencode;
mod dht;
mod edonkey;
mod gnutella;
pub(crate) mod http;
mod kad;
mod lsd;
mod nmdc;
mod obfuscation;
mod peer_wire;
mod prefix;
mod protocol;
mod proxy;
mod soulseek;
mod speakers;
#[cfg(test)]
mod tests;
mod tracker_http;
mod tracker_udp;
mod urlencoding;
pub mod utp;
mod web_seed;

use crate::{
    application::Application,
    flow::{Flow, Side, Transport},
    hosts::{Hosts, Listed, Source},
    label::{Category, Certainty, Classification, Engine, Label},
    packet::{Packet, Tcp},
};
pub(crate) use prefix::KEPT;
use prefix::{Added, Prefix};
use protocol::Protocol;
pub use protocol::parts;
use proxy::Proxy;
use std::{borrow::Cow, cell::Cell, net::SocketAddr};

/// What a parser finds in the bytes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Detection {
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
    const fn certain(protocol: Protocol, reason: &'static str) -> Detection {
        let reason = Cow::Borrowed(reason);
        Detection::Yes(Self { protocol, certainty: Certainty::Certain, reason })
    }
}

/// Where a message was and when: what evidence needs besides the message.
#[derive(Clone, Copy, Debug)]
struct Context<'a> {
    flow: &'a Flow,
    from: Side,
    at_ns: u64,
    /// How many more peers a packet may name.
    room: &'a Cell<u16>,
}

impl Context<'_> {
    /// The sender of the message named a peer to the other end.
    fn names(&self, hosts: &mut Hosts, socket: SocketAddr, protocol: Protocol, source: Source) {
        self.names_over(hosts, socket, protocol.listens(), protocol, source);
    }

    /// The same of a transport, none for both.
    fn names_over(
        &self,
        hosts: &mut Hosts,
        socket: SocketAddr,
        transport: Option<Transport>,
        protocol: Protocol,
        source: Source,
    ) {
        let Some(room) = self.room.get().checked_sub(1) else { return };
        self.room.set(room);
        let reported_by = self.flow.socket(self.from);
        let listed = Listed {
            application: protocol.application(),
            transport,
            source,
            reported_by,
            reported_to: self.flow.socket(self.from.other()).ip(),
            confirmed: false,
            at_ns: self.at_ns,
        };
        hosts.learn(socket, listed);
    }

    /// The sender of the message announced that it listens at a port itself.
    fn announces(&self, hosts: &mut Hosts, port: u16, protocol: Protocol) {
        self.announces_over(hosts, port, protocol.listens(), protocol);
    }

    /// The same of a transport, none for both.
    fn announces_over(
        &self,
        hosts: &mut Hosts,
        port: u16,
        transport: Option<Transport>,
        protocol: Protocol,
    ) {
        let host = self.flow.socket(self.from).ip();
        let listed = Listed {
            application: protocol.application(),
            transport,
            source: Source::Announced,
            reported_by: self.flow.socket(self.from.other()),
            reported_to: host,
            confirmed: false,
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

impl<'a> Streams<'a> {
    /// The messages of one of them.
    const fn of(self, side: Side) -> &'a [u8] {
        match side {
            Side::Client => self.client,
            Side::Server => self.server,
        }
    }

    /// What they say behind so many bytes.
    fn behind(self, [client, server]: [usize; 2]) -> Self {
        Self {
            client: self.client.get(client..).unwrap_or_default(),
            server: self.server.get(server..).unwrap_or_default(),
        }
    }
}

/// The messages of both ends, or what a proxy carries of them.
fn streams([client, server]: &[Prefix; 2], carried: Option<[usize; 2]>) -> Streams<'_> {
    let streams = Streams { client: client.bytes(), server: server.bytes() };
    carried.map_or(streams, |at| streams.behind(at))
}

/// Packets with payload after which a flow that no parser knows stays unknown.
const PACKETS: u32 = 32;
/// Datagrams that no parser knows, after which the next ones are not read.
const DATAGRAMS: u32 = 6;

/// The parsers of TCP.
const TCP: [fn(Streams<'_>) -> Detection; 7] = [
    peer_wire::tcp,
    tracker_http::tcp,
    edonkey::tcp,
    gnutella::tcp,
    nmdc::tcp,
    adc::tcp,
    soulseek::tcp,
];
/// The bit of the web seeds' parser beside those.
const WEB_SEED: u8 = 1 << TCP.len();

/// Asks all parsers of TCP at once.
fn all(streams: Streams<'_>) -> Detection {
    any(TCP.iter().map(|parser| parser(streams)))
}

/// What each parser of UDP learnt from earlier datagrams.
#[derive(Clone, Debug, Default)]
struct Datagrams {
    tracker: tracker_udp::State,
    utp: utp::State,
    edonkey: Before,
    kad: Before,
    gnutella: Before,
}

/// The kind of the last datagram that was plausible for a parser, and no more than that.
type Before = Option<u8>;

/// A datagram that is only plausible, of a kind. Two of different kinds belong to one conversation; the same
/// twice may be any protocol whose datagrams all begin alike.
fn plausible(before: &mut Before, kind: u8, protocol: Protocol, reason: &'static str) -> Detection {
    match before.replace(kind) {
        None => Detection::Perhaps,
        Some(other) if other != kind => Match::certain(protocol, reason),
        Some(_) => {
            let (certainty, reason) = (Certainty::Likely, reason.into());
            Detection::Yes(Match { protocol, certainty, reason })
        }
    }
}

impl Datagrams {
    fn read(&mut self, from: Side, datagram: &[u8], whole: bool) -> Detection {
        let utp = self.utp.udp(from, datagram);
        if !whole {
            return any([dht::udp(datagram, false), utp].into_iter());
        }
        let edonkey = edonkey::udp(datagram, &mut self.edonkey);
        let kad = kad::udp(datagram, &mut self.kad);
        let gnutella = gnutella::udp(datagram, &mut self.gnutella);
        let dht = dht::udp(datagram, true);
        let tracker = self.tracker.udp(from, datagram);
        let others = [lsd::udp(datagram), nmdc::udp(datagram), adc::udp(datagram)];
        any([dht, tracker, utp, kad, edonkey, gnutella].into_iter().chain(others))
    }
}

/// How far messages of a known flow were read for the peers that they name.
#[derive(Clone, Debug, Default)]
struct Learnt {
    wire: peer_wire::Reader,
    adc: adc::State,
    read: [usize; 2],
    answered: bool,
    /// Which ends were heard to speak the protocol.
    spoke: [bool; 2],
}

/// One flow's state: feed it packets until it knows, and further as long as [`Classifier::learns`].
#[derive(Clone, Debug)]
pub struct Classifier {
    flow: Flow,
    label: Option<Label>,
    found: Option<Protocol>,
    given_up: bool,
    packets: u32,
    streams: [Prefix; 2],
    /// Where the bytes begin that a proxy carries, once that is known; whether there is none.
    carried: Option<[usize; 2]>,
    direct: bool,
    /// Parsers of TCP that have rejected it, a bit each.
    rejected: u8,
    flights: obfuscation::Flights,
    datagrams: Datagrams,
    learnt: Learnt,
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
            carried: None,
            direct: false,
            rejected: 0,
            flights: obfuscation::Flights::default(),
            datagrams: Datagrams::default(),
            learnt: Learnt::default(),
        }
    }

    /// A SYN has shown where a side's bytes begin.
    pub fn begin(&mut self, side: Side, sequence: u32) {
        self.streams[side as usize].begin(sequence);
    }

    /// The first bytes of a side of a TCP connection, in order.
    #[must_use]
    pub fn bytes(&self, side: Side) -> &[u8] {
        self.streams[side as usize].bytes()
    }

    /// Bytes of both sides that came in order, whether they were kept or not.
    pub(crate) fn length(&self) -> u64 {
        self.streams.iter().map(Prefix::length).sum()
    }

    /// Takes the next packet. What it reveals of peers goes to the hosts, also when the flow is known.
    pub fn packet(&mut self, packet: &Packet<'_>, hosts: &mut Hosts) -> Classification {
        let mut added = 0;
        if let Some(tcp) = packet.tcp {
            let Added { bytes, moved } = self.streams[packet.from as usize].offer(packet, tcp);
            added = bytes;
            if moved && self.found.is_none() {
                (self.rejected, self.direct, self.given_up) = (0, false, false);
                self.flights.anew();
            }
        }
        if !self.given_up {
            self.packets += u32::from(packet.length > 0);
            let verdict = match (self.flow.transport, packet.tcp) {
                (Transport::Tcp, Some(tcp)) => self.tcp(packet, tcp, added, hosts),
                (Transport::Udp, _) if packet.length > 0 => self.udp(packet, hosts),
                _ => Detection::Perhaps,
            };
            match verdict {
                Detection::No => self.given_up = true,
                Detection::Perhaps => {
                    self.given_up |= self.found.is_none() && self.packets >= PACKETS
                }
                Detection::Yes(found) => self.settle(found),
            }
            if packet.length > 0
                && let Some(protocol) = self.found
            {
                if self.label.as_ref().is_some_and(|label| label.certainty == Certainty::Certain) {
                    self.hear(protocol, packet, hosts);
                }
                self.learn(protocol, packet, hosts);
            }
        }
        match &self.label {
            Some(label) => Classification::Known(label.clone()),
            None if self.given_up => Classification::Unknown,
            None => Classification::Pending,
        }
    }

    /// No more packets come: what the flow is by what was seen.
    pub fn give_up(&mut self, hosts: &mut Hosts, at_ns: u64) -> Classification {
        if !self.given_up && self.found.is_none() && self.flow.transport == Transport::Tcp {
            let streams = streams(&self.streams, None);
            if let Some(found) = self.flights.judge(&self.flow, streams, true, hosts, at_ns) {
                self.settle(found);
            }
        }
        self.given_up |= self.label.is_none();
        match &self.label {
            Some(label) => Classification::Known(label.clone()),
            None => Classification::Unknown,
        }
    }

    /// Whether further packets may reveal peers though the flow is known: worth copying while the
    /// flow's budget lasts.
    #[must_use]
    pub const fn learns(&self) -> bool {
        match self.found {
            None | Some(Protocol::Mse | Protocol::EmuleObfuscated | Protocol::WebSeed) => false,
            Some(Protocol::TrackerHttp | Protocol::TrackerUdp) => !self.learnt.answered,
            Some(_) => true,
        }
    }

    /// Asks the parsers that did not say no yet about the bytes in order. Once all have, what is left is
    /// that the flow hides.
    fn tcp(&mut self, packet: &Packet<'_>, tcp: Tcp, new: u64, hosts: &mut Hosts) -> Detection {
        if self.found.is_some() {
            return Detection::Perhaps;
        }
        let streams = streams(&self.streams, None);
        let mut perhaps = false;
        if new > 0 {
            self.flights.add(packet.from, new);
            let mut ask = |bit: u8, parser: &mut dyn FnMut() -> Detection| {
                if self.rejected & bit != 0 {
                    return None;
                }
                match parser() {
                    Detection::No => self.rejected |= bit,
                    Detection::Perhaps => perhaps = true,
                    yes => return Some(yes),
                }
                None
            };
            for (at, parser) in TCP.iter().enumerate() {
                if let Some(yes) = ask(1 << at, &mut || parser(streams)) {
                    return yes;
                }
            }
            let spoke =
                || hosts.spoke(self.flow.client.ip(), Application::BitTorrent, packet.at_ns);
            if let Some(yes) = ask(WEB_SEED, &mut || web_seed::tcp(streams, spoke())) {
                return yes;
            }
            if !self.direct {
                let (at, verdict) = match proxy::read(streams) {
                    Proxy::No => (None, Detection::No),
                    Proxy::Perhaps => (None, Detection::Perhaps),
                    Proxy::Carries(at) => (Some(at), all(streams.behind(at))),
                };
                match verdict {
                    Detection::No => self.direct = true,
                    Detection::Perhaps => perhaps = true,
                    yes => {
                        self.carried = at;
                        return yes;
                    }
                }
            }
        } else {
            perhaps = self.rejected != u8::MAX || !self.direct;
        }
        let ends = tcp.has(Tcp::FIN) || tcp.has(Tcp::RST);
        let hidden = self.flights.judge(&self.flow, streams, ends, hosts, packet.at_ns);
        match hidden {
            Some(found) => Detection::Yes(found),
            None if perhaps || self.flights.waits() => Detection::Perhaps,
            None => Detection::No,
        }
    }

    /// Asks the parsers about a datagram.
    fn udp(&mut self, packet: &Packet<'_>, hosts: &mut Hosts) -> Detection {
        if self.found.is_some() {
            return Detection::Perhaps;
        }
        let whole = packet.length as usize == packet.payload.len();
        let verdict = self.datagrams.read(packet.from, packet.payload, whole);
        if let Detection::Yes(_) = verdict {
            return verdict;
        }
        if verdict == Detection::No
            && let Some(found) = obfuscation::udp(&self.flow, packet.payload, hosts, packet.at_ns)
        {
            return Detection::Yes(found);
        }
        if self.packets >= 2
            && self.datagrams.utp.is_plausible()
            && let Some(listed) = hosts.listed(self.flow.server, Transport::Udp, packet.at_ns)
            && listed.application == Application::BitTorrent
        {
            let reason = format!("uTP headers to {}, {listed}", self.flow.server).into();
            return Detection::Yes(Match {
                protocol: Protocol::Utp,
                certainty: Certainty::Likely,
                reason,
            });
        }
        if self.packets < DATAGRAMS { Detection::Perhaps } else { verdict }
    }

    fn settle(&mut self, found: Match) {
        let Match { protocol, certainty, reason } = found;
        let application = protocol.application();
        let certain = certainty == Certainty::Certain;
        self.found = Some(protocol);
        self.label = Some(Label {
            application: Cow::Borrowed(application.name()),
            detail: protocol.detail().map(Cow::Borrowed),
            category: Category::PeerToPeer,
            certainty,
            engine: if certain { Engine::Parser } else { Engine::Host },
            reason,
        });
    }

    /// Takes note of an end that speaks the flow's protocol. What is only likely makes nothing else likely,
    /// and what one end says makes nothing of the other: anybody may send a greeting to anybody.
    fn hear(&mut self, protocol: Protocol, packet: &Packet<'_>, hosts: &mut Hosts) {
        for from in [Side::Client, Side::Server] {
            let bytes = match self.flow.transport {
                Transport::Tcp => streams(&self.streams, self.carried).of(from),
                Transport::Udp if packet.from == from => packet.payload,
                Transport::Udp => &[],
            };
            // Behind a proxy is somebody else.
            let peers = protocol.is_between_peers() && self.carried.is_none();
            let peers = from == Side::Client || peers;
            if self.learnt.spoke[from as usize] || !peers || !speakers::speaks(protocol, bytes) {
                continue;
            }
            self.learnt.spoke[from as usize] = true;
            let socket = self.flow.socket(from);
            hosts.speaks(socket.ip(), protocol.application(), packet.at_ns);
            if from == Side::Server {
                // It listens where it was called.
                let (at_ns, room) = (packet.at_ns, &Cell::new(1));
                let context = Context { flow: &self.flow, from, at_ns, room };
                let both = protocol.application() == Application::BitTorrent;
                let transport = (!both).then_some(self.flow.transport);
                context.names_over(hosts, socket, transport, protocol, Source::Spoken);
            }
        }
    }

    /// What a message of a known protocol reveals of peers.
    fn learn(&mut self, protocol: Protocol, packet: &Packet<'_>, hosts: &mut Hosts) {
        let (from, at_ns, room) = (packet.from, packet.at_ns, &Cell::new(protocol.most_named()));
        let context = Context { flow: &self.flow, from, at_ns, room };
        let streams = streams(&self.streams, self.carried);
        let Learnt { wire, adc, read, answered, .. } = &mut self.learnt;
        match protocol {
            Protocol::PeerWire => wire.learn(streams, &context, hosts),
            Protocol::Dht => dht::learn(packet.payload, &context, hosts),
            Protocol::TrackerHttp => *answered |= tracker_http::learn(streams, &context, hosts),
            Protocol::TrackerUdp => {
                *answered |= self.datagrams.tracker.learn(packet.payload, &context, hosts);
            }
            Protocol::LocalDiscovery => lsd::learn(packet.payload, &context, hosts),
            Protocol::EdonkeyTcp => edonkey::learn(read, streams, &context, hosts),
            Protocol::EdonkeyUdp => edonkey::learn_udp(packet.payload, &context, hosts),
            Protocol::Kad => kad::learn(packet.payload, &context, hosts),
            Protocol::Gnutella if self.flow.transport == Transport::Udp => {
                gnutella::learn_udp(packet.payload, &context, hosts);
            }
            Protocol::Gnutella => gnutella::learn(streams, &context, hosts),
            Protocol::Nmdc => nmdc::learn(read, streams, &context, hosts),
            Protocol::Adc => adc.learn(streams, &context, hosts),
            Protocol::Soulseek => soulseek::learn(read, streams, &context, hosts),
            Protocol::Utp | Protocol::WebSeed | Protocol::Mse | Protocol::EmuleObfuscated => {}
        }
    }
}

/// The first yes, else perhaps if one says so, else no.
fn any(verdicts: impl Iterator<Item = Detection>) -> Detection {
    let mut all = Detection::No;
    for verdict in verdicts {
        match verdict {
            Detection::Yes(_) => return verdict,
            Detection::Perhaps => all = Detection::Perhaps,
            Detection::No => {}
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
