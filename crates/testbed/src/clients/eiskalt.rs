//! EiskaltDC++'s daemon, a client of Direct Connect; steered over JSON-RPC with curl.

use super::{noise, serves};
use crate::{Error, LIMIT, Namespace, Process, folder, wait_until};
use serde_json::{Value, json};
use std::{path::PathBuf, time::Duration};
use tempfile::TempDir;

/// A running eiskaltdcpp-daemon without TLS; killed, and its files removed, when dropped.
#[derive(Debug)]
pub struct Eiskalt {
    process: Process,
    folder: TempDir,
    hub: String,
}

impl Eiskalt {
    /// Starts it under a nick at an address and port (TCP and UDP) with files to share, waits until they are hashed, and connects to a
    /// hub (`adc://ADDRESS:PORT`).
    ///
    /// # Errors
    ///
    /// When it is not installed or ends; with what it wrote.
    pub fn start(
        namespace: &Namespace,
        nick: &str,
        address: &str,
        port: u16,
        hub: &str,
        share: &[(&str, &[u8])],
    ) -> Result<Self, Error> {
        let folder = folder::new()?;
        let path = |name: &str| folder.path().join(name);
        for name in ["share", "files"] {
            std::fs::create_dir(path(name)).map_err(|error| Error::new(name, error))?;
        }
        for (name, content) in share {
            std::fs::write(path("share").join(name), content)
                .map_err(|error| Error::new(*name, error))?;
        }
        let files = format!("{}/", path("files").display());
        std::fs::write(path("DCPlusPlus.xml"), settings(nick, address, port, &files))
            .map_err(|error| Error::new("DCPlusPlus.xml", error))?;
        let at = folder.path().to_string_lossy().into_owned();
        let words = ["eiskaltdcpp-daemon", "-c", &at, "-l", &at, "-L", "127.0.0.1", "-P", "3121"];
        let mut process = namespace.spawn(&words)?;
        serves("eiskaltdcpp-daemon", &mut process, |_| {
            call(namespace, "show.version", &json!({})).is_ok()
        })?;
        if !share.is_empty() {
            let shared = format!("{at}/share/");
            call(namespace, "share.add", &json!({ "directory": shared, "virtname": "share" }))?;
            // Others get a list of files that is made once: none must be missing in it.
            wait_until("the hashes of the shared files", LIMIT, || {
                let hashed = call(namespace, "hash.status", &json!({}))
                    .is_ok_and(|status| status["filesleft"] == 0 && status["bytesleft"] == 0);
                // `FOLDER;NAME;SIZE;`, once the folder is known.
                let list = call(namespace, "share.list", &json!({ "separator": ";" }));
                let listed = list.is_ok_and(|list| {
                    list.as_str()
                        .is_some_and(|list| list.contains(";share;") && !list.contains(";0 B;"))
                });
                hashed && listed
            })?;
        }
        call(namespace, "hub.add", &json!({ "huburl": hub, "enc": "" }))?;
        Ok(Self { process, folder, hub: hub.to_owned() })
    }

    /// Waits until a user of this nick is seen at the hub.
    ///
    /// # Errors
    ///
    /// When there is none after `limit`.
    pub fn wait_user(
        &self,
        namespace: &Namespace,
        nick: &str,
        limit: Duration,
    ) -> Result<(), Error> {
        wait_until(&format!("{nick} at the hub"), limit, || {
            call(namespace, "hub.getusers", &json!({ "huburl": self.hub, "separator": ";" }))
                .is_ok_and(|users| users.as_str().is_some_and(|users| users.contains(nick)))
        })
        .map(drop)
    }

