//! Writes pcapng (draft-ietf-opsawg-pcapng): a section header, interfaces as they come up, packets, and
//! statistics at the end.
//!
//! ```text
//! block:  type | total length | body, a multiple of 4 bytes | total length
//! option: code | length | value, filled up to a multiple of 4 bytes
//! ```
//!
//! Everything is little-endian, as the section header shows.

/// Section header block and its byte-order magic (section 4.1).
const SECTION: u32 = 0x0a0d_0d0a;
const MAGIC: u32 = 0x1a2b_3c4d;
/// Interface description block (4.2).
const INTERFACE: u32 = 1;
/// Interface statistics block (4.6).
const STATISTICS: u32 = 5;
/// Enhanced packet block (4.3).
const PACKET: u32 = 6;
/// Options of all blocks (3.5).
const COMMENT: u16 = 1;
const END_OF_OPTIONS: u16 = 0;
/// Options of the section header (4.1).
const USER_APPLICATION: u16 = 4;
/// Options of interfaces (4.2): name and resolution of times, here 10^-9 s.
const NAME: u16 = 2;
const RESOLUTION: u16 = 9;
const NANOSECONDS: u8 = 9;
/// Option of packets (4.3.1): bits 0 and 1 are the direction.
const FLAGS: u16 = 2;
/// Option of statistics (4.6): packets dropped for lack of room.
const DROPPED: u16 = 5;
/// LINKTYPE_NULL: before the IP packet is its family, in the byte order of the file. LINKTYPE_RAW
/// would do without, but libpcap 1.10 refuses files with two interfaces of that type.
const NULL: u16 = 0;
/// The families.
const IPV4: u32 = 2;
const IPV6: u32 = 24;
/// Bytes of the family.
const FAMILY: u32 = 4;
/// Bytes of a packet block before the packet (4.3).
const HEAD: usize = 28;

use crate::LinkType;

/// The direction of a packet, seen from where it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received.
    Inbound = 1,
    /// Sent.
    Outbound = 2,
}

/// What packets of an interface begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// The IP header.
    Ip,
    /// The Ethernet header.
    Ethernet,
    /// Whatever frames of this link begin with.
    Link(LinkType),
}

impl Medium {
    fn link(self) -> u16 {
        match self {
            Self::Ip => NULL,
            Self::Ethernet => LinkType::ETHERNET.0,
            Self::Link(link) => link.0,
        }
    }
}

/// A packet to write.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The interface's number.
    pub interface: u32,
    /// Nanoseconds since 1970.
    pub time: u64,
    /// Its direction, if that is known.
    pub direction: Option<Direction>,
    /// What it begins with.
    pub medium: Medium,
    /// Bytes that the packet had.
    pub length: u32,
    /// The first of them.
    pub bytes: &'a [u8],
    /// A comment.
    pub comment: Option<&'a str>,
}

/// The kind of a block, for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// A packet.
    Packet,
    /// Statistics: the packets dropped for lack of room.
    Statistics(u64),
    /// Another one.
    Other,
}

/// A block that is being written.
struct Draft<'a> {
    out: &'a mut Vec<u8>,
    from: usize,
    has_options: bool,
}

impl<'a> Draft<'a> {
    fn new(out: &'a mut Vec<u8>, kind: u32) -> Self {
        let from = out.len();
        let mut draft = Self { out, from, has_options: false };
        draft.word(kind);
        draft.word(0);
        draft
    }

    fn word(&mut self, word: u32) {
        self.out.extend(word.to_le_bytes());
    }

