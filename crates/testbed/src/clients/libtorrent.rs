//! libtorrent, the library of qBittorrent, Deluge and others, behind a script.

use super::{Encryption, Peer, Script, Torrent};
use crate::{Error, Namespace, folder, wait_until};
use std::time::Duration;
use tempfile::TempDir;

/// A running client with one torrent; killed, and its files removed, when dropped.
#[derive(Debug)]
pub struct LibTorrent {
    script: Script,
    _folder: TempDir,
}

impl LibTorrent {
    /// Starts it with a torrent and waits until it listens. With `content` it has the file already and seeds
    /// it. With uTP it uses nothing else. Peers (`ADDRESS`, `PORT`, ...) need not be found.
    ///
    /// # Errors
    ///
    /// When it is not installed (python3-libtorrent) or ends at once.
    pub fn start(
        namespace: &Namespace,
        torrent: &Torrent,
        content: Option<&[u8]>,
        peer: &Peer,
        peers: &[&str],
    ) -> Result<Self, Error> {
        let folder = folder::new()?;
        if let Some(content) = content {
            let file = folder.path().join(&torrent.name);
            std::fs::write(&file, content)
                .map_err(|error| Error::new(file.to_string_lossy(), error))?;
        }
        let how = match peer.encryption {
            Encryption::Always => "hidden",
            Encryption::Never if peer.utp => "utp",
            Encryption::Never => "plain",
        };
        let (port, path) = (peer.port.to_string(), torrent.path.to_string_lossy());
        let words = [&port, &*path, &*folder.path().to_string_lossy(), how];
        let script = Script::start(namespace, "libtorrent_peer.py", &[&words[..], peers].concat())?;
        Ok(Self { script, _folder: folder })
    }

    /// Waits until the whole file is there.
    ///
    /// # Errors
    ///
    /// With what it wrote, when it is not after `limit`.
    pub fn wait_complete(&mut self, limit: Duration) -> Result<(), Error> {
        let process = self.script.process();
        wait_until("libtorrent's download", limit, || {
            process.stdout().lines().any(|line| line == "done")
        })
        .map(drop)
        .map_err(|error| Error::new(error.what, format!("{}\n{}", error.why, process.stderr())))
    }
}
