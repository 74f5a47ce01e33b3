//! What can go wrong with a running oracle: one error for each operation.

use super::{LoadError, NameError, PolicyError};
use crate::{
    alto, feeds,
    proxidor::{udp, xdp},
};
use std::{io, path::PathBuf};
use topo::Refusal;

/// A part cannot be made ready, at the start or for a reload.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// A file of the topology is wrong.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A cost or an adjustment is wrong.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A socket cannot be opened.
    #[error("oracle.listen: {0}")]
    Bind(#[from] udp::BindError),
    /// Threads that answer cannot be started.
    #[error(transparent)]
    Workers(#[from] udp::StartError),
    /// A live feed cannot be started.
    #[error(transparent)]
    Feeds(#[from] feeds::StartError),
    /// The program of the driver refuses the settings.
    #[error(transparent)]
    Choose(#[from] xdp::ChooseError),
    /// The filter cannot be put before the sockets.
    #[error("oracle.limit: cannot put the filter before the sockets: {0}")]
    Filter(io::Error),
}

/// The oracle did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A part that a reload makes ready too.
    #[error(transparent)]
    Part(#[from] PartError),
    /// The program of the driver cannot be loaded.
    #[error("oracle.mode: {0}")]
    Program(#[from] datapath::oracle::LoadError),
    /// An interface cannot answer.
    #[error("oracle.interfaces: {0}")]
    Interface(#[from] xdp::InterfaceError),
    /// ALTO cannot be served.
    #[error(transparent)]
    Alto(#[from] alto::server::StartError),
    /// The system has no thread left.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// A changed configuration could not be applied; the old one stays in force.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// A part that the start makes ready too.
    #[error(transparent)]
    Part(#[from] PartError),
    /// A file of ALTO's cannot be used.
    #[error("oracle.alto: {0}")]
    Renew(#[from] alto::server::RenewError),
    /// What is only opened at the start has changed.
    #[error("oracle.{0} changed: restart the daemon to apply")]
    Restart(&'static str),
    /// The service was stopped.
    #[error("the oracle was stopped")]
    Stopped,
}

/// A request on the control socket failed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// A router or link is not known by this name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The network as it is known does not allow it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A value is out of range.
    #[error("{0}")]
    Value(String),
    /// The files cannot be read again.
    #[error("nothing was changed: {0}")]
    Reload(job::Error),
    /// The dump cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    Dump {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Nothing has been published yet.
    #[error("the topology files are still being read: try again in a moment")]
    Loading,
    /// The service was stopped.
    #[error("the oracle was stopped")]
    Stopped,
}
