//! Hosts: network namespaces that the lab makes, and those it finds.
//!
//! A namespace of the lab is named under /run/netns as `ip netns add` does it, so that `ip netns
//! exec` works with it too. Before it gets its name it is marked: the alias of its `lo` says which
//! process made it ([`Owner`]). Only what bears the mark of a process that has ended is ever removed.
//!
//! What is done in a namespace is done by a thread of its own that enters it with setns(2).

mod netlink;
mod owner;

pub use netlink::NetlinkError;
pub(crate) use netlink::{Gateways, Interface};
pub use owner::Owner;

use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sched::{CloneFlags, setns, unshare},
    sys::{
        signal::{Signal, kill},
        statfs::{NSFS_MAGIC, fstatfs},
    },
    unistd::Pid,
};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Where namespaces have their names (ip-netns(8)).
const FOLDER: &str = "/run/netns";

/// Settings of a new namespace, below /proc/sys/net. Addresses are usable at once, nobody sends the host
/// its routes but the lab, and everybody may ping.
const SETTINGS: [(&str, &str); 6] = [
    ("ipv4/ping_group_range", "0 2147483647"),
    ("ipv6/conf/all/accept_dad", "0"),
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv6/conf/all/accept_ra", "0"),
    ("ipv6/conf/default/accept_ra", "0"),
    ("ipv6/conf/default/router_solicitations", "0"),
];

/// A namespace could not be made, found or entered.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Its name is taken by something that no dead lab left behind.
    #[error(
        "a network namespace {0} exists already and is not the lab's: choose another name for the host, or remove it with `ip netns del {0}`"
    )]
    Taken(String),
    /// A lab that runs has it.
    #[error("a network namespace {0} belongs to the lab of process {1}, which runs: stop it first")]
    InUse(String, u32),
    /// There is none of this name.
    #[error("there is no network namespace {0}: `ip netns list` shows all")]
    Missing(String),
    /// The system refused.
    #[error("namespace {name}: {what}: {source}")]
    Refused {
        /// The name of the namespace.
        name: String,
        /// What was tried.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel's networking refused.
    #[error("namespace {0}: {1}")]
    Netlink(String, #[source] NetlinkError),
}

impl HostError {
    fn refused<E: Into<io::Error>>(name: &str, what: &'static str) -> impl FnOnce(E) -> Self {
        let name = name.to_owned();
        move |error| Self::Refused { name, what, source: error.into() }
    }
}

/// An open network namespace. One that the lab made goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
    file: File,
    made: bool,
}

