//! A network in memory with a clock of its own: paths with a rate, a delay, a queue, jitter and loss that
//! die and return, and on them connections that behave as TCP does as far as it matters here.
//!
//! A segment is a whole frame. A segment that is lost in a queue or by chance arrives a round trip later
//! (a fast retransmission) and holds up what comes after it; what is lost because the path is dead is sent
//! again by a timer that doubles (RFC 6298).

use std::collections::VecDeque;

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000_000_000;

/// Numbers that look random, the same for the same seed.
pub(crate) struct Random(splitmix::Random);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(splitmix::Random::new(seed))
    }

    /// From `low` to `high`, both possible.
    pub(crate) fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.bits() % (high - low + 1)
    }

    /// True so many times of a million.
    pub(crate) fn chance(&mut self, parts_per_million: u64) -> bool {
        self.0.bits() % 1_000_000 < parts_per_million
    }
}

/// What a path is like, the same in both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathSettings {
    /// Bytes a second.
    pub(crate) rate: u64,
    /// One direction.
    pub(crate) delay_ns: u64,
    /// Bytes that wait for the link at most.
    pub(crate) queue_bytes: u64,
    pub(crate) jitter_ns: u64,
    /// Frames lost of a million.
    pub(crate) loss: u64,
}

/// One direction of a path.
pub(crate) struct Link {
    settings: PathSettings,
    up: bool,
    /// How often it went down: what was in flight then is lost.
    pub(crate) epoch: u32,
    busy_until_ns: u64,
}

enum Outcome {
    Arrives(u64),
    /// It arrives so late because it had to be sent again at once.
    Repaired(u64),
    Lost,
}

impl Link {
    pub(crate) fn new(settings: PathSettings) -> Self {
        Self { settings, up: true, epoch: 0, busy_until_ns: 0 }
    }

    pub(crate) fn set_up(&mut self, up: bool) {
        self.epoch += u32::from(self.up && !up);
        self.up = up;
    }

    pub(crate) fn set_rate(&mut self, rate: u64) {
        self.settings.rate = rate;
    }

    pub(crate) fn set_delay(&mut self, delay_ns: u64) {
        self.settings.delay_ns = delay_ns;
    }

    pub(crate) fn is_up(&self) -> bool {
        self.up
    }

    pub(crate) fn delay_ns(&self) -> u64 {
        self.settings.delay_ns
    }

    fn transmit(&mut self, bytes: usize, now: u64, random: &mut Random) -> Outcome {
        let PathSettings { rate, delay_ns, queue_bytes, jitter_ns, loss } = self.settings;
        if !self.up {
            return Outcome::Lost;
        }
        let wait_ns = self.busy_until_ns.saturating_sub(now);
        let overflow =
            u128::from(wait_ns) * u128::from(rate) / u128::from(SECOND) > u128::from(queue_bytes);
        if overflow || random.chance(loss) {
            return Outcome::Repaired(now + wait_ns + 3 * delay_ns);
        }
        self.busy_until_ns = now + wait_ns + bytes as u64 * SECOND / rate;
        let jitter_ns = if jitter_ns == 0 { 0 } else { random.range(0, jitter_ns) };
        Outcome::Arrives(self.busy_until_ns + delay_ns + jitter_ns)
    }
}

struct Segment {
    bytes: Vec<u8>,
    sent_ns: u64,
}

/// One direction of a connection.
pub(crate) struct Flow {
    /// Not acknowledged by the other end's TCP, then not sent.
    segments: VecDeque<Segment>,
    /// The number of the first segment, and of the first that was not sent.
    first: u64,
    next: u64,
    in_flight_bytes: usize,
    unsent_bytes: usize,
    cwnd_bytes: usize,
    threshold_bytes: usize,
    reduced_ns: u64,
    srtt_ns: u64,
    min_rtt_ns: u64,
    rate: u64,
    /// When, and how many bytes were acknowledged then.
    rate_since: (u64, u64),
    acknowledged_bytes: u64,
    last_arrival_ns: u64,
    /// The next segment that the other end waits for.
    pub(crate) expected: u64,
    timeout_ns: u64,
    pub(crate) deadline_ns: Option<u64>,
}

const SEGMENT: usize = 1_448;
/// Bytes that wait in a socket before it cannot be written (TCP_NOTSENT_LOWAT).
const LOW_WATER: usize = 131_072;
const LEAST_TIMEOUT_NS: u64 = 200 * MS;
const MOST_TIMEOUT_NS: u64 = 2 * SECOND;

impl Flow {
    pub(crate) fn new(handshake_ns: u64, now: u64) -> Self {
        Self {
            segments: VecDeque::new(),
            first: 0,
            next: 0,
            in_flight_bytes: 0,
            unsent_bytes: 0,
            cwnd_bytes: 10 * SEGMENT,
            threshold_bytes: usize::MAX,
            reduced_ns: 0,
            srtt_ns: handshake_ns,
            min_rtt_ns: handshake_ns,
            rate: 0,
            rate_since: (now, 0),
            acknowledged_bytes: 0,
            last_arrival_ns: 0,
            expected: 0,
            timeout_ns: LEAST_TIMEOUT_NS,
            deadline_ns: None,
        }
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.unsent_bytes < LOW_WATER
    }

