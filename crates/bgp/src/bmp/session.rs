//! One connection of a router, without sockets and without a clock: bytes go in, routes go into a
//! [`Rib`].
//!
//! A session begins with Initiation. Each peer is announced by Peer Up, whose two OPENs determine how its
//! routes are encoded; Route Monitoring brings the routes as UPDATEs; Peer Down withdraws all of them.
//! What does not concern the unicast routes of the global table is counted and skipped: other route
//! distinguishers and peer types, Adj-RIB-Out (RFC 8671), statistics, mirroring.
//!
//! A message about one peer that cannot be read costs that peer its routes until its next Peer Up, and
//! nobody else: the length of a BMP message shows where the next one begins.
//!
//! Per-peer headers are read with netgauze; see docs/decisions/110-bmp.md for why OPENs and UPDATEs are
//! not.

use super::{
    message::{self, FrameError, HEADER, Kind},
    rib::{PeerIndex, Rib},
    standing::Stage,
};
use crate::message::{
    self as bgp, Families,
    learned::{Format, Learned, Unreadable},
    open::Theirs,
};
use netgauze_bgp_pkt::nlri::RouteDistinguisher;
use netgauze_bmp_pkt::{BmpPeerType, PeerHeader, iana::BmpPeerTypeCode};
use netgauze_parse_utils::{reader::SliceReader, traits::ParseFrom};
use schemars::JsonSchema;
use serde::Serialize;
use std::{
    collections::{HashMap, HashSet},
    fmt,
    net::IpAddr,
    time::Instant,
};

/// What is done with routes that the router has learned from inside its own AS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Internal {
    /// They are ignored: the exit router reports them itself.
    #[default]
    Ignore,
    /// They are assigned to the router that is their next hop; for a route reflector that reports for others.
    NextHop,
}

/// What a session may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The longest message, in bytes.
    pub message: usize,
    /// The most peers.
    pub peers: usize,
    /// Routes from inside the AS.
    pub internal: Internal,
}

impl Default for Settings {
    fn default() -> Self {
        // A per-peer header and the longest UPDATE of RFC 8654 are 65,589 bytes.
        Self { message: 128 * 1024, peers: 1024, internal: Internal::default() }
    }
}

/// What a session has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Messages, all types.
    pub messages: u64,
    /// Route Monitoring messages that were read.
    pub updates: u64,
    /// Peer Up messages.
    pub peers_up: u64,
    /// Peer Down messages.
    pub peers_down: u64,
    /// Statistics Reports, skipped.
    pub statistics: u64,
    /// Route Mirroring messages, skipped.
    pub mirroring: u64,
    /// Messages of unknown types or unknown types of peer, skipped.
    pub unknown: u64,
    /// Messages about other tables (other instances, Adj-RIB-Out) or families, skipped.
    pub other_tables: u64,
    /// Route Monitoring of peers that are not up, skipped.
    pub unannounced: u64,
    /// UPDATEs with a malformed attribute, whose routes count as withdrawn.
    pub malformed: u64,
    /// Routes from inside the AS, not taken.
    pub internal: u64,
    /// Routes that were refused because the session has reached its limit.
    pub refused: u64,
    /// Messages about one peer that could not be taken; see [`Fault`].
    pub faults: u64,
}

/// A message about one peer that could not be taken. The peer counts as down until its next Peer Up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The peer's address, if its header could be read and has one.
    pub peer: Option<IpAddr>,
    /// The message's type.
    pub kind: Kind,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.peer {
            Some(peer) => write!(f, "peer {peer}: ")?,
            None => f.write_str("a peer: ")?,
        }
        write!(f, "{}: {}", self.kind, self.why)
    }
}

/// Whether the session goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It does.
    Open,
    /// The router has ended it, with its reason.
    Terminated(String),
}

/// Why a session had to end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The stream cannot be followed.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// It does not begin as it must.
    #[error("it begins with {0} instead of Initiation (RFC 7854 section 4.3)")]
    Begin(Kind),
    /// A message about the router itself cannot be read.
    #[error("{kind}: {why}")]
    Message {
        /// The message's type.
        kind: Kind,
        /// What is wrong with it.
        why: String,
    },
}

