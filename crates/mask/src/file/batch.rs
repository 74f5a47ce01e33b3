//! Gathers the frames of a capture into batches, and masks a batch.

use super::{Job, Stopped, units::Units};
use crate::{
    key::{self, Rotation},
    machine::Link,
    policy::Time,
};
use capture::{
    End, Frame, Item, LinkType,
    pcapng::{self, Medium, Record},
};
use rustc_hash::FxHashMap;
use std::{collections::hash_map::Entry, io::Read};

/// So many bytes of frames are gathered.
const BYTES: usize = 1 << 17;
/// And so many frames.
const FRAMES: usize = 1 << 11;
/// What interfaces say of how much of a packet is captured; longer ones are cut.
const SNAP: u32 = 262_144;
/// Most interfaces of a capture, over all its sections.
const INTERFACES: usize = 1 << 16;

/// A frame of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchFrame {
    time: u64,
    interface: u32,
    link: Link,
    /// Bytes of it on the wire.
    length: u32,
    /// The end of its bytes in the batch; they begin where those of the one before end.
    end: usize,
}

/// Frames of one period that follow each other.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) number: u64,
    /// The number of its first frame.
    first: u64,
    /// When the period of its key began, in seconds since 1970; 0 without rotation.
    period: u64,
    /// Whether the frames before it were of another period.
    begins: bool,
    /// Interfaces that come up in it.
    interfaces: Vec<Medium>,
    pub(super) frames: Vec<BatchFrame>,
    pub(super) bytes: Vec<u8>,
    /// The blocks that are written.
    pub(super) result: Vec<u8>,
    pub(super) bytes_out: u64,
}

impl Batch {
    /// Without what it holds, but with its memory.
    fn cleared(mut self) -> Self {
        self.interfaces.clear();
        self.frames.clear();
        self.bytes.clear();
        self.result.clear();
        let Self { interfaces, frames, bytes, result, .. } = self;
        Self { interfaces, frames, bytes, result, ..Self::default() }
    }
}

/// Gathers the frames of a capture into batches.
pub(super) struct Batches {
    time: Time,
    rotation: Option<Rotation>,
    batch: Batch,
    /// Numbers of the interfaces in the result.
    interfaces: FxHashMap<(u32, LinkType), u32>,
    /// When the first frame was seen.
    start: Option<u64>,
    skipped: Skipped,
}

/// Packets that are not in the result.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Skipped {
    /// Nothing is known of their link.
    pub(super) other_links: u64,
    /// The file does not say on which link they were seen, or has too many.
    pub(super) no_interface: u64,
}

impl Batches {
    pub(super) fn new(time: Time, rotation: Option<Rotation>) -> Self {
        let batch = Batch { begins: rotation.is_some(), ..Batch::default() };
        let (interfaces, skipped) = (FxHashMap::default(), Skipped::default());
        Self { time, rotation, batch, interfaces, start: None, skipped }
    }

    /// Reads a capture to its end and gives its batches, for each of which it gets one whose memory is used
    /// again; how it ended, and what is in none of them. What was read before an error is given, too.
    pub(super) fn read(
        mut self,
        input: impl Read + Send,
        mut give: impl FnMut(Batch) -> Result<Batch, Stopped>,
    ) -> Result<(End, Skipped), Stopped> {
        let end = capture::read_all::<Stopped>(input, |item, _| {
            match item {
                Item::Frame(frame) => {
                    if let Some(period) = self.turn(frame.at_ns) {
                        self.next(&mut give)?;
                        (self.batch.period, self.batch.begins) = (period, true);
                    }
                    self.add(&frame);
                }
                Item::Lost => self.skipped.no_interface += 1,
                Item::Other(_) => {}
            }
            if self.batch.bytes.len() >= BYTES || self.batch.frames.len() >= FRAMES {
                self.next(&mut give)?;
            }
            Ok(())
        });
        self.next(&mut give)?;
        Ok((end?, self.skipped))
    }

