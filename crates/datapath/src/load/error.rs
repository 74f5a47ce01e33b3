//! Why the kernel does not take an eBPF program: rights, something that this kernel lacks, the verifier, or
//! memory. Error numbers alone do not tell (EACCES is the verifier's and the missing right's, EINVAL
//! anything's), so what libbpf has said during the load decides too.

use crate::capabilities::{self, Capability};
use libbpf_rs::ErrorKind;
use std::{fs, io, path::Path};

/// What is loaded, for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    /// Its name.
    pub(crate) name: &'static str,
}

/// The program could not be loaded into the kernel.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The process lacks the rights.
    #[error("this process may not load the {program} program: {why}")]
    NotPermitted {
        /// Which program.
        program: &'static str,
        /// Which rights.
        why: Denied,
    },
    /// The kernel has not what the program needs.
    #[error(
        "this kernel (Linux {kernel}) cannot run the {program} program: {lacks}; `nigh check --kernel` shows what it can do"
    )]
    Lacks {
        /// Which program.
        program: &'static str,
        /// What it lacks.
        lacks: String,
        /// Its version.
        kernel: String,
    },
    /// The kernel's verifier refused it.
    #[error(
        "the verifier of Linux {kernel} refuses the {program} program:\n{log}\nThis is a defect of nigh or of the compiler that built it: please report it with the whole log, `RUST_LOG=libbpf=debug nigh check --kernel 2> verifier.log`"
    )]
    Refused {
        /// Which program.
        program: &'static str,
        /// The end of the verifier's log.
        log: String,
        /// The kernel's version.
        kernel: String,
    },
    /// There is not enough memory, or not as much as this process may have.
    #[error("not enough memory to load {what}: {limit}")]
    Memory {
        /// What there is none for.
        what: String,
        /// What limits it, and what to do.
        limit: String,
    },
    /// Anything else.
    #[error("Linux {kernel} does not load the {program} program: {source}{said}")]
    Other {
        /// Which program.
        program: &'static str,
        /// The kernel's answer.
        source: libbpf_rs::Error,
        /// What libbpf has said about it.
        said: String,
        /// The kernel's version.
        kernel: String,
    },
    /// No random numbers for the secrets.
    #[error("cannot read /dev/urandom: {0}")]
    Random(io::Error),
    /// The length of a clock tick is unknown.
    #[error("cannot read the length of a clock tick (clock_getres): {0}")]
    Tick(io::Error),
}

/// Which right is missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// These capabilities.
    #[error("it lacks {}; run as root or give it these (systemd: AmbientCapabilities=)", capabilities::list(.0))]
    Missing(Vec<Capability>),
    /// It has them, but in a user namespace only.
    #[error(
        "its capabilities count in its user namespace only, as in a container without privileges; bpf(2) needs them in the system's own"
    )]
    UserNamespace,
    /// It has them: something else forbids it.
    #[error("it has the capabilities, but something else forbids bpf(2): {0}")]
    Else(String),
}

/// Lines of the verifier's log that are shown.
const LINES: usize = 6;
/// Bytes of such a line that are shown: the state of all registers is longer.
const LINE: usize = 200;

impl Object {
    /// The error for the kernel's answer to a load by [`super::undisturbed`].
    pub(crate) fn error(self, source: libbpf_rs::Error) -> LoadError {
        self.classify(source, &super::take_said(), &capabilities::missing_to_load())
    }

    fn classify(self, source: libbpf_rs::Error, said: &str, missing: &[Capability]) -> LoadError {
        let Self { name: program } = self;
        let kernel = version();
        let log = between(said, "-- BEGIN PROG LOAD LOG --\n", "-- END PROG LOAD LOG --");
        let denied = source.kind() == ErrorKind::PermissionDenied;
        // The verifier refuses programs of those who lack CAP_PERFMON as it refuses bad ones.
        if denied && (log.is_none() || !missing.is_empty()) {
            return LoadError::NotPermitted { program, why: Denied::now(missing) };
        }
        if source.kind() == ErrorKind::OutOfMemory {
            let map = between(said, "map '", "'").map(|map| format!(", its map {map}"));
            let what = format!("the {program} program{}", map.unwrap_or_default());
            let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
            let limit = memory_limit(Path::new("/sys/fs/cgroup"), &groups);
            return LoadError::Memory { what, limit };
        }
        if let Some(lacks) = lacks(source.kind(), said, log) {
            return LoadError::Lacks { program, lacks, kernel };
        }
        match log {
            Some(log) => LoadError::Refused { program, log: end(log), kernel },
            None => {
                let said: String = said.lines().map(|line| format!("; {line}")).collect();
                LoadError::Other { program, source, said, kernel }
            }
        }
    }
}

