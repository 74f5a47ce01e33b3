//! Controlled delay (CoDel), RFC 8289, for a queue whose departures are known.
//!
//! The RFC decides when a packet is taken out of the queue (section 5.5). Here that moment, and so the
//! time that the packet will have waited, is known when it arrives, and all that the decision rests on
//! are packets before it; so it is made at once, and is the same. One term of the RFC looks at packets
//! behind: nothing is dropped if after it at most one packet's worth of bytes is left. That is not known
//! yet, and the bytes that the packet finds before it on arrival stand in for those that it leaves
//! behind: in a queue that stands, which is the only one that CoDel acts on, they are the same. Where a
//! burst ends, CoDel here may still drop one of the last packets, which the RFC would spare.
//!
//! The RFC's routine may take several packets out at one moment, dropping all but the last. Here each is
//! judged in a call of its own, and [`Control::within`] says how far the routine has come.
//!
//! Marking is not in the RFC's pseudocode; it is as in Linux (include/net/codel_impl.h): a packet that
//! would be dropped and can be marked is marked and sent.

use crate::{Nanos, settings::CoDel};

/// Reports of congestion longer ago than so many intervals are forgotten (section 5.5).
const MEMORY: u64 = 16;

/// A packet at the head of the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// When it came into the queue.
    pub(super) arrival: Nanos,
    /// When its turn comes.
    pub(super) turn: Nanos,
    /// Whether more than a packet's worth of bytes was in the queue.
    pub(super) backlog: bool,
    /// Whether it may be marked instead of dropped.
    pub(super) ect: bool,
}

/// What the queue does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    Mark,
    Drop,
}

/// Where the RFC's `dequeue` is when it has dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    /// Not within a call.
    Nothing,
    /// In the loop of the drop state, in a call at this time.
    Loop(Nanos),
    /// Entering the drop state, in a call at this time.
    Entry(Nanos),
}

/// The state of section 5.2; names are the RFC's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    first_above: Option<Nanos>,
    drop_next: Nanos,
    count: u32,
    last_count: u32,
    dropping: bool,
    within: Within,
}

impl Control {
    /// Of a queue that was never used.
    pub(super) fn new() -> Self {
        Self {
            first_above: None,
            drop_next: Nanos::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
            within: Within::Nothing,
        }
    }

    /// Judges the next packet.
    pub(super) fn judge(&mut self, codel: &CoDel, head: Head) -> Verdict {
        match std::mem::replace(&mut self.within, Within::Nothing) {
            // The routine goes on with this packet if it was there at that time.
            Within::Loop(now) if head.arrival < now => {
                if self.may_drop(codel, head) {
                    self.drop_next = self.law(codel, self.drop_next);
                } else {
                    self.dropping = false;
                }
                return self.while_dropping(codel, head);
            }
            Within::Entry(now) if head.arrival < now => {
                self.may_drop(codel, head);
                self.enter(codel, now);
                return Verdict::Pass;
            }
            // It found nothing more, and this packet comes in another call.
            Within::Loop(_) => {
                self.first_above = None;
                self.dropping = false;
            }
            Within::Entry(now) => {
                self.first_above = None;
                self.enter(codel, now);
            }
            Within::Nothing => {}
        }
        let may_drop = self.may_drop(codel, head);
        if self.dropping {
            self.dropping = may_drop;
            self.while_dropping(codel, head)
        } else if !may_drop {
            Verdict::Pass
        } else if codel.ecn && head.ect {
            self.enter(codel, head.turn);
            Verdict::Mark
        } else {
            self.within = Within::Entry(head.turn);
            Verdict::Drop
        }
    }

    /// The loop of `dequeue`, as far as one packet.
    fn while_dropping(&mut self, codel: &CoDel, head: Head) -> Verdict {
        if !self.dropping || head.turn < self.drop_next {
            return Verdict::Pass;
        }
        self.count = self.count.saturating_add(1);
        if codel.ecn && head.ect {
            self.drop_next = self.law(codel, self.drop_next);
            return Verdict::Mark;
        }
        self.within = Within::Loop(head.turn);
        Verdict::Drop
    }

    /// The end of `dequeue`, where the drop state begins.
    fn enter(&mut self, codel: &CoDel, now: Nanos) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now.since(self.drop_next).0 < codel.interval.0.saturating_mul(MEMORY);
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = self.law(codel, now);
        self.last_count = self.count;
    }

    /// `control_law` (section 5.6).
    fn law(&self, codel: &CoDel, from: Nanos) -> Nanos {
        from + Nanos((codel.interval.0 as f64 / f64::from(self.count).sqrt()) as u64)
    }

    /// The judgement in `dodequeue` (section 5.6).
    fn may_drop(&mut self, codel: &CoDel, head: Head) -> bool {
        if head.turn.since(head.arrival) < codel.target || !head.backlog {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(head.turn + codel.interval);
                false
            }
            Some(first_above) => head.turn >= first_above,
        }
    }
}
