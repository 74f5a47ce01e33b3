//! The files of torrents, put together from the blocks that pass, in bounded disk space.
//!
//! ```text
//! block --> sparse file of its torrent --> piece whole? SHA-1 (BEP 3) --> file whole? --> scanned
//!                                              | wrong: its blocks are forgotten        | found:
//!                                              v                                        v refused
//! ```
//!
//! A torrent must be known by its metadata ([`Store::learn`]) before its blocks can be placed. Disk
//! space counts by blocks written; the torrent that was longest without one goes first. A torrent
//! whose files were all scanned leaves the disk. One in which something was found is remembered by
//! its info-hash. Until the verdict on a file every block of it waits, also those that another host
//! fetches again.

mod metainfo;
#[cfg(test)]
mod tests;

pub use metainfo::{File, MAX, Torrent};

use config::hex;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    fs::{self, OpenOptions},
    io::{self, Read},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::PathBuf,
    sync::Arc,
};

/// Bytes of a block, as all clients ask for them; the last one of a piece may be shorter.
const BLOCK: u32 = 1 << 14;

/// Torrents that are known; the one that was longest unused is forgotten for another.
const KNOWN: usize = 1 << 12;

/// Bytes of metadata that are kept, over all torrents.
const METADATA: usize = 1 << 26;

/// Bytes of the largest piece that is put together; a longer one would be hashed for too long.
const PIECE: u32 = 1 << 26;

/// Bytes that are hashed at once.
const SLICE: usize = 1 << 18;

/// Info-hashes of torrents in which something was found.
const REFUSED: usize = 1 << 16;

/// The outcome of blocks; exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks written.
    pub stored: u64,
    /// Blocks of torrents whose metadata was not seen, or that has no hashes of pieces.
    pub unknown: u64,
    /// Blocks that were there already, or of scanned files.
    pub known: u64,
    /// Blocks that do not fit their torrent.
    pub misplaced: u64,
    /// Blocks for which there was no disk space.
    pub no_room: u64,
    /// Pieces whose hash was right.
    pub pieces: u64,
    /// Pieces whose hash was wrong.
    pub wrong: u64,
}

/// What came of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockOutcome {
    /// The files that are whole with it, and were not before.
    pub whole: Vec<Whole>,
    /// The numbers of the files without a verdict that it belongs to and that are whole.
    pub awaits: Vec<usize>,
    /// It was not kept, so that its file will never be whole.
    pub dropped: bool,
}

/// The content of a whole file.
#[derive(Debug)]
pub struct Content {
    file: fs::File,
    at: u64,
    left: u64,
}

impl Read for Content {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        let read = self.file.read_at(bytes.get_mut(..most).unwrap_or_default(), self.at)?;
        self.at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}

/// A file that is whole and is to be scanned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The torrent.
    pub hash: [u8; 20],
    /// The file's number within it.
    pub file: usize,
    /// Its path.
    pub path: String,
    /// Its bytes.
    pub size: u64,
}

/// The torrents that pass.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    limit: u64,
    used: u64,
    metadata: usize,
    clock: u64,
    torrents: HashMap<[u8; 20], Held>,
    refused: HashSet<[u8; 20]>,
    refused_order: VecDeque<[u8; 20]>,
    counts: Counts,
}

#[derive(Debug)]
struct Held {
    torrent: Arc<Torrent>,
    file: Option<fs::File>,
    /// Blocks of pieces that are not whole.
    blocks: HashMap<u32, HashSet<u32>>,
    whole: HashSet<u32>,
    /// Files that were given out to be scanned.
    taken: HashSet<usize>,
    /// Those of them on which there is a verdict.
    scanned: HashSet<usize>,
    done: bool,
    used: u64,
    last: u64,
}