    /// Fetches the list of a user's files and returns where it is.
    ///
    /// # Errors
    ///
    /// When it is not there after `limit`.
    pub fn fetch_list(
        &self,
        namespace: &Namespace,
        nick: &str,
        limit: Duration,
    ) -> Result<PathBuf, Error> {
        let wanted = json!({ "huburl": self.hub, "nick": nick });
        let mut asked = false;
        let mut list = None;
        wait_until(&format!("{nick}'s list of files"), limit, || {
            asked = asked
                || call(namespace, "list.download", &wanted).is_ok_and(|answer| answer == json!(0));
            list = self.list_of(nick);
            list.is_some()
        })?;
        Ok(self.folder.path().join("FileLists").join(list.unwrap_or_default()))
    }

    /// Asks for a file that a user shares, by that user's list.
    ///
    /// # Errors
    ///
    /// When the list is not there after `limit`, or does not have the file.
    pub fn fetch(
        &self,
        namespace: &Namespace,
        nick: &str,
        name: &str,
        limit: Duration,
    ) -> Result<(), Error> {
        let list = self.fetch_list(namespace, nick, limit)?;
        let list = list.file_name().unwrap_or_default().to_string_lossy();
        let open = json!({ "filelist": list });
        let target = format!("share\\{name}");
        let wanted = json!({ "filelist": list, "target": target, "downloadto": "" });
        // The list may be there and not yet be whole.
        wait_until(&format!("{name} in {nick}'s list"), limit, || {
            call(namespace, "list.open", &open).is_ok()
                && call(namespace, "list.downloadfile", &wanted).is_ok_and(|said| said == json!(0))
        })
        .map(drop)
    }

    /// Where a fetched file is, or will be.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("files").join(name)
    }

    /// The name of a user's list, once it is fetched: what is opened while it is empty stays so.
    fn list_of(&self, nick: &str) -> Option<String> {
        std::fs::read_dir(self.folder.path().join("FileLists"))
            .ok()?
            .flatten()
            .filter(|entry| entry.metadata().is_ok_and(|file| file.len() > 0))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .find(|name| name.starts_with(&format!("{nick}.")) && name.ends_with(".bz2"))
    }

    /// The process, to signal or to kill.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// Calls a method of the daemon in a namespace.
fn call(namespace: &Namespace, method: &str, parameters: &Value) -> Result<Value, Error> {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": parameters });
    let words =
        ["curl", "-s", "-S", "-m", "20", "-d", &request.to_string(), "http://127.0.0.1:3121/"];
    let answer = namespace.check(&words)?;
    let error = || Error::new(method, &answer);
    let mut answer: Value = serde_json::from_str(&answer).map_err(|_| error())?;
    answer.get_mut("result").map(Value::take).ok_or_else(error)
}

/// Its settings: reached directly, without TLS and without the distributed table.
fn settings(nick: &str, address: &str, port: u16, files: &str) -> String {
    // Daemons that are started at the same time would draw the same identity.
    let seed = nick.bytes().fold(u64::from(port), |seed, byte| (seed << 5) ^ u64::from(byte));
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut identity: String =
        noise(seed, 38).iter().map(|byte| char::from(alphabet[usize::from(byte & 31)])).collect();
    identity.push('A');
    let text = [
        ("CID", identity.as_str()),
        ("Nick", nick),
        ("DownloadDirectory", files),
        ("ExternalIp", address),
    ];
    let tls = (port + 1).to_string();
    let port = port.to_string();
    let numbers = [
        ("InPort", port.as_str()),
        ("UDPPort", &port),
        ("TLSPort", &tls),
        ("UseTLS", "0"),
        ("RequireTLS", "0"),
        ("UseDHT", "0"),
        ("HashingStartDelay", "0"),
        ("IncomingConnections", "0"),
        ("AutoDetectIncomingConnection", "0"),
        ("NoIpOverride", "1"),
    ];
    let line = |kind: &str, (name, value): &(&str, &str)| {
        format!("<{name} type=\"{kind}\">{value}</{name}>\n")
    };
    let lines: String = text
        .iter()
        .map(|pair| line("string", pair))
        .chain(numbers.iter().map(|pair| line("int", pair)))
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?>\n\
         <DCPlusPlus>\n<Settings>\n{lines}</Settings>\n</DCPlusPlus>\n"
    )
}
