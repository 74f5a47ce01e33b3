//! FRR's bgpd in a namespace, alone: without zebra it learns and announces but installs nothing.

use crate::{
    Error, LIMIT, Namespace, Process, folder,
    process::{check, command},
    wait_until,
};
use std::path::Path;
use tempfile::TempDir;

/// Where Debian's package keeps the daemon.
const BGPD: &str = "/usr/lib/frr/bgpd";

/// A running bgpd; killed, and its files removed, when dropped.
#[derive(Debug)]
pub struct Frr {
    process: Process,
    folder: TempDir,
}

impl Frr {
    /// Starts bgpd with a configuration, and waits until it answers.
    ///
    /// # Errors
    ///
    /// When FRR is not installed or refuses the configuration; the error carries what it wrote.
    pub fn start(namespace: &Namespace, configuration: &str) -> Result<Self, Error> {
        Self::start_with(namespace, configuration, &[])
    }

    /// As [`Frr::start`], with more options of bgpd, such as `-M bmp` for the module that speaks BMP.
    ///
    /// # Errors
    ///
    /// As [`Frr::start`].
    pub fn start_with(
        namespace: &Namespace,
        configuration: &str,
        options: &[&str],
    ) -> Result<Self, Error> {
        let folder = folder::new()?;
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let conf = path("bgpd.conf");
        std::fs::write(&conf, configuration).map_err(|error| Error::new(&conf, error))?;
        // Without zebra, kernel and telnet port; as the user who started it.
        let pid = path("bgpd.pid");
        let vty = folder.path().to_string_lossy();
        let mut words = vec![
            BGPD,
            "-S",
            "-Z",
            "-n",
            "-P",
            "0",
            "-f",
            &conf,
            "-i",
            &pid,
            "--vty_socket",
            &vty,
            "--log",
            "stdout",
        ];
        words.extend(options);
        let process = namespace.spawn(&words)?;
        let mut frr = Self { process, folder };
        let mut ended = false;
        let up = wait_until("bgpd's socket", LIMIT, || {
            ended = frr.process.ended().is_some();
            ended || frr.query("show version").is_ok()
        });
        if up.is_err() || ended {
            let wrote = format!("{}{}", frr.process.stdout(), frr.process.stderr());
            return Err(Error::new(format!("starting bgpd in {}", namespace.name()), wrote));
        }
        Ok(frr)
    }

    /// The process, to signal or to kill.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Runs a command as `vtysh -c` does and returns what it prints.
    ///
    /// # Errors
    ///
    /// When bgpd does not answer or does not know the command.
    pub fn query(&self, line: &str) -> Result<String, Error> {
        self.configure(&[line])
    }

    /// Runs commands one after the other in one session, such as `configure terminal` and what follows
    /// it, and returns what they print.
    ///
    /// # Errors
    ///
    /// When bgpd does not answer or does not know one of them.
    pub fn configure(&self, lines: &[&str]) -> Result<String, Error> {
        let folder: &Path = self.folder.path();
        let folder = folder.to_string_lossy();
        let mut words = vec!["vtysh", "--vty_socket", &folder, "-d", "bgpd"];
        words.extend(lines.iter().flat_map(|line| ["-c", line]));
        check(command(&words))
    }
}
