//! Requests to the daemon from the command line.

use crate::control::Request;
use control::{Connection, Peer};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;

pub use control::AskError;

/// Sends `request` to the daemon whose control socket is at `path` and waits for the answer.
///
/// # Errors
///
/// See [`AskError`].
pub fn ask(path: &Path, request: &impl Serialize) -> Result<Value, AskError> {
    Connection::open(Peer::daemon(path))?.ask(request)
}

/// The state of the job `name` of that daemon: text for people, or an object.
///
/// # Errors
///
/// See [`AskError`].
pub fn status(path: &Path, name: &str, text: bool) -> Result<Value, AskError> {
    ask(path, &Request::Status { text, job: Some(name.to_owned()) })
}

/// Sends a request to the job `name` of that daemon.
///
/// # Errors
///
/// See [`AskError`].
pub fn ask_job(path: &Path, name: &str, request: &impl Serialize) -> Result<Value, AskError> {
    ask(path, &json!({ "do": name, "request": request }))
}
