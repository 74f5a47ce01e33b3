//! Says what a flow is: three engines, one after the other, over its first packets.
//!
//! ```text
//!                +-> p2p: parsers of peer-to-peer protocols, evidence of hosts     decides alone
//! packet, state -+-> nDPI: everything else, helped by names in TLS and DNS         once p2p says no
//!                +-> signatures, the operator's                                    where nDPI knows no
//!                                                                                  application
//! ```
//!
//! [`Engine`] is what flows share (one a thread), [`State`] what one flow needs until it is known; then
//! only its label stays. A flow that nobody has named after its budget of packets with payload is unknown.
//! What nDPI finds waits while a parser of ours still may find something, for nDPI misreads some of what
//! those know. Why in this order: `docs/decisions/176-engines.md`.

mod form;
mod guess;
mod known;
mod request;
#[cfg(test)]
mod tests;

use crate::{
    dns,
    flow::{Flow, Side, Transport},
    hosts::{Bounds, Hosts},
    label::{Classification, Label},
    names::Names,
    p2p,
    packet::{Packet, Tcp},
    signatures::{CompileError, SignatureConfig, Signatures},
    tls::{self, Carrier, Found},
};
use form::Seen;
use guess::Guess;
pub use known::ndpi_names;
use ndpi::{Detector, Known};
use request::Request;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Most packets with payload that a flow is inspected for, whatever the settings say.
pub const MAX_PACKETS: u8 = 32;
/// A connection whose packets bring fewer bytes than this is inspected for more packets than others.
const FEW_BYTES: u64 = 512;
/// Addresses whose names are remembered by default.
const NAMES: usize = 65_536;
/// The port of DNS.
const DNS: u16 = 53;
/// Questions of a flow to DNS that wait for their answers.
const QUESTIONS: usize = 4;

/// What an engine is set up with.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Settings {
    /// Packets with payload after which a flow is unknown, at most [`MAX_PACKETS`]. Those that bring
    /// nothing new are not among them, and [`MAX_PACKETS`] it is where they bring few bytes.
    pub packets: u8,
    /// The operator's own signatures.
    pub signatures: Vec<SignatureConfig>,
    /// Addresses whose names are remembered.
    pub names: usize,
    /// How much is remembered of hosts.
    pub hosts: Bounds,
}

impl Default for Settings {
    fn default() -> Self {
        Self { packets: 8, signatures: Vec::new(), names: NAMES, hosts: Bounds::default() }
    }
}

/// An engine could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// nDPI.
    #[error(transparent)]
    Ndpi(#[from] ndpi::OpenError),
    /// The signatures.
    #[error(transparent)]
    Signatures(#[from] CompileError),
}

/// What flows share: tables, what is known of hosts, what addresses are called. One a thread.
#[derive(Debug)]
pub struct Engine {
    packets: u8,
    detector: Detector,
    guesses: guess::Builder,
    signatures: Signatures,
    names: Names,
    most_names: usize,
    hosts: Hosts,
    bounds: Bounds,
}

/// What is kept of a flow.
#[derive(Debug, Default)]
pub struct State {
    /// Packets with payload so far.
    packets: u8,
    /// Of these, those that brought something new.
    useful: u8,
    /// When the last one came.
    at_ns: u64,
    /// Where each side's bytes begin, where its SYN was seen.
    begins: [Option<u32>; 2],
    work: Option<Box<Work>>,
    facts: Facts,
    outcome: Option<Box<Classification>>,
}

/// What is needed until a flow is known.
#[derive(Debug)]
struct Work {
    parsers: p2p::Classifier,
    parsers_done: bool,
    flow: ndpi::Flow,
    guess: Option<Guess>,
    hello_done: bool,
    request_done: bool,
    tcp: bool,
    signature: Option<Label>,
    /// The last questions to DNS.
    questions: VecDeque<(u16, String)>,
    answered: bool,
    seen: Seen,
}

/// What was read in a flow beside its label, for logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The server's name: of TLS, HTTP or what DNS was asked for.
    pub server_name: Option<String>,
    /// The fingerprint of the TLS client.
    pub ja4: Option<String>,
    /// The name of the server's address by a DNS answer before the flow began.
    pub dns_name: Option<String>,
    /// Whether the client itself got that answer, and not only another host.
    pub dns_own: bool,
}

