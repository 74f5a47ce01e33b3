//! Clocks that go on, jump and stand still, before a model of the kernel's choice.

use super::*;
use crate::{machine::MappingName, policy::Policy};
use std::cell::RefCell;
use zeroize::Zeroizing;

const NS: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * NS;
/// Thursday, 2 July 2026, 13:00 UTC, in nanoseconds since 1970.
const FULL_HOUR: u64 = 1_782_997_200 * NS;

/// What `mask_choose` of bpf/mask.bpf.c chooses from: from when each key is used, its number and the key.
#[derive(Default)]
struct Kernel(RefCell<[(u64, u32, [u8; 16]); 2]>);

impl KeySlots for Kernel {
    fn set(&self, slot: u32, from_ns: u64, number: u32, keys: &Keys) -> Result<(), KeyError> {
        self.0.borrow_mut()[slot as usize] = (from_ns, number, keys.numbers);
        Ok(())
    }
}

impl Kernel {
    fn choose(&self, at_ns: u64) -> Option<(u32, [u8; 16])> {
        let slots = self.0.borrow();
        let begun = slots.iter().filter(|(from, number, _)| *number != 0 && *from <= at_ns);
        begun.max_by_key(|(from, ..)| *from).map(|(_, number, key)| (*number, *key))
    }
}

/// Periods of a clock that the test sets.
struct Trial {
    job: Job,
    kernel: Kernel,
    periods: Periods,
    tai_s: u64,
}

impl Trial {
    fn new(rotation: Option<Rotation>, now_ns: u64) -> Self {
        let policy = Policy::shipped("research").expect("a policy");
        let job = Job::new(&policy, Zeroizing::new([7; 32]), MappingName::CryptoPan);
        let job = job.map_err(|error| error.to_string()).expect("a job").rotated(rotation);
        let (kernel, tai_s) = (Kernel::default(), 37);
        let periods = Periods::begin(&job, &kernel, &clock(now_ns, tai_s)).expect("keys");
        Self { job, kernel, periods, tai_s }
    }

    fn turn(&mut self, now_ns: u64) {
        let clock = clock(now_ns, self.tai_s);
        self.periods.turn(&self.job, &self.kernel, &clock).expect("keys");
    }

    /// The key under which a packet of this time is written, if it is.
    fn used(&self, now_ns: u64) -> Option<[u8; 16]> {
        let at_ns = now_ns + self.tai_s * NS;
        let (number, key) = self.kernel.choose(at_ns)?;
        self.periods.of(number, at_ns).map(|_| key)
    }

    /// The key of this time's period.
    fn right(&self, now_ns: u64) -> Option<[u8; 16]> {
        let period = self.job.rotation().map_or(0, |rotation| rotation.start(now_ns));
        Some(engine::keys(&self.job.key_of(period), self.job.mapping()).numbers)
    }
}

fn clock(now_ns: u64, tai_s: u64) -> Clock {
    Clock { now: Duration::from_nanos(now_ns), tai: Duration::from_secs(tai_s) }
}

#[test]
fn each_period_has_its_key_from_its_first_nanosecond_to_its_last() {
    for rotation in [Rotation::Hour, Rotation::Day, Rotation::Week] {
        // Turns come a second apart, and some late; each begins just before a period.
        for late in [0, 1, NS / 3, 5 * NS] {
            let mut now = rotation.next(rotation.start(FULL_HOUR)) * NS - 3 * NS - 1;
            let mut trial = Trial::new(Some(rotation), now);
            let first = trial.right(now);
            for _ in 0..12 {
                let next = now + NS + late;
                let end = rotation.next(rotation.start(now)) * NS;
                for at in [now, now + 1, now + NS / 2, end - 1, end, end + 1, next - 1] {
                    if (now..next).contains(&at) {
                        assert_eq!(trial.used(at), trial.right(at), "{rotation} at {at}");
                    }
                }
                now = next;
                trial.turn(now);
            }
            assert_ne!(trial.used(now), first, "{rotation}: it was over");
        }
    }
}

#[test]
fn no_key_is_used_outside_of_its_period_by_who_sets_the_clock() {
    for rotation in [Rotation::Hour, Rotation::Day, Rotation::Week] {
        let mut trial = Trial::new(Some(rotation), FULL_HOUR);
        let period = (rotation.next(FULL_HOUR / NS) - rotation.start(FULL_HOUR)) * NS;
        // Forward by less than a period, by one and by many, back again, to the edges, to 1970 and far ahead.
        for to in [
            FULL_HOUR + HOUR / 2,
            FULL_HOUR + period,
            FULL_HOUR + 7 * period + 1,
            FULL_HOUR + 6 * period,
            FULL_HOUR + 6 * period - 1,
            FULL_HOUR,
            0,
            1,
            200 * 365 * 24 * HOUR,
            FULL_HOUR,
            FULL_HOUR - NS,
        ] {
            for at in [to, to + NS / 2, to + NS - 1] {
                let used = trial.used(at);
                assert!(used.is_none() || used == trial.right(at), "{rotation}: set to {to}");
            }
            trial.turn(to + NS);
            for at in [to + NS, to + 2 * NS] {
                assert_eq!(trial.used(at), trial.right(at), "{rotation}: set to {to}");
            }
        }
        // The kernel learns of leap seconds.
        for tai_s in [0, 38, 37] {
            trial.tai_s = tai_s;
            trial.turn(FULL_HOUR);
            assert_eq!(trial.used(FULL_HOUR), trial.right(FULL_HOUR), "{rotation}: {tai_s} s");
        }
    }
}

#[test]
fn the_key_of_a_period_is_said_at_its_first_packet_and_once() {
    let mut trial = Trial::new(Some(Rotation::Hour), FULL_HOUR);
    let mut comment = |at: u64| {
        trial.turn(at);
        let (number, _) = trial.kernel.choose(at + trial.tai_s * NS).expect("a key");
        trial.periods.comment(&trial.job, number)
    };
    let first = comment(FULL_HOUR).expect("the first packet");
    assert!(first.starts_with("from here on key "), "{first}");
    assert_eq!(comment(FULL_HOUR + HOUR - 1), None);
    let second = comment(FULL_HOUR + HOUR).expect("another period");
    assert_ne!(first, second);
    assert_eq!(comment(FULL_HOUR + HOUR + 5 * NS), None);
    // Set back, the period's key has another number, and is the same.
    assert_eq!(comment(FULL_HOUR + NS), Some(first));
}

#[test]
fn without_rotation_one_key_is_for_all_times() {
    let mut trial = Trial::new(None, FULL_HOUR);
    for at in [FULL_HOUR, FULL_HOUR + 1000 * HOUR, 0, 400 * 365 * 24 * HOUR] {
        assert_eq!(trial.used(at), trial.right(at));
        trial.turn(at);
        assert_eq!(trial.periods.comment(&trial.job, 1), None);
    }
    assert_eq!(trial.kernel.0.borrow().iter().filter(|(_, number, _)| *number != 0).count(), 1);
}
