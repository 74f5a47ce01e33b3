//! What became of a session's packets in a time, as a record has it.

use crate::{
    record::Delay,
    stamp::sender::{Event, Peer, Way},
    statistics::Collector,
};

/// Collects a session's events.
#[derive(Clone, Debug)]
pub struct Report {
    forth: Collector,
    back: Collector,
    round_trip: Collector,
    /// Whether the reflector counts, so that there is something to say of each way.
    counts: bool,
    /// Whether the reflector's clock can be compared with ours.
    comparable: bool,
}

impl Report {
    /// Nothing yet, for a session with such a reflector.
    pub fn new(peer: Peer) -> Self {
        let [forth, back, round_trip] = std::array::from_fn(|_| Collector::default());
        Self { forth, back, round_trip, counts: peer == Peer::Stateful, comparable: false }
    }

    /// Takes an event.
    pub fn add(&mut self, event: &Event) {
        match event {
            Event::Arrived(sample) => {
                self.round_trip.arrived(sample.sequence, sample.round_trip, sample.reordered);
                if let (Some(forth), Some(back)) = (sample.forth, sample.back) {
                    self.comparable = true;
                    let reordered = |way: Option<bool>| way.unwrap_or(false);
                    self.forth.arrived(sample.sequence, forth, reordered(sample.reordered_forth));
                    self.back.arrived(sample.sequence, back, reordered(sample.reordered_back));
                }
            }
            Event::Lost { way, .. } => {
                self.round_trip.lost();
                match way {
                    Some(Way::Forth) => self.forth.lost(),
                    Some(Way::Back) => self.back.lost(),
                    None => {}
                }
            }
            Event::Late { .. } => self.round_trip.late(),
            Event::Duplicate { way, .. } => {
                self.round_trip.duplicated();
                match way {
                    Some(Way::Forth) => self.forth.duplicated(),
                    Some(Way::Back) => self.back.duplicated(),
                    None => {}
                }
            }
        }
    }

    /// The record of what was added since this was called last.
    pub fn take(&mut self) -> Delay {
        let (forth, back) = (self.forth.take(), self.back.take());
        let tells = std::mem::take(&mut self.comparable);
        Delay {
            forth: tells.then_some(forth),
            back: tells.then_some(back),
            counted: self.counts,
            round_trip: self.round_trip.take(),
        }
    }
}
