//! Least privilege.

pub use caps::Capability;

use caps::{CapSet, CapsHashSet};
use nix::sys::resource::{Resource, setrlimit};
use std::io;
use tracing::debug;

/// Gives up every capability of the calling thread, and with it of those that it starts. What is open stays
/// open: programs are read and configured without any.
///
/// # Errors
/// When the system refuses.
pub fn give_up() -> io::Result<()> {
    keep(&[])
}

/// The same but for those of these that it has; no program that it starts can have more again.
///
/// # Errors
/// When the system refuses.
pub fn keep(wanted: &[Capability]) -> io::Result<()> {
    let change = || -> Result<(), caps::errors::CapsError> {
        let bounding = caps::read(None, CapSet::Bounding)?;
        if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)? {
            for capability in bounding {
                caps::drop(None, CapSet::Bounding, capability)?;
            }
        } else if !bounding.is_empty() {
            debug!("no CAP_SETPCAP: the bounding set stays as it is");
        }
        let has = caps::read(None, CapSet::Permitted)?;
        let kept: CapsHashSet = wanted.iter().filter(|it| has.contains(it)).copied().collect();
        for set in [CapSet::Ambient, CapSet::Inheritable] {
            caps::clear(None, set)?;
        }
        caps::set(None, CapSet::Effective, &kept)?;
        caps::set(None, CapSet::Permitted, &kept)
    };
    change().map_err(io::Error::other)?;
    let refused = |error| io::Error::other(format!("no_new_privs cannot be set: {error}"));
    nix::sys::prctl::set_no_new_privs().map_err(refused)
}

/// Lets nobody look into this process: no core dump holds its keys, and no debugger of the same user may stop or
/// read it (prctl(2), `PR_SET_DUMPABLE`). A change of the user undoes the second; programs that it starts are as
/// others are.
///
/// # Errors
/// When the system refuses.
pub fn conceal() -> io::Result<()> {
    nix::sys::prctl::set_dumpable(false)?;
    Ok(setrlimit(Resource::RLIMIT_CORE, 0, 0)?)
}

/// What it takes to make files where another user may, and to give them to this one.
pub const FILES: [Capability; 3] =
    [Capability::CAP_DAC_OVERRIDE, Capability::CAP_CHOWN, Capability::CAP_FOWNER];

/// What loading programs and attaching them takes.
pub const LOAD: [Capability; 3] =
    [Capability::CAP_BPF, Capability::CAP_PERFMON, Capability::CAP_NET_ADMIN];

/// Those of these that the calling thread lacks.
pub fn missing(wanted: &[Capability]) -> Vec<Capability> {
    let has = caps::read(None, CapSet::Effective).unwrap_or_default();
    wanted.iter().filter(|it| !has.contains(it)).copied().collect()
}

/// Those of [`LOAD`] that the calling thread lacks; for bpf(2), CAP_SYS_ADMIN is all of them.
pub fn missing_to_load() -> Vec<Capability> {
    let all = missing(&[Capability::CAP_SYS_ADMIN]).is_empty();
    if all { Vec::new() } else { missing(&LOAD) }
}

/// Their names, for a sentence.
pub fn list(capabilities: &[Capability]) -> String {
    let names: Vec<String> = capabilities.iter().map(ToString::to_string).collect();
    match names.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}
