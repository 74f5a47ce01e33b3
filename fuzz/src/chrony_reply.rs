//! Any bytes as chronyd's answers to all three questions.

use probe::clock::chrony::packet::{AnswerError, Source, Tracking};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    // So that it answers the question wherever it is long enough.
    let sequence =
        data.get(16..20).map_or(0, |bytes| u32::from_be_bytes(bytes.try_into().unwrap()));
    let tracking = Tracking::parse(data, sequence);
    let (count, source) = (Source::parse_count(data, sequence), Source::parse(data, sequence));
    // They are distinguished by the command's number.
    let read = [tracking.is_ok(), count.is_ok(), source.is_ok()];
    assert!(read.iter().filter(|read| **read).count() <= 1);
    for error in [tracking.err(), count.err(), source.err()].into_iter().flatten() {
        if let AnswerError::Short { length, needed } = error {
            assert!(length == data.len() && needed > length);
        }
        assert!(!error.to_string().is_empty());
    }
}
