//! Events of a managed flow, and what its manager is set up with.

use crate::{
    chat::Message,
    file_type::{self, Kind},
    stream::Budget,
    torrents::Torrent,
};
use classify::flow::Side;
use config::hex;
use serde::{Deserialize, Deserializer, Serialize};
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
};

/// A file's number within its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
pub struct TransferId(pub u32);

/// What is needed of the further packets of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Interest {
    /// None of them.
    Nothing,
    /// Each, whole.
    All,
    /// Those that reach beyond this sequence number (modulo 2^32), at least from there on.
    SkipTo(u32),
    /// The same, but only their beginnings where these are far behind that number: a message begins soon
    /// behind it, and with a packet. Without a number the beginnings of all.
    Heads(Option<u32>),
}

/// What policy decides of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum FileVerdict {
    /// It passes; its content is not inspected.
    Allow,
    /// Its content is given out as it comes ([`Event::Content`]) and its last packet held until
    /// [`allow`](crate::manage::Manager::allow).
    Scan,
    /// Nothing of it passes that is held; the flow is to be refused.
    Deny,
}

/// What identifies a file's content, as its protocol says before it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
pub enum FileHash {
    /// BitTorrent's info-hash, SHA-1 (BEP 3).
    InfoV1([u8; 20]),
    /// BitTorrent's info-hash, SHA-256 (BEP 52).
    InfoV2([u8; 32]),
    /// eDonkey's, MD4 of MD4s.
    Ed2k([u8; 16]),
    /// SHA-1, Gnutella's `urn:sha1`.
    Sha1([u8; 20]),
    /// Tiger tree hash, Direct Connect's `TTH/`.
    TigerTree([u8; 24]),
}

/// `btih:0123...`, in hexadecimal digits.
impl fmt::Display for FileHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, bytes): (_, &[u8]) = match self {
            Self::InfoV1(bytes) => ("btih", bytes),
            Self::InfoV2(bytes) => ("btmh", bytes),
            Self::Ed2k(bytes) => ("ed2k", bytes),
            Self::Sha1(bytes) => ("sha1", bytes),
            Self::TigerTree(bytes) => ("tth", bytes),
        };
        write!(f, "{name}:{}", hex::encode(bytes))
    }
}

/// A file whose first content byte is at hand, with all that is known of it by then.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct FileNamed {
    /// Its number within the flow.
    pub transfer: TransferId,
    /// Whoever sends it.
    pub from: Side,
    /// Its name, where the protocol says one.
    pub name: Option<String>,
    /// Where it is, as asked for: an HTTP target without its query, an FTP path.
    pub location: Option<String>,
    /// The host that was asked by name, where the protocol says it.
    pub host: Option<String>,
    /// Bytes of the whole file, where the protocol says it.
    pub size: Option<u64>,
    /// Which bytes of it come, where not all do: first and behind the last.
    pub range: Option<(u64, u64)>,
    /// Its type by its first bytes; unknown when these do not come.
    pub kind: Kind,
    /// The media type that its sender says.
    pub media: Option<String>,
    /// The content coding in transfer (`gzip`), when it is; it is not decoded.
    pub coding: Option<String>,
    /// Whether programs that receive it differ on what its content is.
    pub ambiguous: bool,
    /// What identifies its content.
    pub hash: Option<FileHash>,
}

impl FileNamed {
    /// One of which nothing is known but who sends it. Its number is given when it begins.
    pub(crate) fn new(from: Side) -> Self {
        Self {
            transfer: TransferId(0),
            from,
            name: None,
            location: None,
            host: None,
            size: None,
            range: None,
            kind: file_type::UNKNOWN,
            media: None,
            coding: None,
            ambiguous: false,
            hash: None,
        }
    }

    /// Whether only a part of the file comes.
    pub fn is_part(&self) -> bool {
        self.range.is_some_and(|(start, end)| start > 0 || self.size != Some(end))
    }
}

