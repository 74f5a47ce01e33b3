//! A hundred thousand packets between two stations whose clocks wander, are slewed and are stepped: all true
//! delays lie in the intervals stated, and no interval is wider than the clocks' errors make it.
//!
//! The packets go through the real sender and reflector, and what is known of the clocks through the real
//! watch over them ([`probe::clock::Watch`]) and the reading of the kernel's figures. Time is the test's own:
//! each machine's clock is true time and an offset, set by a daemon that knows it as well as it reports, and
//! now and then by somebody who says nothing.

use datapath::timex::Timex;
use probe::{
    clock::{Clocks, Watch, kernel},
    interval::{Interval, MaximumError},
    stamp::{
        Arrival, Reading, Reflector, Sender,
        reflector::{Rate, SessionConfig},
        sender::{Event, Sample, Settings},
        tlv::Ask,
    },
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use std::net::SocketAddr;

const SAMPLES: usize = 100_000;
/// How often a station reads what is known of its clock.
const READ_NS: i64 = 1_000_000_000;
const SECOND_NS: i64 = 1_000_000_000;

/// A machine with its clocks, and what its station knows of them.
struct Machine {
    random: StdRng,
    watch: Watch,
    read_at_ns: i64,
    true_ns: i64,
    /// CLOCK_REALTIME less true time.
    offset_ns: i64,
    /// Parts per thousand million by which it is fast, unknown to all.
    rate_ppb: i64,
    /// The same of the crystal, which CLOCK_MONOTONIC_RAW follows.
    raw_ppb: i64,
    began_ns: i64,
    /// All steps so far, which CLOCK_BOOTTIME does not see.
    stepped_ns: i64,
    /// What the kernel still has to add to the clock, and how fast it does so.
    correction_ns: i64,
    slew_ppm: i64,
    fastest_ppm: i64,
    /// The daemon's report, and its time by the clock; `None` once somebody has set the clock.
    reported: Option<(u64, i64)>,
    steps: u32,
    corrections: u32,
}

impl Machine {
    fn new(seed: u64, true_ns: i64, raw_ppb: i64, fastest_ppm: i64) -> Self {
        Self {
            random: StdRng::seed_from_u64(seed),
            watch: Watch::default(),
            read_at_ns: true_ns,
            true_ns,
            offset_ns: 0,
            rate_ppb: 0,
            raw_ppb,
            began_ns: true_ns,
            stepped_ns: 0,
            correction_ns: 0,
            slew_ppm: 0,
            fastest_ppm,
            reported: None,
            steps: 0,
            corrections: 0,
        }
    }

    /// CLOCK_REALTIME.
    fn now(&self) -> u64 {
        (self.true_ns + self.offset_ns).unsigned_abs()
    }

    fn clocks(&self) -> Clocks {
        let now_ns = self.true_ns + self.offset_ns;
        let raw_ns = self.true_ns + part(self.true_ns - self.began_ns, self.raw_ppb);
        // What is read first is a little earlier.
        Clocks::of(now_ns - 30, [now_ns - self.stepped_ns, raw_ns], now_ns + 30)
    }

    fn error_of(&self, at_ns: u64) -> MaximumError {
        self.watch.error_of(at_ns as i64, &self.clocks())
    }

    fn timex(&self) -> Timex {
        let now_ns = self.now() as i64;
        // The kernel adds its 500 microseconds when a second begins.
        let grown_us = |since_ns: i64| 500 * (now_ns / SECOND_NS - since_ns / SECOND_NS);
        let maximum_error_us = self
            .reported
            .map_or(16_000_000, |(reported_us, since_ns)| reported_us + grown_us(since_ns) as u64);
        Timex {
            unsynchronised: self.reported.is_none(),
            offset_ns: self.correction_ns,
            frequency_ppb: 20_000,
            tick_us: 10_000,
            maximum_error_us,
            estimated_error_us: 1,
            subsecond_ns: (now_ns % SECOND_NS) as u32,
        }
    }

    /// Lets time pass, in which the daemon does its work and the station reads what there is to know.
    fn until(&mut self, true_ns: i64) {
        while self.read_at_ns <= true_ns {
            self.pass(self.read_at_ns.max(self.true_ns));
            if self.random.random_ratio(1, 8) {
                self.set();
            }
            let clocks = self.clocks();
            self.watch.take(&kernel::reading(self.timex()), clocks);
            self.read_at_ns += READ_NS;
        }
        self.pass(true_ns);
    }

    fn pass(&mut self, true_ns: i64) {
        let elapsed_ns = true_ns - self.true_ns;
        self.true_ns = true_ns;
        self.offset_ns += part(elapsed_ns, self.rate_ppb);
        let most_ns = part(elapsed_ns, self.slew_ppm * 1000);
        let moved_ns = self.correction_ns.clamp(-most_ns, most_ns);
        self.offset_ns += moved_ns;
        self.correction_ns -= moved_ns;
        if let Some(error_ns) = kernel::reading(self.timex()).clock.maximum_error_ns {
            assert!(self.offset_ns.unsigned_abs() <= error_ns, "the clock keeps what it says");
        }
    }

    /// The daemon measures the clock's offset as well as it can, often only just as well as it reports, and has
    /// the kernel correct it: at once, or bit by bit.
    fn set(&mut self) {
        let mut reported_us = 10u64.pow(self.random.random_range(1..5)) + 7;
        if reported_us.is_multiple_of(500) {
            reported_us += 1;
        }
        let most_ns = reported_us as i64 * 1000;
        let mistake_ns = match self.random.random_range(0..3) {
            0 => most_ns,
            1 => -most_ns,
            _ => self.random.random_range(-most_ns..=most_ns),
        };
        let correction_ns = mistake_ns - self.offset_ns;
        if self.random.random_ratio(1, 4) {
            self.correction_ns = 0;
            self.offset_ns += correction_ns;
            self.stepped_ns += correction_ns;
            self.steps += 1;
        } else {
            self.correction_ns = correction_ns;
            self.slew_ppm = self.random.random_range(1..=self.fastest_ppm);
            self.corrections += 1;
        }
        self.reported = Some((reported_us, self.now() as i64));
    }

    /// Something may happen that nobody reports.
    fn happen(&mut self) {
        if self.random.random_ratio(1, 500) {
            self.rate_ppb = match self.random.random_range(0..4) {
                // As fast as is allowed, in either direction.
                0 => 399_000,
                1 => -399_000,
                _ => self.random.random_range(-399_000..=399_000),
            };
        }
        if self.random.random_ratio(1, 3000) {
            // Somebody sets it (settimeofday): the kernel then knows nothing more of it.
            let step_ns = self.random.random_range(-20_000_000..=20_000_000i64);
            self.offset_ns += step_ns;
            self.stepped_ns += step_ns;
            (self.reported, self.correction_ns) = (None, 0);
            self.steps += 1;
        }
    }
}

/// So many parts per thousand million of it.
fn part(ns: i64, ppb: i64) -> i64 {
    (i128::from(ns) * i128::from(ppb) / 1_000_000_000) as i64
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
    reflector.admit(SessionConfig {
        address: near.ip(),
        port: None,
        ssid: None,
        key: None,
        extensions: true,
        rate: Rate { per_second: u32::MAX, burst: u32::MAX },
    });
    let mut now = 1_795_000_000_000_000_000i64;
    let mut ours = Machine::new(1, now, 100_000, 50_000);
    // Its clock's pace while it has the packet is nothing that the sender could know of.
    let mut theirs = Machine::new(2, now, -100_000, 99);
    let mut random = StdRng::seed_from_u64(3);
    let (mut packet, mut reply) = (Vec::new(), Vec::new());
    let (mut samples, mut bounded, mut estimates_outside, mut widest) = (0, 0, 0u64, 0);
    while samples < SAMPLES {
        now += random.random_range(0..20_000_000);
        ours.until(now);
        let steered = ours.error_of(ours.now()).steered;
        let ns = ours.now();
        ours.happen();
        let error = MaximumError { steered, ..ours.error_of(ns) };
        let given = now;
        let sequence = sender.next(Reading { ns, error }, now.unsigned_abs(), &mut packet);
        // The kernel sends it a little later, and says so when it is asked.
        now += random.random_range(0..50_000);
        ours.until(now);
        let (sent, sent_ns) = (now, ours.now());
        let (forward, stay, reverse) =
            (delay(&mut random), random.random_range(0..100_000), delay(&mut random));
        theirs.happen();
        theirs.until(now + forward);
        let arrived_ns = theirs.now();
        theirs.pass(now + forward + stay);
        let arrival =
            |bytes, from, at_ns| Arrival { bytes, from, at_ns, ttl: 60, traffic_class: 0 };
        let left_ns = theirs.now();
        let left = Reading { ns: left_ns, error: theirs.error_of(left_ns.min(arrived_ns)) };
        reflector.answer(&arrival(&packet, near, arrived_ns), || left, &mut reply).unwrap();
        ours.happen();
        let early = random.random_range(0..=forward + stay + reverse);
        ours.until(now + early);
        let error = ours.error_of(sent_ns);
        let mut reported = None;
        let mut report = |event| {
            if let Event::Arrived(sample) = event {
                reported = Some(sample);
            }
        };
        sender.left(sequence, sent_ns, error, &mut report);
        now += forward + stay + reverse;
        ours.until(now);
        let came_ns = ours.now();
        // It lies in the socket's buffer, now and then for long, and who knows what happens.
        let waits = if random.random_ratio(1, 100) { 3 * SECOND_NS } else { 2_000_000 };
        now += random.random_range(0..waits);
        ours.happen();
        ours.until(now);
        let came = ours.error_of(came_ns);
        sender.receive(&arrival(&reply, far, came_ns), came, &mut report).unwrap();
        sender.settle(now.unsigned_abs() + 3_000_000_000, &mut report);
        let Sample { forward: Some(to), reverse: Some(from), round_trip, kernel_sent, .. } =
            reported.unwrap()
        else {
            panic!("a stateful reflector's times can be compared");
        };
        // Of a clock that was set back meanwhile the kernel's time is not taken.
        let forward = if kernel_sent { forward } else { sent - given + forward };
        assert!(to.contains(forward), "sample {samples}: {forward} is not in {to:?}");
        assert!(from.contains(reverse), "sample {samples}: {reverse} is not in {from:?}");
        let both = forward + reverse;
        assert!(round_trip.contains(both), "sample {samples}: {both} is not in {round_trip:?}");
        // Nothing is promised more loosely than the clocks' errors make it; the field in the packet
        // rounds the reflector's up by less than a hundredth.
        for (delay, one) in [(to, error), (from, came)] {
            let errors = one.plus(left.error).nanoseconds.map(|sum| 2 * sum);
            assert_eq!(delay.width_ns().is_some(), errors.is_some());
            if let (true, Some(width), Some(errors)) = (kernel_sent, delay.width_ns(), errors) {
                assert!(width <= errors + errors / 100 + 10, "{width} of {errors}");
                assert!(delay.causal().is_ok(), "{delay:?}");
                widest = widest.max(width);
                bounded += 1;
            }
        }
        estimates_outside += u64::from(to.estimate_ns < 0) + u64::from(from.estimate_ns < 0);
        samples += 1;
    }
    assert!(ours.steps > 20 && theirs.steps > 20, "clocks were stepped");
    assert!(ours.corrections > 20 && theirs.corrections > 20, "and slewed");
    assert!(estimates_outside > 1_000, "and were so far off that estimates were below nought");
    // Nothing is known of a clock from when somebody sets it until the daemon does.
    assert!(bounded > SAMPLES, "{bounded} of {} directions have bounds", 2 * SAMPLES);
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
