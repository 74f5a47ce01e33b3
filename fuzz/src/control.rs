//! Any bytes on a connection of the control socket, however they are cut: each line is a request of one of the jobs
//! that reads back as it was written, or an error that can be shown on one line, and has one answer.

use crate::conversation;
use ::control::{Answer, Reply, converse, parse};
use nigh::control::Request;
use serde_json::json;

/// What is read of a line.
async fn reply(line: Vec<u8>) -> Result<Reply, String> {
    let request: Request = parse(&line)?;
    let line = serde_json::to_string(&request).expect("a request is JSON");
    assert!(!line.contains('\n'));
    let read: Request = serde_json::from_str(&line).expect("what is written is read");
    // Not the value: the last digit of a number may differ once.
    let again = serde_json::to_string(&read).expect("a request is JSON");
    let last: Request = serde_json::from_str(&again).expect("what is written is read");
    assert_eq!(std::mem::discriminant(&request), std::mem::discriminant(&last));
    Ok(Reply::Value(json!(line)))
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let answers = conversation(data, usize::MAX, |stream| converse(stream, reply));
    assert_eq!(conversation(data, 7, |stream| converse(stream, reply)), answers);
    let requests = data.split_inclusive(|byte| *byte == b'\n').count();
    let answers = answers.split_inclusive(|byte| *byte == b'\n');
    // After a line that is too long there is no answer.
    assert!(answers.clone().count() == requests || data.len() > 64 << 10);
    for answer in answers {
        serde_json::from_slice::<Answer>(answer).expect("an answer on one line");
    }
}
