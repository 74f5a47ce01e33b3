//! Whether to spin: only where nobody else wants the core.
//!
//! Hosts share the machine's cores with the thread that carries their packets. If it spun while they
//! wait for a core, they would send less and the lab would carry less. The kernel counts how long a
//! thread that could run had to wait for a core (proc(5), `schedstat`): a thread that waits is one that
//! others wait for as well.

use crate::Nanos;
use std::{fs::File, io, os::unix::fs::FileExt};

/// How often the count is inspected.
const PERIOD: Nanos = Nanos(4_000_000);
/// How much of a period is waiting if others want the core: one in this many.
const SHARE: u64 = 10;
/// How long it is believed.
const MEMORY: Nanos = Nanos(20_000_000);

/// Looks at the calling thread's waiting.
#[derive(Debug)]
pub(super) struct Contention {
    /// The thread's count; none where the kernel does not keep it.
    file: Option<File>,
    looked: Nanos,
    waited: u64,
    crowded_until: Nanos,
}

impl Contention {
    /// For the calling thread.
    pub(super) fn new() -> Self {
        let file = File::open("/proc/thread-self/schedstat").ok();
        Self { file, looked: Nanos::ZERO, waited: 0, crowded_until: Nanos::ZERO }
    }

    /// Whether others want the core.
    pub(super) fn is_crowded(&mut self, now: Nanos) -> bool {
        if now.since(self.looked) >= PERIOD {
            self.look(now);
        }
        now < self.crowded_until
    }

    fn look(&mut self, now: Nanos) {
        let Some(waited) = self.file.as_ref().and_then(|file| read(file).ok().flatten()) else {
            return;
        };
        let period = now.since(self.looked);
        if is_much(period, waited.saturating_sub(self.waited)) {
            self.crowded_until = now + MEMORY;
        }
        (self.looked, self.waited) = (now, waited);
    }
}

/// Whether having waited so long in a period means that others want the core.
fn is_much(period: Nanos, waited: u64) -> bool {
    waited > period.0.min(MEMORY.0) / SHARE
}

/// The nanoseconds that the thread has waited for a core.
fn read(file: &File) -> io::Result<Option<u64>> {
    let mut text = [0; 64];
    let length = file.read_at(&mut text, 0)?;
    Ok(parse(&text[..length]))
}

/// The second of three numbers.
fn parse(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_a_thread_waited_is_the_second_number() {
        assert_eq!(parse(b"4512000 93000 17\n"), Some(93_000));
        assert_eq!(parse(b"4512000"), None);
        let file = File::open("/proc/thread-self/schedstat").unwrap();
        assert!(read(&file).unwrap().is_some());
    }

    #[test]
    fn a_tenth_of_the_time_is_much() {
        for (period, waited, crowded) in [
            (1_000_000, 0, false),
            (1_000_000, 100_000, false),
            (1_000_000, 100_001, true),
            // A thread that slept for long did not wait for long.
            (60_000_000_000, 2_000_001, true),
        ] {
            assert_eq!(is_much(Nanos(period), waited), crowded, "{waited} of {period}");
        }
    }
}
