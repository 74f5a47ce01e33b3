//! Which key is used when: one for all, or one for each period of UTC, told to the kernel ahead of time.

use super::{LiveError, engine};
use crate::{file::Job, key};
use datapath::mask::Mask;
use std::time::Duration;

/// The current key is in one of the kernel's two places and the next one in the other.
#[derive(Debug)]
pub(super) struct Periods {
    /// When the current period began and when the next one does, in seconds since 1970; without rotation
    /// there is no next one.
    current: u64,
    next: Option<u64>,
    /// Which key was told last: its number, and its place is that modulo two.
    told: u32,
    /// The number that the last packet's key had.
    seen: u32,
}

/// Old keys are kept for so long after their period, while packets of it may still come.
const MARGIN: Duration = Duration::from_secs(2);

impl Periods {
    /// Tells the kernel the keys of now and of what follows; `now` is since 1970, `tai` how far CLOCK_TAI
    /// is before CLOCK_REALTIME.
    pub(super) fn begin(
        job: &Job,
        mask: &Mask,
        now: Duration,
        tai: Duration,
    ) -> Result<Self, LiveError> {
        let current = job.rotation().map_or(0, |rotation| rotation.start(now.as_nanos() as u64));
        let mut periods = Self { current, next: None, told: 0, seen: 0 };
        periods.tell(job, mask, current, 0)?;
        periods.tell_next(job, mask, tai)?;
        Ok(periods)
    }

    /// Looks whether a period is over, so that the kernel needs the key of the one after the next.
    pub(super) fn turn(
        &mut self,
        job: &Job,
        mask: &Mask,
        now: Duration,
        tai: Duration,
    ) -> Result<(), LiveError> {
        match self.next {
            Some(next) if now >= Duration::from_secs(next) + MARGIN => {
                self.current = next;
                self.tell_next(job, mask, tai)
            }
            _ => Ok(()),
        }
    }

    fn tell_next(&mut self, job: &Job, mask: &Mask, tai: Duration) -> Result<(), LiveError> {
        if let Some(rotation) = job.rotation() {
            let next = rotation.next(self.current);
            self.tell(job, mask, next, (Duration::from_secs(next) + tai).as_nanos() as u64)?;
            self.next = Some(next);
        }
        Ok(())
    }

    fn tell(&mut self, job: &Job, mask: &Mask, start: u64, from_ns: u64) -> Result<(), LiveError> {
        self.told += 1;
        let keys = engine::keys(&job.key_of(start), job.mapping());
        Ok(mask.set_key(self.told % 2, from_ns, self.told, &keys)?)
    }

    /// What is to be said at a packet under this key, if it is the first one of a period.
    pub(super) fn comment(&mut self, job: &Job, epoch: u32) -> Option<String> {
        job.rotation()?;
        if epoch == self.seen {
            return None;
        }
        self.seen = epoch;
        // The last one that was told is the next period's, the one before it the current one's.
        let period = if epoch == self.told { self.next? } else { self.current };
        Some(format!("from here on key {}", key::id(&job.key_of(period))))
    }
}
