//! Which key is used when: one for all, or one for each period of UTC, given to the kernel ahead of time.

#[cfg(test)]
mod tests;

use super::{LiveError, clock::Clock, engine};
use crate::{
    file::Job,
    key::{self, Rotation},
};
use datapath::mask::{KeyError, Keys, Mask};
use std::{collections::VecDeque, time::Duration};

/// The current key is in one of the kernel's two places and the next one in the other.
#[derive(Debug)]
pub(super) struct Periods {
    /// When the current period began, in seconds since 1970; 0 without rotation.
    current: u64,
    /// How far CLOCK_TAI is before CLOCK_REALTIME.
    tai: Duration,
    /// The keys that were given last.
    keys: VecDeque<ActiveKey>,
    /// The number that the last packet's key had.
    seen: u32,
}

/// A key that the kernel was given.
#[derive(Clone, Copy, Debug)]
struct ActiveKey {
    number: u32,
    /// When its period began, in seconds since 1970.
    start: u64,
    /// From when until before when it may be used, in nanoseconds of CLOCK_TAI.
    from_ns: u64,
    until_ns: u64,
}

/// Where the kernel has keys.
pub(super) trait KeySlots {
    /// See [`Mask::set_key`].
    fn set(&self, slot: u32, from_ns: u64, number: u32, keys: &Keys) -> Result<(), KeyError>;
}

impl KeySlots for Mask {
    fn set(&self, slot: u32, from_ns: u64, number: u32, keys: &Keys) -> Result<(), KeyError> {
        self.set_key(slot, from_ns, number, keys)
    }
}

/// Old keys are kept for so long after their period, while packets of it may still come.
const MARGIN: Duration = Duration::from_secs(2);
/// Keys that are remembered: packets of older ones have been read.
const REMEMBERED: usize = 8;

impl Periods {
    /// Gives the kernel the current and the next key.
    pub(super) fn begin(job: &Job, mask: &impl KeySlots, clock: &Clock) -> Result<Self, LiveError> {
        let (keys, tai) = (VecDeque::new(), clock.tai);
        let mut periods = Self { current: 0, tai, keys, seen: 0 };
        periods.set_both(job, mask, clock)?;
        Ok(periods)
    }

    /// Looks whether a period is over, so that the kernel needs the key of the one after the next; or
    /// whether somebody has set the clock, so that it needs other ones.
    pub(super) fn turn(
        &mut self,
        job: &Job,
        mask: &impl KeySlots,
        clock: &Clock,
    ) -> Result<(), LiveError> {
        let Some(rotation) = job.rotation() else { return Ok(()) };
        let now = rotation.start(clock.now.as_nanos() as u64);
        let is_same = self.tai == clock.tai;
        if is_same && now == rotation.next(self.current) {
            if clock.now >= Duration::from_secs(now) + MARGIN {
                self.current = now;
                self.set(job, mask, rotation.next(now))?;
            }
            return Ok(());
        }
        if is_same && now == self.current { Ok(()) } else { self.set_both(job, mask, clock) }
    }

    fn set_both(
        &mut self,
        job: &Job,
        mask: &impl KeySlots,
        clock: &Clock,
    ) -> Result<(), LiveError> {
        let now = clock.now.as_nanos() as u64;
        self.tai = clock.tai;
        self.current = job.rotation().map_or(0, |rotation| rotation.start(now));
        self.set(job, mask, self.current)?;
        job.rotation().map_or(Ok(()), |rotation| self.set(job, mask, rotation.next(self.current)))
    }

    fn set(&mut self, job: &Job, mask: &impl KeySlots, start: u64) -> Result<(), LiveError> {
        let number = self.keys.back().map_or(0, |key| key.number) + 1;
        let at = |start: u64| (Duration::from_secs(start) + self.tai).as_nanos() as u64;
        let of_period = |rotation: Rotation| (at(start), at(rotation.next(start)));
        let (from_ns, until_ns) = job.rotation().map_or((0, u64::MAX), of_period);
        let keys = engine::keys(&job.key_of(start), job.mapping());
        mask.set(number % 2, from_ns, number, &keys)?;
        self.keys.push_back(ActiveKey { number, start, from_ns, until_ns });
        if self.keys.len() > REMEMBERED {
            self.keys.pop_front();
        }
        Ok(())
    }

    /// When the period of the key of this number began, in seconds since 1970, if the key is that of a time
    /// of CLOCK_TAI, in nanoseconds. It is not where the clock was set, or where this process stood still for
    /// a period, until the kernel is given other keys.
    pub(super) fn of(&self, number: u32, at_ns: u64) -> Option<u64> {
        let key = self.keys.iter().find(|key| key.number == number)?;
        (key.from_ns..key.until_ns).contains(&at_ns).then_some(key.start)
    }

    /// The comment on a packet under the key of this number, if it is the first one of a period.
    pub(super) fn comment(&mut self, job: &Job, number: u32) -> Option<String> {
        job.rotation()?;
        if number == self.seen {
            return None;
        }
        self.seen = number;
        let key = self.keys.iter().find(|key| key.number == number)?;
        Some(format!("from here on key {}", key::id(&job.key_of(key.start))))
    }
}