/// An event of a managed flow.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum Event {
    /// A file begins: to be answered by [`Manager::answer`](crate::manage::Manager::answer).
    FileNamed(Box<FileNamed>),
    /// Content of a file that is scanned, in order.
    Content {
        /// Which file.
        transfer: TransferId,
        /// The next bytes.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// The sender of a scanned file of unknown length pauses: a verdict on what came lets that pass.
    Paused {
        /// Which file.
        transfer: TransferId,
        /// Bytes that came so far.
        bytes: u64,
    },
    /// A file is over. When it was scanned, its last packet waits for [`Manager::allow`](crate::manage::Manager::allow).
    FileEnded {
        /// Which file.
        transfer: TransferId,
        /// Content bytes that passed, seen or not.
        bytes: u64,
        /// Whether it came to its end and every byte of it was seen or skipped on purpose.
        complete: bool,
        /// Whether some of it was neither seen nor skipped on purpose.
        missed: bool,
        /// Its hash, when hashes are wanted and all of it was seen.
        sha256: Option<[u8; 32]>,
    },
    /// A block of a torrent that is scanned. Its last packet is held until
    /// [`cleared`](crate::manage::Manager::cleared) for `part`: at once, unless it makes a file whole
    /// ([`Store::block`](crate::torrents::Store::block)).
    Block {
        /// The connection's transfer.
        transfer: TransferId,
        /// The block's own number.
        part: TransferId,
        /// The torrent.
        info_hash: [u8; 20],
        /// Number of the piece.
        index: u32,
        /// Where in the piece it begins.
        begin: u32,
        /// The block; empty where it is of another size than clients ask for, or there was no memory for
        /// it.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// A torrent's metadata passed: in a `.torrent` file or between peers.
    Torrent {
        /// Who sent it.
        from: Side,
        /// What it says.
        torrent: Arc<Torrent>,
    },
    /// A chat event.
    Chat(Message),
    /// Another flow is about to begin, whose content is known beforehand.
    Expect(Expectation),
    /// Something passed that rules about files should have been asked about, and could not be.
    Unread,
}

/// What flows are called that others announce: FTP's data connections, and files over DCC.
pub(crate) const ANNOUNCED: [Application; 2] = ["ftp-data", "dcc"];

/// The name of an application that flows announce.
pub type Application = &'static str;

/// A flow that another one has announced.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Expectation {
    /// Who will open it, where that is known.
    pub client: Option<IpAddr>,
    /// The socket it will be opened to.
    pub server: SocketAddr,
    /// What it will be: `ftp-data`.
    #[serde(deserialize_with = "announced")]
    pub application: Application,
    /// The number of its promise, where that is not at hand: the reader keeps it ([`crate::parser`]).
    pub number: u32,
    /// What it will carry, filled in once that is known.
    #[serde(skip)]
    pub promise: Arc<Promise>,
}

/// The applications that flows announce.
fn announced<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Application, D::Error> {
    let name = String::deserialize(deserializer)?;
    let known = ANNOUNCED.into_iter().find(|known| *known == name);
    known.ok_or_else(|| serde::de::Error::custom("no application that is announced"))
}

/// What an announced flow will carry; its announcer may say it later than its sockets.
#[derive(Debug, Default)]
pub struct Promise {
    /// The file, once it was asked for.
    pub(crate) file: Mutex<Option<Promised>>,
}

/// The file of an announced flow.
#[derive(Clone, Debug)]
pub(crate) struct Promised {
    /// Its path, as asked for; none for a listing, which is no file.
    pub(crate) path: Option<Vec<u8>>,
    /// The address of the host that sends it, where one host alone can.
    pub(crate) sender: Option<IpAddr>,
    /// Where in the file the content begins.
    pub(crate) start: u64,
    /// Its size, if it was stated.
    pub(crate) size: Option<u64>,
}

/// What managers are made with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether packets that may begin a file are held until they were read. Rules that deny files
    /// before their first byte, and scans of files that fit into one packet, need it.
    pub hold: bool,
    /// Whether the content of all files is read for its SHA-256.
    pub hash: bool,
    /// Bytes that one direction keeps out of order.
    pub early_bytes: usize,
    /// Bytes that all streams made with a clone of these settings keep out of order.
    pub budget: Budget,
}

impl Default for Settings {
    /// 1 MiB a direction (100 Mbit/s at 80 ms), 64 MiB in all; nothing held, nothing hashed.
    fn default() -> Self {
        Self { hold: false, hash: false, early_bytes: 1 << 20, budget: Budget::new(64 << 20) }
    }
}
