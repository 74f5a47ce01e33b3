//! The outcome of each packet on a link that does more than delay.
//!
//! A packet's outcome is decided when it is offered, for everything is known then: the queue is first in,
//! first out and the rate is given, so when the packets before it will have left is a sum. The queue is
//! a list of those times, no packet is kept here, and a link needs no timer. A packet passes, in this
//! order:
//!
//! 1. the output queue: it is full, or its discipline drops or marks;
//! 2. the transmitter, which takes its time for every packet that was not dropped so far;
//! 3. the wire, which loses, flips a bit, delays, and makes a second copy.
//!
//! Settings are an argument, so a change takes effect between two packets; packets in flight keep
//! the outcome that was decided.
//!
//! The n-th packet's randomness is a function of the seed, the link and n (see `random`): the same
//! arrivals meet the same outcomes, and one effect's draws do not shift when another is switched on.

mod codel;
mod jitter;
mod random;
mod red;
mod transmitter;
mod waiting;

#[cfg(test)]
mod tests;

use crate::{
    LinkId, Nanos,
    settings::{Discipline, ETHERNET_HEADER, LinkSettings, Loss, Reorder, Share},
};
use codel::Verdict;
use random::{Draws, Lane, Random};
use transmitter::Transmitter;
use waiting::Waiting;

/// A packet that comes to a link.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When; never earlier than the one before.
    pub now: Nanos,
    /// Bytes of the IP packet.
    pub length: u32,
    /// Whether its sender says that it may be marked instead of dropped (RFC 3168: ECT(0), ECT(1), or
    /// marked already).
    pub ect: bool,
}

/// Why a link dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The link is down.
    Down,
    /// The queue was full.
    QueueFull,
    /// CoDel or RED dropped it before the queue was full.
    QueueDiscipline,
    /// The wire lost it.
    Lost,
}

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It does not arrive.
    Drop(DropReason),
    /// It arrives at the other end.
    Pass {
        /// When its last byte does.
        at: Nanos,
        /// When a second copy arrives as well, of the packet as it arrives.
        copy: Option<Nanos>,
        /// A bit that is flipped on the path: its index in the IP packet, where bit 0 is the lowest of
        /// the first byte.
        corrupt: Option<u32>,
        /// Whether the queue marks it as having met congestion (RFC 3168: CE).
        mark: bool,
    },
}

impl Outcome {
    /// It arrives then, as it is.
    pub(crate) fn delayed(at: Nanos) -> Self {
        Self::Pass { at, copy: None, corrupt: None, mark: false }
    }
}

/// The queue and the wire of one directed link, and its randomness.
#[derive(Clone, Debug)]
pub struct LinkState {
    random: Random,
    /// Packets that were offered so far.
    count: u64,
    waiting: Waiting,
    transmitter: Transmitter,
    codel: codel::Control,
    red: red::Average,
    /// The wire's state in the model of Gilbert and Elliott.
    bad: bool,
    /// When the last packet arrives that those behind it may not overtake.
    last: Nanos,
    /// Packets since the last that was late, as far as the gap.
    since_late: u32,
}

impl LinkState {
    /// An idle link. The lab's seed and the link's number give its randomness.
    pub fn new(seed: u64, link: LinkId) -> Self {
        Self {
            random: Random::new(seed, link),
            count: 0,
            waiting: Waiting::default(),
            transmitter: Transmitter::default(),
            codel: codel::Control::new(),
            red: red::Average::new(),
            bad: false,
            last: Nanos::ZERO,
            since_late: 0,
        }
    }

    /// The outcome of the next packet.
    pub fn offer(&mut self, settings: &LinkSettings, arrival: Arrival) -> Outcome {
        let draws = self.random.packet(self.count);
        self.count += 1;
        if !settings.up {
            return Outcome::Drop(DropReason::Down);
        }
        match self.send(settings, arrival, draws) {
            Ok((sent, mark)) => self.cross(settings, draws, arrival.length, sent, mark),
            Err(reason) => Outcome::Drop(reason),
        }
    }