impl State {
    /// Nothing was seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Packets with payload that were inspected.
    pub const fn packets(&self) -> u8 {
        self.packets
    }

    /// What was read beside the label.
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What was found, when it is final.
    pub fn outcome(&self) -> Option<&Classification> {
        self.outcome.as_deref()
    }

    /// Whether further packets are of use though the outcome is final: they may reveal other peers.
    pub fn learns(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.parsers.learns()) && self.packets < MAX_PACKETS
    }
}

impl Work {
    fn new(flow: &Flow, begins: [Option<u32>; 2]) -> Self {
        let tcp = flow.transport == Transport::Tcp;
        let mut parsers = p2p::Classifier::new(flow);
        for (side, begin) in [Side::Client, Side::Server].into_iter().zip(begins) {
            if let Some(begin) = begin {
                parsers.begin(side, begin);
            }
        }
        Self {
            parsers,
            parsers_done: false,
            flow: ndpi::Flow::new(),
            guess: None,
            hello_done: !tcp,
            request_done: !tcp,
            tcp,
            signature: None,
            questions: VecDeque::new(),
            answered: false,
            seen: Seen::default(),
        }
    }

    /// Takes note of the forms of messages.
    fn listen(&mut self, packet: &Packet<'_>) {
        let bytes = if self.tcp { self.parsers.bytes(packet.from) } else { packet.payload };
        self.seen.look(bytes, self.tcp);
    }
}

impl Engine {
    /// Sets up the three engines.
    ///
    /// # Errors
    /// When libndpi does not fit, or signatures cannot be compiled.
    pub fn new(settings: &Settings) -> Result<Self, OpenError> {
        Ok(Self {
            packets: settings.packets.clamp(1, MAX_PACKETS),
            detector: Detector::open()?,
            guesses: guess::Builder::default(),
            signatures: Signatures::compile(&settings.signatures)?,
            names: Names::new(settings.names),
            most_names: settings.names,
            hosts: Hosts::new(settings.hosts),
            bounds: settings.hosts,
        })
    }

    /// What is known of hosts.
    pub const fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Forgets all that was learned of hosts and names.
    pub fn forget(&mut self) {
        self.names = Names::new(self.most_names);
        self.hosts = Hosts::new(self.bounds);
    }

    /// What addresses were called in DNS answers.
    pub const fn names(&self) -> &Names {
        &self.names
    }

    /// Takes a flow's next packet. An outcome other than [`Classification::Pending`] is final.
    pub fn packet(
        &mut self,
        flow: &Flow,
        state: &mut State,
        packet: &Packet<'_>,
    ) -> Classification {
        if let Some(tcp) = packet.tcp
            && tcp.has(Tcp::SYN)
            && let Some(begin) = state.begins.get_mut(packet.from as usize)
        {
            *begin = Some(tcp.sequence.wrapping_add(1));
        }
        if packet.length > 0 {
            state.packets = state.packets.saturating_add(1);
        }
        if let Some(outcome) = &state.outcome {
            let outcome = (**outcome).clone();
            self.learn(state, packet);
            return outcome;
        }
        if packet.payload.is_empty() {
            return Classification::Pending;
        }
        state.at_ns = packet.at_ns;
        let begins = state.begins;
        let mut work = state.work.take().unwrap_or_else(|| {
            let named = self.names.of(flow.client.ip(), flow.server.ip(), packet.at_ns);
            state.facts.dns_own = named.as_ref().is_some_and(|named| named.own);
            state.facts.dns_name = named.map(|named| named.name.to_string());
            Box::new(Work::new(flow, begins))
        });
        self.dns(flow, &mut work, packet);
        let before = work.parsers.length();
        let found = self.parse(&mut work, packet);
        work.listen(packet);
        let new = packet.tcp.is_none() || work.parsers.length() != before;
        state.useful += u8::from(new);
        let found = found.or_else(|| {
            self.guess(flow, &mut work, &mut state.facts, packet);
            if new {
                self.read_ahead(flow, &mut work, &mut state.facts, packet);
            }
            self.decide(&work, &state.facts)
        });
        let outcome = match found {
            Some(label) => Classification::Known(label),
            None if self.is_enough(state, &work) => self.last_word(flow, state, &mut work),
            None => {
                state.work = Some(work);
                return Classification::Pending;
            }
        };
        if work.parsers.learns() {
            state.work = Some(work);
        }
        state.outcome = Some(Box::new(outcome.clone()));
        outcome
    }

