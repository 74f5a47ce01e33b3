//! The Session-Sender as a value (RFC 8762, section 4.2): test packets out, samples in.
//!
//! Each packet that was sent is waited for, for the session's time limit; it leaves the list only then, so
//! that a second reply to it is known as a duplicate. Its sample is reported as soon as nothing better is
//! to come: the reply, the kernel's time of sending, and, where it was asked for, the reflector's in the
//! next reply.
//!
//! # In which direction a packet was lost
//!
//! A stateful reflector numbers what it reflects. Between two replies a to the packets s1 < s2 with the
//! reflector's numbers r1 < r2, s2 - s1 - 1 packets are missing, and r2 - r1 - 1 of them were reflected:
//! these were lost on the reverse path, the others on the forward path. Which of them is which is not known, only
//! how many; where packets overtook one another near a loss, some may be taken for the other kind. Behind
//! the last reply nothing is known.

use super::{
    Arrival, ErrorEstimate, Key, MAX_LENGTH, Reading, Reflected, Refusals, Refused, Test,
    Timestamp,
    packet::base_length,
    tlv::{self, Ask, Reported},
};
use crate::interval::{Interval, MaximumError, Stamp};
use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

/// A kernel's time that is so long after the packet was handed to it is none of that packet.
const STALE_NS: u64 = 10_000_000_000;

/// Packets next to one that are looked through for what overtook it, or for the one that a reply reveals more
/// of: what is farther away is not known, however many are in flight.
const NEIGHBOURS: usize = 256;

/// What reflects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Peer {
    /// A STAMP reflector that counts what it reflects.
    #[default]
    Stateful,
    /// A STAMP reflector that copies the sender's numbers.
    Stateless,
    /// A responder of TWAMP Light, which may neither count nor set its Error Estimate.
    TwampLight,
}

/// What a session is.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The session's number; zero for none.
    pub ssid: u16,
    /// Whether a reply without the number is refused; a reflector that knows only RFC 8762 gives none.
    pub ssid_needed: bool,
    /// The key of authenticated mode; without one, packets are unauthenticated.
    pub key: Option<Key>,
    /// What reflects.
    pub peer: Peer,
    /// Extensions to ask for.
    pub ask: Ask,
    /// Bytes of UDP payload; what is asked for is sent whole if it takes more.
    pub length: usize,
    /// The code point in the IP header.
    pub dscp: u8,
    /// A packet that has no reply within this is lost (RFC 7680).
    pub limit: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ssid: 0,
            ssid_needed: false,
            key: None,
            peer: Peer::Stateful,
            ask: Ask { follow_up: true, ..Ask::default() },
            length: 0,
            dscp: 0,
            limit: Duration::from_secs(2),
        }
    }
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the sender to the reflector.
    Forward,
    /// From the reflector to the sender.
    Reverse,
}

/// A packet that came back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Its number.
    pub sequence: u32,
    /// When it was sent: nanoseconds since 1970 by our clock.
    pub sent_ns: u64,
    /// One-way delays; `None` where the reflector's moments cannot be compared with ours.
    pub forward: Option<Interval>,
    /// The same for the reverse path.
    pub reverse: Option<Interval>,
    /// Both directions without the reflector's own time.
    pub round_trip: Interval,
    /// Whether the kernel reported when the test packet was sent; else it is when the kernel was given it.
    pub kernel_sent: bool,
    /// Whether the reflector's kernel reported when the reply was sent, in a later one.
    pub kernel_left: bool,
    /// Whether a packet that was sent later was reflected earlier; `None` where nobody counts.
    pub reordered_forward: Option<bool>,
    /// Whether a packet that was reflected later came earlier; `None` where nobody counts.
    pub reordered_reverse: Option<bool>,
    /// Whether a packet that was sent later came back earlier.
    pub reordered: bool,
    /// TTL or hop limit with which it arrived at the reflector.
    pub ttl: u8,
    /// The byte with DSCP and ECN with which it arrived there, if that was asked for.
    pub traffic_class: Option<u8>,
}

