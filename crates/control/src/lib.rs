//! Control sockets: a Unix stream socket, mode 0600, one JSON object a line in each direction.
//!
//! The daemon and every running lab have one and define its requests; an answer is
//! `{"ok":VALUE}` or `{"error":"sentence"}`. After some answers of a lab the connection carries a stream.
//! [`ControlSocket`] is the server, [`Connection`] the client.
#![forbid(unsafe_code)]

mod client;
mod server;

pub use client::{AskError, Connection};
pub use server::{BindError, ControlSocket, Reply, Write, converse};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The request succeeded.
    Ok(serde_json::Value),
    /// It failed; one sentence says why.
    Error(String),
}

/// Reads a request from a line.
///
/// # Errors
///
/// A sentence, if it is not a request.
pub fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| format!("this is not a request: {error}"))
}

/// A value as a line.
fn encode(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// Who serves a control socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `nigh run`.
    Daemon,
    /// `nigh lab run`.
    Lab,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Daemon => "daemon",
            Self::Lab => "lab",
        })
    }
}

/// A server, and where its socket is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// What it is.
    pub role: Role,
    /// Its socket.
    pub path: PathBuf,
}

impl Peer {
    /// The daemon whose socket is at `path`.
    pub fn daemon(path: &Path) -> Self {
        Self { role: Role::Daemon, path: path.into() }
    }

    /// The lab whose socket is at `path`.
    pub fn lab(path: &Path) -> Self {
        Self { role: Role::Lab, path: path.into() }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} at {}", self.role, self.path.display())
    }
}
