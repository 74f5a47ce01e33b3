//! What nDPI says, in this crate's words; and the packets that it is shown.
//!
//! nDPI wants whole IP packets. A gate's packet is a payload and what of its headers is needed, so the
//! headers are written again, without checksums: nDPI looks at none.

use super::{Facts, form::Seen};
use crate::{
    application::Application,
    flow::{Flow, Transport},
    label::{Category, Certainty, Engine, Label},
    packet::Packet,
};
use ndpi::{Confidence, Detector, Known, Protocol};
use std::{
    borrow::Cow,
    collections::HashMap,
    net::{IpAddr, SocketAddr},
};
use wire::{IpProtocol, ipv4, ipv6, tcp, udp};

/// Bytes of payload that nDPI is shown.
const SHOWN: usize = 16 * 1024;
/// Protocols whose application may be known some packets later, and is worth waiting for.
const SLOW: [&str; 2] = ["quic", "stun"];
/// Protocols that carry others; their own name says nothing of the application.
const CARRIERS: [&str; 4] = ["http", "http_proxy", "tls", "quic"];

/// An application named by nDPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Guess {
    application: Cow<'static, str>,
    detail: Option<Cow<'static, str>>,
    category: Category,
    confidence: Confidence,
    /// Whether more may be known soon.
    pub(super) more: bool,
}

impl Guess {
    /// Whether it says what is used, and not only what carries it.
    pub(super) fn is_application(&self) -> bool {
        self.detail.is_some() || !CARRIERS.contains(&&*self.application)
    }

    /// Whether it is that application, or is carried by it.
    pub(super) fn is(&self, application: &str) -> bool {
        self.application == application
    }

    /// Whether the payload fits it, and not only the port.
    pub(super) fn was_seen(&self, seen: &Seen) -> bool {
        self.detail.is_some() || seen.fits(&self.application)
    }

    /// Whether it is HTTP of which nothing more is known.
    pub(super) fn is_only_http(&self) -> bool {
        self.is("http") && self.detail.is_none()
    }
}

/// Makes packets for nDPI and labels of its answers.
#[derive(Debug, Default)]
pub(super) struct Builder {
    packet: Vec<u8>,
    names: HashMap<Protocol, Cow<'static, str>>,
}

impl Builder {
    /// The IP packet that a flow's packet was, with at most [`SHOWN`] bytes of payload.
    pub(super) fn ip_packet(&mut self, flow: &Flow, packet: &Packet<'_>) -> &mut [u8] {
        let payload = packet.payload.get(..SHOWN).unwrap_or(packet.payload);
        let (from, to) = (flow.socket(packet.from), flow.socket(packet.from.other()));
        self.packet.clear();
        // Room for the longest headers; what is not needed is cut off.
        self.packet.resize(ipv6::HEADER + tcp::HEADER + payload.len(), 0);
        let length = write(flow.transport, (from, to), packet, payload, &mut self.packet);
        // A flow between two families cannot be; nDPI then gets nothing to read.
        self.packet.truncate(length.unwrap_or(0));
        &mut self.packet
    }

    /// nDPI's answer by names.
    pub(super) fn guess(&mut self, detector: &Detector, known: &Known) -> Guess {
        let mut application = self.name(detector, known.master.unwrap_or(known.app));
        let mut detail = known.master.map(|_| self.name(detector, known.app));
        // Peer-to-peer is what it is, whatever carries it.
        if let Some(carried) = detail.take_if(|detail| is_ours(detail)) {
            application = carried;
        }
        let category = category(known.category, &application);
        let more = known.more && SLOW.contains(&&*application);
        Guess { application, detail, category, confidence: known.confidence, more }
    }

    /// A connection that began as a carrier's does, perhaps with a server's name.
    pub(super) fn carried(
        &mut self,
        detector: &mut Detector,
        carrier: &'static str,
        name: Option<&str>,
    ) -> Guess {
        let known = name.and_then(|name| detector.host(name));
        Guess {
            application: carrier.into(),
            detail: known.map(|known| self.name(detector, known.app)),
            category: known.map_or(Category::Web, |known| category(known.category, carrier)),
            confidence: Confidence::Content,
            more: false,
        }
    }

    /// The label of a guess with what else was read.
    pub(super) fn label(&mut self, detector: &mut Detector, guess: &Guess, facts: &Facts) -> Label {
        let mut label = Label {
            application: guess.application.clone(),
            detail: guess.detail.clone(),
            category: guess.category,
            certainty: Certainty::Certain,
            engine: Engine::Ndpi,
            reason: reason(guess, facts).into(),
        };
        // Peer-to-peer has parsers of our own: what they did not confirm is likely at best.
        if guess.confidence != Confidence::Content || is_ours(&label.application) {
            label.certainty = Certainty::Likely;
        }
        if !guess.is_application()
            && facts.server_name.is_none()
            && let Some(name) = &facts.dns_name
            && let Some(known) = detector.host(name)
        {
            label.detail = Some(self.name(detector, known.app));
            label.category = category(known.category, &label.application);
            label.reason = format!("DNS name {name}").into();
        }
        label
    }