impl Namespace {
    /// Makes a namespace with `lo` up, marked as this process's.
    pub(crate) fn make(name: &str) -> Result<Self, HostError> {
        prepare_folder().map_err(HostError::refused(name, FOLDER))?;
        let path = path(name);
        // Whoever creates the file has the name.
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(match Self::open(name).ok().and_then(|host| host.owner()) {
                    Some(owner) if owner.is_alive() => {
                        HostError::InUse(name.to_owned(), owner.pid())
                    }
                    _ => HostError::Taken(name.to_owned()),
                });
            }
            Err(error) => return Err(HostError::refused(name, "taking its name")(error)),
        }
        let made = on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)
                .map_err(HostError::refused(name, "making it (needs CAP_SYS_ADMIN)"))?;
            let mark = Owner::this().mark();
            netlink::prepare_loopback(&mark)
                .map_err(|error| HostError::Netlink(name.to_owned(), error))?;
            for (setting, value) in SETTINGS {
                // A kernel without IPv6 has not all of them.
                match fs::write(Path::new("/proc/sys/net").join(setting), value) {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        return Err(HostError::refused(name, "setting it up")(error));
                    }
                    _ => {}
                }
            }
            let this = "/proc/thread-self/ns/net";
            let file = File::open(this).map_err(HostError::refused(name, "opening it"))?;
            mount(Some(this), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>)
                .map_err(HostError::refused(name, "giving it its name"))?;
            Ok(file)
        });
        match made {
            Ok(file) => Ok(Self { name: name.to_owned(), file, made: true }),
            Err(error) => {
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Opens the namespace of a name, whoever made it.
    pub(crate) fn open(name: &str) -> Result<Self, HostError> {
        let file = match File::open(path(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(HostError::Missing(name.to_owned()));
            }
            Err(error) => return Err(HostError::refused(name, "opening it")(error)),
        };
        if fstatfs(&file).ok().is_none_or(|stat| stat.filesystem_type() != NSFS_MAGIC) {
            return Err(HostError::Missing(name.to_owned()));
        }
        Ok(Self { name: name.to_owned(), file, made: false })
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs a closure in the namespace, on a thread of its own. Files and sockets made there stay in
    /// the namespace wherever they are used later.
    pub(crate) fn enter<R: Send>(
        &self,
        closure: impl FnOnce() -> Result<R, HostError> + Send,
    ) -> Result<R, HostError> {
        on_a_thread(|| {
            self.enter_for_good()?;
            closure()
        })
    }

    /// Moves the calling thread into the namespace.
    pub(crate) fn enter_for_good(&self) -> Result<(), HostError> {
        setns(&self.file, CloneFlags::CLONE_NEWNET)
            .map_err(HostError::refused(&self.name, "entering it (needs CAP_SYS_ADMIN)"))
    }

    /// The process that made it, if that was a lab.
    pub(crate) fn owner(&self) -> Option<Owner> {
        let alias = self.enter(|| {
            netlink::loopback_alias().map_err(|error| HostError::Netlink(self.name.clone(), error))
        });
        Owner::of_mark(&alias.ok()??)
    }

    /// Ends what runs in it and takes its name away; it is gone when the last open file of it is.
    fn remove(&self) {
        for pid in self.processes() {
            let _ = kill(pid, Signal::SIGKILL);
        }
        let path = path(&self.name);
        let _ = umount2(&path, MntFlags::MNT_DETACH);
        let _ = fs::remove_file(&path);
    }

    /// The processes that run in it, but for this one.
    fn processes(&self) -> Vec<Pid> {
        let Ok(own) = self.file.metadata() else { return Vec::new() };
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let others = pids.filter(|pid| *pid != Pid::this().as_raw());
        let inside = |pid: &i32| {
            // The file itself is inspected, not what it stands for: so its inode is the namespace's.
            fs::metadata(format!("/proc/{pid}/ns/net"))
                .is_ok_and(|other| (other.dev(), other.ino()) == (own.dev(), own.ino()))
        };
        others.filter(inside).map(Pid::from_raw).collect()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.made {
            self.remove();
        }
    }
}

/// Removes every namespace that a lab made whose process has ended, and returns their names.
///
/// # Errors
/// When the folder of the names cannot be read.
pub(crate) fn remove_stale() -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(FOLDER) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let hosts = names.filter_map(|name| Namespace::open(&name).ok());
    let stale = hosts.filter(|host| host.owner().is_some_and(|owner| !owner.is_alive()));
    Ok(stale
        .map(|host| {
            host.remove();
            host.name.clone()
        })
        .collect())
}

/// Gives up a name that was taken for a namespace which then was not made, as when the process was
/// killed between the two.
pub(crate) fn remove_empty_name(name: &str) {
    let path = path(name);
    let empty = fs::symlink_metadata(&path).is_ok_and(|file| file.is_file() && file.len() == 0);
    // The file of a namespace is a regular file of no length as well.
    if empty && matches!(Namespace::open(name), Err(HostError::Missing(_))) {
        let _ = fs::remove_file(path);
    }
}

fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// Makes the folder of the names as `ip netns add` does it: a mount of its own whose mounts are seen
/// in all other mount namespaces.
fn prepare_folder() -> io::Result<()> {
    fs::create_dir_all(FOLDER)?;
    let none = None::<&str>;
    let share = || mount(none, FOLDER, none, MsFlags::MS_SHARED | MsFlags::MS_REC, none);
    if share().is_ok() {
        return Ok(());
    }
    // Not a mount yet.
    mount(Some(FOLDER), FOLDER, none, MsFlags::MS_BIND | MsFlags::MS_REC, none)?;
    Ok(share()?)
}

/// Runs a closure in a namespace that has no name and goes with the last file and socket made there.
/// `what` names its purpose in errors.
pub(crate) fn unnamed<R: Send>(
    what: &str,
    closure: impl FnOnce() -> Result<R, HostError> + Send,
) -> Result<R, HostError> {
    on_a_thread(|| {
        unshare(CloneFlags::CLONE_NEWNET)
            .map_err(HostError::refused(what, "making it (needs CAP_SYS_ADMIN)"))?;
        closure()
    })
}

/// Runs a closure on a thread of its own; what it panics with goes on here.
fn on_a_thread<R: Send>(closure: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| match scope.spawn(closure).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
