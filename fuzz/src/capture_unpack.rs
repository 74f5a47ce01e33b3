//! Any bytes as a compressed file: no more comes out than is asked for. The first byte chooses the kind.

use capture::unpack;
use std::io::{Cursor, Read};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let start: &[u8] = match kind % 4 {
        0 => &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0],
        1 => &[0x28, 0xb5, 0x2f, 0xfd],
        2 => &[0x50, 0x2a, 0x4d, 0x18],
        _ => &[],
    };
    let Ok(reader) = unpack(Cursor::new([start, data].concat())) else { return };
    let mut out = Vec::new();
    let _ = reader.take(1 << 20).read_to_end(&mut out);
    assert!(out.len() <= 1 << 20);
}