/// What happened in a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// A packet came back; reported once.
    Arrived(Sample),
    /// A packet did not come back in time.
    Lost {
        /// Its number.
        sequence: u32,
        /// When it was sent.
        sent_ns: u64,
        /// In which direction, as far as that is known.
        direction: Option<Direction>,
    },
    /// A packet that was reported lost came back after all.
    Late {
        /// Its number.
        sequence: u32,
    },
    /// A packet came back once more.
    Duplicate {
        /// Its number.
        sequence: u32,
        /// In which direction it was doubled, if the reflector counts.
        direction: Option<Direction>,
    },
}

/// A packet in flight, or one that came and may come again.
#[derive(Clone, Debug)]
struct Waiting {
    /// Monotonic time at which it is lost.
    overdue_ns: u64,
    /// T1 as it is in the packet.
    written: Timestamp,
    sent: Stamp,
    kernel_sent: bool,
    reply: Option<Reply>,
}

/// What is known of the reply to a packet.
#[derive(Clone, Copy, Debug)]
struct Reply {
    reflected: Reflected,
    /// T4.
    came: Stamp,
    /// The kernel's T3, once it is known.
    left: Option<Timestamp>,
    reordered: [bool; 3],
    traffic_class: Option<u8>,
    reported: bool,
}

/// The sender of one session.
#[derive(Debug)]
pub struct Sender {
    settings: Settings,
    /// Packets from number `next` less their count up to before `next`.
    waiting: VecDeque<Waiting>,
    next: u32,
    /// Packets that have left the list.
    settled: u64,
    /// Those of the list that have a reply, counted from the session's first packet.
    answered: BTreeSet<u64>,
    /// The last packet that left the list with a reply: its number and the reflector's.
    last: Option<(u32, u32)>,
    /// Bit n: whether the n-th last packet that left the list had a reply, or has had one since.
    came: u128,
    /// After the highest number that a reply came to, and the highest of the reflector's.
    expected: Option<(u32, u32)>,
    refusals: Refusals,
}

impl Sender {
    /// A session that begins.
    pub fn new(settings: Settings) -> Self {
        let (waiting, refusals) = (VecDeque::new(), Refusals::default());
        Self {
            settings,
            waiting,
            next: 0,
            settled: 0,
            answered: BTreeSet::new(),
            last: None,
            came: 0,
            expected: None,
            refusals,
        }
    }

    /// What the session is.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Packets that were sent.
    pub fn sent(&self) -> u32 {
        self.next
    }

    /// Replies that were refused, by reason.
    pub fn refusals(&self) -> Refusals {
        self.refusals
    }

    /// Bytes of UDP payload that each packet of the session takes.
    pub fn length(&self) -> usize {
        let authenticated = self.settings.key.is_some();
        let least = base_length(authenticated) + self.settings.ask.length(authenticated);
        // What leaves no room for the header of padding is skipped.
        let padded = self.settings.length.min(MAX_LENGTH);
        if padded >= least + 4 { padded } else { least }
    }

    /// Writes the next test packet in place of whatever the buffer held and gives its number. How our clock
    /// was steered must have been read before its time, how far it is off after it. `monotonic_ns` is for the
    /// time limit only.
    pub fn next(&mut self, now: Reading, monotonic_ns: u64, out: &mut Vec<u8>) -> u32 {
        let Settings { ssid, key, ask, dscp, limit, .. } = &self.settings;
        let sequence = self.next;
        let written = Timestamp::from_unix_ns(now.ns);
        let error = ErrorEstimate::from_ns(now.error.nanoseconds);
        Test { sequence, timestamp: written, error, ssid: *ssid }.emit(key.as_ref(), out);
        let length = self.length();
        tlv::ask(*ask, (sequence, sequence.wrapping_add(1)), *dscp, key.as_ref(), length, out);
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        self.waiting.push_back(Waiting {
            overdue_ns: monotonic_ns.saturating_add(limit),
            written,
            sent: stamp(now.ns, now.error),
            kernel_sent: false,
            reply: None,
        });
        self.next = sequence.wrapping_add(1);
        sequence
    }