    /// Through queue and transmitter: when the last bit is sent, and whether it is marked.
    fn send(
        &mut self,
        settings: &LinkSettings,
        arrival: Arrival,
        draws: Draws,
    ) -> Result<(Nanos, bool), DropReason> {
        let (now, queue) = (arrival.now, &settings.queue);
        let start = self.transmitter.start(now);
        if settings.rate.is_none() && start == now {
            return Ok((now, false));
        }
        let bytes = arrival.length.saturating_add(ETHERNET_HEADER);
        self.waiting.leave(now);
        let (found, mut verdict) = (self.waiting.bytes(), Verdict::Pass);
        if let Discipline::Red(red) = &queue.discipline {
            let found = red::Found {
                size: self.waiting.size(queue.limit),
                idle: (start == now).then(|| now - self.transmitter.free()),
                rate: settings.rate.unwrap_or(u64::MAX),
                ect: arrival.ect,
            };
            verdict = self.red.judge(red, found, draws.number(Lane::Red));
            if verdict == Verdict::Drop {
                return Err(DropReason::QueueDiscipline);
            }
        }
        if start > now {
            if !self.waiting.fits(queue.limit, bytes) {
                return Err(DropReason::QueueFull);
            }
            self.waiting.enter(start, bytes);
        }
        if let Discipline::CoDel(codel) = &queue.discipline {
            let backlog = found > u64::from(settings.mtu) + u64::from(ETHERNET_HEADER);
            let head = codel::Head { arrival: now, turn: start, backlog, ect: arrival.ect };
            verdict = self.codel.judge(codel, head);
            // Until its turn it waits like the others.
            if verdict == Verdict::Drop {
                return Err(DropReason::QueueDiscipline);
            }
        }
        let sent = self.transmitter.send(now, bytes, settings.rate);
        Ok((sent, verdict == Verdict::Mark))
    }

    /// Over the wire.
    fn cross(
        &mut self,
        settings: &LinkSettings,
        draws: Draws,
        length: u32,
        sent: Nanos,
        mark: bool,
    ) -> Outcome {
        if self.loses(&settings.loss, draws) {
            return Outcome::Drop(DropReason::Lost);
        }
        let late = settings.reorder.filter(|reorder| self.is_late(reorder, draws));
        let late = late.map(|reorder| reorder.late);
        let takes = |share: Share, lane| share != Share::NEVER && share.takes(draws.number(lane));
        let at = self.arrives(settings, draws.number(Lane::Jitter), sent, late);
        let copy = takes(settings.duplicate, Lane::Duplicate)
            .then(|| self.arrives(settings, draws.number(Lane::JitterOfCopy), sent, late));
        let corrupt = takes(settings.corrupt, Lane::Corrupt)
            .then(|| draws.below(Lane::Bit, length.saturating_mul(8)));
        Outcome::Pass { at, copy, corrupt, mark }
    }

    fn loses(&mut self, loss: &Loss, draws: Draws) -> bool {
        match *loss {
            Loss::None => false,
            Loss::Independent(share) => share.takes(draws.number(Lane::Loss)),
            Loss::GilbertElliott { to_bad, to_good, in_good, in_bad } => {
                let (loses, turns) = if self.bad { (in_bad, to_good) } else { (in_good, to_bad) };
                self.bad ^= turns.takes(draws.number(Lane::Turn));
                loses.takes(draws.number(Lane::Loss))
            }
        }
    }

    fn is_late(&mut self, reorder: &Reorder, draws: Draws) -> bool {
        self.since_late = self.since_late.saturating_add(1);
        let late =
            self.since_late >= reorder.gap && reorder.share.takes(draws.number(Lane::Reorder));
        if late {
            self.since_late = 0;
        }
        late
    }

    /// When a packet that was sent then arrives.
    fn arrives(
        &mut self,
        settings: &LinkSettings,
        random: u32,
        sent: Nanos,
        late: Option<Nanos>,
    ) -> Nanos {
        let mut at = sent;
        match &settings.jitter {
            None => at += settings.delay,
            Some(jitter) => {
                at += jitter::delay(settings.delay, jitter, random);
                if jitter.keep_order {
                    at = at.max(self.last);
                }
            }
        }
        match late {
            Some(late) => at + late,
            None => {
                self.last = self.last.max(at);
                at
            }
        }
    }
}
