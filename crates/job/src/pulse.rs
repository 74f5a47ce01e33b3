//! The pulse of a job: whether its loops still go round.
//!
//! Each loop of a job, a thread or a task, holds a [`Beat`] and beats once a turn, at least every
//! [`LONGEST`]. The daemon feeds the service manager's watchdog each time that all loops have beaten since the
//! last time, so a loop that hangs lets the watchdog run out, and one that is only busy does not.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, Weak,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// The longest time between two beats of a loop, unless one turn takes longer.
pub const LONGEST: std::time::Duration = std::time::Duration::from_secs(5);

/// The pulse of a job; clones are handles on the same one.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Mutex<Vec<Weak<Loop>>>>);

/// A loop.
#[derive(Debug)]
struct Loop {
    name: &'static str,
    /// Grows with each beat; odd while the loop waits for work.
    beats: AtomicU64,
    /// The same when the watchdog was last fed.
    fed_at: AtomicU64,
}

/// A loop's end of the pulse. When it is dropped, the loop has ended and is no longer waited for.
#[derive(Debug)]
pub struct Beat(Arc<Loop>);

impl Pulse {
    /// A new loop of this name.
    pub fn beat(&self, name: &'static str) -> Beat {
        let beats = AtomicU64::new(2);
        let new = Arc::new(Loop { name, beats, fed_at: AtomicU64::default() });
        self.lock().push(Arc::downgrade(&new));
        Beat(new)
    }

    /// The loops that have neither beaten nor waited for work since [`Pulse::feed`].
    pub(crate) fn silent(&self) -> Vec<&'static str> {
        let is_silent = |of: &Arc<Loop>| {
            let beats = of.beats.load(Relaxed);
            beats.is_multiple_of(2) && beats == of.fed_at.load(Relaxed)
        };
        self.loops().iter().filter(|of| is_silent(of)).map(|of| of.name).collect()
    }

    /// From here on each loop has to beat again.
    pub(crate) fn feed(&self) {
        for of in self.loops() {
            of.fed_at.store(of.beats.load(Relaxed), Relaxed);
        }
    }

    fn loops(&self) -> Vec<Arc<Loop>> {
        let mut loops = self.lock();
        loops.retain(|of| of.strong_count() > 0);
        loops.iter().filter_map(Weak::upgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Loop>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Beat {
    /// The loop goes round.
    pub fn beat(&self) {
        self.0.beats.fetch_add(2, Relaxed);
    }

    /// Waits for work by `wait`: however long that takes, the loop does not hang.
    pub fn idle<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.0.beats.fetch_add(1, Relaxed);
        let work = wait();
        self.0.beats.fetch_add(1, Relaxed);
        work
    }

    /// Beats for a runtime of many tasks, as long as it has a thread for them.
    pub async fn keep(self) {
        loop {
            self.beat();
            tokio::time::sleep(LONGEST / 2).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::mpsc, thread};

    #[test]
    fn a_loop_that_hangs_is_silent_and_one_that_is_busy_or_idle_is_not() {
        let pulse = Pulse::default();
        let (work, works) = mpsc::channel::<mpsc::Receiver<()>>();
        let (turned, turns) = mpsc::channel();
        let beat = pulse.beat("worker");
        let worker = thread::spawn(move || {
            while let Ok(until) = beat.idle(|| works.recv()) {
                // Work of several steps, each of which may hang.
                while until.recv().is_ok() {
                    beat.beat();
                    turned.send(()).unwrap();
                }
                turned.send(()).unwrap();
            }
        });
        let (step, steps) = mpsc::channel();
        work.send(steps).unwrap();
        for _ in 0..3 {
            step.send(()).unwrap();
            turns.recv().unwrap();
            assert_eq!(pulse.silent(), [""; 0], "it is busy");
            pulse.feed();
            assert_eq!(pulse.silent(), ["worker"], "it has not beaten since");
        }
        // No further step comes: it hangs, until the work is taken from it.
        pulse.feed();
        assert_eq!(pulse.silent(), ["worker"]);
        drop(step);
        turns.recv().unwrap();
        while !pulse.silent().is_empty() {
            thread::yield_now();
        }
        pulse.feed();
        assert_eq!(pulse.silent(), [""; 0], "it waits for work, however long");
        drop(work);
        worker.join().unwrap();
        assert_eq!(pulse.silent(), [""; 0], "it has ended");
        assert!(pulse.lock().is_empty());
    }

    #[test]
    fn a_new_loop_has_beaten() {
        let pulse = Pulse::default();
        let first = pulse.beat("first");
        assert_eq!(pulse.silent(), [""; 0]);
        pulse.feed();
        let _second = pulse.beat("second");
        assert_eq!(pulse.silent(), ["first"]);
        first.beat();
        assert_eq!(pulse.silent(), [""; 0]);
    }
}
