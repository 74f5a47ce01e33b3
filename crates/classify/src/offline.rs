//! A whole capture through an engine, as if it passed the gate.

use crate::{
    capture::{
        flows::{Open, Table},
        layers::{self, Layers, Link},
    },
    engine::{Engine, Facts, State},
    flow::Flow,
    label::{Category, Certainty, Classification, Engine as By, Label},
    packet::Packet,
};
use ::capture::{End, Frame, Item, ReadError, read_all};
use serde::Serialize;
use std::io::Read;

/// Flows of a capture that are open at once.
pub const FLOWS: usize = 1 << 20;

/// A flow of a capture and what it was found to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classified {
    /// Its sockets.
    pub flow: Flow,
    /// Its packets.
    pub packets: u64,
    /// Its packets with payload.
    pub with_payload: u64,
    /// Bytes behind the transport header, on the wire.
    pub bytes: u64,
    /// Time of its first packet, nanoseconds since 1970.
    pub first_ns: u64,
    /// Time of its last packet.
    pub last_ns: u64,
    /// What it is; none when nobody could say.
    pub label: Option<Label>,
    /// Packets with payload after which that was known; none when only the flow's end decided.
    pub known_after: Option<u64>,
    /// What was read beside.
    pub facts: Facts,
}

/// Frames of a capture by outcome: each is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All frames.
    pub frames: u64,
    /// Bytes of frames on the wire.
    pub bytes: u64,
    /// Frames of flows.
    pub of_flows: u64,
    /// Later fragments whose first was not there; those of flows are with them.
    pub lost_fragments: u64,
    /// IP packets of other protocols than TCP and UDP.
    pub other_protocols: u64,
    /// Frames without an IP packet, or of a link that is not read.
    pub not_ip: u64,
    /// IP packets that are wrong, or cut within their headers.
    pub damaged: u64,
    /// Of all these, frames that were not kept whole.
    pub cut: u64,
    /// The file ends within a packet.
    pub truncated: bool,
}

/// What is kept of an open flow.
#[derive(Debug, Default)]
struct Kept {
    state: State,
    with_payload: u64,
    known_after: Option<u64>,
}

/// A capture that runs through an engine.
#[derive(Debug)]
pub struct Run<'e> {
    engine: &'e mut Engine,
    flows: Table<Kept>,
    counts: Counts,
    ended: Vec<Open<Kept>>,
}

impl<'e> Run<'e> {
    /// Nothing was read yet; at most so many flows are open at once.
    pub fn new(engine: &'e mut Engine, flows: usize) -> Self {
        let flows = Table::new(flows);
        Self { engine, flows, counts: Counts::default(), ended: Vec::new() }
    }

    /// Takes the next frame; flows that end with it go to `done`.
    pub fn frame(&mut self, frame: &Frame<'_>, done: &mut Vec<Classified>) {
        self.counts.frames += 1;
        self.counts.bytes += u64::from(frame.length);
        self.counts.cut += u64::from(frame.bytes.len() < frame.length as usize);
        let Some(packet) = Link::new(frame.link).ip(frame.bytes) else {
            self.counts.not_ip += 1;
            return;
        };
        match layers::read(packet) {
            Layers::Segment(segment) => {
                self.counts.of_flows += 1;
                let (open, packet) = self.flows.assign(&segment, frame.at_ns, &mut self.ended);
                classify(self.engine, open, &packet);
                let Self { engine, ended, .. } = self;
                done.extend(ended.drain(..).map(|open| finish(engine, open)));
            }
            Layers::Fragment(key) => {
                if self.flows.fragment(&key, frame.length, frame.at_ns) {
                    self.counts.of_flows += 1;
                } else {
                    self.counts.lost_fragments += 1;
                }
            }
            Layers::OtherProtocol(_) => self.counts.other_protocols += 1,
            Layers::Damaged => self.counts.damaged += 1,
        }
    }

    /// Counts a frame of which the file does not say on what link it was seen.
    pub fn lost(&mut self) {
        self.counts.frames += 1;
        self.counts.not_ip += 1;
    }

    /// The capture is over: ends all flows.
    pub fn finish(mut self, end: End, done: &mut Vec<Classified>) -> Counts {
        self.counts.truncated = end == End::Within;
        for open in self.flows.finish() {
            done.push(finish(self.engine, open));
        }
        self.counts
    }
}

fn classify(engine: &mut Engine, open: &mut Open<Kept>, packet: &Packet<'_>) {
    let kept = &mut open.of_user;
    kept.with_payload += u64::from(packet.length > 0);
    if kept.state.outcome().is_some() && !kept.state.learns() {
        return;
    }
    let outcome = engine.packet(&open.flow, &mut kept.state, packet);
    if kept.known_after.is_none() && matches!(outcome, Classification::Known(_)) {
        kept.known_after = Some(kept.with_payload);
    }
}

fn finish(engine: &mut Engine, mut open: Open<Kept>) -> Classified {
    let label = match engine.give_up(&open.flow, &mut open.of_user.state) {
        Classification::Known(label) => Some(label),
        Classification::Unknown | Classification::Pending => None,
    };
    Classified {
        flow: open.flow,
        packets: open.packets,
        with_payload: open.of_user.with_payload,
        bytes: open.bytes,
        first_ns: open.first_ns,
        last_ns: open.last_ns,
        label,
        known_after: open.of_user.known_after,
        facts: open.of_user.state.facts().clone(),
    }
}

/// Reads a capture to its end and says what its flows are.
///
/// # Errors
/// When it is no capture or is damaged.
pub fn classify_capture(
    engine: &mut Engine,
    input: impl Read + Send,
) -> Result<(Vec<Classified>, Counts), ReadError> {
    let mut run = Run::new(engine, FLOWS);
    let mut done = Vec::new();
    let end = read_all::<ReadError>(input, |item, _| {
        match item {
            Item::Frame(frame) => run.frame(&frame, &mut done),
            Item::Lost => run.lost(),
            Item::Other(_) => {}
        }
        Ok(())
    })?;
    let counts = run.finish(end, &mut done);
    Ok((done, counts))
}

/// A flow as a line of JSON.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    flow: String,
    transport: crate::flow::Transport,
    client: std::net::SocketAddr,
    server: std::net::SocketAddr,
    packets: u64,
    bytes: u64,
    first: f64,
    last: f64,
    application: &'a str,
    detail: Option<&'a str>,
    category: Option<Category>,
    certainty: Option<Certainty>,
    engine: Option<By>,
    reason: Option<&'a str>,
    known_after: Option<u64>,
    server_name: Option<&'a str>,
    ja4: Option<&'a str>,
    dns_name: Option<&'a str>,
}

impl<'a> From<&'a Classified> for Line<'a> {
    fn from(one: &'a Classified) -> Self {
        let label = one.label.as_ref();
        let seconds = |ns: u64| ns as f64 / 1e9;
        Self {
            flow: one.flow.to_string(),
            transport: one.flow.transport,
            client: one.flow.client,
            server: one.flow.server,
            packets: one.packets,
            bytes: one.bytes,
            first: seconds(one.first_ns),
            last: seconds(one.last_ns),
            application: label.map_or("unknown", |label| &label.application),
            detail: label.and_then(|label| label.detail.as_deref()),
            category: label.map(|label| label.category),
            certainty: label.map(|label| label.certainty),
            engine: label.map(|label| label.engine),
            reason: label.map(|label| &*label.reason),
            known_after: one.known_after,
            server_name: one.facts.server_name.as_deref(),
            ja4: one.facts.ja4.as_deref(),
            dns_name: one.facts.dns_name.as_deref(),
        }
    }
}
