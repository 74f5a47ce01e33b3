//! The asking side of the control socket.

use super::{Answer, Request};
use serde::de::DeserializeOwned;
use std::{
    io::{self, BufRead, BufReader, ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Longest answer, in bytes.
const ANSWER_LIMIT: u64 = 64 << 20;

/// A request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody listens there.
    #[error("the lab does not answer at {}: it is about to begin or to end", .0.display())]
    Silent(PathBuf),
    /// The socket may not be opened.
    #[error("may not open {}: run this as root or as the lab's user", .0.display())]
    Denied(PathBuf),
    /// Something else went wrong on the way.
    #[error("the lab at {} did not answer: {source}", .path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The answer is not what this version expects.
    #[error("the lab at {} answered in a way this version does not know: {source}", .path.display())]
    Answer {
        /// The socket.
        path: PathBuf,
        /// What did not parse.
        source: serde_json::Error,
    },
    /// The lab refused.
    #[error("{0}")]
    Refused(String),
}

/// A connection to a lab.
#[derive(Debug)]
pub(crate) struct Connection {
    path: PathBuf,
    stream: BufReader<UnixStream>,
}

impl Connection {
    /// Connects.
    pub(crate) fn open(path: &Path) -> Result<Self, AskError> {
        let io = |source| AskError::Io { path: path.into(), source };
        let stream = UnixStream::connect(path).map_err(|source| match source.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => AskError::Silent(path.into()),
            ErrorKind::PermissionDenied => AskError::Denied(path.into()),
            _ => io(source),
        })?;
        stream.set_read_timeout(Some(TIMEOUT)).map_err(io)?;
        Ok(Self { path: path.into(), stream: BufReader::new(stream) })
    }

    fn io(&self) -> impl Fn(io::Error) -> AskError + use<> {
        let path = self.path.clone();
        move |source| AskError::Io { path: path.clone(), source }
    }

    /// Asks and waits for the answer.
    pub(crate) fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, AskError> {
        let io = self.io();
        let path = self.path.clone();
        let answer = |source| AskError::Answer { path: path.clone(), source };
        let mut line = serde_json::to_vec(request).map_err(answer)?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line).map_err(&io)?;
        let mut line = Vec::new();
        (&mut self.stream).take(ANSWER_LIMIT).read_until(b'\n', &mut line).map_err(&io)?;
        if line.is_empty() {
            return Err(io(ErrorKind::UnexpectedEof.into()));
        }
        match serde_json::from_slice(&line).map_err(answer)? {
            Answer::Ok(value) => serde_json::from_value(value).map_err(answer),
            Answer::Error(sentence) => Err(AskError::Refused(sentence)),
        }
    }

    /// Waits without limit for what comes after an answer.
    pub(crate) fn stream(self) -> Result<BufReader<UnixStream>, AskError> {
        let io = self.io();
        self.stream.get_ref().set_read_timeout(None).map_err(io)?;
        Ok(self.stream)
    }
}
