//! The server: a socket that only its owner can open, and bounded connections on it.
//!
//! The socket is never open to others, not even for a moment: it is bound under a umask of 0177. A
//! socket left behind by a dead server is replaced; a living server's is not touched.

use crate::{Answer, encode};
use nix::sys::stat::{Mode, umask};
use serde_json::{Value, json};
use std::{
    fmt, io,
    os::unix::{
        self,
        fs::{FileTypeExt, MetadataExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    sync::Semaphore,
    task::spawn_blocking,
    time::timeout,
};

/// Longest request line, in bytes.
const LINE_LIMIT: u64 = 64 << 10;
/// Most connections at once.
const CONNECTION_LIMIT: usize = 32;
/// How long a connection may be silent, or an answer may wait to be read.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The control socket cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// A living server has it.
    #[error("a daemon already answers at {}: stop it, or choose another path", .0.display())]
    Busy(PathBuf),
    /// The path exists and is not a socket.
    #[error("{} exists and is not a socket: remove it, or choose another path", .0.display())]
    NoSocket(PathBuf),
    /// The system refused.
    #[error("cannot open the control socket {}: {source}", .path.display())]
    Io {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The result of an accepted request.
pub enum Reply {
    /// An answer with this value.
    Value(Value),
    /// An empty answer; then this function gets the connection, on a thread that may block.
    Stream(Write),
}

/// Writes a stream to a connection.
pub type Write = Box<dyn FnOnce(unix::net::UnixStream) -> io::Result<()> + Send>;

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => f.debug_tuple("Value").field(value).finish(),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

/// The listening socket; its file is removed when this is dropped.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
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
    /// Binds the socket at `path`; inside a tokio runtime. No other thread should make files meanwhile.
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
            Ok(_) => match unix::net::UnixStream::connect(path) {
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
        Ok(Self { listener, _file: file })
    }

    /// Answers requests until dropped. `handler` gets each request's line; its error is the sentence of
    /// the answer.
    pub async fn serve<H, R>(&self, handler: H)
    where
        H: Fn(Vec<u8>) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Result<Reply, String>> + Send + 'static,
    {
        let slots = Arc::new(Semaphore::new(CONNECTION_LIMIT));
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                // Out of file descriptors: connections that end make room.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let Ok(slot) = slots.clone().try_acquire_owned() else {
                let refusal = line(Answer::Error(format!(
                    "{CONNECTION_LIMIT} control connections are open already: try again later"
                )));
                let _ = stream.try_write(&refusal);
                continue;
            };
            let handler = handler.clone();
            tokio::spawn(async move {
                // A client that disconnects is not an error.
                let _ = attend(stream, handler).await;
                drop(slot);
            });
        }
    }
}

/// Serves one connection to its end.
async fn attend<H, R>(mut stream: UnixStream, handler: H) -> io::Result<()>
where
    H: Fn(Vec<u8>) -> R,
    R: Future<Output = Result<Reply, String>>,
{
    let Some(write) = converse(&mut stream, handler).await? else { return Ok(()) };
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    spawn_blocking(move || write(stream)).await.map_err(io::Error::other)?
}

/// Answers the requests of one connection until it ends, is silent for too long, or breaks the rules; or until
/// it is to carry a stream, whose writer is returned.
///
/// # Errors
///
/// The connection is broken, or silent for too long.
pub async fn converse<S, H, R>(stream: S, handler: H) -> io::Result<Option<Write>>
where
    S: AsyncRead + AsyncWrite + Unpin,
    H: Fn(Vec<u8>) -> R,
    R: Future<Output = Result<Reply, String>>,
{
    let mut stream = BufReader::new(stream);
    loop {
        let mut request = Vec::new();
        let mut limited = (&mut stream).take(LINE_LIMIT + 1);
        if timeout(TIMEOUT, limited.read_until(b'\n', &mut request)).await?? == 0 {
            return Ok(None);
        }
        let too_long = request.len() as u64 > LINE_LIMIT;
        let reply = if too_long {
            Err(format!("a request has at most {LINE_LIMIT} bytes"))
        } else {
            handler(request).await
        };
        let (answer, write) = match reply {
            Ok(Reply::Value(value)) => (Answer::Ok(value), None),
            Ok(Reply::Stream(write)) => (Answer::Ok(json!({})), Some(write)),
            Err(sentence) => (Answer::Error(sentence), None),
        };
        timeout(TIMEOUT, stream.write_all(&line(answer))).await??;
        if write.is_some() || too_long {
            return Ok(write);
        }
    }
}

