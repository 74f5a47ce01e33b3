//! Commands in a host: `nigh lab exec`, and the one command that a lab is run for.

use crate::{
    clean::{self, Entry, HostEntry},
    host::{HostError, Namespace, Owner},
};
use job::command::Exit;
use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sched::{CloneFlags, unshare},
    sys::signal::SigSet,
};
use std::{
    ffi::OsString,
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command},
};

/// A command could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The host's namespace cannot be entered.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The files in /run/nigh-lab cannot be read.
    #[error(transparent)]
    Clean(#[from] clean::CleanError),
    /// No lab of this name runs.
    #[error("no lab {0} runs")]
    NoLab(String),
    /// No lab that runs has this host.
    #[error("{}", no_host(.0, .1))]
    NoHost(String, Vec<String>),
    /// Several labs have a host of this name.
    #[error(
        "labs of the processes {1:?} have a host {0} each: name one with `--lab {first}`",
        first = .1.first().copied().unwrap_or_default()
    )]
    Several(String, Vec<u32>),
    /// The host is an interface of this system.
    #[error("host {0} has no namespace of its own: run the command without `nigh lab exec`")]
    NoNamespace(String),
    /// The folders of the host cannot be prepared.
    #[error("preparing {0}: {1}")]
    Mount(&'static str, nix::Error),
    /// The program cannot be started.
    #[error("starting {}: {source}", .program.display())]
    Start {
        /// The program.
        program: OsString,
        /// The system's error.
        source: io::Error,
    },
}

impl ExecError {
    /// The exit code of env(1): 127 where the program is not found, 126 where it cannot be run, 125 for
    /// all that failed before.
    pub fn exit(&self) -> Exit {
        Exit::Command(match self {
            Self::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Start { .. } => 126,
            _ => 125,
        })
    }
}

fn no_host(name: &str, known: &[String]) -> String {
    match known {
        [] => format!("there is no host {name}: no lab runs"),
        known => format!("there is no host {name}: there are {}", known.join(", ")),
    }
}

/// Makes the calling thread see a host as its whole network: its namespace, its interfaces in /sys,
/// and the lab's names in /etc/hosts. A thread of several keeps this for itself.
fn enter(namespace: &Namespace, owner: Owner) -> Result<(), ExecError> {
    namespace.enter_for_good()?;
    let none = None::<&str>;
    unshare(CloneFlags::CLONE_NEWNS).map_err(|error| ExecError::Mount("mounts", error))?;
    mount(none, "/", none, MsFlags::MS_SLAVE | MsFlags::MS_REC, none)
        .map_err(|error| ExecError::Mount("/", error))?;
    // What is mounted below /sys, such as cgroups, stays reachable where /sys is left as it was.
    let _ = umount2("/sys", MntFlags::MNT_DETACH);
    mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none)
        .map_err(|error| ExecError::Mount("/sys", error))?;
    let names = clean::hosts_of(owner);
    if names.exists() && Path::new("/etc/hosts").exists() {
        mount(Some(&names), "/etc/hosts", none, MsFlags::MS_BIND, none)
            .map_err(|error| ExecError::Mount("/etc/hosts", error))?;
    }
    Ok(())
}

fn start_error(program: &OsString) -> impl FnOnce(io::Error) -> ExecError {
    move |source| ExecError::Start { program: program.clone(), source }
}

/// Starts a command in a host of this process's lab, with `mask` as the signals that it does not take:
/// it has those of the thread that starts it. A signal in that moment ends the lab as SIGKILL does.
pub(super) fn spawn(
    namespace: &Namespace,
    words: &[OsString],
    mask: &SigSet,
) -> Result<Child, ExecError> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(start_error(&OsString::new())(io::ErrorKind::InvalidInput.into()));
    };
    std::thread::scope(|scope| {
        let start = || {
            enter(namespace, Owner::this())?;
            mask.thread_set_mask().map_err(|error| start_error(program)(error.into()))?;
            Command::new(program).args(arguments).spawn().map_err(start_error(program))
        };
        match scope.spawn(start).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Becomes a command in a host of a lab that runs; returns only when that fails. `lab` is the number
/// of the lab's process or the name of its scene, where there are several.
pub fn exec(host: &str, words: &[OsString], lab: Option<&str>) -> ExecError {
    let Some((program, arguments)) = words.split_first() else {
        return start_error(&OsString::new())(io::ErrorKind::InvalidInput.into());
    };
    match find(host, lab).and_then(|(namespace, owner)| enter(&namespace, owner)) {
        Ok(()) => start_error(program)(Command::new(program).args(arguments).exec()),
        Err(error) => error,
    }
}

/// The namespace of a host, and the lab that it is in.
fn find(host: &str, lab: Option<&str>) -> Result<(Namespace, Owner), ExecError> {
    let (namespace, owner) = pick(clean::running()?, host, lab)?;
    Ok((Namespace::open(&namespace)?, owner))
}

/// The name of the namespace of a host, among the labs that run.
fn pick(
    mut running: Vec<(Owner, Entry)>,
    host: &str,
    lab: Option<&str>,
) -> Result<(String, Owner), ExecError> {
    if let Some(lab) = lab {
        running.retain(|(owner, entry)| entry.is_called(*owner, lab));
        if running.is_empty() {
            return Err(ExecError::NoLab(lab.to_owned()));
        }
    }
    let hosts =
        || running.iter().flat_map(|(owner, entry)| entry.hosts.iter().map(|h| (*owner, h)));
    let is_meant =
        |entry: &HostEntry| entry.name == host || entry.namespace.as_deref() == Some(host);
    let mut found = hosts().filter(|(_, entry)| is_meant(entry));
    let Some((owner, entry)) = found.next() else {
        let known = hosts().map(|(_, entry)| entry.name.clone()).collect();
        return Err(ExecError::NoHost(host.to_owned(), known));
    };
    let others: Vec<u32> = found.map(|(owner, _)| owner.pid()).collect();
    if !others.is_empty() {
        let all = [owner.pid()].into_iter().chain(others).collect();
        return Err(ExecError::Several(host.to_owned(), all));
    }
    match &entry.namespace {
        Some(namespace) => Ok((namespace.clone(), owner)),
        None => Err(ExecError::NoNamespace(host.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_is_meant_by_its_process_or_its_scene() {
        let lab = |owner: &str, scene: &str| {
            let namespace = Some(format!("pc-{owner}"));
            let host = HostEntry { name: "pc".into(), attach: "a".into(), namespace, made: true };
            let entry = Entry { scene: scene.into(), hosts: vec![host] };
            (owner.parse::<Owner>().expect("an owner"), entry)
        };
        let running = || vec![lab("7-1", "/a/one.toml"), lab("8-1", "/a/two.toml")];
        let found = |host, lab| {
            let found = pick(running(), host, lab);
            found.map(|(namespace, _)| namespace).map_err(|error| error.to_string())
        };
        for lab in ["8", "two", "two.toml", "/a/two.toml"] {
            assert_eq!(found("pc", Some(lab)), Ok("pc-8-1".to_owned()), "{lab}");
        }
        assert_eq!(found("pc-7-1", None), Ok("pc-7-1".to_owned()));
        assert_eq!(found("pc", Some("three")), Err("no lab three runs".to_owned()));
        let error = found("server", Some("one")).expect_err("no such host");
        assert_eq!(error, "there is no host server: there are pc");
        let error = found("pc", None).expect_err("two of them");
        assert!(error.contains("`--lab 7`"), "{error}");
    }
}
