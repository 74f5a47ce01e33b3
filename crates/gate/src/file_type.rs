//! A file's type by its first bytes, whatever its name says.
//!
//! The numbers are those of the formats' own documents; names are the usual endings, so that a policy
//! reads `type = ["exe", "elf"]`. Text has no magic number: what is neither known nor has a byte that
//! text cannot have is `text`.

use serde::{Deserialize, Deserializer, Serialize, de::Error};

/// Bytes that are enough to recognize every kind in the table.
pub const SNIFF: usize = 512;

/// A type of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Kind {
    /// Short name, as policies write it.
    pub name: &'static str,
    /// Media type, as audit records write it.
    pub media: &'static str,
}

/// Only kinds of the table are accepted.
impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (name, media) = <(String, String)>::deserialize(deserializer)?;
        let known = all().find(|kind| kind.name == name && kind.media == media);
        known.ok_or_else(|| D::Error::custom("no kind of files"))
    }
}

/// Content with no known form.
pub const UNKNOWN: Kind = Kind { name: "unknown", media: "application/octet-stream" };

/// Content that may be text.
const TEXT: Kind = Kind { name: "text", media: "text/plain" };

/// Where, which bytes, what.
const MAGIC: &[(usize, &[u8], &str, &str)] = &[
    (0, b"\x7fELF", "elf", "application/x-executable"),
    (0, b"MZ", "exe", "application/vnd.microsoft.portable-executable"),
    (0, b"\xfe\xed\xfa\xce", "macho", "application/x-mach-binary"),
    (0, b"\xfe\xed\xfa\xcf", "macho", "application/x-mach-binary"),
    (0, b"\xce\xfa\xed\xfe", "macho", "application/x-mach-binary"),
    (0, b"\xcf\xfa\xed\xfe", "macho", "application/x-mach-binary"),
    (0, b"\xca\xfe\xba\xbe", "class", "application/java-vm"),
    (0, b"dex\n", "dex", "application/vnd.android.dex"),
    (0, b"\0asm", "wasm", "application/wasm"),
    (0, b"#!", "script", "text/x-shellscript"),
    (0, b"X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR", "eicar", "application/x-eicar"),
    (0, b"PK\x03\x04", "zip", "application/zip"),
    (0, b"PK\x05\x06", "zip", "application/zip"),
    (0, b"Rar!\x1a\x07", "rar", "application/vnd.rar"),
    (0, b"7z\xbc\xaf\x27\x1c", "7z", "application/x-7z-compressed"),
    (0, b"\x1f\x8b", "gzip", "application/gzip"),
    (0, b"BZh", "bzip2", "application/x-bzip2"),
    (0, b"\xfd7zXZ\0", "xz", "application/x-xz"),
    (0, b"\x28\xb5\x2f\xfd", "zstd", "application/zstd"),
    (0, b"MSCF", "cab", "application/vnd.ms-cab-compressed"),
    (0, b"!<arch>\n", "ar", "application/x-archive"),
    (257, b"ustar", "tar", "application/x-tar"),
    (0, b"\xed\xab\xee\xdb", "rpm", "application/x-rpm"),
    (0, b"%PDF-", "pdf", "application/pdf"),
    (0, b"%!PS", "ps", "application/postscript"),
    (0, b"{\\rtf", "rtf", "application/rtf"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "ole", "application/x-ole-storage"),
    (0, b"\x89PNG\r\n\x1a\n", "png", "image/png"),
    (0, b"\xff\xd8\xff", "jpeg", "image/jpeg"),
    (0, b"GIF87a", "gif", "image/gif"),
    (0, b"GIF89a", "gif", "image/gif"),
    (0, b"II*\0", "tiff", "image/tiff"),
    (0, b"MM\0*", "tiff", "image/tiff"),
    (0, b"BM", "bmp", "image/bmp"),
    (8, b"WEBP", "webp", "image/webp"),
    (8, b"AVI ", "avi", "video/x-msvideo"),
    (8, b"WAVE", "wav", "audio/wav"),
    (4, b"ftyp", "mp4", "video/mp4"),
    (0, b"\x1a\x45\xdf\xa3", "mkv", "video/x-matroska"),
    (0, b"FLV\x01", "flv", "video/x-flv"),
    (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "asf", "video/x-ms-asf"),
    (0, b"\0\0\x01\xba", "mpeg", "video/mpeg"),
    (0, b"\0\0\x01\xb3", "mpeg", "video/mpeg"),
    (0, b"OggS", "ogg", "application/ogg"),
    (0, b"fLaC", "flac", "audio/flac"),
    (0, b"ID3", "mp3", "audio/mpeg"),
    (0, b"\xff\xfb", "mp3", "audio/mpeg"),
    (0, b"SQLite format 3\0", "sqlite", "application/vnd.sqlite3"),
    (0, b"d8:announce", "torrent", "application/x-bittorrent"),
    (0, b"d13:announce-list", "torrent", "application/x-bittorrent"),
    (0, b"d10:created by", "torrent", "application/x-bittorrent"),
    (0, b"d4:infod", "torrent", "application/x-bittorrent"),
    (0, b"d7:comment", "torrent", "application/x-bittorrent"),
    (0, b"d8:encoding", "torrent", "application/x-bittorrent"),
    (0, b"d13:creation date", "torrent", "application/x-bittorrent"),
    (0, b"<?xml", "xml", "application/xml"),
    (0, b"<!DOCTYPE html", "html", "text/html"),
    (0, b"<!doctype html", "html", "text/html"),
    (0, b"<html", "html", "text/html"),
];

/// All types.
pub(crate) fn all() -> impl Iterator<Item = Kind> {
    let known = MAGIC.iter().map(|(.., name, media)| Kind { name, media });
    known.chain([TEXT, UNKNOWN])
}

/// The type of a file that begins with these bytes.
pub fn of(bytes: &[u8]) -> Kind {
    let known = MAGIC
        .iter()
        .find(|(at, magic, ..)| bytes.get(*at..).is_some_and(|rest| rest.starts_with(magic)));
    match known {
        Some((.., name, media)) => Kind { name, media },
        None if !bytes.is_empty() && bytes.iter().take(SNIFF).all(|byte| is_text(*byte)) => TEXT,
        None => UNKNOWN,
    }
}

/// Bytes that texts in ASCII, ISO 8859 and UTF-8 have.
fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | 0x1b | 0x20..=0x7e | 0x80..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_follows_from_the_content_whatever_the_name() {
        for (bytes, name) in [
            (&b"MZ\x90\0\x03"[..], "exe"),
            (b"\x7fELF\x02\x01\x01", "elf"),
            (b"PK\x03\x04\x14\0", "zip"),
            (b"RIFF\x10\0\0\0WAVEfmt ", "wav"),
            (b"\0\0\0\x20ftypisom", "mp4"),
            (b"d8:announce20:http://t.example/anne", "torrent"),
            ("Grüße aus Wien\n".as_bytes(), "text"),
            (b"\x01\x02\x03", "unknown"),
            (b"", "unknown"),
        ] {
            assert_eq!(of(bytes).name, name, "{bytes:?}");
        }
    }

    #[test]
    fn an_archive_is_recognized_by_bytes_behind_its_first_names() {
        let mut tar = vec![b'a'; 257];
        tar.extend(b"ustar\x0000");
        assert_eq!(of(&tar).name, "tar");
    }
}