    /// What a flow likely is by the name of its server's address alone.
    pub(super) fn by_name(
        &mut self,
        detector: &mut Detector,
        flow: &Flow,
        facts: &Facts,
    ) -> Option<Label> {
        let name = facts.dns_name.as_ref().filter(|_| facts.dns_own)?;
        let known = detector.host(name)?;
        let application = self.name(detector, known.app);
        Some(Label {
            category: category(known.category, &application),
            application,
            detail: None,
            certainty: Certainty::Likely,
            engine: Engine::Ndpi,
            reason: format!("{} is {name} by DNS", flow.server.ip()).into(),
        })
    }

    /// The name of a protocol as labels have it.
    fn name(&mut self, detector: &Detector, protocol: Protocol) -> Cow<'static, str> {
        let name = self
            .names
            .entry(protocol)
            .or_insert_with(|| written(detector.name(protocol).unwrap_or("unknown")).into());
        name.clone()
    }
}

/// A name in lower case, blanks as `-`.
pub(super) fn written(name: &str) -> String {
    name.to_lowercase().replace(|c: char| c.is_whitespace() || c == '/', "-")
}

/// What a label's reason says of nDPI's answer.
fn reason(guess: &Guess, facts: &Facts) -> String {
    match guess.confidence {
        Confidence::Content => match &facts.server_name {
            Some(name) => format!("server name {name}"),
            None => "its first packets".into(),
        },
        Confidence::Cache => "as another flow of the host".into(),
        Confidence::Address => "its address".into(),
    }
}

/// Whether there is a parser here for an application.
fn is_ours(application: &str) -> bool {
    Application::ALL.iter().any(|ours| ours.name() == application)
}

fn category(category: ndpi::Category, application: &str) -> Category {
    use ndpi::Category as Theirs;
    if application == "dns" {
        return Category::Network;
    }
    if is_ours(application) {
        return Category::PeerToPeer;
    }
    match category {
        Theirs::Media | Theirs::Streaming | Theirs::Music | Theirs::Video => Category::Media,
        Theirs::Vpn => Category::Tunnel,
        Theirs::Mail => Category::Mail,
        Theirs::DataTransfer | Theirs::Download | Theirs::FileSharing => Category::FileTransfer,
        Theirs::Web | Theirs::SocialNetwork | Theirs::Cloud => Category::Web,
        Theirs::Game => Category::Game,
        Theirs::Chat => Category::Chat,
        Theirs::Voip => Category::Voice,
        Theirs::RemoteAccess => Category::RemoteAccess,
        Theirs::Network => Category::Network,
        Theirs::Collaborative
        | Theirs::Database
        | Theirs::Rpc
        | Theirs::System
        | Theirs::SoftwareUpdate
        | Theirs::Other(_) => Category::Other,
    }
}

/// Writes headers and payload; none when the addresses are of two families.
fn write(
    transport: Transport,
    (from, to): (SocketAddr, SocketAddr),
    packet: &Packet<'_>,
    payload: &[u8],
    out: &mut [u8],
) -> Option<usize> {
    let (protocol, header) = match transport {
        Transport::Tcp => (IpProtocol::TCP, tcp::HEADER),
        Transport::Udp => (IpProtocol::UDP, udp::HEADER),
    };
    let payload_len = header + payload.len();
    let at = match (from.ip(), to.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => ipv4::Repr {
            source,
            destination,
            protocol,
            ttl: 64,
            traffic_class: 0,
            identification: 0,
            dont_fragment: true,
            payload_len,
        }
        .emit(out),
        (IpAddr::V6(source), IpAddr::V6(destination)) => ipv6::Repr {
            source,
            destination,
            next_header: protocol,
            hop_limit: 64,
            traffic_class: 0,
            flow_label: 0,
            payload_len,
        }
        .emit(out),
        _ => return None,
    };
    let at = at.ok()?;
    let rest = out.get_mut(at..)?;
    match packet.tcp {
        Some(seen) if transport == Transport::Tcp => {
            let header = tcp::Repr {
                source_port: from.port(),
                destination_port: to.port(),
                sequence: seen.sequence,
                acknowledgement: seen.acknowledgement,
                flags: tcp::Flags(seen.flags),
                window: u16::MAX,
            };
            header.emit_header(rest).ok()?;
        }
        _ if transport == Transport::Udp => {
            let header = udp::Repr { source_port: from.port(), destination_port: to.port() };
            header.emit_header(payload.len(), rest).ok()?;
        }
        _ => return None,
    }
    rest.get_mut(header..payload_len)?.copy_from_slice(payload);
    Some(at + payload_len)
}
