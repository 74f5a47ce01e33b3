//! What loading any of the programs takes: errors, libbpf's messages, secrets, the clock's step.

use libbpf_rs::{ErrorKind, PrintLevel};
use nix::sys::signal::{SigSet, SigmaskHow};
use std::sync::Once;
use std::{fs, io, io::Read as _};

/// What is loaded, for messages.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// Its name.
    pub name: &'static str,
    /// The first version of Linux that has what it needs.
    pub kernel: &'static str,
}

impl Object {
    /// The error for the kernel's message.
    pub(crate) fn error(self, source: libbpf_rs::Error) -> LoadError {
        match source.kind() {
            ErrorKind::PermissionDenied => LoadError::NotPermitted { program: self.name },
            _ => LoadError::Refused { object: self, source },
        }
    }
}

/// The program could not be loaded into the kernel.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The process lacks the rights.
    #[error(
        "the kernel refuses to load the {program} program: not permitted; run as root or with the capabilities CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"
    )]
    NotPermitted {
        /// Which program.
        program: &'static str,
    },
    /// The kernel's verifier or loader refused it.
    #[error(
        "the kernel refuses the {} program: {source}; it needs Linux {} or later with CONFIG_BPF_SYSCALL and CONFIG_BPF_JIT, and its log has the details", .object.name, .object.kernel
    )]
    Refused {
        /// Which program.
        object: Object,
        /// The kernel's answer.
        source: libbpf_rs::Error,
    },
    /// No random numbers for the secrets.
    #[error("cannot read /dev/urandom: {0}")]
    Random(io::Error),
    /// The length of a clock tick is unknown.
    #[error("cannot read the length of a clock tick (clock_getres): {0}")]
    Tick(io::Error),
}

/// Does `load` with all signals held back from this thread: the verifier gives up with EAGAIN when one
/// is pending (`do_check`, kernel/bpf/verifier.c), and libbpf then tries only five times.
pub(crate) fn undisturbed<T>(load: impl FnOnce() -> T) -> T {
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let loaded = load();
    if let Ok(before) = before {
        // With arguments that were just valid it cannot fail.
        let _ = before.thread_set_mask();
    }
    loaded
}

/// libbpf's messages become events of this process, once for all programs.
pub(crate) fn log_to_tracing() {
    static ONCE: Once = Once::new();
    fn print(level: PrintLevel, message: String) {
        let message = message.trim_end();
        match level {
            PrintLevel::Warn => tracing::warn!(target: "libbpf", "{message}"),
            PrintLevel::Info => tracing::debug!(target: "libbpf", "{message}"),
            PrintLevel::Debug => tracing::trace!(target: "libbpf", "{message}"),
        }
    }
    ONCE.call_once(|| {
        libbpf_rs::set_print(Some((PrintLevel::Info, print)));
    });
}

/// How far the jiffy counter's step is: the resolution of the coarse clock is that, exactly.
pub(crate) fn tick_ns() -> io::Result<u64> {
    let step = nix::time::clock_getres(nix::time::ClockId::CLOCK_MONOTONIC_COARSE)?;
    Ok(step.tv_nsec() as u64 + step.tv_sec() as u64 * 1_000_000_000)
}

pub(crate) fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Returns when every program run that began before the call has ended: `membarrier` with
/// MEMBARRIER_CMD_GLOBAL waits for an RCU grace period, and programs run inside of one.
pub(crate) fn wait_for_readers() {
    const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;
    // SAFETY: the call takes three integers and touches no memory of ours.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if result != 0 {
        // Kernels with nohz_full do not offer it. A packet takes less than a millisecond.
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// Draws the secret of the limits' hash functions, `struct limit_secret` of bpf/abi/limit.h.
pub(crate) fn draw_secret(multiplier: &mut [[u64; 4]; 2], offset: &mut [u64; 2]) -> io::Result<()> {
    for multiplier in multiplier.as_flattened_mut() {
        *multiplier = random()? | 1;
    }
    for offset in offset {
        *offset = random()?;
    }
    Ok(())
}
