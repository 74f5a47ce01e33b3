//! The client: requests one after the other, each with its answer.

use crate::{Answer, Peer, Role, encode};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    io::{self, BufRead, BufReader, ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

/// How long a request to the daemon may take; a drain is the longest.
const DAEMON_TIMEOUT: Duration = Duration::from_secs(900);
/// How long a request to a lab may take.
const LAB_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest answer, in bytes.
const ANSWER_LIMIT: u64 = 64 << 20;

/// A request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nothing listens there.
    #[error("{}", no_server(.0))]
    NoDaemon(Peer),
    /// The socket may not be opened.
    #[error("may not open {}: run this as the {}'s user or as root", .0.path.display(), .0.role)]
    Denied(Peer),
    /// Something else went wrong.
    #[error("{peer} did not answer: {source}")]
    Io {
        /// Who was asked.
        peer: Peer,
        /// The system's error.
        source: io::Error,
    },
    /// The answer is not what this version expects.
    #[error("this version does not understand the answer of {peer}: {source}")]
    Answer {
        /// Who was asked.
        peer: Peer,
        /// What did not parse.
        source: serde_json::Error,
    },
    /// The server refused.
    #[error("{0}")]
    Refused(String),
}

fn no_server(Peer { role, path }: &Peer) -> String {
    let path = path.display();
    match role {
        Role::Daemon => format!(
            "no daemon answers at {path}: start one with `nigh run -c FILE`, or name its socket with --socket"
        ),
        Role::Lab => format!("the lab does not answer at {path}: it is starting or ending"),
    }
}

/// A connection to a server.
#[derive(Debug)]
pub struct Connection {
    peer: Peer,
    stream: BufReader<UnixStream>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    ///
    /// See [`AskError`].
    pub fn open(peer: Peer) -> Result<Self, AskError> {
        let timeout = match peer.role {
            Role::Daemon => DAEMON_TIMEOUT,
            Role::Lab => LAB_TIMEOUT,
        };
        let connected = UnixStream::connect(&peer.path)
            .and_then(|stream| stream.set_read_timeout(Some(timeout)).map(|()| stream));
        match connected {
            Ok(stream) => Ok(Self { peer, stream: BufReader::new(stream) }),
            Err(source) => Err(match source.kind() {
                ErrorKind::NotFound | ErrorKind::ConnectionRefused => AskError::NoDaemon(peer),
                ErrorKind::PermissionDenied => AskError::Denied(peer),
                _ => AskError::Io { peer, source },
            }),
        }
    }

    /// Asks and waits for the answer.
    ///
    /// # Errors
    ///
    /// See [`AskError`].
    pub fn ask<T: DeserializeOwned>(&mut self, request: &impl Serialize) -> Result<T, AskError> {
        let answer = |source| AskError::Answer { peer: self.peer.clone(), source };
        let request = encode(request).map_err(answer)?;
        let line = exchange(&mut self.stream, &request)
            .map_err(|source| AskError::Io { peer: self.peer.clone(), source })?;
        match serde_json::from_slice(&line).map_err(answer)? {
            Answer::Ok(value) => serde_json::from_value(value).map_err(answer),
            Answer::Error(sentence) => Err(AskError::Refused(sentence)),
        }
    }

    /// Waits without limit for what comes after an answer.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn stream(self) -> Result<BufReader<UnixStream>, AskError> {
        match self.stream.get_ref().set_read_timeout(None) {
            Ok(()) => Ok(self.stream),
            Err(source) => Err(AskError::Io { peer: self.peer, source }),
        }
    }
}

/// Sends one line and reads one.
fn exchange(stream: &mut BufReader<UnixStream>, request: &[u8]) -> io::Result<Vec<u8>> {
    stream.get_mut().write_all(request)?;
    let mut line = Vec::new();
    stream.take(ANSWER_LIMIT).read_until(b'\n', &mut line)?;
    if line.is_empty() { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(line) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn an_error_names_the_server_and_what_to_do() {
        let path = Path::new("/nonexistent/c");
        let error = |peer| Connection::open(peer).expect_err("nothing listens there").to_string();
        assert_eq!(
            error(Peer::daemon(path)),
            "no daemon answers at /nonexistent/c: start one with `nigh run -c FILE`, or name its socket \
             with --socket"
        );
        assert_eq!(
            error(Peer::lab(path)),
            "the lab does not answer at /nonexistent/c: it is starting or ending"
        );
        assert_eq!(
            AskError::Denied(Peer::lab(path)).to_string(),
            "may not open /nonexistent/c: run this as the lab's user or as root"
        );
        let source = ErrorKind::UnexpectedEof.into();
        assert_eq!(
            AskError::Io { peer: Peer::daemon(path), source }.to_string(),
            "the daemon at /nonexistent/c did not answer: unexpected end of file"
        );
    }
}