    /// Gives the batch, if there is anything in it, and begins the next one.
    fn next(
        &mut self,
        give: &mut impl FnMut(Batch) -> Result<Batch, Stopped>,
    ) -> Result<(), Stopped> {
        if self.batch.frames.is_empty() {
            return Ok(());
        }
        let Batch { number, first, period, .. } = self.batch;
        let first = first + self.batch.frames.len() as u64;
        self.batch = give(std::mem::take(&mut self.batch))?.cleared();
        (self.batch.number, self.batch.first, self.batch.period) = (number + 1, first, period);
        Ok(())
    }

    /// The period of a frame that was seen then, if it is another one than the batch's.
    fn turn(&self, at_ns: u64) -> Option<u64> {
        // A frame without a time is taken for one of the period in which it comes.
        let period = self.rotation.filter(|_| at_ns != 0)?.start(at_ns);
        (period != self.batch.period).then_some(period)
    }

    fn add(&mut self, frame: &Frame<'_>) {
        let Some((link, bytes)) = link_and_bytes(frame) else {
            self.skipped.other_links += 1;
            return;
        };
        let next = self.interfaces.len();
        let interface = match self.interfaces.entry((frame.interface, frame.link)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(_) if next == INTERFACES => {
                self.skipped.no_interface += 1;
                return;
            }
            Entry::Vacant(new) => {
                self.batch.interfaces.push(medium(link));
                *new.insert(next as u32)
            }
        };
        // A simple packet of pcapng has no time, so it is none to count from.
        let start = match (self.start, frame.at_ns) {
            (Some(start), _) => start,
            (None, 0) => 0,
            (None, first) => *self.start.insert(first),
        };
        let before = frame.bytes.len() - bytes.len();
        let bytes = &bytes[..bytes.len().min(SNAP as usize)];
        self.batch.bytes.extend(bytes);
        self.batch.frames.push(BatchFrame {
            time: match self.time {
                Time::Keep => frame.at_ns,
                Time::Relative => frame.at_ns.saturating_sub(start),
                Time::Remove => 0,
            },
            interface,
            link,
            length: frame.length.saturating_sub(before as u32),
            end: self.batch.bytes.len(),
        });
    }
}

/// Where the packet in a frame begins, and with what; none where nothing is known of the link.
pub(crate) fn link_and_bytes<'a>(frame: &Frame<'a>) -> Option<(Link, &'a [u8])> {
    if frame.link == LinkType::ETHERNET {
        return Some((Link::Ethernet, frame.bytes));
    }
    let before = frame.link.before_ip()?;
    Some((Link::Ip, frame.bytes.get(before..).unwrap_or_default()))
}

fn medium(link: Link) -> Medium {
    match link {
        Link::Ethernet => Medium::Ethernet,
        Link::Ip => Medium::Ip,
    }
}

/// Masks batches.
pub(super) struct Worker<'a> {
    job: &'a Job,
    units: Units<'a>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(job: &'a Job) -> Self {
        Self { job, units: Units::new(job) }
    }

    /// Writes the batch's blocks.
    pub(super) fn mask(&mut self, batch: &mut Batch) {
        batch.result.reserve(batch.bytes.len() + 40 * batch.frames.len());
        for medium in &batch.interfaces {
            pcapng::interface(&mut batch.result, None, *medium, SNAP);
        }
        let unit = self.units.of(batch.period);
        let mut comment = batch
            .begins
            .then(|| format!("from here on key {}", key::id(&self.job.key_of(batch.period))));
        let mut begin = 0;
        for (number, entry) in (batch.first..).zip(&batch.frames) {
            let bytes = &batch.bytes[begin..entry.end];
            begin = entry.end;
            let record = Record {
                interface: entry.interface,
                time: entry.time,
                direction: None,
                medium: medium(entry.link),
                length: entry.length,
                bytes: &[],
                comment: comment.as_deref(),
            };
            let written = pcapng::packet_in_place(&mut batch.result, record, |out| {
                unit.append(entry.link, bytes, number, out);
            });
            batch.bytes_out += written as u64;
            comment = None;
        }
    }
}
