//! The parser that reads what is in flows: streams, files and chat.
//!
//! A file that begins is a question. Until its answer comes nothing more of that flow is read: packets wait
//! here, and so do the events behind the question.

use super::{Parser, fits};
use crate::{
    bounded::at_most,
    chat,
    event::{Event, Expectation, FileVerdict, Interest, Promise, Settings, TransferId},
    manage::Manager,
    stream::Losses,
};
use classify::{
    flow::{Flow, Side},
    packet::{Packet, Tcp},
};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Deserializer, Serialize};
use std::{collections::VecDeque, sync::Arc};

/// Announced flows whose promises are kept.
const MAX_PROMISES: usize = 1000;

/// What the daemon tells of a flow.
#[derive(Debug, Deserialize, Serialize)]
pub struct Item<'a> {
    /// The flow's number.
    pub flow: u32,
    /// What.
    #[serde(borrow)]
    pub what: What<'a>,
}

/// What the daemon tells.
#[derive(Debug, Deserialize, Serialize)]
pub enum What<'a> {
    /// The flow is to be read.
    Begin {
        /// Its sockets.
        sockets: Flow,
        /// Its application.
        application: String,
        /// The number of the promise of another flow that announced it.
        promise: Option<u32>,
        /// The sequence numbers of the client's and the server's SYN, where they were seen.
        syns: [Option<u32>; 2],
        /// [`Settings::hold`] and [`Settings::hash`].
        hold: bool,
        /// The same.
        hash: bool,
    },
    /// Its next packet.
    Packet {
        /// The packet.
        #[serde(borrow)]
        packet: Packet<'a>,
        /// The daemon's number of a packet that is held, larger than those before.
        held: Option<u64>,
        /// [`Manager::taken`] of its sender.
        taken: Option<u32>,
    },
    /// [`Manager::answer`].
    Answer(TransferId, FileVerdict),
    /// [`Manager::revise`].
    Revise(TransferId, FileVerdict),
    /// [`Manager::hold`].
    Hold(bool),
    /// [`Manager::allow`].
    Allow(TransferId),
    /// [`Manager::cleared`].
    Cleared(TransferId, u64),
    /// [`Manager::pause`].
    Pause,
    /// [`Manager::give_up`].
    GiveUp,
    /// [`Manager::finish`]; the flow is forgotten then.
    Finish,
}

/// What the parser says after each item but [`What::Begin`]: before its first packet nothing can be said of a
/// flow, least of all that nothing in it need be held.
#[derive(Debug, Deserialize, Serialize)]
pub struct Answer {
    /// The flow's number.
    pub flow: u32,
    /// What happened.
    #[serde(deserialize_with = "events")]
    pub events: Vec<Event>,
    /// Whether it waits for the answer to the last event.
    pub asks: bool,
    /// Whether this answers [`What::Pause`].
    pub paused: bool,
    /// How the flow stands now.
    pub now: Now,
    /// What went wrong in its streams; with the answer to [`What::Finish`].
    pub finished: Option<[Losses; 2]>,
}

/// The events of one answer. A hole that is filled releases at most a megabyte, in lines of some bytes.
fn events<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Event>, D::Error> {
    at_most::<_, _, { 1 << 19 }>(deserializer)
}

/// How a flow stands.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Now {
    /// [`Manager::interests`].
    pub interests: [Interest; 2],
    /// [`Manager::hold_from`] of client and server.
    pub hold_from: [Option<u32>; 2],
    /// [`Manager::sequence`].
    pub sequence: [Option<u32>; 2],
    /// [`Manager::read`].
    pub read: [u64; 2],
    /// Datagrams that are held and may not go on, by their numbers.
    pub waits: Vec<u64>,
    /// The number of the last packet that was read of those that are held: later ones wait in any case.
    pub held: u64,
}

impl Default for Now {
    /// Nothing was read yet.
    fn default() -> Self {
        Self {
            interests: [Interest::All; 2],
            hold_from: [None; 2],
            sequence: [None; 2],
            read: [0; 2],
            waits: Vec::new(),
            held: 0,
        }
    }
}

/// A packet that is kept.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) from: Side,
    pub(crate) at_ns: u64,
    pub(crate) tcp: Option<Tcp>,
    pub(crate) payload: Vec<u8>,
    pub(crate) length: u32,
}

