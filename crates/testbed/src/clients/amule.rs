//! aMule's daemon, a client of eDonkey, and the eDonkey server for tests.

use super::{Script, serves};
use crate::{Error, LIMIT, Namespace, Process, folder, wait_until};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;

/// The password of the control port, and its MD5 as aMule keeps it.
const PASSWORD: [&str; 2] = ["nigh", "ec96c3ac77e647a97fb01fc7174bce98"];

/// How often it is started: aMule 2.3.3 sometimes crashes while it hashes its files at the start.
const STARTS: u32 = 4;

/// The scripted eDonkey server; ended when dropped.
#[derive(Debug)]
pub struct Ed2kServer {
    script: Script,
}

impl Ed2kServer {
    /// Starts it at an address on TCP port 4661 and UDP port 4665. If it is `hidden`, it tells clients that
    /// their peers can and want to hide what they say.
    ///
    /// # Errors
    ///
    /// When Python is missing.
    pub fn start(namespace: &Namespace, address: &str, hidden: bool) -> Result<Self, Error> {
        let words = [address, "4661", "obfuscated"];
        let words = if hidden { &words[..] } else { &words[..2] };
        Ok(Self { script: Script::start(namespace, "ed2k_server.py", words)? })
    }

    /// The link (`ed2k://...`) of an offered file, once it is offered.
    pub fn link(&mut self, name: &str) -> Option<String> {
        self.script.process().stdout().lines().find_map(|line| {
            let mut words = line.strip_prefix("file ")?.splitn(3, ' ');
            let (hash, size) = (words.next()?, words.next()?);
            (words.next()? == name).then(|| format!("ed2k://|file|{name}|{size}|{hash}|/"))
        })
    }

    /// Waits until a file is offered and returns its link.
    ///
    /// # Errors
    ///
    /// With what the server wrote, when it is not after `limit`.
    pub fn wait_link(&mut self, name: &str, limit: Duration) -> Result<String, Error> {
        let _ = wait_until("an offered file", limit, || self.link(name).is_some());
        self.link(name).ok_or_else(|| {
            Error::new(format!("waiting for {name} to be offered"), self.script.process().stdout())
        })
    }
}

/// A running amuled; killed, and its files removed, when dropped.
#[derive(Debug)]
pub struct Amule {
    process: Process,
    folder: TempDir,
}

impl Amule {
    /// Starts it on a port (TCP, and UDP three above) with files to share, waits until its control port answers and has
    /// it connect to the server at an address. If it is `hidden`, it asks for obfuscated connections.
    ///
    /// # Errors
    ///
    /// When it is not installed or ends; with what it wrote.
    pub fn start(
        namespace: &Namespace,
        server: &str,
        port: u16,
        hidden: bool,
        share: &[(&str, &[u8])],
    ) -> Result<Self, Error> {
        let folder = folder::new()?;
        let write = |path: PathBuf, bytes: &[u8]| {
            std::fs::write(&path, bytes).map_err(|error| Error::new(path.to_string_lossy(), error))
        };
        for name in ["Incoming", "Temp"] {
            let path = folder.path().join(name);
            std::fs::create_dir(&path)
                .map_err(|error| Error::new(path.to_string_lossy(), error))?;
        }
        for (name, content) in share {
            write(folder.path().join("Incoming").join(name), content)?;
        }
        let settings = settings(folder.path(), port, hidden);
        write(folder.path().join("amule.conf"), settings.as_bytes())?;
        write(folder.path().join("server.met"), &server_list(server))?;
        let at = folder.path().to_string_lossy().into_owned();
        let mut answers = |_: &Process| {
            command(namespace, "status").is_ok_and(|wrote| wrote.contains("Succeeded"))
        };
        let mut left = STARTS;
        let process = loop {
            left -= 1;
            let mut process = namespace.spawn(&["amuled", "-o", "-c", &at])?;
            match serves("amuled", &mut process, &mut answers) {
                Ok(()) => break process,
                Err(error) if left > 0 && error.why.contains("aMule has crashed") => {}
                Err(error) => return Err(error),
            }
        };
        wait_until("aMule's connection to the server", LIMIT, || {
            let wrote = command(namespace, "status").unwrap_or_default();
            if wrote.contains("Not connected") {
                // Also later: on a busy machine it can leave the server's answer unread, and gives up.
                let _ = command(namespace, "connect ed2k");
            }
            wrote.contains("HighID")
        })?;
        Ok(Self { process, folder })
    }

