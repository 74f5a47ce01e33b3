//! Server-sent events: the bytes of an event, in pieces.
//!
//! A map can have many megabytes, so an event is never put together whole: it is cut while it is sent. A line
//! of data ends after a comma between two values once it is long enough; a line break there means nothing in
//! JSON, and nowhere else is one put (RFC 8895 sections 9.5 and 11).

use axum::body::Bytes;

/// A line of data is ended at the next comma when it is this long, in bytes.
const LINE: usize = 4096;
/// Bytes of a piece, about.
const PIECE: usize = 64 << 10;

/// A comment that keeps the connection open (section 6.8).
pub const KEEP_ALIVE: Bytes = Bytes::from_static(b":\n\n");

/// One event (section 5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Media type, and the data-id behind a comma.
    pub name: String,
    /// JSON without line breaks.
    pub data: Bytes,
}

/// An event that is being cut into pieces.
#[derive(Debug)]
pub struct Pieces {
    event: Event,
    /// First byte of the data that has not been sent.
    at: usize,
    begun: bool,
    scan: Scan,
}

/// What the bytes before the current one mean for it.
#[derive(Debug, Default)]
struct Scan {
    in_string: bool,
    escaped: bool,
}

impl Scan {
    /// Takes the next byte; whether a line may end after it.
    fn may_break(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_string => self.escaped = true,
            b'"' => self.in_string = !self.in_string,
            b',' if !self.in_string => return true,
            _ => {}
        }
        false
    }
}

impl Pieces {
    /// Begins an event.
    pub fn new(event: Event) -> Pieces {
        Pieces { event, at: 0, begun: false, scan: Scan::default() }
    }
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let data = self.event.data.clone();
        if self.begun && self.at >= data.len() {
            return None;
        }
        let mut piece = Vec::with_capacity(PIECE.min(data.len()) + LINE);
        if !self.begun {
            self.begun = true;
            piece.extend_from_slice(format!("event: {}\n", self.event.name).as_bytes());
        }
        while self.at < data.len() && piece.len() < PIECE {
            let rest = data.get(self.at..).unwrap_or_default();
            let line = rest.get(..self.line(rest)).unwrap_or(rest);
            piece.extend_from_slice(b"data: ");
            piece.extend_from_slice(line);
            piece.push(b'\n');
            self.at += line.len();
        }
        if self.at >= data.len() {
            piece.push(b'\n');
        }
        Some(piece.into())
    }
}

impl Pieces {
    /// Length of the next line of data.
    fn line(&mut self, rest: &[u8]) -> usize {
        for (index, &byte) in rest.iter().enumerate() {
            if self.scan.may_break(byte) && index + 1 >= LINE {
                return index + 1;
            }
        }
        rest.len()
    }
}
