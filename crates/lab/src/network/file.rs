//! A network as a file: its bytes as they are in memory, behind a head.
//!
//! ```text
//!  0  "nighlab\x1a"                      32  how many arrays follow in the list
//!  8  version: 1                         36  zero
//! 12  CRC-32 of all bytes from 16 on     64  for each array, 24 bytes: where it begins, how many
//! 16  length of the file, 8 bytes            numbers it has (8 bytes each), bytes a number, 7 zero
//! 24  nodes                              then the arrays (layout.rs), each at a multiple of 8
//! 28  directed links
//! ```
//!
//! Numbers are little-endian, of 4 bytes unless stated otherwise. The same network always makes the
//! same bytes. All of them are read once when the file is opened, for the checksum and by [`check`]: no
//! number of it leads outside later. Whoever makes a file on purpose that is wrong otherwise gets
//! wrong paths, but no panic.

use super::Network;
use super::check::{self, Wrong};
use super::column::{Column, SPARE};
use super::layout::{HEAD, Layout, ROW, SECTIONS, Section};
use super::storage::Storage;
use datapath::mapped::Mapped;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

const MAGIC: &[u8; 8] = b"nighlab\x1a";
/// Another number for each change after which older programs would misread files.
const VERSION: u32 = 1;
/// What the checksum is about begins here.
const COVERED: usize = 16;

/// Why bytes are no network.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum FormatError {
    /// They do not begin as such files do.
    #[error("this is not a network file")]
    Magic,
    /// A later program made them.
    #[error("the file has version {0}, this program reads version {VERSION} only: use a newer one")]
    Version(u32),
    /// Some are missing, or there are more.
    #[error("the file is {have} bytes long and should be {should}: it is truncated or was changed")]
    Length {
        /// How many there are.
        have: u64,
        /// How many there should be.
        should: u64,
    },
    /// They are not what was written.
    #[error("the checksum is wrong: the file is damaged")]
    Checksum,
    /// What was written is wrong.
    #[error("the file is invalid although its checksum is right: {0}")]
    Wrong(Wrong),
}

/// Why a file cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// It cannot be read.
    #[error("cannot open {path}: {why}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// It is no network.
    #[error("cannot use the network {path}: {why}")]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: FormatError,
    },
}

/// A number of four bytes.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|from| from.first_chunk()).map_or(0, |&at| u32::from_le_bytes(at))
}

/// A number of eight bytes.
fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|from| from.first_chunk()).map_or(0, |&at| u64::from_le_bytes(at))
}

impl Network {
    /// Maps a file that [`Network::save`] wrote. It must not be changed while it is in use, only
    /// replaced.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is damaged.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let mapped = Mapped::open(path);
        let mapped = mapped.map_err(|why| OpenError::Io { path: path.to_owned(), why })?;
        Self::read(Storage::Mapped(mapped))
            .map_err(|why| OpenError::Format { path: path.to_owned(), why })
    }

    /// The network in these bytes of a file.
    ///
    /// # Errors
    ///
    /// They are damaged.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, FormatError> {
        Self::read(Storage::Memory(bytes))
    }

    fn read(bytes: Storage) -> Result<Self, FormatError> {
        if !bytes.starts_with(MAGIC) {
            return Err(FormatError::Magic);
        }
        let version = word(&bytes, 8);
        if version != VERSION {
            return Err(FormatError::Version(version));
        }
        let (have, should) = (bytes.len() as u64, long(&bytes, 16));
        if have != should || have < (HEAD + SECTIONS * ROW + SPARE) as u64 {
            return Err(FormatError::Length { have, should });
        }
        let covered = bytes.get(COVERED..).unwrap_or_default();
        if crc32fast::hash(covered) != word(&bytes, 12) {
            return Err(FormatError::Checksum);
        }
        let layout = layout(&bytes).map_err(FormatError::Wrong)?;
        let (nodes, links) = (word(&bytes, 24), word(&bytes, 28));
        check::network(bytes, layout, nodes, links).map_err(FormatError::Wrong)
    }

    /// The head and the list of arrays, with the checksum of everything.
    fn head(&self) -> Vec<u8> {
        let mut head = vec![0; HEAD + SECTIONS * ROW];
        let mut put = |at: usize, number: &[u8]| {
            if let Some(slot) = head.get_mut(at..at + number.len()) {
                slot.copy_from_slice(number);
            }
        };
        put(0, MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(16, &(self.bytes.len() as u64).to_le_bytes());
        put(24, &self.nodes.to_le_bytes());
        put(28, &self.links.to_le_bytes());
        put(32, &(SECTIONS as u32).to_le_bytes());
        for (row, &section) in Section::ALL.iter().enumerate() {
            let column = self.column(section);
            let at = HEAD + row * ROW;
            put(at, &(column.start as u64).to_le_bytes());
            put(at + 8, &(column.len as u64).to_le_bytes());
            put(at + 16, &[column.width]);
        }
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(head.get(COVERED..).unwrap_or_default());
        checksum.update(self.bytes.get(head.len()..).unwrap_or_default());
        let checksum = checksum.finalize().to_le_bytes();
        if let Some(slot) = head.get_mut(12..16) {
            slot.copy_from_slice(&checksum);
        }
        head
    }

    /// The bytes of its file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.head();
        bytes.extend_from_slice(self.bytes.get(bytes.len()..).unwrap_or_default());
        bytes
    }

    /// Writes the file. One that is there is replaced when the new one is complete; whoever has it open
    /// keeps the old one.
    ///
    /// # Errors
    ///
    /// What the system says. Nothing has changed then.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let head = self.head();
        // What users may do with it is for the umask to say.
        config::file::replace(path, 0o666, |file| {
            file.write_all(&head)?;
            file.write_all(self.bytes.get(head.len()..).unwrap_or_default())
        })
    }
}

/// The list of arrays: they lie one behind the other, and none beyond the end.
fn layout(bytes: &[u8]) -> Result<Layout, Wrong> {
    let wrong = |what, row: usize| {
        let array = Section::ALL.get(row).map_or(String::new(), |section| format!("{section:?}"));
        Wrong { what, array, index: row }
    };
    if word(bytes, 32) as usize != SECTIONS {
        return Err(wrong("the list has another number of arrays", SECTIONS));
    }
    let mut columns = [Column::default(); SECTIONS];
    let mut end = HEAD + SECTIONS * ROW;
    for (row, (column, section)) in columns.iter_mut().zip(Section::ALL).enumerate() {
        let at = HEAD + row * ROW;
        let width = bytes.get(at + 16).copied().unwrap_or(0);
        let wide = matches!(section, Section::Own6Address | Section::Interface6Address)
            || matches!(section, Section::Prefix6 | Section::Entry6);
        if (width != 16 || !wide) && (width > 4 || wide) {
            return Err(wrong("its numbers have a width that cannot be", row));
        }
        let start = usize::try_from(long(bytes, at)).ok();
        let len = usize::try_from(long(bytes, at + 8)).ok();
        let size = len.and_then(|len| len.checked_mul(usize::from(width).max(1)));
        let after = start.zip(size).and_then(|(start, size)| start.checked_add(size));
        match (start, len, after) {
            (Some(start), Some(len), Some(_)) if start >= end && start % 8 == 0 => {
                // One of no width has no bytes, however long it is; others end before the spare bytes.
                end = start + len * usize::from(width);
                *column = Column { start, len, width };
            }
            _ => return Err(wrong("it does not lie behind the one before it", row)),
        }
        if end > bytes.len() - SPARE {
            return Err(wrong("it ends beyond the file", row));
        }
    }
    Ok(Layout::from_columns(columns))
}