impl Denied {
    /// What this process lacks, where the kernel permits something to those with these capabilities.
    pub(crate) fn now(missing: &[Capability]) -> Self {
        if !missing.is_empty() {
            return Self::Missing(missing.to_vec());
        }
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        // user_namespaces(7): the system's own maps all users to themselves.
        let own = ["0", "0", "4294967295"];
        if !read("/proc/self/uid_map").split_whitespace().eq(own) {
            return Self::UserNamespace;
        }
        let mut what = Vec::new();
        if read("/proc/thread-self/status").lines().any(|line| line == "Seccomp:\t2") {
            what.push(
                "a seccomp filter, which this process has (systemd: SystemCallFilter=)".into(),
            );
        }
        if let Some(mode) = between(&read("/sys/kernel/security/lockdown"), "[", "]")
            && mode != "none"
        {
            what.push(format!("lockdown mode `{mode}`"));
        }
        match read("/sys/kernel/security/lsm").trim() {
            "" => what.push("a security module".into()),
            modules => what.push(format!("a security module (here are {modules})")),
        }
        Self::Else(what.join("; "))
    }
}

/// What the kernel lacks for a program, if that is why it does not take it.
fn lacks(kind: ErrorKind, said: &str, log: Option<&str>) -> Option<String> {
    if let Some(log) = log {
        // kernel/bpf/verifier.c: check_helper_call, fetch_kfunc_meta, do_check, check_alu_op.
        if let Some(number) = between(log, "invalid func unknown#", "\n") {
            return Some(format!("it has no helper function number {number}"));
        }
        for before in ["unknown func ", "program of this type cannot use helper "] {
            if let Some(name) = between(log, before, "#") {
                return Some(format!("it does not offer the helper function {name}"));
            }
        }
        if let Some(code) = between(log, "unknown opcode ", "\n") {
            return Some(format!("it does not know the instruction with the code 0x{code}"));
        }
        if let Some(name) = between(log, "kfunc '", "' is referenced but wasn't resolved") {
            return Some(format!("it has no kernel function {name}"));
        }
        if log.contains("JIT does not support calling kernel function") {
            return Some(NO_JIT.to_owned());
        }
        return log
            .lines()
            .find(|line| line.ends_with("uses reserved fields"))
            .map(|line| format!("it does not know a form of an instruction (\"{line}\")"));
    }
    // libbpf.c: bpf_object__resolve_ksyms_btf_id, bpf_object__create_maps, libbpf_find_kernel_btf.
    if let Some(name) = between(said, "extern (func ksym) '", "': not found") {
        return Some(format!("it has no kernel function {name}"));
    }
    if said.contains("kernel BTF is missing") || said.contains("Error loading vmlinux BTF") {
        return Some("it has no BTF of itself (CONFIG_DEBUG_INFO_BTF)".to_owned());
    }
    if said.contains("-ENOTSUPP") {
        return Some(NO_JIT.to_owned());
    }
    match kind {
        ErrorKind::Unsupported => Some("it has no bpf(2) (CONFIG_BPF_SYSCALL)".to_owned()),
        ErrorKind::InvalidInput => match between(said, "map '", "': failed to create") {
            Some(map) => Some(format!("it does not know the type of the map {map}, or its flags")),
            None => between(said, "prog '", "': BPF program load failed")
                .map(|part| format!("it does not know the type of {part}, or its flags")),
        },
        _ => None,
    }
}

const NO_JIT: &str = "its just-in-time compiler for eBPF is missing or off (CONFIG_BPF_JIT, `sysctl net.core.bpf_jit_enable=1`)";

/// The end of the verifier's log, shortened: what it did not like and how far it came.
fn end(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = lines[lines.len().saturating_sub(LINES)..].iter().map(|line| {
        let cut: String = line.chars().take(LINE).collect();
        format!("  {cut}{}", if cut.len() < line.len() { " ..." } else { "" })
    });
    shown.collect::<Vec<_>>().join("\n")
}

/// What is between two texts.
fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}

/// The kernel's version, as `uname -r` prints it.
pub fn version() -> String {
    let version = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    match version.trim() {
        "" => "of unknown version".to_owned(),
        version => version.to_owned(),
    }
}

/// What limits this process's memory in the kernel: the narrowest of its control groups (cgroups(7),
/// memory.max), else the machine.
fn memory_limit(root: &Path, groups: &str) -> String {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let folder = root.join(own);
    let limits =
        folder.ancestors().take_while(|folder| folder.starts_with(root)).filter_map(|it| {
            let most: u64 = fs::read_to_string(it.join("memory.max")).ok()?.trim().parse().ok()?;
            Some((most, it))
        });
    match limits.min_by_key(|(most, _)| *most) {
        Some((most, group)) => format!(
            "the control group {} may have {} KB; raise its memory.max (systemd: MemoryMax=)",
            group.display(),
            most / 1024
        ),
        None => {
            let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
            let free = between(&memory, "MemAvailable:", "\n").unwrap_or("an unknown amount");
            format!("no control group limits it, and the machine has {} available", free.trim())
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