impl Store {
    /// A store of at most so many bytes in a folder that is its own, which is made with the first
    /// block. What an earlier store left there is removed.
    pub fn open(folder: PathBuf, limit: u64) -> Self {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == "pieces") {
                // What cannot be removed is written over.
                let _ = fs::remove_file(path);
            }
        }
        Self {
            folder,
            limit,
            used: 0,
            metadata: 0,
            clock: 0,
            torrents: HashMap::new(),
            refused: HashSet::new(),
            refused_order: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// Sets the bytes that it may have from now on.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// A torrent's metadata was seen.
    pub fn learn(&mut self, torrent: Arc<Torrent>) {
        self.clock += 1;
        if self.torrents.contains_key(&torrent.hash) {
            return;
        }
        self.metadata += torrent.weight();
        while self.torrents.len() >= KNOWN || self.metadata > METADATA {
            if !self.forget_oldest(None) {
                break;
            }
        }
        let last = self.clock;
        self.torrents.entry(torrent.hash).or_insert_with(|| Held {
            torrent,
            file: None,
            blocks: HashMap::new(),
            whole: HashSet::new(),
            taken: HashSet::new(),
            scanned: HashSet::new(),
            done: false,
            used: 0,
            last,
        });
    }

    /// What is known of a torrent.
    pub fn torrent(&self, hash: &[u8; 20]) -> Option<&Arc<Torrent>> {
        self.torrents.get(hash).map(|held| &held.torrent)
    }

    /// Whether something was found in a torrent.
    pub fn is_refused(&self, hash: &[u8; 20]) -> bool {
        self.refused.contains(hash)
    }

    /// The torrents in which something was found, the latest first.
    pub fn refused(&self) -> impl Iterator<Item = &[u8; 20]> {
        self.refused_order.iter().rev()
    }

    /// Takes back that something was found in a torrent, whose files are scanned again; false if nothing was.
    pub fn unblock(&mut self, hash: &[u8; 20]) -> bool {
        self.refused_order.retain(|refused| refused != hash);
        let refused = self.refused.remove(hash);
        if refused {
            self.forget(hash);
        }
        refused
    }

    /// Bytes on the disk.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// The outcome of blocks so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A block that passed.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn block(
        &mut self,
        hash: &[u8; 20],
        index: u32,
        begin: u32,
        bytes: &[u8],
    ) -> io::Result<BlockOutcome> {
        self.clock += 1;
        let clock = self.clock;
        let dropped = Ok(BlockOutcome { dropped: true, ..BlockOutcome::default() });
        let held = self.torrents.get_mut(hash);
        let Some(held) = held.filter(|held| held.torrent.can_be_put_together()) else {
            self.counts.unknown += 1;
            return dropped;
        };
        held.last = clock;
        let Some(size) = held.size_of(index) else {
            self.counts.misplaced += 1;
            return dropped;
        };
        let length = bytes.len() as u64;
        let end = u64::from(begin) + length;
        let aligned = begin.is_multiple_of(BLOCK) && length > 0;
        if !aligned
            || end > size
            || (length != u64::from(BLOCK) && end != size)
            || length > u64::from(BLOCK)
        {
            self.counts.misplaced += 1;
            return dropped;
        }
        let there = held.blocks.get(&index).is_some_and(|blocks| blocks.contains(&begin));
        if held.done || held.whole.contains(&index) || there {
            self.counts.known += 1;
            return Ok(BlockOutcome { awaits: held.awaited(index), ..BlockOutcome::default() });
        }
        if !self.make_room(length, hash) {
            self.counts.no_room += 1;
            return dropped;
        }
        let Some(held) = self.torrents.get_mut(hash) else { return dropped };
        let at = u64::from(index) * u64::from(held.torrent.piece);
        held.file(&self.folder)?.write_all_at(bytes, at + u64::from(begin))?;
        held.used += length;
        self.used += length;
        self.counts.stored += 1;
        let blocks = held.blocks.entry(index).or_default();
        blocks.insert(begin);
        if (blocks.len() as u64) < size.div_ceil(u64::from(BLOCK)) {
            return Ok(BlockOutcome::default());
        }
        held.blocks.remove(&index);
        let mut piece = Content { file: held.file(&self.folder)?.try_clone()?, at, left: size };
        let mut sum = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        let mut slice = vec![0; SLICE];
        loop {
            match piece.read(&mut slice)? {
                0 => break,
                read => sum.update(slice.get(..read).unwrap_or_default()),
            }
        }
        let right = usize::try_from(index).ok().and_then(|index| held.torrent.pieces.get(index));
        if right.is_none_or(|right| sum.finish().as_ref() != right) {
            // Which block was wrong is unknown.
            self.counts.wrong += 1;
            held.used -= size;
            self.used -= size;
            return Ok(BlockOutcome::default());
        }
        self.counts.pieces += 1;
        held.whole.insert(index);
        let whole = held.files_whole_with(index);
        Ok(BlockOutcome { whole, awaits: held.awaited(index), dropped: false })
    }

    /// The content of a whole file.
    ///
    /// # Errors
    ///
    /// When the file has left the disk, or that fails.
    pub fn content(&self, whole: &Whole) -> io::Result<Content> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, "the torrent has left the disk");
        let held = self.torrents.get(&whole.hash).ok_or_else(gone)?;
        let described = held.torrent.files.get(whole.file).ok_or_else(gone)?;
        let file = held.file.as_ref().ok_or_else(gone)?.try_clone()?;
        Ok(Content { file, at: described.at, left: described.size })
    }

    /// The verdict on a whole file: with a find its torrent is refused from now on.
    pub fn verdict(&mut self, whole: &Whole, found: bool) {
        if found && self.refused.insert(whole.hash) {
            self.refused_order.push_back(whole.hash);
            if self.refused_order.len() > REFUSED
                && let Some(oldest) = self.refused_order.pop_front()
            {
                self.refused.remove(&oldest);
            }
        }
        let Some(held) = self.torrents.get_mut(&whole.hash) else { return };
        held.scanned.insert(whole.file);
        let all = held.torrent.files.iter().filter(|file| file.size > 0).count();
        held.done = found || held.scanned.len() == all;
        if held.done {
            self.used -= held.used;
            held.used = 0;
            held.blocks.clear();
            remove(&self.folder, &whole.hash, held);
        }
    }

    /// A torrent begins again, as when its content could not be scanned.
    pub fn forget(&mut self, hash: &[u8; 20]) {
        if let Some(mut held) = self.torrents.remove(hash) {
            self.used -= held.used;
            self.metadata -= held.torrent.weight();
            remove(&self.folder, hash, &mut held);
        }
    }

    /// Makes room for some bytes of a torrent by forgetting others.
    fn make_room(&mut self, bytes: u64, hash: &[u8; 20]) -> bool {
        while self.used + bytes > self.limit {
            if !self.forget_oldest(Some(hash)) {
                return false;
            }
        }
        true
    }

    /// Forgets the torrent without a block for the longest time, other than one; with one to keep,
    /// only such as use space.
    fn forget_oldest(&mut self, keep: Option<&[u8; 20]>) -> bool {
        let others = self.torrents.iter().filter(|(hash, held)| match keep {
            Some(keep) => *hash != keep && held.used > 0,
            None => true,
        });
        let Some(hash) = others.min_by_key(|(_, held)| held.last).map(|(hash, _)| *hash) else {
            return false;
        };
        self.forget(&hash);
        true
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        for (hash, held) in &mut self.torrents {
            remove(&self.folder, hash, held);
        }
    }
}

