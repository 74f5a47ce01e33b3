//! Any bytes from BIRD's control socket: read whole and in chunks of the first byte's size, with the same
//! result.

use bgp::bird::reply::{Parser, Reply, ReplyError};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Some((&size, bytes)) = data.split_first() else { return };
    let whole = read(bytes, usize::MAX);
    assert_eq!(read(bytes, usize::from(size).max(1)), whole);
    for reply in &whole.0 {
        let _ = (reply.code(), reply.error(), reply.texts(1007).count());
        assert!(!reply.lines.is_empty());
    }
}

/// All replies, and the error that ended them.
fn read(mut bytes: &[u8], size: usize) -> (Vec<Reply>, Option<ReplyError>) {
    let mut parser = Parser::default();
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        match parser.push(&bytes[..bytes.len().min(size)]) {
            Ok((used, reply)) => {
                replies.extend(reply);
                bytes = &bytes[used..];
            }
            Err(error) => return (replies, Some(error)),
        }
    }
    (replies, None)
}
