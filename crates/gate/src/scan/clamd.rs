//! clamd's protocol: one content a connection, with the command INSTREAM.
//!
//! Read clamd(8), "COMMANDS". Commands begin with `z` and end with a zero byte, as then do replies.
//! After `zINSTREAM\0` come chunks, each with its length in four bytes of network order, and an empty
//! one at the end; then clamd scans and replies. It replies earlier when the content becomes larger
//! than its `StreamMaxLength`, and closes:
//!
//! ```text
//! stream: OK
//! stream: Win.Test.EICAR_HDB-1 FOUND
//! INSTREAM size limit exceeded. ERROR
//! ```

use super::config::{Address, Config};
use ::config::printable;
use socket2::{Domain, SockAddr, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use thiserror::Error;

/// Bytes of a reply that are read; names of signatures are shorter.
const REPLY: usize = 1024;

/// Bytes of one chunk: as many as clamd reads at once without effort.
const CHUNK: usize = 1 << 17;

/// What clamd calls content that it has not scanned to its end, with `AlertExceedsMax yes`.
const LIMIT: &str = "Heuristics.Limits.Exceeded.";

/// The scanner's verdict on content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanResult {
    /// Nothing was found.
    Clean,
    /// A signature matched.
    Found(String),
    /// There is no verdict.
    Failed(Failure),
}

