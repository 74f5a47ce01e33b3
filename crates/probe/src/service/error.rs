//! What can go wrong with a running station: one error for each operation.

use crate::{
    archive, clock,
    config::{TargetError, What},
    delay,
    station::PeerError,
};
use config::token::TokenError;
use std::{io, net::SocketAddr};

/// The station did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Keys or certificates cannot be used.
    #[error("probe.security: {0}")]
    Security(#[from] psock::SecurityError),
    /// The control address cannot be bound.
    #[error("cannot accept other stations at {address}: {source}; see probe.station.control")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The archive cannot be opened.
    #[error("probe.archive: {0}")]
    Archive(#[from] archive::OpenError),
    /// The clock cannot be watched.
    #[error("cannot watch the clock: {0}")]
    Clock(#[from] clock::StartError),
    /// The token of requests by HTTP cannot be used.
    #[error("probe.request.token: {0}")]
    Token(#[from] TokenError),
    /// The reflector cannot be put into the driver.
    #[error(transparent)]
    Driver(#[from] super::driver::DriverError),
    /// No sockets or thread for delay sessions.
    #[error("probe.reflector: {0}")]
    Delay(#[from] delay::StartError),
    /// The system has no thread left, or refuses something alike.
    #[error("cannot start a thread: {0}")]
    Runtime(io::Error),
}

/// A changed configuration could not be applied; the old one stays in force.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// Keys or certificates cannot be used.
    #[error("probe.security: {0}")]
    Security(psock::SecurityError),
    /// The token of requests by HTTP cannot be used.
    #[error("probe.request.token: {0}")]
    Token(#[from] TokenError),
    /// What is only opened at the start has changed.
    #[error("probe.{0} changed: restart the daemon to apply")]
    Restart(&'static str),
}

/// A request on the control socket could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Where to is not known or not permitted.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A value that is not permitted.
    #[error("{0}")]
    Value(String),
    /// Another test has the time, and keeps it.
    #[error(
        "a conflicting test runs or is planned: try again in {}",
        humantime::format_duration(std::time::Duration::from_secs(.0.as_secs() + 1))
    )]
    Busy(std::time::Duration),
    /// As many tests run as may at once.
    #[error("as many tests run as probe.limit.tests permits: try again later")]
    TooMany,
    /// The service was stopped.
    #[error("the station was stopped")]
    Stopped,
}

/// What was measured cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ShowError {
    /// The archive cannot be read.
    #[error(transparent)]
    Query(#[from] archive::QueryError),
    /// The daemon stops.
    #[error("the station was stopped")]
    Stopped,
}

/// A request by HTTP was refused.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// They are not taken.
    #[error("this station takes no requests over HTTP; see probe.request")]
    Off,
    /// Without the token.
    #[error("send the station's token: `Authorization: Bearer TOKEN`")]
    Token,
    /// Not a test.
    #[error("this is not a test: {0}")]
    Malformed(String),
    /// A test that may not be asked for like this.
    #[error("{0} may not be requested over HTTP; see probe.request.may")]
    NotPermitted(What),
    /// The station cannot do it.
    #[error(transparent)]
    Control(#[from] ControlError),
}

impl RequestError {
    /// The word for it, as in metrics.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Token => "token",
            Self::Malformed(_) => "malformed",
            Self::NotPermitted(_) => "not-permitted",
            Self::Control(_) => "refused",
        }
    }
}

/// A test could not be done; the record has the reason.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    /// The other station does not take part.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// No common address.
    #[error("{0} or this station has no address of this family")]
    Family(String),
    /// The test itself.
    #[error("{0}")]
    Test(String),
}
