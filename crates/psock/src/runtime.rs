//! The protocol tasks' threads, apart from those of the application.
//!
//! There is one runtime for each network namespace from which the process makes sessions, mostly one
//! in all: its threads begin in the namespace of the thread that first needed it, so that the sockets
//! they make are there too. After fork(2) the child has no threads but its own, so it gets runtimes of
//! its own.

use crate::PerProcess;
use nix::sys::signal::SigSet;
use std::{
    cell::Cell,
    collections::HashMap,
    fs, io,
    os::unix::fs::MetadataExt,
    sync::{Mutex, PoisonError},
};
use tokio::runtime::{Builder, Handle, Runtime};

/// By network namespace.
static RUNTIMES: PerProcess<Mutex<HashMap<u64, &'static Runtime>>> = PerProcess::new();

thread_local! {
    // Not made lazily and never taken down, so that it can be read at any time in a thread's life.
    static OURS: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is one of the protocol's. Who stands in front of the system's functions
/// (LD_PRELOAD) lets its calls pass.
pub fn is_protocol_thread() -> bool {
    OURS.get()
}

/// The runtime for sockets of the calling thread's network namespace.
pub(crate) fn handle() -> io::Result<Handle> {
    // Without /proc there is one runtime.
    let namespace = fs::metadata("/proc/thread-self/ns/net").map_or(0, |file| file.ino());
    let mut runtimes = RUNTIMES.get().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = runtimes.get(&namespace) {
        return Ok(runtime.handle().clone());
    }
    let adopt = panics::adopt();
    let runtime = Builder::new_multi_thread()
        .thread_name("psock")
        .on_thread_start(move || {
            adopt();
            OURS.set(true);
            // The application's signals are for its own threads.
            let _ = SigSet::all().thread_block();
        })
        .enable_all()
        .build()?;
    // Never taken down: a session may outlive everything of the application that knows of it.
    let runtime: &'static Runtime = Box::leak(Box::new(runtime));
    runtimes.insert(namespace, runtime);
    Ok(runtime.handle().clone())
}
