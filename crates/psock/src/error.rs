//! What can go wrong, one type an operation.

use crate::{Endpoint, core::frame::FrameError, security::SecurityError};
use std::{io, net::SocketAddr, time::Duration};

/// Why a session ended without having brought everything to both ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// No path has worked for the configured time.
    #[error("no path to the peer has worked for {} s", .0.as_secs_f64())]
    AllPathsDead(Duration),
    /// The peer no longer knows the session: it was ended or started again.
    #[error("the peer no longer knows this session")]
    Unknown,
    /// The peer ended the session, or its application is gone and did not read everything.
    #[error("the peer ended the session: {0}")]
    Peer(EndReason),
    /// This end's application ended the session, or is gone and did not read everything.
    #[error("this end ended the session: {0}")]
    Here(EndReason),
    /// The peer sent what the protocol does not allow.
    #[error("the peer violated the protocol: {0}")]
    Violation(String),
}

/// Why one end ends a session before its time; the other end learns it when a path is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndReason {
    /// The application gave the stream up, or is gone and has not read everything.
    #[error("its application aborted the stream")]
    Aborted,
    /// The other end broke the protocol.
    #[error("it detected a protocol violation")]
    Violation,
    /// No path has worked for the configured time.
    #[error("no path worked for too long")]
    AllPathsDead,
    /// The end is about to stop.
    #[error("it stops")]
    Stopping,
    /// A reason that this version does not know.
    #[error("reason {0}")]
    Other(u16),
}

impl From<SessionError> for io::Error {
    fn from(error: SessionError) -> Self {
        let kind = match &error {
            SessionError::AllPathsDead(_) => io::ErrorKind::TimedOut,
            SessionError::Unknown | SessionError::Peer(_) => io::ErrorKind::ConnectionReset,
            SessionError::Here(_) => io::ErrorKind::ConnectionAborted,
            SessionError::Violation(_) => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}

/// Why no session could be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The configuration cannot be used.
    #[error("the configuration: {0}")]
    Config(&'static str),
    /// Keys or certificates cannot be used.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// A file, thread or socket could not be made.
    #[error("preparing: {0}")]
    System(#[from] io::Error),
    /// No path works; this is the error of the last one.
    #[error("no path works; {path}: {}", self.last())]
    NoPath {
        /// How long was tried.
        limit: Duration,
        /// The path that is spoken of.
        path: String,
        /// What was wrong with it.
        source: PathError,
    },
    /// The peer takes no session now.
    #[error("{peer} refuses: {reason}")]
    Refused {
        /// Who refused.
        peer: SocketAddr,
        /// Why.
        reason: Refusal,
    },
}

impl ConnectError {
    /// The error of the path in question.
    fn last(&self) -> String {
        match self {
            Self::NoPath { limit, source: PathError::TimedOut, .. } => {
                format!("no answer within {} s", limit.as_secs_f64())
            }
            Self::NoPath { source, .. } => source.to_string(),
            _ => String::new(),
        }
    }
}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> Self {
        let kind = match &error {
            ConnectError::Config(_) | ConnectError::Security(_) => io::ErrorKind::InvalidInput,
            ConnectError::System(error) => error.kind(),
            ConnectError::NoPath { source: PathError::Io(error), .. } => error.kind(),
            ConnectError::NoPath { source: PathError::TimedOut, .. } => io::ErrorKind::TimedOut,
            ConnectError::NoPath { .. } => io::ErrorKind::InvalidData,
            ConnectError::Refused { .. } => io::ErrorKind::ConnectionRefused,
        };
        Self::new(kind, error)
    }
}

/// Why a connection could not be made or has ended.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// The system says so.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The peer could not be authenticated, or does not speak TLS.
    #[error("TLS: {}", tls(.0))]
    Tls(#[from] rustls::Error),
    /// It took too long.
    #[error("timed out")]
    TimedOut,
    /// What came is not of the protocol.
    #[error("the protocol: {0}")]
    Protocol(String),
    /// What came is no frame.
    #[error("the protocol: {0}")]
    Frame(#[from] FrameError),
    /// The peer refused the connection.
    #[error("refused: {0}")]
    Refused(Refusal),
}

/// What TLS says, in words for those who have chosen keys.
fn tls(error: &rustls::Error) -> String {
    use rustls::{AlertDescription, CertificateError, Error};
    match error {
        // Only the check of pre-shared keys says so.
        Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure) => {
            "the other end has another key".to_owned()
        }
        Error::AlertReceived(AlertDescription::AccessDenied) => {
            "the other end does not accept this end's key".to_owned()
        }
        Error::InvalidMessage(_) => format!("the other end does not speak it ({error})"),
        error => error.to_string(),
    }
}

/// Why a listener refuses a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// It speaks another version of the protocol.
    #[error("it speaks another version of the protocol")]
    Version,
    /// It does not know the driver.
    #[error("it does not know the driver")]
    Driver,
    /// The session to join is not there, or the proof of its secret is wrong.
    #[error("no such session, or a wrong proof of its secret")]
    Session,
    /// It has as many sessions or connections as it allows.
    #[error("too many sessions or connections")]
    Limit,
    /// It takes no new sessions.
    #[error("it takes no new sessions")]
    Stopping,
    /// What came is not of the protocol.
    #[error("it detected a protocol violation")]
    Violation,
    /// A reason that this version does not know.
    #[error("reason {0}")]
    Other(u16),
}

/// Why a listener could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The configuration cannot be used.
    #[error("the configuration: {0}")]
    Config(&'static str),
    /// Keys or certificates cannot be used.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// An address cannot be bound.
    #[error("listening on {endpoint}: {source}")]
    Address {
        /// Where.
        endpoint: Endpoint,
        /// The system's error.
        source: io::Error,
    },
    /// A thread or file could not be made.
    #[error("preparing: {0}")]
    System(#[from] io::Error),
}

impl From<BindError> for io::Error {
    fn from(error: BindError) -> Self {
        let kind = match &error {
            BindError::Config(_) | BindError::Security(_) => io::ErrorKind::InvalidInput,
            BindError::Address { source, .. } | BindError::System(source) => source.kind(),
        };
        Self::new(kind, error)
    }
}

/// Why no session was accepted.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// The listener is set to not wait, and no session waits.
    #[error("no session waits to be accepted")]
    WouldBlock,
    /// The system says so.
    #[error("accepting: {0}")]
    System(#[from] io::Error),
}

impl From<AcceptError> for io::Error {
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::WouldBlock => Self::new(io::ErrorKind::WouldBlock, error),
            AcceptError::System(error) => error,
        }
    }
}