/// An answer as a line.
fn line(answer: Answer) -> Vec<u8> {
    // A JSON value and a string always serialize.
    encode(&answer).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AskError, Connection, Peer, parse};
    use std::{
        io::{BufRead, Read, Write},
        os::unix::fs::PermissionsExt,
        path::Path,
    };
    use tempfile::TempDir;
    use tokio::runtime::{Builder, Runtime};

    /// A server that repeats numbers, refuses `null`, and for `"stream"` sends two lines after its answer.
    fn server() -> (Runtime, TempDir, PathBuf) {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/control.sock");
        let socket = {
            let _guard = runtime.enter();
            ControlSocket::bind(&path).unwrap()
        };
        let handler = |request: Vec<u8>| async move {
            match parse(&request)? {
                Value::Null => Err("null is refused".to_owned()),
                Value::String(_) => {
                    Ok(Reply::Stream(Box::new(|mut stream| stream.write_all(b"one\ntwo\n"))))
                }
                value => Ok(Reply::Value(value)),
            }
        };
        runtime.spawn(async move { socket.serve(handler).await });
        (runtime, folder, path)
    }

    fn open(path: &Path) -> Connection {
        Connection::open(Peer::lab(path)).unwrap()
    }

    #[test]
    fn a_connection_carries_requests_one_after_the_other_and_then_a_stream() {
        let (_runtime, _folder, path) = server();
        let mut connection = open(&path);
        assert_eq!(connection.ask::<u32>(&7).unwrap(), 7);
        match connection.ask::<Value>(&Value::Null) {
            Err(AskError::Refused(sentence)) => assert_eq!(sentence, "null is refused"),
            other => panic!("{other:?}"),
        }
        assert!(matches!(connection.ask::<String>(&8), Err(AskError::Answer { .. })));
        assert_eq!(connection.ask::<Value>(&"stream").unwrap(), json!({}));
        let lines: Vec<_> = connection.stream().unwrap().lines().map(Result::unwrap).collect();
        assert_eq!(lines, ["one", "two"]);
    }

    #[test]
    fn lines_and_connections_are_bounded() {
        let (_runtime, _folder, path) = server();
        let mut stream = unix::net::UnixStream::connect(&path).unwrap();
        stream.write_all(b"{\n").unwrap();
        let mut answers = io::BufReader::new(stream.try_clone().unwrap());
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        assert!(answer.starts_with("{\"error\":\"this is not a request: EOF"), "{answer}");
        stream.write_all(&vec![b' '; LINE_LIMIT as usize + 1]).unwrap();
        answer.clear();
        answers.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "{\"error\":\"a request has at most 65536 bytes\"}\n");
        drop((stream, answers));

        // An answer shows that the connection has its slot.
        let mut held: Vec<_> = (0..CONNECTION_LIMIT).map(|_| open(&path)).collect();
        for connection in &mut held {
            while connection.ask::<u32>(&1).is_err() {
                *connection = open(&path);
            }
        }
        let mut refused = String::new();
        unix::net::UnixStream::connect(&path).unwrap().read_to_string(&mut refused).unwrap();
        let sentence = "32 control connections are open already: try again later";
        assert_eq!(refused, format!("{{\"error\":\"{sentence}\"}}\n"));
    }

    #[test]
    fn a_dead_servers_socket_is_replaced_and_nothing_else() {
        let (runtime, folder, path) = server();
        let _guard = runtime.enter();
        let mode = std::fs::symlink_metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert!(matches!(ControlSocket::bind(&path), Err(BindError::Busy(_))));
        let file = folder.path().join("file");
        std::fs::write(&file, "text").unwrap();
        assert!(matches!(ControlSocket::bind(&file), Err(BindError::NoSocket(_))));
        let dead = folder.path().join("dead");
        drop(unix::net::UnixListener::bind(&dead).unwrap());
        drop(ControlSocket::bind(&dead).unwrap());
        assert!(!dead.exists(), "the file goes with the server");
    }
}
