//! How other threads reach the engine while it runs.

use crate::{Nanos, engine::Engine};
use nix::sys::eventfd::EventFd;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::Instant,
};

/// What is to be done between two packets.
type Job = Box<dyn FnOnce(&mut Engine, Nanos) + Send>;

/// The lab has stopped.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the lab has stopped")]
pub struct Stopped;

/// What both sides have.
#[derive(Debug)]
struct Shared {
    /// When the lab's clock was 0.
    start: Instant,
    /// Wakes the thread of the engine.
    bell: EventFd,
    stop: AtomicBool,
}

/// Reaches the engine from other threads.
#[derive(Clone, Debug)]
pub struct Handle {
    shared: Arc<Shared>,
    jobs: Sender<Job>,
}

impl Handle {
    /// Runs a closure with the engine between two packets and waits for what it returns.
    ///
    /// # Errors
    /// When the lab has stopped.
    pub fn call<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Engine, Nanos) -> R + Send + 'static,
    ) -> Result<R, Stopped> {
        let (give, result) = channel();
        let job = move |engine: &mut Engine, now: Nanos| {
            let _ = give.send(job(engine, now));
        };
        self.jobs.send(Box::new(job)).map_err(|_| Stopped)?;
        self.ring();
        result.recv().map_err(|_| Stopped)
    }

    /// The lab's clock.
    pub fn now(&self) -> Nanos {
        self.shared.start.elapsed().into()
    }

    /// Ends the lab.
    pub(crate) fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        self.ring();
    }

    fn ring(&self) {
        // It fails only when it is rung so often that it need not be rung.
        let _ = self.shared.bell.write(1);
    }
}

/// The engine's side.
#[derive(Debug)]
pub(crate) struct Inbox {
    shared: Arc<Shared>,
    jobs: Receiver<Job>,
}

impl Inbox {
    /// The lab's clock.
    pub(crate) fn now(&self) -> Nanos {
        self.shared.start.elapsed().into()
    }

    /// What becomes readable when there is something to do.
    pub(crate) fn bell(&self) -> &EventFd {
        &self.shared.bell
    }

    /// Does what has been asked for; false when the lab is to end.
    pub(crate) fn work(&self, engine: &mut Engine) -> bool {
        let _ = self.shared.bell.read();
        for job in self.jobs.try_iter() {
            job(engine, self.now());
        }
        !self.shared.stop.load(Ordering::Acquire)
    }
}

/// Two ends; the lab's clock starts now.
pub(crate) fn pair() -> nix::Result<(Handle, Inbox)> {
    use nix::sys::eventfd::EfdFlags;
    let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
    let shared = Arc::new(Shared { start: Instant::now(), bell, stop: AtomicBool::new(false) });
    let (send, jobs) = channel();
    Ok((Handle { shared: shared.clone(), jobs: send }, Inbox { shared, jobs }))
}
