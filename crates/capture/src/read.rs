//! Reads pcap and pcapng, frame by frame, with pcap-parser.
//!
//! Frames may be cut short (a snap length); that is marked, and is no error.
//! A file that ends within a packet is read up to there.

use pcap_parser::{
    Block, LegacyPcapBlock, Linktype, PIB_MAGIC, PcapBlockOwned, PcapError, PcapHeader,
    create_reader, nom::IResult, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified,
    traits::PcapReaderIterator,
};
use std::io::Read;

#[cfg(test)]
mod tests;

/// Bytes that are read at a time.
const BUFFER: usize = 256 * 1024;
/// The largest block: a frame of a GSO super-packet and then some.
const LARGEST: usize = 16 * 1024 * 1024;
/// Most interfaces of a pcapng section.
const INTERFACES: usize = 4096;
/// The packet block before the enhanced one (pcapng, appendix A).
const OBSOLETE: u32 = 2;

/// A capture could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is neither pcap nor pcapng.
    #[error("neither pcap nor pcapng: record with `tcpdump -w` or `dumpcap`")]
    Form,
    /// It is empty.
    #[error("the file is empty")]
    Empty,
    /// A block is damaged.
    #[error("the record at byte {0} is not a packet: the file is damaged from there on")]
    Damaged(u64),
    /// A block is too large.
    #[error("the block at byte {0} has more than {LARGEST} bytes")]
    TooLarge(u64),
    /// The system's reason.
    #[error("cannot be read after byte {0}")]
    Io(u64),
}

/// What kind of link a frame was seen on (tcpdump.org/linktypes.html).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// Ethernet frames with their header.
    pub const ETHERNET: Self = Self(1);
    /// IP packets, whose version is in their first bits.
    pub const RAW: Self = Self(101);
    /// What Linux captures on the interface `any` (cooked mode).
    pub const COOKED: Self = Self(113);
    /// The same, version 2.
    pub const COOKED2: Self = Self(276);

    fn new(kind: Linktype) -> Self {
        // The upper bits of the field are about frame check sequences.
        Self((kind.0 & 0xffff) as u16)
    }

    /// Bytes before the IP packet if all frames of this link have the same; that is those whose
    /// packets are IP and nothing else.
    pub fn before_ip(self) -> Option<usize> {
        match self.0 {
            // LINKTYPE_NULL and LINKTYPE_LOOP: four bytes of address family.
            0 | 108 => Some(4),
            12 | 14 | 101 | 228 | 229 => Some(0),
            _ => None,
        }
    }
}

/// One frame of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// When it was seen, nanoseconds since 1970.
    pub at_ns: u64,
    /// The interface it was seen on, counted from 0 over the whole file.
    pub interface: u32,
    /// What kind of link that is.
    pub link: LinkType,
    /// Its bytes, as far as they were kept.
    pub bytes: &'a [u8],
    /// Bytes that it had on the wire.
    pub length: u32,
}

/// An item of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A frame.
    Frame(Frame<'a>),
    /// A packet without the link on which it was captured, or in a form that is obsolete
    /// (pcapng, section 4.5 and appendix A).
    Lost,
    /// Bytes that belong to no frame: comments and other options of packets, whole blocks of other kinds, also
    /// those of lost packets.
    Other(&'a [u8]),
}

/// How a capture ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The last packet was whole.
    Whole,
    /// The file ends within a packet, as when its writer was killed.
    Within,
}

/// An interface of a pcapng section, and what its times mean.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: LinkType,
    snap_length: u32,
    clock: Clock,
}

/// Units of a second and seconds to add (pcapng, sections 4.2.1 to 4.2.2: if_tsresol, if_tsoffset).
#[derive(Clone, Copy, Debug)]
struct Clock {
    resolution: u8,
    offset_s: i64,
}

impl Clock {
    fn nanoseconds(self, units: u64) -> u64 {
        let exponent = u32::from(self.resolution & 0x7f);
        let units = u128::from(units) * 1_000_000_000;
        let ns = if self.resolution & 0x80 == 0 {
            10u128.checked_pow(exponent).map_or(0, |second| units / second)
        } else {
            units.checked_shr(exponent).unwrap_or(0)
        };
        let offset = i128::from(self.offset_s) * 1_000_000_000;
        let ns = i128::try_from(ns).unwrap_or(i128::MAX).saturating_add(offset);
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }
}

