//! Any bytes as chat, with gaps: nothing panics, portions make no difference, texts are bounded.
//!
//! The first byte chooses the protocol. Bytes 0xff part what follows; each part begins with `<` or `>`
//! for the server's or the client's bytes, or `(` or `)` for the same after a gap.

use classify::flow::Side;
use gate::chat::{MAX_TEXT, Message, Reader};

fn read(name: &str, data: &[u8], portion: usize) -> (Vec<Message>, bool) {
    let mut reader = Reader::new(name).expect("a protocol that is read");
    let mut out = Vec::new();
    for part in data.split(|&byte| byte == 0xff) {
        let Some((&head, bytes)) = part.split_first() else { continue };
        let side = if matches!(head, b'>' | b')') { Side::Client } else { Side::Server };
        if matches!(head, b'(' | b')') {
            reader.gap(side);
        }
        for bytes in bytes.chunks(portion) {
            reader.feed(side, bytes, &mut out);
        }
    }
    (out, reader.is_over())
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Some((&first, data)) = data.split_first() else { return };
    let name = ["irc", "xmpp"][usize::from(first) % 2];
    let whole = read(name, data, usize::MAX);
    assert_eq!(whole, read(name, data, 1));
    assert_eq!(whole, read(name, data, 7));
    for message in &whole.0 {
        // Latin 1 may take twice its bytes.
        assert!(message.from.len() <= 2 * MAX_TEXT && message.to.len() <= 2 * MAX_TEXT);
    }
}
