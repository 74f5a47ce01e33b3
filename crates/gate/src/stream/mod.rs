//! In-order bytes of one direction of a TCP connection, put together from copied segments.
//!
//! Read RFC 9293, section 3.4 (sequence numbers) and 3.10.7.4 (which segments count). The segments
//! themselves have passed on long since: nothing here delays them, and nothing here may wait for
//! ever, since a segment may never be copied (a full ring) or need not be (a part that is skipped).
//!
//! ```text
//!            next                highest
//!   delivered | early  early ...   |
//!  -----------+---[====]--[==]-----+-----> offset (64 bits; sequence number modulo 2^32)
//!             `-- a hole: filled by a retransmission, or reported as a gap
//! ```
//!
//! - The first copy of a byte wins. Where it matters ([`Half::judge`]), all later copies are compared with
//!   it as long as the receiver has not acknowledged it. One that differs, or cannot be compared, makes the
//!   stream unclear ([`Piece::Unclear`]): nobody here knows which of them the receiver takes, whose rules
//!   (checksums, options, timestamps, time to live) need not be known then.
//! - A hole becomes a gap when the receiver acknowledges what lies in it (so it has it, and we never
//!   will), when what waits behind it grows beyond the limit, when nobody needs it ([`Half::skip`]), or
//!   when who reads it does not wait any longer ([`Half::give_up`]).
//! - Early bytes are bounded per direction and, by a [`Budget`], over all of them.

mod budget;
mod early;
#[cfg(test)]
mod tests;

pub use budget::Budget;
pub(crate) use budget::Share;

use classify::packet::Tcp;
use early::Early;
use serde::{Deserialize, Serialize};

/// Bytes ahead of the expected one from which on a segment is not believed: a
/// quarter of the range of sequence numbers.
const FAR: i64 = 1 << 30;

/// What comes next in a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes in order.
    Bytes(&'a [u8]),
    /// So many bytes that were not seen.
    Gap(u64),
    /// The sender has closed its direction; nothing follows.
    End,
    /// The connection was reset; nothing follows.
    Reset,
    /// A new connection between the same sockets begins.
    Restart,
    /// The receiver may read something else than what was, or will be, delivered here.
    Unclear,
}

/// What went wrong in a direction, in exact numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Losses {
    /// Bytes that came twice and differed.
    pub conflicts: u64,
    /// Bytes reported as gaps that nobody had declared unneeded.
    pub missed: u64,
    /// Segments too far from the expected byte to be believed, or behind the end.
    pub strays: u64,
    /// Segments that made the stream unclear.
    pub unclear: u64,
}

/// One direction of a connection.
#[derive(Debug)]
pub struct Half {
    /// Sequence number of the byte at `next`; none before the first segment.
    sequence: Option<u32>,
    next: i64,
    highest: i64,
    /// Bytes before this offset are not needed.
    skip: i64,
    fin: Option<i64>,
    ended: bool,
    /// The SYN of another connection between the same sockets, until it is answered.
    again: Option<u32>,
    early: Early,
    /// What was delivered and the receiver has not acknowledged; where that matters.
    past: Option<Early>,
    /// The receiver takes nothing more before this offset.
    settled: i64,
    limit: usize,
    budget: Budget,
    losses: Losses,
}

impl Half {
    /// A direction of which nothing was seen, that keeps at most `limit` early bytes.
    pub fn new(limit: usize, budget: Budget) -> Self {
        Self {
            sequence: None,
            next: 0,
            highest: 0,
            skip: 0,
            fin: None,
            ended: false,
            again: None,
            early: Early::new(limit, budget.clone()),
            past: None,
            settled: i64::MIN,
            limit,
            budget,
            losses: Losses::default(),
        }
    }

    /// Offset of the next byte in order.
    pub fn position(&self) -> u64 {
        self.next.unsigned_abs()
    }

    /// Offset behind the last byte seen, in order or not.
    pub fn highest(&self) -> u64 {
        self.highest.unsigned_abs()
    }

    /// The sequence number of an offset; none before the first segment.
    pub fn sequence(&self, offset: u64) -> Option<u32> {
        // Both are taken modulo 2^32, as sequence numbers are.
        self.sequence.map(|at| at.wrapping_add((offset as u32).wrapping_sub(self.next as u32)))
    }

    /// Whether the direction was closed or reset.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Bytes that are held: early ones, and those with which others are compared.
    pub fn held(&self) -> usize {
        self.early.bytes() + self.past.as_ref().map_or(0, Early::bytes)
    }

    /// What went wrong so far.
    pub fn losses(&self) -> Losses {
        Losses { conflicts: self.conflicts(), ..self.losses }
    }

    fn conflicts(&self) -> u64 {
        self.early.conflicts() + self.past.as_ref().map_or(0, Early::conflicts)
    }

    /// Whether what comes again is compared from here on; as many bytes are kept for that as early ones.
    pub fn judge(&mut self, judge: bool) {
        if judge == self.past.is_some() {
            return;
        }
        self.past = judge.then(|| Early::new(self.limit, self.budget.clone()));
        // What was sent before was not judged.
        if self.sequence.is_some() {
            self.settled = self.settled.max(self.next);
        }
    }

