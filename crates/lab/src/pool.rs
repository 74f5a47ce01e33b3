//! Buffers of frames: taken once, filled by a read, given back after the write, never copied between.
//!
//! A frame is a head of 2,048 bytes and, only if it is longer, a spill of 64 KB. All heads are one
//! block of memory and all spills another, so a frame is three numbers and a frame that waits costs
//! its head only. The slots that were given back last are taken first: their bytes are in the cache.
//!
//! ```text
//! 0                  12          26
//! virtio_net_hdr_v1 | Ethernet | IP packet ...        the head's 2,048 bytes, then the spill's
//! ```
//!
//! The virtio header is all zero where the port has none.

use std::io::{IoSlice, IoSliceMut};

/// Bytes of the virtio header (`virtio_net_hdr_v1`) that every frame begins with.
pub const VIRTIO: usize = 12;
/// Bytes of the Ethernet header.
pub const ETHERNET: usize = wire::ethernet::HEADER;
/// Where the IP packet begins.
pub const IP: usize = VIRTIO + ETHERNET;
/// Bytes of a head.
pub const HEAD: usize = 2048;
/// Bytes of a spill: with the head enough for a super-packet of 64 KB.
pub const SPILL: usize = 65_536;

/// A frame in a [`Pool`]. It must go back to its pool, or its slots are lost to it.
#[derive(Debug)]
#[must_use = "give the frame back to its pool"]
pub struct Frame {
    head: u32,
    spill: Option<u32>,
    length: u32,
    is_cut: bool,
}

impl Frame {
    /// All bytes: virtio header, Ethernet header and packet.
    pub fn length(&self) -> usize {
        self.length as usize
    }

    /// Whether it was longer than the buffers that it was read into.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Bytes after the Ethernet header.
    pub fn packet_length(&self) -> usize {
        self.length().saturating_sub(IP)
    }
}

/// A fixed number of frames.
#[derive(Debug)]
pub struct Pool {
    heads: Vec<u8>,
    spills: Vec<u8>,
    /// Where a frame goes on that has no spill: if it reaches this, it is cut.
    beyond: [u8; 1],
    free_heads: Vec<u32>,
    free_spills: Vec<u32>,
}

impl Pool {
    /// Room for `frames` frames, of which `spills` may be longer than [`HEAD`] bytes at a time. The
    /// memory is taken from the system as it is touched.
    pub fn new(frames: usize, spills: usize) -> Self {
        let numbers = |count: usize| (0..u32::try_from(count).unwrap_or(u32::MAX)).rev().collect();
        Self {
            heads: vec![0; frames * HEAD],
            spills: vec![0; spills * SPILL],
            beyond: [0],
            free_heads: numbers(frames),
            free_spills: numbers(spills),
        }
    }

    /// A frame of no bytes, whose head may still hold an earlier frame's.
    pub fn take(&mut self) -> Option<Frame> {
        self.free_heads.pop().map(|head| Frame { head, spill: None, length: 0, is_cut: false })
    }

    /// A frame of this many bytes, with a spill if it needs one.
    pub fn take_long(&mut self, length: usize) -> Option<Frame> {
        let long = length > HEAD;
        if length > HEAD + SPILL || long && self.free_spills.is_empty() {
            return None;
        }
        let mut frame = self.take()?;
        if long {
            frame.spill = self.free_spills.pop();
        }
        frame.length = length as u32;
        Some(frame)
    }

    /// Gives a frame's slots back.
    pub fn give_back(&mut self, frame: Frame) {
        self.free_heads.push(frame.head);
        self.free_spills.extend(frame.spill);
    }

    /// Frames that can be taken.
    pub fn free(&self) -> usize {
        self.free_heads.len()
    }

    /// Spills that can be taken.
    pub fn free_spills(&self) -> usize {
        self.free_spills.len()
    }

    /// Where to read a frame into: its head, and a spill as long as there is one to have, else one byte
    /// that shows whether more came. Set with [`Pool::filled`] how many bytes came.
    pub fn buffers(&mut self, frame: &mut Frame) -> [IoSliceMut<'_>; 2] {
        if frame.spill.is_none() {
            frame.spill = self.free_spills.pop();
        }
        let spill = match frame.spill {
            Some(spill) => slot_mut(&mut self.spills, spill, SPILL),
            None => &mut self.beyond,
        };
        [IoSliceMut::new(slot_mut(&mut self.heads, frame.head, HEAD)), IoSliceMut::new(spill)]
    }

