//! What the managers ask the parser that reads contents, and what follows from its answers.

use super::{Around, Managed, Managers, WorkerCommand};
use crate::{
    event::Event,
    files::ANNOUNCERS,
    parser::{
        contents::{Answer, Contents, Item, What},
        frame::Frame,
        link::Link,
    },
    service::{id::Id, records::Ended},
};
use classify::flow::Side;
use datapath::gate::Manage;
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};

/// How long answers and further questions follow each other before the worker does something else.
const LONG: Duration = Duration::from_secs(1);

/// The daemon's end of the parser.
pub(super) struct Reading {
    link: Link<Contents>,
    request: Frame,
    /// Flows by their numbers.
    numbers: FxHashMap<u32, Id>,
    /// Flows that are over, until their last answer.
    ending: FxHashMap<u32, Managed>,
    next: u32,
    /// Packets that were held.
    held: u64,
    /// Whether what is asked may announce a flow.
    announces: bool,
}

impl Reading {
    pub(super) fn new(link: Link<Contents>) -> Self {
        Self {
            link,
            request: Frame::default(),
            numbers: FxHashMap::default(),
            ending: FxHashMap::default(),
            next: 0,
            held: 0,
            announces: false,
        }
    }

    /// A number for a flow.
    pub(super) fn number(&mut self, id: Id) -> u32 {
        self.next = self.next.wrapping_add(1);
        self.numbers.insert(self.next, id);
        self.next
    }

    /// A number for a packet that is held.
    pub(super) fn token(&mut self) -> u64 {
        self.held += 1;
        self.held
    }

    pub(super) fn is_ready(&mut self) -> bool {
        self.link.is_ready()
    }

    /// As if it had answered nonsense.
    #[cfg(test)]
    pub(super) fn fail(&mut self) {
        self.link.refuse();
    }

    /// Adds to the next request.
    pub(super) fn ask(&mut self, flow: u32, what: What<'_>) {
        self.request.push(&Item { flow, what });
    }

    /// Adds a packet to the next request.
    pub(super) fn packet(&mut self, flow: u32, application: &str, what: What<'_>) {
        self.announces |= ANNOUNCERS.contains(&application);
        self.ask(flow, what);
    }

    /// A flow is over: its last answer is awaited.
    pub(super) fn finish(&mut self, managed: Managed) {
        self.numbers.remove(&managed.number);
        self.ask(managed.number, What::Finish);
        self.ending.insert(managed.number, managed);
    }
}

impl Managers {
    /// The parser, for its counters.
    pub(in crate::service) const fn link(&self) -> &Link<Contents> {
        &self.reading.link
    }

    /// Whether what was not asked yet may announce a flow.
    pub(in crate::service) const fn may_announce(&self) -> bool {
        self.reading.announces
    }

    /// Asks the parser all that is to be asked, and does what follows from the answers.
    pub(in crate::service) fn exchange(
        &mut self,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        let until = Instant::now() + LONG;
        self.reading.announces = false;
        // It may have failed since, or be there again.
        self.reading.link.is_ready();
        let mut lost = self.reading.link.was_lost();
        while !lost && !self.reading.request.is_empty() && Instant::now() < until {
            let Reading { link, request, .. } = &mut self.reading;
            match link.exchange(request) {
                Some(answers) => {
                    for answer in answers {
                        self.answered(answer, around, commands);
                    }
                }
                None => lost = true,
            }
        }
        if lost {
            self.lose_all(around, commands);
            self.reading.link.was_lost();
        }
    }

    fn answered(&mut self, answer: Answer, around: &Around<'_>, commands: &mut Vec<WorkerCommand>) {
        let Answer { flow: number, events, asks, paused, now, finished } = answer;
        if let Some(losses) = finished {
            let Some(mut managed) = self.reading.ending.remove(&number) else { return };
            for event in events {
                if let Event::FileEnded { transfer, bytes, complete, missed, sha256 } = event
                    && let Some(file) = managed.transfers.get_mut(&transfer)
                {
                    file.ended = Some(Ended { bytes, complete, missed, sha256 });
                }
            }
            for (side, losses) in [Side::Client, Side::Server].into_iter().zip(losses) {
                around.log.losses(&managed.subject(around), side, losses);
            }
            return managed.close(around);
        }
        // Of one that is over meanwhile its last answer counts.
        let Some(id) = self.reading.numbers.get(&number).copied() else { return };
        let Some(managed) = self.flows.get_mut(&id) else { return };
        if now.read != managed.now.read {
            managed.moved_ns = around.now_ns;
        }
        managed.pauses += u32::from(paused && !events.is_empty());
        (managed.now, managed.asks) = (now, asks);
        self.events(id, events, around, commands);
    }

    /// The parser has failed: flows go on unread, or are refused, as `gate.scan` says.
    fn lose_all(&mut self, around: &Around<'_>, commands: &mut Vec<WorkerCommand>) {
        self.announced.without_promises();
        let ids: Vec<Id> = self.flows.keys().copied().collect();
        for id in ids {
            self.counts.lost += 1;
            self.unread(&id, around, commands);
            self.release_unread(&id, commands);
        }
        self.reading.request.clear();
        self.reading.numbers.clear();
        for (_, mut managed) in std::mem::take(&mut self.reading.ending) {
            managed.close(around);
        }
    }

    /// A flow goes on of which nothing can be read any more.
    pub(super) fn release_unread(&mut self, id: &Id, commands: &mut Vec<WorkerCommand>) {
        let Some(managed) = self.flows.get_mut(id) else { return };
        commands.push(WorkerCommand::Manage(managed.flow, [Manage::default(); 2]));
        for waiting in std::mem::take(&mut managed.waiting) {
            self.waiting_bytes -= waiting.held.bytes();
            commands.push(WorkerCommand::Release(waiting.held));
        }
        self.forget(id);
    }
}
