//! psock: one byte stream over several TCP connections, never slower than the best of them.
#![deny(unsafe_code)]

mod asynchronous;
mod buffer;
mod channel;
#[cfg(feature = "cli")]
pub mod cli;
mod config;
mod connect;
mod connection;
pub mod core;
mod counters;
mod dial;
mod handshake;
mod manager;
mod pump;
mod sys;

mod error;
mod listener;
pub mod options;
mod path;
mod runtime;
mod security;
mod session;
mod socket;
mod splice;
mod status;
mod stream;
mod tls;

pub use crate::core::driver::{DriverName, UnknownDriver};
pub use asynchronous::AsyncPsockStream;
pub use config::{Config, Limits, Security};
pub use counters::{
    ConnectionCounters, ConnectionState, Counters, ListenerCounters, SessionCounters,
};
pub use error::{
    AcceptError, BindError, ConnectError, EndReason, PathError, Refusal, SessionError,
};
pub use listener::{AsyncPsockListener, PsockListener};
pub use options::{OptionError, Options};
pub use path::{Local, ParsePathError, Path};
pub use security::{ParseKeyError, PresharedKey, SecurityError};
pub use splice::{Splice, splice};
pub use stream::PsockStream;
