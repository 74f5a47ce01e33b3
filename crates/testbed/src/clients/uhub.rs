//! uhub, a hub of Direct Connect that speaks ADC.

use super::serves;
use crate::{Error, Namespace, Process, folder};
use tempfile::TempDir;

/// A running uhub without TLS that lets everybody in; killed when dropped.
#[derive(Debug)]
pub struct Uhub {
    process: Process,
    _folder: TempDir,
}

impl Uhub {
    /// Starts it at an address on port 1511.
    ///
    /// # Errors
    ///
    /// When it is not installed or ends; with what it wrote.
    pub fn start(namespace: &Namespace, address: &str) -> Result<Self, Error> {
        let folder = folder::new()?;
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let (settings, users) = (path("uhub.conf"), path("users"));
        let text = format!(
            "server_bind_addr={address}\nserver_port=1511\nfile_acl={users}\ntls_enable=0\n\
             registered_users_only=0\n"
        );
        let written = std::fs::write(&settings, text).and(std::fs::write(&users, "# nobody\n"));
        written.map_err(|error| Error::new(&settings, error))?;
        let mut process = namespace.spawn(&["uhub", "-c", &settings])?;
        serves("uhub", &mut process, |_| {
            namespace.enter(|| std::net::TcpStream::connect((address, 1511))).is_ok()
        })?;
        Ok(Self { process, _folder: folder })
    }

    /// The process, to signal or to kill.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}
