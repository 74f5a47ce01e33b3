//! What looks at a flow's first packets: the parser's process that names flows.
//!
//! All packets of a batch go there in one request ([`Namer::look`]) before the core asks about each. What was
//! not foreseen is asked by itself.

use super::{core::Inspect, id::Id, managed::Announcement};
use crate::{
    config::GateConfig,
    parser::{
        frame::Frame,
        link::{Link, LinkError, Program},
        names::{Answer, Item, Names},
    },
};
use classify::{
    flow::Flow,
    label::{self, Category, Certainty, Classification, Label},
    packet::Packet,
};
use rustc_hash::FxHashMap;
use std::{
    collections::VecDeque,
    sync::mpsc::{Receiver, Sender, channel},
};

/// Starts the parser that a configuration asks for.
///
/// # Errors
/// When it cannot be started.
pub(super) fn open(program: &Program, config: &GateConfig) -> Result<Link<Names>, LinkError> {
    Link::open(program.clone(), config.into())
}

/// The label of a flow that another one has announced.
pub(super) fn announced(Announcement { expectation, by, .. }: &Announcement) -> Label {
    Label {
        application: expectation.application.into(),
        detail: None,
        category: Category::FileTransfer,
        certainty: Certainty::Likely,
        engine: label::Engine::Parser,
        reason: format!("announced by {by}").into(),
    }
}

/// What is remembered here of a flow that the parser knows.
#[derive(Debug)]
pub(super) struct Known {
    number: u32,
    /// Until the parser was told of it: the sequence numbers of both SYNs.
    begins: Option<[Option<u32>; 2]>,
    wants: u8,
    learns: bool,
    gone: Sender<u32>,
}

impl Known {
    fn heard(&mut self, answer: Answer) -> Classification {
        (self.wants, self.learns) = (answer.wants, answer.learns);
        // What was said before was heard before: nobody waits for it any more.
        answer.outcome.unwrap_or(Classification::Pending)
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        if self.begins.is_none() {
            // Another parser may be in that one's place.
            let _ = self.gone.send(self.number);
        }
    }
}

/// The daemon's end of the parser.
#[derive(Debug)]
pub(super) struct Namer {
    link: Link<Names>,
    request: Frame,
    /// The flows of the items that are answered, in their order.
    asked: Vec<u32>,
    answers: FxHashMap<u32, VecDeque<Answer>>,
    /// Numbers of flows of the batch that the core does not know yet.
    foreseen: FxHashMap<Id, u32>,
    next: u32,
    gone: (Sender<u32>, Receiver<u32>),
}

impl Namer {
    pub(super) fn new(link: Link<Names>) -> Self {
        Self {
            link,
            request: Frame::default(),
            asked: Vec::new(),
            answers: FxHashMap::default(),
            foreseen: FxHashMap::default(),
            next: 0,
            gone: channel(),
        }
    }

    /// Another parser is in the place of this one.
    pub(super) fn replace(&mut self, mut link: Link<Names>) {
        link.succeed(&self.link);
        *self = Self::new(link);
    }

    pub(super) const fn link(&self) -> &Link<Names> {
        &self.link
    }

    /// Starts the parser again if it has to be: once a turn, and not with each request.
    pub(super) fn keep(&mut self) {
        self.link.is_ready();
    }

    fn number(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1);
        self.next
    }

    fn push(&mut self, item: &Item<'_>) {
        if let Item::Packet { flow, .. } | Item::GiveUp(flow) = item {
            self.asked.push(*flow);
        }
        self.request.push(item);
    }

    /// Adds a packet to the request of a batch.
    pub(super) fn foresee(
        &mut self,
        flow: &Flow,
        begins: [Option<u32>; 2],
        known: Option<&mut Known>,
        packet: Packet<'_>,
    ) {
        let (number, new) = match known {
            Some(known) => (known.number, known.begins.take()),
            None => match self.foreseen.get(&Id::of(flow)) {
                Some(number) => (*number, None),
                None => {
                    let number = self.number();
                    self.foreseen.insert(Id::of(flow), number);
                    (number, Some(begins))
                }
            },
        };
        let new = new.map(|begins| (*flow, begins));
        self.push(&Item::Packet { flow: number, new, packet });
    }

    /// Asks the parser of all packets of the batch.
    pub(super) fn look(&mut self) {
        self.answers.clear();
        if self.asked.is_empty() {
            return;
        }
        for answer in self.exchange().unwrap_or_default() {
            self.answers.entry(answer.flow).or_default().push_back(answer);
        }
    }

    /// The batch is over.
    pub(super) fn looked(&mut self) {
        self.answers.clear();
        for (_, number) in std::mem::take(&mut self.foreseen) {
            // The core had no use for it.
            let _ = self.gone.0.send(number);
        }
    }

    /// Sends the request; the answers, one to each item of it that is answered.
    fn exchange(&mut self) -> Option<Vec<Answer>> {
        let asked = std::mem::take(&mut self.asked);
        let answers = self.link.exchange(&mut self.request)?;
        if !answers.iter().map(|answer| answer.flow).eq(asked) {
            self.link.refuse();
            return None;
        }
        // Of no hurry: with the next request.
        while let Ok(number) = self.gone.1.try_recv() {
            self.request.push(&Item::Forget(number));
        }
        Some(answers)
    }

    /// Asks about one thing.
    fn ask(&mut self, item: &Item<'_>) -> Option<Answer> {
        self.push(item);
        self.exchange()?.pop()
    }
}

impl Inspect for Namer {
    type State = Known;

    fn begin(&mut self, flow: &Flow, begins: [Option<u32>; 2]) -> Known {
        let (number, begins) = match self.foreseen.remove(&Id::of(flow)) {
            Some(number) => (number, None),
            None => (self.number(), Some(begins)),
        };
        Known { number, begins, wants: 0, learns: false, gone: self.gone.0.clone() }
    }

    fn packet(
        &mut self,
        flow: &Flow,
        known: &mut Known,
        packet: &Packet<'_>,
    ) -> Option<Classification> {
        let answers = self.answers.get_mut(&known.number);
        let answer = match answers.and_then(VecDeque::pop_front) {
            Some(answer) => answer,
            None => {
                let new = known.begins.take().map(|begins| (*flow, begins));
                self.ask(&Item::Packet { flow: known.number, new, packet: *packet })?
            }
        };
        Some(known.heard(answer))
    }

    fn wants(&self, known: &Known) -> u32 {
        known.wants.into()
    }

    fn give_up(&mut self, _: &Flow, known: &mut Known) -> Option<Classification> {
        if known.begins.is_some() {
            // There was nothing to see.
            return Some(Classification::Unknown);
        }
        let answer = self.ask(&Item::GiveUp(known.number))?;
        Some(known.heard(answer))
    }

    fn learns(&self, known: &Known) -> bool {
        known.learns
    }

    fn was_lost(&mut self) -> bool {
        self.link.was_lost()
    }
}