/// What identifies a peer (RFC 7854 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PeerKey {
    loc: bool,
    address: Option<IpAddr>,
}

/// A peer that is up.
#[derive(Clone, Debug)]
struct Peer {
    index: PeerIndex,
    /// The router's own AS number, as in its OPEN to this peer.
    local_as: u32,
    /// It is in the router's own AS.
    internal: bool,
    add_path: Families,
    carries: Families,
}

/// One connection of a router.
#[derive(Debug)]
pub struct Session {
    settings: Settings,
    /// Received and not yet a whole message.
    input: Vec<u8>,
    begun: bool,
    peers: HashMap<PeerKey, Peer>,
    /// Addresses of peers in the router's own AS: next hops of routes that leave elsewhere.
    internal: HashSet<IpAddr>,
    name: Option<String>,
    description: Option<String>,
    /// The router prepends its own AS number to the paths that a peer advertised. FRR does so up to
    /// version 10: it reports what it monitors as if it advertised it onwards (FRRouting pull request 21815).
    adds_itself: bool,
    /// Its own AS number, from the last OPEN that it sent to a peer.
    local_as: Option<u32>,
    fault: Option<Fault>,
    counters: Counters,
    learned: Learned,
}

impl Session {
    /// A connection that has just been opened.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            input: Vec::new(),
            begun: false,
            peers: HashMap::new(),
            internal: HashSet::new(),
            name: None,
            description: None,
            adds_itself: false,
            local_as: None,
            fault: None,
            counters: Counters::default(),
            learned: Learned::default(),
        }
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether the router has introduced itself.
    pub fn begun(&self) -> bool {
        self.begun
    }

    /// Whether a message has begun and is not complete.
    pub fn in_message(&self) -> bool {
        !self.input.is_empty()
    }

    /// The router's name (sysName).
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Its description (sysDescr).
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// The last message about a peer that could not be taken, if the peer has not come up again since.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// How many peers are up.
    pub fn peers(&self) -> usize {
        self.peers.len()
    }

    /// Takes bytes.
    ///
    /// # Errors
    /// The session has to end. What it has reported so far stays in `rib`.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        rib: &mut Rib,
        now: Instant,
    ) -> Result<Status, SessionError> {
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(bytes);
        let mut used = 0;
        while let Some((kind, body)) =
            message::split(input.get(used..).unwrap_or_default(), self.settings.message)?
        {
            used += HEADER + body.len();
            if let Status::Terminated(why) = self.message(kind, body, rib, now)? {
                return Ok(Status::Terminated(why));
            }
        }
        input.drain(..used);
        self.input = input;
        self.settle(rib, now);
        Ok(Status::Open)
    }

    /// Lets the stale routes go when the new ones are all there, or it has taken too long.
    pub fn settle(&self, rib: &mut Rib, now: Instant) {
        if self.begun && rib.settle_at().is_some() {
            let carries = |peer: &Peer| [peer.carries.ipv4, peer.carries.ipv6];
            rib.settle(self.peers.values().map(|peer| (peer.index, carries(peer))), now);
        }
    }

    fn message(
        &mut self,
        kind: Kind,
        body: &[u8],
        rib: &mut Rib,
        now: Instant,
    ) -> Result<Status, SessionError> {
        self.counters.messages += 1;
        if !self.begun && kind != Kind::Initiation {
            return Err(SessionError::Begin(kind));
        }
        let wrong = |why: String| SessionError::Message { kind, why };
        match kind {
            Kind::Initiation => {
                if !self.begun {
                    self.begun = true;
                    rib.begin(now);
                }
                self.initiation(body).map_err(wrong)?;
            }
            Kind::Termination => return Ok(Status::Terminated(termination(body).map_err(wrong)?)),
            Kind::Statistics => self.counters.statistics += 1,
            Kind::Mirroring => self.counters.mirroring += 1,
            Kind::Unknown(_) => self.counters.unknown += 1,
            Kind::PeerUp | Kind::PeerDown | Kind::RouteMonitoring => {
                self.about_peer(kind, body, rib);
            }
        }
        Ok(Status::Open)
    }

    /// Takes a message that begins with a per-peer header; one that cannot be taken is that peer's fault.
    fn about_peer(&mut self, kind: Kind, body: &[u8], rib: &mut Rib) {
        let mut peer = None;
        let result = self.header(body).and_then(|parts| {
            let Some((header, rest)) = parts else { return Ok(()) };
            peer = header.address();
            let result = match kind {
                Kind::PeerUp => self.peer_up(&header, rest, rib),
                Kind::PeerDown => {
                    self.counters.peers_down += 1;
                    self.close(&header, rib);
                    if let Some(address) = peer {
                        self.internal.remove(&address);
                    }
                    Ok(())
                }
                _ => self.routes(&header, rest, rib).map_err(|error| error.to_string()),
            };
            result.inspect_err(|_| self.close(&header, rib))
        });
        if let Err(why) = result {
            self.counters.faults += 1;
            self.fault = Some(Fault { peer, kind, why });
        }
    }

    /// Information of Initiation (RFC 7854 section 4.4); unknown types are skipped.
    fn initiation(&mut self, body: &[u8]) -> Result<(), String> {
        for tlv in Tlvs(body) {
            match tlv.ok_or("its information is cut short")? {
                (1, text) => {
                    self.adds_itself = text.starts_with(b"FRRouting");
                    self.description = Some(shown(text));
                }
                (2, text) => self.name = Some(shown(text)),
                _ => {}
            }
        }
        Ok(())
    }

    /// The per-peer header and what is behind it; `None` if the message is about something that is
    /// skipped.
    fn header<'a>(&mut self, body: &'a [u8]) -> Result<Option<(PeerHeader, &'a [u8])>, String> {
        let kind = body.first().copied().unwrap_or_default();
        if BmpPeerTypeCode::try_from(kind).is_err() {
            self.counters.unknown += 1;
            return Ok(None);
        }
        let (octets, rest) = body.split_first_chunk::<42>().ok_or("its header is cut short")?;
        // The time is of no use here, so a wrong one is no error.
        let mut octets = *octets;
        octets[34..].fill(0);
        let mut reader = SliceReader::new(&octets);
        let header = PeerHeader::parse(&mut reader).map_err(|error| error.to_string())?;
        let global = match header.peer_type() {
            BmpPeerType::GlobalInstancePeer { adj_rib_out, .. } => !adj_rib_out,
            BmpPeerType::LocRibInstancePeer { .. } => true,
            _ => false,
        };
        // Distinguisher 0 is the global instance (RFC 7854 section 4.2, RFC 9069 section 4.1).
        let none = [None, Some(RouteDistinguisher::As2Administrator { asn2: 0, number: 0 })];
        if !global || !none.contains(&header.rd()) {
            self.counters.other_tables += 1;
            return Ok(None);
        }
        Ok(Some((header, rest)))
    }

    /// Peer Up: local address, two ports, the OPEN that the router sent and the one that it received
    /// (RFC 7854 section 4.10).
    fn peer_up(&mut self, header: &PeerHeader, body: &[u8], rib: &mut Rib) -> Result<(), String> {
        self.counters.peers_up += 1;
        let opens = opens(body);
        if let Ok([Some(sent), _]) = &opens {
            self.local_as = Some(sent.asn.0);
        }
        // Also of a peer that is refused below: routes by way of it leave elsewhere.
        let internal = self.local_as == Some(header.peer_as());
        if let Some(address) = header.address() {
            if !internal {
                self.internal.remove(&address);
            } else if self.internal.len() < self.settings.peers {
                self.internal.insert(address);
            }
        }
        let [sent, received] = opens?;
        let local_as = self.local_as.ok_or("it has no OPEN that shows the router's AS number")?;
        let key = key(header);
        let old = self.peers.remove(&key);
        let index = match &old {
            // Several Peer Ups may describe one Loc-RIB (RFC 9069 section 6.1.1).
            Some(old) if key.loc => Some(old.index),
            _ if self.peers.len() >= self.settings.peers => None,
            _ => rib.open(),
        };
        // A router that resets a peer between two messages shows it by the second Peer Up alone.
        if let (Some(old), false) = (&old, key.loc) {
            rib.close(old.index);
        }
        let Some(index) = index else {
            return Err(format!("the router has more than {} peers", self.settings.peers));
        };
        let before = old.filter(|_| key.loc);
        let (add_path, carries) =
            before.map_or_else(Default::default, |old| (old.add_path, old.carries));
        let peer = Peer {
            index,
            local_as,
            internal: internal && !key.loc,
            add_path: add_path.or(path_identifiers(sent, received, key.loc)),
            carries: carries.or(carried(sent, received)),
        };
        self.peers.insert(key, peer);
        // It is well again.
        self.fault = self.fault.take().filter(|fault| fault.peer != key.address);
        Ok(())
    }

    /// Takes the peer's routes away.
    fn close(&mut self, header: &PeerHeader, rib: &mut Rib) {
        if let Some(peer) = self.peers.remove(&key(header)) {
            rib.close(peer.index);
        }
    }

    /// Route Monitoring: one UPDATE (RFC 7854 section 4.6).
    fn routes(&mut self, header: &PeerHeader, body: &[u8], rib: &mut Rib) -> Result<(), Wrong> {
        let Some(peer) = self.peers.get(&key(header)) else {
            self.counters.unannounced += 1;
            return Ok(());
        };
        let update = update(body)?;
        let format = Format { four_octets: header.is_asn4(), add_path: peer.add_path };
        self.learned.read(update, format)?;
        self.counters.updates += 1;
        self.counters.malformed += u64::from(self.learned.malformed);
        self.counters.other_tables += u64::from(self.learned.other_families);
        let stage = match header.peer_type() {
            BmpPeerType::LocRibInstancePeer { .. } => Stage::Loc,
            BmpPeerType::GlobalInstancePeer { post_policy: true, .. } => Stage::Post,
            _ => Stage::Pre,
        };
        let mut path = self.learned.path;
        if self.adds_itself && !peer.internal && stage != Stage::Loc && path.first == peer.local_as
        {
            path.distance = path.distance.saturating_sub(1);
        }
        for nlri in &self.learned.withdrawn {
            rib.withdraw(peer.index, stage, *nlri);
        }
        for (nlri, hop) in &self.learned.announced {
            let inside = peer.internal
                || stage == Stage::Loc && hop.is_some_and(|hop| self.internal.contains(&hop));
            let exit = match (inside, self.settings.internal) {
                (false, _) => None,
                (true, Internal::NextHop) if hop.is_some() => *hop,
                (true, _) => {
                    self.counters.internal += 1;
                    rib.withdraw(peer.index, stage, *nlri);
                    continue;
                }
            };
            if rib.announce(peer.index, stage, *nlri, exit, path).is_err() {
                self.counters.refused += 1;
            }
        }
        if let Some(family) = self.learned.end_of_rib {
            rib.end_of_rib(peer.index, stage, family);
        }
        Ok(())
    }
}

