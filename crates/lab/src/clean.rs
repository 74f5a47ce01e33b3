//! What labs leave on the system, and how it goes again.
//!
//! A lab that runs has a file `/run/nigh-lab/PID-START.json` that lists what it is made of; START identifies
//! its process from a later one of the same number. TAP devices go with the process. Namespaces stay
//! when it is killed: they bear its mark ([`crate::host`]) and are removed by the next lab that starts,
//! or by `nigh lab clean`. A lock keeps two of them from cleaning at the same time.

use crate::host::{self, Owner};
use config::file::{DRAFT, replace};
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// Where the files are. Not in /run/nigh, which belongs to the daemon's user: these are root's.
const FOLDER: &str = "/run/nigh-lab";
/// The extension of the file that says what a lab is made of.
const ENTRY: &str = "json";

/// What cannot be done there.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", .path.display())]
pub struct CleanError {
    path: PathBuf,
    source: io::Error,
}

impl CleanError {
    fn new(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self { path, source }
    }
}

/// A host as others find it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct HostEntry {
    /// Its name in the scene.
    pub name: String,
    /// The node that it is joined to.
    pub attach: String,
    /// Its namespace under /run/netns, if it has one.
    pub namespace: Option<String>,
    /// Whether the lab makes the namespace.
    pub made: bool,
}

/// What a lab that runs is made of.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Entry {
    /// The file of its scene.
    pub scene: PathBuf,
    /// Its hosts, in the order of the scene, which is that of the ports.
    pub hosts: Vec<HostEntry>,
}

impl Entry {
    /// Whether the lab of this process is meant by `name`: the process's number, or the scene's name.
    pub(crate) fn is_called(&self, owner: Owner, name: &str) -> bool {
        let words = [self.scene.file_stem(), self.scene.file_name(), Some(self.scene.as_os_str())];
        owner.pid().to_string() == name || words.into_iter().flatten().any(|word| word == name)
    }
}

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cleaned {
    /// Labs whose process had ended.
    pub labs: usize,
    /// Namespaces that they had left.
    pub namespaces: Vec<String>,
}

/// Keeps other labs from making and removing namespaces until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: Flock<File>,
}

impl Lock {
    /// Waits for it.
    pub(crate) fn take() -> Result<Self, CleanError> {
        let folder = Path::new(FOLDER);
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o755).create(folder).map_err(CleanError::new(folder))?;
        let path = folder.join("lock");
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let file = file.map_err(CleanError::new(&path))?;
        let locked = Flock::lock(file, FlockArg::LockExclusive);
        let _file = locked.map_err(|(_, error)| CleanError::new(&path)(error.into()))?;
        Ok(Self { _file })
    }

    /// Removes what dead labs left.
    pub(crate) fn clean(&self) -> Result<Cleaned, CleanError> {
        let mut cleaned = Cleaned {
            namespaces: host::remove_stale().map_err(CleanError::new("/run/netns"))?,
            labs: 0,
        };
        // Who holds the lock writes none now, so those that are there are left over.
        for entry in fs::read_dir(FOLDER).map_err(CleanError::new(FOLDER))?.flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(DRAFT.as_bytes()) {
                let _ = fs::remove_file(entry.path());
            }
        }
        for (owner, path) in files(ENTRY)? {
            if owner.is_alive() {
                continue;
            }
            if let Ok(entry) = read(&path) {
                for host in entry.hosts.iter().filter(|host| host.made) {
                    host.namespace.as_deref().map(host::remove_empty_name);
                }
            }
            cleaned.labs += 1;
            for path in [path, hosts_of(owner), socket_of(owner)] {
                let _ = fs::remove_file(path);
            }
        }
        Ok(cleaned)
    }
}

/// Removes what labs have left whose processes have ended: namespaces, what runs in them, and files.
///
/// # Errors
/// When the folders cannot be read.
pub fn clean() -> Result<Cleaned, CleanError> {
    Lock::take()?.clean()
}

/// The labs that run.
///
/// # Errors
/// When the folder cannot be read.
pub fn running() -> Result<Vec<(Owner, Entry)>, CleanError> {
    let alive = files(ENTRY)?.into_iter().filter(|(owner, _)| owner.is_alive());
    // One that ends just now has no file any more.
    Ok(alive.filter_map(|(owner, path)| Some((owner, read(&path).ok()?))).collect())
}

/// Where a lab's control socket is.
pub fn socket_of(owner: Owner) -> PathBuf {
    Path::new(FOLDER).join(format!("{owner}.sock"))
}

/// A lab's names for /etc/hosts.
pub(crate) fn hosts_of(owner: Owner) -> PathBuf {
    Path::new(FOLDER).join(format!("{owner}.hosts"))
}

/// The files of this process's lab; removed when dropped.
#[derive(Debug)]
pub(crate) struct Record {
    path: PathBuf,
}

impl Record {
    /// Writes them, before anything is made. `names` is what an /etc/hosts of the lab has in it.
    pub(crate) fn write(entry: &Entry, names: &str, _: &Lock) -> Result<Self, CleanError> {
        let owner = Owner::this();
        let path = Path::new(FOLDER).join(format!("{owner}.{ENTRY}"));
        let record = Self { path };
        let text = serde_json::to_vec_pretty(entry).unwrap_or_default();
        let write = |path: &Path, content: &[u8]| {
            replace(path, 0o644, |file| file.write_all(content)).map_err(CleanError::new(path))
        };
        write(&record.path, &text)?;
        write(&hosts_of(owner), names.as_bytes())?;
        Ok(record)
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let owner = Owner::this();
        for path in [&self.path, &hosts_of(owner), &socket_of(owner)] {
            let _ = fs::remove_file(path);
        }
    }
}

/// The files of labs with this extension, with the process of each.
fn files(extension: &str) -> Result<Vec<(Owner, PathBuf)>, CleanError> {
    let entries = match fs::read_dir(FOLDER) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CleanError::new(FOLDER)(error)),
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let owner = |path: &PathBuf| -> Option<Owner> {
        let is_meant = path.extension()? == extension;
        path.file_stem().filter(|_| is_meant)?.to_str()?.parse().ok()
    };
    Ok(paths.filter_map(|path| Some((owner(&path)?, path))).collect())
}

fn read(path: &Path) -> io::Result<Entry> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}
