//! The first bytes of one direction of a TCP connection, put in order.
//!
//! A segment that comes in order is appended; one that comes early waits, in at most [`WAITING`] bytes;
//! what was sent again is cut off (the first copy of a byte wins). A packet that was not copied whole ends
//! what can be read, though not what is counted.

use crate::packet::{Packet, Tcp};

/// Bytes that are kept in order.
pub(crate) const KEPT: usize = 8192;
/// Bytes that wait for those before them.
const WAITING: usize = 8192;

/// The start of what one end sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prefix {
    bytes: Vec<u8>,
    /// The sequence number of the byte that is wanted next.
    next: Option<u32>,
    /// Early segments: sequence number, length on the wire, what was copied.
    waiting: Vec<(u32, u32, Vec<u8>)>,
    /// Bytes that came in order, kept or not.
    length: u64,
    /// Something in order was not copied, or there was no room.
    closed: bool,
}

impl Prefix {
    /// What is known of its first bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes a packet of this direction; how many bytes came in order by it, kept or not.
    pub(crate) fn offer(&mut self, packet: &Packet<'_>, tcp: Tcp) -> u64 {
        let syn = tcp.has(Tcp::SYN);
        let sequence = tcp.sequence.wrapping_add(u32::from(syn));
        let next = match self.next {
            Some(next) => next,
            None => *self.next.insert(sequence),
        };
        if packet.length == 0 {
            return 0;
        }
        // RFC 9293, section 3.4: sequence numbers are compared modulo 2^32.
        let ahead = sequence.wrapping_sub(next).cast_signed();
        if ahead > 0 {
            let room = WAITING.saturating_sub(self.waiting.iter().map(|(.., b)| b.len()).sum());
            let bytes = packet.payload.get(..room).unwrap_or(packet.payload);
            if !bytes.is_empty() && self.waiting.len() < 16 {
                self.waiting.push((sequence, packet.length, bytes.to_vec()));
            }
            return 0;
        }
        let before = self.length;
        self.append(sequence, packet.length, packet.payload);
        while self.length > before
            && let Some(at) = self.waiting.iter().position(|(sequence, ..)| {
                sequence.wrapping_sub(self.next.unwrap_or_default()).cast_signed() <= 0
            })
        {
            let (sequence, length, bytes) = self.waiting.swap_remove(at);
            self.append(sequence, length, &bytes);
        }
        self.length - before
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
        prefix.offer(&packet, tcp)
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
    }

    #[test]
    fn a_packet_that_was_cut_ends_what_is_read() {
        let mut prefix = Prefix::default();
        let tcp = Tcp { sequence: 0, acknowledgement: 0, flags: Tcp::ACK };
        let from = Side::Client;
        let packet = Packet { at_ns: 0, from, tcp: Some(tcp), payload: b"abc", length: 1000 };
        assert_eq!(prefix.offer(&packet, tcp), 1000);
        assert_eq!(offer(&mut prefix, 1000, 0, b"later"), 5);
        assert_eq!(prefix.bytes(), b"abc");
    }

    proptest! {
        /// Any segmentation in any order gives a prefix of what was sent.
        #[test]
        fn bytes_never_change_places(
            start: u32,
            segments in proptest::collection::vec((0_usize..20_000, 0_usize..3000), 0..64),
        ) {
            let sent: Vec<u8> = (0..24_000_u32).map(|at| (at % 251) as u8).collect();
            let mut prefix = Prefix::default();
            offer(&mut prefix, start.wrapping_sub(1), Tcp::SYN, b"");
            for (at, length) in segments {
                let sequence = start.wrapping_add(u32::try_from(at).unwrap());
                offer(&mut prefix, sequence, 0, &sent[at..at + length]);
                prop_assert!(prefix.bytes().len() <= KEPT);
                prop_assert_eq!(prefix.bytes(), &sent[..prefix.bytes().len()]);
            }
        }
    }
}
