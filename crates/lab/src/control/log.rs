//! The last events of a lab, for clients that poll instead of following.

use super::{Context, Event, ReplyError, What, events::Follower};
use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

/// So many of the last events are kept.
const KEPT: usize = 1024;

/// Events, and where they end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventPage {
    /// What to ask for next: how many events there were up to the last of these.
    pub after: u64,
    /// The events.
    pub events: Vec<Event>,
}

/// The events since this was made.
///
/// Nothing is done while nobody asks: the engine keeps changes with their times, and lost packets are
/// summed up since the last question.
#[derive(Debug)]
pub struct EventLog(Mutex<Log>);

impl EventLog {
    /// Begins now.
    ///
    /// # Errors
    /// When the lab ends.
    pub fn new(lab: &Context) -> Result<Self, ReplyError> {
        let log = Log { follower: Follower::new(lab)?, kept: Kept::default() };
        Ok(Self(Mutex::new(log)))
    }

    /// At most `limit` events after the first `after` ones; the last ones if `after` is not given.
    ///
    /// # Errors
    /// When the lab ends.
    pub fn since(
        &self,
        lab: &Context,
        after: Option<u64>,
        limit: usize,
    ) -> Result<EventPage, ReplyError> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let events = log.follower.next(lab)?;
        log.kept.add(events);
        Ok(log.kept.since(after, limit))
    }
}

#[derive(Debug)]
struct Log {
    follower: Follower,
    kept: Kept,
}

/// The last events, and how many there were before.
#[derive(Debug, Default)]
struct Kept {
    last: VecDeque<Event>,
    before: u64,
}

impl Kept {
    fn add(&mut self, events: Vec<Event>) {
        self.last.extend(events);
        let over = self.last.len().saturating_sub(KEPT);
        self.last.drain(..over);
        self.before += over as u64;
    }

    fn since(&self, after: Option<u64>, limit: usize) -> EventPage {
        let total = self.before + self.last.len() as u64;
        // A number that was not reached yet is from another lab: the events begin again here.
        let after = after.filter(|after| *after <= total);
        let after = after.unwrap_or_else(|| self.before.max(total.saturating_sub(limit as u64)));
        let skip = usize::try_from(after.saturating_sub(self.before)).unwrap_or(usize::MAX);
        let mut events: Vec<_> = self.last.iter().skip(skip).take(limit).cloned().collect();
        let end = after.max(self.before) + events.len() as u64;
        if after < self.before {
            let at = events.first().map_or(Nanos::ZERO, |event| event.at);
            events.insert(0, Event { at, what: What::Missed { events: self.before - after } });
        }
        EventPage { after: end, events }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64) -> Event {
        let what = What::Drops { reason: "loss".to_owned(), packets: number };
        Event { at: Nanos(number), what }
    }

    fn kept(events: u64) -> Kept {
        let mut kept = Kept::default();
        (0..events).for_each(|number| kept.add(vec![event(number)]));
        kept
    }

    #[test]
    fn who_asks_again_gets_every_event_once() {
        let kept = kept(10);
        let mut after = 0;
        let mut all = Vec::new();
        while all.len() < 10 {
            let page = kept.since(Some(after), 3);
            assert_eq!(page.after, after + page.events.len() as u64);
            after = page.after;
            all.extend(page.events);
        }
        assert_eq!(all, (0..10).map(event).collect::<Vec<_>>());
        assert_eq!(kept.since(Some(10), 3), EventPage { after: 10, events: Vec::new() });
    }

    #[test]
    fn who_asks_for_the_first_time_gets_the_last_ones() {
        let page = kept(10).since(None, 2);
        assert_eq!(page, EventPage { after: 10, events: vec![event(8), event(9)] });
        // As does who has asked another lab before.
        assert_eq!(kept(10).since(Some(11), 2), page);
    }

    #[test]
    fn who_asks_too_late_gets_the_number_of_missed_events() {
        let page = kept(KEPT as u64 + 5).since(Some(2), 1);
        let missed = Event { at: Nanos(5), what: What::Missed { events: 3 } };
        assert_eq!(page, EventPage { after: 6, events: vec![missed, event(5)] });
    }
}
