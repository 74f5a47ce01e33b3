//! Files of pcapng, one or one after the other.
//!
//! ```text
//! campus.pcapng, rotated:  campus-20261123T160000Z.pcapng  campus-20261123T170000Z.pcapng  ..
//! ```
//!
//! The names say when a file begins, by the clock and whatever the policy does with the times of packets.
//! A file holds whole blocks at any time, so that it can be read while it grows.

#[cfg(test)]
mod tests;

use super::{Head, OutputError, Packet, Statistics, failed};
use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write},
    os::{
        fd::AsFd,
        unix::fs::{FileTypeExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

/// Bytes that are written at a time.
const AT_A_TIME: usize = 1 << 18;
/// Most files of other runs that began in the same second.
const OTHERS: u32 = 1000;

/// When a new file is begun, and how many are kept. Without bytes and seconds there is one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// Before a file would have more bytes than these.
    pub bytes: Option<u64>,
    /// When such a period of UTC is over, to be seen at the next flush.
    pub seconds: Option<u64>,
    /// Older files of this run are deleted.
    pub keep: Option<usize>,
}

/// Files that are being written.
#[derive(Debug)]
pub struct Files {
    head: Head,
    path: PathBuf,
    rotation: Rotation,
    /// What time it was when somebody looked last.
    now: SystemTime,
    file: File,
    /// When it began, and which one of that second it is.
    began: SystemTime,
    number: u32,
    /// Its bytes, also those that wait, and those that are in it.
    length: u64,
    written: u64,
    /// Whether it has a packet.
    is_used: bool,
    /// Blocks that are not in it yet, and packets among them.
    waiting: Vec<u8>,
    packets: u64,
    /// Files of this run, oldest first; only the last one if all are kept.
    files: VecDeque<PathBuf>,
    statistics: Statistics,
}

impl Files {
    /// Begins the first file; `-` is stdout. One that is not rotated replaces what is there.
    ///
    /// # Errors
    /// When it cannot be made, or stdout is to be rotated.
    pub fn create(
        head: Head,
        path: &Path,
        rotation: Rotation,
        now: SystemTime,
    ) -> Result<Self, OutputError> {
        let is_rotated = rotation.bytes.is_some() || rotation.seconds.is_some();
        let (name, number, file) = match (path == Path::new("-"), is_rotated) {
            (true, true) => return Err(OutputError::Rotated),
            (true, false) => {
                let stdout = io::stdout().as_fd().try_clone_to_owned().map_err(failed(path))?;
                (path.to_owned(), 1, stdout.into())
            }
            (false, true) => begin(path, now, 1)?,
            (false, false) => {
                if fs::metadata(path).is_ok_and(|there| there.file_type().is_fifo()) {
                    return Err(OutputError::Pipe(path.to_owned()));
                }
                let mut options = OpenOptions::new();
                options.write(true).create(true).truncate(true).mode(0o600);
                (path.to_owned(), 1, options.open(path).map_err(failed(path))?)
            }
        };
        let mut files = Self {
            head,
            path: path.to_owned(),
            rotation,
            now,
            file,
            began: now,
            number,
            length: 0,
            written: 0,
            is_used: false,
            waiting: Vec::with_capacity(2 * AT_A_TIME),
            packets: 0,
            files: VecDeque::new(),
            statistics: Statistics::default(),
        };
        files.begun(name)?;
        Ok(files)
    }

    pub(super) fn packet(&mut self, packet: &Packet<'_>) -> Result<(), OutputError> {
        let mut before = self.waiting.len();
        self.head.packet(&mut self.waiting, packet);
        let length = self.length + (self.waiting.len() - before) as u64;
        if self.is_used && self.rotation.bytes.is_some_and(|most| length > most) {
            self.waiting.truncate(before);
            self.turn()?;
            before = self.waiting.len();
            self.head.packet(&mut self.waiting, packet);
        }
        self.length += (self.waiting.len() - before) as u64;
        self.is_used = true;
        self.packets += 1;
        self.statistics.count(packet.bytes.len());
        if self.waiting.len() >= AT_A_TIME { self.write() } else { Ok(()) }
    }

    /// Writes what waits, and begins the next file if the period is over.
    pub(super) fn flush(&mut self, now: SystemTime) -> Result<(), OutputError> {
        self.now = now;
        let is_over = self.rotation.seconds.is_some_and(|seconds| {
            since_1970(now) / seconds.max(1) != since_1970(self.began) / seconds.max(1)
        });
        if is_over { self.turn() } else { self.write() }
    }

    pub(super) fn statistics(&self) -> Statistics {
        self.statistics
    }

    pub(super) fn write(&mut self) -> Result<(), OutputError> {
        let result = self.file.write_all(&self.waiting);
        if result.is_ok() {
            self.written += self.waiting.len() as u64;
        } else {
            // Up to here it is whole; of what is no file nothing can be taken back.
            let _ = self.file.set_len(self.written);
            self.statistics.packets -= self.packets;
            self.statistics.unwritten += self.packets;
        }
        self.waiting.clear();
        self.packets = 0;
        result.map_err(failed(self.files.back().unwrap_or(&self.path)))
    }

    /// Ends the file, which goes if it has no packet, and begins another one.
    fn turn(&mut self) -> Result<(), OutputError> {
        self.write()?;
        let is_same = since_1970(self.now) == since_1970(self.began);
        let first = if is_same { self.number + 1 } else { 1 };
        let (name, number, file) = begin(&self.path, self.now, first)?;
        if !self.is_used {
            self.files.pop_back().map_or(Ok(()), remove)?;
        }
        (self.file, self.number, self.began) = (file, number, self.now);
        self.begun(name)?;
        let most = self.rotation.keep.map(|most| most.max(1));
        while most.is_some_and(|most| self.files.len() > most) {
            self.files.pop_front().map_or(Ok(()), remove)?;
        }
        Ok(())
    }

    /// Writes what is before packets.
    fn begun(&mut self, name: PathBuf) -> Result<(), OutputError> {
        if self.rotation.keep.is_none() {
            self.files.clear();
        }
        self.files.push_back(name);
        self.waiting.extend(self.head.blocks());
        self.length = self.waiting.len() as u64;
        self.written = 0;
        self.is_used = false;
        self.write()
    }
}

/// A new file of the time, that only its owner can read, with the first free number from this one on.
fn begin(path: &Path, now: SystemTime, first: u32) -> Result<(PathBuf, u32, File), OutputError> {
    let mut number = first;
    loop {
        let name = name(path, now, number);
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name) {
            Ok(file) => return Ok((name, number, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < first + OTHERS => {
                number += 1;
            }
            Err(error) => return Err(failed(&name)(error)),
        }
    }
}

/// Removes a file, unless somebody has.
fn remove(path: PathBuf) -> Result<(), OutputError> {
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(&path)(error)),
        _ => Ok(()),
    }
}

/// `campus.pcapng` becomes `campus-20261123T160000Z.pcapng`, the second one `campus-20261123T160000Z_002.pcapng`:
/// in the order of letters they are in that of time.
fn name(path: &Path, now: SystemTime, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    let time = humantime::format_rfc3339_seconds(now).to_string().replace(['-', ':'], "");
    name.push(format!("-{time}"));
    if number > 1 {
        name.push(format!("_{number:03}"));
    }
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

fn since_1970(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
