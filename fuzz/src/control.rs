//! Any bytes as a line on the control socket: a request of one of the jobs that reads back as it was
//! written, or an error that can be shown on one line.

use nigh::control::{Answer, Request};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    match serde_json::from_slice::<Request>(data) {
        Ok(request) => {
            let line = serde_json::to_string(&request).expect("a request is JSON");
            assert!(!line.contains('\n'));
            let read: Request = serde_json::from_str(&line).expect("what is written is read");
            // Not the value: the last digit of a number may differ once.
            let again = serde_json::to_string(&read).expect("a request is JSON");
            let last: Request = serde_json::from_str(&again).expect("what is written is read");
            assert_eq!(std::mem::discriminant(&request), std::mem::discriminant(&last));
        }
        Err(error) => {
            let answer = Answer::Error(error.to_string());
            let line = serde_json::to_string(&answer).expect("an answer is JSON");
            assert!(!line.contains('\n'));
        }
    }
}