    /// Sets a frame's length after a read into its [buffers](Pool::buffers) and gives the spill back
    /// if the frame did not need it. A length beyond the buffers is cut to them, and the frame
    /// [says so](Frame::is_cut).
    pub fn filled(&mut self, frame: &mut Frame, length: usize) {
        let room = HEAD + if frame.spill.is_some() { SPILL } else { 0 };
        self.cut(frame, length.min(room));
        frame.length = length.min(room) as u32;
        frame.is_cut = length > room;
    }

    /// Cuts a frame to at most this many bytes.
    pub fn cut(&mut self, frame: &mut Frame, length: usize) {
        frame.length = frame.length.min(length as u32);
        if length <= HEAD {
            self.free_spills.extend(frame.spill.take());
        }
    }

    /// A frame's bytes, in two pieces.
    pub fn slices(&self, frame: &Frame) -> [IoSlice<'_>; 2] {
        let [head, rest] = self.pieces(frame);
        [IoSlice::new(head), IoSlice::new(rest)]
    }

    /// A frame's bytes, in two pieces: what is in the head, and what is in the spill.
    pub fn pieces(&self, frame: &Frame) -> [&[u8]; 2] {
        let in_head = frame.length().min(HEAD);
        let rest = match frame.spill {
            Some(spill) => &slot(&self.spills, spill, SPILL)[..frame.length() - in_head],
            None => &[],
        };
        [&slot(&self.heads, frame.head, HEAD)[..in_head], rest]
    }

    /// As [`Pool::pieces`], to change them.
    pub fn pieces_mut(&mut self, frame: &Frame) -> [&mut [u8]; 2] {
        let in_head = frame.length().min(HEAD);
        let rest = match frame.spill {
            Some(spill) => {
                &mut slot_mut(&mut self.spills, spill, SPILL)[..frame.length() - in_head]
            }
            None => &mut [],
        };
        [&mut slot_mut(&mut self.heads, frame.head, HEAD)[..in_head], rest]
    }

    /// The bytes of a frame that are in its head.
    pub fn head(&self, frame: &Frame) -> &[u8] {
        &slot(&self.heads, frame.head, HEAD)[..frame.length().min(HEAD)]
    }

    /// As [`Pool::head`], to change them.
    pub fn head_mut(&mut self, frame: &Frame) -> &mut [u8] {
        &mut slot_mut(&mut self.heads, frame.head, HEAD)[..frame.length().min(HEAD)]
    }

    /// All room of a frame, in two pieces, however long the frame is.
    pub(crate) fn slots_mut(&mut self, frame: &Frame) -> [&mut [u8]; 2] {
        let spill = match frame.spill {
            Some(spill) => slot_mut(&mut self.spills, spill, SPILL),
            None => &mut [],
        };
        [slot_mut(&mut self.heads, frame.head, HEAD), spill]
    }

    /// Sets a frame's length, up to the room that it has.
    pub(crate) fn resize(&mut self, frame: &mut Frame, length: usize) {
        let room = HEAD + if frame.spill.is_some() { SPILL } else { 0 };
        frame.length = length.min(room) as u32;
        self.cut(frame, length);
    }

    /// The bytes of one frame, and all room of another, each in two pieces.
    pub(crate) fn both(&mut self, from: &Frame, to: &Frame) -> ([&[u8]; 2], [&mut [u8]; 2]) {
        let in_head = from.length().min(HEAD);
        let (head, room) = two(&mut self.heads, Some(from.head), Some(to.head), HEAD);
        let (rest, more_room) = two(&mut self.spills, from.spill, to.spill, SPILL);
        let rest = rest.get(..from.length() - in_head).unwrap_or_default();
        ([&head[..in_head], rest], [room, more_room])
    }

    /// Copies bytes from an offset of one frame to an offset of another, as far as both have room.
    pub(crate) fn copy(
        &mut self,
        from: &Frame,
        mut at: usize,
        to: &Frame,
        mut to_at: usize,
        mut length: usize,
    ) {
        let (from, to) = self.both(from, to);
        let [to_head, to_rest] = to;
        while length > 0 {
            let source = from[0].get(at..).filter(|bytes| !bytes.is_empty());
            let source = source.or_else(|| from[1].get(at.checked_sub(HEAD)?..));
            let room = match to_at < HEAD {
                true => to_head.get_mut(to_at..),
                false => to_rest.get_mut(to_at - HEAD..),
            };
            let (Some(source), Some(room)) = (source, room) else { return };
            let bytes = length.min(source.len()).min(room.len());
            if bytes == 0 {
                return;
            }
            room[..bytes].copy_from_slice(&source[..bytes]);
            (at, to_at, length) = (at + bytes, to_at + bytes, length - bytes);
        }
    }
}