    pub(crate) fn write(&mut self, bytes: Vec<u8>) {
        self.unsent_bytes += bytes.len();
        self.segments.push_back(Segment { bytes, sent_ns: 0 });
    }

    pub(crate) fn kernel(&self) -> psock::core::Kernel {
        psock::core::Kernel {
            srtt_ns: self.srtt_ns,
            min_rtt_ns: self.min_rtt_ns,
            delivery_rate: self.rate,
            cwnd_bytes: self.cwnd_bytes as u32,
        }
    }

    /// Sends what the window lets; the numbers and arrivals of what will arrive.
    pub(crate) fn send(
        &mut self,
        link: &mut Link,
        now: u64,
        random: &mut Random,
    ) -> Vec<(u64, u64)> {
        let mut arrivals = Vec::new();
        while let Some(segment) = self.segments.get_mut((self.next - self.first) as usize) {
            let length = segment.bytes.len();
            if self.in_flight_bytes >= self.cwnd_bytes {
                break;
            }
            segment.sent_ns = now;
            self.in_flight_bytes += length;
            self.unsent_bytes -= length;
            let arrival = match link.transmit(length, now, random) {
                Outcome::Lost => None,
                Outcome::Arrives(at) => Some(at),
                Outcome::Repaired(at) => {
                    if now >= self.reduced_ns + self.srtt_ns {
                        self.cwnd_bytes = (self.cwnd_bytes * 7 / 10).max(2 * SEGMENT);
                        self.threshold_bytes = self.cwnd_bytes;
                        self.reduced_ns = now;
                    }
                    Some(at)
                }
            };
            if let Some(at) = arrival {
                self.last_arrival_ns = self.last_arrival_ns.max(at);
                arrivals.push((self.next, self.last_arrival_ns));
            }
            self.next += 1;
            self.deadline_ns = self.deadline_ns.or(Some(now + self.timeout_ns));
        }
        arrivals
    }

    /// The bytes of a segment that arrived and is the one that the other end waits for.
    pub(crate) fn take(&mut self, number: u64) -> Option<Vec<u8>> {
        if number != self.expected {
            return None;
        }
        self.expected += 1;
        let place = number.checked_sub(self.first)?;
        self.segments.get(place as usize).map(|segment| segment.bytes.clone())
    }

    /// The other end's TCP has everything before `expected`.
    pub(crate) fn acknowledged(&mut self, expected: u64, now: u64) {
        let mut bytes = 0;
        while self.first < expected
            && let Some(segment) = self.segments.pop_front()
        {
            if self.first < self.next {
                let rtt_ns = now - segment.sent_ns;
                self.srtt_ns = self.srtt_ns - self.srtt_ns / 8 + rtt_ns / 8;
                self.min_rtt_ns = self.min_rtt_ns.min(rtt_ns);
                self.in_flight_bytes -= segment.bytes.len();
            } else {
                self.unsent_bytes -= segment.bytes.len();
            }
            self.first += 1;
            bytes += segment.bytes.len();
        }
        self.next = self.next.max(self.first);
        if bytes == 0 {
            return;
        }
        self.acknowledged_bytes += bytes as u64;
        let (since_ns, before) = self.rate_since;
        if now >= since_ns + self.min_rtt_ns.max(MS) {
            self.rate = (self.acknowledged_bytes - before) * SECOND / (now - since_ns);
            self.rate_since = (now, self.acknowledged_bytes);
        }
        self.cwnd_bytes += if self.cwnd_bytes < self.threshold_bytes {
            bytes
        } else {
            // About as CUBIC grows on long fat paths: by a fiftieth each round trip.
            bytes * SEGMENT.max(self.cwnd_bytes / 50) / self.cwnd_bytes
        };
        self.cwnd_bytes = self.cwnd_bytes.min(1 << 26);
        self.timeout_ns = LEAST_TIMEOUT_NS.max(2 * self.srtt_ns);
        self.deadline_ns = (self.in_flight_bytes > 0).then_some(now + self.timeout_ns);
    }

    /// Nothing was acknowledged for too long: everything is sent again.
    pub(crate) fn timed_out(&mut self) {
        self.unsent_bytes += self.in_flight_bytes;
        (self.in_flight_bytes, self.next) = (0, self.first);
        self.threshold_bytes = (self.cwnd_bytes / 2).max(2 * SEGMENT);
        self.cwnd_bytes = 10 * SEGMENT;
        self.timeout_ns = (2 * self.timeout_ns).min(MOST_TIMEOUT_NS);
        self.deadline_ns = None;
        self.last_arrival_ns = 0;
    }
}