    /// Says when the kernel sent a packet, nanoseconds since 1970, and how far our clock was off then.
    pub fn left(
        &mut self,
        sequence: u32,
        at_ns: u64,
        error: MaximumError,
        mut report: impl FnMut(Event),
    ) {
        let Some(slot) = self.slot(sequence) else { return };
        let waiting = &mut self.waiting[slot];
        let given_ns = waiting.sent.at_ns as u64;
        if waiting.kernel_sent || !(given_ns..given_ns + STALE_NS).contains(&at_ns) {
            return;
        }
        waiting.sent.at_ns = at_ns as i64;
        waiting.sent.clock.nanoseconds = error.nanoseconds;
        waiting.kernel_sent = true;
        self.report_if_complete(slot, &mut report);
    }

    /// Takes a reflected packet; `error` is that of our clock at its arrival, read after it.
    ///
    /// # Errors
    /// Why it is refused, which is counted.
    pub fn receive(
        &mut self,
        arrival: &Arrival<'_>,
        error: MaximumError,
        mut report: impl FnMut(Event),
    ) -> Result<(), Refused> {
        let taken = self.take(arrival, error, &mut report);
        if let Err(reason) = taken {
            self.refusals.add(reason);
        }
        taken
    }

    fn take(
        &mut self,
        arrival: &Arrival<'_>,
        error: MaximumError,
        report: &mut impl FnMut(Event),
    ) -> Result<(), Refused> {
        let Settings { ssid, ssid_needed, key, peer, .. } = &self.settings;
        let reflected = Reflected::parse(arrival.bytes, key.as_ref())?;
        if reflected.error.is_corrupt() && *peer != Peer::TwampLight {
            return Err(Refused::Corrupt);
        }
        let Some(slot) = self.slot(reflected.sender_sequence) else {
            return self.take_late(reflected.sender_sequence, report);
        };
        let ssid_right = reflected.ssid == *ssid || (reflected.ssid == 0 && !ssid_needed);
        if reflected.sender_timestamp != self.waiting[slot].written || !ssid_right {
            return Err(Refused::Altered);
        }
        let counts = *peer == Peer::Stateful;
        if let Some(first) = &self.waiting[slot].reply {
            let again = reflected.sequence == first.reflected.sequence;
            let direction =
                counts.then_some(if again { Direction::Reverse } else { Direction::Forward });
            report(Event::Duplicate { sequence: reflected.sender_sequence, direction });
            return Ok(());
        }
        let reported = if *peer == Peer::TwampLight {
            Reported::default()
        } else {
            let rest = arrival.bytes.get(base_length(key.is_some())..).unwrap_or_default();
            tlv::read(rest, reflected.sequence, key.as_ref(), key.is_some())
        };
        let reordered = self.order(slot, &reflected);
        self.waiting[slot].reply = Some(Reply {
            reflected,
            came: stamp(arrival.at_ns, error),
            left: None,
            reordered,
            traffic_class: reported.traffic_class,
            reported: false,
        });
        self.answered.insert(self.settled + slot as u64);
        if let Some((sequence, left)) = reported.left {
            self.follow_up(slot, sequence, left, report);
        }
        self.report_if_complete(slot, report);
        Ok(())
    }

    /// Takes all packets whose time is over from the list, and reports those not yet reported.
    pub fn settle(&mut self, monotonic_ns: u64, mut report: impl FnMut(Event)) {
        while self.waiting.front().is_some_and(|first| first.overdue_ns <= monotonic_ns) {
            let sequence = self.next.wrapping_sub(self.waiting.len() as u32);
            let direction = self.direction_of_loss(sequence);
            let Some(first) = self.waiting.pop_front() else { return };
            self.came = self.came << 1 | u128::from(first.reply.is_some());
            self.answered.remove(&self.settled);
            self.settled += 1;
            match &first.reply {
                Some(reply) => {
                    self.last = Some((sequence, reply.reflected.sequence));
                    if !reply.reported {
                        report(Event::Arrived(first.sample(reply, sequence, self.settings.peer)));
                    }
                }
                None => {
                    let sent_ns = first.sent.at_ns as u64;
                    report(Event::Lost { sequence, sent_ns, direction });
                }
            }
        }
    }

