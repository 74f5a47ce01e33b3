//! ngircd, a server of IRC.

use super::serves;
use crate::{Error, Namespace, Process, folder};
use tempfile::TempDir;

/// A running ngircd without TLS; killed when dropped.
#[derive(Debug)]
pub struct Ngircd {
    process: Process,
    _folder: TempDir,
}

impl Ngircd {
    /// Starts it at an address on port 6667.
    ///
    /// # Errors
    ///
    /// When it is not installed or ends; with what it wrote.
    pub fn start(namespace: &Namespace, address: &str) -> Result<Self, Error> {
        let folder = folder::new()?;
        let settings = folder.path().join("ngircd.conf").to_string_lossy().into_owned();
        let text = format!(
            "[Global]\nName = irc.test.example\nInfo = for tests\nListen = {address}\nPorts = 6667\n\
             ServerUID = root\nServerGID = root\nMotdPhrase = hello\n\
             [Options]\nIdent = no\nDNS = no\nPAM = no\n"
        );
        std::fs::write(&settings, text).map_err(|error| Error::new(&settings, error))?;
        let mut process = namespace.spawn(&["ngircd", "-n", "-f", &settings])?;
        serves("ngircd", &mut process, |_| {
            namespace.enter(|| std::net::TcpStream::connect((address, 6667))).is_ok()
        })?;
        Ok(Self { process, _folder: folder })
    }

    /// The process, to signal or to kill.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}
