//! A pipe with a name (fifo(7)): pcapng for whoever reads it now, and nothing kept for who comes later.
//!
//! ```text
//! no reader: packets are lost -> one opens the pipe: header, packets -> it goes: the rest is lost, and so on
//! ```
//!
//! Each reader has a pipe of its own: as soon as one is there, a new pipe takes the name for the next. Else who
//! comes right behind another one would read on in the middle of a block, and two at a time would take each
//! other's bytes.

#[cfg(test)]
mod tests;

use super::{Head, OutputError, Packet, Statistics, failed};
use nix::{
    fcntl::{FcntlArg, fcntl},
    libc,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::stat::Mode,
    unistd::mkfifo,
};
use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write},
    os::{
        fd::AsFd,
        unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, chown},
    },
    path::{Path, PathBuf},
    process,
    time::{Duration, Instant},
};

/// Bytes that are written at a time.
const AT_A_TIME: usize = 1 << 16;
/// So many bytes wait for a slow reader, beside those in the pipe.
const MOST: usize = 8 << 20;
/// What the pipe is to hold: the most that everybody may ask for (pipe(7), pipe-max-size).
const HOLDS: libc::c_int = 1 << 20;
/// How long a reader has at the end.
const LAST: Duration = Duration::from_secs(1);

/// A pipe.
#[derive(Debug)]
pub struct Pipe {
    head: Head,
    path: PathBuf,
    /// Whether it was made here, so that it goes with this.
    is_ours: bool,
    reader: Option<Reader>,
    /// The block that is being made.
    block: Vec<u8>,
    statistics: Statistics,
}

/// Whoever reads it.
#[derive(Debug)]
struct Reader {
    file: File,
    waiting: VecDeque<u8>,
    /// Bytes that were to be written since it came, and those that were.
    sent: u64,
    written: u64,
    /// Where packets that wait end, in bytes sent, and how long they are.
    packets: VecDeque<(u64, usize)>,
}

impl Pipe {
    /// Takes the pipe of this name, or makes one that only its owner may use.
    ///
    /// # Errors
    /// When it cannot be made, or is none.
    pub fn open(head: Head, path: &Path) -> Result<Self, OutputError> {
        let is_ours = match fs::symlink_metadata(path) {
            Ok(there) if there.file_type().is_fifo() => false,
            Ok(_) => return Err(OutputError::NoPipe(path.to_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                make(path)?;
                true
            }
            Err(error) => return Err(failed(path)(error)),
        };
        let path = path.to_owned();
        let (reader, block, statistics) = (None, Vec::new(), Statistics::default());
        let mut pipe = Self { head, path, is_ours, reader, block, statistics };
        pipe.flush()?;
        Ok(pipe)
    }

    pub(super) fn packet(&mut self, packet: &Packet<'_>) -> Result<(), OutputError> {
        self.head.hear(packet);
        if self.reader.as_ref().is_some_and(|reader| reader.waiting.len() >= MOST) {
            self.send()?;
        }
        let Some(reader) = &mut self.reader else {
            self.statistics.no_reader += 1;
            return Ok(());
        };
        if reader.waiting.len() >= MOST {
            self.statistics.slow_reader += 1;
            return Ok(());
        }
        self.block.clear();
        self.head.packet(&mut self.block, packet);
        let before = reader.sent;
        reader.give(&self.block);
        reader.packets.push_back((reader.sent, packet.bytes.len()));
        let at_a_time = AT_A_TIME as u64;
        if before / at_a_time == reader.sent / at_a_time { Ok(()) } else { self.send() }
    }

    /// Writes what the reader takes; looks for one if there is none.
    pub(super) fn flush(&mut self) -> Result<(), OutputError> {
        self.send()?;
        if self.reader.is_none() {
            self.reader = self.find()?;
            self.send()?;
        }
        Ok(())
    }

    pub(super) fn statistics(&self) -> Statistics {
        self.statistics
    }

    pub(super) fn end(mut self) -> (Statistics, Result<(), OutputError>) {
        let sent = self.send_rest();
        (self.statistics, sent)
    }

    fn send_rest(&mut self) -> Result<(), OutputError> {
        let end = Instant::now() + LAST;
        self.send()?;
        while let Some(reader) = self.reader.as_ref().filter(|it| !it.waiting.is_empty()) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.statistics.slow_reader += reader.packets.len() as u64;
                break;
            }
            let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
            let _ = poll(&mut [PollFd::new(reader.file.as_fd(), PollFlags::POLLOUT)], left);
            self.send()?;
        }
        Ok(())
    }

    /// Whoever has opened the pipe. Another one takes its name.
    fn find(&mut self) -> Result<Option<Reader>, OutputError> {
        let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
        let file = match OpenOptions::new().write(true).custom_flags(flags).open(&self.path) {
            Ok(file) => file,
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return make(&self.path).map(|()| None);
            }
            Err(error) => return Err(failed(&self.path)(error)),
        };
        let there = file.metadata().map_err(failed(&self.path))?;
        if !there.file_type().is_fifo() {
            return Err(OutputError::NoPipe(self.path.clone()));
        }
        // With less room, it is only slower.
        let _ = fcntl(&file, FcntlArg::F_SETPIPE_SZ(HOLDS));
        let mut next = self.path.as_os_str().to_owned();
        next.push(format!(".{}", process::id()));
        let next = PathBuf::from(next);
        make(&next)?;
        chown(&next, Some(there.uid()), Some(there.gid()))
            .and_then(|()| fs::set_permissions(&next, there.permissions()))
            .and_then(|()| fs::rename(&next, &self.path))
            .map_err(|error| {
                let _ = fs::remove_file(&next);
                failed(&self.path)(error)
            })?;
        let (waiting, packets) = (VecDeque::new(), VecDeque::new());
        let mut reader = Reader { file, waiting, sent: 0, written: 0, packets };
        reader.give(&self.head.blocks());
        Ok(Some(reader))
    }

    /// Writes what the reader takes now; one that has gone is forgotten.
    fn send(&mut self) -> Result<(), OutputError> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        let result = reader.send(&mut self.statistics);
        match result {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.statistics.no_reader += reader.packets.len() as u64;
                self.reader = None;
                Ok(())
            }
            result => result.map_err(failed(&self.path)),
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        if self.is_ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Reader {
    fn give(&mut self, block: &[u8]) {
        self.waiting.extend(block);
        self.sent += block.len() as u64;
    }

    fn send(&mut self, statistics: &mut Statistics) -> io::Result<()> {
        while !self.waiting.is_empty() {
            let length = match self.file.write(self.waiting.as_slices().0) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.waiting.drain(..length);
            self.written += length as u64;
            while let Some((_, bytes)) =
                self.packets.front().filter(|(end, _)| *end <= self.written)
            {
                statistics.count(*bytes);
                self.packets.pop_front();
            }
        }
        Ok(())
    }
}

/// Makes a pipe that only its owner may use.
fn make(path: &Path) -> Result<(), OutputError> {
    mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR).map_err(|error| failed(path)(error.into()))
}
