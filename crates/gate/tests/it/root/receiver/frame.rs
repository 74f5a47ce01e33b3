//! One segment of TCP in an Ethernet frame, with what can be wrong or odd about it.

use datapath::gate::{Direction, Key, Protocol, Reason, Record};
use std::net::{IpAddr, SocketAddr};
use wire::{IpProtocol, checksum};

pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;
pub(super) const ACK: u8 = 16;
pub(super) const URG: u8 = 32;

const ETHERNET: usize = 14;

/// A segment from `from` to `to`.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) sequence: u32,
    pub(super) acknowledgement: u32,
    pub(super) flags: u8,
    pub(super) urgent: u16,
    /// TSval and TSecr.
    pub(super) timestamps: Option<[u32; 2]>,
    pub(super) payload: Vec<u8>,
    /// IPv4 options, or an IPv6 header of options, that say nothing.
    pub(super) options: bool,
    /// Whether the checksum of TCP is wrong, and that of IPv4's header.
    pub(super) spoilt: [bool; 2],
}

/// Where the parts of a frame begin.
struct Places {
    network: usize,
    transport: usize,
    payload: usize,
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

    fn places(&self) -> Places {
        let header = if self.from.is_ipv4() { 20 } else { 40 };
        let transport = ETHERNET + header + if self.options { 8 } else { 0 };
        let tcp = if self.timestamps.is_some() { 32 } else { 20 };
        Places { network: ETHERNET, transport, payload: transport + tcp }
    }

    /// Its frames: one, or with a number for each two fragments of which the first has so many bytes of the
    /// segment.
    pub(super) fn frames(&self, macs: [[u8; 6]; 2], cut: Option<(u32, usize)>) -> Vec<Vec<u8>> {
        let tcp = self.tcp();
        let Some((number, at)) = cut else { return vec![self.frame(macs, &tcp, None)] };
        let (first, rest) = tcp.split_at(at);
        vec![
            self.frame(macs, first, Some((number, 0, true))),
            self.frame(macs, rest, Some((number, at / 8, false))),
        ]
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
                    frame.extend((offset as u16 * 8 | u16::from(more)).to_be_bytes());
                    frame.extend(number.to_be_bytes());
                }
            }
            _ => unreachable!("both are of one family"),
        }
        frame.extend(tcp);
        frame
    }

    /// What the gate's program copies out of its whole frame.
    pub(super) fn record<'a>(&self, frame: &'a [u8], taken: Option<u32>) -> Record<'a> {
        let key = Key::new(Protocol::Tcp, self.from, self.to);
        let places = self.places();
        assert_eq!(places.network, ETHERNET);
        Record {
            key,
            reason: Reason::Held,
            direction: Direction::ToInternal,
            at_ns: 0,
            from: key.side_of(self.from).unwrap(),
            client: key.side_of(self.from),
            internal: key.side_of(self.to),
            ifindex: 1,
            action: None,
            label: 0,
            number: 0,
            sequence: self.sequence,
            acknowledgement: self.acknowledgement,
            tcp_flags: self.flags,
            first: [0; 2],
            frame,
            length: frame.len() as u32,
            segment: 0,
            vlan: None,
            partial: false,
            unverified: true,
            fragment: false,
            taken,
            transport: places.transport,
            payload_at: places.payload,
            payload_length: self.payload.len() as u32,
            ended: None,
        }
    }
}

/// What the other end says in a frame: its ports, flags, numbers and TSval.
pub(super) struct Answer {
    pub(super) port: u16,
    pub(super) flags: u8,
    pub(super) sequence: u32,
    pub(super) acknowledgement: u32,
    pub(super) stamp: u32,
}

impl Answer {
    /// Reads a frame of TCP without options of IP; none of others.
    pub(super) fn of(frame: &[u8]) -> Option<Self> {
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
        Some(Self {
            port,
            flags: *frame.get(at + 13)?,
            sequence: word(4)?,
            acknowledgement: word(8)?,
            stamp: stamp.and_then(|place| word(place + 2)).unwrap_or_default(),
        })
    }
}
