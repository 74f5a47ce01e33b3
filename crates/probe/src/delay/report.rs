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
        let round_trip = self.round_trip.take();
        let tells = std::mem::take(&mut self.comparable);
        Delay {
            // Of packets that no later reply has followed nobody knows on which way they were lost.
            counted: self.counts && round_trip.lost <= forth.lost + back.lost,
            forth: tells.then_some(forth),
            back: tells.then_some(back),
            round_trip,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_in_an_outage_leave_those_of_each_way_unknown() {
        let mut report = Report::new(Peer::Stateful);
        let lost = |way| Event::Lost { sequence: 0, sent_ns: 0, way };
        report.add(&lost(Some(Way::Forth)));
        report.add(&lost(Some(Way::Back)));
        assert!(report.take().counted);
        report.add(&lost(Some(Way::Forth)));
        report.add(&lost(None));
        let delay = report.take();
        assert_eq!((delay.counted, delay.round_trip.lost), (false, 2));
        // The next record begins anew.
        assert!(report.take().counted);
        assert!(!Report::new(Peer::Stateless).take().counted);
    }
}
