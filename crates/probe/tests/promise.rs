//! A hundred thousand packets between two stations whose clocks wander and are stepped within what they
//! say: all true delays lie in the intervals stated, and no interval is wider than the clocks' errors
//! make it.
//!
//! The packets go through the real sender and reflector. Time is the test's own: each clock is true
//! time and an offset. What a station says of its clock is what [`probe::clock::Clock`] does: the larger of the
//! last two readings, grown and with every step since.

use probe::{
    interval::{Interval, MaximumError, drift_ns},
    stamp::{
        Arrival, Reading, Reflector, Sender,
        reflector::{Agreement, Rate},
        sender::{Event, Sample, Settings},
        tlv::Ask,
    },
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use std::net::SocketAddr;

const SAMPLES: usize = 100_000;
/// How often a station reads what is known of its clock.
const READ_NS: u64 = 1_000_000_000;

/// A clock, and what its station knows of it.
struct Wandering {
    random: StdRng,
    true_ns: i64,
    offset_ns: i64,
    /// Parts per thousand million by which it is fast.
    rate_ppb: i64,
    /// What the daemon that sets it knows: it is off by at most this.
    error_ns: u64,
    /// The last two readings of that, grown since.
    said: [u64; 2],
    since_read_ns: u64,
    steps: u32,
}

impl Wandering {
    fn new(seed: u64, true_ns: i64) -> Self {
        Self {
            random: StdRng::seed_from_u64(seed),
            true_ns,
            offset_ns: 0,
            rate_ppb: 0,
            error_ns: 1_000,
            said: [1_000; 2],
            since_read_ns: 0,
            steps: 0,
        }
    }

    /// Lets time pass.
    fn wait_until(&mut self, true_ns: i64) {
        let elapsed = (true_ns - self.true_ns).unsigned_abs();
        self.true_ns = true_ns;
        // A thousand million, so the remainder is lost once and less than a nanosecond.
        self.offset_ns += (i128::from(elapsed) * i128::from(self.rate_ppb) / 1_000_000_000) as i64;
        self.grow(drift_ns(elapsed));
        self.since_read_ns += elapsed;
        assert!(self.offset_ns.unsigned_abs() <= self.error_ns, "the clock keeps what it says");
    }

    /// Lets time pass, and things happen.
    fn until(&mut self, true_ns: i64) {
        self.wait_until(true_ns);
        if self.random.random_ratio(1, 500) {
            self.rate_ppb = match self.random.random_range(0..4) {
                // As fast as is allowed, in either direction.
                0 => 499_000,
                1 => -499_000,
                _ => self.random.random_range(-499_000..=499_000),
            };
        }
        if self.random.random_ratio(1, 3000) {
            // Somebody steps it; nobody says by how much, but the step can be seen.
            let step = self.random.random_range(-20_000_000..=20_000_000i64);
            self.offset_ns += step;
            self.grow(step.unsigned_abs());
            self.steps += 1;
        }
        if self.since_read_ns >= READ_NS {
            self.since_read_ns = 0;
            if self.random.random_ratio(1, 8) {
                // The daemon has set it, as well as it could, often only just.
                self.error_ns = 10u64.pow(self.random.random_range(3..7));
                let most = self.error_ns as i64;
                let offset = match self.random.random_range(0..3) {
                    0 => most,
                    1 => -most,
                    _ => self.random.random_range(-most..=most),
                };
                let step = offset - self.offset_ns;
                self.offset_ns = offset;
                self.steps += 1;
                self.said = self.said.map(|said| said + step.unsigned_abs());
            }
            self.said = [self.error_ns, self.said[0]];
        }
        assert!(self.offset_ns.unsigned_abs() <= self.error_ns, "the clock keeps what it says");
    }

    fn grow(&mut self, by_ns: u64) {
        self.error_ns += by_ns;
        self.said = self.said.map(|said| said + by_ns);
    }

    fn reading(&self) -> Reading {
        let [last, before] = self.said;
        let error = MaximumError { nanoseconds: Some(last.max(before)), steps: self.steps };
        Reading { ns: (self.true_ns + self.offset_ns).unsigned_abs(), error }
    }
}

/// A delay as networks have them: a floor, a queue, and now and then a long one, or none at all.
fn delay(random: &mut StdRng) -> i64 {
    match random.random_range(0..20) {
        0 => random.random_range(0..1_000),
        1 => random.random_range(0..80_000_000),
        _ => 5_000_000 + random.random_range(0..500_000),
    }
}

#[test]
fn all_of_a_hundred_thousand_delays_lie_in_their_intervals() {
    let [near, far] =
        ["192.0.2.1:40000", "192.0.2.2:862"].map(|end| end.parse::<SocketAddr>().unwrap());
    let mut sender = Sender::new(Settings { ask: Ask::default(), ..Settings::default() });
    let mut reflector = Reflector::default();
    reflector.agree(Agreement {
        address: near.ip(),
        port: None,
        ssid: None,
        key: None,
        extensions: true,
        rate: Rate { per_second: u32::MAX, burst: u32::MAX },
    });
    let mut now = 1_795_000_000_000_000_000i64;
    let (mut ours, mut theirs) = (Wandering::new(1, now), Wandering::new(2, now));
    let mut random = StdRng::seed_from_u64(3);
    let (mut packet, mut reply) = (Vec::new(), Vec::new());
    let (mut samples, mut estimates_outside, mut widest) = (0, 0u64, 0);
    while samples < SAMPLES {
        now += random.random_range(0..20_000_000);
        ours.until(now);
        let sent = ours.reading();
        let monotonic = now.unsigned_abs();
        let sequence = sender.next(sent, monotonic, &mut packet);
        // The kernel sends it at once.
        sender.left(sequence, sent.ns, |_| {});
        let (forth, stay, back) =
            (delay(&mut random), random.random_range(0..100_000), delay(&mut random));
        theirs.until(now + forth);
        let arrived = theirs.reading();
        // Nobody steps it while it has the packet: that the sender could not know of.
        theirs.wait_until(now + forth + stay);
        let arrival =
            |bytes, from, at_ns| Arrival { bytes, from, at_ns, ttl: 60, traffic_class: 0 };
        let left = theirs.reading();
        reflector.answer(&arrival(&packet, near, arrived.ns), || left, &mut reply).unwrap();
        now += forth + stay + back;
        ours.until(now);
        let came = ours.reading();
        let mut told = None;
        sender
            .receive(&arrival(&reply, far, came.ns), came.error, |event| {
                if let Event::Arrived(sample) = event {
                    told = Some(sample);
                }
            })
            .unwrap();
        sender.settle(now.unsigned_abs(), |_| {});
        let Sample { forth: Some(to), back: Some(from), round_trip, .. } = told.unwrap() else {
            panic!("a stateful reflector's times can be compared");
        };
        assert!(to.contains(forth), "sample {samples}: {forth} is not in {to:?}");
        assert!(from.contains(back), "sample {samples}: {back} is not in {from:?}");
        let both = forth + back;
        assert!(round_trip.contains(both), "sample {samples}: {both} is not in {round_trip:?}");
        // Nothing is promised more loosely than the clocks' errors make it; the field in the packet
        // rounds the reflector's up by less than a hundredth.
        let errors = |one: Reading, other: Reading| {
            let [one, other] = [one, other].map(|reading| reading.error.nanoseconds.unwrap());
            2 * (one + other)
        };
        for (way, errors) in [(to, errors(sent, left)), (from, errors(left, came))] {
            let width = way.width_ns().unwrap();
            assert!(width <= errors + errors / 100 + 10, "{width} of {errors}");
            assert!(way.causal().is_ok(), "{way:?}");
            widest = widest.max(width);
        }
        estimates_outside += u64::from(to.estimate_ns < 0) + u64::from(from.estimate_ns < 0);
        samples += 1;
    }
    assert!(ours.steps + theirs.steps > 20, "clocks were stepped");
    assert!(estimates_outside > 1_000, "and were so far off that estimates were below nought");
    assert!(widest > 1_000_000);
}

#[test]
fn one_station_that_knows_nothing_of_its_clock_leaves_no_bound() {
    let [known, unknown] = [MaximumError::known(5), MaximumError::UNKNOWN];
    let stamp = |clock| probe::interval::Stamp { at_ns: 7, clock, uncertainty_ns: 0 };
    for (from, to) in [(known, unknown), (unknown, known), (unknown, unknown)] {
        assert_eq!(Interval::between(stamp(from), stamp(to)), Interval::unbounded(0));
    }
}
