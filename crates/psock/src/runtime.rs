//! The protocol tasks' threads, apart from those of the application.
//!
//! There is one runtime for each network namespace from which the process makes sessions, mostly one
//! in all: its threads begin in the namespace of the thread that first needed it, so that the sockets
//! they make are there too. After fork(2) the child has no threads but its own, so it gets runtimes of
//! its own.

use nix::sys::signal::SigSet;
use std::{
    collections::HashMap,
    fs, io,
    os::unix::fs::MetadataExt,
    sync::{LazyLock, Mutex, PoisonError},
};
use tokio::runtime::{Builder, Handle, Runtime};

/// Process and network namespace.
type Owner = (u32, u64);

static RUNTIMES: LazyLock<Mutex<HashMap<Owner, &'static Runtime>>> = LazyLock::new(Mutex::default);

/// The runtime for sockets of the calling thread's network namespace.
pub(crate) fn handle() -> io::Result<Handle> {
    // Without /proc there is one runtime.
    let namespace = fs::metadata("/proc/thread-self/ns/net").map_or(0, |file| file.ino());
    let owner = (std::process::id(), namespace);
    let mut runtimes = RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = runtimes.get(&owner) {
        return Ok(runtime.handle().clone());
    }
    let runtime = Builder::new_multi_thread()
        .thread_name("psock")
        // The application's signals are for its own threads.
        .on_thread_start(|| {
            let _ = SigSet::all().thread_block();
        })
        .enable_all()
        .build()?;
    // Never taken down: a session may outlive everything of the application that knows of it.
    let runtime: &'static Runtime = Box::leak(Box::new(runtime));
    runtimes.insert(owner, runtime);
    Ok(runtime.handle().clone())
}
