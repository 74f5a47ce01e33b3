//! Lines of words.

use super::super::About;
use crate::value::RouterId;
use std::{
    io::{self, BufRead, Read},
    str::FromStr,
};

/// Longest line, in bytes.
const LINE: u64 = 4_096;

/// One line that is neither empty nor a comment.
#[derive(Debug)]
pub(super) struct Line {
    /// From 1.
    pub(super) number: usize,
    /// Not empty.
    text: String,
}

impl Line {
    /// The first word.
    pub(super) fn keyword(&self) -> &str {
        self.text.split_whitespace().next().unwrap_or_default()
    }
}

/// The lines of a file, without empty ones and comments.
pub(super) struct Lines<R> {
    reader: R,
    number: usize,
    read: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, number: 0, read: 0, buffer: Vec::new() }
    }

    /// Bytes so far.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// The next one. A line that is too long or not text is an error that is noticed, and skipped.
    pub(super) fn next(&mut self, about: &mut About<'_>) -> io::Result<Option<Line>> {
        loop {
            self.buffer.clear();
            self.number += 1;
            let got = self.reader.by_ref().take(LINE).read_until(b'\n', &mut self.buffer)?;
            if got == 0 {
                return Ok(None);
            }
            self.read += got as u64;
            if got as u64 == LINE && self.buffer.last() != Some(&b'\n') {
                about.error(self.number, "", format!("the line is longer than {LINE} bytes"));
                self.read += self.reader.skip_until(b'\n')? as u64;
                continue;
            }
            let Ok(text) = std::str::from_utf8(&self.buffer) else {
                about.error(self.number, "", "the line is not UTF-8 text");
                continue;
            };
            let text = text.trim();
            if !text.is_empty() && !text.starts_with('#') {
                return Ok(Some(Line { number: self.number, text: text.to_owned() }));
            }
        }
    }
}

/// The words after the keyword: as many as have a name here.
pub(super) fn words<'l, const N: usize>(
    line: &'l Line,
    names: [&str; N],
) -> Result<[&'l str; N], String> {
    let words: Vec<_> = line.text.split_whitespace().skip(1).take(N + 1).collect();
    words.try_into().map_err(|_| {
        format!("needs {N} {}: {}", if N == 1 { "word" } else { "words" }, names.join(" "))
    })
}

/// A number of the kind that is wanted.
pub(super) fn number<T: FromStr>(text: &str, name: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{name} `{text}` is not a number in its range"))
}

/// A router's address.
pub(super) fn router(text: &str, name: &str) -> Result<RouterId, String> {
    text.parse().map_err(|_| format!("{name} `{text}` is not an address"))
}
