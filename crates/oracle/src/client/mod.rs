//! Clients of the oracle over Proxidor: `nigh oracle rank`, `ping`, `load` and `flood`.
//!
//! [`rank`] asks once and prints the answer. [`ping`] asks repeatedly with random candidates and
//! reads like ping. [`load`] is the regulated clients of *The P2P-Oracle Server* (section 5.3.1): each sends its next
//! request a delay after its reply, or after its timeout, so that together they slow down as the
//! server does. [`flood`] waits for nothing. The last two only aim at loopback, private and
//! documentation space unless --allow names more, and always end by themselves.

pub mod exchange;
pub mod flood;
mod interrupt;
pub mod load;
pub mod ping;
mod questions;
pub mod rank;
pub mod summary;

use crate::proxidor::{self, Key, Rcode, message::QueryError};
use clap::{Args, Subcommand};
use ipnet::IpNet;
use job::command::{Exit, PrintError};
use questions::Questions;
use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket},
    time::Duration,
};

/// The clients among the sub-commands of `nigh oracle`.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Ask for a ranking and print it, best first
    Rank(rank::Args),
    /// Send requests with random candidates, one after the other, and print the time of each reply
    Ping(ping::Args),
    /// Run many clients that wait for their replies, and print a table of their results
    Load(load::Args),
    /// Send requests without waiting for replies
    Flood(flood::Args),
}

/// Which oracle is asked, and how.
#[derive(Clone, Debug, Args)]
pub struct ServerArgs {
    /// The oracle's address or name
    #[arg(short, long, value_name = "HOST", default_value = "127.0.0.1")]
    pub server: String,
    /// Its UDP port
    #[arg(short, long, value_name = "PORT", default_value_t = proxidor::PORT)]
    pub port: u16,
    /// Ask for this metric, by its number in the server's configuration [default: the server's choice]
    #[arg(short, long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(0..12))]
    pub metric: Option<u8>,
    /// A file with the key to authenticate with, 32 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    pub key: Option<std::path::PathBuf>,
    /// The old name of `--key`, refused
    #[arg(long, hide = true, value_parser = config::renamed_flag("--key"))]
    pub key_file: Option<String>,
}

/// Which oracle is asked repeatedly, and for how much.
#[derive(Clone, Debug, Args)]
pub struct RandomArgs {
    /// Which oracle is asked.
    #[command(flatten)]
    pub server: ServerArgs,
    /// Random IPv4 addresses in each request
    #[arg(long, value_name = "ADDRESSES", default_value_t = 100,
          value_parser = clap::value_parser!(u16).range(1..=363))]
    pub candidates: u16,
}

impl RandomArgs {
    /// Other requests at each call.
    fn questions(&self, server: &Server) -> Result<Questions, ClientError> {
        Questions::random(server, self.candidates.into(), rand::random())
    }
}

/// A client could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The name has no address.
    #[error("{host}: {why}")]
    Name {
        /// As given.
        host: String,
        /// The resolver's error.
        why: String,
    },
    /// The key cannot be read.
    #[error("the key in {}: {why}", .file.display())]
    Key {
        /// Where it should be.
        file: std::path::PathBuf,
        /// What is wrong.
        why: String,
    },
    /// There is nothing to ask for.
    #[error(transparent)]
    Question(#[from] QueryError),
    /// A word that was to be ranked is no candidate.
    #[error(transparent)]
    Candidate(#[from] crate::candidate::NotACandidate),
    /// A load aimed at a target that is not allowed.
    #[error(transparent)]
    Target(#[from] config::target::Refused),
    /// No answer came.
    #[error(
        "no reply from {server} after {tries} tries of {timeout:?} each: is an oracle there, and is \
         this source within its rate?"
    )]
    NoReply {
        /// Who was asked.
        server: SocketAddr,
        /// How often.
        tries: u32,
        /// For how long each.
        timeout: Duration,
    },
    /// The answer was an error.
    #[error("{server} answers: {}{}", .rcode.name(), advice(*.rcode))]
    Refused {
        /// Who was asked.
        server: SocketAddr,
        /// Its code.
        rcode: Rcode,
    },
    /// The socket does not work.
    #[error("asking {server}: {source}")]
    Socket {
        /// Who was asked.
        server: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A thread, a runtime or a file is not available.
    #[error("{0}")]
    System(#[from] io::Error),
    /// The result cannot be printed.
    #[error(transparent)]
    Print(#[from] PrintError),
}

/// Possible reasons for a missing reply.
const NO_REPLY: &str =
    "lost in the network, or this source is over its rate at the server (oracle.limit)";

/// What may be done about an error code, for the end of a sentence.
fn advice(rcode: Rcode) -> &'static str {
    match rcode {
        Rcode::NOT_SUPPORTED => ": it has no such metric, or no key (oracle.authentication)",
        Rcode::REFUSED => ": this client may not name a source there (oracle.sources)",
        Rcode::NOT_AUTHENTICATED => ": the key is wrong, or needed and missing (--key)",
        Rcode::BUSY => ": it is still reading its topology; try again in a moment",
        _ => "",
    }
}

/// The oracle that is asked, found and ready.
#[derive(Clone, Debug)]
pub struct Server {
    /// Where it is.
    pub address: SocketAddr,
    /// The key, where requests are authenticated.
    pub key: Option<Key>,
    /// The metric that is asked for; none: the server's default.
    pub metric: Option<u8>,
}

impl ServerArgs {
    /// Finds the server's address and reads the key.
    ///
    /// # Errors
    /// The name has no address, or the file no key.
    pub fn server(&self) -> Result<Server, ClientError> {
        let unknown = |why| ClientError::Name { host: self.server.clone(), why };
        let address = (self.server.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|error| unknown(error.to_string()))?
            .next()
            .ok_or_else(|| unknown("the name has no address".into()))?;
        let key = self.key.as_ref().map(|file| {
            let wrong = |why| ClientError::Key { file: file.clone(), why };
            let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
            text.trim().parse::<Key>().map_err(|error| wrong(error.to_string()))
        });
        Ok(Server { address, key: key.transpose()?, metric: self.metric })
    }
}

/// A socket that only the server can send to.
fn connect(server: &Server) -> Result<UdpSocket, ClientError> {
    let any: SocketAddr = match server.address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let open = || {
        let socket = UdpSocket::bind(any)?;
        socket.connect(server.address)?;
        Ok(socket)
    };
    open().map_err(|source| ClientError::Socket { server: server.address, source })
}

/// Refuses to aim a load at a target that is not allowed.
fn check_target(server: &Server, allow: &[IpNet]) -> Result<(), ClientError> {
    Ok(config::target::check(server.address.ip(), allow)?)
}

/// Runs the command and prints the result; fails where no answer came.
///
/// # Errors
/// See [`ClientError`].
pub fn run(command: &Command) -> Result<Exit, ClientError> {
    match command {
        Command::Rank(args) => rank::run(args),
        Command::Ping(args) => ping::run(args),
        Command::Load(args) => load::run(args),
        Command::Flood(args) => flood::run(args),
    }
}
