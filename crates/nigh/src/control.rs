//! The control socket: a Unix stream socket, mode 0600, one JSON object a line each way.
//!
//! Requests: `{"do":"status"}`, `{"do":"drain"}`, `{"do":"undrain"}`, `{"do":"reload"}`, and of each
//! job by its noun, such as `{"do":"echo","request":{...}}`. Answers: `{"ok":VALUE}` or `{"error":"sentence"}`.
//!
//! The socket is never open to others, not even for a moment: it is bound under a umask of 0177. A
//! socket left behind by a dead daemon is replaced; a living daemon's is not touched.

use crate::node::Node;
use nix::sys::stat::{Mode, umask};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    io,
    os::unix::{
        fs::{FileTypeExt, MetadataExt},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
    sync::Semaphore,
    time::timeout,
};

/// Longest request line, in bytes.
const LINE_LIMIT: u64 = 64 << 10;
/// Most connections at once.
const CONNECTION_LIMIT: usize = 32;
/// How long a connection may be silent, or an answer may wait to be read.
const TIMEOUT: Duration = Duration::from_secs(30);

/// One request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// What the daemon does.
    Status {
        /// As text for people instead of as an object.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        text: bool,
        /// Of one job only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job: Option<String>,
    },
    /// Take the node out of service; answered when arrivals are quiet.
    Drain {},
    /// Take the node into service again.
    Undrain {},
    /// Read the configuration file again.
    Reload {},
}

/// What of a request is read first.
#[derive(Deserialize)]
struct Asked {
    #[serde(rename = "do")]
    noun: String,
}

/// A request to a job.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfJob {
    #[serde(rename = "do")]
    noun: String,
    request: Value,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The request was done.
    Ok(Value),
    /// It was not, and why.
    Error(String),
}

/// The control socket cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// A living daemon has it.
    #[error("a daemon already answers at {}: stop it, or give this one its own node.control", .0.display())]
    Busy(PathBuf),
    /// Something that is no socket is in the way.
    #[error("{} is in the way and is no socket: remove it, or choose another node.control", .0.display())]
    NoSocket(PathBuf),
    /// The system refused.
    #[error("cannot open the control socket {}: {source}; see node.control", .path.display())]
    Io {
        /// Where it should be.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The listening socket; its file is removed when this is dropped.
#[derive(Debug)]
pub struct ControlSocket {
    listener: tokio::net::UnixListener,
    _file: SocketFile,
}

/// The socket's file, removed on drop unless somebody replaced it.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let same = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == self.identity);
        if same {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl ControlSocket {
    /// Binds the socket at `path`; inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// See [`BindError`].
    pub fn bind(path: &Path) -> Result<Self, BindError> {
        let error = |source| BindError::Io { path: path.into(), source };
        match std::fs::symlink_metadata(path) {
            Err(failure) if failure.kind() == io::ErrorKind::NotFound => {
                if let Some(parent) = path.parent() {
                    std::fs::create_dir_all(parent).map_err(error)?;
                }
            }
            Err(failure) => return Err(error(failure)),
            Ok(metadata) if !metadata.file_type().is_socket() => {
                return Err(BindError::NoSocket(path.into()));
            }
            Ok(_) => match std::os::unix::net::UnixStream::connect(path) {
                Ok(_) => return Err(BindError::Busy(path.into())),
                Err(failure) if failure.kind() == io::ErrorKind::ConnectionRefused => {
                    std::fs::remove_file(path).map_err(error)?;
                }
                Err(failure) => return Err(error(failure)),
            },
        }
        let before = umask(Mode::from_bits_truncate(0o177));
        let bound = UnixListener::bind(path);
        umask(before);
        let listener = bound.map_err(error)?;
        let metadata = std::fs::symlink_metadata(path).map_err(error)?;
        let file = SocketFile { path: path.into(), identity: (metadata.dev(), metadata.ino()) };
        listener.set_nonblocking(true).map_err(error)?;
        let listener = tokio::net::UnixListener::from_std(listener).map_err(error)?;
        Ok(Self { listener, _file: file })
    }

    /// Answers requests until dropped.
    pub async fn serve(&self, node: Arc<Node>) {
        let slots = Arc::new(Semaphore::new(CONNECTION_LIMIT));
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                // Out of file descriptors: what ends meanwhile makes room.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let Ok(slot) = slots.clone().try_acquire_owned() else {
                let refusal = encode(&Answer::Error(format!(
                    "{CONNECTION_LIMIT} control connections are open already: try again later"
                )));
                let _ = stream.try_write(&refusal);
                continue;
            };
            let node = node.clone();
            tokio::spawn(async move {
                // A client that goes away is its own affair.
                let _ = converse(stream, &node).await;
                drop(slot);
            });
        }
    }
}

/// Answers the requests of one connection until it ends, is silent for too long, or breaks the rules.
async fn converse(stream: UnixStream, node: &Node) -> io::Result<()> {
    let (input, mut output) = stream.into_split();
    let mut input = BufReader::new(input);
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut input).take(LINE_LIMIT + 1);
        if timeout(TIMEOUT, limited.read_until(b'\n', &mut line)).await?? == 0 {
            return Ok(());
        }
        let too_long = line.len() as u64 > LINE_LIMIT;
        let answer = if too_long {
            Answer::Error(format!("a request has at most {LINE_LIMIT} bytes"))
        } else {
            match reply(&line, node).await {
                Ok(value) => Answer::Ok(value),
                Err(sentence) => Answer::Error(sentence),
            }
        };
        timeout(TIMEOUT, output.write_all(&encode(&answer))).await??;
        if too_long {
            return Ok(());
        }
    }
}

/// Does what is asked.
async fn reply(line: &[u8], node: &Node) -> Result<Value, String> {
    let error = |error: serde_json::Error| format!("this is not a request: {error}");
    let Asked { noun } = serde_json::from_slice(line).map_err(error)?;
    if node.jobs().knows(&noun) {
        let OfJob { noun, request } = serde_json::from_slice(line).map_err(error)?;
        return node.jobs().control(&noun, request).await.map_err(|error| error.to_string());
    }
    match serde_json::from_slice(line).map_err(error)? {
        Request::Status { text: false, job: None } => Ok(node.status()),
        Request::Status { text: true, job: None } => Ok(node.render().into()),
        Request::Status { text, job: Some(job) } => {
            let job = node.jobs().of(&job).map_err(|error| error.to_string())?;
            Ok(if text { job.render().into() } else { job.status() })
        }
        Request::Drain {} => node.drain().await.map_err(|error| error.to_string()),
        Request::Undrain {} => node.undrain().await.map_err(|error| error.to_string()),
        Request::Reload {} => node.reload().await.map_err(|error| error.to_string()),
    }
}

/// An answer as a line.
fn encode(answer: &Answer) -> Vec<u8> {
    // A JSON value and a string always serialize.
    let mut line = serde_json::to_vec(answer).unwrap_or_default();
    line.push(b'\n');
    line
}
