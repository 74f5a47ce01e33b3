//! What is known of a connection from the acknowledgements of its blocks: the least delay, and the rate.
//!
//! Both are measured from the hand-over of a block to its acknowledgement by the peer's psock. So they
//! hold what TCP, TLS and both ends' scheduling add, which the kernel's own figures do not.

/// How long a least delay is believed before it must be seen again.
const BELIEVED_NS: u64 = 5_000_000_000;
/// The shortest time over which a rate is measured.
const LEAST_WINDOW_NS: u64 = 10_000_000;

/// `bytes` at `rate` bytes a second, in nanoseconds.
pub(super) fn time_ns(bytes: u64, rate: u64) -> u64 {
    let ns = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// `bytes` in `ns` nanoseconds, in bytes a second.
pub(super) fn rate_of(bytes: u64, ns: u64) -> u64 {
    let rate = u128::from(bytes) * 1_000_000_000 / u128::from(ns.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// `rate` bytes a second for `ns` nanoseconds, in bytes.
pub(super) fn bytes_in(rate: u64, ns: u64) -> u64 {
    let bytes = u128::from(rate) * u128::from(ns) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// The least delay of late.
///
/// A path that is kept busy never shows its delay without our own queue. If the least delay of some
/// seconds is larger than the one before, either the path became longer or the queue is ours; so the queue
/// is emptied for a moment, and the delay seen then is believed.
#[derive(Debug, Default)]
pub(super) struct LeastDelay {
    before_ns: Option<u64>,
    current_ns: Option<u64>,
    since_ns: u64,
    drain: Drain,
}

/// How far the look behind our own queue is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Drain {
    #[default]
    No,
    /// Until little is under way.
    Emptying,
    /// Until a block is acknowledged that ends after this, in bytes handed to the connection.
    Measuring(u64),
}

impl LeastDelay {
    pub(super) fn get(&self) -> Option<u64> {
        self.before_ns.into_iter().chain(self.current_ns).min()
    }

    /// Little must be under way now.
    pub(super) fn is_draining(&self) -> bool {
        self.drain != Drain::No
    }

    /// Little is under way, and so many bytes were handed over.
    pub(super) fn emptied(&mut self, handed: u64) {
        if self.drain == Drain::Emptying {
            self.drain = Drain::Measuring(handed);
        }
    }

    /// A block up to `end` was acknowledged after `delay_ns`.
    pub(super) fn sample(&mut self, delay_ns: u64, end: u64, now_ns: u64) {
        self.current_ns = Some(self.current_ns.map_or(delay_ns, |least| least.min(delay_ns)));
        if let Drain::Measuring(mark) = self.drain
            && end > mark
        {
            self.drain = Drain::No;
            self.turn(Some(delay_ns), now_ns);
        }
        if now_ns.saturating_sub(self.since_ns) < BELIEVED_NS || self.is_draining() {
            return;
        }
        let rises = |before| self.current_ns.is_some_and(|now| now > before + before / 4);
        if self.before_ns.is_some_and(rises) {
            self.drain = Drain::Emptying;
        } else {
            self.turn(self.current_ns, now_ns);
        }
    }

    fn turn(&mut self, before_ns: Option<u64>, now_ns: u64) {
        self.before_ns = before_ns;
        self.current_ns = None;
        self.since_ns = now_ns;
    }
}

/// The rate at which blocks are acknowledged while there are enough of them.
#[derive(Debug, Default)]
pub(super) struct Rate {
    value: Option<u64>,
    /// Since when, and how many bytes were acknowledged then.
    window: Option<(u64, u64)>,
    /// More could have been sent since the last hand-over.
    starving: bool,
    /// More could have been sent in this window.
    limited: bool,
}

impl Rate {
    pub(super) fn get(&self) -> Option<u64> {
        self.value
    }

    /// The connection could take a block and got none.
    pub(super) fn starve(&mut self) {
        self.starving = true;
        self.limited = true;
    }

    /// The connection got a block.
    pub(super) fn feed(&mut self) {
        self.starving = false;
    }

    /// So many bytes are acknowledged now; whether others are under way.
    pub(super) fn sample(&mut self, received: u64, busy: bool, delay_ns: u64, now_ns: u64) {
        if let Some((since_ns, before)) = self.window {
            let time_ns = now_ns.saturating_sub(since_ns);
            if time_ns >= delay_ns.max(LEAST_WINDOW_NS) {
                self.measured(rate_of(received - before, time_ns));
                self.window = None;
            }
        }
        if !busy {
            self.window = None;
        } else if self.window.is_none() {
            self.window = Some((now_ns, received));
            self.limited = self.starving;
        }
    }

    /// Up at once; down by half the way, and only if the connection had enough to send.
    fn measured(&mut self, rate: u64) {
        self.value = match self.value {
            Some(value) if rate < value && self.limited => Some(value),
            Some(value) if rate < value => Some(value / 2 + rate / 2),
            _ => Some(rate),
        };
    }
}
