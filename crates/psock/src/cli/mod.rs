//! `nigh psock`: a file or pipe over several paths, and a forwarder for programs that know TCP only.

mod key;
mod options;
mod progress;
mod proxy;
mod transfer;

pub use options::{EndArgs, SecurityArgs, SessionArgs};

use crate::{AcceptError, BindError, ConnectError, OptionError, SessionError};
use clap::{Args, Subcommand};
use std::{
    io::{self, Write},
    net::SocketAddr,
    path::PathBuf,
};

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Send a file, or stdin, as one stream over all paths
    ///
    /// Ends with 0 when the other end has written everything. One end connects over its paths
    /// (--path), the other listens (--listen); which of them sends does not matter.
    #[command(after_help = SEND_EXAMPLES)]
    Send(SendArgs),
    /// Receive a stream into a file or to stdout
    ///
    /// A file gets its name only when it is complete; before that it is called FILE.part. A pipe or
    /// device of that name is written to as it is.
    #[command(after_help = RECV_EXAMPLES)]
    Recv(RecvArgs),
    /// Forward TCP connections: each becomes a session over all paths, and TCP again behind them
    #[command(after_help = PROXY_EXAMPLES)]
    Proxy(ProxyArgs),
    /// Make a key for both ends: into a new file that only its owner can read, or to stdout
    #[command(
        after_help = "Example:\n  nigh psock key both-ends.key && scp -p both-ends.key other-end:"
    )]
    Key(KeyArgs),
}

const SEND_EXAMPLES: &str = "\
Examples:
  nigh psock send big.iso --key both-ends.key --path 192.0.2.1:7000 --path 198.51.100.1:7000
  tar c photos | nigh psock send --key both-ends.key \\
    --path '%eth0>192.0.2.1:7000' --path '%eth1>192.0.2.1:7000'
  nigh psock send big.iso --key both-ends.key --listen 0.0.0.0:7000";

const RECV_EXAMPLES: &str = "\
Examples:
  nigh psock recv big.iso --key both-ends.key --listen 192.0.2.1:7000 --listen 198.51.100.1:7000
  nigh psock recv --key both-ends.key --listen 0.0.0.0:7000 | tar x
  nigh psock recv big.iso --key both-ends.key --listen 0.0.0.0:7000 --json > counters.json";

const PROXY_EXAMPLES: &str = "\
Examples:
  nigh psock proxy --key both-ends.key --listen 0.0.0.0:7000 --to 127.0.0.1:80
  nigh psock proxy --key both-ends.key --from 127.0.0.1:8080 \\
    --path 192.0.2.1:7000 --path 198.51.100.1:7000
  curl http://127.0.0.1:8080/          # where the second of them runs";

/// Arguments of `nigh psock send`.
#[derive(Clone, Debug, Args)]
pub struct SendArgs {
    /// The file to send; `-` is stdin
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
    /// Which end this is.
    #[command(flatten)]
    pub end: EndArgs,
    /// Which counters to show.
    #[command(flatten)]
    pub show: ShowArgs,
}

/// Arguments of `nigh psock recv`.
#[derive(Clone, Debug, Args)]
pub struct RecvArgs {
    /// The file to write; `-` is stdout
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
    /// Which end this is.
    #[command(flatten)]
    pub end: EndArgs,
    /// Which counters to show.
    #[command(flatten)]
    pub show: ShowArgs,
}

/// The progress of a transfer.
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    /// Print the counters, in total and of each connection, as JSON: to stdout, or to stderr if
    /// stdout has the data
    #[arg(long)]
    pub json: bool,
    /// Show no progress; by default it is shown if stderr is a terminal
    #[arg(short, long)]
    pub quiet: bool,
}

/// Arguments of `nigh psock proxy`.
#[derive(Clone, Debug, Args)]
pub struct ProxyArgs {
    /// Address for TCP connections of programs; needs --path
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        conflicts_with = "to",
        requires = "path",
        required_unless_present = "to"
    )]
    pub from: Option<SocketAddr>,
    /// Address to connect to by TCP for each incoming session; needs --listen
    #[arg(long, value_name = "ADDRESS:PORT", requires = "listen")]
    pub to: Option<SocketAddr>,
    /// Which end this is.
    #[command(flatten)]
    pub end: EndArgs,
    /// Print a line of JSON with its counters for each session that has ended
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `nigh psock key`.
#[derive(Clone, Debug, Args)]
pub struct KeyArgs {
    /// The file, which must not exist yet; `-` is stdout
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
    /// Print the result as JSON: the file, or the key
    #[arg(long)]
    pub json: bool,
}

/// `nigh psock` failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// What was chosen cannot be used, such as a file with a key.
    #[error(transparent)]
    Options(#[from] OptionError),
    /// No session could be opened.
    #[error("connecting: {0}")]
    Connect(#[from] ConnectError),
    /// An address cannot be listened at.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// No session came.
    #[error(transparent)]
    Accept(#[from] AcceptError),
    /// The session did not bring everything to the other end.
    #[error("the transfer failed after {bytes} bytes: {source}")]
    Session {
        /// Bytes until then.
        bytes: u64,
        /// Why.
        source: SessionError,
    },
    /// The same, seen where the stream is read or written.
    #[error("the transfer failed after {bytes} bytes: {source}")]
    Stream {
        /// Bytes until then.
        bytes: u64,
        /// Why.
        source: io::Error,
    },
    /// What is to be sent cannot be opened.
    #[error("cannot open {}: {source}", file.display())]
    Open {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file for a key cannot be created.
    #[error("cannot create {}: {source}", file.display())]
    Create {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// What is sent cannot be read.
    #[error("reading {}: {source}", file.display())]
    Read {
        /// The file, `-` for stdin.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// What came cannot be written.
    #[error("writing {}: {source}", file.display())]
    Write {
        /// The file, `-` for stdout.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// TCP cannot be listened at.
    #[error("listening on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A key, thread or socket could not be made.
    #[error("preparing: {0}")]
    System(#[from] io::Error),
}

/// Shows it to whoever watches.
fn log(line: &str) {
    let _ = writeln!(io::stderr(), "nigh: {line}");
}

/// Runs the command; the forwarder runs until it is stopped.
///
/// # Errors
///
/// What went wrong, in one sentence.
pub fn run(command: &Command) -> Result<(), CommandError> {
    match command {
        Command::Send(args) => transfer::send(args),
        Command::Recv(args) => transfer::receive(args),
        Command::Proxy(args) => proxy::run(args),
        Command::Key(args) => key::run(args),
    }
}