    fn pair(&mut self, first: u16, second: u16) {
        self.out.extend(first.to_le_bytes());
        self.out.extend(second.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend(bytes);
        self.fill();
    }

    /// Fills up to a multiple of 4 bytes.
    fn fill(&mut self) {
        let end = self.from + (self.out.len() - self.from).next_multiple_of(4);
        self.out.extend_from_slice(&[0; 3]);
        self.out.truncate(end);
    }

    /// An option; what is longer than options can be is cut.
    fn option(&mut self, code: u16, value: &[u8]) {
        self.has_options = true;
        let value = value.get(..usize::from(u16::MAX)).unwrap_or(value);
        self.pair(code, value.len() as u16);
        self.bytes(value);
    }

    fn finish(mut self) {
        if self.has_options {
            self.pair(END_OF_OPTIONS, 0);
        }
        let length = (self.out.len() - self.from + 4) as u32;
        self.word(length);
        if let Some(field) = self.out.get_mut(self.from + 4..self.from + 8) {
            field.copy_from_slice(&length.to_le_bytes());
        }
    }
}

/// The section header, with the program that wrote the file and its comment.
pub fn section(out: &mut Vec<u8>, program: &str, comment: Option<&str>) {
    let mut draft = Draft::new(out, SECTION);
    draft.word(MAGIC);
    // Version 1.0, and a section of unknown length.
    draft.pair(1, 0);
    draft.word(u32::MAX);
    draft.word(u32::MAX);
    draft.option(USER_APPLICATION, program.as_bytes());
    if let Some(comment) = comment {
        draft.option(COMMENT, comment.as_bytes());
    }
    draft.finish();
}

/// An interface; they are counted from 0.
pub fn interface(out: &mut Vec<u8>, name: Option<&str>, medium: Medium, snap: u32) {
    let mut draft = Draft::new(out, INTERFACE);
    draft.pair(medium.link(), 0);
    draft.word(snap);
    if let Some(name) = name {
        draft.option(NAME, name.as_bytes());
    }
    draft.option(RESOLUTION, &[NANOSECONDS]);
    draft.finish();
}

/// A packet.
pub fn packet(out: &mut Vec<u8>, record: Record<'_>) {
    packet_in_place(out, record, |out| out.extend(record.bytes));
}

/// A packet whose bytes `write` appends, in place of the record's; if they are more than the record's length,
/// that is their number. Returns their number.
#[inline]
pub fn packet_in_place(
    out: &mut Vec<u8>,
    record: Record<'_>,
    write: impl FnOnce(&mut Vec<u8>),
) -> usize {
    let from = out.len();
    out.extend_from_slice(&[0; HEAD]);
    if record.medium == Medium::Ip {
        out.extend_from_slice(&[0; FAMILY as usize]);
    }
    let bytes = out.len();
    write(out);
    let written = out.len() - bytes;
    let more = if record.medium == Medium::Ip {
        let is_v6 = out.get(bytes).is_some_and(|byte| byte >> 4 == 6);
        out[bytes - 4..bytes].copy_from_slice(&if is_v6 { IPV6 } else { IPV4 }.to_le_bytes());
        FAMILY
    } else {
        0
    };
    let length = record.length.max(written as u32).saturating_add(more);
    let (high, low) = ((record.time >> 32) as u32, record.time as u32);
    let head = [PACKET, 0, record.interface, high, low, written as u32 + more, length];
    out[from..from + HEAD].copy_from_slice(head.map(u32::to_le_bytes).as_flattened());
    let mut draft = Draft { out, from, has_options: false };
    draft.fill();
    if let Some(direction) = record.direction {
        draft.option(FLAGS, &(direction as u32).to_le_bytes());
    }
    if let Some(comment) = record.comment {
        draft.option(COMMENT, comment.as_bytes());
    }
    draft.finish();
    written
}

/// How many packets were dropped for lack of room until that time.
pub fn statistics(out: &mut Vec<u8>, interface: u32, time: u64, dropped: u64) {
    let mut draft = Draft::new(out, STATISTICS);
    draft.word(interface);
    draft.word((time >> 32) as u32);
    draft.word(time as u32);
    draft.option(DROPPED, &dropped.to_le_bytes());
    draft.finish();
}

/// The length of a block, of which these are the first bytes.
pub fn length(start: [u8; 8]) -> u32 {
    let [_, _, _, _, length @ ..] = start;
    u32::from_le_bytes(length)
}

/// The kind of a whole block that was written here.
pub fn kind(block: &[u8]) -> Block {
    let word = |at: usize| block.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word));
    match word(0) {
        Some(PACKET) => Block::Packet,
        // The option comes first: 8 bytes of header, 12 of body, 4 of the option's.
        Some(STATISTICS) => {
            let dropped = block.get(24..).and_then(|value| value.first_chunk());
            Block::Statistics(dropped.map_or(0, |value| u64::from_le_bytes(*value)))
        }
        _ => Block::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_of_the_specification() {
        let mut out = Vec::new();
        interface(&mut out, Some("a>b"), Medium::Ip, 0x40000);
        let right = [
            &[1, 0, 0, 0, 40, 0, 0, 0][..],
            &[0, 0, 0, 0, 0, 0, 4, 0],
            &[2, 0, 3, 0, b'a', b'>', b'b', 0],
            &[9, 0, 1, 0, 9, 0, 0, 0],
            &[0, 0, 0, 0, 40, 0, 0, 0],
        ];
        assert_eq!(out, right.concat());
        out.clear();
        let record = Record {
            interface: 1,
            time: 0x1_0000_0002,
            direction: Some(Direction::Outbound),
            medium: Medium::Ip,
            length: 6,
            bytes: &[0x45, 1, 2, 3, 4],
            comment: Some("lost"),
        };
        packet(&mut out, record);
        let right = [
            &[6, 0, 0, 0, 64, 0, 0, 0][..],
            &[1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0, 10, 0, 0, 0],
            &[2, 0, 0, 0],
            &[0x45, 1, 2, 3, 4, 0, 0, 0],
            &[2, 0, 4, 0, 2, 0, 0, 0],
            &[1, 0, 4, 0, b'l', b'o', b's', b't'],
            &[0, 0, 0, 0, 64, 0, 0, 0],
        ];
        assert_eq!(out, right.concat());
        assert_eq!(kind(&out), Block::Packet);
        // A frame has nothing before it.
        let mut frame = Vec::new();
        packet(&mut frame, Record { medium: Medium::Ethernet, ..record });
        let right = [&[6, 0, 0, 0, 60, 0, 0, 0], &out[8..20], &[5, 0, 0, 0, 6, 0, 0, 0]].concat();
        assert_eq!(frame[..28], right);
        assert_eq!(frame[28..56], out[32..60]);
        // Without options there is no end of them.
        let bare = Record { direction: None, comment: None, medium: Medium::Ethernet, ..record };
        let mut frame = Vec::new();
        packet(&mut frame, bare);
        assert_eq!(
            (frame.len(), &frame[28..]),
            (40, &[0x45, 1, 2, 3, 4, 0, 0, 0, 40, 0, 0, 0][..])
        );
    }

    #[test]
    fn every_block_has_its_length_at_both_ends() {
        let mut out = Vec::new();
        section(&mut out, "nigh", None);
        let header = out.len();
        statistics(&mut out, 0, 5, 77);
        assert_eq!(kind(&out[header..]), Block::Statistics(77));
        let mut rest = &out[..];
        let mut kinds = 0;
        while let Some(start) = rest.first_chunk() {
            let length = length(*start) as usize;
            assert_eq!(length % 4, 0);
            let (block, after) = rest.split_at(length);
            assert_eq!(block[block.len() - 4..], (length as u32).to_le_bytes());
            rest = after;
            kinds += 1;
        }
        assert_eq!((kinds, rest.len()), (2, 0));
    }
}
