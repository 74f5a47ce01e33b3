//! The session's timers (RFC 4271 sections 8.1.3 and 10, RFC 9687) and the pauses between attempts.
//!
//! A timer is the time at which it runs out; none is running where there is no such time.

use splitmix::Random;
use std::time::{Duration, Instant};

/// How long an attempt to connect may take (ConnectRetryTimer in the state Connect).
const CONNECT: Duration = Duration::from_secs(5);
/// How long the neighbour has for its OPEN; RFC 4271 section 8.2.2 suggests a large value, and this is
/// large beside the fractions of a second that it takes.
const LARGE_HOLD: Duration = Duration::from_secs(30);
/// The pause after a first failure; it doubles with each further one.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause: a node that could serve must not stay unannounced for the 120 seconds that RFC
/// 4271 section 10 suggests, and one attempt in ten seconds is no burden.
const PAUSE_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(super) struct Timers {
    random: Random,
    /// Attempts in a row that came to nothing.
    pub(super) failures: u32,
    /// The hold time agreed on, never zero; of no meaning before the first OPEN.
    pub(super) hold: Duration,
    pub(super) retry: Option<Instant>,
    pub(super) hold_at: Option<Instant>,
    pub(super) keepalive: Option<Instant>,
    /// When what is in flight must have been written (RFC 9687).
    pub(super) send: Option<Instant>,
}

impl Timers {
    /// None is running. `seed` drives their jitter.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            failures: 0,
            hold: Duration::ZERO,
            retry: None,
            hold_at: None,
            keepalive: None,
            send: None,
        }
    }

    /// The first that runs out.
    pub(super) fn next(&self) -> Option<Instant> {
        [self.retry, self.hold_at, self.keepalive, self.send].into_iter().flatten().min()
    }

    /// A connection is being opened.
    pub(super) fn connecting(&mut self, now: Instant) {
        self.retry = Some(now + CONNECT);
    }

    /// It is open, and the neighbour's OPEN is awaited.
    pub(super) fn connected(&mut self, now: Instant) {
        self.retry = None;
        self.hold_at = Some(now + LARGE_HOLD);
    }

    pub(super) fn restart_hold(&mut self, now: Instant) {
        self.hold_at = Some(now + self.hold);
    }

    pub(super) fn restart_keepalive(&mut self, now: Instant) {
        let interval = self.jitter(self.hold / 3);
        self.keepalive = Some(now + interval);
    }

    pub(super) fn restart_send(&mut self, now: Instant) {
        // RFC 9687 section 6 suggests eight minutes. A withdrawal that cannot be written attracts
        // traffic to a node that does not serve it, so this is the least that its section 4.4 allows
        // with a margin.
        self.send = Some(now + self.hold * 2);
    }

    /// The connection is no more.
    pub(super) fn closed(&mut self) {
        self.hold_at = None;
        self.keepalive = None;
        self.send = None;
    }

    /// Sets the time of the next attempt.
    pub(super) fn pause(&mut self, now: Instant) {
        let doubled = PAUSE.saturating_mul(1 << self.failures.min(8));
        self.failures = self.failures.saturating_add(1);
        let pause = self.jitter(doubled.min(PAUSE_MAX));
        self.retry = Some(now + pause);
    }

    /// Three quarters to all of a time (RFC 4271 section 10).
    fn jitter(&mut self, time: Duration) -> Duration {
        let share = (self.random.bits() >> 48) as u32;
        time * 3 / 4 + time / 4 * share / 65536
    }
}
