//! Any bytes as frames of psock: nothing panics, a frame is never longer than allowed, and what is read is
//! written as the same bytes again.

use psock::core::frame::{Frame, MAX_FRAME};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let mut rest = data;
    loop {
        match Frame::parse(rest) {
            Ok(Some((frame, length))) => {
                assert!(length <= MAX_FRAME);
                let (bytes, later) = rest.split_at(length);
                if !matches!(frame, Frame::Skipped(_)) {
                    let mut written = Vec::new();
                    frame.emit(&mut written);
                    assert_eq!(written, bytes);
                }
                if let Frame::Join(join) = frame {
                    assert!(join.signed(&[0; 32]).len() < 100);
                }
                rest = later;
            }
            Ok(None) => {
                assert!(rest.len() < MAX_FRAME);
                break;
            }
            Err(error) => {
                assert!(error.offset <= rest.len());
                break;
            }
        }
    }
}
