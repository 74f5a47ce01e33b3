//! Ctrl-C ends a client after its summary.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};
use tokio::sync::oneshot;

/// Whether to stop; set at Ctrl-C until it is dropped.
pub(super) struct Interrupt {
    flag: Arc<AtomicBool>,
    _listening: oneshot::Sender<()>,
}

impl Interrupt {
    /// Begins to listen.
    pub(super) fn listen() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let flag = Arc::new(AtomicBool::new(false));
        let (listening, dropped) = oneshot::channel::<()>();
        let set = Arc::clone(&flag);
        thread::Builder::new().name("interrupt".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = tokio::signal::ctrl_c() => set.store(true, Relaxed),
                    _ = dropped => {}
                }
            });
        })?;
        Ok(Self { flag, _listening: listening })
    }

    /// Whether Ctrl-C was pressed.
    pub(super) fn pressed(&self) -> bool {
        self.flag.load(Relaxed)
    }
}
