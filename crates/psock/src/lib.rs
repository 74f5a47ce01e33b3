//! psock: one byte stream over several TCP connections, never slower than the best of them.
//!
//! A session is a byte stream in each direction between a connecting and an accepting end. It has one connection
//! for control and one or more for data on each of its paths; all are TCP connections, so nothing in the
//! system or between the ends must know of it. Paths come and go; the streams are exact or end with an
//! error, and never short or wrong without one.
//!
//! ```
//! use psock::{Config, Endpoint, PresharedKey, PsockListener, PsockStream, Security};
//! use std::io::{Read, Write};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Both ends hold the same key; `PresharedKey::from_file` reads it from a file.
//! let config = Config::new(Security::Key(PresharedKey::generate()?));
//!
//! let endpoints: [Endpoint; 2] = ["127.0.0.1:0".parse()?, "127.0.0.2:0".parse()?];
//! let listener = PsockListener::bind(&endpoints, &config)?;
//! let addresses = listener.local_addresses();
//! let receiver = std::thread::spawn(move || -> std::io::Result<String> {
//!     let (mut stream, _peer) = listener.accept()?;
//!     let mut text = String::new();
//!     stream.read_to_string(&mut text)?;
//!     Ok(text)
//! });
//!
//! // Two paths here; in the world each would leave through another interface: "%eth0>192.0.2.1:7000".
//! let mut config = config.clone();
//! config.paths = addresses.into_iter().map(Into::into).collect();
//! let mut stream = PsockStream::connect(&config)?;
//! stream.write_all(b"one stream")?;
//! stream.close()?; // the peer has everything
//! assert_eq!(receiver.join().unwrap()?, "one stream");
//! # Ok(())
//! # }
//! ```
//!
//! For tokio there are [`AsyncPsockStream`] and [`AsyncPsockListener`]; [`splice()`] joins a session with
//! any other stream socket of the process. The protocol's tasks have threads of their own (named `psock`),
//! apart from those of the application, and meet it at a socket pair.
//!
//! Where to read on: [`mod@core`] decides and has no I/O (the wire format in [`core::frame`], the drivers in
//! [`core::driver`]); `session` has the picture of the tasks around it; `handshake` the messages on a
//! connection first; `security` how the ends authenticate each other; `manager` how a session ends.
#![deny(unsafe_code)]

mod buffer;
#[cfg(feature = "c")]
pub mod c;
mod channel;
#[cfg(feature = "cli")]
pub mod cli;
mod config;
mod connect;
mod connection;
pub mod core;
mod counters;
mod dial;
mod error;
mod handshake;
mod listener;
mod manager;
pub mod options;
mod path;
mod process;
mod pump;
mod runtime;
mod security;
mod session;
mod socket;
mod splice;
mod start;
mod status;
mod stream;
mod sys;
mod tls;

pub use crate::core::driver::{DriverName, UnknownDriver};
pub use config::{Config, Limits};
pub use counters::{
    ConnectionCounters, ConnectionState, Counters, ListenerCounters, SessionCounters,
};
pub use error::{
    AcceptError, BindError, ConnectError, EndReason, PathError, Refusal, SessionError,
};
pub use listener::{AsyncPsockListener, PsockListener};
pub use options::{OptionError, Options};
pub use path::{Endpoint, Local, ParsePathError, Path};
pub use process::PerProcess;
pub use runtime::is_protocol_thread;
pub use security::{ParseKeyError, PresharedKey, Security, SecurityError};
pub use splice::{Splice, splice};
pub use stream::{AsyncPsockStream, PsockStream};
