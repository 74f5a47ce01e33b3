//! The outcome of a session's packets in a time, as a record has it.

use crate::{
    record::Delay,
    stamp::sender::{Direction, Event, Peer},
    statistics::Collector,
};

/// Collects a session's events.
#[derive(Clone, Debug)]
pub struct Report {
    forward: Collector,
    reverse: Collector,
    round_trip: Collector,
    /// Whether the reflector counts, so that there is something to say of each direction.
    counts: bool,
    /// Whether the reflector's clock can be compared with ours.
    comparable: bool,
}

impl Report {
    /// Nothing yet, for a session with such a reflector.
    pub fn new(peer: Peer) -> Self {
        let [forward, reverse, round_trip] = std::array::from_fn(|_| Collector::default());
        Self { forward, reverse, round_trip, counts: peer == Peer::Stateful, comparable: false }
    }

    /// Takes an event.
    pub fn add(&mut self, event: &Event) {
        match event {
            Event::Arrived(sample) => {
                self.round_trip.arrived(sample.sequence, sample.round_trip, sample.reordered);
                if let (Some(forward), Some(reverse)) = (sample.forward, sample.reverse) {
                    self.comparable = true;
                    let reordered = |direction: Option<bool>| direction.unwrap_or(false);
                    self.forward.arrived(
                        sample.sequence,
                        forward,
                        reordered(sample.reordered_forward),
                    );
                    self.reverse.arrived(
                        sample.sequence,
                        reverse,
                        reordered(sample.reordered_reverse),
                    );
                }
            }
            Event::Lost { direction, .. } => {
                self.round_trip.lost();
                match direction {
                    Some(Direction::Forward) => self.forward.lost(),
                    Some(Direction::Reverse) => self.reverse.lost(),
                    None => {}
                }
            }
            Event::Late { .. } => self.round_trip.late(),
            Event::Duplicate { direction, .. } => {
                self.round_trip.duplicated();
                match direction {
                    Some(Direction::Forward) => self.forward.duplicated(),
                    Some(Direction::Reverse) => self.reverse.duplicated(),
                    None => {}
                }
            }
        }
    }

    /// The record of what was added since this was called last.
    pub fn take(&mut self) -> Delay {
        let (forward, reverse) = (self.forward.take(), self.reverse.take());
        let round_trip = self.round_trip.take();
        let comparable = std::mem::take(&mut self.comparable);
        Delay {
            // Of packets that no later reply has followed nobody knows in which direction they were lost.
            counted: self.counts && round_trip.lost <= forward.lost + reverse.lost,
            forward: comparable.then_some(forward),
            reverse: comparable.then_some(reverse),
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
        let lost = |direction| Event::Lost { sequence: 0, sent_ns: 0, direction };
        report.add(&lost(Some(Direction::Forward)));
        report.add(&lost(Some(Direction::Reverse)));
        assert!(report.take().counted);
        report.add(&lost(Some(Direction::Forward)));
        report.add(&lost(None));
        let delay = report.take();
        assert_eq!((delay.counted, delay.round_trip.lost), (false, 2));
        // The next record begins again.
        assert!(report.take().counted);
        assert!(!Report::new(Peer::Stateless).take().counted);
    }
}
