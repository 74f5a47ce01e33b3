//! Frames: a length of four bytes, little-endian, then items or answers one after the other, as postcard
//! writes them. A request is one frame. A reply is any number of frames, and an empty one as its end.

use super::Parser;
use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// Longest frame. The longest single answer has a torrent's 16 MiB of metadata, in which each byte may have
/// become three.
pub const MAX: usize = 64 << 20;
/// Bytes of answers for which a frame is written.
const FULL: usize = 1 << 16;
/// Most parts of all answers to a request.
const MAX_PARTS: usize = 1 << 22;
/// Bytes of the length.
const HEAD: usize = 4;

/// What came is no frame, or not what a frame may contain.
#[derive(Debug, thiserror::Error)]
#[error("what came from the parser makes no sense")]
pub struct Garbage;

/// A frame that is being written.
#[derive(Debug)]
pub struct Frame {
    bytes: Vec<u8>,
    items: usize,
}

/// Where postcard writes to.
struct Bytes<'a>(&'a mut Vec<u8>);

impl Flavor for Bytes<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

impl Default for Frame {
    fn default() -> Self {
        Self { bytes: vec![0; HEAD], items: 0 }
    }
}

impl Frame {
    /// Adds an item or an answer.
    pub fn push(&mut self, item: &impl Serialize) {
        // Nothing that is written here fails to be: a Vec grows.
        let _ = postcard::serialize_with_flavor(item, Bytes(&mut self.bytes));
        self.items += 1;
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// How many items or answers are in it.
    pub fn items(&self) -> usize {
        self.items
    }

    /// Bytes without the length.
    pub fn body(&self) -> &[u8] {
        self.bytes.get(HEAD..).unwrap_or_default()
    }

    /// All bytes, to be sent.
    pub fn bytes(&mut self) -> &[u8] {
        let length = u32::try_from(self.bytes.len() - HEAD).unwrap_or(u32::MAX);
        self.bytes[..HEAD].copy_from_slice(&length.to_le_bytes());
        &self.bytes
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEAD);
        self.items = 0;
    }
}

/// Reads the length of a frame.
///
/// # Errors
/// When it is too long.
pub fn length(head: [u8; HEAD]) -> Result<usize, Garbage> {
    usize::try_from(u32::from_le_bytes(head)).ok().filter(|length| *length <= MAX).ok_or(Garbage)
}

/// Reads the items or answers of a frame's body.
///
/// # Errors
/// When one is not whole, or `each` refuses one.
pub fn read<'a, T: Deserialize<'a>>(
    mut body: &'a [u8],
    mut each: impl FnMut(T) -> Result<(), Garbage>,
) -> Result<(), Garbage> {
    while !body.is_empty() {
        let (item, rest) = postcard::take_from_bytes(body).map_err(|_| Garbage)?;
        // Each takes at least a byte, so that an answer of few bytes is never many.
        if rest.len() == body.len() {
            return Err(Garbage);
        }
        body = rest;
        each(item)?;
    }
    Ok(())
}

/// The answers to a request, from a parser that may have been taken over: they take no more memory than
/// honest ones can.
#[derive(Debug)]
pub struct Answers<P: Parser> {
    all: Vec<P::Answer>,
    most: usize,
    parts: usize,
}

impl<P: Parser> Answers<P> {
    /// None yet, to so many items.
    pub fn new(items: usize) -> Self {
        Self { all: Vec::with_capacity(items), most: items, parts: MAX_PARTS }
    }

    /// Adds those of a frame.
    ///
    /// # Errors
    /// When one is not whole or not sound, or there are too many.
    pub fn add(&mut self, body: &[u8]) -> Result<(), Garbage> {
        let Self { all, most, parts } = self;
        read(body, |answer: P::Answer| {
            *parts = parts.checked_sub(P::parts(&answer)).ok_or(Garbage)?;
            if all.len() >= *most || !P::is_sound(&answer) {
                return Err(Garbage);
            }
            all.push(answer);
            Ok(())
        })
    }

    /// All of them, in their order.
    pub fn all(self) -> Vec<P::Answer> {
        self.all
    }
}

/// Answers a request: reads its items and writes the reply.
///
/// # Errors
/// When the request makes no sense, or the reply cannot be written.
pub fn serve<P: Parser>(parser: &mut P, request: &[u8], out: &mut impl Write) -> io::Result<()> {
    let mut frame = Frame::default();
    let (mut answers, mut written) = (Vec::new(), Ok(()));
    let read = read(request, |item: P::Item<'_>| {
        parser.take(item, &mut answers);
        for answer in answers.drain(..) {
            frame.push(&answer);
            if frame.body().len() >= FULL {
                written = out.write_all(frame.bytes());
                frame.clear();
                written.as_ref().map_err(|_| Garbage)?;
            }
        }
        Ok(())
    });
    written?;
    read.map_err(io::Error::other)?;
    if !frame.is_empty() {
        out.write_all(frame.bytes())?;
        frame.clear();
    }
    out.write_all(frame.bytes())?;
    out.flush()
}

/// Reads a frame's body; none at the end of input.
///
/// # Errors
/// When the input fails, or what comes is no frame.
pub fn receive(input: &mut impl Read, body: &mut Vec<u8>) -> io::Result<Option<()>> {
    let mut head = [0; HEAD];
    match input.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    body.resize(length(head).map_err(io::Error::other)?, 0);
    input.read_exact(body)?;
    Ok(Some(()))
}
