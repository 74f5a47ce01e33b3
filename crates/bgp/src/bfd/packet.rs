//! Control packets (RFC 5880 section 4.1).

use super::{Diagnostic, State};

/// Bytes of a packet without authentication.
pub const LENGTH: usize = 24;

const VERSION: u8 = 1;
// Bits of the second byte, below the state.
const POLL: u8 = 0x20;
const FINAL: u8 = 0x10;
const AUTHENTICATION: u8 = 0x04;
const DEMAND: u8 = 0x02;
const MULTIPOINT: u8 = 0x01;

/// A control packet. Intervals are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Why the sender's session changed its state last.
    pub diagnostic: Diagnostic,
    /// The sender's state.
    pub state: State,
    /// The bit Poll: asks for a packet with the bit Final.
    pub poll: bool,
    /// The bit Final: answers a packet with the bit Poll.
    pub is_final: bool,
    /// The sender does not want periodic packets while both ends are up: the bit Demand.
    pub demand: bool,
    /// Detect Mult: how many of its packets may be missed. Not zero.
    pub detect_mult: u8,
    /// The sender's discriminator; not zero.
    pub my_discriminator: u32,
    /// The receiver's discriminator as the sender knows it; zero before it does.
    pub your_discriminator: u32,
    /// Desired Min TX Interval.
    pub desired_min_tx: u32,
    /// Required Min RX Interval; zero asks for no periodic packets.
    pub required_min_rx: u32,
}

impl Packet {
    /// Reads the payload of a datagram; none if the packet must be discarded (RFC 5880 section 6.8.6), which with
    /// authentication it must where none is in use.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (fields, _) = bytes.split_first_chunk::<LENGTH>()?;
        let [first, flags, detect_mult, length, ..] = *fields;
        let length = usize::from(length);
        let word =
            |at| u32::from_be_bytes([fields[at], fields[at + 1], fields[at + 2], fields[at + 3]]);
        let packet = Self {
            diagnostic: Diagnostic(first & 0x1f),
            state: State::from_code(flags >> 6),
            poll: flags & POLL != 0,
            is_final: flags & FINAL != 0,
            demand: flags & DEMAND != 0,
            detect_mult,
            my_discriminator: word(4),
            your_discriminator: word(8),
            desired_min_tx: word(12),
            required_min_rx: word(16),
        };
        let valid = first >> 5 == VERSION
            && (LENGTH..=bytes.len()).contains(&length)
            && flags & (AUTHENTICATION | MULTIPOINT) == 0
            && detect_mult != 0
            && packet.my_discriminator != 0
            && (packet.your_discriminator != 0
                || matches!(packet.state, State::Down | State::AdminDown));
        valid.then_some(packet)
    }

    /// The bytes of the packet, which offers no echo function.
    pub fn encode(&self) -> [u8; LENGTH] {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let mut bytes = [0; LENGTH];
        bytes[0] = VERSION << 5 | self.diagnostic.0 & 0x1f;
        bytes[1] = (self.state as u8) << 6
            | bit(self.poll, POLL)
            | bit(self.is_final, FINAL)
            | bit(self.demand, DEMAND);
        bytes[2] = self.detect_mult;
        bytes[3] = LENGTH as u8;
        for (at, word) in [
            self.my_discriminator,
            self.your_discriminator,
            self.desired_min_tx,
            self.required_min_rx,
        ]
        .iter()
        .enumerate()
        {
            bytes[4 + at * 4..8 + at * 4].copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet that is up, and its bytes.
    fn sample() -> (Packet, [u8; LENGTH]) {
        let packet = Packet {
            diagnostic: Diagnostic::NEIGHBOUR_DOWN,
            state: State::Up,
            poll: true,
            is_final: false,
            demand: false,
            detect_mult: 3,
            my_discriminator: 0x0102_0304,
            your_discriminator: 0x0506_0708,
            desired_min_tx: 300_000,
            required_min_rx: 1_000_000,
        };
        let bytes = [
            0x23, 0xe0, 3, 24, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0x04, 0x93, 0xe0, 0, 0x0f, 0x42, 0x40, 0,
            0, 0, 0,
        ];
        (packet, bytes)
    }

    #[test]
    fn a_packet_is_24_bytes_of_the_rfcs_layout() {
        let (packet, bytes) = sample();
        assert_eq!(packet.encode(), bytes);
        assert_eq!(Packet::decode(&bytes), Some(packet));
        // What follows the packet in the datagram is not its business.
        assert_eq!(Packet::decode(&[&bytes[..], &[9; 9]].concat()), Some(packet));
    }

    #[test]
    fn what_must_be_discarded_is() {
        let (_, bytes) = sample();
        for (at, value, what) in [
            (0, 0x43, "version 2"),
            (1, 0xe4, "authentication"),
            (1, 0xe1, "multipoint"),
            (2, 0, "a multiplier of zero"),
            (3, 23, "shorter than its fields"),
            (3, 25, "longer than the datagram"),
        ] {
            let mut bytes = bytes;
            bytes[at] = value;
            assert_eq!(Packet::decode(&bytes), None, "{what}");
        }
        for short in 0..LENGTH {
            assert_eq!(Packet::decode(&bytes[..short]), None, "{short} bytes");
        }
        let mut anonymous = bytes;
        anonymous[4..8].fill(0);
        assert_eq!(Packet::decode(&anonymous), None, "no discriminator");
        // Without the receiver's discriminator a session is at its beginning.
        for (state, valid) in [(0x00, true), (0x40, true), (0x80, false), (0xc0, false)] {
            let mut bytes = bytes;
            bytes[1] = state;
            bytes[8..12].fill(0);
            assert_eq!(Packet::decode(&bytes).is_some(), valid, "{state:#x}");
        }
    }
}
