//! Transmission's daemon, a BitTorrent client with uTP.

use super::{Encryption, Peer, Torrent, serves};
use crate::{Error, Namespace, Process, folder, wait_until};
use serde_json::json;
use std::{path::PathBuf, time::Duration};
use tempfile::TempDir;

/// A running transmission-daemon with one torrent; killed, and its files removed, when dropped.
#[derive(Debug)]
pub struct Transmission {
    process: Process,
    folder: TempDir,
    file: PathBuf,
}

impl Transmission {
    /// Starts it with a torrent and waits until it has that. With `content` it has the file already and seeds it.
    ///
    /// # Errors
    ///
    /// When it is not installed or ends at once.
    pub fn start(
        namespace: &Namespace,
        torrent: &Torrent,
        content: Option<&[u8]>,
        peer: &Peer,
    ) -> Result<Self, Error> {
        let folder = folder::new()?;
        let files = folder.path().join("files");
        let file = files.join(&torrent.name);
        let write = |path: PathBuf, bytes: &[u8]| {
            std::fs::write(&path, bytes).map_err(|error| Error::new(path.to_string_lossy(), error))
        };
        std::fs::create_dir(&files).map_err(|error| Error::new(files.to_string_lossy(), error))?;
        if let Some(content) = content {
            write(file.clone(), content)?;
        }
        let settings = json!({
            "download-dir": files,
            "peer-port": peer.port,
            "peer-port-random-on-start": false,
            "port-forwarding-enabled": false,
            "dht-enabled": peer.dht.is_some(),
            "lpd-enabled": peer.discovery,
            "utp-enabled": peer.utp,
            "pex-enabled": true,
            "encryption": match peer.encryption { Encryption::Never => 0, Encryption::Always => 2 },
            "rpc-enabled": true,
            "rpc-bind-address": "127.0.0.1",
            "rpc-port": 9091,
            "rpc-whitelist-enabled": false,
            "ratio-limit-enabled": false,
            "idle-seeding-limit-enabled": false,
        });
        write(folder.path().join("settings.json"), settings.to_string().as_bytes())?;
        if let Some((host, port)) = peer.dht.as_deref().and_then(|first| first.rsplit_once(':')) {
            write(folder.path().join("dht.bootstrap"), format!("{host} {port}\n").as_bytes())?;
        }
        let at = folder.path().to_string_lossy().into_owned();
        let mut process = namespace.spawn(&["transmission-daemon", "-f", "-g", &at])?;
        let path = torrent.path.to_string_lossy().into_owned();
        serves("transmission-daemon", &mut process, |_| {
            let add = ["transmission-remote", "127.0.0.1:9091", "-a", &path];
            namespace.run(&add, Duration::from_secs(20)).is_ok_and(|done| done.success())
        })?;
        Ok(Self { process, folder, file })
    }

    /// Where the file is, or will be.
    pub fn file(&self) -> &PathBuf {
        &self.file
    }

    /// Its folder, with the settings.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Whether the whole file is there: until then it is called otherwise.
    pub fn complete(&self) -> bool {
        self.file.exists()
    }

    /// Waits until the whole file is there.
    ///
    /// # Errors
    ///
    /// With what Transmission wrote, when it is not after `limit`.
    pub fn wait_complete(&self, limit: Duration) -> Result<(), Error> {
        wait_until("transmission's download", limit, || self.complete()).map(drop).map_err(
            |error| Error::new(error.what, format!("{}\n{}", error.why, self.process.stderr())),
        )
    }

    /// The process, to signal or to kill.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}