/// Why there is no verdict.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// It cannot be reached, or went away.
    #[error("clamd is unavailable: {0}")]
    Unavailable(String),
    /// It took too long.
    #[error("clamd took too long")]
    TimedOut,
    /// It says that it cannot.
    #[error("clamd refused: {0}")]
    Refused(String),
    /// The content is larger than what is scanned.
    #[error("the content is too large to be scanned")]
    TooLarge,
    /// It is an archive that goes beyond clamd's limits, of which this is the name.
    #[error("it goes beyond a limit of clamd: {0}")]
    Limit(String),
    /// Too much content waits.
    #[error("too much content waits to be scanned")]
    Overloaded,
    /// Not all of it was seen.
    #[error("part of the content was not seen")]
    Missed,
    /// Only a part of the file was sent.
    #[error("only part of a file was seen")]
    Part,
    /// Programs that receive it differ on what it is.
    #[error("clients read this response differently")]
    Ambiguous,
    /// It is packed in a form that cannot be unpacked.
    #[error("the content is compressed as {0}")]
    Packed(String),
    /// A torrent's file that cannot be put together.
    #[error("the torrent's files cannot be assembled: {0}")]
    Scattered(&'static str),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => Self::TimedOut,
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

/// A reply to INSTREAM, without its zero byte.
pub fn verdict(reply: &[u8]) -> ScanResult {
    let text = String::from_utf8_lossy(reply.trim_ascii());
    if let Some(result) = text.strip_prefix("stream: ") {
        if result == "OK" {
            return ScanResult::Clean;
        }
        if let Some(name) = result.strip_suffix(" FOUND") {
            if let Some(limit) = name.strip_prefix(LIMIT) {
                return ScanResult::Failed(Failure::Limit(printable(limit.chars())));
            }
            return ScanResult::Found(printable(name.chars()));
        }
    }
    if text.starts_with("INSTREAM size limit exceeded") {
        return ScanResult::Failed(Failure::TooLarge);
    }
    let text = text.strip_suffix("ERROR").unwrap_or(&text).trim();
    let text = if text.is_empty() { "no reply" } else { text };
    ScanResult::Failed(Failure::Refused(printable(text.chars())))
}

/// Content in flight to clamd.
#[derive(Debug)]
pub struct Stream<S = Socket> {
    socket: S,
}

impl Stream {
    /// Connects and begins.
    ///
    /// # Errors
    ///
    /// When clamd is unavailable or does not take the command in time.
    pub fn begin(config: &Config) -> Result<Self, Failure> {
        let (domain, address) = match &config.clamd {
            Address::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
            Address::Tcp(socket) => (Domain::for_address(*socket), SockAddr::from(*socket)),
        };
        let socket = Socket::new(domain, Type::STREAM, None)?;
        socket.set_write_timeout(Some(config.timeout))?;
        socket.set_read_timeout(Some(config.timeout))?;
        match config.clamd {
            // A full queue of connections is waited for as long as for a write.
            Address::Unix(_) => socket.connect(&address)?,
            Address::Tcp(_) => {
                socket.connect_timeout(&address, config.timeout)?;
                socket.set_tcp_nodelay(true)?;
            }
        }
        Self::over(socket)
    }
}

impl<S: Read + Write> Stream<S> {
    /// Begins over a connection.
    ///
    /// # Errors
    ///
    /// When the command is not taken.
    pub fn over(mut socket: S) -> Result<Self, Failure> {
        socket.write_all(b"zINSTREAM\0")?;
        Ok(Self { socket })
    }

    /// Sends content.
    ///
    /// # Errors
    ///
    /// clamd's reply when it ends the stream early, else why it does not take the content.
    pub fn send(&mut self, content: &[u8]) -> Result<(), ScanResult> {
        for chunk in content.chunks(CHUNK) {
            if let Err(error) = self.write(chunk) {
                // It may have sent a reason before it closed.
                let result = self.reply().map(|reply| verdict(&reply));
                return Err(match result {
                    Ok(result) if result != ScanResult::Clean => result,
                    _ => ScanResult::Failed(error.into()),
                });
            }
        }
        Ok(())
    }

    fn write(&mut self, chunk: &[u8]) -> std::io::Result<()> {
        let length = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
        self.socket.write_all(&length.to_be_bytes())?;
        self.socket.write_all(chunk)
    }

    /// Ends the content and waits for the verdict.
    pub fn end(mut self) -> ScanResult {
        // When clamd has closed already, it has replied before.
        let ended = self.socket.write_all(&0_u32.to_be_bytes());
        match (self.reply(), ended) {
            (Ok(reply), _) if !reply.is_empty() => verdict(&reply),
            (_, Err(error)) | (Err(error), _) => ScanResult::Failed(error.into()),
            (Ok(_), Ok(())) => {
                ScanResult::Failed(Failure::Unavailable("it closed without a reply".into()))
            }
        }
    }

    /// Everything up to the zero byte or the end. A longer reply than any that clamd gives is none: what
    /// stands behind a part of it is not known.
    fn reply(&mut self) -> std::io::Result<Vec<u8>> {
        let mut reply = Vec::new();
        let mut part = [0; 256];
        loop {
            let length = match self.socket.read(&mut part) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // A verdict before a reset counts.
                Err(_) if !reply.is_empty() => break,
                Err(error) => return Err(error),
            };
            reply.extend_from_slice(part.get(..length).unwrap_or_default());
            if let Some(zero) = reply.iter().position(|byte| *byte == 0) {
                reply.truncate(zero);
                return Ok(reply);
            }
            if reply.len() > REPLY {
                return Err(std::io::Error::new(ErrorKind::InvalidData, "its reply is too long"));
            }
        }
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection on which a reply waits.
    struct Replies(std::io::Cursor<Vec<u8>>);

    impl Read for Replies {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(buffer)
        }
    }

    impl Write for Replies {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_part_of_a_reply_is_no_verdict() {
        let result = |reply: Vec<u8>| {
            Stream::over(Replies(std::io::Cursor::new(reply))).expect("taken").end()
        };
        let long = |end: &[u8]| [&b"stream: OK"[..], &[b' '; 2000], end].concat();
        for reply in [long(b"but FOUND"), long(b"\0"), long(b"")] {
            let result = result(reply);
            assert!(
                matches!(&result, ScanResult::Failed(Failure::Unavailable(why)) if why.contains("too long")),
                "{result:?}"
            );
        }
        assert_eq!(result(b"stream: OK\0more".to_vec()), ScanResult::Clean);
        assert_eq!(result(b"stream: OK".to_vec()), ScanResult::Clean);
    }

    #[test]
    fn replies_are_read_as_clamd_writes_them() {
        let found = |name: &str| ScanResult::Found(name.into());
        let refused = |why: &str| ScanResult::Failed(Failure::Refused(why.into()));
        for (reply, result) in [
            (&b"stream: OK"[..], ScanResult::Clean),
            (b"stream: Win.Test.EICAR_HDB-1 FOUND", found("Win.Test.EICAR_HDB-1")),
            (b"stream: a b: FOUND FOUND\n", found("a b: FOUND")),
            (b"stream: OK FOUND", found("OK")),
            (
                b"stream: Heuristics.Limits.Exceeded.MaxRecursion FOUND",
                ScanResult::Failed(Failure::Limit("MaxRecursion".into())),
            ),
            (b"INSTREAM size limit exceeded. ERROR", ScanResult::Failed(Failure::TooLarge)),
            (b"stream: Can't allocate memory ERROR", refused("stream: Can't allocate memory")),
            (b"UNKNOWN COMMAND", refused("UNKNOWN COMMAND")),
            (b"", refused("no reply")),
        ] {
            assert_eq!(verdict(reply), result);
        }
    }
}
