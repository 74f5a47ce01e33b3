//! Lines as text: times, and characters that a terminal would obey.

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::{io, time::SystemTime};

/// `2026-11-22T18:27:00.123456+0000`, as Suricata writes times; here always of UTC.
pub(super) fn timestamp(at: SystemTime) -> String {
    let mut text = humantime::format_rfc3339_micros(at).to_string();
    if text.ends_with('Z') {
        text.pop();
    }
    text + "+0000"
}

/// Appends a value as one line.
pub(super) fn emit<T: Serialize>(value: &T, out: &mut Vec<u8>) -> io::Result<()> {
    let start = out.len();
    if let Err(error) = value.serialize(&mut Serializer::with_formatter(&mut *out, Quiet)) {
        out.truncate(start);
        return Err(error.into());
    }
    out.push(b'\n');
    Ok(())
}

/// JSON in which no character is left that ends a line, drives a terminal or turns text round.
#[derive(Debug)]
struct Quiet;

impl Formatter for Quiet {
    fn write_string_fragment<W>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + io::Write,
    {
        let mut rest = fragment;
        while let Some((at, found)) = rest.char_indices().find(|&(_, c)| is_loud(c)) {
            let (before, after) = rest.split_at(at);
            write!(writer, "{before}\\u{:04x}", u32::from(found))?;
            rest = after.get(found.len_utf8()..).unwrap_or_default();
        }
        writer.write_all(rest.as_bytes())
    }
}

/// Control characters beyond those that JSON escapes anyway, ends of lines and of paragraphs, marks
/// of the direction of writing; all of them are one unit of UTF-16.
fn is_loud(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn times_are_written_as_suricata_does() {
        let at = UNIX_EPOCH + Duration::new(1_491_600_277, 251_547_000);
        assert_eq!(timestamp(at), "2017-04-07T21:24:37.251547+0000");
    }

    #[test]
    fn what_drives_terminals_is_escaped_and_reads_back() {
        let text = "a\u{9b}31m\u{202e}b\u{2028}\u{7f}\nc\u{e9}\u{1f600}\u{1b}";
        let mut out = Vec::new();
        emit(&text, &mut out).unwrap();
        let line = String::from_utf8(out).unwrap();
        assert!(!line.trim_end().chars().any(|c| c.is_control() || is_loud(c)), "{line}");
        assert!(line.contains("c\u{e9}\u{1f600}"));
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }
}
