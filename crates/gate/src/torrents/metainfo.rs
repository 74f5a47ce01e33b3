//! What a torrent's metadata says: its files, its pieces, its info-hashes.
//!
//! BEP 3 (metainfo, the `info` dictionary), BEP 52 (version 2: `file tree`, SHA-256). The info-hash is
//! that of the `info` dictionary's text as it stands, and so needs a strict reader.

use crate::{bounded::at_most, file_name};
use classify::p2p::bencode::{self, Dict, Value};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use serde::{Deserialize, Deserializer, Serialize};
use std::{iter, sync::Arc};

/// Bytes of metadata that are read; those of the largest torrents known have some ten megabytes.
pub const MAX: usize = 16 << 20;

/// Files of a torrent that are kept; policy is asked about each.
const FILES: usize = 20_000;

/// A torrent, by its metadata.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Torrent {
    /// Its info-hash of version 1; of a torrent of version 2 alone the beginning of the other, which
    /// stands for it in handshakes (BEP 52).
    pub hash: [u8; 20],
    /// Its info-hash of version 2, if it has that version.
    pub hash_v2: Option<[u8; 32]>,
    /// Its name: that of its file, or of the folder of its files.
    pub name: String,
    /// Its files, in the order of their content.
    #[serde(deserialize_with = "files")]
    pub files: Vec<File>,
    /// Bytes of a piece.
    pub piece: u32,
    /// The SHA-1 of each piece; none in version 2 alone.
    pub pieces: Vec<[u8; 20]>,
}

fn files<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<File>, D::Error> {
    at_most::<_, _, FILES>(deserializer)
}

/// A file of a torrent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct File {
    /// Its path below the torrent's name, `/` between its parts; of a single file its name.
    pub path: String,
    /// Where in the torrent's content it begins.
    pub at: u64,
    /// Its bytes.
    pub size: u64,
}

impl Torrent {
    /// Reads a metainfo file, a `.torrent`.
    pub fn of_file(text: &[u8]) -> Option<Self> {
        let (Value::Dict(all), _) = bencode::read(text).ok()? else { return None };
        Self::of_dict(all.dict(b"info")?)
    }

    /// Reads an `info` dictionary, as peers exchange it (BEP 9).
    pub fn of_info(text: &[u8]) -> Option<Self> {
        match bencode::read(text) {
            Ok((Value::Dict(info), length)) if length == text.len() => Self::of_dict(info),
            _ => None,
        }
    }

    fn of_dict(info: Dict<'_>) -> Option<Self> {
        let version_2 = info.integer(b"meta version") == Some(2);
        let hash_v2: Option<[u8; 32]> =
            version_2.then(|| digest(&SHA256, info.raw()).as_ref().try_into().ok()).flatten();
        let pieces: Vec<[u8; 20]> =
            info.bytes(b"pieces").map(|text| text.as_chunks().0.to_vec()).unwrap_or_default();
        let hash = match hash_v2 {
            Some(hash) if pieces.is_empty() => *hash.first_chunk()?,
            _ => digest(&SHA1_FOR_LEGACY_USE_ONLY, info.raw()).as_ref().try_into().ok()?,
        };
        let name = file_name::text(info.bytes(b"name.utf-8").or_else(|| info.bytes(b"name"))?);
        let piece = u32::try_from(info.integer(b"piece length")?).ok().filter(|size| *size > 0)?;
        let mut files = Vec::new();
        let mut at = 0;
        if let Some(size) = info.integer(b"length") {
            add(&mut files, &mut at, name.clone(), size)?;
        } else if let Some(list) = info.list(b"files") {
            for file in list.iter() {
                let Value::Dict(file) = file else { return None };
                let path = file.list(b"path.utf-8").or_else(|| file.list(b"path"))?;
                add(&mut files, &mut at, joined(path.iter())?, file.integer(b"length")?)?;
            }
        } else {
            tree(info.dict(b"file tree")?, &mut files, &mut at)?;
        }
        if !pieces.is_empty() && pieces.len() as u64 != at.div_ceil(u64::from(piece)) {
            return None;
        }
        Some(Self { hash, hash_v2, name, files, piece, pieces })
    }

    /// Whether it is as [`Torrent::of_info`] makes them, when it comes from another process.
    pub(crate) fn is_sound(&self) -> bool {
        let mut at = 0;
        let follows = |file: &File| {
            let fits = file.at == at && file.size < 1 << 50;
            at = file.at.saturating_add(file.size);
            fits
        };
        self.piece > 0
            && self.files.iter().all(follows)
            && (self.pieces.is_empty()
                || self.pieces.len() as u64 == self.size().div_ceil(u64::from(self.piece)))
    }

    /// The same torrent by each info-hash that a handshake may name it by (BEP 52).
    pub fn by_each_hash(self: Arc<Self>) -> impl Iterator<Item = Arc<Self>> {
        let short = self.hash_v2.and_then(|hash| hash.first_chunk().copied());
        let other = short.filter(|short| *short != self.hash);
        let other = other.map(|hash| Arc::new(Self { hash, ..(*self).clone() }));
        iter::once(self).chain(other)
    }

