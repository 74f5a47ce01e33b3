//! GoBGP in a namespace: the only free speaker that can be told to announce any object of BGP-LS.
//!
//! `scripts/setup test` builds it into `~/go/bin`.

use crate::{
    Error, LIMIT, Namespace, Process, folder,
    process::{check, command},
    wait_until,
};
use std::path::PathBuf;
use tempfile::TempDir;

/// The address of its control interface, inside its namespace.
const API: &str = "127.0.0.1:50051";

/// A running gobgpd; killed, and its files removed, when dropped.
#[derive(Debug)]
pub struct GoBgp {
    process: Process,
    client: String,
    _folder: TempDir,
}

impl GoBgp {
    /// Starts gobgpd with a configuration (TOML), and waits until it answers.
    ///
    /// # Errors
    ///
    /// When GoBGP is not there or refuses the configuration; the error carries what it wrote.
    pub fn start(namespace: &Namespace, configuration: &str) -> Result<Self, Error> {
        let folder = folder::new()?;
        let conf = folder.path().join("gobgpd.toml").to_string_lossy().into_owned();
        std::fs::write(&conf, configuration).map_err(|error| Error::new(&conf, error))?;
        let daemon = program("gobgpd");
        let process = namespace.spawn(&[
            &daemon,
            "-f",
            &conf,
            "--api-hosts",
            API,
            "--log-plain",
            "--pprof-disable",
        ])?;
        let mut gobgp = Self { process, client: program("gobgp"), _folder: folder };
        let mut ended = false;
        let up = wait_until("gobgpd's control interface", LIMIT, || {
            ended = gobgp.process.ended().is_some();
            ended || gobgp.command(namespace, &["global"]).is_ok()
        });
        if up.is_err() || ended {
            let wrote = format!("{}{}", gobgp.process.stdout(), gobgp.process.stderr());
            return Err(Error::new(format!("starting gobgpd in {}", namespace.name()), wrote));
        }
        Ok(gobgp)
    }

    /// The process, to signal or to kill.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Runs `gobgp WORDS...` in its namespace and returns what it prints.
    ///
    /// # Errors
    ///
    /// When gobgpd does not answer or does not know the command.
    pub fn command(&self, namespace: &Namespace, words: &[&str]) -> Result<String, Error> {
        let mut all = vec![self.client.as_str()];
        all.extend(words);
        namespace.enter(|| check(command(&all)))
    }
}

/// Where a program of GoBGP is: where Go's `go install` puts it, else on the path.
fn program(name: &str) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let built = home.map(|home| home.join("go/bin").join(name));
    match built {
        Some(path) if path.exists() => path.to_string_lossy().into_owned(),
        _ => name.to_owned(),
    }
}