    /// Packets with payload that are worth copying of a flow: more than the settings say once its first
    /// ones bring few bytes.
    pub fn wants(&self, state: &State) -> u8 {
        let few = state.work.as_ref().is_some_and(|work| {
            work.tcp && work.parsers.length() * 2 < FEW_BYTES && state.packets >= self.packets / 2
        });
        if few { MAX_PACKETS } else { self.packets }
    }

    /// Whether a flow was inspected for long enough.
    fn is_enough(&self, state: &State, work: &Work) -> bool {
        let few = work.tcp && work.parsers.length() < FEW_BYTES;
        state.packets >= MAX_PACKETS || state.useful >= self.packets && !few
    }

    /// No more packets of the flow come, or too much time has passed: what it is by what was seen.
    pub fn give_up(&mut self, flow: &Flow, state: &mut State) -> Classification {
        if let Some(outcome) = &state.outcome {
            return (**outcome).clone();
        }
        let outcome = match state.work.take() {
            Some(mut work) => self.last_word(flow, state, &mut work),
            None => Classification::Unknown,
        };
        state.outcome = Some(Box::new(outcome.clone()));
        outcome
    }

    /// Shows the parsers what follows in a flow that they know, for what it says of other peers.
    fn learn(&mut self, state: &mut State, packet: &Packet<'_>) {
        if !state.learns() {
            state.work = None;
        } else if let Some(work) = &mut state.work {
            let _ = work.parsers.packet(packet, &mut self.hosts);
        }
    }

    /// Takes note of DNS answers to what was asked.
    fn dns(&mut self, flow: &Flow, work: &mut Work, packet: &Packet<'_>) {
        if flow.transport != Transport::Udp || flow.server.port() != DNS {
            return;
        }
        if packet.from == Side::Client {
            work.questions.extend(dns::question(packet.payload));
            if work.questions.len() > QUESTIONS {
                work.questions.pop_front();
            }
            return;
        }
        work.answered = true;
        let asked = |answer: &dns::Answer| {
            work.questions.iter().any(|(id, name)| *id == answer.id && *name == answer.name)
        };
        if let Some(answer) = dns::answer(packet.payload).filter(asked) {
            self.names.learn(flow.client.ip(), &answer, packet.at_ns);
        }
    }

    fn parse(&mut self, work: &mut Work, packet: &Packet<'_>) -> Option<Label> {
        let outcome = work.parsers.packet(packet, &mut self.hosts);
        work.parsers_done = outcome == Classification::Unknown;
        match outcome {
            Classification::Known(label) => Some(label),
            Classification::Unknown | Classification::Pending => None,
        }
    }

    fn guess(&mut self, flow: &Flow, work: &mut Work, facts: &mut Facts, packet: &Packet<'_>) {
        if work.guess.as_ref().is_some_and(|guess| !guess.more) {
            return;
        }
        let bytes = self.guesses.ip_packet(flow, packet);
        let known = self.detector.packet(&mut work.flow, bytes, packet.at_ns / 1_000_000);
        if let Some(known) = known {
            work.guess = self.believed(work, &known);
            if facts.server_name.is_none() {
                let host = work.flow.host();
                facts.server_name = host.and_then(|host| tls::host_name(host.as_bytes()));
            }
        }
    }

    /// What nDPI says, unless that rests on a port alone.
    fn believed(&mut self, work: &Work, known: &Known) -> Option<Guess> {
        let guess = self.guesses.guess(&self.detector, known);
        guess.was_seen(&work.seen).then_some(guess)
    }

