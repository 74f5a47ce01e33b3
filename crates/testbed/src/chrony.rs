//! chronyd in a namespace, as an NTP server and client that never sets the machine's clock (`-x`).

use crate::{Error, LIMIT, Namespace, Process, folder, wait_until};
use tempfile::TempDir;

/// A running chronyd; killed, and its files removed, when dropped.
#[derive(Debug)]
pub struct Chrony {
    process: Process,
    _folder: TempDir,
}

impl Chrony {
    /// Starts chronyd with directives, such as `local stratum 3` or `server 192.0.2.1`, and waits until its
    /// command port answers on loopback.
    ///
    /// # Errors
    ///
    /// When chronyd is not installed or refuses the directives; the error carries what it wrote.
    pub fn start(namespace: &Namespace, directives: &str) -> Result<Self, Error> {
        let folder = folder::new()?;
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let (configuration, pid) = (path("chrony.conf"), path("chronyd.pid"));
        // No socket in the file system, which all namespaces share.
        let text =
            format!("pidfile {pid}\nbindcmdaddress /\nbindcmdaddress 127.0.0.1\n{directives}\n");
        std::fs::write(&configuration, text).map_err(|error| Error::new(&configuration, error))?;
        let words = ["chronyd", "-x", "-d", "-u", "root", "-f", &configuration];
        let process = namespace.spawn(&words)?;
        let mut chrony = Self { process, _folder: folder };
        let mut ended = false;
        let up = wait_until("chronyd's command port", LIMIT, || {
            ended = chrony.process.ended().is_some();
            let ask = ["chronyc", "-h", "127.0.0.1", "-c", "tracking"];
            ended || namespace.run(&ask, LIMIT).is_ok_and(|done| done.success())
        });
        if up.is_err() || ended {
            let wrote = format!("{}{}", chrony.process.stdout(), chrony.process.stderr());
            return Err(Error::new(format!("starting chronyd in {}", namespace.name()), wrote));
        }
        Ok(chrony)
    }

    /// The process, to signal or to kill.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}
