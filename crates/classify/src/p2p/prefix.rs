//! The first bytes of one direction of a TCP connection, put in order.
//!
//! Parsers need the first bytes, not how they were cut into segments. A segment that comes in order is
//! appended; one that comes early waits; of what was sent twice the first copy of a byte wins, as a naive
//! reader of the stream would have it. The SYN says where the bytes begin. Where it was not seen, a segment
//! from before the first one moves the beginning. A packet that was not copied whole ends what can be read,
//! though not what is counted.

use crate::packet::{Packet, Tcp};

/// Bytes that are kept in order: a ClientHello with keys of post-quantum algorithms and then some.
pub(crate) const KEPT: usize = 8192;
/// Bytes that wait for those before them.
const WAITING: usize = 2 * KEPT;
/// Segments that wait, as many as a flow is inspected for.
const SEGMENTS: usize = 32;

/// The start of what one end sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prefix {
    bytes: Vec<u8>,
    /// The sequence number of the byte that is wanted next.
    next: Option<u32>,
    /// Whether a SYN has shown where the bytes begin.
    sure: bool,
    /// Early segments in the order in which they came.
    waiting: Vec<Early>,
    /// Bytes that came in order, kept or not.
    length: u64,
    /// Something in order was not copied, or there was no room.
    closed: bool,
}

/// A segment that waits for those before it.
#[derive(Clone, Debug)]
struct Early {
    sequence: u32,
    /// Bytes on the wire.
    length: u32,
    /// As many of them as are kept.
    bytes: Vec<u8>,
}

/// What a packet brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Added {
    /// Bytes that are in order by it, kept or not.
    pub(crate) bytes: u64,
    /// The bytes begin earlier than was thought: all of them are to be read again, and are counted again.
    pub(crate) moved: bool,
}

impl Prefix {
    /// The SYN was seen: this is the number of the first byte.
    pub(crate) fn begin(&mut self, sequence: u32) {
        if self.next.is_none() {
            (self.next, self.sure) = (Some(sequence), true);
        }
    }

    /// What is known of its first bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes that came in order, kept or not.
    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// Takes a packet of this direction.
    pub(crate) fn offer(&mut self, packet: &Packet<'_>, tcp: Tcp) -> Added {
        let nothing = Added { bytes: 0, moved: false };
        // Data in a SYN comes behind the number that the SYN takes (RFC 9293, section 3.4).
        let syn = tcp.has(Tcp::SYN);
        let sequence = tcp.sequence.wrapping_add(u32::from(syn));
        if syn {
            self.begin(sequence);
        }
        if packet.length == 0 {
            return nothing;
        }
        let next = *self.next.get_or_insert(sequence);
        // Numbers wrap around; more than half of them away is before (RFC 9293, section 3.4).
        let ahead = sequence.wrapping_sub(next).cast_signed();
        if ahead > 0 {
            self.wait(sequence, ahead.unsigned_abs(), packet);
            return nothing;
        }
        let moved = self.moves(next, sequence);
        let before = if moved { 0 } else { self.length };
        self.append(sequence, packet.length, packet.payload);
        // What came first wins, hence in the order in which it came, until nothing fits any more.
        while self.length > before
            && let Some(next) = self.next
            && let Some(at) = self
                .waiting
                .iter()
                .position(|early| early.sequence.wrapping_sub(next).cast_signed() <= 0)
        {
            let Early { sequence, length, bytes } = self.waiting.remove(at);
            self.append(sequence, length, &bytes);
        }
        Added { bytes: self.length - before, moved }
    }

    /// Keeps an early segment, without those of its bytes that there will be no room for.
    fn wait(&mut self, sequence: u32, ahead: u32, packet: &Packet<'_>) {
        if self.waiting.len() >= SEGMENTS {
            self.closed = true;
            return;
        }
        let at = usize::try_from(self.length).unwrap_or(usize::MAX).saturating_add(ahead as usize);
        let waiting: usize = self.waiting.iter().map(|early| early.bytes.len()).sum();
        let room = KEPT.saturating_sub(at).min(WAITING.saturating_sub(waiting));
        let bytes = packet.payload.get(..room).unwrap_or(packet.payload).to_vec();
        self.waiting.push(Early { sequence, length: packet.length, bytes });
    }

    /// Whether a segment begins before all that was taken for the first bytes; then those wait for it.
    fn moves(&mut self, next: u32, sequence: u32) -> bool {
        let Ok(known) = u32::try_from(self.length) else { return false };
        let first = next.wrapping_sub(known);
        let early = first.wrapping_sub(sequence).cast_signed();
        let kept = self.bytes.len() == known as usize && self.waiting.len() < SEGMENTS;
        if self.sure || early <= 0 || early.unsigned_abs() as usize > KEPT || !kept {
            return false;
        }
        let bytes = std::mem::take(&mut self.bytes);
        self.waiting.insert(0, Early { sequence: first, length: known, bytes });
        (self.next, self.length, self.closed) = (Some(sequence), 0, false);
        true
    }