impl Kept {
    pub(crate) fn new(packet: &Packet<'_>) -> Self {
        Self {
            from: packet.from,
            at_ns: packet.at_ns,
            tcp: packet.tcp,
            payload: packet.payload.to_vec(),
            length: packet.length,
        }
    }

    pub(crate) fn packet(&self) -> Packet<'_> {
        Packet {
            at_ns: self.at_ns,
            from: self.from,
            tcp: self.tcp,
            payload: &self.payload,
            length: self.length,
        }
    }
}

/// What waits until a question is answered.
#[derive(Debug)]
enum Later {
    Packet(Kept, Option<u64>, Option<u32>),
    Pause,
    GiveUp,
}

/// A flow that is read.
#[derive(Debug)]
struct Reading {
    manager: Manager,
    /// The question that has no answer yet.
    asked: Option<TransferId>,
    /// Events behind it.
    events: VecDeque<Event>,
    later: VecDeque<Later>,
    /// Datagrams that are held: the daemon's number, who sent it, the manager's token.
    held: Vec<(u64, Side, u32)>,
    last_held: u64,
}

/// All flows that are read.
#[derive(Debug)]
pub struct Contents {
    settings: Settings,
    flows: FxHashMap<u32, Reading>,
    promises: VecDeque<(u32, Arc<Promise>)>,
    promised: u32,
}

impl Reading {
    fn packet(&mut self, packet: &Packet<'_>, held: Option<u64>, taken: Option<u32>) {
        if let Some(number) = held {
            self.last_held = number;
            let token = self.manager.token(packet);
            self.held.extend(token.map(|token| (number, packet.from, token)));
        }
        if let Some(number) = taken {
            self.manager.taken(packet.from, number);
        }
        let mut events = Vec::new();
        self.manager.packet(packet, &mut events);
        self.events.extend(events);
    }

    /// Does one thing, at once or, behind a question, later.
    fn take(&mut self, what: What<'_>) {
        let later = match what {
            What::Packet { packet, held, taken } if self.asked.is_none() => {
                return self.packet(&packet, held, taken);
            }
            What::Packet { packet, held, taken } => Later::Packet(Kept::new(&packet), held, taken),
            What::Pause => Later::Pause,
            What::GiveUp => Later::GiveUp,
            What::Answer(transfer, verdict) => {
                if self.asked == Some(transfer) {
                    self.asked = None;
                }
                let mut events = Vec::new();
                self.manager.answer(transfer, verdict, &mut events);
                for event in events.into_iter().rev() {
                    self.events.push_front(event);
                }
                return;
            }
            What::Revise(transfer, verdict) => {
                self.manager.revise(transfer, verdict);
                return;
            }
            What::Allow(transfer) => {
                self.manager.allow(transfer);
                return;
            }
            What::Cleared(transfer, bytes) => {
                self.manager.cleared(transfer, bytes);
                return;
            }
            What::Hold(hold) => return self.manager.hold(hold),
            What::Begin { .. } | What::Finish => return,
        };
        self.later.push_back(later);
    }

    /// Events up to the next question; what waited behind the last one goes on.
    fn events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while self.asked.is_none() {
            if let Some(event) = self.events.pop_front() {
                if let Event::FileNamed(named) = &event {
                    self.asked = Some(named.transfer);
                }
                events.push(event);
                continue;
            }
            let mut more = Vec::new();
            match self.later.pop_front() {
                Some(Later::Packet(kept, held, taken)) => {
                    self.packet(&kept.packet(), held, taken);
                }
                Some(Later::Pause) => self.manager.pause(&mut more),
                Some(Later::GiveUp) => drop(self.manager.give_up(&mut more)),
                None => break,
            }
            self.events.extend(more);
        }
        events
    }

    fn now(&mut self) -> Now {
        let Self { manager, held, last_held, .. } = self;
        held.retain(|(_, from, token)| manager.waits(*from, *token));
        Now {
            interests: manager.interests(),
            hold_from: [Side::Client, Side::Server].map(|side| manager.hold_from(side)),
            sequence: [Side::Client, Side::Server].map(|side| manager.sequence(side)),
            read: manager.read(),
            waits: held.iter().map(|(number, ..)| *number).collect(),
            held: *last_held,
        }
    }
}

