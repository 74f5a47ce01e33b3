//! The client's end of the control socket: one request, one answer.

use crate::control::Answer;
use serde::Serialize;
use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

/// How long a request may take; a drain is the longest.
const TIMEOUT: Duration = Duration::from_secs(900);
/// Longest answer, in bytes.
const ANSWER_LIMIT: u64 = 64 << 20;

/// A request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody listens there.
    #[error(
        "no daemon answers at {}: start one with `nigh run -c FILE`, or name its socket with --socket", .0.display()
    )]
    NoDaemon(PathBuf),
    /// The socket may not be opened.
    #[error("may not open {}: run this as the daemon's user or as root", .0.display())]
    Denied(PathBuf),
    /// Something else went wrong on the way.
    #[error("the daemon at {} did not answer: {source}", .path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The answer is not what this version expects.
    #[error("the daemon at {} answered in a way this version does not know: {source}", .path.display())]
    Answer {
        /// The socket.
        path: PathBuf,
        /// What did not parse.
        source: serde_json::Error,
    },
    /// The daemon refused.
    #[error("{0}")]
    Refused(String),
}

/// Sends `request` to the daemon whose control socket is at `path` and waits for the answer.
///
/// # Errors
///
/// See [`AskError`].
pub fn ask(path: &Path, request: &impl Serialize) -> Result<serde_json::Value, AskError> {
    let io = |source| AskError::Io { path: path.into(), source };
    let mut stream = UnixStream::connect(path).map_err(|source| match source.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => AskError::NoDaemon(path.into()),
        ErrorKind::PermissionDenied => AskError::Denied(path.into()),
        _ => io(source),
    })?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(io)?;
    let answer = |source| AskError::Answer { path: path.into(), source };
    let mut line = serde_json::to_vec(request).map_err(answer)?;
    line.push(b'\n');
    stream.write_all(&line).map_err(io)?;
    let mut line = Vec::new();
    BufReader::new(stream.take(ANSWER_LIMIT)).read_until(b'\n', &mut line).map_err(io)?;
    if line.is_empty() {
        return Err(io(ErrorKind::UnexpectedEof.into()));
    }
    match serde_json::from_slice(&line).map_err(answer)? {
        Answer::Ok(value) => Ok(value),
        Answer::Error(sentence) => Err(AskError::Refused(sentence)),
    }
}
