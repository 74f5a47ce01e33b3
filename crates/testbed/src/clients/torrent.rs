//! Files to share and the .torrent files that describe them, made by transmission-create.

use crate::{
    Error,
    process::{check, command},
};
use splitmix::Random;
use std::path::{Path, PathBuf};

/// Bytes that look random and are the same for the same seed.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&random.bits().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// A .torrent file.
#[derive(Clone, Debug)]
pub struct Torrent {
    /// Where it is.
    pub path: PathBuf,
    /// The name of the file or folder that it describes.
    pub name: String,
    /// The info-hash in hexadecimal digits.
    pub info_hash: String,
}

impl Torrent {
    /// Describes `content` (a file or a folder) in a .torrent file beside it.
    ///
    /// # Errors
    ///
    /// When transmission-create is not installed or refuses.
    pub fn make(content: &Path, trackers: &[&str]) -> Result<Self, Error> {
        let name = content.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = content.with_file_name(format!("{name}.torrent"));
        let (from, to) = (content.to_string_lossy(), path.to_string_lossy().into_owned());
        let mut words = vec!["transmission-create", "-o", &to];
        words.extend(trackers.iter().flat_map(|tracker| ["-t", tracker]));
        words.push(&from);
        check(command(&words))?;
        let shown = check(command(&["transmission-show", &to]))?;
        let info_hash = shown
            .lines()
            .find_map(|line| line.trim().strip_prefix("Hash: "))
            .ok_or_else(|| Error::new(format!("reading {to}"), &shown))?
            .to_owned();
        Ok(Self { path, name, info_hash })
    }

    /// Names a web server that has the file, too (BEP 19).
    ///
    /// # Errors
    ///
    /// When the .torrent file cannot be written anew.
    pub fn add_web_seed(&self, url: &str) -> Result<(), Error> {
        // The last key of the dictionary, whose end is the file's last byte.
        let mut bytes = std::fs::read(&self.path).unwrap_or_default();
        bytes.pop();
        bytes.extend_from_slice(format!("8:url-list{}:{url}e", url.len()).as_bytes());
        std::fs::write(&self.path, bytes).map_err(|error| Error::new("adding a web seed", error))
    }
}
