//! Any bytes on a connection of a throughput test: the preamble, then lines, however they are cut. What
//! is read is the same when it is written and read again, and never more than a line is kept.

use probe::tools::throughput::{
    Token,
    control::{LONGEST_LINE, Lines, Message, PREAMBLE, role},
};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    if let Some(preamble) = data.first_chunk::<PREAMBLE>() {
        role(preamble, &Token::from([7; Token::BYTES]));
    }
    let mut lines = Lines::default();
    // The first byte says how the others are cut.
    let Some((size, mut rest)) = data.split_first() else { return };
    while !rest.is_empty() {
        let size = (usize::from(*size) + 1).min(lines.room()).min(rest.len());
        assert!(size <= LONGEST_LINE);
        let (now, later) = rest.split_at(size);
        lines.push(now);
        rest = later;
        loop {
            match lines.take() {
                Ok(Some(message)) => {
                    let line = message.line();
                    assert_eq!(Message::parse(line.trim_ascii_end()), Ok(message));
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
        assert!(lines.room() > 0);
    }
}
