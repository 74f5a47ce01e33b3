//! What can go wrong with a running gate: one error for each operation.

use crate::parser::link::LinkError;
use datapath::{
    gate::{AttachError, OpenError},
    shaper,
};
use std::{io, path::PathBuf};

/// The gate did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The programs.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An interface does not take the programs.
    #[error("gate.internal: {0}")]
    Attach(#[from] AttachError),
    /// The limits need what they cannot have.
    #[error("gate.limit: {0}")]
    Shaper(#[from] shaper::Error),
    /// What looks at packets.
    #[error("cannot start a parser: {0}")]
    Parser(#[from] LinkError),
    /// Held packets cannot be sent on.
    #[error("cannot open a socket for held packets: {0}")]
    Injector(io::Error),
    /// The audit.
    #[error("gate.audit: {0}")]
    Audit(#[from] crate::audit::StartError),
    /// The file of labels.
    #[error("cannot save labels in {path}: {source}")]
    Labels {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// What is copied out cannot be read.
    #[error("cannot read what the kernel copies out: {0}")]
    Reader(io::Error),
    /// The system has no thread left.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// What an earlier process left in force could not be taken off.
#[derive(Debug, thiserror::Error)]
pub enum TakeOffError {
    /// The programs.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The limits.
    #[error(transparent)]
    Shaper(#[from] shaper::Error),
}

/// A changed configuration could not be applied; nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// It needs a new start.
    #[error("gate.{0} changed: restart the daemon to apply")]
    Restart(&'static str),
    /// The limits need what they cannot have.
    #[error("gate.limit: {0}")]
    Shaper(#[from] shaper::Error),
    /// What looks at packets.
    #[error("cannot start a parser: {0}")]
    Parser(#[from] LinkError),
    /// The gate has stopped.
    #[error("the gate has stopped")]
    Stopped,
}

/// A request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nothing is known of the flow.
    #[error("this flow is unknown: it has ended, or none of its packets was seen")]
    NoFlow,
    /// A rule has more than fits.
    #[error("{0}")]
    Rule(String),
    /// There is no such runtime rule.
    #[error("there is no runtime rule {0}: `nigh gate status` shows them")]
    NoRule(String),
    /// There is no such refused torrent.
    #[error("no torrent {0} is refused: `nigh gate status --json` shows those that are")]
    NoTorrent(String),
    /// The kernel refuses.
    #[error("the kernel refuses: {0}")]
    Kernel(String),
    /// The limits need what they cannot have.
    #[error(transparent)]
    Shaper(#[from] shaper::Error),
    /// The gate has stopped.
    #[error("the gate has stopped")]
    Stopped,
}
