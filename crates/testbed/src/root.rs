//! What needs root says so here.

use crate::Error;
use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
};

/// Ends a test or a benchmark that cannot go on without root, in one clear sentence.
///
/// All that makes namespaces calls it, so most tests need not. One that needs root for something
/// else, such as to load an eBPF program, calls it itself. Tests that need root are in modules named
/// `root`: `make test` leaves those out, and says how many they were, where nobody can become root.
///
/// # Panics
///
/// When this process is not root, and in a test outside a module named `root`.
pub fn need_root() {
    assert!(nix::unistd::geteuid().is_root(), "needs root: run `make test`");
    // A test runs on a thread with its name; nextest may run it on the main thread.
    let thread = std::thread::current().name().map(str::to_owned);
    let test = std::env::var("NEXTEST_TEST_NAME").ok().or(thread).unwrap_or_default();
    assert!(
        !test.contains("::") || test.split("::").any(|module| module == "root"),
        "{test} needs root, so it belongs in a module named `root`"
    );
}

/// Gives the calling thread, and what it starts from then on, an empty `/run` of its own: labs and
/// namespaces of other tests are neither seen nor cleaned from there. It goes with the last of them.
///
/// # Errors
///
/// The system refuses it.
pub fn private_run() -> Result<(), Error> {
    need_root();
    let failed = |error| Error::new("an empty /run for one test", error);
    unshare(CloneFlags::CLONE_NEWNS).map_err(failed)?;
    // What is mounted below must not reach the other tests.
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).map_err(failed)?;
    mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), none).map_err(failed)
}
