//! Where masked packets go: files, a pipe, or a TAP device.
//!
//! ```text
//! packet -> pcapng -> one file, or one after the other   --write
//!                  -> whoever reads the pipe now         --fifo
//!        -> a frame that an interface receives           --tap
//! ```
//!
//! A pipe without a reader and a device that is down lose packets, which are counted: the engine goes on.

mod device;
mod files;
mod pipe;

pub use device::Device;
pub use files::{Files, Rotation};
pub use pipe::Pipe;

use crate::machine::Link;
use capture::pcapng::{self, Medium, Record};
use datapath::{mask::Direction, tap::OpenError};
use serde::Serialize;
use std::{io, path::PathBuf, time::SystemTime};

/// A masked packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Nanoseconds since 1970, as the policy leaves them.
    pub at_ns: u64,
    /// Bytes that it had on the wire.
    pub length: u32,
    /// Whether it came in by the interface or went out.
    pub direction: Direction,
    /// What a file says beside it.
    pub comment: Option<&'a str>,
    /// What is left of it.
    pub bytes: &'a [u8],
}

/// What a stream of pcapng says before its first packet.
#[derive(Clone, Debug)]
pub struct Head {
    /// What it says of itself, in the first block: [`crate::file::Job::record`].
    pub record: String,
    /// What packets begin with.
    pub link: Link,
    /// Most bytes of a packet.
    pub snap: u32,
    /// What was comment beside a packet last: it is so for those that follow, also in another file.
    comment: Option<String>,
    /// Whether the next packet that is written is to say it: a file's first one, and the first one behind a change.
    is_due: bool,
}

impl Head {
    /// Of packets that begin like this and have so many bytes at most.
    pub fn new(record: String, link: Link, snap: u32) -> Self {
        Self { record, link, snap, comment: None, is_due: true }
    }

    fn medium(&self) -> Medium {
        match self.link {
            Link::Ethernet => Medium::Ethernet,
            Link::Ip => Medium::Ip,
        }
    }

    /// The section and its interface, which has no name, as in masked files.
    fn blocks(&mut self) -> Vec<u8> {
        self.is_due = true;
        let mut out = Vec::new();
        pcapng::section(&mut out, concat!("nigh ", env!("CARGO_PKG_VERSION")), Some(&self.record));
        pcapng::interface(&mut out, None, self.medium(), self.snap);
        out
    }

    /// Remembers what a packet says, which may get lost itself.
    fn hear(&mut self, packet: &Packet<'_>) {
        if let Some(comment) = packet.comment {
            self.comment = Some(comment.to_owned());
            self.is_due = true;
        }
    }

    /// Appends a packet's block.
    fn packet(&mut self, out: &mut Vec<u8>, packet: &Packet<'_>) {
        self.hear(packet);
        let comment = self.comment.as_deref().filter(|_| self.is_due);
        let record = Record {
            interface: 0,
            time: packet.at_ns,
            direction: Some(match packet.direction {
                Direction::In => pcapng::Direction::Inbound,
                Direction::Out => pcapng::Direction::Outbound,
            }),
            medium: self.medium(),
            length: packet.length.max(packet.bytes.len() as u32),
            bytes: packet.bytes,
            comment,
        };
        pcapng::packet(out, record);
        self.is_due = false;
    }
}

/// Packets have nowhere to go.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// A file or pipe cannot be made or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// There is something else of that name.
    #[error("{} is not a pipe: give another name, or remove it", .0.display())]
    NoPipe(PathBuf),
    /// A pipe may have no reader.
    #[error("{} is a pipe: give it to --fifo, which does not wait for its reader", .0.display())]
    Pipe(PathBuf),
    /// The name is none of a device.
    #[error(
        "{0:?} is not the name of a TAP device: 1 to 15 letters and digits, without '/' and '%'"
    )]
    Name(String),
    /// Stdout is one stream.
    #[error("stdout cannot be rotated: give a file")]
    Rotated,
    /// There is no TAP device.
    #[error(transparent)]
    Tap(#[from] OpenError),
    /// It cannot be set up, or is gone.
    #[error("TAP device {name}: {source}")]
    Device {
        /// Its name.
        name: String,
        /// The system's reason.
        source: io::Error,
    },
}

/// Makes a file's error of the system's.
fn failed(path: &std::path::Path) -> impl Fn(io::Error) -> OutputError {
    move |source| OutputError::File { path: path.to_owned(), source }
}

/// What happened to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// Packets that were written.
    pub packets: u64,
    /// Their bytes, without what a file's format adds.
    pub bytes: u64,
    /// Lost, since the file could not be written.
    pub unwritten: u64,
    /// Lost, since nobody read the pipe.
    pub no_reader: u64,
    /// Lost, since the pipe's reader was too slow.
    pub slow_reader: u64,
    /// Lost, since they are too short for a frame.
    pub short: u64,
    /// Lost, since they are too long for a frame.
    pub long: u64,
    /// Lost, since the TAP device was down or the kernel had no memory.
    pub refused: u64,
}

impl Statistics {
    fn count(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

/// Where packets go.
#[derive(Debug)]
pub enum Output {
    /// To files, or stdout.
    Files(Files),
    /// To whoever reads a pipe.
    Pipe(Pipe),
    /// To an interface.
    Tap(Device),
}

impl Output {
    /// Hands a packet on, at the latest when [`Self::flush`] is called.
    ///
    /// # Errors
    /// When nothing more can be written: what is lost on the path is counted.
    pub fn packet(&mut self, packet: &Packet<'_>) -> Result<(), OutputError> {
        match self {
            Self::Files(files) => files.packet(packet),
            Self::Pipe(pipe) => pipe.packet(packet),
            Self::Tap(device) => device.packet(packet),
        }
    }

    /// Writes what waits, looks at the clock and for readers; to be called some times a second.
    ///
    /// # Errors
    /// When nothing more can be written.
    pub fn flush(&mut self) -> Result<(), OutputError> {
        match self {
            Self::Files(files) => files.flush(SystemTime::now()),
            Self::Pipe(pipe) => pipe.flush(),
            Self::Tap(_) => Ok(()),
        }
    }

    /// What happened to the packets so far.
    pub fn statistics(&self) -> Statistics {
        match self {
            Self::Files(files) => files.statistics(),
            Self::Pipe(pipe) => pipe.statistics(),
            Self::Tap(device) => device.statistics(),
        }
    }

    /// Writes what waits; a pipe's reader has a second to take it. What happened to all packets, and why if
    /// they could not be written.
    pub fn end(self) -> (Statistics, Result<(), OutputError>) {
        match self {
            Self::Files(mut files) => {
                let written = files.write();
                (files.statistics(), written)
            }
            Self::Pipe(pipe) => pipe.end(),
            Self::Tap(device) => (device.statistics(), Ok(())),
        }
    }
}
