//! Files that are read once from front to back, plain or packed, in bounded memory.

use super::report::Context;
use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::rc::Rc;

/// Bytes of a file that are inspected to detect its format.
pub(super) const HEAD: u64 = 32 << 10;
const BUFFER: usize = 1 << 16;

/// A file's bytes, unpacked.
pub(super) struct Input<'r> {
    /// The first bytes, which are read again.
    pub(super) head: Vec<u8>,
    rest: Box<dyn Read + 'r>,
}

impl<'r> Input<'r> {
    /// Reads the head. `progress` gets how many bytes of the file were read since it was called
    /// last.
    pub(super) fn new(reader: impl Read + 'r, progress: impl FnMut(u64) + 'r) -> io::Result<Self> {
        let mut plain = BufReader::with_capacity(BUFFER, Counted { inner: reader, progress });
        let magic = plain.fill_buf()?;
        let mut rest: Box<dyn Read + 'r> = if magic.starts_with(&[0x1f, 0x8b]) {
            Box::new(MultiGzDecoder::new(plain))
        } else if magic.starts_with(b"BZh") {
            Box::new(MultiBzDecoder::new(plain))
        } else {
            Box::new(plain)
        };
        let mut head = Vec::new();
        match rest.by_ref().take(HEAD).read_to_end(&mut head) {
            Err(error) if head.is_empty() => return Err(error),
            // What came before is good; the error comes again behind it.
            Err(error) => rest = Box::new(Broken(Some(error))),
            Ok(_) => {}
        }
        Ok(Self { head, rest })
    }

    /// All bytes.
    pub(super) fn reader(self) -> impl BufRead + 'r {
        BufReader::with_capacity(BUFFER, Cursor::new(self.head).chain(self.rest))
    }

    /// All bytes if they are at most that many.
    pub(super) fn whole(self, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader().take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(io::Error::other(format!("it is larger than {} MiB", most >> 20)));
        }
        Ok(bytes)
    }
}

/// Nothing but an error.
struct Broken(Option<io::Error>);

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

struct Counted<R, P> {
    inner: R,
    progress: P,
}

impl<R: Read, P: FnMut(u64)> Read for Counted<R, P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        (self.progress)(read as u64);
        Ok(read)
    }
}

/// The lines of a file.
pub(super) struct Lines<R> {
    reader: R,
    most: u64,
    number: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// Lines of at most that many bytes.
    pub(super) fn new(reader: R, most: u64) -> Self {
        Self { reader, most, number: 0, buffer: Vec::new() }
    }

    /// The next line, without what ends it, and its number from 1. Those that are too long or no text
    /// are counted as bad and skipped.
    pub(super) fn next(&mut self, context: &mut Context<'_>) -> io::Result<Option<(u64, &str)>> {
        loop {
            self.buffer.clear();
            let got = self.reader.by_ref().take(self.most).read_until(b'\n', &mut self.buffer)?;
            if got == 0 {
                return Ok(None);
            }
            self.number += 1;
            context.line();
            if got as u64 == self.most && self.buffer.last() != Some(&b'\n') {
                let text = String::from_utf8_lossy(self.buffer.get(..80).unwrap_or_default());
                context.bad(self.number, "the line is too long", &text);
                self.reader.skip_until(b'\n')?;
                continue;
            }
            if let Err(error) = std::str::from_utf8(&self.buffer) {
                let text = self.buffer.get(..error.valid_up_to()).unwrap_or_default();
                let text = String::from_utf8_lossy(text).into_owned();
                context.bad(self.number, "the line is not UTF-8 text", &text);
                continue;
            }
            break;
        }
        let text = std::str::from_utf8(&self.buffer).unwrap_or_default();
        Ok(Some((self.number, text.trim_end_matches(['\n', '\r']))))
    }
}

/// Fails when more is read than allowed before somebody allows it again.
pub(super) struct Rationed<R> {
    inner: R,
    left: Rc<Cell<u64>>,
}

impl<R> Rationed<R> {
    /// The reader, and how many bytes it may still read.
    pub(super) fn new(inner: R, ration: u64) -> (Self, Rc<Cell<u64>>) {
        let left = Rc::new(Cell::new(ration));
        (Self { inner, left: Rc::clone(&left) }, left)
    }
}

impl<R: Read> Read for Rationed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)? as u64;
        let left = self.left.get().checked_sub(read);
        self.left.set(left.ok_or_else(|| io::Error::other("one value in it is too long"))?);
        Ok(read as usize)
    }
}
