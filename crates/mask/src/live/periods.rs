//! Which key is used when: one for all, or one for each period of UTC, told to the kernel ahead of time.

use super::{LiveError, engine, run::Clock};
use crate::{
    file::Job,
    key::{self, Rotation},
};
use datapath::mask::Mask;
use std::{collections::VecDeque, time::Duration};

/// The current key is in one of the kernel's two places and the next one in the other.
#[derive(Debug)]
pub(super) struct Periods {
    /// When the current period began, in seconds since 1970; 0 without rotation.
    current: u64,
    /// How far CLOCK_TAI is before CLOCK_REALTIME.
    tai: Duration,
    /// The keys that were told last, by number, and when their periods began.
    told: VecDeque<(u32, u64)>,
    /// The number that the last packet's key had.
    seen: u32,
}

/// Old keys are kept for so long after their period, while packets of it may still come.
const MARGIN: Duration = Duration::from_secs(2);
/// Keys whose numbers are remembered: packets of older ones have been read.
const REMEMBERED: usize = 8;

impl Periods {
    /// Tells the kernel the keys of now and of what follows.
    pub(super) fn begin(job: &Job, mask: &Mask, clock: &Clock) -> Result<Self, LiveError> {
        let (told, tai) = (VecDeque::new(), clock.tai);
        let mut periods = Self { current: 0, tai, told, seen: 0 };
        periods.tell_both(job, mask, clock)?;
        Ok(periods)
    }

    /// Looks whether a period is over, so that the kernel needs the key of the one after the next; or
    /// whether somebody has set the clock, so that it needs other ones.
    pub(super) fn turn(&mut self, job: &Job, mask: &Mask, clock: &Clock) -> Result<(), LiveError> {
        let Some(rotation) = job.rotation() else { return Ok(()) };
        let now = rotation.start(clock.now.as_nanos() as u64);
        let is_same = self.tai == clock.tai;
        if is_same && now == rotation.next(self.current) {
            if clock.now >= Duration::from_secs(now) + MARGIN {
                self.current = now;
                self.tell_next(job, mask, rotation)?;
            }
            return Ok(());
        }
        if is_same && now == self.current { Ok(()) } else { self.tell_both(job, mask, clock) }
    }

    fn tell_both(&mut self, job: &Job, mask: &Mask, clock: &Clock) -> Result<(), LiveError> {
        let now = clock.now.as_nanos() as u64;
        self.tai = clock.tai;
        self.current = job.rotation().map_or(0, |rotation| rotation.start(now));
        self.tell(job, mask, self.current, 0)?;
        job.rotation().map_or(Ok(()), |rotation| self.tell_next(job, mask, rotation))
    }

    fn tell_next(&mut self, job: &Job, mask: &Mask, by: Rotation) -> Result<(), LiveError> {
        let next = by.next(self.current);
        self.tell(job, mask, next, (Duration::from_secs(next) + self.tai).as_nanos() as u64)
    }

    fn tell(&mut self, job: &Job, mask: &Mask, start: u64, from_ns: u64) -> Result<(), LiveError> {
        let number = self.told.back().map_or(0, |(number, _)| *number) + 1;
        let keys = engine::keys(&job.key_of(start), job.mapping());
        mask.set_key(number % 2, from_ns, number, &keys)?;
        self.told.push_back((number, start));
        if self.told.len() > REMEMBERED {
            self.told.pop_front();
        }
        Ok(())
    }

    /// What is to be said at a packet under the key of this number, if it is the first one of a period.
    pub(super) fn comment(&mut self, job: &Job, number: u32) -> Option<String> {
        job.rotation()?;
        if number == self.seen {
            return None;
        }
        self.seen = number;
        let (_, period) = self.told.iter().find(|(told, _)| *told == number)?;
        Some(format!("from here on key {}", key::id(&job.key_of(*period))))
    }
}
