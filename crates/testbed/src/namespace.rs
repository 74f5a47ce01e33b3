//! Network namespaces behind a guard.
//!
//! A namespace is made with `ip netns`, so that people can look into it too (`ip netns exec NAME
//! ...`). Its name is `nigh.PID.NUMBER.LABEL`; the PID tells [`remove_stale`] whether the process
//! that made it still lives. Programs are started from a thread that has entered the namespace with
//! setns(2) and inherit it; the mounts stay those of the host, so /sys/fs/bpf is the host's.

use crate::{
    Error, Finished, Process,
    folder::{self, owner},
    permit::permit,
    process::{check, check_always, command, run},
};
use nix::{
    sched::{CloneFlags, setns},
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    fs::File,
    path::Path,
    process::Command,
    sync::{
        Once,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

/// Where iproute2 keeps its namespaces.
pub(crate) const FOLDER: &str = "/run/netns";

/// Settings of a new namespace. No duplicate address detection and no router solicitation, so that
/// addresses serve at once; no limits on ICMP errors, so that every probe of a traceroute is
/// answered; no reverse-path filter, whatever the host's default is; no redirects.
const SETTINGS: [(&str, &str); 12] = [
    ("ipv4.conf.all.rp_filter", "0"),
    ("ipv4.conf.default.rp_filter", "0"),
    ("ipv4.conf.all.send_redirects", "0"),
    ("ipv4.conf.default.send_redirects", "0"),
    ("ipv4.icmp_ratelimit", "0"),
    ("ipv4.icmp_msgs_per_sec", "1000000"),
    ("ipv4.ping_group_range", "0 2147483647"),
    ("ipv6.conf.all.accept_dad", "0"),
    ("ipv6.conf.default.accept_dad", "0"),
    ("ipv6.conf.all.accept_ra", "0"),
    ("ipv6.conf.default.accept_ra", "0"),
    ("ipv6.icmp.ratelimit", "0"),
];

/// A network namespace with `lo` up; removed with all that runs in it when dropped.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    handle: Handle,
}

/// An open file of a namespace, by which threads enter it.
pub(crate) type Handle = File;

impl Namespace {
    /// Makes a namespace; `label` is the readable end of its name.
    ///
    /// # Errors
    ///
    /// When `ip netns add` or a setting fails.
    ///
    /// # Panics
    ///
    /// See [`need_root`](crate::need_root).
    pub fn new(label: &str) -> Result<Self, Error> {
        crate::need_root();
        static STALE: Once = Once::new();
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        STALE.call_once(remove_stale);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("nigh.{}.{number}.{label}", std::process::id());
        {
            let _permit = permit("adding a namespace")?;
            check_always(command(&["ip", "netns", "add", &name]))?;
        }
        let path = Path::new(FOLDER).join(&name);
        let handle = match File::open(&path) {
            Ok(handle) => handle,
            Err(error) => {
                remove(&name);
                return Err(Error::new(format!("opening {}", path.display()), error));
            }
        };
        let namespace = Self { name, handle };
        namespace.sysctl(&SETTINGS)?;
        namespace.check(&["ip", "link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// Its name, for `ip netns exec`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a closure in the namespace, on a thread of its own, and returns what it returns.
    ///
    /// Sockets made there stay in the namespace wherever they are used later.
    ///
    /// # Panics
    ///
    /// When the closure panics (with its message), or the namespace cannot be entered.
    pub fn enter<R: Send>(&self, closure: impl FnOnce() -> R + Send) -> R {
        enter(&self.handle, closure)
    }

    /// A second handle, for threads that outlive a borrow.
    pub(crate) fn handle(&self) -> std::io::Result<Handle> {
        self.handle.try_clone()
    }

    /// Runs a program to its end; another exit code than 0 is no error.
    ///
    /// # Errors
    ///
    /// When it cannot be started or still runs after `limit`.
    pub fn run(&self, words: &[&str], limit: Duration) -> Result<Finished, Error> {
        self.enter(|| run(command(words), limit))
    }

    /// Runs a program to its end, for at most 30 seconds, and returns its standard output.
    ///
    /// # Errors
    ///
    /// When it cannot be started, takes longer, or its exit code is not 0.
    pub fn check(&self, words: &[&str]) -> Result<String, Error> {
        self.enter(|| check(command(words)))
            .map_err(|error| Error::new(format!("in {}: {}", self.name, error.what), error.why))
    }

    /// Starts a program that runs until the returned guard is dropped.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn spawn(&self, words: &[&str]) -> Result<Process, Error> {
        self.start(command(words))
    }

    /// Starts a program that runs until the returned guard is dropped.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(&self, command: Command) -> Result<Process, Error> {
        self.enter(|| Process::start(command))
    }

    /// Writes settings below /proc/sys/net; dots in the names stand for slashes.
    ///
    /// # Errors
    ///
    /// Names the first setting that the kernel refuses.
    pub fn sysctl(&self, settings: &[(&str, &str)]) -> Result<(), Error> {
        self.enter(|| {
            for (name, value) in settings {
                let path = format!("/proc/sys/net/{}", name.replace('.', "/"));
                std::fs::write(&path, value)
                    .map_err(|error| Error::new(format!("writing {value} to {path}"), error))?;
            }
            Ok(())
        })
    }

    /// Lets the namespace forward packets of both families, as a router does.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn forward(&self) -> Result<(), Error> {
        self.sysctl(&[("ipv4.ip_forward", "1"), ("ipv6.conf.all.forwarding", "1")])
    }

    /// The numbers of the processes that run in it.
    pub fn pids(&self) -> Vec<u32> {
        pids(&self.name)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

/// Runs a closure in a namespace, see [`Namespace::enter`].
pub(crate) fn enter<R: Send>(handle: &Handle, closure: impl FnOnce() -> R + Send) -> R {
    let inside = || {
        setns(handle, CloneFlags::CLONE_NEWNET)
            .unwrap_or_else(|error| panic!("entering a namespace: {error}"));
        closure()
    };
    std::thread::scope(|scope| match scope.spawn(inside).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Removes what test processes that no longer live have left: namespaces, what runs in them, and
/// temporary files.
///
/// [`Namespace::new`] does this once a process, so nobody needs to call it.
pub fn remove_stale() {
    let dead = |owner: u32| !Path::new("/proc").join(owner.to_string()).exists();
    remove_of(dead);
    folder::remove_of(dead);
}

/// Removes the namespaces of the processes that `whose` names.
pub(crate) fn remove_of(whose: impl Fn(u32) -> bool) {
    let Ok(entries) = std::fs::read_dir(FOLDER) else { return };
    for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        if owner(&name).is_some_and(&whose) {
            remove(&name);
        }
    }
}

fn pids(name: &str) -> Vec<u32> {
    let output = check_always(command(&["ip", "netns", "pids", name])).unwrap_or_default();
    output.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

fn remove(name: &str) {
    for pid in pids(name) {
        let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
    }
    let _ = check_always(command(&["ip", "netns", "del", name]));
}
