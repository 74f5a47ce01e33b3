//! What loading any of the programs takes: errors, libbpf's messages, secrets, the clock's step.

mod error;

pub(crate) use error::Object;
pub use error::{Denied, LoadError, version};

use libbpf_rs::PrintLevel;
use nix::sys::signal::{SigSet, SigmaskHow};
use std::cell::RefCell;
use std::sync::Once;
use std::{fs, io, io::Read as _};

thread_local! {
    /// What libbpf warns of while this thread loads a program. If that fails, [`Object::error`] takes it.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Does `load` with all signals held back from this thread: the verifier gives up with EAGAIN when one
/// is pending (`do_check`, kernel/bpf/verifier.c), and libbpf then tries only five times.
pub(crate) fn undisturbed<T>(load: impl FnOnce() -> libbpf_rs::Result<T>) -> libbpf_rs::Result<T> {
    log_to_tracing();
    SAID.set(Some(String::new()));
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let loaded = load();
    if let Ok(before) = before {
        // With arguments that were just valid it cannot fail.
        let _ = before.thread_set_mask();
    }
    if loaded.is_ok() {
        for line in take_said().lines() {
            tracing::warn!(target: "libbpf", "{line}");
        }
    }
    loaded
}

/// What libbpf has warned of since the last load began on this thread.
fn take_said() -> String {
    SAID.take().unwrap_or_default()
}

/// libbpf's messages become events of this process, once for all programs. Warnings of a load that fails
/// are part of its error, without most of the verifier's log: the whole is at level debug.
pub(crate) fn log_to_tracing() {
    static ONCE: Once = Once::new();
    fn print(level: PrintLevel, message: String) {
        let message = message.trim_end();
        match level {
            PrintLevel::Warn => SAID.with_borrow_mut(|said| match said {
                Some(said) => {
                    tracing::debug!(target: "libbpf", "{message}");
                    // A log may have hundreds of megabytes; what is wrong is at its end.
                    let (first, rest) = message.split_once('\n').unwrap_or((message, ""));
                    let tail = rest.rmatch_indices('\n').nth(100).map_or(0, |(at, _)| at + 1);
                    said.extend([first.trim_start_matches("libbpf: "), "\n", &rest[tail..], "\n"]);
                }
                None => tracing::warn!(target: "libbpf", "{message}"),
            }),
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
