//! Reads files that may be compressed.

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};
use std::io::{self, BufRead, BufReader, Read};

/// Bytes that are read at a time.
const BUFFER: usize = 256 * 1024;
/// What files begin with: gzip (RFC 1952, section 2.3.1), zstd (RFC 8878, section 3.1.1), and what zstd
/// calls skippable (3.1.2), whose first byte is 0x50 to 0x5f.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];

/// Reads what is in a file: as it is, or out of gzip or zstd (several streams behind each other, too). A
/// damaged file gives an error where the damage is.
///
/// # Errors
/// When its beginning cannot be read.
pub fn unpack(input: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut input = BufReader::with_capacity(BUFFER, input);
    let start = input.fill_buf()?;
    Ok(if start.starts_with(&GZIP) {
        Box::new(MultiGzDecoder::new(input))
    } else if is_zstd(start) {
        Box::new(Zstd { input, decoder: FrameDecoder::new(), is_open: false })
    } else {
        Box::new(input)
    })
}

fn is_zstd(start: &[u8]) -> bool {
    let is_skippable = |start: &[u8; 4]| start[0] & 0xf0 == 0x50 && start[1..] == SKIPPABLE;
    start.first_chunk().is_some_and(|start| *start == ZSTD || is_skippable(start))
}

/// The frames of a zstd file, one behind the other. A frame may ask for a window of 128 MB at most.
struct Zstd<R> {
    input: BufReader<R>,
    decoder: FrameDecoder,
    /// Whether a frame has begun and is not finished.
    is_open: bool,
}

impl<R: Read> Zstd<R> {
    /// Begins the next frame that holds something; false at the end of the file.
    fn open(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.input) {
                Ok(()) => {
                    self.is_open = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped =
                        io::copy(&mut (&mut self.input).take(length.into()), &mut io::sink())?;
                    if skipped < length.into() {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_open && !self.open()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.input, one).map_err(io::Error::other)?;
            }
            let read = self.decoder.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            self.is_open = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::Write;

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        compress_to_vec(bytes, CompressionLevel::Fastest)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(bytes).expect("memory");
        packer.finish().expect("memory")
    }

    fn all(packed: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        unpack(io::Cursor::new(packed))?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn what_is_packed_comes_out_and_what_is_not_stays() {
        let text: Vec<u8> = (0..500_000_u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        let parts = text.split_at(123_456);
        let skippable = [&[0x53][..], &SKIPPABLE, &[5, 0, 0, 0], b"notes"].concat();
        for packed in [
            text.clone(),
            gzip(&text),
            [gzip(parts.0), gzip(parts.1)].concat(),
            zstd(&text),
            [skippable.clone(), zstd(parts.0), skippable, zstd(b""), zstd(parts.1)].concat(),
        ] {
            assert!(all(packed).expect("unpacked") == text);
        }
        for short in [&b""[..], b"a", b"\x28\xb5", b"\x1f"] {
            assert_eq!(all(short.to_vec()).expect("as it is"), short);
        }
    }

    #[test]
    fn damage_is_an_error_and_what_stands_before_it_comes_out() {
        let text: Vec<u8> =
            (0..500_000_u32).flat_map(|n| n.wrapping_mul(7).to_le_bytes()).collect();
        for packed in [gzip(&text), zstd(&text)] {
            for cut in [5, packed.len() / 2, packed.len() - 5] {
                assert!(all(packed[..cut].to_vec()).is_err(), "{cut}");
            }
            let mut out = Vec::new();
            let mut reader =
                unpack(io::Cursor::new(packed[..packed.len() / 2].to_vec())).expect("some");
            assert!(reader.read_to_end(&mut out).is_err());
            assert!(out.len() > 1000 && text.starts_with(&out));
        }
    }
}