/// Calls `each` for each frame of a capture in order, with the bytes of the file read so far.
///
/// # Errors
/// When it is no capture or is damaged; or what `each` returns.
pub fn read<E: From<ReadError>>(
    input: impl Read + Send,
    mut each: impl FnMut(Frame<'_>, u64) -> Result<(), E>,
) -> Result<End, E> {
    read_all(input, |item, at| match item {
        Item::Frame(frame) => each(frame, at),
        Item::Lost | Item::Other(_) => Ok(()),
    })
}

/// Calls `each` for all items of a capture in order, with the bytes of the file read so far.
///
/// # Errors
/// When it is no capture or is damaged; or what `each` returns.
pub fn read_all<E: From<ReadError>>(
    input: impl Read + Send,
    mut each: impl FnMut(Item<'_>, u64) -> Result<(), E>,
) -> Result<End, E> {
    let mut reader = match create_reader(BUFFER, input) {
        Ok(reader) => reader,
        Err(PcapError::Eof) => return Err(ReadError::Empty.into()),
        Err(PcapError::ReadError) => return Err(ReadError::Io(0).into()),
        Err(_) => return Err(ReadError::Form.into()),
    };
    let mut file = File::default();
    let mut size = BUFFER;
    loop {
        if let Some(classic) = &file.classic {
            // All frames that are wholly there, without asking the library for each.
            let (begin, data) = (reader.consumed(), reader.data());
            let mut rest = data;
            while let Ok((next, frame)) = (classic.parse)(rest) {
                let at = begin + data.len() - rest.len();
                each(Item::Frame(classic.frame(&frame)), at as u64)?;
                rest = next;
            }
            let done = data.len() - rest.len();
            reader.consume_noshift(done);
        }
        let at = reader.consumed() as u64;
        if file.classic.is_none() && is_unbearable(reader.data()) {
            return Err(ReadError::Damaged(at).into());
        }
        match reader.next() {
            Ok((length, block)) => {
                let found = file.frame(&block);
                if let Some(item) = found {
                    each(item, at)?;
                }
                if let PcapBlockOwned::NG(Block::EnhancedPacket(packet)) = &block {
                    for option in &packet.options {
                        each(Item::Other(&option.value), at)?;
                    }
                }
                let is_other = !matches!(found, Some(Item::Frame(_)));
                drop(block);
                if is_other && let Some(bytes) = reader.data().get(..length) {
                    each(Item::Other(bytes), at)?;
                }
                reader.consume(length);
            }
            Err(PcapError::Eof) => return Ok(End::Whole),
            Err(PcapError::UnexpectedEof) => return Ok(End::Within),
            Err(PcapError::Incomplete(_)) => {
                if reader.reader_exhausted() {
                    return Ok(End::Within);
                }
                let there = reader.data().len();
                match reader.refill().map_err(|error| error.to_owned_vec()) {
                    Ok(()) if reader.data().len() > there => {}
                    Ok(()) if reader.reader_exhausted() => {}
                    Ok(()) | Err(PcapError::BufferTooSmall) => {
                        grow(&mut *reader, &mut size).ok_or(ReadError::TooLarge(at))?;
                    }
                    Err(_) => return Err(ReadError::Io(at).into()),
                }
            }
            Err(PcapError::BufferTooSmall) => {
                grow(&mut *reader, &mut size).ok_or(ReadError::TooLarge(at))?;
            }
            Err(PcapError::ReadError) => return Err(ReadError::Io(at).into()),
            Err(_) => return Err(ReadError::Damaged(at).into()),
        }
    }
}

/// Whether a pcapng block is one on which pcap-parser 0.17 fails: it takes the lengths of a process
/// information block's frame from the block's own without a check.
fn is_unbearable(block: &[u8]) -> bool {
    let Some(([kind, length], _)) = block.split_at_checked(8).map(|(head, _)| head.as_chunks())
    else {
        return false;
    };
    // A length of the other byte order is never so small: it would be beyond `LARGEST` in its own.
    let is_short = |length: u32| length < 16;
    let process = [PIB_MAGIC.to_le_bytes(), PIB_MAGIC.to_be_bytes()].contains(kind);
    process && (is_short(u32::from_le_bytes(*length)) || is_short(u32::from_be_bytes(*length)))
}

fn grow(reader: &mut dyn PcapReaderIterator, size: &mut usize) -> Option<()> {
    *size *= 2;
    (*size <= LARGEST && reader.grow(*size)).then_some(())
}

/// The properties of all frames of a classic pcap.
#[derive(Debug)]
struct Classic {
    link: LinkType,
    /// Nanoseconds in the smaller unit of its times.
    unit: u64,
    /// Splits off the first frame, by the header's byte order and form.
    parse: Parse,
}

/// What follows the first frame, and the frame.
type Parse = fn(&[u8]) -> IResult<&[u8], LegacyPcapBlock<'_>, PcapError<&[u8]>>;

impl Classic {
    fn new(header: &PcapHeader) -> Self {
        Self {
            link: LinkType::new(header.network),
            unit: if header.is_nanosecond_precision() { 1 } else { 1000 },
            parse: match header {
                header if header.is_modified_format() => parse_pcap_frame_modified,
                header if header.is_bigendian() => parse_pcap_frame_be,
                _ => parse_pcap_frame,
            },
        }
    }

    #[inline]
    fn frame<'a>(&self, frame: &LegacyPcapBlock<'a>) -> Frame<'a> {
        let at_ns = u64::from(frame.ts_sec) * 1_000_000_000
            + u64::from(frame.ts_usec).saturating_mul(self.unit);
        let bytes = cut(frame.data, frame.caplen);
        let length = frame.origlen.max(len(bytes));
        Frame { at_ns, interface: 0, link: self.link, bytes, length }
    }
}