    /// Has it fetch the file of a link (`ed2k://...`).
    ///
    /// # Errors
    ///
    /// When it does not take the link, however often it is asked.
    pub fn fetch(&self, namespace: &Namespace, link: &str) -> Result<(), Error> {
        // On a busy machine it can leave a command unread; a link that it has does no harm.
        wait_until("aMule to take a link", LIMIT, || {
            command(namespace, &format!("add {link}"))
                .is_ok_and(|wrote| wrote.contains("Operation was successful"))
        })
        .map(drop)
    }

    /// The content of a file that it fetches, once there is any; it fetches no second one at that time.
    /// On a busy machine aMule may never finish a file that it has received whole.
    pub fn received(&self, name: &str) -> Option<Vec<u8>> {
        let part = self.folder.path().join("Temp/001.part");
        std::fs::read(self.file(name)).or_else(|_| std::fs::read(part)).ok()
    }

    /// Where a fetched file is, or will be.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("Incoming").join(name)
    }

    /// What it has logged, for error messages.
    pub fn wrote(&self) -> String {
        let log = std::fs::read(self.folder.path().join("logfile")).unwrap_or_default();
        format!("aMule wrote:\n{}", String::from_utf8_lossy(&log))
    }

    /// The process, to signal or to kill.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// Gives a command to the daemon of a namespace, and returns what comes of it.
fn command(namespace: &Namespace, command: &str) -> Result<String, Error> {
    let words = ["amulecmd", "-h", "127.0.0.1", "-p", "4712", "-P", PASSWORD[0], "-c", command];
    // It writes a file of its own into the home folder.
    let done = namespace.run(&words, Duration::from_secs(20))?;
    Ok(format!("{}{}", done.stdout, done.stderr))
}

/// Only what differs from aMule's defaults: addresses of test networks are good, nothing outside is asked.
fn settings(folder: &Path, port: u16, hidden: bool) -> String {
    let (at, udp, hidden, password) = (folder.display(), port + 3, u8::from(hidden), PASSWORD[1]);
    format!(
        "[eMule]\nAppVersion=2.3.3\nNick=nigh\nPort={port}\nUDPPort={udp}\nUDPEnable=1\n\
         Autoconnect=0\nReconnect=1\nConnectToKad=0\nConnectToED2K=1\nFilterLanIPs=0\n\
         IPFilterAutoLoad=0\nTempDir={at}/Temp\nIncomingDir={at}/Incoming\nCheckDiskspace=0\n\
         RemoveDeadServer=0\nSmartIdCheck=0\nNewVersionCheck=0\nGeoIPEnabled=0\n\
         StartNextFile=1\nKadNodesUrl=\nEd2kServersUrl=\nUPnPEnabled=0\n\
         [ExternalConnect]\nAcceptExternalConnections=1\nECAddress=127.0.0.1\nECPort=4712\n\
         ECPassword={password}\nIpFilterClients=0\nIpFilterServers=0\n\
         [Obfuscation]\nIsClientCryptLayerSupported={hidden}\nIsCryptLayerRequested={hidden}\n\
         IsClientCryptLayerRequired=0\n"
    )
}

/// A server.met with one server: version, count, address, port, no tags.
fn server_list(server: &str) -> Vec<u8> {
    let address: std::net::Ipv4Addr = server.parse().unwrap_or(std::net::Ipv4Addr::LOCALHOST);
    let mut bytes = vec![0xe0, 1, 0, 0, 0];
    bytes.extend(address.octets());
    bytes.extend(4661_u16.to_le_bytes());
    bytes.extend(0_u32.to_le_bytes());
    bytes
}
