//! Prosody, a server of XMPP.

use super::serves;
use crate::{Error, Namespace, Process, folder};
use std::{fs::Permissions, os::unix::fs::PermissionsExt};
use tempfile::TempDir;

/// A running Prosody for the domain `test.example` without TLS; killed when dropped.
#[derive(Debug)]
pub struct Prosody {
    process: Process,
    _folder: TempDir,
}

impl Prosody {
    /// Starts it at an address on port 5222, with users of these names whose password is `secret`.
    ///
    /// # Errors
    ///
    /// When it is not installed or ends; with what it wrote.
    pub fn start(namespace: &Namespace, address: &str, users: &[&str]) -> Result<Self, Error> {
        let folder = folder::new()?;
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let (settings, at) = (path("prosody.cfg.lua"), path(""));
        let text = format!(
            "daemonize = false\nrun_as_root = true\npidfile = \"{at}pid\"\ndata_path = \"{at}\"\n\
             interfaces = {{ \"{address}\" }}\ns2s_ports = {{}}\nlog = {{ info = \"*console\" }}\n\
             modules_enabled = {{ \"roster\", \"saslauth\", \"disco\", \"c2s\" }}\n\
             modules_disabled = {{ \"s2s\", \"tls\", \"offline\" }}\n\
             c2s_require_encryption = false\nallow_unencrypted_plain_auth = true\n\
             authentication = \"internal_plain\"\nVirtualHost \"test.example\"\n"
        );
        let accounts = folder.path().join("test%2eexample/accounts");
        let made = std::fs::create_dir_all(&accounts).and_then(|()| {
            users.iter().try_for_each(|user| {
                std::fs::write(
                    accounts.join(format!("{user}.dat")),
                    "return { [\"password\"] = \"secret\"; };\n",
                )
            })?;
            std::fs::write(&settings, text)?;
            std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755))
        });
        made.map_err(|error| Error::new(&settings, error))?;
        let mut process = namespace.spawn(&["prosody", "--config", &settings, "-F"])?;
        serves("prosody", &mut process, |_| {
            namespace.enter(|| std::net::TcpStream::connect((address, 5222))).is_ok()
        })?;
        Ok(Self { process, _folder: folder })
    }

    /// The process, to signal or to kill.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}
