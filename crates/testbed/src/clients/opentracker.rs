//! opentracker, a tracker over HTTP and UDP on one port.

use super::serves;
use crate::{Error, Namespace, Process, folder};
use std::{fs::Permissions, os::unix::fs::PermissionsExt};
use tempfile::TempDir;

/// A running opentracker; killed when dropped.
#[derive(Debug)]
pub struct OpenTracker {
    process: Process,
    _folder: TempDir,
}

impl OpenTracker {
    /// Starts it at an address on port 6969 (TCP and UDP), for these info-hashes: Debian's knows only torrents that it is told.
    ///
    /// # Errors
    ///
    /// When it is not installed or does not serve.
    pub fn start(
        namespace: &Namespace,
        address: &str,
        info_hashes: &[&str],
    ) -> Result<Self, Error> {
        let folder = folder::new()?;
        let root = folder.path().to_string_lossy().into_owned();
        // It changes its root to this folder and becomes nobody before it reads the list.
        let list = std::fs::write(folder.path().join("list"), info_hashes.join("\n") + "\n");
        let open = std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755));
        list.and(open).map_err(|error| Error::new(&root, error))?;
        let words = ["opentracker", "-i", address, "-p", "6969", "-P", "6969"];
        let list = ["-d", &root, "-w", "list"];
        let mut process = namespace.spawn(&[&words[..], &list].concat())?;
        serves("opentracker", &mut process, |_| {
            namespace.enter(|| std::net::TcpStream::connect((address, 6969))).is_ok()
        })?;
        Ok(Self { process, _folder: folder })
    }

    /// The process, to signal or to kill.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}
