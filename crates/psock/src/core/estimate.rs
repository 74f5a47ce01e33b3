//! What is known of a connection from the acknowledgements of its blocks: the least delay, and the rate.
//!
//! Both are measured from the hand-over of a block to its acknowledgement by the peer's psock. So they
//! hold what TCP, TLS and both ends' scheduling add, which the kernel's own figures do not.

/// How long a least delay is believed before it must be seen again.
const BELIEVED_NS: u64 = 5_000_000_000;
/// For how long all blocks take too long before our own queue is emptied to see why.
const LONGER_NS: u64 = 200_000_000;
/// The shortest time between two such looks.
const LOOK_AGAIN_NS: u64 = 1_000_000_000;
/// The shortest time after which a rate is believed to have fallen.
const LEAST_WINDOW_NS: u64 = 10_000_000;

/// No estimate is larger, so that sums of some never overflow: two years in nanoseconds.
const MOST: u128 = 1 << 56;

/// `bytes` at `rate` bytes a second, in nanoseconds.
pub(super) fn time_ns(bytes: u64, rate: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1))).min(MOST) as u64
}

/// `bytes` in `ns` nanoseconds, in bytes a second.
pub(super) fn rate_of(bytes: u64, ns: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(ns.max(1))).min(MOST) as u64
}

/// `rate` bytes a second for `ns` nanoseconds, in bytes.
pub(super) fn bytes_in(rate: u64, ns: u64) -> u64 {
    (u128::from(rate) * u128::from(ns) / 1_000_000_000).min(MOST) as u64
}

/// The least recent delay.
///
/// A path that is kept busy never shows its delay without our own queue. If the least delay of some
/// seconds is larger than the one before, either the path became longer or the queue is ours; so the queue
/// is emptied for a moment, and the delay seen then is believed. That is done soon if all blocks take
/// longer than our own queue can explain: the path became longer, or others fill its queue, and what
/// seems to fill the path would be too little, and less and less of it.
#[derive(Debug, Default)]
pub(super) struct LeastDelay {
    before_ns: Option<u64>,
    current_ns: Option<u64>,
    since_ns: u64,
    /// Since when all blocks took longer than our own queue can explain.
    longer_since_ns: Option<u64>,
    /// When that may lead to a look again.
    looks_from_ns: u64,
    drain: Drain,
}

/// How far the look behind our own queue is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Drain {
    #[default]
    No,
    /// Until little is in flight.
    Emptying,
    /// Until a block is acknowledged that ends after this, in bytes handed to the connection.
    Measuring(u64),
}

impl LeastDelay {
    pub(super) fn get(&self) -> Option<u64> {
        self.before_ns.into_iter().chain(self.current_ns).min()
    }

    /// What the kernel has seen, to begin with.
    pub(super) fn begin(&mut self, delay_ns: u64) {
        if delay_ns > 0 {
            self.before_ns = self.before_ns.or(Some(delay_ns));
        }
    }

    /// Little must be in flight now.
    pub(super) fn is_draining(&self) -> bool {
        self.drain != Drain::No
    }

    /// Little is in flight, and so many bytes were handed over.
    pub(super) fn emptied(&mut self, handed: u64) {
        if self.drain == Drain::Emptying {
            self.drain = Drain::Measuring(handed);
        }
    }

    /// A block up to `end` was acknowledged after `delay_ns`, of which our own queue explains
    /// `explained_ns` at most.
    pub(super) fn sample(&mut self, delay_ns: u64, explained_ns: u64, end: u64, now_ns: u64) {
        self.current_ns = Some(self.current_ns.map_or(delay_ns, |least| least.min(delay_ns)));
        match self.drain {
            Drain::No => {}
            Drain::Measuring(mark) if end > mark => {
                self.drain = Drain::No;
                self.looks_from_ns = now_ns + LOOK_AGAIN_NS;
                self.turn(Some(delay_ns), now_ns);
            }
            Drain::Emptying | Drain::Measuring(_) => return,
        }
        let is_longer = delay_ns > explained_ns;
        self.longer_since_ns = self.longer_since_ns.or(Some(now_ns)).filter(|_| is_longer);
        let long_ns = LONGER_NS.max(2 * delay_ns);
        if self.longer_since_ns.is_some_and(|since| now_ns >= since + long_ns)
            && now_ns >= self.looks_from_ns
        {
            self.drain = Drain::Emptying;
        } else if now_ns >= self.since_ns + BELIEVED_NS {
            let rises = |before| self.current_ns.is_some_and(|now| now > before + before / 4);
            if self.before_ns.is_some_and(rises) {
                self.drain = Drain::Emptying;
            } else {
                self.turn(self.current_ns, now_ns);
            }
        }
    }

    fn turn(&mut self, before_ns: Option<u64>, now_ns: u64) {
        self.before_ns = before_ns;
        self.current_ns = None;
        self.since_ns = now_ns;
        self.longer_since_ns = None;
    }
}

/// The rate at which blocks are acknowledged while there are enough of them: the best of the last round
/// trip or so.
///
/// A sample is taken for each acknowledged block: the bytes that were acknowledged between its hand-over
/// and its acknowledgement (as in draft-ietf-ccwg-bbr, section 4.1). If the connection could have sent
/// more in that time, the sample shows only what the path can do at least.
#[derive(Debug, Default)]
pub(super) struct Rate {
    value: Option<u64>,
    /// The best full sample since then.
    best: Option<u64>,
    since_ns: u64,
    /// More could have been sent since the last hand-over.
    starving: bool,
    /// When more could have been sent, last.
    starved_ns: Option<u64>,
}

impl Rate {
    pub(super) fn get(&self) -> Option<u64> {
        self.value
    }

    /// The connection could take a block and got none.
    pub(super) fn starve(&mut self, now_ns: u64) {
        self.starving = true;
        self.starved_ns = Some(now_ns);
    }

    /// The connection got a block.
    pub(super) fn feed(&mut self, now_ns: u64) {
        if std::mem::take(&mut self.starving) {
            self.starved_ns = Some(now_ns);
        }
    }

    /// So many bytes were acknowledged from `from_ns` until now.
    pub(super) fn sample(&mut self, bytes: u64, from_ns: u64, delay_ns: u64, now_ns: u64) {
        let rate = rate_of(bytes, now_ns.saturating_sub(from_ns));
        if self.value.is_none_or(|value| rate > value) {
            self.value = Some(rate);
        }
        if self.starved_ns.is_none_or(|at| at < from_ns) {
            self.best = self.best.max(Some(rate));
        }
        if now_ns >= self.since_ns + delay_ns.max(LEAST_WINDOW_NS) {
            self.since_ns = now_ns;
            if let (Some(value), Some(best)) = (&mut self.value, self.best.take()) {
                *value = (*value).min(*value / 2 + best / 2);
            }
        }
    }
}
