//! Errors of a throughput test.

use super::control::{ControlError, Message};
use crate::tools::context::{Context, Forbidden, Refusal};
use config::Problem;
use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// Nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value is out of its limits.
    #[error("{0}")]
    Settings(Problem),
    /// The address did not agree.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The other station is not there.
    #[error("connecting to {to} for a throughput test: {source}")]
    Connect {
        /// Where to.
        to: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// The other station does not take part.
    #[error("the other station refuses the throughput test: {reason}")]
    Refused {
        /// Its words.
        reason: String,
    },
    /// Nobody came to the test that was accepted, or somebody did not go on.
    #[error(
        "the throughput test did not finish within {limit:?}: the other station stopped responding"
    )]
    Timeout {
        /// How long was waited.
        limit: Duration,
    },
    /// The connection for control failed.
    #[error("the other station aborted the throughput test: {0}")]
    Control(io::Error),
    /// What the other station says is not of the protocol.
    #[error(
        "the other station sent what is not a message of a throughput test: {0}; is it of another version of nigh?"
    )]
    Protocol(#[from] ControlError),
    /// A message at the wrong time.
    #[error("the other station sent `{word}` unexpectedly; is it of another version of nigh?")]
    Unexpected {
        /// Which message.
        word: &'static str,
    },
    /// The client wants another test than was accepted.
    #[error("the other station requested a throughput test other than the accepted one")]
    NotAccepted,
    /// The kernel does not have it.
    #[error(
        "congestion control {name}: {source}; see net.ipv4.tcp_allowed_congestion_control for those \
         that may be used"
    )]
    Congestion {
        /// Its name.
        name: String,
        /// The system's answer.
        source: io::Error,
    },
    /// Data connections failed before the time was over.
    #[error("data could not be sent to or received from {peer}: {source}")]
    Data {
        /// The other station.
        peer: IpAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// No psock session can be taken.
    #[error("listening for a psock session: {0}")]
    Listen(psock::BindError),
    /// No psock session was taken.
    #[error("taking a psock session: {0}")]
    Accept(psock::AcceptError),
    /// No psock session was made.
    #[error("connecting a psock session: {0}")]
    Session(psock::ConnectError),
    /// The sender closed its connections.
    #[error("the sender ended before the time was over")]
    Ended,
}

impl Error {
    /// An unexpected message, counted.
    pub(super) fn unexpected(message: &Message, context: &Context) -> Self {
        context.counters.refuse(Refusal::Control);
        Self::Unexpected { word: message.word() }
    }
}

/// No test can be served.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// A value is out of its limits.
    #[error("{0}")]
    Settings(Problem),
    /// No socket.
    #[error("listening at {address} for a throughput test: {source}")]
    Listen {
        /// Where.
        address: IpAddr,
        /// The system's answer.
        source: io::Error,
    },
}