    /// Adds what of a segment that does not begin after the wanted byte is new.
    fn append(&mut self, sequence: u32, length: u32, bytes: &[u8]) {
        let next = self.next.unwrap_or(sequence);
        let known = next.wrapping_sub(sequence);
        if known >= length {
            return;
        }
        let new = length - known;
        self.next = Some(next.wrapping_add(new));
        self.length += u64::from(new);
        if self.closed {
            return;
        }
        let bytes = bytes.get(known as usize..).unwrap_or_default();
        let room = KEPT - self.bytes.len();
        self.closed = bytes.len() < new as usize || bytes.len() >= room;
        self.bytes.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Side;
    use proptest::prelude::*;

    fn offer(prefix: &mut Prefix, sequence: u32, flags: u8, payload: &[u8]) -> u64 {
        let tcp = Tcp { sequence, acknowledgement: 0, flags };
        let length = u32::try_from(payload.len()).unwrap();
        let packet = Packet { at_ns: 0, from: Side::Client, tcp: Some(tcp), payload, length };
        prefix.offer(&packet, tcp).bytes
    }

    #[test]
    fn early_bytes_wait_and_bytes_sent_again_are_dropped() {
        let mut prefix = Prefix::default();
        let start = u32::MAX - 2;
        assert_eq!(offer(&mut prefix, start.wrapping_sub(1), Tcp::SYN, b""), 0);
        assert_eq!(offer(&mut prefix, start.wrapping_add(4), 0, b"efgh"), 0);
        assert_eq!(offer(&mut prefix, start, 0, b"abcd"), 8);
        assert_eq!(offer(&mut prefix, start.wrapping_add(2), 0, b"XXXX"), 0);
        assert_eq!(offer(&mut prefix, start.wrapping_add(6), 0, b"XXij"), 2);
        assert_eq!(prefix.bytes(), b"abcdefghij");
        // From before the first byte, as keep-alives are.
        assert_eq!(offer(&mut prefix, start.wrapping_sub(1), 0, b"?"), 0);
        assert_eq!(offer(&mut prefix, start.wrapping_sub(1), 0, b"?ABCDEFGHIJ!"), 1);
        assert_eq!(prefix.bytes(), b"abcdefghij!");
    }

    #[test]
    fn a_packet_that_was_cut_ends_what_is_read() {
        let mut prefix = Prefix::default();
        let tcp = Tcp { sequence: 0, acknowledgement: 0, flags: Tcp::ACK };
        let from = Side::Client;
        let packet = Packet { at_ns: 0, from, tcp: Some(tcp), payload: b"abc", length: 1000 };
        assert_eq!(prefix.offer(&packet, tcp).bytes, 1000);
        assert_eq!(offer(&mut prefix, 1000, 0, b"later"), 5);
        assert_eq!(prefix.bytes(), b"abc");
    }

    #[test]
    fn without_a_syn_an_earlier_segment_moves_the_beginning() {
        let mut prefix = Prefix::default();
        assert_eq!(offer(&mut prefix, 1005, 0, b"fghij"), 5);
        assert_eq!(offer(&mut prefix, 1012, 0, b"mno"), 0);
        assert_eq!(offer(&mut prefix, 1000, 0, b"abcdeX"), 10);
        assert_eq!(prefix.bytes(), b"abcdeXghij");
        assert_eq!(offer(&mut prefix, 1010, 0, b"kl"), 5);
        assert_eq!(prefix.bytes(), b"abcdeXghijklmno");
    }

    #[test]
    fn a_super_packet_that_comes_early_takes_no_room_from_what_is_before_it() {
        let mut prefix = Prefix::default();
        prefix.begin(0);
        assert_eq!(offer(&mut prefix, 8000, 0, &[3; 60_000]), 0);
        assert_eq!(offer(&mut prefix, 4000, 0, &[2; 4000]), 0);
        assert_eq!(offer(&mut prefix, 0, 0, &[1; 4000]), 68_000);
        assert_eq!(prefix.bytes().len(), KEPT);
        assert_eq!(prefix.bytes()[7999..8001], [2, 3]);
    }

    proptest! {
        /// Any segmentation in any order gives a prefix of what was sent, which is as long as there is no
        /// hole.
        #[test]
        fn bytes_never_change_places(
            start: u32,
            segments in proptest::collection::vec((0_usize..20_000, 0_usize..3000), 0..64),
        ) {
            let sent: Vec<u8> = (0..24_000_u32).map(|at| (at % 251) as u8).collect();
            let mut prefix = Prefix::default();
            offer(&mut prefix, start.wrapping_sub(1), Tcp::SYN, b"");
            let mut covered = vec![false; sent.len()];
            let few = segments.len() <= SEGMENTS;
            let mut bytes = 0;
            for (at, length) in segments {
                let sequence = start.wrapping_add(u32::try_from(at).unwrap());
                offer(&mut prefix, sequence, 0, &sent[at..at + length]);
                covered[at..at + length].fill(true);
                bytes += length.min(KEPT.saturating_sub(at));
                prop_assert!(prefix.bytes().len() <= KEPT && prefix.waiting.len() <= SEGMENTS);
                prop_assert_eq!(prefix.bytes(), &sent[..prefix.bytes().len()]);
            }
            if few && bytes <= WAITING {
                let whole = covered.iter().position(|seen| !seen).unwrap_or(sent.len());
                prop_assert_eq!(prefix.bytes().len(), whole.min(KEPT));
                prop_assert_eq!(prefix.length(), whole as u64);
            }
        }

        /// Without a SYN the earliest segment is the beginning, whichever comes first.
        #[test]
        fn without_a_syn_any_order_gives_the_same(
            start: u32,
            mut order in Just((0_usize..8).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let sent: Vec<u8> = (0..800_u32).map(|at| (at % 251) as u8).collect();
            let mut prefix = Prefix::default();
            order.push(0);
            for at in order {
                let sequence = start.wrapping_add(u32::try_from(at * 100).unwrap());
                offer(&mut prefix, sequence, 0, &sent[at * 100..][..100]);
            }
            prop_assert_eq!(prefix.bytes(), &sent[..]);
        }
    }
}
