//! The requests of `nigh blast`, and how one is written many times.
//!
//! Identifier and sequence of the echo are one 32-bit number: a random base plus the packet's index.
//! The payload begins with a probe of 16 bytes; behind it are bytes that count up.
//!
//! ```text
//! 0      4       8                16
//! "nigh" | nonce | time of sending | 10 11 12 ...
//! ```
//!
//! The nonce is random for each run. The time is in nanoseconds, of a clock that the engine chooses.

use wire::checksum::Sum;

/// Bytes of the probe.
pub const PROBE: usize = 16;
/// Bytes of the ICMP header.
const ICMP: usize = 8;
/// Where the time is, in bytes from the start of the payload.
const STAMP: usize = 8;

/// The payload of a run's requests, with time 0. `length` is at least [`PROBE`].
pub fn payload(nonce: [u8; 4], length: usize) -> Vec<u8> {
    let mut out: Vec<u8> = (0..length).map(|at| at as u8).collect();
    out[..4].copy_from_slice(b"nigh");
    out[4..8].copy_from_slice(&nonce);
    out[STAMP..PROBE].fill(0);
    out
}

/// The time of sending in a reply's payload, if the payload is otherwise that of the requests.
pub fn stamp(sent: &[u8], received: &[u8]) -> Option<u64> {
    let same = sent.len() == received.len()
        && sent[..STAMP] == received[..STAMP]
        && sent[PROBE..] == received[PROBE..];
    let stamp = received.get(STAMP..PROBE)?.try_into().ok()?;
    same.then(|| u64::from_be_bytes(stamp))
}

/// A request that is written many times, each with its number and time.
#[derive(Clone, Debug)]
pub struct Template {
    bytes: Vec<u8>,
    icmp: usize,
    sum: Sum,
}

impl Template {
    /// Of a request with number 0 and time 0 and right checksum, whose ICMP header begins at `icmp`.
    pub fn new(bytes: Vec<u8>, icmp: usize) -> Self {
        // All that is covered adds up to the complement of the checksum, pseudo header included.
        let check = u16::from_be_bytes([bytes[icmp + 2], bytes[icmp + 3]]);
        Self { bytes, icmp, sum: Sum::default().word(!check) }
    }

    /// Bytes of a request.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Several copies one behind the other, to be made different with [`Template::write`].
    pub fn copies(&self, count: usize) -> Vec<u8> {
        self.bytes.repeat(count)
    }

    /// Makes a copy the request with this number and time.
    pub fn write(&self, copy: &mut [u8], number: u32, stamp: u64) {
        let (number, stamp) = (number.to_be_bytes(), stamp.to_be_bytes());
        let check = self.sum.bytes(&number).bytes(&stamp).finish();
        let icmp = &mut copy[self.icmp..];
        icmp[2..4].copy_from_slice(&check.to_be_bytes());
        icmp[4..8].copy_from_slice(&number);
        icmp[ICMP + STAMP..ICMP + PROBE].copy_from_slice(&stamp);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use wire::{Identifier, Sequence, echo_frame::EchoFrame};

    #[test]
    fn any_damage_beside_the_time_is_seen() {
        let sent = payload([1, 2, 3, 4], 40);
        assert_eq!(stamp(&sent, &sent), Some(0));
        for at in 0..sent.len() {
            let mut received = sent.clone();
            received[at] ^= 0x10;
            assert_eq!(stamp(&sent, &received).is_some(), (8..16).contains(&at), "{at}");
        }
        assert_eq!(stamp(&sent, &sent[..39]), None);
        assert_eq!(stamp(&sent, &[]), None);
        let mut later = sent.clone();
        later[8..16].copy_from_slice(&77u64.to_be_bytes());
        assert_eq!(stamp(&sent, &later), Some(77));
    }

    proptest! {
        /// What is written over a copy is what the builder makes from the start.
        #[test]
        fn template_equals_builder(number in any::<u32>(), time in any::<u64>(),
                                   length in 16usize..200, v6 in any::<bool>()) {
            let (from, to): (IpAddr, IpAddr) = if v6 {
                (Ipv6Addr::LOCALHOST.into(), "2001:db8::1".parse().unwrap())
            } else {
                (Ipv4Addr::LOCALHOST.into(), "192.0.2.1".parse().unwrap())
            };
            let mut frame = EchoFrame::request(from, to);
            frame.payload = payload([9, 8, 7, 6], length);
            let icmp = frame.ethernet_len() + if v6 { 40 } else { 20 };
            let template = Template::new(frame.to_bytes().unwrap(), icmp);
            let mut copy = template.copies(1);
            template.write(&mut copy, !number, !time); // As left by an earlier use.
            template.write(&mut copy, number, time);
            frame.identifier = Identifier((number >> 16) as u16);
            frame.sequence = Sequence(number as u16);
            frame.payload[8..16].copy_from_slice(&time.to_be_bytes());
            prop_assert_eq!(copy, frame.to_bytes().unwrap());
        }
    }
}
