//! Any bytes as what a connection of psock brings, cut anywhere: a frame is never longer than allowed, what is read is
//! written as the same bytes again, and pieces make no difference.

use psock::core::frame::{Frame, FrameError, MAX_FRAME};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    assert_eq!(read(data, 1), read(data, usize::MAX));
    check(data);
}

/// All frames as they are written, and the error that ended them, if bytes come so many at a time.
fn read(data: &[u8], size: usize) -> (Vec<u8>, Option<FrameError>) {
    let (mut held, mut all) = (Vec::new(), Vec::new());
    for piece in data.chunks(size.min(data.len()).max(1)) {
        held.extend_from_slice(piece);
        loop {
            let used = match Frame::parse(&held) {
                Ok(Some((frame, used))) => {
                    frame.emit(&mut all);
                    used
                }
                Ok(None) => break,
                Err(error) => return (all, Some(error)),
            };
            held.drain(..used);
        }
        assert!(held.len() < MAX_FRAME);
    }
    (all, None)
}

fn check(data: &[u8]) {
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