    /// Monotonic time at which [`Sender::settle`] has something to do.
    pub fn settle_at_ns(&self) -> Option<u64> {
        self.waiting.front().map(|first| first.overdue_ns)
    }

    /// Takes a reply to a packet that has left the list lately. What was written in the packet is forgotten
    /// by then, so this much is not checked.
    fn take_late(&mut self, sequence: u32, report: &mut impl FnMut(Event)) -> Result<(), Refused> {
        let first = self.next.wrapping_sub(self.waiting.len() as u32);
        let reverse = first.wrapping_sub(sequence).wrapping_sub(1);
        let sent = self.next.wrapping_sub(sequence).wrapping_sub(1) < self.next;
        if reverse >= u128::BITS || !sent {
            return Err(Refused::Unexpected);
        }
        if self.came & 1 << reverse == 0 {
            self.came |= 1 << reverse;
            report(Event::Late { sequence });
        } else {
            report(Event::Duplicate { sequence, direction: None });
        }
        Ok(())
    }

    /// Where a number is in the list.
    fn slot(&self, sequence: u32) -> Option<usize> {
        let reverse = self.next.wrapping_sub(sequence) as usize;
        (reverse > 0).then(|| self.waiting.len().checked_sub(reverse)).flatten()
    }

    /// Whether this is a reply to a packet that is waited for: it has that one's number and time.
    pub fn awaits(&self, bytes: &[u8]) -> bool {
        Reflected::parse(bytes, self.settings.key.as_ref()).is_ok_and(|reflected| {
            let slot = self.slot(reflected.sender_sequence);
            slot.is_some_and(|slot| self.waiting[slot].written == reflected.sender_timestamp)
        })
    }

    /// The kernel's time of a reply that was sent before the one to the packet at a place, if that is still in
    /// the list.
    fn follow_up(
        &mut self,
        slot: usize,
        sequence: u32,
        left: Timestamp,
        report: &mut impl FnMut(Event),
    ) {
        let matching = |waiting: &Waiting| {
            waiting.reply.is_some_and(|reply| {
                let late = left.since(reply.reflected.timestamp, reply.reflected.error.format());
                reply.reflected.sequence == sequence
                    && reply.left.is_none()
                    && !reply.reported
                    && (0..STALE_NS as i64).contains(&late)
            })
        };
        let first = slot.saturating_sub(NEIGHBOURS);
        let last = (slot + NEIGHBOURS).min(self.waiting.len());
        let Some(found) = self.waiting.range(first..last).rposition(matching) else { return };
        let slot = first + found;
        if let Some(reply) = &mut self.waiting[slot].reply {
            reply.left = Some(left);
        }
        self.report_if_complete(slot, report);
    }

    fn report_if_complete(&mut self, slot: usize, report: &mut impl FnMut(Event)) {
        let sequence = self.next.wrapping_sub((self.waiting.len() - slot) as u32);
        let Settings { ask, peer, .. } = self.settings;
        let waiting = &mut self.waiting[slot];
        let Some(mut reply) = waiting.reply else { return };
        let left = reply.left.is_some() || !ask.follow_up || peer == Peer::TwampLight;
        if waiting.kernel_sent && left && !reply.reported {
            report(Event::Arrived(waiting.sample(&reply, sequence, peer)));
            reply.reported = true;
            waiting.reply = Some(reply);
        }
    }