impl Contents {
    /// Begins to read a flow.
    fn begin(
        &mut self,
        sockets: &Flow,
        application: &str,
        promise: Option<u32>,
        settings: &Settings,
    ) -> Option<Manager> {
        let Some(number) = promise else { return Manager::new(application, sockets, settings) };
        let place = self.promises.iter().position(|(kept, _)| *kept == number);
        let promise =
            place.and_then(|place| self.promises.remove(place)).map(|(_, promise)| promise);
        let expectation = Expectation {
            client: None,
            server: sockets.server,
            application: "",
            number,
            promise: promise.unwrap_or_default(),
        };
        Some(Manager::expected(&expectation, sockets, settings))
    }
}

impl Parser for Contents {
    type Settings = ();
    type Item<'a> = Item<'a>;
    type Answer = Answer;

    const NAME: &'static str = "contents";

    fn new((): &()) -> Result<Self, String> {
        Ok(Self {
            settings: Settings::default(),
            flows: FxHashMap::default(),
            promises: VecDeque::new(),
            promised: 0,
        })
    }

    fn take(&mut self, Item { flow, what }: Item<'_>, answers: &mut Vec<Answer>) {
        let (finishes, paused) = (matches!(what, What::Finish), matches!(what, What::Pause));
        match what {
            What::Begin { sockets, application, promise, syns, hold, hash } => {
                let settings = Settings { hold, hash, ..self.settings.clone() };
                if let Some(manager) = self.begin(&sockets, &application, promise, &settings) {
                    let mut reading = Reading {
                        manager,
                        asked: None,
                        events: VecDeque::new(),
                        later: VecDeque::new(),
                        held: Vec::new(),
                        last_held: 0,
                    };
                    // What comes of a side is held from its first byte on.
                    for syn in super::syns(syns) {
                        reading.packet(&syn, None, None);
                    }
                    self.flows.insert(flow, reading);
                }
                return;
            }
            What::Finish => {
                let Some(mut reading) = self.flows.remove(&flow) else { return };
                let mut events = Vec::new();
                reading.manager.finish(&mut events);
                let losses = [Side::Client, Side::Server].map(|side| reading.manager.losses(side));
                let now = reading.now();
                let finished = Some(losses);
                answers.push(Answer { flow, events, asks: false, paused, now, finished });
            }
            what => {
                if let Some(reading) = self.flows.get_mut(&flow) {
                    reading.take(what);
                }
            }
        }
        let Some(reading) = self.flows.get_mut(&flow).filter(|_| !finishes) else { return };
        let mut events = reading.events();
        for event in &mut events {
            if let Event::Expect(expectation) = event {
                self.promised = self.promised.wrapping_add(1);
                expectation.number = self.promised;
                self.promises.push_back((self.promised, Arc::clone(&expectation.promise)));
            }
        }
        while self.promises.len() > MAX_PROMISES {
            self.promises.pop_front();
        }
        let asks = reading.asked.is_some();
        answers.push(Answer { flow, events, asks, paused, now: reading.now(), finished: None });
    }

    fn parts(answer: &Answer) -> usize {
        1 + answer.events.len()
    }

    fn is_sound(answer: &Answer) -> bool {
        let is_sound = |event: &Event| match event {
            Event::FileNamed(named) => {
                let texts =
                    [&named.name, &named.location, &named.host, &named.media, &named.coding];
                texts.into_iter().flatten().all(|text| fits(text))
                    && named.range.is_none_or(|(start, end)| start <= end)
            }
            Event::Chat(message) => {
                let text = match &message.event {
                    chat::Event::Text(text)
                    | chat::Event::Notice(text)
                    | chat::Event::Action(text)
                    | chat::Event::Leave(text)
                    | chat::Event::Rename(text)
                    | chat::Event::Topic(text) => text,
                    chat::Event::Offer { name, .. } | chat::Event::Await { name, .. } => name,
                    chat::Event::Join | chat::Event::Direct(_) | chat::Event::Encrypted => "",
                };
                [text, &message.from, &message.to].into_iter().all(fits)
            }
            Event::Torrent { torrent, .. } => torrent.is_sound(),
            Event::Content { .. }
            | Event::Paused { .. }
            | Event::FileEnded { .. }
            | Event::Block { .. }
            | Event::Expect(_)
            | Event::Unread => true,
        };
        answer.events.iter().all(is_sound)
    }
}
