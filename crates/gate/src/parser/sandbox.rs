//! What a parser's process gives up: all capabilities, files, sockets, new descriptors, and every system
//! call but those with which it reads, computes and answers.

use super::Parser;
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus,
    Scope,
};
use nix::{
    libc,
    sys::{
        prctl,
        resource::{Resource, setrlimit},
        signal::{SigSet, Signal},
    },
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsRawFd, RawFd},
};

/// What the process was denied beyond what every kernel denies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Confinement {
    /// Files, by Landlock: system calls on files are refused in any case.
    pub landlock: bool,
}

/// Memory that it may map. What it keeps of flows is bounded far below.
const MEMORY: u64 = 4 << 30;

/// System calls that it may make with any arguments.
const ALLOWED: [i64; 23] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_close,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_futex,
    // Where the kernel's clock cannot be read without a call (a clock source such as hpet).
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_sched_yield,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigprocmask,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
];
/// System calls that map memory, and the argument that says how: not to be executed.
const MAPPING: [(i64, u8); 2] = [(libc::SYS_mmap, 2), (libc::SYS_mprotect, 2)];

/// Gives up, before anything is read: new rights, capabilities, being traced or dumped. A stop of the daemon's
/// is none of a parser's, which ends when the daemon has closed the socket.
///
/// # Errors
/// The system's.
pub fn renounce() -> io::Result<()> {
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT]
        .into_iter()
        .collect::<SigSet>()
        .thread_block()?;
    prctl::set_no_new_privs()?;
    prctl::set_dumpable(false)?;
    use caps::CapSet;
    for set in [CapSet::Ambient, CapSet::Effective, CapSet::Permitted, CapSet::Inheritable] {
        caps::clear(None, set).map_err(io::Error::other)?;
    }
    Ok(())
}

/// Closes every descriptor but one; descriptors of the daemon are closed at its start already, unless a
/// library has forgotten to say so.
///
/// # Errors
/// When they cannot be listed.
pub fn close_all_but(kept: &impl AsRawFd) -> io::Result<()> {
    let entries = std::fs::read_dir("/proc/self/fd")?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let open: Vec<RawFd> = names.collect();
    for one in open.into_iter().filter(|one| *one != kept.as_raw_fd()) {
        // The one with which they were listed is closed already.
        let _ = nix::unistd::close(one);
    }
    Ok(())
}

/// Gives up files, sockets, further descriptors and system calls, for good.
///
/// # Errors
/// The system's.
pub fn confine() -> io::Result<Confinement> {
    // While there may be a descriptor more.
    let landlock = landlock().map_err(io::Error::other)?;
    for (resource, most) in [
        (Resource::RLIMIT_AS, MEMORY),
        (Resource::RLIMIT_NOFILE, 0),
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_FSIZE, 0),
        (Resource::RLIMIT_NPROC, 0),
    ] {
        setrlimit(resource, most, most)?;
    }
    seccompiler::apply_filter(&filter().map_err(io::Error::other)?).map_err(io::Error::other)?;
    Ok(Confinement { landlock })
}

/// Forbids files, TCP and signals to other processes by Landlock, as far as the kernel has it; false if it
/// has none.
fn landlock() -> Result<bool, landlock::RulesetError> {
    let abi = ABI::V6;
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// The filter of system calls: what is not allowed fails with EPERM.
fn filter() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        ALLOWED.into_iter().map(|call| (call, Vec::new())).collect();
    for (call, argument) in MAPPING {
        let execute = libc::PROT_EXEC as u64;
        let not = SeccompCmpOp::MaskedEq(execute);
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, not, 0)?;
        rules.insert(call, vec![SeccompRule::new(vec![condition])?]);
    }
    SeccompFilter::new(
        rules,
        SeccompAction::Errno(libc::EPERM as u32),
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into()?,
    )?
    .try_into()
}

/// Item of [`Trial`]: does not answer.
pub const HANG: u8 = 100;
/// Item of [`Trial`]: an answer that is refused.
pub const NONSENSE: u8 = 101;

/// A parser that tries what it must not be able to do, to show that it is not.
#[derive(Debug)]
pub struct Trial;

impl Parser for Trial {
    type Settings = ();
    /// The number of what to try.
    type Item<'a> = u8;
    /// What was tried, and whether it was refused.
    type Answer = (String, bool);

    const NAME: &'static str = "trial";

    fn new((): &()) -> Result<Self, String> {
        Ok(Self)
    }

    fn take(&mut self, item: u8, answers: &mut Vec<Self::Answer>) {
        use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
        let inet = |kind| socket(AddressFamily::Inet, kind, SockFlag::empty(), None).is_err();
        let (what, refused) = match item {
            0 => ("open a file", std::fs::File::open("/etc/passwd").is_err()),
            1 => ("list a folder", std::fs::read_dir("/").is_err()),
            2 => ("write a file", std::fs::write("/tmp/nigh-parser", b"").is_err()),
            3 => ("open a TCP socket", inet(SockType::Stream)),
            4 => ("open a UDP socket", inet(SockType::Datagram)),
            5 => ("open a Unix socket", std::os::unix::net::UnixStream::pair().is_err()),
            6 => ("start a process", std::process::Command::new("cat").spawn().is_err()),
            7 => ("start a thread", std::thread::Builder::new().spawn(|| {}).is_err()),
            8 => {
                let parent = nix::unistd::getppid();
                ("signal its parent", nix::sys::signal::kill(parent, None).is_err())
            }
            9 => ("be dumped again", prctl::set_dumpable(true).is_err()),
            // What a parser must not do to the daemon: answer nothing, and answer nonsense.
            HANG => loop {
                std::thread::park();
            },
            NONSENSE => ("", false),
            _ => return,
        };
        answers.push((what.to_owned(), refused));
    }

    fn is_sound((what, _): &Self::Answer) -> bool {
        !what.is_empty()
    }
}