    /// Looks for a ClientHello, a request of HTTP and signatures in the reassembled bytes of a side.
    fn read_ahead(&mut self, flow: &Flow, work: &mut Work, facts: &mut Facts, packet: &Packet<'_>) {
        let side = packet.from;
        let bytes = if work.tcp { work.parsers.bytes(side) } else { packet.payload };
        if !work.hello_done && side == Side::Client {
            match tls::client_hello(bytes) {
                Found::More => {}
                Found::Not => work.hello_done = true,
                Found::Hello(hello) => {
                    work.hello_done = true;
                    facts.ja4 = Some(tls::ja4(&hello, Carrier::Tcp));
                    facts.server_name = hello.server_name.or_else(|| facts.server_name.take());
                    // nDPI does not read a hello whose segments came in another order.
                    if work.guess.is_none() {
                        let name = facts.server_name.as_deref();
                        let guess = self.guesses.carried(&mut self.detector, "tls", name);
                        work.guess = Some(guess);
                    }
                }
            }
        }
        // A side that is answered has sent what was wanted.
        work.request_done |= side == Side::Server;
        if !work.request_done {
            match request::read(bytes) {
                Request::More => {}
                Request::Not => work.request_done = true,
                Request::Head(head) => {
                    work.request_done = true;
                    let host = head.field("Host").and_then(request::host);
                    facts.server_name = facts.server_name.take().or(host);
                    // nDPI reads no request whose method is cut in two, and no field of a later segment.
                    if work.guess.as_ref().is_none_or(Guess::is_only_http) {
                        let name = facts.server_name.as_deref();
                        let guess = self.guesses.carried(&mut self.detector, "http", name);
                        work.guess = Some(guess);
                    }
                }
            }
        }
        if work.signature.is_none() && !self.signatures.is_empty() {
            work.signature = self.signatures.find(flow, side, bytes);
        }
    }

    /// The label that needs no further packet.
    fn decide(&mut self, work: &Work, facts: &Facts) -> Option<Label> {
        if !work.parsers_done {
            return None;
        }
        match (&work.guess, &work.signature) {
            (Some(guess), signature) if guess.is_application() || signature.is_none() => {
                let wait = guess.more
                    || guess.is("tls") && !work.hello_done
                    || guess.is("http") && !work.request_done
                    || guess.is("dns") && !work.answered;
                (!wait).then(|| self.guesses.label(&mut self.detector, guess, facts))
            }
            (_, signature) => signature.clone(),
        }
    }

    /// What a flow is when no more is seen of it.
    fn last_word(&mut self, flow: &Flow, state: &State, work: &mut Work) -> Classification {
        if let Classification::Known(label) = work.parsers.give_up(&mut self.hosts, state.at_ns) {
            return Classification::Known(label);
        }
        work.parsers_done = true;
        if work.guess.is_none() && work.signature.is_none() {
            let known = self.detector.give_up(&mut work.flow);
            let known = known.or_else(|| self.joined(flow, state, work));
            work.guess = known.and_then(|known| self.believed(work, &known));
        }
        if let Some(guess) = &mut work.guess {
            guess.more = false;
        }
        (work.hello_done, work.request_done, work.answered) = (true, true, true);
        let facts = &state.facts;
        let label = self.decide(work, facts);
        let label = label.or_else(|| self.guesses.by_name(&mut self.detector, flow, facts));
        label.map_or(Classification::Unknown, Classification::Known)
    }

    /// nDPI reads most protocols in single segments: shows it the bytes of each side as if they were one.
    fn joined(&mut self, flow: &Flow, state: &State, work: &Work) -> Option<Known> {
        let heads = [Side::Client, Side::Server].map(|side| (side, work.parsers.bytes(side)));
        let heads = heads.iter().filter(|(_, bytes)| !bytes.is_empty());
        if !work.tcp || usize::from(state.useful) <= heads.clone().count() {
            return None;
        }
        let mut whole = ndpi::Flow::new();
        for &(from, payload) in heads {
            let tcp = Some(Tcp { sequence: 1, acknowledgement: 1, flags: Tcp::ACK });
            let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
            let packet = Packet { at_ns: state.at_ns, from, tcp, payload, length };
            let bytes = self.guesses.ip_packet(flow, &packet);
            let known = self.detector.packet(&mut whole, bytes, state.at_ns / 1_000_000);
            if known.is_some() {
                return known;
            }
        }
        self.detector.give_up(&mut whole)
    }
}
