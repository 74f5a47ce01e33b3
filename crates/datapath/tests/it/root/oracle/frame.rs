//! Frames for the tests, every field of which can be wrong.

use super::{CLIENT, PORT, SERVICE};
use crate::root::common::{Ethernet, sum};

/// How the UDP checksum is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// Right, with these bits flipped.
    Flipped(u16),
    /// None: zero.
    None,
    /// Only the pseudo header's sum: the rest is left to hardware.
    Partial,
}

/// A frame to be: begin with [`Frame::request`], change what the test is about, then
/// [`Frame::bytes`].
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) link: Ethernet,
    pub(crate) source: [u8; 4],
    pub(crate) target: [u8; 4],
    pub(crate) tos: u8,
    /// IPv4's flags and fragment offset.
    pub(crate) fragment: u16,
    pub(crate) ttl: u8,
    pub(crate) protocol: u8,
    pub(crate) options: Vec<u8>,
    /// Instead of the right header length.
    pub(crate) ihl: Option<u8>,
    /// Flipped bits of the header's checksum.
    pub(crate) spoil_ip: u16,
    /// Added to the right length fields.
    pub(crate) ip_lie: i32,
    pub(crate) udp_lie: i32,
    pub(crate) from_port: u16,
    pub(crate) to_port: u16,
    pub(crate) check: Check,
    /// Behind the UDP header.
    pub(crate) payload: Vec<u8>,
}

/// A plain request: header and one TLV of IPv4 addresses.
pub(crate) fn question(identification: u32, candidates: &[[u8; 4]]) -> Vec<u8> {
    let mut payload = vec![0; 4];
    payload.extend(identification.to_be_bytes());
    payload.extend([0, 0, 0, 0, 1, 0]);
    payload.extend((4 + 4 * candidates.len() as u16).to_be_bytes());
    payload.extend(candidates.as_flattened());
    payload
}

impl Frame {
    /// A plain request of the unknown peer.
    pub(crate) fn request(candidates: &[[u8; 4]]) -> Self {
        Self {
            link: Ethernet::plain(),
            source: CLIENT,
            target: SERVICE,
            tos: 0,
            fragment: 0x4000,
            ttl: 57,
            protocol: 17,
            options: Vec::new(),
            ihl: None,
            spoil_ip: 0,
            ip_lie: 0,
            udp_lie: 0,
            from_port: 40_000,
            to_port: PORT,
            check: Check::Flipped(0),
            payload: question(0xdead_beef, candidates),
        }
    }

    /// The whole frame.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut udp = Vec::new();
        udp.extend(self.from_port.to_be_bytes());
        udp.extend(self.to_port.to_be_bytes());
        let lie = |length: usize, lie: i32| ((length as i32 + lie) as u16).to_be_bytes();
        udp.extend(lie(8 + self.payload.len(), self.udp_lie));
        udp.extend([0, 0]);
        udp.extend(&self.payload);
        let pseudo = [&self.source[..], &self.target, &[0, 17], &udp[4..6]].concat();
        let check = match self.check {
            Check::None => 0,
            Check::Partial => sum(&pseudo),
            Check::Flipped(bits) => match !sum(&[pseudo, udp.clone()].concat()) ^ bits {
                0 => 0xffff,
                check => check,
            },
        };
        udp[6..8].copy_from_slice(&check.to_be_bytes());

        let ihl = self.ihl.unwrap_or(5 + self.options.len() as u8 / 4);
        let mut head = vec![0x40 | ihl, self.tos];
        head.extend(lie(20 + self.options.len() + udp.len(), self.ip_lie));
        head.extend([0x12, 0x34]);
        head.extend(self.fragment.to_be_bytes());
        head.extend([self.ttl, self.protocol, 0, 0]);
        head.extend(self.source);
        head.extend(self.target);
        head.extend(&self.options);
        let check = !sum(&head) ^ self.spoil_ip;
        head[10..12].copy_from_slice(&check.to_be_bytes());
        head.extend(udp);
        self.link.around(0x0800, &head)
    }
}
