//! Real clients and servers of file sharing, chat and file transfer, each behind a guard, and the
//! few that Debian does not have as scripts of our own.
//!
//! All of them keep their files in a temporary folder of their own and talk to nothing but what the
//! namespace reaches; finding peers through outside services is switched off.

mod amule;
mod aria2;
mod clamd;
mod eiskalt;
mod libtorrent;
mod ngircd;
mod opentracker;
mod prosody;
mod script;
mod torrent;
mod transmission;
mod uhub;

pub use amule::{Amule, Ed2kServer};
pub use aria2::Aria2;
pub use clamd::{Clamd, eicar};
pub use eiskalt::Eiskalt;
pub use libtorrent::LibTorrent;
pub use ngircd::Ngircd;
pub use opentracker::OpenTracker;
pub use prosody::Prosody;
pub use script::Script;
pub use torrent::{Torrent, noise};
pub use transmission::Transmission;
pub use uhub::Uhub;

use crate::{Error, LIMIT, Process, wait_until};

/// How much BitTorrent hides itself from who only looks at a connection's first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// Connections are plain.
    Never,
    /// Message stream encryption with RC4, and nothing else is accepted.
    Always,
}

/// What a BitTorrent client does beside connections over TCP.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The port for TCP, and for UDP where it does that.
    pub port: u16,
    /// Whether connections are hidden.
    pub encryption: Encryption,
    /// Whether it asks and serves the distributed table; with the node that it begins at.
    pub dht: Option<String>,
    /// Whether it looks for peers on the link (local service discovery).
    pub discovery: bool,
    /// Whether it uses uTP (only Transmission has it).
    pub utp: bool,
}

impl Peer {
    /// Plain connections over TCP on a port, and nothing else.
    pub fn new(port: u16) -> Self {
        Self { port, encryption: Encryption::Never, dht: None, discovery: false, utp: false }
    }

    /// Nothing but hidden connections.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.encryption = Encryption::Always;
        self
    }

    /// With the distributed table, whose first node is `ADDRESS:PORT`.
    #[must_use]
    pub fn dht(mut self, first: &str) -> Self {
        self.dht = Some(first.to_owned());
        self
    }

    /// With local service discovery.
    #[must_use]
    pub fn discovery(mut self) -> Self {
        self.discovery = true;
        self
    }

    /// With uTP.
    #[must_use]
    pub fn utp(mut self) -> Self {
        self.utp = true;
        self
    }
}

/// Waits until a program serves; its output is in the error when it ends instead.
fn serves(
    what: &str,
    process: &mut Process,
    mut serving: impl FnMut(&Process) -> bool,
) -> Result<(), Error> {
    let mut ended = false;
    let up = wait_until(what, LIMIT, || {
        ended = process.ended().is_some();
        ended || serving(process)
    });
    match up {
        Ok(_) if !ended => Ok(()),
        _ => {
            let wrote = format!("{}{}", process.stdout(), process.stderr());
            Err(Error::new(format!("starting {what}"), wrote))
        }
    }
}
