//! Segments of TCP in Ethernet frames, with what can be wrong or odd about them, and answers to them.

use std::net::{IpAddr, SocketAddr};
use wire::{IpProtocol, checksum};

/// TCP's control bits (RFC 9293, section 3.1).
pub const FIN: u8 = 1;
/// The same.
pub const SYN: u8 = 2;
/// The same.
pub const RST: u8 = 4;
/// The same.
pub const ACK: u8 = 16;
/// The same.
pub const URG: u8 = 32;

const ETHERNET: usize = 14;

/// A segment from `from` to `to`.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Its sender.
    pub from: SocketAddr,
    /// Its receiver, of the same family.
    pub to: SocketAddr,
    /// The sequence number.
    pub sequence: u32,
    /// The acknowledgement number.
    pub acknowledgement: u32,
    /// The control bits.
    pub flags: u8,
    /// The urgent pointer.
    pub urgent: u16,
    /// TSval and TSecr.
    pub timestamps: Option<[u32; 2]>,
    /// What it carries.
    pub payload: Vec<u8>,
    /// IPv4 options, or an IPv6 header of options, that say nothing.
    pub options: bool,
    /// Whether the checksum of TCP is wrong, and that of IPv4's header.
    pub spoilt: [bool; 2],
}

impl Segment {
    fn tcp(&self) -> Vec<u8> {
        let mut tcp = Vec::new();
        tcp.extend(self.from.port().to_be_bytes());
        tcp.extend(self.to.port().to_be_bytes());
        tcp.extend(self.sequence.to_be_bytes());
        tcp.extend(self.acknowledgement.to_be_bytes());
        let words = if self.timestamps.is_some() { 8 } else { 5 };
        tcp.extend([words << 4, self.flags, 0xff, 0xff, 0, 0]);
        tcp.extend(self.urgent.to_be_bytes());
        if let Some([value, echo]) = self.timestamps {
            tcp.extend([1, 1, 8, 10]);
            tcp.extend(value.to_be_bytes());
            tcp.extend(echo.to_be_bytes());
        }
        tcp.extend(&self.payload);
        let length = tcp.len() as u32;
        let pseudo =
            checksum::pseudo(self.from.ip(), self.to.ip(), length, IpProtocol::TCP).unwrap();
        let check = pseudo.bytes(&tcp).finish() ^ u16::from(self.spoilt[0]);
        tcp[16..18].copy_from_slice(&check.to_be_bytes());
        tcp
    }

    /// Where its header and its payload begin in its whole frame.
    pub fn places(&self) -> (usize, usize) {
        let header = if self.from.is_ipv4() { 20 } else { 40 };
        let transport = ETHERNET + header + if self.options { 8 } else { 0 };
        (transport, transport + if self.timestamps.is_some() { 32 } else { 20 })
    }

    /// Its whole frame, to and from these addresses.
    ///
    /// # Panics
    ///
    /// When sender and receiver are not of one family.
    pub fn whole(&self, macs: [[u8; 6]; 2]) -> Vec<u8> {
        self.frame(macs, &self.tcp(), None)
    }

    /// Its two fragments, of which the first has so many bytes of the segment (a multiple of 8), with this
    /// identification.
    ///
    /// # Panics
    ///
    /// As [`Segment::whole`], and when the segment is not that long.
    pub fn cut(&self, macs: [[u8; 6]; 2], number: u32, at: usize) -> [Vec<u8>; 2] {
        let tcp = self.tcp();
        let (first, rest) = tcp.split_at(at);
        let part = |bytes, offset, more| self.frame(macs, bytes, Some((number, offset, more)));
        [part(first, 0, true), part(rest, at / 8, false)]
    }

    /// A frame with a part of the segment: number, offset in units of 8 bytes, whether more follows.
    fn frame(&self, macs: [[u8; 6]; 2], tcp: &[u8], part: Option<(u32, usize, bool)>) -> Vec<u8> {
        let mut frame = macs.concat();
        match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let words = if self.options { 7 } else { 5 };
                let (number, offset, more) = part.unwrap_or_default();
                let fragment = offset as u16 | if more { 0x2000 } else { 0 };
                frame.extend([8, 0, 0x40 | words, 0]);
                let begin = frame.len() - 2;
                frame.extend((u16::from(words) * 4 + tcp.len() as u16).to_be_bytes());
                frame.extend((number as u16).to_be_bytes());
                frame.extend(fragment.to_be_bytes());
                frame.extend([64, 6, 0, 0]);
                frame.extend(from.octets());
                frame.extend(to.octets());
                frame.extend(if self.options { &[1; 8][..] } else { &[] });
                let check = checksum::checksum(&frame[begin..]) ^ u16::from(self.spoilt[1]);
                frame[begin + 10..begin + 12].copy_from_slice(&check.to_be_bytes());
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let extra = usize::from(self.options) * 8 + usize::from(part.is_some()) * 8;
                frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
                frame.extend(((extra + tcp.len()) as u16).to_be_bytes());
                let next = if part.is_some() { 44 } else { 6 };
                frame.extend([if self.options { 60 } else { next }, 64]);
                frame.extend(from.octets());
                frame.extend(to.octets());
                if self.options {
                    frame.extend([next, 0, 1, 4, 0, 0, 0, 0]);
                }
                if let Some((number, offset, more)) = part {
                    frame.extend([6, 0]);
                    frame.extend((offset as u16 * 8 + u16::from(more)).to_be_bytes());
                    frame.extend(number.to_be_bytes());
                }
            }
            _ => unreachable!("both are of one family"),
        }
        frame.extend(tcp);
        frame
    }
}

/// What the other end says in a frame.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The port that it goes to.
    pub port: u16,
    /// And the one that it comes from.
    pub source: u16,
    /// The control bits.
    pub flags: u8,
    /// The sequence number.
    pub sequence: u32,
    /// The acknowledgement number.
    pub acknowledgement: u32,
    /// TSval; 0 without.
    pub stamp: u32,
    /// What it carries.
    pub payload: Vec<u8>,
}

impl Answer {
    /// Reads a frame of TCP as Linux sends it; none of others.
    pub fn of(frame: &[u8]) -> Option<Self> {
        let at = match frame.get(ETHERNET)? >> 4 {
            4 if frame.get(ETHERNET + 9) == Some(&6) => ETHERNET + 20,
            6 if frame.get(ETHERNET + 6) == Some(&6) => ETHERNET + 40,
            _ => return None,
        };
        let word = |place: usize| {
            let bytes = frame.get(at + place..at + place + 4)?;
            Some(u32::from_be_bytes(bytes.try_into().ok()?))
        };
        let port = u16::from_be_bytes(frame.get(at + 2..at + 4)?.try_into().ok()?);
        // Linux writes two NOPs and then the timestamps, or in a SYN MSS, SACK-permitted and then them.
        let stamp = (20..40).find(|place| frame.get(at + place..at + place + 2) == Some(&[8, 10]));
        let header = usize::from(*frame.get(at + 12)? >> 4) * 4;
        Some(Self {
            port,
            source: u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?),
            payload: frame.get(at + header..)?.to_vec(),
            flags: *frame.get(at + 13)?,
            sequence: word(4)?,
            acknowledgement: word(8)?,
            stamp: stamp.and_then(|place| word(place + 2)).unwrap_or_default(),
        })
    }
}