    /// Declares that bytes before an offset are not needed: they are delivered where they are at
    /// hand, and reported as a gap at once where they are not.
    pub fn skip(&mut self, offset: u64) {
        self.skip = self.skip.max(i64::try_from(offset).unwrap_or(i64::MAX));
    }

    /// A segment of this direction: `payload` is what was copied of the `length` bytes on the wire.
    /// Calls `sink` with the offset of each piece and the piece.
    pub fn segment(
        &mut self,
        tcp: &Tcp,
        payload: &[u8],
        length: u32,
        sink: &mut impl FnMut(u64, Piece<'_>),
    ) {
        let first = tcp.sequence.wrapping_add(u32::from(tcp.has(Tcp::SYN)));
        if self.sequence.is_none() && !tcp.has(Tcp::SYN) {
            // What was sent before was not judged.
            self.settled = self.next;
        }
        let sequence = *self.sequence.get_or_insert(first);
        if tcp.has(Tcp::SYN) && first != sequence && self.highest == 0 && self.settled == i64::MIN {
            // Nobody has answered the one before.
            self.sequence = Some(first);
        } else if tcp.has(Tcp::SYN) && first != sequence {
            // RFC 9293, section 3.5.1: of a half-open connection only one end knows. The SYN counts
            // when the other end answers it, see `answered`.
            self.again = Some(first);
            return;
        }
        let sequence = self.sequence.unwrap_or(first);
        let start = self.next + i64::from(first.wrapping_sub(sequence).cast_signed());
        let end = start + i64::from(length.max(u32::try_from(payload.len()).unwrap_or(u32::MAX)));
        let conflicts = self.conflicts();
        self.early.compare(start, payload);
        let doubt = self.is_doubtful(tcp, start, payload, end);
        if doubt || (self.past.is_some() && self.conflicts() > conflicts) {
            self.losses.unclear += 1;
            sink(self.position(), Piece::Unclear);
        }
        if self.ended {
            self.losses.strays += u64::from(end > self.next.max(start));
            return;
        }
        if self.is_stray(start, end) {
            self.losses.strays += 1;
            return;
        }
        if tcp.has(Tcp::RST) {
            // RFC 5961, section 3.2: one that does not fit exactly may be forged.
            if start == self.next || (start > self.next && start <= self.highest.max(self.skip)) {
                self.early.clear();
                self.ended = true;
                sink(self.position(), Piece::Reset);
            } else {
                self.losses.strays += 1;
            }
            return;
        }
        if tcp.has(Tcp::FIN) && end >= self.highest {
            self.fin = Some(end);
        }
        self.highest = self.highest.max(end);
        if start > self.next && start <= self.skip {
            self.pass_hole(start, sink);
        }
        if start <= self.next {
            self.deliver(start, payload, sink);
        } else if !self.early.insert(start, payload) {
            // No room: what waits is delivered over the holes, then this.
            self.pass_hole(start, sink);
            self.deliver(start, payload, sink);
        }
        let copied = start + i64::try_from(payload.len()).unwrap_or(i64::MAX);
        if end > copied {
            // The rest has passed uncopied and will not come again.
            self.early.lost(copied, end);
        }
        self.drain(sink);
    }

    /// Whether nobody takes a segment for one of this stream.
    fn is_stray(&self, start: i64, end: i64) -> bool {
        start > self.skip.max(self.next).saturating_add(FAR)
            || self.fin.is_some_and(|fin| end > fin)
    }

    /// Whether the receiver may read something else by this segment than what is delivered here; what was
    /// delivered before is compared.
    fn is_doubtful(&mut self, tcp: &Tcp, start: i64, payload: &[u8], end: i64) -> bool {
        const URG: u8 = 32;
        let Some(past) = &mut self.past else { return false };
        let (fin, urgent) = (tcp.has(Tcp::FIN), tcp.has(URG));
        let (settled, next) = (self.settled, self.next);
        let near = settled == i64::MIN || start < settled.saturating_add(FAR);
        let is_new = end > settled || ((fin || urgent) && end == settled);
        if tcp.has(Tcp::RST) || !near || !is_new {
            return false;
        }
        // Whether an urgent byte is read with the others depends on the application.
        let mut doubt = urgent || (fin && end < self.highest);
        if end > start {
            let more = end > next && self.ended;
            let far = start > self.skip.max(next).saturating_add(FAR);
            let copied = start + i64::try_from(payload.len()).unwrap_or(i64::MAX);
            let (from, to) = (start.max(settled), end.min(next));
            past.compare(start, payload);
            doubt |= more || far || (from < to && (copied < to || !past.covers(from, to)));
        }
        doubt || self.fin.is_some_and(|at| end > at || (fin && end < at))
    }

    /// The other end has acknowledged everything before a sequence number: a hole before it will not
    /// be filled any more.
    pub fn acknowledged(&mut self, number: u32, sink: &mut impl FnMut(u64, Piece<'_>)) {
        let Some(sequence) = self.sequence else { return };
        let to = self.next + i64::from(number.wrapping_sub(sequence).cast_signed());
        // An acknowledgement of what was never seen may be forged, and shows nothing.
        let most = self.highest.max(self.skip);
        // The FIN has a number, too.
        if to <= most + i64::from(self.fin == Some(most)) && to > self.settled {
            self.settled = to;
            if let Some(past) = &mut self.past {
                past.forget(to);
            }
        }
        if self.ended {
            return;
        }
        let to = to.min(most);
        if to > self.next {
            self.pass_hole(to, sink);
            self.drain(sink);
        }
    }

    /// What is missing before what was seen will not come any more.
    pub fn give_up(&mut self, sink: &mut impl FnMut(u64, Piece<'_>)) {
        if !self.ended && self.next < self.highest {
            self.pass_hole(self.highest, sink);
            self.drain(sink);
        }
    }

    /// The other end has answered a SYN whose number, plus one, was `number`: if that was not this
    /// connection's, a new one begins. Whether it does.
    pub fn answered(&mut self, number: u32, sink: &mut impl FnMut(u64, Piece<'_>)) -> bool {
        let begins = self.again == Some(number);
        if begins {
            self.restart(sink);
        }
        begins
    }

    fn restart(&mut self, sink: &mut impl FnMut(u64, Piece<'_>)) {
        let Some(first) = self.again.take() else { return };
        self.early.clear();
        self.judge_anew();
        self.fin = None;
        self.ended = false;
        self.sequence = Some(first);
        self.highest = self.next;
        self.skip = self.next;
        sink(self.position(), Piece::Restart);
    }

    /// Nothing is settled of what begins here.
    fn judge_anew(&mut self) {
        self.settled = i64::MIN;
        if let Some(past) = &mut self.past {
            past.clear();
        }
    }

    /// Keeps what is delivered, or known as lost, up to `end` as long as there is room.
    fn keep(&mut self, end: i64, bytes: Option<&[u8]>) {
        let (next, settled) = (self.next, self.settled);
        let Some(past) = self.past.as_mut().filter(|_| end > settled) else { return };
        match bytes {
            Some(bytes) => {
                // Half of all is left to what comes before its turn.
                while self.budget.used() > self.budget.limit() / 2 && past.pop() {}
                while !past.insert(next, bytes) && past.pop() {}
            }
            None => past.lost(next, end),
        }
    }

    /// Delivers bytes of which the first is expected or known; what waits among them came first.
    fn deliver(&mut self, start: i64, bytes: &[u8], sink: &mut impl FnMut(u64, Piece<'_>)) {
        let end = start + i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        while self.next < end {
            let known = usize::try_from(self.next - start).unwrap_or(usize::MAX);
            let reach = self.early.first().map_or(end, |first| first.clamp(self.next, end));
            let until = usize::try_from(reach - start).unwrap_or(usize::MAX);
            match bytes.get(known..until) {
                Some(part) if !part.is_empty() => self.in_order(part, sink),
                _ => {}
            }
            self.drain(sink);
        }
    }

    /// Delivers everything that is at hand up to `to`, with gaps for the rest.
    fn pass_hole(&mut self, to: i64, sink: &mut impl FnMut(u64, Piece<'_>)) {
        while self.next < to {
            self.drain(sink);
            let reach = self.early.first().unwrap_or(i64::MAX).min(to);
            if reach > self.next {
                self.gap(reach, sink);
            }
        }
    }

    fn drain(&mut self, sink: &mut impl FnMut(u64, Piece<'_>)) {
        loop {
            while let Some(segment) = self.early.take(self.next) {
                match segment {
                    early::Segment::Bytes(bytes) => self.in_order(&bytes, sink),
                    early::Segment::Lost(to) => self.gap(to, sink),
                }
            }
            match self.early.first() {
                Some(first) if first <= self.skip => self.gap(first, sink),
                _ => break,
            }
        }
        if self.fin == Some(self.next) && !self.ended {
            self.ended = true;
            sink(self.position(), Piece::End);
        }
    }

    fn in_order(&mut self, bytes: &[u8], sink: &mut impl FnMut(u64, Piece<'_>)) {
        let at = self.position();
        let length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        self.keep(self.next + length, Some(bytes));
        self.advance(length);
        sink(at, Piece::Bytes(bytes));
    }

    fn gap(&mut self, to: i64, sink: &mut impl FnMut(u64, Piece<'_>)) {
        let at = self.position();
        let length = to - self.next;
        let needed = to.saturating_sub(self.next.max(self.skip)).max(0);
        self.losses.missed += needed.unsigned_abs();
        self.keep(to, None);
        self.advance(length);
        sink(at, Piece::Gap(length.unsigned_abs()));
    }

    fn advance(&mut self, by: i64) {
        self.next += by;
        self.highest = self.highest.max(self.next);
        // Modulo 2^32, as sequence numbers are.
        self.sequence = self.sequence.map(|at| at.wrapping_add(by as u32));
    }
}
