//! What the tests share: configurations, and streams of known bytes.

use psock::{Config, PresharedKey, PsockListener, PsockStream, Security, SessionError};
use splitmix::mix;
use std::{
    io::{self, Read, Write},
    net::SocketAddr,
};

pub(crate) use testbed::LIMIT;

/// One end's choices, with one key.
pub(crate) fn key() -> Config {
    Config::new(Security::Key(PresharedKey::from_bytes([7; 32])))
}

/// The same without protection.
pub(crate) fn plain() -> Config {
    Config::new(Security::Plain)
}

/// A listener at a free port of loopback.
pub(crate) fn listen(config: &Config) -> PsockListener {
    PsockListener::bind(&[SocketAddr::from(([127, 0, 0, 1], 0))], config).unwrap()
}

/// The configuration of an end that connects to these addresses.
pub(crate) fn to(addresses: &[SocketAddr], config: &Config) -> Config {
    Config { paths: addresses.iter().map(|&address| address.into()).collect(), ..config.clone() }
}

/// Both ends of a new session, the connecting one first.
pub(crate) fn pair(config: &Config) -> (PsockStream, PsockStream) {
    let listener = listen(config);
    let connecting = PsockStream::connect(&to(&listener.local_addresses(), config)).unwrap();
    let (accepting, _) = listener.accept().unwrap();
    (connecting, accepting)
}

/// The eight bytes at place `8 * word` of a stream.
fn word(seed: u64, word: u64) -> [u8; 8] {
    mix(mix(seed).wrapping_add(word)).to_le_bytes()
}

/// Fills a buffer with the bytes that a stream has from `offset` on.
pub(crate) fn fill(seed: u64, offset: u64, buffer: &mut [u8]) {
    let mut at = 0;
    while at < buffer.len() {
        let place = offset + at as u64;
        let from = (place % 8) as usize;
        let bytes = &word(seed, place / 8)[from..];
        let count = bytes.len().min(buffer.len() - at);
        buffer[at..at + count].copy_from_slice(&bytes[..count]);
        at += count;
    }
}

/// Writes the first `length` bytes of a stream, in pieces.
pub(crate) fn write(stream: &PsockStream, seed: u64, length: u64) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    let mut offset = 0;
    while offset < length {
        let count = (length - offset).min(buffer.len() as u64) as usize;
        fill(seed, offset, &mut buffer[..count]);
        (&*stream).write_all(&buffer[..count])?;
        offset += count as u64;
    }
    Ok(())
}

/// Reads a stream to its end and returns how long it was.
///
/// # Panics
///
/// At the first byte that is not the stream's.
pub(crate) fn read(stream: &PsockStream, seed: u64) -> io::Result<u64> {
    read_up_to(stream, seed, u64::MAX)
}

/// Reads a stream until so many bytes have come, or to its end.
pub(crate) fn read_up_to(stream: &PsockStream, seed: u64, most: u64) -> io::Result<u64> {
    read_on(stream, seed, 0, most)
}

/// The same of a stream of which `offset` bytes were read before.
pub(crate) fn read_on(
    stream: &PsockStream,
    seed: u64,
    mut offset: u64,
    most: u64,
) -> io::Result<u64> {
    let (mut buffer, mut wanted) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    while offset < most {
        let room = (most - offset).min(buffer.len() as u64) as usize;
        let count = (&*stream).read(&mut buffer[..room])?;
        if count == 0 {
            break;
        }
        fill(seed, offset, &mut wanted[..count]);
        assert!(buffer[..count] == wanted[..count], "wrong bytes from {offset} on");
        offset += count as u64;
    }
    Ok(offset)
}

/// Reads until the error that must come.
pub(crate) fn read_to_error(stream: &PsockStream) -> io::Error {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match (&*stream).read(&mut buffer) {
            Ok(0) => panic!("a broken stream ended well"),
            Ok(_) => {}
            Err(error) => return error,
        }
    }
}

/// The session's error in what reading or writing returned.
pub(crate) fn session_error(error: &io::Error) -> Option<&SessionError> {
    error.get_ref().and_then(|error| error.downcast_ref())
}
