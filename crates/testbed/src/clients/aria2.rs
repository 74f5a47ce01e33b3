//! aria2, a BitTorrent client for the command line.

use super::{Encryption, Peer, Torrent, serves};
use crate::{Error, Namespace, Process, folder, wait_until};
use std::{path::PathBuf, time::Duration};
use tempfile::TempDir;

/// A running aria2c with one torrent; killed, and its files removed, when dropped.
#[derive(Debug)]
pub struct Aria2 {
    process: Process,
    _folder: TempDir,
    file: PathBuf,
}

impl Aria2 {
    /// Starts it with a torrent and waits until it listens. With `content` it has the file already and seeds it.
    ///
    /// # Errors
    ///
    /// When it is not installed or ends at once.
    pub fn start(
        namespace: &Namespace,
        torrent: &Torrent,
        content: Option<&[u8]>,
        peer: &Peer,
        more: &[&str],
    ) -> Result<Self, Error> {
        let folder = folder::new()?;
        let file = folder.path().join(&torrent.name);
        if let Some(content) = content {
            std::fs::write(&file, content)
                .map_err(|error| Error::new(file.to_string_lossy(), error))?;
        }
        let at = folder.path().display();
        let mut words = vec![
            "aria2c".to_owned(),
            "--no-conf".to_owned(),
            format!("--dir={at}"),
            format!("--listen-port={}", peer.port),
            format!("--dht-listen-port={}", peer.port),
            format!("--dht-file-path={at}/dht.dat"),
            format!("--enable-dht={}", peer.dht.is_some()),
            format!("--bt-enable-lpd={}", peer.discovery),
            format!("--bt-force-encryption={}", peer.encryption == Encryption::Always),
            "--seed-ratio=0.0".to_owned(),
            "--check-integrity=true".to_owned(),
            "--file-allocation=none".to_owned(),
            "--summary-interval=0".to_owned(),
            "--log-level=notice".to_owned(),
            // It says itself that all is there only when it has stopped seeding, too.
            "--on-bt-download-complete=/bin/echo".to_owned(),
            "--log=-".to_owned(),
        ];
        words.extend(peer.dht.iter().map(|first| format!("--dht-entry-point={first}")));
        words.extend(more.iter().map(|&word| word.to_owned()));
        words.push(torrent.path.to_string_lossy().into_owned());
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let mut process = namespace.spawn(&words)?;
        serves("aria2c", &mut process, |process| {
            process.stdout().contains(&format!("listening on TCP port {}", peer.port))
        })?;
        Ok(Self { process, _folder: folder, file })
    }

    /// Where the file is, or will be.
    pub fn file(&self) -> &PathBuf {
        &self.file
    }

    /// Whether it has fetched the whole file.
    pub fn complete(&self) -> bool {
        let end = format!(" 1 {}", self.file.display());
        self.process.stdout().lines().any(|line| line.ends_with(&end))
    }

    /// Waits until the whole file is there.
    ///
    /// # Errors
    ///
    /// With what aria2 wrote, when it is not after `limit`.
    pub fn wait_complete(&self, limit: Duration) -> Result<(), Error> {
        wait_until("aria2's download", limit, || self.complete()).map(drop).map_err(|error| {
            Error::new(error.what, format!("{}\n{}", error.why, self.process.stdout()))
        })
    }

    /// The process, to signal or to kill.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}