    /// Whether a reply that comes now is out of order (RFC 4737): forward, reverse, and both directions together.
    fn order(&mut self, slot: usize, reflected: &Reflected) -> [bool; 3] {
        let Reflected { sequence: ours, sender_sequence, .. } = *reflected;
        let before = |a: u32, b: u32| (a.wrapping_sub(b) as i32) < 0;
        let Some((sent, theirs)) = self.expected else {
            self.expected = Some((sender_sequence.wrapping_add(1), ours.wrapping_add(1)));
            return [false; 3];
        };
        let (both, reverse) = (before(sender_sequence, sent), before(ours, theirs));
        // Only behind one that was sent later there can be one that was reflected earlier.
        let forward = both
            && self.waiting.range(slot + 1..).take(NEIGHBOURS).any(|later| {
                later.reply.is_some_and(|reply| before(reply.reflected.sequence, ours))
            });
        self.expected = Some((
            if both { sent } else { sender_sequence.wrapping_add(1) },
            if reverse { theirs } else { ours.wrapping_add(1) },
        ));
        [forward, reverse, both]
    }

    /// In which direction the first packet of the list was lost, if it was.
    fn direction_of_loss(&self, sequence: u32) -> Option<Direction> {
        if self.settings.peer != Peer::Stateful || self.waiting.front()?.reply.is_some() {
            return None;
        }
        let ahead = self.answered.first()? - self.settled;
        let next = self.waiting.get(usize::try_from(ahead).ok()?)?.reply?;
        let ahead = ahead as u32;
        // Before the first reply both counts begin at zero, if the reflector's does.
        let (last, last_theirs) = self.last.unwrap_or((u32::MAX, u32::MAX));
        let done = sequence.wrapping_sub(last).wrapping_sub(1);
        let missing = done.wrapping_add(ahead);
        let theirs = next.reflected.sequence.wrapping_sub(last_theirs).wrapping_sub(1);
        if self.last.is_none() && theirs > missing {
            return None;
        }
        let reverse = if theirs as i32 > 0 { theirs.min(missing) } else { 0 };
        Some(if done < missing - reverse { Direction::Forward } else { Direction::Reverse })
    }
}

impl Waiting {
    /// The sample of the packet and its reply.
    fn sample(&self, reply: &Reply, sequence: u32, peer: Peer) -> Sample {
        let Self { sent, kernel_sent, .. } = *self;
        let Reply { reflected, came, left, reordered, traffic_class, .. } = *reply;
        let left_at = left.unwrap_or(reflected.timestamp);
        let theirs = MaximumError::of(reflected.error.bound_ns());
        let moment = |timestamp: Timestamp, clock| {
            let near_ns = came.at_ns as u64;
            stamp(timestamp.to_unix_ns(near_ns), clock)
        };
        // Their error is that of the time which they wrote; the kernel's was a little later.
        let later_ns = left_at.since(reflected.timestamp, reflected.error.format());
        let theirs_left = theirs.after(later_ns.unsigned_abs());
        let one_way = reflected.is_comparable().then(|| {
            [
                Interval::between(sent, moment(reflected.received, theirs)),
                Interval::between(moment(left_at, theirs_left), came),
            ]
        });
        let residence = left_at.since(reflected.received, reflected.error.format());
        let (begin, end) = (stamp(0, theirs), Stamp { at_ns: residence, ..stamp(0, theirs) });
        let [forward, reverse, both] = reordered;
        let counts = peer == Peer::Stateful;
        Sample {
            sequence,
            sent_ns: sent.at_ns as u64,
            forward: one_way.map(|directions| directions[0]),
            reverse: one_way.map(|directions| directions[1]),
            round_trip: Interval::elapsed(sent, came).minus(Interval::elapsed(begin, end)),
            kernel_sent,
            kernel_left: left.is_some(),
            reordered_forward: counts.then_some(forward),
            reordered_reverse: counts.then_some(reverse),
            reordered: both,
            ttl: reflected.sender_ttl,
            traffic_class,
        }
    }
}

/// A time in nanoseconds since 1970, written in nanoseconds or in steps of 2^-32 s.
fn stamp(at_ns: u64, clock: MaximumError) -> Stamp {
    Stamp { at_ns: at_ns as i64, clock, uncertainty_ns: 1 }
}

#[cfg(test)]
mod tests;