/// Two different slots of a block.
fn two(block: &mut [u8], one: Option<u32>, other: Option<u32>, size: usize) -> (&[u8], &mut [u8]) {
    let range = |number: Option<u32>| match number {
        Some(number) => number as usize * size..(number as usize + 1) * size,
        None => 0..0,
    };
    match block.get_disjoint_mut([range(one), range(other)]) {
        Ok([one, other]) => (one, other),
        Err(_) => (&[], &mut []),
    }
}

/// Slot `number` of a block.
fn slot(block: &[u8], number: u32, size: usize) -> &[u8] {
    &block[number as usize * size..][..size]
}

/// As [`slot`], to change it.
fn slot_mut(block: &mut [u8], number: u32, size: usize) -> &mut [u8] {
    &mut block[number as usize * size..][..size]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lengths at which a frame begins to need its spill, and the end of the buffers.
    #[test]
    fn a_spill_is_kept_only_by_a_frame_that_needs_it() {
        let mut pool = Pool::new(2, 1);
        for (read, length, spills) in
            [(0, 0, 1), (60, 60, 1), (2048, 2048, 1), (2049, 2049, 0), (1 << 20, 2048 + 65_536, 0)]
        {
            let mut frame = pool.take().expect("a frame");
            assert_eq!(pool.buffers(&mut frame).map(|piece| piece.len()), [2048, 65_536]);
            pool.filled(&mut frame, read);
            assert_eq!((frame.length(), pool.free_spills()), (length, spills), "{read} bytes");
            assert_eq!(pool.slices(&frame).iter().map(|piece| piece.len()).sum::<usize>(), length);
            pool.give_back(frame);
            assert_eq!((pool.free(), pool.free_spills()), (2, 1));
        }
    }

    #[test]
    fn without_a_spill_a_frame_is_its_head() {
        let mut pool = Pool::new(1, 0);
        let mut frame = pool.take().expect("a frame");
        // A read of what does not fit fills the buffers.
        assert_eq!(pool.buffers(&mut frame).map(|piece| piece.len()), [2048, 1]);
        for (read, length, is_cut) in [(2049, 2048, true), (2048, 2048, false), (9, 9, false)] {
            pool.filled(&mut frame, read);
            assert_eq!((frame.length(), frame.is_cut()), (length, is_cut), "{read} bytes");
        }
        assert!(pool.take().is_none());
        pool.give_back(frame);
        assert!(pool.take_long(2049).is_none());
        assert_eq!(pool.free(), 1);
    }

    /// Ranges within the head, across its end and behind it, in both directions.
    #[test]
    fn copies_are_those_of_one_run_of_bytes() {
        let mut pool = Pool::new(2, 2);
        let from = pool.take_long(6000).expect("a frame");
        let to = pool.take_long(6000).expect("a frame");
        let bytes: Vec<u8> = (0..6000).map(|at| (at % 251) as u8).collect();
        for (at, to_at, length) in
            [(0, 0, 60), (0, 0, 6000), (2000, 100, 100), (100, 2000, 100), (2048, 2040, 3000)]
        {
            let mut rest = &bytes[..];
            for piece in pool.pieces_mut(&from) {
                let (now, later) = rest.split_at(piece.len());
                piece.copy_from_slice(now);
                rest = later;
            }
            pool.pieces_mut(&to).into_iter().for_each(|piece| piece.fill(255));
            pool.copy(&from, at, &to, to_at, length);
            let mut right = vec![255; 6000];
            right[to_at..to_at + length].copy_from_slice(&bytes[at..at + length]);
            assert!(pool.pieces(&to).concat() == right, "{length} bytes from {at} to {to_at}");
        }
        pool.give_back(from);
        pool.give_back(to);
    }

    #[test]
    fn bytes_stay_where_they_were_written() {
        let mut pool = Pool::new(3, 2);
        let frames: Vec<_> = [100, 3000, 60_000]
            .into_iter()
            .map(|length| {
                let frame = pool.take_long(length).expect("a frame");
                pool.pieces_mut(&frame).into_iter().for_each(|piece| piece.fill(length as u8));
                frame
            })
            .collect();
        for frame in frames {
            let value = frame.length() as u8;
            assert!(pool.pieces(&frame).concat().iter().all(|&byte| byte == value));
            pool.give_back(frame);
        }
    }
}
