//! Any bytes on a connection of a throughput test: the preamble, then lines, however they are cut. What
//! is read is the same when it is written and read again, whatever the cuts, and never more than a line is kept.

use probe::tools::throughput::{
    Token,
    control::{ControlError, LONGEST_LINE, Lines, Message, PREAMBLE, role},
};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    if let Some(preamble) = data.first_chunk::<PREAMBLE>() {
        role(preamble, &Token::from([7; Token::BYTES]));
    }
    // The first byte says how the others are cut.
    let Some((&size, bytes)) = data.split_first() else { return };
    assert_eq!(read(bytes, usize::from(size) + 1), read(bytes, LONGEST_LINE));
}

/// All messages, and the error that ended them.
fn read(mut bytes: &[u8], size: usize) -> (Vec<Message>, Option<ControlError>) {
    let (mut lines, mut messages) = (Lines::default(), Vec::new());
    while !bytes.is_empty() {
        let size = size.min(lines.room()).min(bytes.len());
        assert!((1..=LONGEST_LINE).contains(&size));
        let (now, later) = bytes.split_at(size);
        lines.push(now);
        bytes = later;
        loop {
            match lines.take() {
                Ok(Some(message)) => {
                    let line = message.line();
                    assert_eq!(Message::parse(line.trim_ascii_end()), Ok(message.clone()));
                    messages.push(message);
                }
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    (messages, None)
}