    /// About the bytes of memory that it takes.
    pub(super) fn weight(&self) -> usize {
        let files = self.files.iter().map(|file| size_of::<File>() + file.path.len());
        size_of::<Self>() + self.name.len() + self.pieces.len() * 20 + files.sum::<usize>()
    }

    /// Whether it has hashes of pieces, and these are not too large.
    pub(super) fn can_be_put_together(&self) -> bool {
        !self.pieces.is_empty() && self.piece <= super::PIECE
    }

    /// Whether a file has bytes in a piece.
    pub(super) fn touches(&self, index: u32, file: usize) -> bool {
        let piece = u64::from(self.piece);
        let (from, to) = (u64::from(index) * piece, (u64::from(index) + 1) * piece);
        let file = self.files.get(file);
        file.is_some_and(|file| file.size > 0 && file.at < to && file.at + file.size > from)
    }

    /// Bytes of all files.
    pub fn size(&self) -> u64 {
        self.files.last().map_or(0, |file| file.at + file.size)
    }
}

fn add(files: &mut Vec<File>, at: &mut u64, path: String, size: i64) -> Option<()> {
    let size = u64::try_from(size).ok().filter(|size| *size < 1 << 50)?;
    if files.len() >= FILES {
        return None;
    }
    files.push(File { path, at: *at, size });
    *at += size;
    Some(())
}

fn joined<'a>(parts: impl Iterator<Item = Value<'a>>) -> Option<String> {
    let mut path = String::new();
    for part in parts {
        if !path.is_empty() {
            path.push('/');
        }
        path += &file_name::text(part.bytes()?);
    }
    (!path.is_empty()).then_some(path)
}

/// BEP 52, `file tree`: a dictionary a folder; a file is one with the empty key. The reader bounds how
/// deep they are.
fn tree(root: Dict<'_>, files: &mut Vec<File>, at: &mut u64) -> Option<()> {
    let mut open = vec![(String::new(), root)];
    while let Some((path, folder)) = open.pop() {
        let mut below = Vec::new();
        for (name, value) in folder.iter() {
            let Value::Dict(value) = value else { return None };
            if name.is_empty() {
                add(files, at, path.clone(), value.integer(b"length")?)?;
            } else {
                let name = file_name::text(name);
                let path = if path.is_empty() { name } else { format!("{path}/{name}") };
                below.push((path, value));
            }
        }
        // In the order in which they stand.
        open.extend(below.into_iter().rev());
        if open.len() > FILES {
            return None;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_many_says_where_each_begins() {
        let info = b"d5:filesld6:lengthi3e4:pathl1:a1:beed6:lengthi30000e4:pathl1:ceee4:name3:dir\
                     12:piece lengthi16384e6:pieces40:0123456789012345678901234567890123456789e";
        let torrent = Torrent::of_info(info).unwrap();
        let file = [b"d8:announce3:url4:info".as_slice(), info, b"e"].concat();
        assert_eq!(Torrent::of_file(&file).as_ref(), Some(&torrent));
        let files: Vec<_> = torrent.files.iter().map(|f| (f.path.as_str(), f.at, f.size)).collect();
        assert_eq!(files, [("a/b", 0, 3), ("c", 3, 30_000)]);
        assert_eq!((torrent.name.as_str(), torrent.size()), ("dir", 30_003));
        assert_eq!(digest(&SHA1_FOR_LEGACY_USE_ONLY, info).as_ref(), torrent.hash);
    }

    #[test]
    fn version_2_has_a_tree_and_its_hash_cut_short_stands_in_handshakes() {
        let info = b"d9:file treed1:ad1:bd0:d6:lengthi5eeee1:cd0:d6:lengthi7eeee12:meta versioni2e\
                     4:name1:n12:piece lengthi16384ee";
        let torrent = Torrent::of_info(info).unwrap();
        let files: Vec<_> = torrent.files.iter().map(|f| (f.path.as_str(), f.size)).collect();
        assert_eq!(files, [("a/b", 5), ("c", 7)]);
        let hash = digest(&SHA256, info);
        assert_eq!(torrent.hash_v2.unwrap(), hash.as_ref());
        assert_eq!(torrent.hash, hash.as_ref()[..20]);
    }

    #[test]
    fn what_contradicts_itself_is_no_torrent() {
        for info in [
            &b"d6:lengthi-1e4:name1:n12:piece lengthi1e6:pieces0:e"[..],
            b"d6:lengthi50e4:name1:n12:piece lengthi10e6:pieces20:01234567890123456789e",
            b"d6:lengthi5e4:name1:n12:piece lengthi0e6:pieces20:01234567890123456789e",
            b"d4:name1:n12:piece lengthi1ee",
            b"le",
            b"",
        ] {
            assert_eq!(Torrent::of_info(info), None);
        }
    }
}