fn path(folder: &std::path::Path, hash: &[u8; 20]) -> PathBuf {
    folder.join(hex::encode(hash)).with_extension("pieces")
}

fn remove(folder: &std::path::Path, hash: &[u8; 20], held: &mut Held) {
    if held.file.take().is_some() {
        // It is in a folder of ours; what cannot be removed now goes when the store is opened.
        let _ = fs::remove_file(path(folder, hash));
    }
}

impl Held {
    fn file(&mut self, folder: &std::path::Path) -> io::Result<&fs::File> {
        if self.file.is_none() {
            fs::create_dir_all(folder)?;
            let path = path(folder, &self.torrent.hash);
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(true).mode(0o600);
            self.file = Some(options.open(path)?);
        }
        self.file.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Bytes of a piece; the last may be shorter.
    fn size_of(&self, index: u32) -> Option<u64> {
        let piece = u64::from(self.torrent.piece);
        let left = self.torrent.size().checked_sub(u64::from(index) * piece)?;
        (left > 0).then_some(left.min(piece))
    }

    /// The files in a piece that are whole and without a verdict.
    fn awaited(&self, index: u32) -> Vec<usize> {
        if self.taken.len() == self.scanned.len() || self.done {
            return Vec::new();
        }
        let in_piece = |file: &&usize| self.torrent.touches(index, **file);
        self.taken.difference(&self.scanned).filter(in_piece).copied().collect()
    }

    /// The files that end up whole with a piece, and were not given out before.
    fn files_whole_with(&mut self, index: u32) -> Vec<Whole> {
        let piece = u64::from(self.torrent.piece);
        let mut files = Vec::new();
        for (number, file) in self.torrent.files.iter().enumerate() {
            if self.torrent.touches(index, number) && !self.taken.contains(&number) {
                let mut pieces = file.at / piece..(file.at + file.size).div_ceil(piece);
                let whole = |piece| u32::try_from(piece).is_ok_and(|p| self.whole.contains(&p));
                if pieces.all(whole) {
                    files.push(number);
                }
            }
        }
        let wholes = files.into_iter().map(|file| {
            self.taken.insert(file);
            let described = self.torrent.files.get(file);
            Whole {
                hash: self.torrent.hash,
                file,
                path: described.map(|file| file.path.clone()).unwrap_or_default(),
                size: described.map_or(0, |file| file.size),
            }
        });
        wholes.collect()
    }
}