/// Why Route Monitoring cannot be read.
#[derive(Debug, thiserror::Error)]
enum Wrong {
    #[error("there is no whole UPDATE in it")]
    NoUpdate,
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// The length of the message of this kind at the front of `bytes`, if its BGP header is there and right;
/// more than 4,096 bytes where the speakers have agreed on that (RFC 8654).
fn length_of(kind: bgp::Kind, bytes: &[u8]) -> Option<usize> {
    let header = bytes.first_chunk::<{ bgp::HEADER }>()?;
    let is_right = header[..16] == [0xff; 16] && header[18] == kind as u8;
    is_right.then(|| usize::from(u16::from_be_bytes([header[16], header[17]])))
}

/// The body of the UPDATE that is all of `bytes`.
fn update(bytes: &[u8]) -> Result<&[u8], Wrong> {
    let is_all = length_of(bgp::Kind::Update, bytes) == Some(bytes.len());
    bytes.get(bgp::HEADER..).filter(|_| is_all).ok_or(Wrong::NoUpdate)
}

fn key(header: &PeerHeader) -> PeerKey {
    let loc = matches!(header.peer_type(), BmpPeerType::LocRibInstancePeer { .. });
    PeerKey { loc, address: header.address() }
}

/// The OPENs of Peer Up, sent and received, behind an address and two ports. FRR writes a header with
/// no body where it has lost one of them, as it does when both ends connect at the same time: `None`.
fn opens(body: &[u8]) -> Result<[Option<Theirs>; 2], String> {
    let mut rest = body.get(20..).ok_or("it is cut short")?;
    let mut next = |which: &str| {
        let length = length_of(bgp::Kind::Open, rest)
            .ok_or_else(|| format!("the message that was {which} is not an OPEN"))?;
        let (message, behind) = rest
            .split_at_checked(length)
            .ok_or_else(|| format!("it is cut short in the OPEN that was {which}"))?;
        rest = behind;
        match message.get(bgp::HEADER..) {
            Some([]) => Ok(None),
            body => Theirs::decode(body.unwrap_or_default())
                .map(Some)
                .map_err(|why| format!("the OPEN that was {which} is malformed: {why}")),
        }
    };
    Ok([next("sent")?, next("received")?])
}

/// Families in which each prefix has a path identifier (RFC 7911 section 4). What is monitored came from
/// the peer, so the peer must send and the router receive; Loc-RIB has no peer, and its OPEN shows how it
/// is written (RFC 9069 section 4.4).
fn path_identifiers(sent: Option<Theirs>, received: Option<Theirs>, loc: bool) -> Families {
    match (sent, received) {
        (Some(sent), _) if loc => sent.sends_paths.or(sent.receives_paths),
        (Some(sent), Some(received)) => sent.receives_paths.and(received.sends_paths),
        _ => Families::default(),
    }
}

/// The families that both OPENs name: an OPEN that the router has lost may have named both.
fn carried(sent: Option<Theirs>, received: Option<Theirs>) -> Families {
    let named = |open: Option<Theirs>| {
        open.map_or(Families { ipv4: true, ipv6: true }, |open| open.families)
    };
    named(sent).and(named(received))
}

/// The reason of Termination (RFC 7854 section 4.5).
fn termination(body: &[u8]) -> Result<String, String> {
    let mut reason = String::from("no reason given");
    for tlv in Tlvs(body) {
        match tlv.ok_or("its information is cut short")? {
            (0, text) => reason = shown(text),
            (1, [0, code]) => {
                reason = match code {
                    0 => "administratively closed".into(),
                    1 => "unspecified reason".into(),
                    2 => "out of resources".into(),
                    3 => "redundant connection".into(),
                    4 => "permanently closed by its administrator".into(),
                    code => format!("reason {code}"),
                };
            }
            _ => {}
        }
    }
    Ok(reason)
}

/// Information TLVs: a type and a length of two octets each (RFC 7854 section 4.4); `None` once, at the
/// end, where the bytes end too early.
struct Tlvs<'a>(&'a [u8]);

impl<'a> Iterator for Tlvs<'a> {
    type Item = Option<(u16, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let taken = self.0.split_first_chunk::<4>().and_then(|(&[a, b, c, d], rest)| {
            let length = usize::from(u16::from_be_bytes([c, d]));
            let (value, rest) = rest.split_at_checked(length)?;
            Some((u16::from_be_bytes([a, b]), value, rest))
        });
        self.0 = taken.map_or(&[], |(_, _, rest)| rest);
        Some(taken.map(|(kind, value, _)| (kind, value)))
    }
}

/// A text from outside, for logs: at most 255 characters.
fn shown(text: &[u8]) -> String {
    config::printable(String::from_utf8_lossy(text).chars().take(255))
}
