//! Any bytes as what clamd replies, in pieces of any length.

use gate::scan::clamd::{ScanResult, Stream, verdict};
use std::io::{Read, Result, Write};

/// A connection on which a reply waits; it takes so many bytes.
struct Peer<'a> {
    reply: &'a [u8],
    piece: usize,
    takes: usize,
}

impl Read for Peer<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let length = self.piece.min(self.reply.len()).min(buffer.len());
        let (now, later) = self.reply.split_at(length);
        buffer[..length].copy_from_slice(now);
        self.reply = later;
        Ok(length)
    }
}

impl Write for Peer<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let length = bytes.len().min(self.takes);
        self.takes -= length;
        Ok(length)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Some((&[piece, takes], reply)) = data.split_first_chunk() else { return };
    let peer = Peer { reply, piece: usize::from(piece) + 1, takes: usize::from(takes) * 4 };
    let Ok(mut stream) = Stream::over(peer) else { return };
    match stream.send(&[7; 300]) {
        Ok(()) => {
            let said = stream.end();
            // Only these words are a clean verdict, whatever stands around them.
            let text = reply.split(|byte| *byte == 0).next().unwrap_or_default();
            assert!(said != ScanResult::Clean || text.trim_ascii() == b"stream: OK");
        }
        Err(said) => assert_ne!(said, ScanResult::Clean),
    }
    let _ = verdict(reply);
}