/// What is known of the file so far.
#[derive(Debug, Default)]
struct File {
    classic: Option<Classic>,
    interfaces: Vec<Interface>,
    /// Interfaces of the sections before this one.
    before: u32,
}

impl File {
    /// The frame in a block, if it is a packet's.
    fn frame<'a>(&mut self, block: &PcapBlockOwned<'a>) -> Option<Item<'a>> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                self.classic = Some(Classic::new(header));
                None
            }
            PcapBlockOwned::Legacy(frame) => Some(Item::Frame(self.classic.as_ref()?.frame(frame))),
            PcapBlockOwned::NG(block) => self.block(block),
        }
    }

    fn block<'a>(&mut self, block: &Block<'a>) -> Option<Item<'a>> {
        match block {
            // Each section numbers its interfaces from 0.
            Block::SectionHeader(_) => {
                self.before = self.before.saturating_add(self.interfaces.len() as u32);
                self.interfaces.clear();
                None
            }
            Block::InterfaceDescription(interface) => {
                if self.interfaces.len() < INTERFACES {
                    self.interfaces.push(Interface {
                        link: LinkType::new(interface.linktype),
                        snap_length: interface.snaplen,
                        clock: Clock {
                            resolution: interface.if_tsresol,
                            offset_s: interface.if_tsoffset,
                        },
                    });
                }
                None
            }
            Block::EnhancedPacket(packet) => {
                let Some(interface) = self.interfaces.get(packet.if_id as usize) else {
                    return Some(Item::Lost);
                };
                let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let at_ns = interface.clock.nanoseconds(units);
                let bytes = cut(packet.data, packet.caplen);
                let length = packet.origlen.max(len(bytes));
                let number = self.before.saturating_add(packet.if_id);
                let link = interface.link;
                Some(Item::Frame(Frame { at_ns, interface: number, link, bytes, length }))
            }
            // Of the first interface, without a time.
            Block::SimplePacket(packet) => {
                let Some(interface) = self.interfaces.first() else { return Some(Item::Lost) };
                let kept = match interface.snap_length {
                    0 => packet.origlen,
                    snap_length => packet.origlen.min(snap_length),
                };
                let bytes = cut(packet.data, kept);
                let length = packet.origlen.max(len(bytes));
                let (interface, link) = (self.before, interface.link);
                Some(Item::Frame(Frame { at_ns: 0, interface, link, bytes, length }))
            }
            Block::Unknown(unknown) if unknown.block_type == OBSOLETE => Some(Item::Lost),
            _ => None,
        }
    }
}

/// Without the bytes that fill a block up.
fn cut(bytes: &[u8], length: u32) -> &[u8] {
    bytes.get(..length as usize).unwrap_or(bytes)
}

fn len(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}
